"""What a worker does with the rows of a partition, without an engine around it."""

import csv
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from msgspec import structs

import sfumato as sf
from sfumato.cli.app import called
from sfumato.core.errors import InvalidParameter
from sfumato.engines.spark.batch_release import completed
from sfumato.engines.spark.partition_release import PartitionRelease
from sfumato.engines.spark.worker_failures import WorkerFailure
from sfumato.engines.spark.worker_plan import PlanDocument, plan_of
from sfumato.models.cycle import Cycle
from sfumato.models.encoding import Symbols
from sfumato.models.periodic import PeriodicChain
from sfumato.models.stream_model import StreamModel
from sfumato.store.keys import write_key
from sfumato.stream.input_rows import Reading
from sfumato.stream.release_run import RunSpec, release_table
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.tables.readers import Table
from tests.engines.scene import (
    KEY,
    Row,
    answers,
    batches,
    by_fleet,
    by_plan,
    in_order,
    town,
    walks,
    worker_plan,
)

SECRET = "a-place-nobody-may-know"


def released(parts: object, document: PlanDocument | None = None) -> list[dict[str, object]]:
    worker = PartitionRelease(worker_plan(document or town().document), "time")
    return [row for part in worker(parts) for row in part.to_pylist()]  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_answers_are_those_of_one_fleet_however_rows_are_cut(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.engines.spark.stream_frames.gathered.__defaults__", (size,))
    rows = walks([1, 40, 3, 17])
    assert answers(released(batches(rows, size))) == by_fleet(rows, town().plan)


def test_of_a_giant_stream_a_worker_holds_one_batch_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size, part = 200, 50
    monkeypatch.setattr("sfumato.engines.spark.stream_frames.gathered.__defaults__", (size,))
    rows = walks([3000, *[1] * 500])
    taken: list[weakref.ref[pa.RecordBatch]] = []

    def parts() -> Iterator[pa.RecordBatch]:
        for one in batches(rows, part):
            own = pa.RecordBatch.from_pydict(one.to_pydict())  # nobody else holds it
            taken.append(weakref.ref(own))
            yield own

    found, most = [], 0
    for answer in PartitionRelease(worker_plan(town().document), "time")(parts()):
        found += answer.to_pylist()
        assert part * len(taken) <= len(found) + size  # nothing is taken before its turn
        most = max(most, sum(one() is not None for one in taken))
    assert answers(found) == by_fleet(rows, town().plan)
    assert most <= size // part + 1


def test_the_table_is_the_one_that_release_writes(tmp_path: Path) -> None:
    rows, scene = walks([5, 60, 2]), town()
    source, private = tmp_path / "live.csv", tmp_path / "private.parquet"
    lines = [f"{user},{time},{cell}" for user, time, cell in in_order(rows)]
    source.write_text("\n".join(["user,time,cell", *lines]))
    spec = RunSpec(reading=Reading(None, "time", ("time",)), randomness=sf.keyed(KEY))
    release_table(Table.at(str(source)), Table.at(str(private)), scene.model, scene.plan, spec)
    import pyarrow.parquet

    found = [
        row
        for part in PartitionRelease(worker_plan(scene.document), "time")(batches(rows, 9))
        for row in part.to_pylist()
    ]
    assert found == pyarrow.parquet.read_table(private).to_pylist()


def test_without_a_policy_values_are_released_far_sighted_as_by_the_command(tmp_path: Path) -> None:
    rows, scene = walks([4, 25]), town()
    given = ReleaseSpec(epsilon=0.5, keep=("time",))
    spec, policy = completed(given, scene.model, None, asked=False)
    document = PlanDocument.of(spec, scene.model, policy)
    source, private = tmp_path / "live.csv", tmp_path / "private.csv"
    lines = [f"{user},{time},{cell}" for user, time, cell in in_order(rows)]
    source.write_text("\n".join(["user,time,cell", *lines]))
    sf.save(scene.model, tmp_path / "city.model")
    write_key(tmp_path / "city.key", KEY)
    line = (
        f"release {source} -m {tmp_path}/city.model --epsilon 0.5 --time time --keep time "
        f"--key-file {tmp_path}/city.key -o {private} --quiet"
    )
    assert called(line.split()) == 0
    with private.open() as file:
        due = list(csv.DictReader(file))
    found = released(batches(rows, 8), document)
    assert "signal" in due[0]
    assert [{name: str(cell) for name, cell in row.items()} for row in found] == due


def test_steps_that_are_solved_are_those_of_the_plan() -> None:
    scene, rows = town(), walks([3, 2])
    spec = ReleaseSpec(budget=2.0, horizon=3, keep=("time",))
    document = PlanDocument.of(spec, scene.model)
    due = by_plan(rows, plan_of(document).plan)
    found = released(batches(rows, 2), document)
    assert [(row["user"], row["sequence"], row["released"], row["sip"]) for row in found] == due


def broken(rows: list[Row], change: Callable[[Row], tuple[object, ...]]) -> pa.RecordBatch:
    cells = zip(*map(change, in_order(rows)), strict=True)
    table = pa.table(dict(zip(("user", "time", "cell"), map(list, cells), strict=True)))
    return table.combine_chunks().to_batches()[0]


REFUSALS: list[tuple[Callable[[Row], tuple[object, ...]], str]] = [
    (lambda row: (row[0], row[1], None if row[1] == 2 else row[2]), "the value must not be empty"),
    (lambda row: (row[0], row[1], SECRET if row[1] == 2 else row[2]), "must be one of the 3 symb"),
    (lambda row: (row[0], min(row[1], 3), row[2]), "one row for each 'time'"),
    (lambda row: (row[0], None if row[1] == 2 else row[1], row[2]), "column 'time' must"),
    (lambda row: (None, row[1], row[2]), "column 'user' must not be empty"),
    (lambda row: (f"u{row[1] % 2}", row[1], row[2]), "must come together"),
]


@pytest.mark.parametrize(("change", "rule"), REFUSALS)
def test_a_refusal_names_the_rule_and_never_the_value(
    change: Callable[[Row], tuple[object, ...]], rule: str
) -> None:
    part = broken(walks([6]), change)
    with pytest.raises(WorkerFailure, match=rule) as caught:
        released(iter([part]))
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
    assert SECRET not in str(caught.value)


def test_a_stream_that_stands_still_over_the_edge_of_a_batch_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sfumato.engines.spark.stream_frames.gathered.__defaults__", (1,))
    part = broken(walks([6]), lambda row: (row[0], min(row[1], 3), row[2]))
    with pytest.raises(WorkerFailure, match="one row for each 'time'"):
        released(part.slice(row, 1) for row in range(part.num_rows))


def test_a_stream_that_comes_back_is_never_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.engines.spark.stream_frames.gathered.__defaults__", (1,))
    part = broken(walks([2, 2]), lambda row: row)
    turned = part.take(pa.array([0, 2, 1, 3]))
    with pytest.raises(WorkerFailure, match="must come together"):
        released(turned.slice(row, 1) for row in range(4))


def test_a_defect_tells_where_and_not_what(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(*_: object) -> None:
        float(SECRET)

    monkeypatch.setattr("sfumato.engines.spark.partition_release.answer_table", stumble)
    with pytest.raises(
        WorkerFailure, match=r"internal error \(ValueError\) at test_part"
    ) as caught:
        released(batches(walks([3]), 9))
    assert SECRET not in str(caught.value) and caught.value.__suppress_context__


def test_a_worker_with_another_plan_is_refused() -> None:
    with pytest.raises(WorkerFailure, match="install the same version"):
        released(batches(walks([3]), 9), replace(town().document, plan="another"))


def test_missing_values_pass_where_the_rules_say_so() -> None:
    scene = town()
    spec = structs.replace(scene.spec, missing="skip")
    part = broken(walks([4]), lambda row: (row[0], row[1], None if row[1] == 2 else row[2]))
    found = released(iter([part]), PlanDocument.of(spec, scene.model, scene.policy))
    assert [row["outcome"] for row in found] == ["released", "released", "skipped", "released"]
    assert [row["sequence"] for row in found] == [0, 1, 2, 3]


def test_batches_and_seeds_are_refused_on_the_driver() -> None:
    scene = town()
    with pytest.raises(sf.SfumatoError, match="values leave at once"):
        PlanDocument.of(structs.replace(scene.spec, batch=3), scene.model)
    with pytest.raises(sf.SfumatoError, match="at least 16 bytes"):
        worker_plan(scene.document).__class__(None, b"short")  # type: ignore[arg-type]


def test_the_key_is_in_no_text_of_a_plan_on_its_way() -> None:
    worker = PartitionRelease(worker_plan(town().document), "time")
    texts = [repr(worker), str(worker.__dict__), repr(town().document)]
    assert not any(KEY.hex() in text or repr(KEY)[2:-1] in text for text in texts)


def test_a_model_of_whole_numbers_is_read_from_whole_numbers() -> None:
    chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
    model = StreamModel(chain, Symbols(chain.alphabet), "user", ("cell",))
    document = PlanDocument.of(ReleaseSpec(epsilon=0.5, keep=("time",)), model)
    part = broken(walks([4]), lambda row: (row[0], row[1], row[1] % 2))
    assert {type(row["released"]) for row in released(iter([part]), document)} == {int}


def test_a_model_that_changes_with_time_is_refused_on_the_driver() -> None:
    turns = Cycle.of("2")
    matrices = [[[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]]]
    chain = PeriodicChain.from_matrices(matrices, turns)
    phased = StreamModel(chain, Symbols(chain.alphabet))
    with pytest.raises(InvalidParameter, match="not change with time here"):
        PlanDocument.of(ReleaseSpec(epsilon=0.5), phased)
