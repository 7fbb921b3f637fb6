"""Realised losses: every row counts, values count as they were, and silence is beside them."""

from dataclasses import replace

import numpy as np
import pytest

from sfumato import LDP, SIP, Event, MarkovChain, loss
from sfumato.core.alphabet import Label
from sfumato.models.encoding import Bins, Grid, Symbols
from sfumato.models.library import PatternLibrary
from sfumato.models.stream_model import StreamModel
from sfumato.stream import Cycle, Outcome, PeriodicChain
from sfumato.stream.true_values import RealisedLoss, Truth, TruthColumns

MOVES = np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.1, 0.2, 0.7]])


def happened(moment: int, released: Label | None, outcome: Outcome = Outcome.RELEASED) -> Event:
    return Event("ann", moment, outcome, released, SIP(0.0), LDP(0.0))


def binned() -> StreamModel:
    bins = Bins([0.0, 10.0, 20.0, 30.0], clip=True)
    return StreamModel(MarkovChain.from_matrix(MOVES, alphabet=bins.alphabet), bins, unit="km")


def test_a_number_is_compared_as_it_was_not_as_its_bin() -> None:
    model = binned()
    realised = RealisedLoss(model, loss.absolute(model.alphabet))
    # 2 is released as 5, and 44, clipped to the last bin, as 25.
    assert realised.add(happened(0, "5"), Truth.of(model, ("2",))) == 3.0
    assert realised.add(happened(1, "25"), Truth.of(model, (44.0,))) == 19.0
    assert (realised.loss, realised.count) == (22.0, 2)


def test_a_point_in_degrees_is_compared_along_the_earth() -> None:
    grid = Grid([0.0, 1.0, 2.0], [0.0, 1.0])
    chain = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]], alphabet=grid.alphabet)
    model = StreamModel(chain, grid, values=("lon", "lat"), unit="degrees")
    realised = RealisedLoss(model, loss.great_circle(grid.alphabet))
    cost = realised.add(happened(0, "0,0"), Truth.of(model, (0.5, 0.0)))
    # Half a degree of latitude from the middle of the cell.
    assert cost == pytest.approx(6371.0088 * np.radians(0.5))


def test_repeated_and_withheld_rows_count() -> None:
    model = StreamModel(
        MarkovChain.from_matrix(MOVES), Symbols(MarkovChain.from_matrix(MOVES).alphabet)
    )
    realised = RealisedLoss(model, loss.hamming(model.alphabet))
    likeliest = int(np.argmax(model.single_values.initial))
    assert realised.add(happened(0, 2, Outcome.REPEATED), Truth(1)) == 1.0
    assert realised.add(happened(1, None, Outcome.SUPPRESSED), Truth(likeliest)) == 0.0
    assert realised.add(happened(2, 1), Truth(None)) is None
    assert realised.count == 2


def test_silence_says_the_best_constant_of_each_moment() -> None:
    chain = MarkovChain.from_matrix(MOVES, initial=[0.8, 0.1, 0.1])
    model = StreamModel(chain, Symbols(chain.alphabet))
    realised, belief, lost = RealisedLoss(model, loss.absolute(chain.alphabet)), chain.initial, 0.0
    for moment in range(12):
        guess = int(np.argmin([sum(belief * np.abs(np.arange(3) - y)) for y in range(3)]))
        lost += abs(2 - guess)
        realised.add(happened(moment, 0), Truth(2))
        belief = belief @ MOVES
    assert realised.silent == lost
    assert realised.loss == 24.0


def test_symbols_that_never_left_are_named() -> None:
    model = binned()
    realised = RealisedLoss(model, loss.absolute(model.alphabet))
    for event in (happened(0, "5"), happened(1, None, Outcome.SUPPRESSED), happened(2, "25")):
        realised.tell(event)
    assert realised.never == ("15",)


def test_the_silence_of_a_library_is_its_commonest_value() -> None:
    library = PatternLibrary.fit([[0, 1, 1, 1, 2, 1] * 4], width=2, most=4)
    model = StreamModel(library, Symbols(library.alphabet))
    realised = RealisedLoss(model, loss.hamming(library.alphabet))
    realised.add(happened(5, None, Outcome.SUPPRESSED), Truth(1))
    assert (realised.loss, realised.silent) == (0.0, 0.0)


def test_a_model_that_knows_nothing_is_no_excuse_for_a_poor_constant() -> None:
    """All constants are alike to it; the rival is the one that fits what was true."""
    chain = MarkovChain.from_matrix(np.full((3, 3), 1 / 3), np.full(3, 1 / 3))
    model = StreamModel(chain, Symbols(chain.alphabet))
    one_by_one, at_once = (RealisedLoss(model, loss.hamming(model.alphabet)) for _ in range(2))
    true = [2] * 9 + [1]
    for moment, value in enumerate(true):
        one_by_one.add(happened(moment, value), Truth(value))
    truths = TruthColumns([Truth(1), Truth(None), Truth(2)], np.array([2] * 9 + [0, 1]))
    at_once.add_columns(np.arange(11), np.array([*true, 0]), truths)
    for realised in (one_by_one, at_once):
        assert (realised.mean, realised.mean_of_silence) == (0.0, 0.1)


def test_silence_by_the_hour_follows_the_phases_of_each_stream() -> None:
    swap, stay = [[0.1, 0.9], [0.9, 0.1]], [[0.8, 0.2], [0.2, 0.8]]
    # Nobody begins in the second phase: what is said of that tells nothing of later moments.
    chain = PeriodicChain.from_matrices([stay, swap], Cycle.of("2"), [[0.9, 0.1], [0.6, 0.4]])
    realised = RealisedLoss(
        StreamModel(chain, Symbols(chain.alphabet)), loss.hamming(chain.alphabet)
    )
    belief, lost = np.array([0.9, 0.1]), 0.0
    for moment in range(6):
        phase = moment % 2
        if moment:
            belief = belief @ np.array((stay, swap)[phase])
        for stream in ("ann", "bob"):
            event = replace(happened(moment, 0), stream=stream, phase=phase)
            realised.tell(event)
            if moment != 2:  # one of them is not known
                realised.add(event, Truth(0))
                lost += int(np.argmax(belief))
    assert realised.silent == lost > 0
