"""Whatever rules an administrator asks for, they are taken or refused by name; nothing breaks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.core.errors import SfumatoError
from sfumato.service.job_rules import SeriesRequest, check_asked
from sfumato.service.problems import of_error
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.temporal.temporal_spec import TemporalSpec
from tests.service.gateways import MATRIX, SERIES_RULES, TEMPORAL_RULES, town

KINDS: dict[str, tuple[type[msgspec.Struct], dict[str, Any]]] = {
    "release": (ReleaseSpec, {"epsilon": 0.5}),
    "realtime": (SeriesRequest, {**SERIES_RULES, "length": 50}),
    "temporal": (TemporalSpec, TEMPORAL_RULES),
}
NUMBERS = (0, -0.0, 1, -1, 0.5, 7, 10**4, 5e-324, 1e-300, 1e-9, 40, 41, 1e300, 2**53, 2**64, 10**30)
WORDS: tuple[str, ...] = (
    "",
    "x",
    "release",
    "refuse",
    "symbol",
    "accept",
    "event",
    "optimal",
    "far-sighted",
)
WORDS += ("counts", "response", "laplace", "tree", "pegasus", "paper", "least-noise", "w-event")
TABLES: tuple[Any, ...] = (
    [MATRIX],
    [[[1.0]]],
    [[[1, 0], [0, 1]]],
    [[[0.5, 0.5], [1.0]]],
    [[[0, 0], [0, 0]]],
)
TABLES += ([[[1e308, 1], [0, 1]]], [[]], [[0, 1], [1, 0]], [[1e308, 0], [0, 1]], [[0]])
BOUNDS = {"low": [[0, 0], [0, 0]], "high": [[1, 1], [1, 1]], "confidence": 0.9}
ANY: tuple[Any, ...] = (
    *NUMBERS,
    *WORDS,
    *TABLES,
    BOUNDS,
    None,
    True,
    [],
    {},
    [0, 1],
    [1, 0],
    ["x"],
    [None],
)


def outcome(job: str, rules: dict[str, Any]) -> str:
    """What becomes of rules; whatever else they raise breaks the test."""
    try:
        check_asked(job, rules, town() if job == "release" else None, None)
    except SfumatoError as refused:
        told = of_error(refused)
        assert told.status in (403, 409, 422) and told.detail
        return "refused"
    return "taken"


@pytest.mark.parametrize("job", KINDS)
def test_any_rule_may_be_anything(job: str) -> None:
    kind, base = KINDS[job]
    seen = Counter(
        outcome(job, {**base, name: value}) for name in kind.__struct_fields__ for value in ANY
    )
    assert seen["refused"] > 100 and seen["taken"] > 50, seen


@pytest.mark.slow
@pytest.mark.parametrize("job", KINDS)
def test_several_rules_may_be_anything(job: str) -> None:
    kind, base = KINDS[job]
    anything = st.sampled_from(ANY)
    wrong = st.dictionaries(
        st.sampled_from(kind.__struct_fields__), anything, min_size=2, max_size=4
    )
    total = st.fixed_dictionaries({"epsilon": st.none(), "budget": anything, "horizon": anything})
    bases = st.just(base) if job != "release" else st.one_of(st.just(base), total)
    seen = Counter[str]()

    @settings(
        max_examples=3_000,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(bases, wrong)
    def ask(first: dict[str, Any], parts: dict[str, Any]) -> None:
        seen[outcome(job, {**first, **parts})] += 1

    ask()
    assert seen["refused"] and seen["taken"], seen
