"""One channel for all values is one but for its last digits: what it is off is known beforehand."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.arrays import Floats
from sfumato.core.events import Event
from sfumato.models.chain_bets import ALIKE, inverse_weights, residual
from sfumato.models.output_blocks import OutputBlocks
from sfumato.stream.drift import _allowance
from sfumato.stream.learning import emissions_of
from sfumato.stream.one_channel import fixed_outputs
from sfumato.stream.released_tracks import ReleasedTracks

STICKY = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
ORDER_2 = sf.MarkovChain.from_matrix(
    [[0.9, 0.1], [0.4, 0.6], [0.7, 0.3], [0.2, 0.8]], np.full((2, 2), 0.25)
)
EVEN = sf.MarkovChain.from_matrix(np.full((5, 5), 0.2))


def released(
    model: sf.MarkovChain, budget: sf.PerStep, length: int
) -> tuple[sf.Plan, ReleasedTracks, list[Floats]]:
    """A long stream, and the channels that it left through."""
    method, loss = sf.Method.RANDOMIZED_RESPONSE, sf.loss.hamming(model.alphabet)
    plan = sf.Plan(model, budget, loss, method=method, purpose=sf.Purpose.SIMULATION)
    state, coins, left = plan.begin("ann"), sf.seeded(1), list[Event]()
    used = []
    for moment in range(length):
        found = plan.prepare(state, 1)
        assert found is not None
        used.append(found.design.channel.probabilities)
        (event,), state = plan.step(state, [moment % len(model.alphabet)], coins)
        left.append(event)
    return plan, ReleasedTracks.of({"ann": left}, model.alphabet), used


@pytest.mark.parametrize(
    ("model", "budget", "length"),
    [
        (STICKY, sf.PerStep(sf.SIP(1.0)), 2_000),
        (ORDER_2, sf.PerStep(sf.SIP(0.5)), 700),
        (EVEN, sf.PerStep(sf.SIP(3.0)), 1_500),
        (EVEN, sf.PerStep(sf.SIP(3.0), sf.LDP(2.0)), 300),
    ],
    ids=["bit", "order 2", "five", "capped"],
)
def test_what_the_channel_of_a_long_stream_is_off_is_allowed_for(
    model: sf.MarkovChain, budget: sf.PerStep, length: int
) -> None:
    plan, tracks, used = released(model, budget, length)
    fixed = fixed_outputs(tracks, plan)
    assert fixed is not None
    off = max(float(np.abs(one - fixed.channel).max()) for one in used)
    assert off <= fixed.alike <= max(4 * off, ALIKE)
    weights = inverse_weights(fixed.channel)
    assert weights is not None
    # What bets rest on: weights whose means are the values, through every channel that was used.
    allowed = residual(fixed.channel, weights, fixed.alike)
    wrong = max(float(np.abs(one @ weights - np.eye(len(one))).max()) for one in used)
    assert wrong <= allowed
    # What a score may be off by it: one output's probability under any belief.
    blocks = OutputBlocks.of(emissions_of(tracks, plan), tracks.moments, length)
    last = max(float(np.abs(np.log(one / fixed.channel)).max()) for one in used)
    assert 2 * length * last <= _allowance(blocks, fixed.alike)[-1]


def test_a_longer_stream_is_allowed_more_and_a_short_one_what_it_always_was() -> None:
    plan, tracks, _ = released(STICKY, sf.PerStep(sf.SIP(1.0)), 4)
    found = []
    for length in (4, 1_000, 30_000):
        many = np.zeros(length, dtype=np.int64)
        long = ReleasedTracks(
            ("ann",), np.array([0, length]), many, many, np.arange(length), many - 1, many
        )
        fixed = fixed_outputs(long, plan)
        assert fixed is not None
        found.append(fixed.alike)
        own = fixed.of_streams(np.array([0]))
        assert own.alike == fixed.alike
    assert found[0] == ALIKE < 2e-12 < found[1] < 7e-11 < found[2] < 1e-9
    assert fixed_outputs(tracks, plan) is not None
