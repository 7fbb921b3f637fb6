"""An audit of a released frame: every certificate is computed once more, stream by stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.core.errors import InvalidParameter, UnknownSymbol
from sfumato.core.events import OUTCOMES, Outcome
from sfumato.core.state import StreamState
from sfumato.engines.spark.column_names import mapped
from sfumato.engines.spark.stream_frames import StreamColumns, check_together, gathered
from sfumato.engines.spark.worker_failures import without_values
from sfumato.engines.spark.worker_plan import OpenedPlan, PlanDocument, Shared, plan_of
from sfumato.models.encoding import Unreadable
from sfumato.models.stream_model import StreamModel
from sfumato.solver.policy import Policy
from sfumato.stream.audit_promise import Promise, promise_of
from sfumato.stream.audit_rows import AuditRow, differences, misspelled, read_event
from sfumato.stream.fleet_replay import Left, NotReleased, Replay
from sfumato.stream.input_rows import period_of
from sfumato.stream.release_run import output_columns
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.stream.released_columns import ReleasedRows, read_released, same_floats
from sfumato.tables.batches import Batch
from sfumato.tables.cells import Time

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_TOLD, _SHOWN = 8, 24
_FOUND = (
    "rows long, streams long, problems long, unverifiable long, withheld long, "
    "sip double, ldp double, worst double, told array<string>"
)
_SKIPPED = OUTCOMES.index(Outcome.SKIPPED)
_RULE_OF_SKIPS = "a release never skips a row, unless its rules say missing: skip"


@dataclass(frozen=True, slots=True)
class SparkAudit:
    """What an audit of a frame found.

    Attributes:
        rows: Rows that were looked at.
        streams: Streams that they belong to.
        problem_count: How many rules rows break.
        problems: The first of them, with stream and sequence.
        unverifiable: Rows that nothing can be said of, since they follow a bad one of their stream.
        withheld: Rows that released nothing although there was budget.
        largest_sip: The most that a stream leaked under the model, in all.
        largest_ldp: The same whatever the model.
        worst_step: The most that one value leaked under the model.
        promise: What the rules allow.

    Examples:
        With a session at hand, `spark`:

        ```python
        import secrets
        import sfumato as sf
        rows = [("ann", time, "home" if time % 5 else "work") for time in range(40)]
        frame = spark.createDataFrame(rows, ["user", "time", "cell"])
        model = sf.spark.fit(frame, order="time", stream="user", value="cell")
        asked = {"epsilon": 0.5, "method": "step-wise"}
        key = secrets.token_bytes(32)
        private = sf.spark.release(frame, model=model, key=key, order="time", **asked)
        rules = sf.stream.ReleaseSpec(**asked, keep=("time",), model=model.chain.fingerprint)
        found = sf.spark.audit(private, model=model, rules=rules)
        assert (found.rows, found.streams, found.problem_count) == (40, 1, 0)
        ```
    """

    rows: int
    streams: int
    problem_count: int
    problems: tuple[str, ...]
    unverifiable: int
    withheld: int
    largest_sip: float
    largest_ldp: float
    worst_step: float
    promise: Promise

    @property
    def passed(self) -> bool:
        """Whether everything fits."""
        return self.problem_count == 0


def audit(
    frame: DataFrame,
    *,
    model: StreamModel,
    rules: ReleaseSpec,
    policy: Policy | None = None,
    stream: str | None = None,
    partitions: int | None = None,
) -> SparkAudit:
    """Recompute the certificates of every row of a released frame, and compare them to the bit.

    Needs neither key nor true values. Rows that are missing at the end of a stream, and whole
    streams that are missing, leave no trace in a frame; compare `rows` with what was released.

    Args:
        frame: What `release` made, or a table of it; rows in any order.
        model: The model of the release.
        rules: Its rules: `sf.stream.ReleaseSpec`, as they lie beside a released table.
        policy: The policy that they name, if they do.
        stream: Column of the streams; as fitted if not given.
        partitions: Parts that streams are shared out to; by the size of the frame if not given.

    Examples:
        With a session at hand, `spark`:

        ```python
        import secrets
        import sfumato as sf
        rows = [("ann", time, "home" if time % 5 else "work") for time in range(40)]
        frame = spark.createDataFrame(rows, ["user", "time", "cell"])
        model = sf.spark.fit(frame, order="time", stream="user", value="cell")
        asked = {"epsilon": 0.5, "method": "step-wise"}
        key = secrets.token_bytes(32)
        private = sf.spark.release(frame, model=model, key=key, order="time", **asked)
        rules = sf.stream.ReleaseSpec(**asked, keep=("time",), model=model.chain.fingerprint)
        assert sf.spark.audit(private, model=model, rules=rules).passed
        ```
    """
    from dataclasses import replace

    named = replace(model, stream=stream or model.stream)
    sent = PlanDocument.of(rules, named, policy)
    opened = plan_of(sent)
    if opened.plan.period is not None and rules.time not in rules.keep:
        rule = f"name a column that was kept: the budget is for each {opened.plan.period}"
        raise InvalidParameter("rules.time", rules.time, rule)
    rows = arranged_release(frame, opened, partitions)
    shared = frame.sparkSession.sparkContext.broadcast(sent)
    parts = mapped(rows, _PartitionAudit(shared), _FOUND).collect()
    told = [line for part in parts for line in part["told"]]

    def total(name: str) -> int:
        return sum(part[name] for part in parts)

    def most(name: str) -> float:
        return max((part[name] for part in parts), default=0.0)

    return SparkAudit(
        rows=total("rows"),
        streams=total("streams"),
        problem_count=total("problems"),
        problems=tuple(sorted(told)[:_SHOWN]),
        unverifiable=total("unverifiable"),
        withheld=total("withheld"),
        largest_sip=most("sip"),
        largest_ldp=most("ldp"),
        worst_step=most("worst"),
        promise=promise_of(opened.spec, named),
    )


def arranged_release(
    frame: DataFrame, opened: OpenedPlan, partitions: int | None, *, together: bool = False
) -> DataFrame:
    """A released frame, each stream in one partition and in the order of its moments.

    Args:
        frame: The rows.
        opened: The plan of the release.
        partitions: As in `StreamColumns.arranged`.
        together: As there.
    """
    from sfumato.stream.input_rows import Reading

    spec = opened.spec
    shown = Reading(None if spec.event is None else "event", None, spec.keep, spec.keep)
    due = tuple(output_columns(opened.model, shown, opened.plan))
    extra = [name for name in frame.columns if name not in due]
    if extra:
        rule = f"not be there: a release has {', '.join(due)}"
        raise InvalidParameter("columns", ", ".join(extra), rule)
    columns = StreamColumns(opened.model.stream, "sequence", due)
    return columns.arranged(frame, partitions, together=together)


@dataclass(slots=True)
class _Found:
    """What was found in a partition so far."""

    rows: int = 0
    streams: int = 0
    problems: int = 0
    unverifiable: int = 0
    withheld: int = 0
    sip: float = 0.0
    ldp: float = 0.0
    worst: float = 0.0
    told: list[str] = field(default_factory=list)

    def note(self, stream: str, moment: object, rule: str) -> None:
        self.problems += 1
        if len(self.told) < _TOLD:
            self.told.append(f"stream {stream!r}, sequence {moment}: {rule}")

    def spent(self, sip: float, ldp: float, worst: float) -> None:
        self.sip, self.ldp = max(self.sip, sip), max(self.ldp, ldp)
        self.worst = max(self.worst, worst)


class _PartitionAudit:
    """Looks at the streams of one partition; what `mapInArrow` runs."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    def __call__(self, parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        with without_values():
            walk = PartitionWalk(plan_of(self._shared.value))
            for batch in gathered(parts):
                walk.take(batch)
            found = {name: getattr(walk.found, name) for name in _Found.__slots__}
            kinds = {list: pa.list_(pa.string()), int: pa.int64(), float: pa.float64()}
            arrays = [pa.array([cell], kinds[type(cell)]) for cell in found.values()]
            yield pa.RecordBatch.from_arrays(arrays, names=list(found))


