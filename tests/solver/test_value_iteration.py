"""Value functions against the programme of two symbols, and against seeing nothing."""

import math
from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.errors import InvalidParameter
from sfumato.solver.far_sighted import FarSight
from sfumato.solver.optimal_channel import optimal
from sfumato.solver.sight_walks import walked
from sfumato.solver.value_function import ValueFunction
from sfumato.solver.value_iteration import Effort, value_function
from tests.oracles.binary_programme import BinaryProgramme, _read
from tests.strategies import Floats

WRONG, SKEWED = ((0.0, 1.0), (1.0, 0.0)), ((0.0, 1.0), (3.0, 0.0))
LITTLE = Effort(beliefs=(20, 30), depths=(4, 3), turns=6, walked=100, judged=200)


def long_run_loss(value: ValueFunction, points: int = 401) -> float:
    """The loss of the release itself, from its channels at beliefs of a grid."""
    sight, grid = FarSight(value), np.linspace(1e-9, 1 - 1e-9, points)
    costs, moves = np.empty(points), np.zeros((points, points))
    for row, chance in enumerate(grid):
        step = sight.step(np.array([1 - chance, chance]), value.epsilon)
        masses = np.array([1 - chance, chance])[:, None] * step.rows
        costs[row] = (masses * value.losses[:, step.symbols]).sum()
        for mass in masses.T:
            # As read at the next belief: a finite chain of beliefs, whose mean is exact.
            place = (mass @ value.transition)[1] / mass.sum() * (points - 1)
            moves[row] += mass.sum() * _read(np.eye(points), np.array([place]))[:, 0]
    stationary = np.full(points, 1 / points)
    for _ in range(60):
        stationary = stationary @ np.linalg.matrix_power(moves, 16)
    return float(stationary @ costs / stationary.sum())


def against_the_programme(stays: tuple[float, float], losses: object, cap: float) -> float:
    chain = [[stays[0], 1 - stays[0]], [1 - stays[1], stays[1]]]
    table = np.array(losses)
    best = BinaryProgramme(chain, table, points=401, sides=5).average([cap], tolerance=1e-6).loss
    return long_run_loss(value_function(chain, table, cap)) / best


@pytest.mark.parametrize(
    ("stays", "losses", "cap"),
    [((0.95, 0.95), WRONG, 0.5), ((0.99, 0.9), WRONG, 0.5), ((0.95, 0.7), SKEWED, 1.0)],
)
def test_two_symbols_reach_the_programme(
    stays: tuple[float, float], losses: object, cap: float
) -> None:
    assert 0.99 < against_the_programme(stays, losses, cap) < 1.002


