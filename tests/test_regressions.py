"""Laws that were once broken: each was found by trying to break the code."""

import contextlib
import copy
import itertools
import math
import pickle
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from sfumato import (
    SIP,
    Alphabet,
    Fallback,
    Horizon,
    Ledger,
    MarkovChain,
    Method,
    PerStep,
    Plan,
    Prior,
    Window,
    loss,
    secure,
    seeded,
)
from sfumato.core.errors import CorruptData, FileInUse, InvalidParameter
from sfumato.core.ledger import FREE, Charge
from sfumato.core.printed import shown_down, shown_up
from sfumato.core.randomness import Randomness
from sfumato.solver import optimal
from sfumato.store import to_bytes
from sfumato.store.codec import from_bytes
from sfumato.store.files import write_whole
from sfumato.stream import Outcome, composed
from sfumato.stream.composition import chernoff_tail


@pytest.mark.parametrize("keep", range(7))
def test_the_last_charges_are_kept_one_by_one(keep: int) -> None:
    charges = [Charge(float(i), float(i)) for i in range(1, 9)]
    ledger = Ledger()
    for count, charge in enumerate(charges, start=1):
        ledger = ledger.charged(charge, keep)
        expected = charges[max(0, count - keep) : count] if keep else []
        assert list(ledger.recent) == expected


@pytest.mark.parametrize("width", range(1, 8))
def test_no_pattern_of_use_and_silence_passes_a_window(width: int) -> None:
    for parts in itertools.product((0.0, 1.0), repeat=min(2 * width, 12)):
        budget, ledger, charges = Window(SIP(1.0), width), Ledger(), []
        for part in parts:
            amount = part * max(0.0, budget.allowance(ledger).sip)
            charges.append(Fraction(amount))
            ledger = ledger.charged(Charge(amount, amount), budget.memory)
        for start in range(len(charges)):
            assert sum(charges[start : start + width]) <= 1


@pytest.mark.parametrize("width", range(2, 13))
def test_a_window_lends_what_silent_steps_left(width: int) -> None:
    budget, ledger = Window(SIP(1.0), width), Ledger()
    for _ in range(width - 1):
        ledger = ledger.charged(FREE, budget.memory)
    share = 1.0 / width
    assert budget.allowance(ledger).sip == pytest.approx(share + share * (width - 1) / width)


def test_every_flipped_byte_is_refused() -> None:
    data = to_bytes(Prior([0.7, 0.3]))
    for place in range(len(data)):
        for mask in (0x01, 0x80, 0xFF, 0x20, 1 + place % 255):
            damaged = bytearray(data)
            damaged[place] ^= mask
            with pytest.raises(CorruptData):
                from_bytes(bytes(damaged), Prior)


@pytest.mark.parametrize("count", [1, 2, 50])
def test_silent_steps_alone_leak_nothing(count: int) -> None:
    assert composed([0.0] * count, 1e-6).epsilon == 0.0


def test_the_lower_tail_bounds_an_adversary_who_stops_when_he_has_won() -> None:
    step, count, level = 0.3, 100, 0.9
    rise, law, won = 1 / (1 + math.exp(-step)), {0: 1.0}, 0.0
    for _ in range(count):
        moved: dict[int, float] = {}
        for place, mass in law.items():
            moved[place + 1] = moved.get(place + 1, 0.0) + mass * rise
            if place - 1 <= -3:
                won += mass * (1 - rise)
            else:
                moved[place - 1] = moved.get(place - 1, 0.0) + mass * (1 - rise)
        law = moved
    assert won <= chernoff_tail(np.full(count, step), level * (1 - 1e-9), side=-1)


def test_a_sample_shorter_than_a_high_order_has_its_length() -> None:
    chain = MarkovChain.from_matrix(np.full((32, 2), 0.5))
    assert [len(chain.sample(length, seeded(0))) for length in (1, 2, 3, 4, 5, 6)] == [
        1,
        2,
        3,
        4,
        5,
        6,
    ]


def test_sparse_rows_without_zeros_have_full_support() -> None:
    rows = [[0.9, 0.1], [0.2, 0.8]]
    thin, dense = MarkovChain.from_matrix(sparse.csr_array(rows)), MarkovChain.from_matrix(rows)
    assert thin.floor == pytest.approx(dense.floor)
    assert thin.full_support


