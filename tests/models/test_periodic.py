"""Chains that change with time: what they say, how phases share a history, what is refused."""

import math
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from sfumato.core.alphabet import Alphabet
from sfumato.core.belief import Belief
from sfumato.core.errors import InvalidParameter
from sfumato.core.randomness import seeded
from sfumato.models.cycle import Calendar, Cycle
from sfumato.models.markov import MarkovChain
from sfumato.models.periodic import PeriodicChain, phases_in_turn
from sfumato.models.periodic_fitting import best_sharing, count_by_phase

NIGHT, DAY = [[0.9, 0.1], [0.7, 0.3]], [[0.2, 0.8], [0.1, 0.9]]
TURN = Cycle.of("2")
SEEDS = st.integers(0, 2**32 - 1)


def day_and_night() -> PeriodicChain:
    return PeriodicChain.from_matrices([NIGHT, DAY], TURN, [[0.8, 0.2], [0.4, 0.6]])


# Phases -------------------------------------------------------------------------------------------


@given(place=st.integers(0, 10**6), period=st.integers(1, 60), share=st.integers(1, 60))
def test_phases_in_turn_come_again_and_are_equally_long(
    place: int, period: int, share: int
) -> None:
    if period % share:
        with pytest.raises(InvalidParameter, match="phases must"):
            Cycle.of(str(period), share)
        return
    cycle = Cycle.of(str(period), share)
    assert cycle.turn(place) == cycle.turn(place + period)
    assert np.bincount([cycle.turn(k) for k in range(period)]).tolist() == [period // share] * share


@given(st.datetimes())
def test_an_hour_is_that_of_the_clock(moment: datetime) -> None:
    assert Cycle.of("hour").at(moment) == moment.hour
    assert Cycle.of("hour", 6).at(moment) == moment.hour // 4
    assert Cycle.of("hour-of-week").at(moment) == 24 * moment.weekday() + moment.hour
    assert Cycle.of("weekday").at(moment) == moment.weekday()
    assert Cycle.of("month").at(moment) == moment.month - 1


def test_times_of_another_kind_have_no_phase() -> None:
    hours = Cycle.of("hour")
    with pytest.raises(InvalidParameter, match="a date or a moment"):
        hours.at(Decimal(8))
    with pytest.raises(InvalidParameter, match="have no zone"):
        hours.at(datetime(2024, 5, 1, 8, tzinfo=UTC))
    with pytest.raises(InvalidParameter, match="have a zone"):
        Cycle(24, 24, Calendar.HOUR, zoned=True).at(datetime(2024, 5, 1, 8))
    with pytest.raises(InvalidParameter, match="name of a calendar"):
        TURN.at(datetime(2024, 5, 1, 8))


@pytest.mark.parametrize("period", ["fortnight", "0", "-3", "1.5", "\u0663"])
def test_other_periods_are_refused(period: str) -> None:
    with pytest.raises(InvalidParameter, match="period"):
        Cycle.of(period)


def test_a_calendar_has_its_own_number_of_phases() -> None:
    with pytest.raises(InvalidParameter, match="24 for hour"):
        Cycle(12, 12, Calendar.HOUR)


# What it says -------------------------------------------------------------------------------------


def test_the_matrix_is_that_of_the_next_value() -> None:
    chain = day_and_night()
    here = Belief(np.array([1.0, 0.0]))
    assert chain.arrived(here, 0).marginal == pytest.approx(NIGHT[0])
    assert chain.arrived(here, 1).marginal == pytest.approx(DAY[0])
    assert chain.arrived(None, 1).marginal == pytest.approx([0.4, 0.6])


def test_samples_follow_the_phases() -> None:
    chain, phases = day_and_night(), np.arange(4000) % 2
    path = chain.sample(phases, seeded(3))
    for phase, matrix in enumerate((NIGHT, DAY)):
        ends = np.flatnonzero(phases == phase)[1:]
        for before in range(2):
            own = ends[path[ends - 1] == before]
            share = float(path[own].mean())
            error = math.sqrt(matrix[before][1] * matrix[before][0] / own.size)
            assert abs(share - matrix[before][1]) < 4.5 * error < 0.1


def test_shapes_are_checked() -> None:
    with pytest.raises(InvalidParameter, match="one matrix for each of 2 phases"):
        PeriodicChain.from_matrices([NIGHT], TURN)
    chain = day_and_night()
    parts = (chain.initial, chain.known, chain.backoff, chain.background)
    with pytest.raises(InvalidParameter, match="initial"):
        PeriodicChain(chain.alphabet, Cycle.of("3"), *parts)
    with pytest.raises(InvalidParameter, match="from 0 to 1"):
        chain.at(2)
    with pytest.raises(InvalidParameter, match="from 0 to 1"):
        chain.at(-1)
    with pytest.raises(InvalidParameter, match="sum to 1"):
        PeriodicChain.from_matrices([NIGHT, [[0.5, 0.6], [0.1, 0.9]]], TURN)


def test_the_cycle_is_part_of_the_fingerprint() -> None:
    marks = {
        PeriodicChain.from_matrices([NIGHT, DAY], cycle).fingerprint
        for cycle in (TURN, Cycle.of("4", 2), Cycle.of("hour", 2))
    }
    marks.add(PeriodicChain.from_matrices([DAY, NIGHT], TURN).fingerprint)
    zoned = Cycle(24, 2, Calendar.HOUR, zoned=True)
    marks.add(PeriodicChain.from_matrices([NIGHT, DAY], zoned).fingerprint)
    assert len(marks) == 5


def test_full_support_is_that_of_every_phase() -> None:
    never = PeriodicChain.from_matrices([NIGHT, [[1.0, 0.0], [0.5, 0.5]]], TURN)
    assert not never.full_support and never.floor == 0.0
    assert day_and_night().full_support
    assert day_and_night().floor == pytest.approx(0.1)


# Fitting ------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 5), length=st.integers(1, 30))
def test_one_phase_is_the_chain_without_phases(seed: int, size: int, length: int) -> None:
    rng = np.random.default_rng(seed)
    paths = [rng.integers(size, size=length).tolist() for _ in range(4)]
    alphabet = Alphabet.of_size(size)
    plain = MarkovChain.fit(paths, alphabet=alphabet)
    phased = PeriodicChain.fit(paths, Cycle.of("7", 1), alphabet=alphabet).at(0)
    assert phased.fingerprint == plain.fingerprint


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 5), phases=st.integers(2, 4), sharing=st.floats(0.1, 50))
def test_rows_are_counts_of_the_phase_and_those_of_all_at_their_weight(
    seed: int, size: int, phases: int, sharing: float
) -> None:
    rng = np.random.default_rng(seed)
    paths = [rng.integers(size, size=12) for _ in range(6)]
    own = [rng.integers(phases, size=12) for _ in range(6)]
    alphabet = Alphabet.of_size(size)
    cycle = Cycle.of(str(phases))
    found = PeriodicChain.of_places(alphabet, cycle, paths, own, sharing=sharing)
    plain = MarkovChain.fit([path.tolist() for path in paths], alphabet=alphabet)
    for phase in range(phases):
        for x in range(size):
            moves = [
                (a, b)
                for path, times in zip(paths, own, strict=True)
                for a, b, h in zip(path, path[1:], times[1:], strict=False)
                if a == x and h == phase
            ]
            counted = np.bincount([b for _, b in moves], minlength=size)
            known = np.asarray(plain.known)[x]
            mixed = (counted + sharing * known) / (len(moves) + sharing)
            weight = plain.backoff[x]
            due = (1 - weight) * mixed + weight * plain.background
            assert found.at(phase).row(x) == pytest.approx(due, abs=1e-12)
    assert found.full_support and found.floor >= 1e-6 * (1 - 1e-9)


