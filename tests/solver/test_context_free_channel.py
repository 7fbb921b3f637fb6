import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from sfumato.solver.closed_form import randomized_response
from sfumato.solver.context_free_channel import _channel, context_free
from tests.oracles.exact_leakage import within, within_locally
from tests.oracles.textbook_lp import textbook_minimax
from tests.strategies import Floats, Problem, problems

usable = problems().map(lambda problem: replace(problem, epsilon=max(0.05, problem.epsilon)))


def dense(problem: Problem) -> Floats:
    channel = context_free(problem.belief, problem.loss, problem.epsilon).channel
    rows = np.zeros_like(problem.loss)
    rows[:, channel.outputs] = channel.probabilities
    return rows


@given(usable)
def test_worst_loss_is_the_least_possible(problem: Problem) -> None:
    worst = float((dense(problem) * problem.loss).sum(axis=1).max())
    expected = textbook_minimax(problem.loss, problem.epsilon)
    # Ties are broken by the mean loss, at a price of a millionth.
    assert worst == pytest.approx(expected, abs=2e-6 * problem.loss.max())


@given(problems())
def test_keeps_both_promises_exactly(problem: Problem) -> None:
    design = context_free(problem.belief, problem.loss, problem.epsilon)
    assert within_locally(design.channel.weights, problem.epsilon)
    assert within(design.channel.weights, problem.belief.tolist(), problem.epsilon)
    assert design.ldp.epsilon <= problem.epsilon


@given(problems())
def test_the_belief_changes_the_price_and_not_the_channel(problem: Problem) -> None:
    size = problem.belief.size
    told = context_free(problem.belief, problem.loss, problem.epsilon)
    _channel.cache_clear()
    even = context_free(np.full(size, 1 / size), problem.loss, problem.epsilon)
    assert told.channel.weights.tolist() == even.channel.weights.tolist()
    cost = float(problem.belief @ (dense(problem) * problem.loss).sum(axis=1))
    assert told.cost == pytest.approx(cost, rel=1e-12, abs=1e-15)


@settings(max_examples=20)
@given(usable)
def test_a_channel_that_was_made_before_is_that_of_its_own_loss_and_budget(
    problem: Problem,
) -> None:
    # Neighbours in turn, so that a kept channel of one would be noticed in another.
    near = replace(problem, epsilon=0.7 * problem.epsilon)
    turned = replace(problem, loss=np.ascontiguousarray(problem.loss[::-1, ::-1]))
    asked = (problem, near, turned)
    kept = [context_free(one.belief, one.loss, one.epsilon).channel for _ in "ab" for one in asked]
    for one, channel in zip(2 * asked, kept, strict=True):
        _channel.cache_clear()
        fresh = context_free(one.belief, one.loss, one.epsilon).channel
        assert channel.fingerprint == fresh.fingerprint
        assert within_locally(channel.weights, one.epsilon)


@given(usable)
def test_a_worst_loss_is_never_above_that_of_randomized_response(problem: Problem) -> None:
    plain = randomized_response(problem.belief, problem.loss, problem.epsilon).channel
    worst = (dense(problem) * problem.loss).sum(axis=1).max()
    rival = (plain.probabilities * problem.loss).sum(axis=1).max()
    assert worst <= rival + 2e-6 * problem.loss.max()


@pytest.mark.parametrize("size", [2, 3, 5])
def test_is_randomized_response_when_only_right_or_wrong_counts(size: int) -> None:
    belief, wrong = np.full(size, 1 / size), 1 - np.eye(size)
    expected = (size - 1) / (math.exp(1.0) + size - 1)
    assert context_free(belief, wrong, 1.0).cost == pytest.approx(expected, abs=1e-9)
