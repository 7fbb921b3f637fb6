"""The laws of a release: what every plan keeps, whatever its width and partition.

A new kind inherits `ReleaseLaws` and says in `plan` how it is made. Every law is tried by the rule
alone and, where a kind names more `drivers`, by a fleet of one stream too. Symbols are the letters
a, b and c.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato import (
    LDP,
    SIP,
    Alphabet,
    Event,
    Fallback,
    Fleet,
    Horizon,
    MarkovChain,
    PerStep,
    Plan,
    Purpose,
    Window,
    keyed,
    secure,
    seeded,
)
from sfumato.core.budgets import Budget
from sfumato.core.bursts import Bursts, WindowBursts
from sfumato.core.errors import BudgetExceeded, InsecureRandomness, InvalidParameter, UnknownSymbol
from sfumato.core.randomness import Address, Randomness
from sfumato.store import from_bytes, to_bytes
from sfumato.stream import Outcome, StreamState

MATRIX = [[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]]
LETTERS = MarkovChain.from_matrix(MATRIX, alphabet=Alphabet("abc"))
SECRET = b"a secret of sixteen bytes or more"
STRANGE = "secret-717"
Stepped = tuple[tuple[Event, ...], StreamState]


def exact_sum(amounts: Iterable[float]) -> Fraction:
    """A sum without any rounding."""
    return sum((Fraction(amount) for amount in amounts), start=Fraction(0))


class CountingCoins:
    """Real coins that know how many of them were drawn."""

    simulated = False
    addressed = False

    def __init__(self) -> None:
        self.drawn = 0
        self._coins = secure()

    def words(self, count: int) -> NDArray[np.uint64]:
        self.drawn += count
        return self._coins.words(count)

    def word(self) -> int:
        return int(self.words(1)[0])

    def at(self, address: Address) -> Randomness:
        return self


def everything_said(error: BaseException | None) -> str:
    """All that an error and those behind it could show."""
    if error is None:
        return ""
    said = f"{error} {error!r} {error.args} {vars(error)}"
    return said + everything_said(error.__cause__) + everything_said(error.__context__)


def by_rule(plan: Plan, state: StreamState, values: Sequence[object], coins: Randomness) -> Stepped:
    """The rule itself."""
    return plan.step(state, values, coins)


def by_fleet(
    plan: Plan, state: StreamState, values: Sequence[object], coins: Randomness
) -> Stepped:
    """A fleet of one stream; on an error it must stand where it stood."""
    fleet = Fleet(plan, states=[state], randomness=coins)
    row: Any = list(values) if plan.in_batches else values[0]
    try:
        (events,) = fleet.step([row])
    except Exception:
        assert to_bytes(fleet.state(0)) == to_bytes(state)
        raise
    return events, fleet.state(0)


DRIVERS = {"rule": by_rule, "fleet": by_fleet}


class ReleaseLaws(ABC):
    """What every release keeps.

    Attributes:
        drivers: Who takes the steps.
    """

    drivers: ClassVar[tuple[str, ...]] = ("rule",)

    @abstractmethod
    def plan(self, budget: Budget, **options: Any) -> Plan:
        """A plan of this kind; its symbols are a, b and c."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Let every driver of this kind take the steps."""
        if "step" in metafunc.fixturenames:
            metafunc.parametrize("step", [DRIVERS[n] for n in self.drivers], ids=self.drivers)

    def ample(self, **options: Any) -> Plan:
        """A budget for every step."""
        return self.plan(PerStep(SIP(0.5)), **options)

    def spent(self, step: Any, **options: Any) -> tuple[Plan, tuple[Event, ...], StreamState]:
        """A plan for one step and no more, after that step."""
        plan = self.plan(Horizon(SIP(1.0), self.width), **options)
        events, state = step(plan, plan.begin("s"), self.batch(0), secure())
        return plan, events, state

    @property
    def width(self) -> int:
        """Values of a step."""
        return self.plan(PerStep(SIP(0.5))).width

    def batch(self, turn: int) -> list[object]:
        """True values of a step."""
        return [("a", "b", "c", "c", "a")[(turn + place) % 5] for place in range(self.width)]

    def strange(self) -> list[object]:
        """A step with a value outside the alphabet."""
        return [*self.batch(0)[1:], STRANGE]

    # Budgets ---------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("budget", "total", "steps"),
        [
            (PerStep(SIP(0.5), LDP(0.8)), 0.5, 1),
            (Horizon(SIP(2.0), 6), 2.0, 6),
            (Bursts(SIP(2.0), 6, None, 3, 1.3), 2.0, 6),
        ],
        ids=["per step", "horizon", "bursts"],
    )
    def test_the_ledger_is_the_sum_of_the_events_and_within_the_budget(
        self, step: Any, budget: Budget, total: float, steps: int
    ) -> None:
        plan = self.plan(budget)
        state, events = plan.begin("s"), list[Event]()
        for turn in range(max(1, 6 // self.width)):
            told, state = step(plan, state, self.batch(turn), keyed(SECRET))
            events += told
            assert {event.batch for event in told} == {
                told[0].sequence if plan.in_batches else None
            }
            assert all(event.sip == SIP(0.0) for event in told[:-1])
            if steps == 1:
                assert told[-1].sip.epsilon <= total * self.width
                assert told[-1].ldp.epsilon <= 0.8 * self.width * (1 + 1e-12)
        assert [event.sequence for event in events] == list(range(len(events)))
        spent = exact_sum(event.sip.epsilon for event in events)
        assert spent <= state.ledger.sip <= float(spent) * (1 + 1e-12)
        assert state.ledger.count == len(events)
        assert steps == 1 or spent <= total

    def test_refusal_draws_nothing_and_changes_nothing(self, step: Any) -> None:
        plan, _, state = self.spent(step)
        before, coins = to_bytes(state), CountingCoins()
        with pytest.raises(BudgetExceeded, match="this event was not released") as refusal:
            step(plan, state, self.batch(1), coins)
        assert (coins.drawn, to_bytes(state)) == (0, before)
        assert (refusal.value.stream, refusal.value.sequence) == ("s", self.width)
        assert plan.prepare(state) is None

    @pytest.mark.parametrize("fallback", [Fallback.SUPPRESS, Fallback.REPEAT])
    def test_when_the_budget_is_gone_the_fallback_leaves_at_no_cost_whatever_the_value(
        self, step: Any, fallback: Fallback
    ) -> None:
        plan, first, state = self.spent(step, on_exhausted=fallback, on_unknown=Fallback.SUBSTITUTE)
        coins = CountingCoins()
        told, after = step(plan, state, self.batch(1), coins)
        self.check_withheld(plan, fallback, first, state, told, after)
        assert coins.drawn == 0
        for other in (self.batch(2), self.strange()):
            assert step(plan, state, other, coins)[0] == told

    def check_withheld(
        self,
        plan: Plan,
        fallback: Fallback,
        first: Sequence[Event],
        state: StreamState,
        told: Sequence[Event],
        after: StreamState,
    ) -> None:
        """Nothing new left, nothing was charged, time went on, and an onlooker can tell."""
        repeats = fallback is Fallback.REPEAT
        outcome = Outcome.REPEATED if repeats else Outcome.SUPPRESSED
        label = first[-1].released if repeats else None
        assert {(one.outcome, one.released) for one in told} == {(outcome, label)}
        assert {(one.sip, one.ldp) for one in told} == {(SIP(0.0), LDP(0.0))}
        assert (after.ledger.sip, after.ledger.ldp) == (state.ledger.sip, state.ledger.ldp)
        assert after.sequence == state.sequence + len(told)
        _, passed = plan.skip(state, len(told))
        assert np.array_equal(after.belief.joint, passed.belief.joint)
        seen, watched = plan.observe(state, [one.released for one in told], outcome, told[0].signal)
        assert (list(seen), to_bytes(watched)) == (list(told), to_bytes(after))

    # Values outside the alphabet -------------------------------------------------------------

    @pytest.mark.parametrize("unknown", [STRANGE, 717_717, 717.5, ("717",), ["717"], True, None])
    def test_an_unknown_value_is_refused_before_anything_is_drawn_and_never_quoted(
        self, step: Any, unknown: object
    ) -> None:
        plan, coins = self.ample(), CountingCoins()
        state, batch = plan.begin("s"), [unknown, *self.batch(0)[1:]]
        with pytest.raises(UnknownSymbol) as refusal:
            step(plan, state, batch, coins)
        assert coins.drawn == 0
        gone, _, spent = self.spent(step)
        with pytest.raises(BudgetExceeded) as exhausted:
            step(gone, spent, batch, secure())
        with pytest.raises(InsecureRandomness) as guessable:
            step(gone, spent, batch, seeded(0))
        for error in (refusal.value, exhausted.value, guessable.value):
            assert "717" not in everything_said(error)

    @pytest.mark.parametrize("fallback", [Fallback.SUPPRESS, Fallback.REPEAT])
    def test_a_step_with_an_unknown_value_is_withheld_as_a_whole(
        self, step: Any, fallback: Fallback
    ) -> None:
        plan, coins = self.ample(on_unknown=fallback), CountingCoins()
        (*_, before), begun = step(plan, plan.begin("s"), self.strange(), coins)
        assert (before.outcome, before.released, begun.last) == (Outcome.SUPPRESSED, None, None)
        first, state = step(plan, plan.begin("s"), self.batch(0), coins)
        drawn = coins.drawn
        told, after = step(plan, state, self.strange(), coins)
        assert coins.drawn == drawn
        self.check_withheld(plan, fallback, first, state, told, after)

    def test_what_is_repeated_is_the_last_release_not_the_last_event(self, step: Any) -> None:
        plan = self.ample(on_unknown=Fallback.REPEAT)
        first, state = step(plan, plan.begin("s"), self.batch(0), secure())
        _, state = plan.skip(state, self.width)
        told, _ = step(plan, state, self.strange(), secure())
        assert {(one.outcome, one.released) for one in told} == {
            (Outcome.REPEATED, first[-1].released)
        }

    def test_a_substitute_looks_and_costs_like_any_release(self, step: Any) -> None:
        plan, coins = self.ample(on_unknown=Fallback.SUBSTITUTE), CountingCoins()
        state = plan.begin("s")
        told, after = step(plan, state, self.strange(), coins)
        assert coins.drawn == 2
        assert {one.outcome for one in told} == {Outcome.RELEASED}
        seen, watched = plan.observe(state, [one.released for one in told], signal=told[0].signal)
        assert (seen, to_bytes(watched)) == (tuple(told), to_bytes(after))

    # What everybody can compute ---------------------------------------------------------------

    @pytest.mark.parametrize(
        "budget",
        [
            PerStep(SIP(0.5)),
            Window(SIP(2.0), 4),
            Bursts(SIP(2.0), 18, LDP(3.0), 4),
            WindowBursts(SIP(2.0), 4, None, 3),
        ],
        ids=str,
    )
    def test_an_onlooker_arrives_at_the_same_events_and_states(
        self, step: Any, budget: Budget
    ) -> None:
        plan = self.plan(budget, on_exhausted=Fallback.SUPPRESS)
        state = watched = plan.begin("s")
        for turn in range(5):
            told, state = step(plan, state, self.batch(turn), keyed(SECRET))
            seen, watched = plan.observe(
                watched, [one.released for one in told], told[0].outcome, told[0].signal
            )
            assert seen == tuple(told)
            assert to_bytes(watched) == to_bytes(state)
            if turn == 2:
                told, state = plan.skip(state)
                assert {(one.outcome, one.sip) for one in told} == {(Outcome.SKIPPED, SIP(0.0))}
                _, watched = plan.observe(watched, [None], Outcome.SKIPPED)

    def test_an_onlooker_is_told_when_something_could_not_leave(self, step: Any) -> None:
        plan = self.ample()
        with pytest.raises(UnknownSymbol):
            plan.observe(plan.begin("s"), self.strange())  # type: ignore[arg-type]
        for outcome in (Outcome.SUPPRESSED, Outcome.REPEATED):
            with pytest.raises(InvalidParameter, match="allows here"):
                plan.observe(plan.begin("s"), [None] * self.width, outcome)
        with pytest.raises(InvalidParameter, match="lets leave here"):
            plan.observe(plan.begin("s"), ["a"] * self.width, Outcome.SKIPPED)
        gone, _, state = self.spent(step, on_exhausted=Fallback.SUPPRESS)
        with pytest.raises(InvalidParameter, match="the budget was gone"):
            gone.observe(state, ["a"] * self.width)

    # Coins and states ---------------------------------------------------------------------------

    def test_coins_that_can_be_guessed_are_refused_unless_it_is_a_simulation(
        self, step: Any
    ) -> None:
        for plan, state in (
            (self.ample(), None),
            self.spent(step, on_exhausted=Fallback.SUPPRESS)[::2],
        ):
            with pytest.raises(InsecureRandomness, match="seeded"):
                step(plan, state or plan.begin("s"), self.batch(0), seeded(1))
        simulation = self.ample(purpose=Purpose.SIMULATION)
        told, state = step(simulation, simulation.begin("s"), self.batch(0), seeded(1))
        assert told[-1].outcome is Outcome.RELEASED
        with pytest.raises(InvalidParameter, match="state must come from this model"):
            step(self.ample(), state, self.batch(0), secure())

    @pytest.mark.parametrize(
        "change",
        [
            {"on_unknown": Fallback.SUPPRESS},
            {"on_exhausted": Fallback.REPEAT},
            {"purpose": Purpose.SIMULATION},
            {"budget": PerStep(SIP(0.4))},
        ],
        ids=lambda change: next(iter(change)),
    )
    def test_a_state_of_another_plan_is_refused(self, change: dict[str, Any]) -> None:
        mine = self.ample()
        state = replace(mine, **change).begin("s")
        for attempt in (
            lambda: mine.step(state, self.batch(0), secure()),
            lambda: mine.prepare(state),
            lambda: mine.observe(state, ["a"] * self.width),
            lambda: mine.skip(state),
        ):
            with pytest.raises(InvalidParameter, match="that of another plan"):
                attempt()

    def test_a_state_whose_charges_are_missing_is_refused(self) -> None:
        plan = replace(self.ample(), budget=Window(SIP(2.0), 40))
        _, state = plan.step(plan.begin("s"), self.batch(0), secure())
        ledger = replace(state.ledger, recent=())
        with pytest.raises(InvalidParameter, match="ledger must have the last charges"):
            plan.step(replace(state, ledger=ledger), self.batch(0), secure())

    def test_a_replay_with_keyed_coins_gives_the_same_event_and_no_other_stream_does(
        self, step: Any
    ) -> None:
        plan = self.ample()
        words = set[int]()
        for stream in ("s", "t"):
            state = plan.begin(stream)
            for turn in range(3):
                once = step(plan, state, self.batch(turn), keyed(SECRET))
                again = step(plan, state, self.batch(turn), keyed(SECRET))
                assert (once[0], to_bytes(once[1])) == (again[0], to_bytes(again[1]))
                words.add(keyed(SECRET).at(plan.address(stream, state.sequence)).word())
                state = once[1]
        assert len(words) == 6

    def test_a_stored_state_goes_on_where_it_stood_and_holds_no_true_value(self, step: Any) -> None:
        plan = self.plan(Window(SIP(2.0), 4), on_exhausted=Fallback.SUPPRESS)
        for pause in range(3):
            whole = resumed = plan.begin("s")
            for turn in range(3):
                if turn == pause:
                    resumed = from_bytes(to_bytes(resumed), StreamState)
                told, whole = step(plan, whole, self.batch(turn), keyed(SECRET))
                again, resumed = step(plan, resumed, self.batch(turn), keyed(SECRET))
                assert (told, to_bytes(whole)) == (again, to_bytes(resumed))

    def test_a_budget_that_is_gone_cannot_be_substituted(self) -> None:
        with pytest.raises(InvalidParameter, match="on_exhausted must be refuse, suppress or"):
            self.ample(on_exhausted=Fallback.SUBSTITUTE)

    @pytest.mark.parametrize("wrong", [-1, 0, 1])
    def test_a_step_has_at_least_one_value_and_at_most_the_width(self, wrong: int) -> None:
        plan = self.ample()
        length = 0 if wrong < 1 else self.width + 1
        for attempt in (
            lambda: plan.step(plan.begin("s"), ["a"] * length, secure()),
            lambda: plan.observe(plan.begin("s"), ["a"] * length),
            lambda: plan.prepare(plan.begin("s"), length),
            lambda: plan.skip(plan.begin("s"), length),
        ):
            with pytest.raises(InvalidParameter, match="values must be"):
                attempt()
