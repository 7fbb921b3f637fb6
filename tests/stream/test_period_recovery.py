"""What a receiver infers of a release with a budget for periods: against every sequence."""

from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Event
from sfumato.core.purpose import Fallback
from sfumato.stream.other_truth import leakage_under
from sfumato.stream.recovery import recover
from sfumato.stream.released_tracks import ReleasedTracks
from tests.oracles.hidden_sequences import switching

FIRST, ROWS = [0.5, 0.3, 0.2], [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]
# Before 1970, too; the third value of a period finds its budget gone.
PERIODS = [-1, -1, -1, 0, 0, 2]
CHAIN = sf.MarkovChain.from_matrix(ROWS, initial=FIRST)
BUDGET = sf.PerPeriod(sf.SIP(1.0), sf.stream.Period("day"), cap=sf.SIP(0.5))
PLAN = sf.Plan(
    CHAIN,
    BUDGET,
    sf.loss.hamming(CHAIN.alphabet),
    on_exhausted=Fallback.SUPPRESS,
    purpose=sf.Purpose.SIMULATION,
)


def a_release(seed: int) -> tuple[list[Event], list[list[float]]]:
    """A stream of random values, and how likely each value made what left."""
    rng, state = np.random.default_rng(seed), PLAN.begin("ann")
    coins, left, told = sf.seeded(seed), list[Event](), list[list[float]]()
    for period in PERIODS:
        design = PLAN.prepare(state, period=period)
        value = int(rng.integers(3))
        (event,), state = PLAN.step(state, [value], coins, period=period)
        likely = [1.0] * 3
        if design is not None:
            output = design.output(CHAIN.alphabet.indices([event.released]))
            assert output is not None
            likely = design.design.channel.likelihood(output).tolist()
        left.append(event)
        told.append(likely)
    return left, told


@pytest.mark.parametrize("seed", range(5))
def test_what_is_recovered_is_the_share_of_all_sequences(seed: int) -> None:
    left, told = a_release(seed)
    assert left[2].released is None and left[3].released is not None
    joint = switching([FIRST], [ROWS], [0] * len(PERIODS), told)
    total = sum(joint.values())
    due = np.zeros((len(PERIODS), 3))
    for values, mass in joint.items():
        for place, value in enumerate(values):
            due[place, value] += mass / total
    found = recover({"ann": left}, PLAN).posterior("ann")
    np.testing.assert_allclose(found, due, rtol=1e-9, atol=1e-12)


def test_tracks_keep_their_periods_in_any_order_of_streams() -> None:
    left, _ = a_release(1)
    tracks = ReleasedTracks.of({"ann": left}, CHAIN.alphabet).by_name()
    assert tracks.periods is not None and tracks.periods.tolist() == PERIODS


def test_values_without_their_times_are_refused() -> None:
    left, _ = a_release(1)
    bare = [replace(event, period=None) for event in left]
    with pytest.raises(InvalidParameter, match="come with their times: the budget is for each day"):
        recover({"ann": bare}, PLAN)


def test_another_adversary_was_told_what_the_joint_table_says() -> None:
    first, rows = [0.2, 0.2, 0.6], [[0.4, 0.3, 0.3], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8]]
    truth = sf.MarkovChain.from_matrix(rows, initial=first)
    left, told = a_release(3)
    state, due = PLAN.begin("ann"), 0.0
    for place, (event, period) in enumerate(zip(left, PERIODS, strict=True)):
        design = PLAN.prepare(state, period=period)
        _, state = PLAN.observe(state, [event.released], event.outcome, period=period)
        if design is None:
            continue
        before = [*told[:place], [1.0] * 3]
        joint = switching([first], [rows], [0] * (place + 1), before)
        belief = np.zeros(3)
        for values, mass in joint.items():
            belief[values[-1]] += mass
        channel = design.design.channel.probabilities
        due += np.abs(np.log(channel / (belief @ channel / belief.sum()))).max()
    found = leakage_under({"ann": left}, PLAN, truth).streams["ann"]
    assert found.truth == pytest.approx(due, rel=1e-9)
