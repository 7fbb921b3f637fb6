"""Rivals, guesses and the least leakage on alphabets whose matrices nobody wants to store."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato import loss as losses
from sfumato.column.privatize import privatize
from sfumato.core.alphabet import Alphabet
from sfumato.core.guarantees import LDP
from sfumato.core.loss import Loss
from sfumato.solver.closed_form import (
    calibrated_randomized_response,
    paper_response,
    randomized_response,
)
from sfumato.solver.inverse import least_leakage
from sfumato.solver.optimal_channel import optimal
from sfumato.stream.remap import remapped
from tests.strategies import Floats

RULES = (randomized_response, calibrated_randomized_response, paper_response)
GRID = Alphabet.grid(25, 26)
LARGE = Alphabet.grid(72, 71)
"""One symbol more than a matrix is made for, and some."""


def skewed(size: int, seed: int = 1) -> Floats:
    masses = np.random.default_rng(seed).pareto(1.0, size) + 1e-4
    return np.asarray(masses / masses.sum())


def by_hand(rows: Floats, belief: Floats, table: Floats) -> float:
    """Least loss after the best guess, over all symbols."""
    return float(((belief[:, None] * rows).T @ table).min(axis=1).sum())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("name", ["hamming", "absolute", "squared", "euclidean"])
@pytest.mark.parametrize("epsilon", [0.3, 4.0])
def test_the_guess_after_a_response_is_the_best_of_all_symbols(
    rule: type, name: str, epsilon: float
) -> None:
    belief, loss = skewed(len(GRID)), getattr(losses, name)(GRID)
    design = rule(belief, loss, epsilon)
    expected = by_hand(design.channel.probabilities, belief, loss.matrix)
    assert remapped(design, belief, loss).cost == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["hamming", "squared", "absolute", "euclidean"])
@pytest.mark.parametrize("alphabet", [GRID, LARGE], ids=["stored", "on demand"])
def test_the_guess_after_few_outputs_is_the_best_of_all_symbols(
    alphabet: Alphabet, name: str
) -> None:
    belief, loss = skewed(len(alphabet)), getattr(losses, name)(alphabet)
    design = optimal(belief, loss, 1.0)
    posterior = belief[:, None] * design.channel.probabilities
    columns = (loss.columns(block) for block in np.array_split(np.arange(belief.size), 32))
    expected = np.min([(posterior.T @ part).min(axis=1) for part in columns], axis=0).sum()
    assert remapped(design, belief, loss).cost == pytest.approx(float(expected), rel=1e-9)


def wrong(size: int) -> Loss:
    return losses.hamming(Alphabet.of_size(size))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rivals_work_on_thousands_of_symbols_and_certify_themselves(rule: type) -> None:
    size = 5_500
    belief = skewed(size)
    design = rule(belief, wrong(size), 1.0)
    shared, extra, target = design.channel.parts()
    assert target.tolist() == list(range(size))
    low = [Fraction(float(part)) for part in shared]
    high = [part + Fraction(extra) for part in low]
    prior = [Fraction(float(mass)) for mass in belief]
    whole = sum(prior)
    mean = [s + Fraction(extra) * b / whole for s, b in zip(low, prior, strict=True)]
    ratios = [max(h / m, m / s) for h, m, s in zip(high, mean, low, strict=True)]
    assert design.sip.epsilon == pytest.approx(float(np.log(float(max(ratios)))), rel=1e-9)
    assert design.cost == pytest.approx(float(1 - belief @ (shared + extra)), rel=1e-9)
    assert remapped(design, belief, wrong(size)).cost <= design.cost


def test_the_least_leakage_is_found_on_a_map_of_five_thousand_cells() -> None:
    belief, loss = skewed(len(LARGE)), losses.euclidean(LARGE)
    constant = float(loss.means(belief).min())
    found = least_leakage(belief, loss, 0.9 * constant)
    assert found.cost <= 0.9 * constant
    assert 0 < found.sip.epsilon < 1.0


def test_a_column_of_thousands_of_symbols_is_reported_in_parts() -> None:
    """The cost and the expected counts are those of the matrix that is never made."""
    size = 5_100
    rng = np.random.default_rng(8)
    column = [f"item {place}" for place in rng.zipf(1.3, 9_000) % size]
    public = [f"item {place}" for place in range(size)]
    frame = {"item": column}
    records = {"item": [*column, *public]}
    released = privatize(
        frame,
        "item",
        epsilon=2.0,
        mechanism="randomized-response",
        history=records,
        order="shuffled",
    )
    certificate = released.certificate
    assert certificate.ldp <= LDP(2.0)
    odds = np.exp(2.0)
    assert certificate.cost == pytest.approx(1 - odds / (odds + size - 1), abs=1e-3)
    assert len(released.frame["item"]) == 9_000
