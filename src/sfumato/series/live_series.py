"""Live values of many series under one method: each stream is a series of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from sfumato.core.errors import BudgetExceeded, CorruptData, InsecureRandomness, InvalidParameter
from sfumato.core.guarantees import PureDP
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness, StreamCoins, of_ledger
from sfumato.core.state import SeriesState
from sfumato.models.encoding import Unreadable, number
from sfumato.models.stream_model import StreamModel
from sfumato.series.filter_banks import seasonal
from sfumato.series.realtime import Realtime
from sfumato.series.series_audit import read_rules
from sfumato.series.series_ledger import JOB, ledger_plan
from sfumato.series.series_methods import AnyMethod, series_method
from sfumato.series.series_spec import SeriesSpec
from sfumato.solver.policy import Policy
from sfumato.store.ledgered_run import StateKind
from sfumato.store.live import StreamAccount
from sfumato.store.live_columns import ColumnarRun
from sfumato.store.live_intake import begun
from sfumato.store.live_job import Left, LiveJob, Moment
from sfumato.store.live_run import SteppedRun
from sfumato.store.protocol import Job, Released, Store
from sfumato.tables.cells import Time

_TURNS = re.compile(r"bank (\S+) of (\d+) phases")
"""The name of a bank whose phases come in turn: all that it is made from."""


class LiveSeries(LiveJob[SeriesState]):
    """How live numbers are released by a method; for a `SteppedRun`.

    Args:
        method: The way to release a series.
        spec: What it was made for: length and range.
        coins: Of the releases.
        purpose: A simulation may use seeded coins; a release may not.
        ledger: The id of the ledger: another one has other coins.
    """

    def __init__(
        self,
        method: AnyMethod,
        spec: SeriesSpec,
        coins: Randomness,
        purpose: Purpose,
        ledger: bytes,
    ) -> None:
        self._method, self._spec, self._purpose = method, spec, purpose
        self._coins, self._ledger = coins, ledger.hex()
        self.kind = StateKind(
            SeriesState,
            begin=lambda stream: method.start(self._own(stream)),
            sequence=lambda state: state.time,
            spent=lambda state: (state.spent, 0.0),
        )

    def _own(self, stream: str) -> StreamCoins:
        """The coins of one series in this ledger, as a table of it would have them."""
        return self._method.own_coins(self._coins, f"{stream} {self._ledger}", self._purpose)

    def read(self, value: Any) -> float | None:
        """A number within the range; None for a moment that passes."""
        if value is None:
            if not self._method.skips:
                raise Unreadable("must not be missing: the method measures every moment")
            return None
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise Unreadable("must be a number")
        return self._spec.within(number(value))

    def written(self, value: Any) -> Released:
        """The number, for the digest that tells a retry from other data."""
        return None if value is None else float(value)

    def time(self, text: str) -> Moment:
        """When a value was measured."""
        return Time.of(text)

    def step(
        self, stream: str, state: SeriesState, values: Sequence[Any]
    ) -> tuple[list[Left], SeriesState]:
        """Release the next value of a series, or let its moment pass."""
        if state.time >= self._spec.length:
            # Of every method: also of those that know no end.
            raise BudgetExceeded(stream, state.time, self._method.guarantee, PureDP(0.0))
        events, after = self._method.step(state, values, self._own(stream))
        left = [
            Left(
                event.sequence,
                event.outcome.value,
                self._spec.within(event.released),
                event.charge,
                0.0,
            )
            for event in events
        ]
        return left, after

    def account(self, state: SeriesState, account: StreamAccount) -> StreamAccount:
        """The account of a series, with how many more values its budget is for."""
        return replace(account, moments=max(self._spec.length - state.time, 0))


def open_release(
    rules: bytes,
    model: StreamModel | None,
    policy: Policy | None,
    open_store: Callable[[str, Job, str], Store],
    coins: Randomness,
    source: str,
) -> tuple[ColumnarRun, Store]:
    """Open the ledger of a release of series, and what answers its live events.

    Args:
        rules: The document of its rules, as `series_ledger.rules_document` makes it, in JSON.
        model: None: series have none.
        policy: None.
        open_store: Opens a store for a plan, a job and the text of the rules.
        coins: Of the releases; of a key those of the ledger are drawn (`randomness.of_ledger`).
        source: What the input is called in the ledger; each node of a shared store has its own.

    Raises:
        InvalidParameter: If a method cannot be made from the rules, or must not be stored.
        LedgerMismatch: If the store is that of another plan.
        InsecureRandomness: If the coins can be guessed and this is no simulation.
    """
    if model is not None or policy is not None:
        raise InvalidParameter("model", "one", "not be given: series have none")
    spec, method, purpose = live_method(rules)
    if coins.simulated and purpose is not Purpose.SIMULATION:
        raise InsecureRandomness("a release of a series")
    store = open_store(ledger_plan(method, spec, purpose), JOB, rules.decode())
    try:
        own = of_ledger(coins, store.front.id)
        job = LiveSeries(method, spec, own, purpose, store.front.id)
        return SteppedRun(store, begun(store, source), job), store
    except BaseException:
        store.close()
        raise


def live_method(rules: bytes) -> tuple[SeriesSpec, AnyMethod, Purpose]:
    """The spec, the method with its filter, and the purpose of a document of rules.

    Raises:
        CorruptData: If it is none, or its plan is not the one that it names.
        InvalidParameter: If the filter was made from more than the rules say, or the memory of the
            method must not be stored.
    """
    try:
        document = msgspec.json.decode(rules, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise CorruptData(f"the rules: not those of a series ({problem})") from problem
    spec, named, purpose = read_rules(document, "the rules")
    method = series_method(spec)
    if isinstance(named, Realtime) and isinstance(method, Realtime):
        if (turns := _TURNS.fullmatch(named.estimate.name)) is not None:
            estimate = seasonal(int(turns[2]), forgetting=float(turns[1]))
            spec = replace(spec, estimate=estimate)
            method = series_method(spec)
        if method.fingerprint != named.fingerprint:
            rule = "be the bank of the method or one of phases in turn: others are not in the rules"
            raise InvalidParameter("estimate", named.estimate.name, rule)
    if method.secret or not method.online:
        rule = "release values as they come, with a memory that tells nothing"
        raise InvalidParameter("method", spec.method, rule)
    if document.get("plan") != ledger_plan(method, spec, purpose):
        raise CorruptData("the rules: they are not those of the plan that they name")
    return spec, method, purpose