@pytest.mark.slow
@pytest.mark.parametrize("stays", [(0.9, 0.9), (0.98, 0.98), (0.95, 0.7), (0.99, 0.9), (0.6, 0.8)])
@pytest.mark.parametrize("cap", [0.25, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("losses", [WRONG, SKEWED])
def test_two_symbols_reach_the_programme_everywhere(
    stays: tuple[float, float], losses: object, cap: float
) -> None:
    assert against_the_programme(stays, losses, cap) < 1.002


def test_a_price_saves_leakage() -> None:
    chain = [[0.95, 0.05], [0.05, 0.95]]
    value = value_function(chain, WRONG, 1.0, price=0.1)
    best = BinaryProgramme(chain, WRONG, 201, 5).average([0, 0.25, 0.5, 0.75, 1.0], 0.1, 1e-6)
    assert value.promised == pytest.approx(best.loss + 0.1 * best.charge, rel=0.005)
    cost, _ = walked(value, 4000, np.random.default_rng(0))
    assert cost == pytest.approx(value.promised, rel=0.05)


def sticky(size: int, rng: np.random.Generator) -> Floats:
    stay = rng.uniform(0.6, 0.97)
    rest = rng.dirichlet(np.ones(size), size)
    return np.asarray(stay * np.eye(size) + (1 - stay) * rest)


def blind(value: ValueFunction) -> ValueFunction:
    zeros, ones = np.zeros((1, value.vectors.shape[1])), np.ones((1, len(value.losses), 1))
    return replace(value, vectors=zeros, channels=ones)


def test_seeing_nothing_is_the_step_wise_optimum() -> None:
    rng = np.random.default_rng(1)
    chain = sticky(4, rng)
    losses = sf.loss.absolute(sf.Alphabet.of_size(4)).matrix
    one = ValueFunction("", "", 0.7, 0.0, chain, losses, np.zeros((1, 4)), np.ones((1, 4, 1)), 1, 0)
    assert one.is_step_wise
    for belief in rng.dirichlet(np.ones(4), 10):
        found = FarSight(one).design(belief, 0.7)
        assert found.design.cost == pytest.approx(optimal(belief, losses, 0.7).cost, abs=1e-5)
        assert found.design.sip.epsilon <= 0.7


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
def test_sight_is_never_worse(seed: int) -> None:
    """Fresh coins, the same for both; expected loss under the belief, without luck."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 7))
    chain, cap = sticky(size, rng), float(rng.choice([0.3, 0.7, 1.5]))
    losses = 1 - np.eye(size) if seed % 2 else rng.random((size, size)) * (1 - np.eye(size))
    value = value_function(chain, losses, cap)
    far, near = (
        walked(one, 2000, np.random.default_rng(99), FarSight(value))[0]
        for one in (value, blind(value))
    )
    assert far <= near * 1.002


def test_contexts_gain_by_sight() -> None:
    """A chain of order 2 that stays: the step-wise release of its own contexts loses more."""
    chain = np.array([[0.97, 0.03], [0.3, 0.7], [0.7, 0.3], [0.03, 0.97]])
    value = value_function(chain, WRONG, 0.5, effort=LITTLE)
    assert (value.order, value.vectors.shape[1]) == (2, 4)
    far, near = (walked(one, 500, np.random.default_rng(3))[0] for one in (value, blind(value)))
    assert far < 0.9 * near


def test_a_lifted_chain_is_worth_what_it_was() -> None:
    """A chain of order 1 told as one of order 2 has the value of order 1, by another method."""
    chain = np.array([[0.95, 0.05], [0.05, 0.95]])
    lifted = value_function(np.tile(chain, (2, 1)), WRONG, 0.5, effort=LITTLE)
    found, _ = walked(lifted, 1000, np.random.default_rng(5), FarSight(lifted))
    assert found == pytest.approx(value_function(chain, WRONG, 0.5).promised, rel=0.05)


def test_batches_gain_by_sight() -> None:
    chain = [[0.97, 0.03], [0.03, 0.97]]
    both = np.array([[0, 1, 1, 2], [1, 0, 2, 1], [1, 2, 0, 1], [2, 1, 1, 0]], dtype=float)
    value = value_function(chain, both, 0.8, width=2, effort=LITTLE)
    assert value.vectors.shape[1] == 2
    far, near = (walked(one, 500, np.random.default_rng(4))[0] for one in (value, blind(value)))
    assert far < 0.9 * near


def test_many_symbols_gain_by_sight() -> None:
    """Forty symbols in groups; the rival is the step-wise optimum of all of them."""
    chain = 0.95 * np.eye(40) + 0.05 / 40
    value = value_function(chain, 1 - np.eye(40), 1.0, effort=LITTLE)
    far, near = (walked(one, 150, np.random.default_rng(4))[0] for one in (value, blind(value)))
    assert far < 0.9 * near
    found = FarSight(value).design(np.full(40, 1 / 40), 1.0)
    assert found.design.sip.epsilon <= 1.0


def test_three_symbols_gain_by_sight() -> None:
    chain = 0.95 * np.eye(3) + 0.05 / 3
    value = value_function(chain, 1 - np.eye(3), 0.5, effort=LITTLE)
    far, near = (walked(one, 600, np.random.default_rng(3))[0] for one in (value, blind(value)))
    assert not value.is_step_wise
    assert far < 0.9 * near


def test_every_step_is_certified() -> None:
    value = value_function(sticky(3, np.random.default_rng(2)), 1 - np.eye(3), 0.6, effort=LITTLE)
    for belief in np.random.default_rng(3).dirichlet(np.ones(3), 20):
        for epsilon, cap in ((0.6, None), (0.3, None), (0.6, 0.4)):
            found = FarSight(value).design(belief, epsilon, cap)
            assert found.design.sip.epsilon <= epsilon
            assert cap is None or found.design.ldp.epsilon <= cap
            assert found.design.channel.outputs.tolist() == list(range(len(found.symbols)))


def test_equal_arguments_give_equal_functions() -> None:
    chain = sticky(3, np.random.default_rng(4))
    one, other = (value_function(chain, 1 - np.eye(3), 0.6, effort=LITTLE) for _ in range(2))
    assert one.fingerprint == other.fingerprint


@pytest.mark.parametrize(
    "changes",
    [
        {"vectors": np.zeros((1, 3))},
        {"channels": np.ones((2, 2, 0))},
        {"channels": -np.ones((500, 2, 1))},
        {"width": 2},
        {"transition": np.full((3, 2), 0.5)},
        {"losses": np.zeros((3, 2))},
        {"vectors": np.full((500, 2), math.nan)},
        {"trust": 0.0},
    ],
)
def test_damaged_functions_are_refused(changes: dict[str, object]) -> None:
    value = value_function([[0.9, 0.1], [0.2, 0.8]], WRONG, 0.5)
    with pytest.raises(InvalidParameter):
        replace(value, **changes)  # type: ignore[arg-type]


def test_impossible_moves_and_many_symbols_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="zeros"):
        value_function([[1.0, 0.0], [0.5, 0.5]], WRONG, 0.5)
    with pytest.raises(InvalidParameter, match="64 contexts"):
        value_function(np.full((81, 3), 1 / 3), 1 - np.eye(3), 0.5)
    with pytest.raises(InvalidParameter, match="4096 batches"):
        value_function(np.full((3, 3), 1 / 3), np.zeros((3**8, 1)), 0.5, width=8)
    with pytest.raises(InvalidParameter, match="2048 symbols"):
        value_function(np.full((2049, 2049), 1 / 2049), np.zeros((2049, 1)), 0.5)
