"""What a worker does with the data frames of a shard, without an engine around it."""

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import sfumato as sf
from sfumato.engines.spark import shard_function
from sfumato.engines.spark.shard_function import HASH, MICROS, EventColumns, ShardFunction
from sfumato.engines.spark.shard_state import OtherRelease
from sfumato.engines.spark.worker_failures import WorkerFailure
from sfumato.engines.spark.worker_plan import PlanDocument, WorkerPlan, plan_of
from sfumato.models.encoding import Symbols
from sfumato.models.stream_model import StreamModel
from sfumato.stream.release_run import output_columns
from sfumato.stream.release_spec import ReleaseSpec
from tests.engines.shards import KEY, letter_policy, letters

SECRET = "a-place-nobody-may-know"
NAMES = ("user", "id", "time", "cell")


class State:
    """What an engine keeps for a shard."""

    def __init__(self) -> None:
        self.getOption: Any = None

    def update(self, held: Any) -> None:
        self.getOption = held

    def getCurrentWatermarkMs(self) -> int:
        return 0


def document(**rules: Any) -> PlanDocument:
    spec = ReleaseSpec(epsilon=0.5, keep=("time",), event="id", **rules)
    return PlanDocument.of(spec, letters(), letter_policy())


def function(sent: PlanDocument) -> ShardFunction:
    opened = plan_of(sent)
    reading = shard_reading(opened.spec)
    left = {**output_columns(opened.model, reading, opened.plan), "reason": str, "time": int}
    worker = WorkerPlan(SimpleNamespace(value=sent), KEY)
    return ShardFunction(worker, EventColumns("id", "time", left), "digest")


def shard_reading(spec: ReleaseSpec) -> Any:
    from sfumato.engines.spark.partition_release import reading_of

    return reading_of(spec, "time")


def events(*rows: tuple[Any, ...]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=list(NAMES))
    frame[MICROS] = frame["time"]
    frame[HASH] = range(len(frame))
    return frame


def answered(
    monkeypatch: pytest.MonkeyPatch,
    frame: pd.DataFrame,
    query: str = "q1",
    state: State | None = None,
    sent: PlanDocument | None = None,
) -> pd.DataFrame:
    monkeypatch.setattr(shard_function, "query_id", lambda: query)
    (table,) = function(sent or document())(None, iter([frame]), state or State())  # type: ignore[arg-type]
    return table


ROWS = [("ann", f"e{turn}", turn, "abc"[turn % 3]) for turn in range(60)]


def test_every_query_has_coins_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [answered(monkeypatch, events(*ROWS), query) for query in ("q1", "q1", "q2")]
    first, again, other = (table["released"].tolist() for table in tables)
    assert first == again and first != other


def test_a_state_of_another_query_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    state = State()
    answered(monkeypatch, events(*ROWS[:3]), "q1", state)
    with pytest.raises(WorkerFailure, match=str(OtherRelease())[:40]):
        answered(monkeypatch, events(*ROWS[3:6]), "q2", state)
    assert len(answered(monkeypatch, events(*ROWS[3:6]), "q1", state)) == 3


def test_nothing_is_drawn_outside_of_a_streaming_query() -> None:
    with pytest.raises(WorkerFailure, match="must run as a streaming query"):
        list(function(document())(None, iter([events(*ROWS)]), State()))  # type: ignore[arg-type]


GOOD = ("ann", "e1", 1, "a")
BAD: list[tuple[tuple[Any, ...], str]] = [
    (("ann", "e2", 2, SECRET), "the value must be one of the 3 symbols"),
    (("ann", "e2", 2, None), "the value must not be empty"),
    (("ann", None, 2, "a"), "column 'id' must not be empty"),
    (("ann", "", 2, "a"), "the id must not be empty"),
    (("ann", "e2", None, "a"), "column 'time' must not be empty"),
    (("", "e2", 2, "a"), "the stream must not be empty"),
    ((None, "e2", 2, "a"), "column 'user' must not be empty"),
]


@pytest.mark.parametrize(("row", "rule"), BAD)
def test_a_refusal_names_the_rule_and_never_the_value(
    monkeypatch: pytest.MonkeyPatch, row: tuple[Any, ...], rule: str
) -> None:
    state = State()
    with pytest.raises(WorkerFailure, match=rule) as caught:
        answered(monkeypatch, events(GOOD, row), state=state)
    assert SECRET not in str(caught.value) and caught.value.__suppress_context__
    assert state.getOption is None  # nothing has moved


@pytest.mark.parametrize("name", ["ä", "名 前", " a", "🦊", "a,b"])
def test_names_of_streams_leave_as_they_came(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    table = answered(monkeypatch, events((name, "e1", 1, "a")))
    assert table["user"].tolist() == [name]


def test_whole_numbers_name_symbols(monkeypatch: pytest.MonkeyPatch) -> None:
    # As the engine hands them over: as text, for beside a missing one they would be floats.
    labels = (str(2**60), str(2**60 + 1))
    chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]], alphabet=sf.Alphabet(labels))
    model = StreamModel(chain, Symbols(chain.alphabet), "user", ("cell",))
    spec = ReleaseSpec(epsilon=0.5, keep=("time",), event="id", missing="skip")
    sent = PlanDocument.of(spec, model)
    rows = [("ann", "e1", 1, labels[1]), ("ann", "e2", 2, None), ("ann", "e3", 3, "7")]
    table = answered(monkeypatch, events(*rows[:2]), sent=sent)
    assert table["outcome"].tolist() == ["released", "skipped"]
    with pytest.raises(WorkerFailure, match="one of the 2 symbols"):
        answered(monkeypatch, events(*rows), sent=sent)
