import itertools
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato import Alphabet, Channel, MarkovChain
from sfumato.core.errors import InvalidParameter
from sfumato.stream import Belief
from tests.oracles.joint import DIGITS, Symbols, exact_marginal, exact_step

STEPS = 1_000

shares = st.lists(st.integers(1, 50), min_size=2, max_size=5)


@given(shares, st.data())
def test_update_is_bayes_rule(weights: list[int], data: st.DataObject) -> None:
    belief = np.array(weights) / sum(weights)
    likelihood = np.array([data.draw(st.integers(1, 9)) / 10 for _ in weights])
    told = Belief(belief).update(likelihood)
    evidence = sum(b * a for b, a in zip(belief, likelihood, strict=True))
    expected = [b * a / evidence for b, a in zip(belief, likelihood, strict=True)]
    assert told.marginal == pytest.approx(expected, rel=1e-14)


@given(st.integers(0, 2), st.data())
def test_update_conditions_the_marked_value_and_keeps_the_rest(
    axis: int, data: st.DataObject
) -> None:
    weights = data.draw(st.lists(st.integers(1, 20), min_size=8, max_size=8))
    joint = np.array(weights, dtype=np.float64).reshape(2, 2, 2) / sum(weights)
    likelihood = np.array([0.8, 0.3])
    told = Belief(joint, axis=axis).update(likelihood)
    expected = {place: joint[place] * likelihood[place[axis]] for place in np.ndindex(*joint.shape)}
    total = sum(expected.values())
    for place, mass in expected.items():
        assert told.joint[place] == pytest.approx(mass / total, rel=1e-14)
    assert told.marginal == pytest.approx(
        [sum(m for place, m in expected.items() if place[axis] == x) / total for x in range(2)]
    )


def test_an_output_that_tells_nothing_moves_nothing() -> None:
    belief = Belief(np.array([0.2, 0.3, 0.5]))
    assert belief.update(np.full(3, 0.25)).marginal == pytest.approx([0.2, 0.3, 0.5], rel=1e-15)


def test_updates_may_come_in_any_order() -> None:
    one, two = np.array([0.9, 0.2, 0.4]), np.array([0.1, 0.5, 0.3])
    belief = Belief(np.array([0.2, 0.3, 0.5]))
    there, back = belief.update(one).update(two), belief.update(two).update(one)
    assert there.marginal == pytest.approx(back.marginal, rel=1e-14)


def test_nobody_can_write_to_a_belief() -> None:
    given = np.array([0.5, 0.5])
    belief = Belief(given)
    given[0] = 9.0
    assert np.array_equal(belief.joint, [0.5, 0.5])
    for array in (belief.joint, belief.marginal):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


@pytest.mark.parametrize("axis", [-1, 1, 2])
def test_the_current_value_must_be_one_of_the_axes(axis: int) -> None:
    with pytest.raises(InvalidParameter, match=r"axis must lie in range\(1\)"):
        Belief(np.array([0.5, 0.5]), axis=axis)


# Rounding ----------------------------------------------------------------------------------------


def half_spread(computed: list[float], exact: list[Any]) -> Any:
    """The least d with |log(computed / (c * exact))| <= d for some scale c."""
    with mpmath.workdps(DIGITS):
        logs = [mpmath.log(mpmath.mpf(p) / q) for p, q in zip(computed, exact, strict=True)]
        return (max(logs) - min(logs)) / 2


def exact_rows(chain: MarkovChain) -> dict[Symbols, list[Any]]:
    """The transition matrix that the stored floats define, normalised, in 60 digits."""
    known = chain.known if isinstance(chain.known, np.ndarray) else chain.known.toarray()
    rows = {}
    with mpmath.workdps(DIGITS):
        background = [mpmath.mpf(float(p)) for p in chain.background]
        for place, context in enumerate(itertools.product(range(chain.size), repeat=chain.order)):
            weight = mpmath.mpf(float(chain.backoff[place]))
            row = [
                (1 - weight) * mpmath.mpf(float(p)) + weight * u
                for p, u in zip(known[place], background, strict=True)
            ]
            rows[context] = [p / sum(row) for p in row]
    return rows


def sticky(size: int, leave: float) -> NDArray[np.float64]:
    """Almost the identity: it forgets nothing, so rounding errors add up instead of fading."""
    return (1 - leave) * np.eye(size) + leave / size


