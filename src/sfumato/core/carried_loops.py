"""Loops that the package brings along: compiled when its wheel was built.

They were compiled for every processor of a kind that has some features, not for one (`Baseline`),
and are used only where python, numba, llvmlite, numpy and the platform are those of the build and
the processor has these features. Which sources a loop was compiled from is asked for each loop
(`loop_cache`). They give the same bits as loops for this processor: nothing is fused or reordered.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import sysconfig
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite  # type: ignore[import-untyped]
import numba
import numpy as np
from numba.core.codegen import get_host_cpu_features

from sfumato.core.loop_folders import as_safe_as

FOLDER = "carried_loops"
"""Where they lie within the package."""

RECORD = "made-for.json"
"""What they were made for, beside them."""


class Baseline(NamedTuple):
    """What a processor must have.

    Attributes:
        name: The plainest one of its kind, as LLVM calls it.
        features: What it must have beyond that, as LLVM calls them. Nothing else is used.
    """

    name: str
    features: tuple[str, ...]

    @property
    def settings(self) -> dict[str, str]:
        """The environment in which numba compiles for it.

        Examples:
            >>> Baseline("x86-64", ("avx", "avx2")).settings
            {'NUMBA_CPU_NAME': 'x86-64', 'NUMBA_CPU_FEATURES': '+avx,+avx2'}
        """
        wanted = ",".join(f"+{feature}" for feature in self.features)
        return {"NUMBA_CPU_NAME": self.name, "NUMBA_CPU_FEATURES": wanted}


# What compilers call x86-64-v3: all but the oldest and the smallest processors since 2013 have it.
_X86 = (
    *("avx", "avx2", "bmi", "bmi2", "crc32", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt"),
    *("sahf", "sse3", "sse4.1", "sse4.2", "ssse3", "xsave"),
)
BASELINES: Mapping[str, Baseline] = {"x86_64": Baseline("x86-64", _X86)}
"""By machine; loops are carried for no other."""


class Carried(NamedTuple):
    """Loops that the package brings along and that fit here.

    Attributes:
        folder: Where they lie.
        processor: What they were compiled for, as numba names it: a name and features.
        sources: A digest of the program that they were compiled from.
        jobs: The lists of compiled forms that each job of `sfumato warm` uses, by name of file.
    """

    folder: str
    processor: tuple[str, str]
    sources: str
    jobs: Mapping[str, list[str]]


def conditions(baseline: Baseline) -> dict[str, str]:
    """Everything that a compiled loop depends on, beside its sources."""
    return {
        "python": str(sys.implementation.cache_tag),
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "numpy": np.__version__,
        "platform": sysconfig.get_platform(),
        **baseline.settings,
    }


def carried() -> Carried | None:
    """The loops that the package brings along, if it has any and they fit here.

    Whoever tells numba which processor to compile for gets loops for that one.
    """
    chosen: Any = numba.config
    if chosen.CPU_NAME is not None or chosen.CPU_FEATURES is not None:
        return None
    return _carried(os.path.realpath(Path(__file__).parents[1]))


@cache
def _carried(package: str) -> Carried | None:
    baseline = BASELINES.get(platform.machine())
    folder = os.path.join(package, FOLDER)
    if baseline is None or not as_safe_as(os.path.join(package, "__init__.py"), folder):
        return None
    try:
        record = json.loads(Path(folder, RECORD).read_text())
        fits = record["conditions"] == conditions(baseline) and has(baseline)
        return _found(folder, baseline, record) if fits else None
    except (OSError, ValueError, LookupError, TypeError):
        return None  # a record that cannot be read says nothing: loops are compiled


def _found(folder: str, baseline: Baseline, record: Mapping[str, Any]) -> Carried:
    name, features = baseline.settings.values()
    return Carried(folder, (name, features), record["sources"], record["jobs"])


def has(baseline: Baseline) -> bool:
    """Whether this processor has all that loops for a baseline may use.

    Examples:
        >>> has(Baseline("generic", ())), has(Baseline("generic", ("no such feature",)))
        (True, False)
    """
    # Numba's own list: without those that it does not trust on some virtual machines.
    here = set(get_host_cpu_features().split(","))
    return all(f"+{feature}" in here for feature in baseline.features)


def source_digest() -> str:
    """A digest of the whole program."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    return digest.hexdigest()
