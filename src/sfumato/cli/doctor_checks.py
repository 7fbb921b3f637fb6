"""What can be wrong with an installation, and what to do about it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path

_PACKAGE = "sfumato"
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[^\]]*\])?\s*(?P<rules>[^;]*)")
_LEAST = re.compile(r"(?:>=|==|~=)\s*([0-9.]+)")
EXTRAS = {
    "attacks": (("torch",), "networks that attack a release"),
    "client": (("httpx", "websockets"), "asking a service: push, sf.Client"),
    "mqtt": (("paho.mqtt", "prometheus_client"), "bridges to brokers"),
    "postgres": (("psycopg", "psycopg_pool"), "ledgers in PostgreSQL"),
    "service": (("starlette", "uvicorn", "uvloop", "httptools"), "serve"),
    "spark": (("pyspark",), "releases inside Apache Spark, which needs Java too"),
}
"""Modules of each extra, and what it is for."""


class Health(StrEnum):
    """How something is."""

    GOOD = "good"
    ABSENT = "not there"
    BAD = "WRONG"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        what: Which thing.
        health: How it is; what is not there is not needed for the main job.
        told: What was seen, and what to do about it.
    """

    what: str
    health: Health
    told: str


def installation() -> Iterator[Finding]:
    """Look at the program, what it needs, and where it writes."""
    version = sys.version.split()[0]
    new = sys.version_info >= (3, 11)
    yield Finding("python", _good(new), version if new else f"{version}: 3.11 or newer is needed")
    for name, least in needed_libraries():
        yield _library(name, least)
    for extra, (modules, purpose) in EXTRAS.items():
        yield _extra(extra, modules, purpose)
    yield _java()
    yield _arithmetic()
    yield _coins()
    yield _folder(Path(tempfile.gettempdir()))
    yield _loops()


def _good(right: bool) -> Health:
    return Health.GOOD if right else Health.BAD


def needed_libraries() -> list[tuple[str, str]]:
    """What the package declares to need without any extra: names, and the least version of each.

    Examples:
        >>> "numpy" in dict(needed_libraries()), "torch" in dict(needed_libraries())
        (True, False)
    """
    declared = [line for line in metadata.requires(_PACKAGE) or [] if "extra ==" not in line]
    parts = [found for line in declared if (found := _REQUIREMENT.match(line)) is not None]
    least = [_LEAST.search(part["rules"]) for part in parts]
    pairs = zip(parts, least, strict=True)
    return sorted((part["name"], "" if rule is None else rule[1]) for part, rule in pairs)


def _library(name: str, least: str) -> Finding:
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding(name, Health.BAD, "not installed: pip install sfumato once more")
    if _numbers(version) < _numbers(least):
        told = f"{version}: {least} or newer is needed: pip install sfumato once more"
        return Finding(name, Health.BAD, told)
    return Finding(name, Health.GOOD, version)


def _numbers(version: str) -> list[int]:
    """The parts of a version that are numbers, up to the first that is none."""
    return [int(part) for part in re.match(r"[0-9.]*", version)[0].split(".") if part]  # type: ignore[index]


def _extra(extra: str, modules: tuple[str, ...], purpose: str) -> Finding:
    if all(map(_there, modules)):
        return Finding(f"extra {extra}", Health.GOOD, f"for {purpose}")
    told = f'for {purpose}: pip install "sfumato[{extra}]"'
    return Finding(f"extra {extra}", Health.ABSENT, told)


def _there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it
        return False


def _java() -> Finding:
    found = shutil.which("java")
    if found is not None:
        return Finding("java", Health.GOOD, found)
    return Finding("java", Health.ABSENT, "for Spark: a Java 17 runtime")


def _arithmetic() -> Finding:
    """Certificates are computed in floating point: they must be the bits of every machine."""
    from sfumato.core.arithmetic import as_tested

    if as_tested():
        return Finding("arithmetic", Health.GOOD, "this machine gives the bits that were tested")
    told = "this machine gives other last bits than those tested: audits elsewhere may differ"
    return Finding("arithmetic", Health.BAD, told)


def _coins() -> Finding:
    """Two draws that are alike are none; a machine image without entropy gives such."""
    if os.urandom(32) == os.urandom(32):
        return Finding("coins", Health.BAD, "the operating system repeats its random numbers")
    return Finding("coins", Health.GOOD, "the operating system gives random numbers")


def _folder(path: Path) -> Finding:
    try:
        with tempfile.TemporaryFile(dir=path):
            return Finding("temporary files", Health.GOOD, f"can be written in {path}")
    except OSError as problem:
        told = f"nothing can be written in {path} ({problem.strerror}); set TMPDIR"
        return Finding("temporary files", Health.BAD, told)


def _loops() -> Finding:
    from sfumato.cli.warm_command import missing_loops
    from sfumato.cli.warm_jobs import JOBS

    cold = [name for name, lacks in missing_loops(JOBS).items() if lacks != 0]
    if not cold:
        return Finding("compiled loops", Health.GOOD, "there: commands begin at once")
    told = f"{', '.join(cold)}: compiled at first use; `sfumato warm` does it beforehand"
    return Finding("compiled loops", Health.ABSENT, told)
