"""What can be wrong with an installation, and what to do about it."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path

_NEEDED = ("cryptography", "msgspec", "numba", "numpy", "pyarrow", "scipy", "typer")
EXTRAS = {
    "attacks": (("torch",), "networks that attack a release"),
    "client": (("httpx", "websockets"), "asking a service: push, sf.Client"),
    "mqtt": (("paho.mqtt", "prometheus_client"), "bridges to brokers"),
    "postgres": (("psycopg", "psycopg_pool"), "ledgers in PostgreSQL"),
    "service": (("starlette", "uvicorn", "uvloop", "httptools"), "serve"),
}
"""Modules of each extra, and what it is for."""


class Health(StrEnum):
    """How something is."""

    GOOD = "good"
    OPTIONAL = "not there, not needed"
    BAD = "WRONG"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        what: Which thing.
        health: How it is.
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
    for name in _NEEDED:
        yield _library(name)
    for extra, (modules, purpose) in EXTRAS.items():
        yield _extra(extra, modules, purpose)
    yield _entropy()
    yield _folder("temporary files", Path(tempfile.gettempdir()))
    yield _loops()


def _good(right: bool) -> Health:
    return Health.GOOD if right else Health.BAD


def _library(name: str) -> Finding:
    try:
        return Finding(name, Health.GOOD, metadata.version(name))
    except metadata.PackageNotFoundError:
        return Finding(name, Health.BAD, "not installed: pip install sfumato once more")


def _extra(extra: str, modules: tuple[str, ...], purpose: str) -> Finding:
    absent = [module for module in modules if not _there(module)]
    if not absent:
        return Finding(f"extra {extra}", Health.GOOD, f"for {purpose}")
    told = f'for {purpose}: pip install "sfumato[{extra}]"'
    return Finding(f"extra {extra}", Health.OPTIONAL, told)


def _there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it
        return False


def _entropy() -> Finding:
    """Two draws that are alike are none; a machine image without entropy gives such."""
    alike = os.urandom(32) == os.urandom(32)
    told = "the operating system gives coins" if not alike else "the operating system repeats them"
    return Finding("coins", _good(not alike), told)


def _folder(what: str, path: Path) -> Finding:
    try:
        with tempfile.TemporaryFile(dir=path):
            return Finding(what, Health.GOOD, f"can be written in {path}")
    except OSError as problem:
        told = f"nothing can be written in {path} ({problem.strerror}); set TMPDIR"
        return Finding(what, Health.BAD, told)


def _loops() -> Finding:
    from sfumato.cli.warm_command import missing_jobs

    missing = missing_jobs()
    if not missing:
        return Finding("compiled loops", Health.GOOD, "there: commands begin at once")
    told = f"{', '.join(missing)} will be compiled at first use; `sfumato warm` does it beforehand"
    return Finding("compiled loops", Health.OPTIONAL, told)
