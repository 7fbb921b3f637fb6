"""Live values of correlated streams under one temporal spec."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sfumato.core.errors import InsecureRandomness, InvalidParameter
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness, of_ledger
from sfumato.models.encoding import Raw, Unreadable
from sfumato.models.stream_model import StreamModel
from sfumato.solver.policy import Policy
from sfumato.store.ledgered_run import StateKind
from sfumato.store.live import StreamAccount
from sfumato.store.live_columns import ColumnarRun
from sfumato.store.live_intake import begun
from sfumato.store.live_job import Left, LiveJob, Moment
from sfumato.store.live_run import SteppedRun
from sfumato.store.protocol import Job, Store
from sfumato.store.protocol import Released as Cell
from sfumato.tables.cells import Time
from sfumato.temporal.temporal_plan import TemporalPlan, TemporalState
from sfumato.temporal.temporal_rows import RELEASED, SKIPPED, true_value, written_value
from sfumato.temporal.temporal_spec import JOB, TemporalSpec, parse_spec

PLANS_HELD = 4096
"""Plans of streams held in memory: who makes up names of streams must not fill it."""


class LiveStreams(LiveJob[TemporalState]):
    """How live values of correlated streams are released; for a `SteppedRun`.

    Args:
        spec: The rules.
        coins: Of the releases.
    """

    def __init__(self, spec: TemporalSpec, coins: Randomness) -> None:
        if coins.simulated and spec.purpose != Purpose.SIMULATION.value:
            raise InsecureRandomness("a temporal release")
        self._spec, self._coins = spec.check(), coins
        self._common = spec.plan("") if spec.backward or spec.forward else None
        self._plans: dict[str, TemporalPlan] = {}
        self.kind = StateKind(
            TemporalState,
            begin=lambda stream: self._plan(stream).begin(stream),
            sequence=lambda state: state.sequence,
            # The sum of all releases by themselves holds for a whole stream, whatever the matrices.
            spent=lambda state: (state.spent, state.spent),
        )

    def _plan(self, stream: str) -> TemporalPlan:
        if self._common is not None and stream not in self._spec.own:
            return self._common
        if stream not in self._plans:
            if len(self._plans) >= PLANS_HELD:
                self._plans.clear()  # they follow from the rules
            self._plans[stream] = self._spec.plan(stream)
        return self._plans[stream]

    def read(self, value: Any) -> list[int] | str | None:
        """Counts, or a symbol; None for a moment that passes."""
        try:
            return true_value(self._parts(value), self._spec)
        except Unreadable as problem:
            # The rules of tables speak of what is wrong in whole sentences.
            raise Unreadable(f"is not one that this release takes: {problem}") from None

    def _parts(self, value: Any) -> Sequence[Raw]:
        """The cells of a value, in the order of the columns of the spec."""
        names = self._spec.values
        parts = [value]
        if isinstance(value, Mapping):
            if set(value) != set(names):
                raise Unreadable(f"it must have the fields {', '.join(names)}")
            parts = [value[name] for name in names]
        elif isinstance(value, list | tuple):
            parts = list(value)
        elif value is None:
            parts = [None] * len(names)
        if len(parts) != len(names):
            raise Unreadable(f"it must have {len(names)} parts")
        if not all(part is None or isinstance(part, str | int | float) for part in parts):
            raise Unreadable("it must be a text or a number, or a list or mapping of them")
        return parts

    def written(self, value: Any) -> Cell:
        """The value as one text, for the digest that tells a retry from other data."""
        return json.dumps(value)

    def time(self, text: str) -> Moment:
        """When a value was measured."""
        return Time.of(text)

    def step(
        self, stream: str, state: TemporalState, values: Sequence[Any]
    ) -> tuple[list[Left], TemporalState]:
        """Release the value of the next moment, or let it pass."""
        (value,), plan = values, self._plan(stream)
        if value is None:
            (event,), after = plan.skip(state)
        else:
            (event,), after = plan.step(state, value, self._coins)
        outcome = SKIPPED if value is None else RELEASED
        told = (event.sequence, outcome, written_value(event.value), event.epsilon, event.epsilon)
        return [Left(*told)], after

    def account(self, state: TemporalState, account: StreamAccount) -> StreamAccount:
        """The account of a stream, with what its next moment may leak by itself."""
        left = self._plan(state.stream).account(state).allowance
        steps = self._spec.steps
        return replace(
            account,
            left=left,
            left_model_free=left,
            moments=None if steps is None else max(steps - state.sequence, 0),
        )


def open_release(
    rules: bytes,
    model: StreamModel | None,
    policy: Policy | None,
    open_store: Callable[[str, Job, str], Store],
    coins: Randomness,
    source: str,
) -> tuple[ColumnarRun, Store]:
    """Open the ledger of a temporal release, and what answers its live events.

    Args:
        rules: The document of its rules, as `temporal_spec.document` makes it.
        model: None: the matrices are in the rules.
        policy: None.
        open_store: Opens a store for a plan, a job and the text of the rules.
        coins: Of the releases; of a key those of the ledger are drawn (`randomness.of_ledger`).
        source: What the input is called in the ledger; each node of a shared store has its own.

    Raises:
        CorruptData: If the rules are not as they were written.
        LedgerMismatch: If the store is that of another plan.
        InsecureRandomness: If the coins can be guessed and this is no simulation.
    """
    if model is not None or policy is not None:
        raise InvalidParameter("model", "one", "not be given: the rules hold the matrices")
    spec = parse_spec(rules, "the rules")
    LiveStreams(spec, coins)  # what it refuses it refuses before there is a ledger
    store = open_store(spec.fingerprint, JOB, rules.decode())
    try:
        job = LiveStreams(spec, of_ledger(coins, store.front.id))
        return SteppedRun(store, begun(store, source), job), store
    except BaseException:
        store.close()
        raise
