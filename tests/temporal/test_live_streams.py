"""Live values of correlated streams: counts, and answers of people."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from sfumato.core.errors import CorruptData, InsecureRandomness
from sfumato.core.randomness import Randomness, secure, seeded
from sfumato.store.live import Asked, Reason
from sfumato.tables.input_groups import EventColumns
from sfumato.tables.readers import Table
from sfumato.temporal.live_streams import PLANS_HELD, LiveStreams, open_release
from sfumato.temporal.temporal_run import release_streams
from sfumato.temporal.temporal_spec import OwnMatrices, TemporalSpec, document
from tests.contracts.live_laws import (
    FEW,
    LiveLaws,
    Opened,
    coins_or_fresh,
    reason,
    single,
    table_coins,
)
from tests.contracts.live_stores import Place
from tests.shell.running import Result, call
from tests.shell.tables import write
from tests.temporal.test_temporal_run import ANSWERS, BACKWARD, COUNTS


class TestLiveCounts(LiveLaws):
    """Two counts a row, some moments without them."""

    readable: Sequence[Any] = ([4, 2], {"road": 7, "home": 1}, (3, 3), None)
    unreadable: Sequence[Any] = (
        "many",
        [1],
        [1, 2, 3],
        {"home": 1},
        [1, -1],
        [1, 2.5],
        [True, 1],
        object(),
    )
    most_spent = FEW * COUNTS.alpha
    spec = msgspec.structs.replace(COUNTS, missing="skip")

    def open(
        self, place: Any, coins: Randomness | None = None, *, few: bool = False, source: str = "x"
    ) -> Opened:
        spec = msgspec.structs.replace(self.spec, steps=FEW if few else self.spec.steps)
        rules = document(spec)
        return open_release(rules, None, None, place.open, coins_or_fresh(coins), source)

    def release_table(self, folder: Path, path: Path, events: list[Asked]) -> None:
        rows = [[one.stream, *self.cells(one.value), one.id, one.time or ""] for one in events]
        names = ("stream", *self.spec.values, "id", "when")
        source = Table.at(str(write(folder / "day.csv", names, rows)))
        timed = events[0].time is not None
        columns = EventColumns(event="id", time="when" if timed else None)
        given = (source, Table.at(str(folder / "out.csv")), self.spec)
        release_streams(*given, ledger=path, columns=columns, randomness=table_coins(path))

    def cells(self, value: Any) -> list[Any]:
        """A value as cells of a table."""
        if value is None:
            return [""] * len(self.spec.values)
        if isinstance(value, dict):
            return [value[name] for name in self.spec.values]
        return list(value) if isinstance(value, list | tuple) else [value]

    def audit(self, path: Path) -> Result:
        return call("temporal", "audit", "--ledger", path)


class TestLiveAnswers(TestLiveCounts):
    """One symbol a person, by randomised response."""

    readable: Sequence[Any] = ("home", "road", ["home"], {"value": "road"})
    unreadable: Sequence[Any] = (
        "school",
        "",
        None,
        7,
        ["home", "road"],
        {"home": "road"},
        [object()],
    )
    spec = msgspec.structs.replace(ANSWERS, steps=60)
    most_spent = FEW * ANSWERS.alpha


def test_a_stream_without_matrices_is_refused_alone(tmp_path: Path) -> None:
    spec = TemporalSpec(alpha=1.0, own={"ann": OwnMatrices(backward=BACKWARD)})
    run, store = open_release(
        document(spec), None, None, Place("memory", tmp_path).open, secure(), "x"
    )
    ann, bob, later = run.answer([Asked("1", "ann", 3), Asked("2", "bob", 3), Asked("3", "ann", 4)])
    assert (single(ann).sequence, single(later).sequence) == (0, 1)
    assert reason(bob) is Reason.VALUE
    assert list(store.streams()) == [("ann", 2)]


def test_made_up_names_of_streams_fill_no_memory() -> None:
    held = LiveStreams(
        TemporalSpec(alpha=1.0, own={"ann": OwnMatrices(backward=BACKWARD)}), secure()
    )
    made: list[str] = []
    held._spec = SimpleNamespace(own={}, plan=lambda stream: made.append(stream))  # type: ignore
    for n in range(2 * PLANS_HELD):
        held._plan(f"u{n}")
    assert len(made) == 2 * PLANS_HELD and len(held._plans) <= PLANS_HELD


def test_rules_that_were_changed_are_refused(tmp_path: Path) -> None:
    place = Place("sqlite", tmp_path)
    with pytest.raises(CorruptData):
        changed = document(COUNTS).replace(b'"alpha": 1.0', b'"alpha": 9.0')
        open_release(changed, None, None, place.open, secure(), "x")
    with pytest.raises(InsecureRandomness):
        open_release(document(COUNTS), None, None, place.open, seeded(1), "x")
    assert not place.path.exists()
