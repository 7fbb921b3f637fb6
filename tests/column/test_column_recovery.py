"""Shares, means, spread and slopes of a released column: right on average, with true errors."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import sfumato as sf
from sfumato.column.column_recovery import ColumnRecovery, Inferred, recover_column
from sfumato.core.errors import InvalidParameter
from sfumato.noise.frequency import KaryResponse, Reporting, SubsetSelection, UnaryEncoding

Floats = NDArray[np.float64]
NUMBERS = np.array([0.0, 1.0, 3.0, 4.0])
ROWS, TIMES = 300, 250
TRUTH = np.repeat([0, 1, 2, 3], [150, 75, 60, 15])
BESIDE = TRUTH + np.linspace(-1, 1, ROWS)


def response(level: float) -> sf.Channel:
    wrong = 1 / (3 + np.exp(level))
    return sf.Channel.from_probabilities(
        np.full((4, 4), wrong) + (np.exp(level) - 1) * wrong * np.eye(4)
    )


Mechanism = sf.Channel | Reporting
MECHANISMS: dict[str, Callable[[float], Mechanism]] = {
    "a response": response,
    "k-ary response": lambda level: KaryResponse.at(4, level),
    "unary encoding": lambda level: UnaryEncoding.at(4, level),
    "subset selection": lambda level: SubsetSelection.at(4, level),
}


def released(mechanism: Mechanism, seed: int) -> NDArray[np.int64] | NDArray[np.bool_]:
    coins = sf.seeded(seed)
    if isinstance(mechanism, Reporting):
        return mechanism.report(TRUTH, coins)
    return mechanism.draw(TRUTH, coins.words(ROWS))


def inferred(found: ColumnRecovery) -> list[Inferred]:
    return [
        *found.shares(),
        found.mean(NUMBERS),
        found.spread(NUMBERS),
        found.slope(NUMBERS, BESIDE),
    ]


def true() -> Floats:
    values = NUMBERS[TRUTH]
    apart = BESIDE - BESIDE.mean()
    shares = np.bincount(TRUTH) / ROWS
    return np.array([*shares, values.mean(), values.var(), apart @ values / (apart @ apart)])


def fits(used: Mechanism, believed: Mechanism) -> bool:
    """Whether all estimates are right on average, and as far off as they say."""
    found = [inferred(recover_column(released(used, time), believed)) for time in range(TIMES)]
    off = np.array([[one.value for one in row] for row in found]) - true()
    errors = np.array([[one.error for one in row] for row in found])
    said = np.sqrt((errors**2).mean(axis=0))
    unbiased = np.abs(off.mean(axis=0)) < 4.5 * said / np.sqrt(TIMES)
    sizes = np.abs(off.std(axis=0) / said - 1) < 5 * np.sqrt(0.5 / TIMES)
    covered = (np.abs(off) < 1.96 * errors).mean(axis=0)
    # The error of a spread is itself an estimate from few rows: it covers a little less often.
    share = np.abs(covered - 0.95) < 4.5 * np.sqrt(0.95 * 0.05 / TIMES) + 0.01
    return bool(unbiased.all() and sizes.all() and share.all())


@pytest.mark.parametrize("name", MECHANISMS)
def test_estimates_are_right_on_average_and_so_are_their_errors(name: str) -> None:
    make = MECHANISMS[name]
    assert fits(make(1.5), make(1.5))


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("level", [1.05, 1.95])
def test_another_mechanism_is_found_out(name: str, level: float) -> None:
    make = MECHANISMS[name]
    assert not fits(make(1.5), make(level))


def test_the_prior_stands_in_for_channels_that_tell_few_outputs() -> None:
    prior = np.array([0.5, 0.25, 0.2, 0.05])
    channel = sf.solver.optimal(prior, sf.loss.hamming(sf.Alphabet.of_size(4)), 0.5).channel
    assert len(channel.outputs) < 4
    rng, off = np.random.default_rng(1), []
    for time in range(TIMES):
        truth = rng.choice(4, size=ROWS, p=prior)
        left = channel.draw(truth, sf.seeded(time).words(ROWS))
        found = recover_column(left, channel, prior).mean(NUMBERS)
        off.append((found.value - NUMBERS[truth].mean()) / found.error)
    assert abs(np.mean(off)) < 4 / np.sqrt(TIMES)
    assert abs(np.var(off) - 1) < 5 * np.sqrt(2 / TIMES)
    with pytest.raises(InvalidParameter, match="prior must be given: the outputs of this channel"):
        recover_column(left, channel)
    with pytest.raises(InvalidParameter, match="slope must come from a mechanism whose outputs"):
        recover_column(left, channel, prior).slope(NUMBERS, BESIDE)


def test_what_cannot_have_left_is_refused() -> None:
    channel = response(1.0)
    with pytest.raises(InvalidParameter, match="released must be outputs of the channel"):
        recover_column([0, 7], channel)
    with pytest.raises(InvalidParameter, match="released must be rows of 4 truth values"):
        recover_column([[True, False]], UnaryEncoding.at(4, 1.0))
    found = recover_column([0, 1, 2], channel)
    with pytest.raises(InvalidParameter, match="numbers must be 4 finite numbers"):
        found.mean([1.0, 2.0])
    with pytest.raises(InvalidParameter, match="beside must differ from row to row"):
        found.slope(NUMBERS, [1.0, 1.0, 1.0])
