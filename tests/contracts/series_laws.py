"""What every way to release a series must keep; a new one inherits `SeriesLaws`."""

from __future__ import annotations

import copy
import math
import os
import threading
from collections import Counter
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.core.errors import BudgetExceeded, ForkedUse, InsecureRandomness, InvalidParameter
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Address, Randomness, keyed, secure, seeded
from sfumato.core.state import SeriesState
from sfumato.series.series_methods import AnyMethod
from sfumato.series.series_release import SeriesEvent, Unit
from sfumato.store.codec import from_bytes, to_bytes

SECRET = b"thirty-two bytes for test coins!"
VALUE = 9151.25
SIMULATION = Purpose.SIMULATION


class CountedCoins:
    """Fresh coins that count how many were taken."""

    simulated = False
    addressed = False

    def __init__(self) -> None:
        self._source = secure()
        self.taken = 0

    def words(self, count: int) -> NDArray[np.uint64]:
        self.taken += count
        return self._source.words(count)

    def word(self) -> int:
        return int(self.words(1)[0])

    def at(self, address: Address) -> Randomness:
        return self


class SeriesLaws:
    """Inherit, and give the method; `series` and `parts` where the defaults do not fit.

    Attributes:
        method: What is tried.
        series: Values that it takes.
        parts: Where the series may be cut.
        huge: A finite value that is too far away for its lattice; None if none is.
    """

    method: ClassVar[AnyMethod]
    series: ClassVar[list[float]] = [20 + 5 * math.sin(moment / 4) for moment in range(24)]
    parts: ClassVar[tuple[int, ...]] = (1, 7, 23)
    huge: ClassVar[float | None] = 1e300

    # Purpose and coins ---------------------------------------------------------------------------

    def test_guessable_coins_are_for_simulations_alone(self) -> None:
        with pytest.raises(InsecureRandomness):
            self.method.release(self.series, seeded(1))
        assert self.method.release(self.series, secure()).shape == (len(self.series),)
        assert self.method.release(self.series, seeded(1), SIMULATION).size == len(self.series)

    def test_keyed_coins_need_a_name_and_each_purpose_has_a_plan(self) -> None:
        with pytest.raises(InvalidParameter, match="name"):
            self.method.release(self.series, keyed(SECRET))
        coins = [self.method.own_coins(keyed(SECRET), "a", purpose) for purpose in Purpose]
        assert coins[0].plan != coins[1].plan

    def test_replay_gives_the_same_answers_and_other_names_others(self) -> None:
        told = [self.method.release(self.series, keyed(SECRET), name=name) for name in "aab"]
        assert told[0].tolist() == told[1].tolist()
        if self.method.guarantee.epsilon:
            assert told[0].tolist() != told[2].tolist()

    # One step ------------------------------------------------------------------------------------

    def cut(self, stop: int) -> tuple[list[SeriesEvent], SeriesState]:
        """The series in two parts, its state stored as bytes between them."""
        coins = self.method.own_coins(keyed(SECRET), "a", Purpose.RELEASE)
        first, state = self.method.step(self.method.start(coins), self.series[:stop], coins)
        state = from_bytes(to_bytes(state), SeriesState)
        second, after = self.method.step(state, self.series[stop:], coins)
        return first + second, after

    def test_a_series_in_parts_is_the_whole_series(self) -> None:
        whole = self.method.release(self.series, keyed(SECRET), name="a")
        for stop in self.parts:
            events, state = self.cut(stop)
            released = np.array([event.released for event in events], dtype=float)
            assert released == pytest.approx(whole, rel=1e-12, abs=1e-12)
            assert [event.sequence for event in events] == list(range(len(self.series)))
            assert state.time == len(self.series)

    def test_a_step_is_a_function_of_state_values_and_coins(self) -> None:
        coins = self.method.own_coins(keyed(SECRET), "a", Purpose.RELEASE)
        start = self.method.start(coins)
        before = to_bytes(start)
        one, two = (self.method.step(start, self.series, coins) for _ in range(2))
        assert one[0] == two[0] and to_bytes(one[1]) == to_bytes(two[1])
        assert to_bytes(start) == before

    def test_a_state_goes_on_with_its_own_plan_only(self) -> None:
        coins = self.method.own_coins(keyed(SECRET), "a", Purpose.RELEASE)
        other = self.method.own_coins(keyed(SECRET), "a", SIMULATION)
        with pytest.raises(InvalidParameter, match="begun with"):
            self.method.step(self.method.start(coins), self.series, other)
        arrays = {"strange": np.zeros(3)}
        with pytest.raises(InvalidParameter, match="arrays"):
            self.method.step(SeriesState(coins.plan, 0, arrays), self.series, coins)

    # A release -----------------------------------------------------------------------------------

    def test_live_answers_are_those_of_the_whole_series(self) -> None:
        if not self.method.online:
            with pytest.raises(InvalidParameter, match="online"):
                self.method.begin(secure())
            return
        running = self.method.begin(keyed(SECRET), name="a")
        live = [running.step(value) for value in self.series]
        whole = self.method.release(self.series, keyed(SECRET), name="a")
        assert live == pytest.approx(whole.tolist(), rel=1e-12, abs=1e-12)
        assert running.time == len(self.series)

    def test_the_past_is_not_changed_by_the_future(self) -> None:
        other = self.series[:7] + [value + 3 for value in self.series[7:]]
        if self.method.online:
            one, two = (
                self.method.release(s, keyed(SECRET), name="a") for s in (self.series, other)
            )
            assert one[:7].tolist() == two[:7].tolist()

    def test_threads_release_each_moment_once(self) -> None:
        if not self.method.online:
            return
        running, done = self.method.begin(secure()), Counter[str]()

        def work() -> None:
            for _ in range(10):
                try:
                    running.step(20.0)
                    done["released"] += 1
                except BudgetExceeded:
                    done["refused"] += 1

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        allowed = 40 if self.method.most is None else min(40, self.method.most)
        assert done["released"] == running.time == allowed

    def test_a_forked_child_cannot_go_on(self) -> None:
        if not self.method.online:
            return
        running = self.method.begin(secure())
        child = os.fork()
        if child == 0:
            try:
                running.step(20.0)
            except ForkedUse:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        running.step(20.0)

    def test_a_release_cannot_be_copied(self) -> None:
        if self.method.online:
            with pytest.raises(TypeError, match="copied"):
                copy.copy(self.method.begin(secure()))

    # Refusals ------------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        "bad", [[VALUE, math.nan], [VALUE, -math.inf], [], [[VALUE]], ["9151x"]]
    )
    def test_a_series_that_is_none_is_refused_unquoted_and_draws_nothing(self, bad: Any) -> None:
        coins = CountedCoins()
        with pytest.raises(InvalidParameter) as refusal:
            self.method.release(bad, coins)
        assert "9151" not in str(refusal.value) and coins.taken == 0

    @pytest.mark.parametrize("bad", [math.nan, math.inf, "9151x", None, [VALUE, VALUE]])
    def test_a_value_that_is_none_spoils_nothing(self, bad: Any) -> None:
        if self.method.online:
            coins = CountedCoins()
            running = self.method.begin(coins)
            before = to_bytes(running.state)
            with pytest.raises(InvalidParameter) as refusal:
                running.step(bad)
            assert "9151" not in str(refusal.value)
            assert coins.taken == 0 and to_bytes(running.state) == before

    def test_a_value_too_far_away_is_refused_unquoted(self) -> None:
        if self.huge is None:
            return
        with pytest.raises(InvalidParameter) as refusal:
            self.method.release([self.huge] * len(self.series), secure())
        assert f"{self.huge:g}" not in str(refusal.value)

    def test_more_values_than_the_budget_is_for_are_refused_and_draw_nothing(self) -> None:
        most, coins = self.method.most, CountedCoins()
        if most is None:
            return
        with pytest.raises(InvalidParameter, match=f"{most} values"):
            self.method.release([20.0] * (most + 1), coins)
        assert coins.taken == 0
        if self.method.online:
            running = self.method.begin(coins)
            for _ in range(most):
                running.step(20.0)
            taken = coins.taken
            with pytest.raises(BudgetExceeded) as refusal:
                running.step(VALUE)
            assert "9151" not in str(refusal.value) and coins.taken == taken

    def test_a_moment_without_a_value_passes_or_is_refused(self) -> None:
        gaps: list[float | None] = [20.0, None, 21.0]
        coins = self.method.own_coins(secure(), None, Purpose.RELEASE)
        if not self.method.skips:
            with pytest.raises(InvalidParameter):
                self.method.step(self.method.start(coins), gaps, coins)
            return
        events, state = self.method.step(self.method.start(coins), gaps, coins)
        assert events[1].released is None and events[1].charge == 0.0 and state.time == 3

    # Accounts ------------------------------------------------------------------------------------

    def test_charges_add_up_to_no_more_than_the_guarantee(self) -> None:
        events, _ = self.cut(self.parts[0])
        charges = [Fraction(event.charge) for event in events]
        guarantee = self.method.guarantee
        limit = Fraction(self.charge_limit)
        match self.method.unit:
            case Unit.USER:
                assert sum(charges) <= limit
            case Unit.WINDOW:
                window = self.method.window  # type: ignore[attr-defined]
                assert all(sum(charges[i : i + window]) <= limit for i in range(len(charges)))
            case Unit.EVENT:
                assert max(charges) <= limit
        assert bool(sum(charges)) == bool(guarantee.epsilon)

    @property
    def charge_limit(self) -> float:
        """The most that charges may come to: epsilon, unless the account has another unit."""
        return self.method.guarantee.epsilon

    def test_a_stored_memory_holds_no_true_value(self) -> None:
        """Unless the method says that its state is secret, and must not be stored."""
        if not self.method.secret and self.method.guarantee.epsilon:
            events, state = self.cut(self.parts[0])
            exact = set(self.series) - {event.released for event in events}
            held = {float(v) for array in state.arrays.values() for v in np.ravel(array)}
            assert not held & exact

    def test_silence_is_beaten_or_it_is_said(self) -> None:
        """An expectation of the error, where there is one, comes with that of a constant."""
        if self.method.online:
            running = self.method.begin(seeded(1), purpose=SIMULATION)
            released = [running.step(value) for value in self.series]
            risk = running.risk(released)
            if risk is not None:
                assert risk.error > 0 and risk.least <= risk.silence
                assert risk.doubtful == (risk.error >= risk.least)

    def test_the_fingerprint_knows_every_parameter(self) -> None:
        assert self.method.fingerprint == type(self).method.fingerprint
        assert len(self.method.fingerprint) == 64
