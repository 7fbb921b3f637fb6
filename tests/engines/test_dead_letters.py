"""Which events cannot be read: a release leaves out what its dead letters tell of, and no other."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.cli.spark_stream_places import Places
from sfumato.core.purpose import Fallback
from sfumato.engines.spark import shard_function
from sfumato.engines.spark.kafka_messages import from_the_beginning
from sfumato.engines.spark.shard_function import EventColumns, Malformed, ShardFunction
from sfumato.engines.spark.unreadable_events import LetterFunction, dead_letters
from sfumato.engines.spark.worker_plan import PlanDocument, WorkerPlan, plan_of
from sfumato.models.encoding import Bins
from sfumato.models.stream_model import StreamModel
from sfumato.store.codec import to_bytes
from sfumato.stream.release_run import output_columns
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.tables.cells import Missing
from tests.engines.shards import KEY, letter_policy, letters
from tests.engines.test_shard_function import SECRET, State, events, shard_reading

BAD: list[tuple[tuple[Any, ...], str]] = [
    (("ann", "e2", 2, SECRET), "the value must be one of the 3 symbols of the alphabet"),
    (("ann", "e2", 2, None), "the value must not be empty"),
    (("ann", "", 2, "a"), "the id must not be empty"),
    (("", "e2", 2, "a"), "the stream must not be empty"),
    (("ann", "e2", 2, ""), "the value must not be empty"),
]
EMPTY: list[tuple[tuple[Any, ...], str]] = [
    (("ann", None, 2, "a"), "column 'id' must not be empty"),
    (("ann", "e2", None, "a"), "column 'time' must not be empty"),
    ((None, "e2", 2, SECRET), "column 'user' must not be empty"),
]
GOOD = [("ann", f"g{turn}", 10 + turn, "abc"[turn % 3]) for turn in range(30)]


def told(rows: list[tuple[Any, ...]], model: StreamModel, **rules: Any) -> dict[int, str]:
    """The dead letters among some rows, by their numbers."""
    given = {"missing": Missing.REFUSE, "unknown": Fallback.REFUSE} | rules
    function = LetterFunction(
        SimpleNamespace(value=to_bytes(model)), ("user", "id", "time"), ("offset",), **given
    )
    users, ids, times, cells = (list(one) for one in zip(*rows, strict=True))
    columns = {
        "sfumato_stream": users,
        "sfumato_id": ids,
        "sfumato_timeless": [one is None for one in times],
        "cell": cells,
        "offset": list(range(len(rows))),
    }
    (found,) = function(iter([pa.RecordBatch.from_pydict(columns)]))
    assert SECRET not in str(found.to_pydict())
    return dict(zip(found["offset"].to_pylist(), found["rule"].to_pylist(), strict=True))


def released(
    monkeypatch: pytest.MonkeyPatch, rows: list[tuple[Any, ...]], sent: PlanDocument
) -> pd.DataFrame | None:
    """What a release lets out of some rows that leaves out what it cannot read."""
    monkeypatch.setattr(shard_function, "query_id", lambda: "q1")
    opened = plan_of(sent)
    left = output_columns(opened.model, shard_reading(opened.spec), opened.plan)
    columns = EventColumns("id", "time", {**left, "reason": str, "time": int})
    worker = WorkerPlan(SimpleNamespace(value=sent), KEY)
    function = ShardFunction(worker, columns, "digest", Malformed.DROP)
    return next(function(None, iter([events(*rows)]), State()), None)  # type: ignore[arg-type]


def rules_of(model: StreamModel, policy: sf.Policy | None, **rules: Any) -> PlanDocument:
    spec = ReleaseSpec(epsilon=0.5, keep=("time",), event="id", **rules)
    return PlanDocument.of(spec, model, policy)


def test_a_letter_says_where_an_event_is_and_its_rule_never_what_it_says() -> None:
    rows = [row for row, _ in (*BAD, *EMPTY)]
    mixed = [one for pair in zip(rows, GOOD, strict=False) for one in pair]
    due = {2 * place: rule for place, (_, rule) in enumerate((*BAD, *EMPTY))}
    assert told(mixed, letters()) == due
    assert told(GOOD, letters()) == {}


def test_a_release_leaves_out_what_its_letters_tell_of_and_answers_the_rest_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = rules_of(letters(), letter_policy())
    alone = released(monkeypatch, GOOD, sent)
    # A wrong word twice: each of the rows that have it is left out.
    rows = [row for row, _ in BAD] + [("bob", "e9", 2, SECRET)]
    mixed = released(monkeypatch, [*GOOD[:7], *rows, *GOOD[7:]], sent)
    assert alone is not None and mixed is not None
    pd.testing.assert_frame_equal(alone, mixed)
    assert SECRET not in str(mixed.to_dict())


def test_a_shard_without_an_event_that_can_be_read_does_not_move(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = rules_of(letters(), letter_policy())
    assert released(monkeypatch, [row for row, _ in BAD], sent) is None


@pytest.mark.parametrize("missing", ["refuse", "skip"])
@pytest.mark.parametrize("unknown", ["refuse", "suppress"])
@pytest.mark.parametrize("numbers", [False, True])
def test_each_event_is_left_out_or_answered_and_never_both(
    monkeypatch: pytest.MonkeyPatch, missing: str, unknown: str, numbers: bool
) -> None:
    values: list[Any] = ["a", "z", None, "b", "", " c"]
    model = letters()
    if numbers:
        cut = Bins([0.0, 1.0, 2.0, 3.0])
        chain = sf.MarkovChain.from_matrix(
            [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], alphabet=cut.alphabet
        )
        model = StreamModel(chain, cut, "user", ("cell",))
        values = ["1.5", "0x1", None, "nan", "inf", " 2 "]
    rows = [("ann", f"e{turn}", turn, value) for turn, value in enumerate(values)]
    rules = {"missing": Missing(missing), "unknown": Fallback(unknown)}
    letter_rows = told(rows, model, **rules)
    sent = rules_of(model, None, missing=missing, when_unknown=unknown, method="step-wise")
    table = released(monkeypatch, rows, sent)
    answered = set() if table is None else set(table["event"])
    assert answered == {row[1] for number, row in enumerate(rows) if number not in letter_rows}
    assert answered and (unknown == "suppress" or letter_rows)


def test_the_place_of_a_letter_is_no_column_of_its_event() -> None:
    frame: Any = SimpleNamespace(
        dtypes=[("user", "string"), ("id", "string"), ("time", "timestamp"), ("cell", "string")],
        columns=["user", "id", "time", "cell"],
    )
    with pytest.raises(sf.SfumatoError, match="not be a column of the event"):
        dead_letters(frame, model=letters(), place=("cell",))


USUAL: dict[str, Any] = {
    "source": None,
    "source_format": "kafka",
    "source_option": ["subscribe=raw"],
    "names": ("id", "time"),
    "output": None,
    "sink_format": "kafka",
    "sink_option": ["topic=private"],
    "checkpoint": "state",
    "trigger": {},
}


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"dead_letters": "kafka:private"}, "be a topic of its own"),
        ({"dead_letters": "kafka:raw"}, "be a topic of its own"),
        ({"dead_letters": "kafka:"}, "be a folder, or kafka: and a topic"),
        ({"dead_letters": "state/x"}, "apart from SOURCE, --output and --checkpoint"),
        (
            {"dead_letters": "out/bad", "output": "out", "sink_format": "json"},
            "apart from SOURCE, --output and --checkpoint",
        ),
        (
            {"dead_letters": "kafka:bad", "output": "out", "sink_format": "json"},
            "unless answers go to kafka",
        ),
        ({"dead_letters": None, "sink_option": ["topic"]}, "be NAME=VALUE"),
    ],
)
def test_letters_lie_neither_among_answers_nor_among_events(
    changed: dict[str, Any], rule: str
) -> None:
    with pytest.raises(sf.SfumatoError, match=rule):
        Places.of(**USUAL | changed)


FOLDERS: dict[str, Any] = {
    **{"source": "in", "source_format": "json", "source_option": None},
    **{"output": "out", "sink_format": "json", "sink_option": None, "dead_letters": None},
}


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"sink_option": ["topic=raw"]}, "a release hears itself"),
        ({"sink_option": ["topic=b"], "source_option": ["subscribe=a, b"]}, "hears itself"),
        ({"sink_option": ["topic=b"], "source_option": ["subscribePattern=[a-c]"]}, "hears itself"),
        ({"sink_option": ["topic=b"], "source_option": ["subscribePattern=("]}, "hears itself"),
        ({"sink_option": ["topic=b"], "source_option": ['assign={"b":[0]}']}, "hears itself"),
        (
            {"dead_letters": "kafka:b", "source_option": ["subscribe=a,b"]},
            "be a topic of its own",
        ),
        (FOLDERS | {"output": "in"}, "apart from SOURCE and --checkpoint"),
        (FOLDERS | {"output": "in/private"}, "apart from SOURCE and --checkpoint"),
        (FOLDERS | {"output": "./in/../in"}, "apart from SOURCE and --checkpoint"),
        (FOLDERS | {"output": "link"}, "apart from SOURCE and --checkpoint"),
        (FOLDERS | {"source": "2024-*/day", "output": "2024-05"}, "apart from SOURCE"),
        (FOLDERS | {"source": "{a,b}", "output": "b"}, "apart from SOURCE"),
        (FOLDERS | {"output": "state/out"}, "apart from SOURCE and --checkpoint"),
        (FOLDERS | {"source": "s3a://x/in", "output": "s3a://x/in/out"}, "apart from SOURCE"),
        (FOLDERS | {"checkpoint": "in/state"}, "apart from SOURCE"),
    ],
)
def test_a_release_does_not_read_its_own_answers(
    changed: dict[str, Any], rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "in")
    with pytest.raises(sf.SfumatoError, match=rule):
        Places.of(**USUAL | {"dead_letters": None} | changed)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"source_option": ["subscribe=raw,more"]},
        {"source_option": ["subscribePattern=raw.*"]},
        {"source_option": ['assign={"raw":[0]}']},
        FOLDERS,
        FOLDERS | {"source": "2024-*", "output": "private"},
        FOLDERS | {"source": "incoming", "output": "in"},
        FOLDERS | {"source": "s3a://x/in", "output": "s3a://x/out"},
    ],
)
def test_places_that_are_apart_are_taken(changed: dict[str, Any]) -> None:
    assert Places.of(**USUAL | {"dead_letters": None} | changed).checkpoint == "state"


def test_letters_are_left_out_only_where_somebody_hears_of_them(tmp_path: Path) -> None:
    assert Places.of(**USUAL, dead_letters=None).malformed is Malformed.END
    assert Places.of(**USUAL, dead_letters=str(tmp_path / "bad")).malformed is Malformed.DROP


def test_letters_miss_no_message_that_ended_a_release_before() -> None:
    assert from_the_beginning({})["startingOffsets"] == "earliest"
    assert from_the_beginning({"startingOffsets": "latest"})["startingOffsets"] == "earliest"
    named = {"startingOffsets": '{"raw":{"0":23}}'}
    assert from_the_beginning(named) == named