class PartitionWalk:
    """Follows the streams of a partition: by array, and row by row where anything is unusual.

    Args:
        opened: The plan of the release.

    Attributes:
        found: What was found so far.
    """

    def __init__(self, opened: OpenedPlan) -> None:
        self._opened, self.found = opened, _Found()
        self._skips = opened.spec.missing == "skip"
        self._last: StreamState | None = None
        self._lost: str | None = None

    def take(self, batch: Batch) -> None:
        """Look at the next rows."""
        self.found.rows += len(batch)
        rows = read_released(batch, self._opened.model, text=False)
        if rows is None or not self._verified(rows):
            self._one_by_one(batch)

    def _verified(self, rows: ReleasedRows) -> bool:
        """Whether rows are all what the plan does; if not, nothing was changed."""
        plan = self._opened.plan
        before = None if self._last is None else self._last.stream
        check_together(rows.names, rows.owners, before)
        if not plan.by_fleet or self._lost == rows.names[0]:
            return False
        if (rows.outcomes == _SKIPPED).any() and not self._skips:
            return False
        goes_on = [self._last] if self._last is not None and before == rows.names[0] else []
        fleet = Replay(plan, rows.names[len(goes_on) :], states=goes_on)
        if (rows.sequences != fleet.moments[rows.owners] + _turns(rows.owners)).any():
            return False
        left = Left(rows.owners, rows.released, rows.outcomes, rows.signals)
        try:
            followed = fleet.follow(left, whole=False)
        except NotReleased:
            return False
        if not same_floats(rows.leakages, followed.charges).all():
            return False
        sip, ldp = fleet.totals[: len(fleet)].max(axis=0).tolist()
        self.found.spent(sip, ldp, float(followed.charges[:, 0].max()))
        self.found.withheld += int(followed.withheld.sum())
        self.found.streams += len(rows.names) - len(goes_on)
        self._last, self._lost = fleet.state(len(fleet) - 1), None
        return True

    def _one_by_one(self, batch: Batch) -> None:
        columns = batch.chunk().columns
        for row in range(len(batch)):
            self._row({name: cells[row] for name, cells in columns.items()})

    def _row(self, fields: dict[str, Any]) -> None:
        stream = str(fields[self._opened.model.stream])
        if self._last is None or self._last.stream != stream:
            self.found.streams += 1
            self._last, self._lost = self._opened.plan.begin(stream), None
        elif self._lost == stream:
            self.found.unverifiable += 1
            return
        try:
            self._last = self._followed(fields, self._last)
        except (Unreadable, UnknownSymbol, InvalidParameter) as problem:
            self.found.note(stream, fields["sequence"], str(problem))
            self._lost = stream

    def _period(self, fields: dict[str, Any]) -> int | None:
        """The period of the budget that a row lies in, if it is for such."""
        period, time = self._opened.plan.period, self._opened.spec.time
        return None if period is None else period_of(period, Time.of(fields[time or ""]))

    def _followed(self, fields: dict[str, Any], state: StreamState) -> StreamState:
        """Where a stream stands after a row, which is compared with what was due."""
        plan, model = self._opened.plan, self._opened.model
        event = read_event(state.stream, fields, model)
        if event.sequence != state.sequence:
            raise Unreadable(f"the sequence number must be {state.sequence}")
        if event.outcome is Outcome.SKIPPED and not self._skips:
            raise Unreadable(_RULE_OF_SKIPS)
        when = self._period(fields)
        seen = plan.observed(state, [event.released], event.outcome, event.signal, period=when)
        (due,) = seen.events
        rules = [
            *misspelled(AuditRow(0, fields, event), model, text=False),
            *differences(event, due, "the frame"),
        ]
        for rule in rules:
            self.found.note(state.stream, event.sequence, rule)
        if event.outcome in (Outcome.SUPPRESSED, Outcome.REPEATED):
            self.found.withheld += plan.prepare(state, 1, period=when) is not None
        after = seen.following.ledger
        self.found.spent(after.sip, after.ldp, due.sip.epsilon)
        return seen.following


def _turns(owners: Ints) -> Ints:
    """How many rows of its stream stand before each, where streams come one after another."""
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    lengths = np.diff(np.append(starts, len(owners)))
    return np.arange(len(owners)) - np.repeat(starts, lengths)
