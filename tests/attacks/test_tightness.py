"""How tight certificates are: settled by all sequences of outputs, written down one by one."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

import sfumato as sf
from sfumato.attacks import worst_outputs
from sfumato.core.state import StreamState
from tests.attacks.scenes import plan_of, sticky


@dataclass(frozen=True)
class Sequence:
    """Some outputs, what they told of the track that gained or lost most, and what is certified."""

    state: StreamState
    up: float = 0.0
    down: float = 0.0
    certified: float = 0.0

    @property
    def gain(self) -> float:
        return max(self.up, self.down)


def every_sequence(plan: sf.Plan, length: int) -> list[Sequence]:
    found = [Sequence(plan.begin("s"))]
    for _ in range(length):
        found = [longer for one in found for longer in _followed(plan, one)]
    return found


def _followed(plan: sf.Plan, one: Sequence) -> list[Sequence]:
    design = plan.prepare(one.state)
    assert design is not None
    channel, belief = design.design.channel, one.state.belief.marginal
    rows, belief = channel.probabilities, belief / belief.sum()
    longer = []
    for column, output in enumerate(channel.outputs.tolist()):
        chance = math.fsum(belief * rows[:, column])
        _, state = plan.observe(one.state, [plan.model.alphabet.labels[output]])
        up = one.up + math.log(rows[:, column].max() / chance)
        down = one.down + math.log(chance / rows[:, column].min())
        longer.append(Sequence(state, up, down, state.ledger.spent[0].epsilon))
    return longer


def reached(plan: sf.Plan, length: int) -> float:
    """The largest gain of all sequences, as a part of what is certified for the worst."""
    every = every_sequence(plan, length)
    return max(one.gain for one in every) / max(one.certified for one in every)


@pytest.mark.parametrize("epsilon", [0.2, 0.5, 1.0, 2.0])
@pytest.mark.parametrize(("size", "stay"), [(2, 0.5), (2, 0.8), (2, 0.9), (16, 0.5), (16, 0.9)])
def test_some_outputs_reach_nearly_all_that_is_certified(
    size: int, stay: float, epsilon: float
) -> None:
    found = worst_outputs(plan_of(sticky(size, stay), epsilon), 8)
    assert 0.95 < found.tightness <= 1
    assert found.certified.epsilon > 0.99 * 8 * epsilon  # of a stream that spends all it may
    assert 0.999 < found.least_step <= 1


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("stay", [0.9, 0.98, 0.99])
def test_one_or_two_values_are_tight_on_any_bit(stay: float, length: int) -> None:
    assert reached(plan_of(sticky(2, stay), 1.0), length) > 0.999


@pytest.mark.parametrize(
    ("stay", "epsilon", "share"),
    [(0.9, 0.5, 0.972), (0.95, 1.0, 0.921), (0.98, 0.5, 0.896), (0.98, 1.0, 0.851)],
)
def test_on_a_bit_that_hardly_moves_no_outputs_reach_the_sum_of_all_steps(
    stay: float, epsilon: float, share: float
) -> None:
    plan = plan_of(sticky(2, stay), epsilon)
    best = reached(plan, 8)
    assert best == pytest.approx(share, abs=2e-3)
    # It is the sum that is loose, neither the search nor the steps.
    found = worst_outputs(plan, 8)
    every = every_sequence(plan, 8)
    assert found.bound.epsilon > 0.999 * max(one.gain for one in every)
    assert 0.999 < found.least_step <= 1


def test_no_sequence_of_all_is_above_its_own_certificate() -> None:
    for epsilon in (0.3, 1.5):
        every = every_sequence(plan_of(sticky(2, 0.98), epsilon), 8)
        assert all(one.gain <= one.certified + 1e-9 for one in every)


def test_steps_of_far_sighted_releases_and_of_batches_are_tight() -> None:
    sighted = plan_of(sticky(2, 0.9), 0.5, method=sf.Method.FAR_SIGHTED)
    batched = plan_of(sticky(2, 0.9), 0.5, width=2)
    for plan in (sighted, batched):
        found = worst_outputs(plan, 4)
        assert 0.99 < found.least_step <= 1
        assert not found.bound.exceeds(found.certified)


def test_a_step_that_is_certified_for_more_than_it_tells_is_seen() -> None:
    # Randomised response at a certain belief: the certificate is exact there, too.
    plan = plan_of(sticky(3, 0.6), 1.0, method=sf.Method.RANDOMIZED_RESPONSE)
    found = worst_outputs(plan, 3)
    assert np.isclose(found.least_step, 1.0, atol=1e-6)
