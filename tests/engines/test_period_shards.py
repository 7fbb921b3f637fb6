"""Budgets for periods of time inside an engine's workers: the same as one by one, and in files."""

import csv
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import BudgetExceeded, InvalidParameter
from sfumato.core.state import StreamState
from sfumato.engines.spark.partition_release import PartitionRelease
from sfumato.engines.spark.shard_release import Shard
from sfumato.engines.spark.shard_state import ShardState
from sfumato.engines.spark.spark_audit import PartitionWalk
from sfumato.engines.spark.stream_frames import gathered
from sfumato.engines.spark.worker_plan import PlanDocument, plan_of
from sfumato.stream.input_rows import Reading
from sfumato.stream.release_run import RunSpec, release_table
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.tables.cells import Late
from sfumato.tables.readers import Table
from tests.engines.scene import COLUMNS, batches, in_order, town, walks, worker_plan
from tests.engines.scene import KEY as TOWN_KEY
from tests.engines.shards import KEY, LETTERS, Answer, Asked, asked_rows, letters
from tests.engines.test_shard_release import told
from tests.oracles.period_sums import period_sums

TOTAL = 1.0
RULES = ReleaseSpec(budget=TOTAL, per="60", cap=0.5, method="calibrated")
EVENTS = st.lists(
    st.builds(
        Asked,
        stream=st.sampled_from(["ann", "bob"]),
        id=st.uuids().map(str),
        time=st.integers(0, 200),
        value=st.sampled_from(LETTERS.labels),
    ),
    max_size=25,
)


def one_by_one(plan: sf.Plan, events: list[Asked]) -> dict[tuple[str, str], object]:
    """The oracle: periods by whole numbers of minutes, and each event by `Plan.step`."""
    found: dict[tuple[str, str], object] = {}
    states: dict[str, StreamState] = {}
    for event in sorted(events, key=lambda one: (one.time, one.id)):
        state = states.get(event.stream) or plan.begin(event.stream)
        try:
            (left,), states[event.stream] = plan.step(
                state, [event.value], sf.keyed(KEY), period=event.time // 60
            )
        except BudgetExceeded:
            found[event.stream, event.id] = "budget"
            continue
        sums = (left.sip.epsilon, left.ldp.epsilon)
        found[event.stream, event.id] = Answer(
            left.sequence, left.outcome.value, left.released, *sums
        )
    return found


@settings(deadline=None, max_examples=25)
@given(EVENTS, st.integers(0, 200))
def test_a_shard_spends_by_event_time_also_when_it_goes_on_from_its_bytes(
    events: list[Asked], cut: int
) -> None:
    plan = RULES.instant(letters())
    shard, state = Shard(plan, sf.keyed(KEY), "digest", Late.REFUSE), None
    found: dict[tuple[str, str], object] = {}
    for part in ([e for e in events if e.time < cut], [e for e in events if e.time >= cut]):
        left, after = shard.answered(state, asked_rows(part), watermark=0)
        state = ShardState.of_bytes(after.encoded, "digest")
        found |= dict(told(left))
    assert found == one_by_one(plan, events)
    answers = [
        (event.stream, str(event.time), answer.sip)
        for event in events
        if isinstance(answer := found[event.stream, event.id], Answer)
    ]
    assert all(spent <= TOTAL for spent in period_sums("60", answers).values())


def test_a_period_that_is_used_up_refuses_and_the_next_one_answers() -> None:
    plan = RULES.instant(letters())
    events = [Asked("ann", f"e{n}", n, "a") for n in (*range(50, 60), *range(60, 63))]
    shard = Shard(plan, sf.keyed(KEY), "digest", Late.REFUSE)
    found = dict(told(shard.answered(None, asked_rows(events), watermark=0)[0]))
    assert found["ann", "e59"] == "budget" and isinstance(found["ann", "e60"], Answer)
    answers = [
        ("ann", id_.removeprefix("e"), one.sip)
        for (_, id_), one in found.items()
        if isinstance(one, Answer)
    ]
    sums = period_sums("60", answers)
    assert TOTAL - 1e-6 < sums["ann", "0"] <= TOTAL


@pytest.mark.parametrize("compiled", [False, True])
def test_partitions_files_and_policies_give_the_same_rows(compiled: bool, tmp_path: Path) -> None:
    scene, policy = town(), town().policy if compiled else None
    named = None if policy is None else policy.fingerprint
    spec = ReleaseSpec(
        budget=1.2,
        per="7",
        cap=0.5,
        keep=("time",),
        time="time",
        when_exhausted="suppress",
        policy=named,
    )
    rows = walks([30, 1, 14])
    work = PartitionRelease(worker_plan(PlanDocument.of(spec, scene.model, policy)), "time")
    found = [tuple(map(str, row.values())) for b in work(batches(rows, 9)) for row in b.to_pylist()]
    live, private = tmp_path / "live.csv", tmp_path / "private.csv"
    with live.open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *in_order(rows)])
    plan = spec.plan(scene.model, policy)
    how = RunSpec(reading=Reading(time="time", keep=("time",)), randomness=sf.keyed(TOWN_KEY))
    release_table(Table.at(str(live)), Table.at(str(private)), scene.model, plan, how)
    with private.open() as file:
        due = [tuple(cell or "None" for cell in row) for row in list(csv.reader(file))[1:]]
    assert sorted(found) == sorted(due)
    charged = [(row[0], row[1], float(row[5])) for row in found]
    sums = period_sums("7", charged).values()
    assert max(sums) <= 1.2
    assert compiled or max(sums) > 1.19
    assert "suppressed" in {row[4] for row in found} or compiled


def test_an_audit_of_a_partition_notes_a_time_that_was_moved() -> None:
    scene = town()
    given = {"budget": 1.0, "per": "5", "cap": 0.5, "keep": ("time",), "time": "time"}
    spec = ReleaseSpec(**given, method="calibrated", when_exhausted="suppress")  # type: ignore[arg-type]
    sent = PlanDocument.of(spec, scene.model)
    parts = list(PartitionRelease(worker_plan(sent), "time")(batches(walks([20]), 50)))
    honest, moved = PartitionWalk(plan_of(sent)), PartitionWalk(plan_of(sent))
    for batch in gathered(iter(parts)):
        honest.take(batch)
    assert honest.found.rows == 20 and not honest.found.told
    (part,) = parts
    times = part.column("time").to_pylist()
    # The first value of the second period is said to lie in the first, which was used up.
    forged = part.set_column(1, "time", pa.array([*times[:5], "4", *times[6:]]))
    for batch in gathered(iter([forged])):
        moved.take(batch)
    assert moved.found.problems == 1 and "budget was gone" in moved.found.told[0]


def test_late_events_and_columns_that_are_not_kept_are_refused() -> None:
    scene, period = town(), RULES.instant(letters()).period
    for reading, rule in (
        (Reading(time="time", keep=("time",), late=Late.ACCEPT), "late must be refuse"),
        (Reading(time="time"), "keep must name 'time'"),
        (Reading(), "the time column .* must be given"),
    ):
        with pytest.raises(InvalidParameter, match=rule):
            reading.check(scene.model, period)


def test_days_of_engines_are_those_of_utc() -> None:
    plan = ReleaseSpec(budget=1.0, per="day", cap=0.5).instant(letters())
    assert plan.period is not None
    moment = datetime(2024, 3, 31, 23, 30, tzinfo=UTC)
    seconds = int(moment.timestamp())
    assert plan.period.at_microsecond(1_000_000 * seconds) == plan.period.at(moment)
