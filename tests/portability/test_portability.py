"""Every job writes the same bytes on every processor that this one can pretend to be."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.portability.catalogue import names
from tests.portability.environments import ENVIRONMENTS, OTHERWISE

Digests = dict[str, dict[str, str]]
ROOT = Path(__file__).parents[2]
SHORT = (
    *("release-batch", "release-policy", "release-order2", "town-grid", "python-instant-methods"),
    *("privatize-number-optimal", "privatize-number-gaussian", "privatize-optimal"),
    *("realtime-realtime", "realtime-gaussian", "temporal-release", "temporal-allocate"),
    *("heaped-mixtures", "least-noise"),
)
"""A case or two for each job: what the default suite has time for."""


def told(cases: Sequence[str], environment: Mapping[str, str]) -> Digests:
    """The digests of some cases in a process of its own."""
    process = subprocess.run(
        [sys.executable, "-m", "tests.portability.catalogue", *cases],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-2000:]
    return dict(json.loads(line) for line in process.stdout.splitlines())


def apart(one: Digests, other: Digests) -> list[str]:
    """What differs, by case and file."""
    assert one.keys() == other.keys()
    return [
        f"{case}: {name}"
        for case in one
        for name in sorted(one[case].keys() | other[case].keys())
        if one[case].get(name) != other[case].get(name)
    ]


def test_short_cases_are_the_same_on_another_processor() -> None:
    here, there = told(SHORT, {}), told(SHORT, OTHERWISE)
    assert len(here) == len(SHORT) + 1
    assert apart(here, there) == []


_PLAIN = """
import hashlib, math, numpy as np
x = np.random.default_rng(1).normal(size=20000)
for found in (np.exp(x), np.array([x @ np.abs(x)]), np.array([math.exp(v) for v in x])):
    print(hashlib.sha256(found.tobytes()).hexdigest())
"""


def test_the_pretended_processor_is_another_one() -> None:
    """Were the names of its features wrong, nothing would be told apart."""
    here, there = (
        subprocess.run(
            [sys.executable, "-c", _PLAIN],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for environment in ({}, OTHERWISE)
    )
    assert all(one != other for one, other in zip(here, there, strict=True)), (here, there)


def test_digests_tell_what_differs() -> None:
    one = {"case": {"file": "a", "other": "b"}}
    assert apart(one, {"case": {"file": "a", "other": "c"}}) == ["case: other"]
    assert apart(one, {"case": {"file": "a"}}) == ["case: other"]


@pytest.fixture(scope="module")
def everything() -> Digests:
    return told(names(), {})


@pytest.mark.slow
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_all_cases_are_the_same_on(name: str, everything: Digests, tmp_path: Path) -> None:
    environment = dict(ENVIRONMENTS[name])
    if "NUMBA_CPU_NAME" in environment:
        environment["NUMBA_CACHE_DIR"] = str(tmp_path)
    assert apart(everything, told(names(), environment)) == []
