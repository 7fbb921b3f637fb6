"""Table I of SIP: what is timed is what it is called, and verdicts follow from growth."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from sfumato.plots.points import MeasuredPoint
from sfumato.studies.sip import release_runtime as runtime
from sfumato.studies.sip.release_runtime import (
    CERTIFIED,
    LDP,
    MIP,
    PREDICTION,
    PUBLISHED,
    PUFFERFISH,
    Sizes,
    random_chain,
    runtime_points,
    sequence_table,
)
from sfumato.studies.sip.sip_table_1 import claims, factor, power
from sfumato.studies.study import Verdict

DRAW = np.random.default_rng(5)


def growing(panel: str, curve: str, power_of_size: float) -> list[MeasuredPoint]:
    """Times that grow with a power of the size."""
    sizes = (64.0, 128.0, 256.0)
    return [MeasuredPoint(panel, curve, size, size**power_of_size, 0.0) for size in sizes]


def multiplying(panel: str, curve: str, times: float) -> list[MeasuredPoint]:
    """Times of which all values together take so many times as long with each further one."""
    return [MeasuredPoint(panel, curve, n, times**n / n, 0.0) for n in (2.0, 3.0, 4.0)]


def table(**powers: float) -> list[MeasuredPoint]:
    """Times as the paper has them, but for those that are given."""
    told = {
        "ldp": 1.0,
        "rule": 1.0,
        "moves": 1.0,
        "flat": 0.0,
        "quilts": 2.0,
        "joint": 4.0,
    } | powers
    return [
        *growing("alphabet", LDP, told["ldp"]),
        *growing("alphabet", PUBLISHED, told["rule"]),
        *growing("alphabet", PREDICTION, told["moves"]),
        *growing("length", PUBLISHED, told["flat"]),
        *growing("length", PUFFERFISH, told["quilts"]),
        *multiplying("length", MIP, told["joint"]),
        *multiplying("batch", CERTIFIED, told.get("batch", 16.0)),
    ]


def test_growth_as_claimed_agrees() -> None:
    assert {claim.verdict for claim in claims(table())} == {Verdict.AGREES}


@pytest.mark.parametrize(
    ("place", "other"),
    [
        (0, {"ldp": 2.0}),
        (1, {"moves": 2.0}),
        (2, {"flat": 1.0}),
        (3, {"joint": 1.2}),
        (4, {"quilts": 4.0}),
        (5, {"batch": 90.0}),
    ],
)
def test_each_claim_differs_where_its_growth_does(place: int, other: dict[str, float]) -> None:
    found = [claim.verdict for claim in claims(table(**other))]
    assert [n for n, verdict in enumerate(found) if verdict is Verdict.DIFFERS] == [place]


def test_powers_and_factors_are_those_of_the_upper_end() -> None:
    points = growing("alphabet", LDP, 2.0)
    assert power([replace(points[0], x=8.0, y=900.0), *points]) == pytest.approx(2.0)
    assert factor(multiplying("batch", CERTIFIED, 7.0)) == pytest.approx(7.0)


def test_the_joint_table_holds_every_sequence() -> None:
    chain = random_chain(2, DRAW)
    first, moves = chain.first().marginal, chain.transition()
    expected = [
        first[path[0]] * math.prod(moves[a, b] for a, b in itertools.pairwise(path))
        for path in itertools.product((0, 1), repeat=4)
    ]
    assert sequence_table(chain, 4) == pytest.approx(expected)


def test_what_is_timed_as_mutual_information_is_that() -> None:
    chain = random_chain(2, DRAW)
    told = runtime._joint(chain, 1)()
    keep = math.e / (1 + math.e)
    prior = chain.first().marginal
    out = prior * keep + prior[::-1] * (1 - keep)
    entropy = -float((out * np.log(out)).sum())
    noise = -(keep * math.log(keep) + (1 - keep) * math.log(1 - keep))
    assert told == pytest.approx(entropy - noise)


def test_a_quilt_costs_at_least_one_value_and_is_found_where_memory_is_short() -> None:
    mixing = random_chain(3, DRAW)
    cost = runtime._quilted(mixing, 16)()
    assert isinstance(cost, float)
    assert 1.0 <= cost < math.inf


def test_times_are_parts_of_the_smallest_response() -> None:
    small = Sizes((4, 8), (4,), (1,), (1, 2), (4, 8), (2, 3), 1)
    seen: list[int] = []
    points = runtime_points(small, 1, seen.append)
    assert seen == list(range(1, small.steps + 1))
    unit = next(p for p in points if (p.figure, p.curve, p.x) == ("alphabet", LDP, 4.0))
    assert unit.y == pytest.approx(1.0)
    assert all(point.y > 0 for point in points)