def mixed(contexts: int, size: int) -> NDArray[np.float64]:
    return np.random.default_rng(4).dirichlet(np.ones(size), contexts)


@pytest.mark.parametrize(
    ("matrix", "floor"),
    [
        (sticky(3, 1e-7), 0.0),
        (sticky(4, 0.02), 1e-4),
        (mixed(3, 3), 1e-3),
        (mixed(4, 2), 1e-2),
        (mixed(9, 3), 1e-3),
    ],
    ids=["identity-like", "sticky", "mixing", "order-2", "order-2-of-3"],
)
def test_drift_bounds_the_rounding_error_at_every_step(
    matrix: NDArray[np.float64], floor: float
) -> None:
    contexts, size = matrix.shape
    order = 1 if contexts == size else 2
    draw = np.random.default_rng(9)
    initial = draw.dirichlet(np.ones(contexts)).reshape((size,) * order)
    chain = MarkovChain.from_matrix(matrix, initial, floor=floor)
    channels = [Channel.from_probabilities(draw.dirichlet(np.ones(size), size)) for _ in range(7)]
    moves = exact_rows(chain)
    belief = chain.first()
    while belief.axis < order - 1:
        belief = chain.following(belief)
    exact = {c: mpmath.mpf(float(chain.initial[c])) for c in moves}
    sharpest = mpmath.mpf(0)
    for step in range(STEPS):
        channel = channels[step % len(channels)]
        output = int(draw.integers(size))
        told = [int(weight) for weight in channel.weights[:, output]]
        belief = chain.following(belief.update(channel.likelihood(output)))
        exact = exact_step(exact, moves, told)
        error = half_spread([float(belief.joint[c]) for c in moves], [exact[c] for c in moves])
        assert error <= belief.drift
        assert half_spread(belief.marginal.tolist(), exact_marginal(exact, size)) <= belief.error
        sharpest = max(sharpest, error / belief.drift)
    # A bound three hundred times smaller would have been caught.
    assert sharpest > 1 / 300
    assert belief.drift < 1e-10


def test_drift_bounds_the_error_of_updates_alone() -> None:
    draw = np.random.default_rng(3)
    channel = Channel.from_probabilities(draw.dirichlet(np.full(4, 5.0), 4))
    start = draw.dirichlet(np.ones(4))
    belief = Belief(start)
    exact = [mpmath.mpf(float(p)) for p in start]
    for output in draw.integers(4, size=200).tolist():
        belief = belief.update(channel.likelihood(output))
        exact = [p * int(w) for p, w in zip(exact, channel.weights[:, output], strict=True)]
        assert half_spread(belief.marginal.tolist(), exact) <= belief.drift
    assert 200 * 2.0**-53 < belief.drift < 1e-12


@pytest.mark.parametrize("order", [1, 2])
def test_drift_bounds_the_error_of_predictions_alone(order: int) -> None:
    chain = MarkovChain.from_matrix(
        mixed(3**order, 3),
        np.random.default_rng(5).dirichlet(np.ones(3**order)).reshape((3,) * order),
    )
    moves = exact_rows(chain)
    belief = chain.first()
    while belief.axis < order - 1:
        belief = chain.following(belief)
    exact = {c: mpmath.mpf(float(chain.initial[c])) for c in moves}
    assert belief.drift <= 2 * (order - 1) * 2.0**-53
    for _ in range(50):
        belief, exact = chain.following(belief), exact_step(exact, moves)
        error = half_spread([float(belief.joint[c]) for c in moves], [exact[c] for c in moves])
        assert 0 < error <= belief.drift


def test_a_belief_that_was_only_read_has_no_error() -> None:
    chain = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
    assert chain.first().error == 0.0


def test_summing_out_the_other_values_counts_as_an_error() -> None:
    joint = Belief(np.full((3, 3), 1 / 9), axis=1, drift=1e-15)
    assert joint.error > joint.drift


def test_a_belief_about_many_values_marks_one_of_them() -> None:
    chain = MarkovChain.from_matrix(mixed(4, 2), alphabet=Alphabet("ab"))
    first = chain.first()
    second = chain.following(first)
    assert (first.axis, second.axis, chain.following(second).axis) == (0, 1, 1)
    assert np.array_equal(first.joint, second.joint)