def test_an_allowance_that_rounding_eats_up_releases_a_constant() -> None:
    chain = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
    plan = Plan(
        chain, PerStep(SIP(1e-8)), loss.hamming(chain.alphabet), on_exhausted=Fallback.SUPPRESS
    )
    state = replace(plan.begin("s"), belief=replace(chain.first(), drift=1e-8))
    (event,), _ = plan.step(state, [0], secure())
    assert event.outcome is Outcome.RELEASED
    assert (event.sip.epsilon, event.ldp.epsilon) == (0.0, 0.0)


def test_the_published_rule_can_be_used_where_it_holds() -> None:
    even = Prior([0.5, 0.5])
    plan = Plan(even, PerStep(SIP(1.0)), loss.hamming(even.alphabet), method=Method.PAPER)
    assert plan.prepare(plan.begin("s")) is not None


def test_a_ledger_never_reads_more_than_its_horizon() -> None:
    over = 0
    for steps in range(1, 40):
        budget, ledger = Horizon(SIP(10.0), steps), Ledger()
        while not (allowance := budget.allowance(ledger)).exhausted:
            ledger = ledger.charged(Charge(allowance.sip, allowance.sip), budget.memory)
        over += ledger.sip > 10.0
    assert over == 0


def test_an_onlooker_is_told_when_the_plan_cannot_have_done_that() -> None:
    even = Prior([0.5, 0.5])
    plan = Plan(even, PerStep(SIP(1.0)), loss.hamming(even.alphabet))
    (event,), state = plan.step(plan.begin("s"), [0], secure())
    attempts = (
        (state, 1 - int(event.released or 0), Outcome.REPEATED),  # not the last
        (state, 0, Outcome.SUPPRESSED),  # suppressed, yet something left
        (plan.begin("s"), None, Outcome.REPEATED),  # nothing to repeat
    )
    for before, output, outcome in attempts:
        with pytest.raises(InvalidParameter):
            plan.observe(before, [output], outcome)


def test_a_label_that_cannot_be_stored_is_refused_by_name() -> None:
    with pytest.raises(InvalidParameter):
        to_bytes(Prior([0.5, 0.5], Alphabet([2**70, 1])))


def test_threads_that_write_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    problems: list[BaseException] = []
    write_whole(tmp_path / "m", b"A")

    def write(content: bytes) -> None:
        try:
            for _ in range(50):
                with contextlib.suppress(FileInUse):  # one writer at a time; the other is told so
                    write_whole(tmp_path / "m", content)
                assert set((tmp_path / "m").read_bytes()) in ({65}, {66})
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=write, args=(c * 200_000,)) for c in (b"A", b"B")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_a_background_that_is_off_is_put_right() -> None:
    off = np.array([0.3, 0.7]) * (1 + 9e-10)
    rows = np.array([[0.9, 0.1], [0.2, 0.8]])
    chain = MarkovChain(
        Alphabet.of_size(2), 1, np.array([0.5, 0.5]), rows, np.array([0.5, 0.0]), off
    )
    assert abs(chain.background.sum() - 1) < 1e-15
    assert np.abs(chain.transition().sum(axis=1) - 1).max() < 1e-15


@pytest.mark.parametrize("source", [secure(), seeded(1)])
def test_coins_are_never_copied_or_stored(source: Randomness) -> None:
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied or stored"):
            attempt(source)


@given(st.floats(0, 1e6))
def test_what_is_printed_is_still_a_bound(amount: float) -> None:
    assert float(shown_up(amount)) >= amount >= float(shown_down(amount))
    assert float(shown_up(amount)) <= amount * (1 + 1e-4) + 1e-300


@pytest.mark.parametrize("size", [3, 30, 70])
def test_the_largest_budgets_can_be_designed_for(size: int) -> None:
    belief = np.full(size, 1 / size)
    for cap in (None, 39.0):
        design = optimal(belief, 1 - np.eye(size), 40.0, ldp=cap)
        assert design.sip.epsilon <= 40
