"""Loss against mean charge: the long run of bits, simulations, and free spends."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.loss import Loss
from sfumato.solver.value_iteration import Effort
from sfumato.stream.price_frontier import Frontier, frontier
from tests.oracles.binary_programme import BinaryProgramme

WRONG = [[0.0, 1.0], [1.0, 0.0]]
LITTLE = Effort(beliefs=(20, 30), depths=(4, 3), turns=6, walked=100, judged=200)


def sticky(stay: float, size: int = 2) -> sf.MarkovChain:
    matrix = np.full((size, size), (1 - stay) / (size - 1))
    np.fill_diagonal(matrix, stay)
    return sf.MarkovChain.from_matrix(matrix)


def hamming(chain: sf.MarkovChain) -> Loss:
    return sf.loss.hamming(chain.alphabet)


def test_the_long_run_of_bits_is_that_of_the_programme() -> None:
    chain = sticky(0.95)
    found = frontier(chain, hamming(chain), 1.0, prices=[0.0, 0.1])
    oracle = BinaryProgramme(chain.transition(), WRONG, 201, 5)
    near, far = oracle.step_wise(1.0), oracle.average([1.0])
    assert found.step_wise.loss == pytest.approx(near.loss, rel=0.01)
    assert found.step_wise.charge == pytest.approx(near.charge, rel=0.03)
    assert found.points[0].loss == pytest.approx(far.loss, rel=0.01)
    assert found.points[0].charge == pytest.approx(1.0, abs=0.01)
    best = oracle.average([part / 8 for part in range(9)], 0.1, 1e-6)
    paid = found.points[1].loss + 0.1 * found.points[1].charge
    assert paid == pytest.approx(best.loss + 0.1 * best.charge, rel=0.01)


@cache
def drawn() -> Frontier:
    chain = sticky(0.95)
    return frontier(chain, hamming(chain), 2.0)


def test_a_higher_price_leaks_less_and_loses_more() -> None:
    points = drawn().points
    assert len(points) == 6
    for one, dearer in pairwise(points):
        assert dearer.charge <= one.charge + 1e-6
        assert dearer.loss >= one.loss - 1e-6
    assert points[-1].charge < 0.5 * points[0].charge


def test_within_a_charge_the_least_loss_is_taken() -> None:
    found = drawn()
    half = found.within(0.5)
    assert half.charge <= 0.5
    assert half.loss == min(one.loss for one in found.points if one.charge <= 0.5)
    assert found.within(0.0).charge == min(one.charge for one in found.points)


def test_simulated_points_have_errors() -> None:
    chain = sticky(0.95, 3)
    found = frontier(chain, hamming(chain), 1.0, prices=[0.0, 0.2], steps=300, effort=LITTLE)
    free, dear = found.points
    assert free.loss < found.step_wise.loss - 2 * found.step_wise.loss_error
    assert dear.charge < 0.8 * free.charge
    assert 0 < free.loss_error < 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stay", "cap", "best"),
    [
        (0.9, 0.5, 0.263),
        (0.95, 0.5, 0.218),
        (0.95, 1.0, 0.113),
        (0.98, 0.5, 0.221),
        (0.98, 1.0, 0.132),
    ],
)
def test_free_spends_lose_less_at_the_charge_of_step_wise(
    stay: float, cap: float, best: float
) -> None:
    """Steps may spend up to four nats; a price is sought at which they leak no more on average."""
    chain = sticky(stay)
    allowed = frontier(chain, hamming(chain), cap, prices=[]).step_wise.charge
    low, high, reached = 0.01, 3.0, np.inf
    for _ in range(8):
        price = float(np.sqrt(low * high))
        (point,) = frontier(chain, hamming(chain), 4.0, prices=[price]).points
        if point.charge <= allowed:
            high, reached = price, min(reached, point.loss)
        else:
            low = price
    assert reached <= best + 0.0005