def test_a_history_without_rhythm_leaves_phases_no_say() -> None:
    chain = MarkovChain.from_matrix([[0.8, 0.2], [0.3, 0.7]])
    paths = [chain.sample(200, seeded(k)) for k in range(20)]
    flat = count_by_phase(paths, phases_in_turn(paths, Cycle.of("10")), 2, 10)
    assert best_sharing(flat) >= 256
    phased = day_and_night()
    loud = [phased.sample(np.arange(200) % 2, seeded(k)) for k in range(20)]
    assert best_sharing(count_by_phase(loud, phases_in_turn(loud, TURN), 2, 2)) <= 8


def test_streams_begin_as_they_did_in_their_phase() -> None:
    paths = [[0, 1, 0, 1]] * 400 + [[1, 0, 1, 0]] * 400
    phases = [[0, 1, 0, 1]] * 400 + [[1, 0, 1, 0]] * 400
    found = PeriodicChain.fit(paths, TURN, phases=phases)
    assert found.at(0).initial[0] > 0.95
    assert found.at(1).initial[1] > 0.95


def test_a_large_alphabet_stays_sparse() -> None:
    rng = np.random.default_rng(2)
    paths = [rng.integers(3000, size=400) for _ in range(5)]
    cycle = Cycle.of("4")
    found = PeriodicChain.of_places(
        Alphabet.of_size(3000), cycle, paths, phases_in_turn(paths, cycle), floor=1e-7
    )
    assert isinstance(found.known, sparse.csr_array)
    assert found.arrived(found.arrived(None, 0), 1).marginal.sum() == pytest.approx(1)


def test_phases_must_be_those_of_the_values() -> None:
    with pytest.raises(InvalidParameter, match="one for each value"):
        PeriodicChain.fit([[0, 1]], TURN, phases=[[0]])
    with pytest.raises(InvalidParameter, match="lie from 0 to 1"):
        PeriodicChain.fit([[0, 1]], TURN, phases=[[0, 2]])
    with pytest.raises(InvalidParameter, match="be given, unless"):
        PeriodicChain.fit([[0, 1]], Cycle.of("hour"))
    with pytest.raises(InvalidParameter, match="symbols times phases"):
        count_by_phase([], [], 1_000_000, 100)
    with pytest.raises(InvalidParameter, match="sharing"):
        PeriodicChain.fit([[0, 1]], TURN, sharing=0.0)
