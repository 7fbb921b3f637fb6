import errno
import io
import os
import sys
import threading
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import FileInUse
from sfumato.tables import writers
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Table
from sfumato.tables.writers import Output, Record
from tests.shell.running import litter
from tests.shell.tables import FORMATS, read

COLUMNS: dict[str, type] = {"person": str, "sequence": int, "released": str, "sip": float}
RECORDS: list[Record] = [
    ("p1", 0, "market", 0.5),
    ("p,2", 1, None, 0.0),
    ('p"3"', 2, "", 1e-17),
    ("p\n4", 2**53, "é ✓", 0.1 + 0.2),
]
SUFFIXES = ("csv", "jsonl", "parquet", "arrow", "csv.gz", "jsonl.gz")

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=8)
records = st.lists(
    st.tuples(
        texts,
        st.integers(-(2**63), 2**63 - 1),
        st.none() | texts,
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    max_size=12,
)


def full_disk(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def as_csv(record: Record) -> list[str]:
    return ["" if field is None else str(field) for field in record]


def written(path: Path, parts: list[list[Record]]) -> Path:
    with Output(Table.at(str(path)), COLUMNS) as output:
        for part in parts:
            output.write(part)
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_comes_back_as_it_was_written(tmp_path: Path, suffix: str) -> None:
    path = written(tmp_path / f"private.{suffix}", [RECORDS[:1], [], RECORDS[1:]])
    found = [list(record.values()) for record in read(path)]
    if suffix.startswith("csv"):
        assert found == [as_csv(record) for record in RECORDS]
    else:
        assert found == [list(record) for record in RECORDS]
    assert list(read(path)[0]) == list(COLUMNS)


@given(records=records, suffix=st.sampled_from(FORMATS), cut=st.integers(0, 12))
def test_the_reader_reads_what_the_writer_wrote(
    tmp_path_factory: pytest.TempPathFactory, records: list[Record], suffix: str, cut: int
) -> None:
    path = tmp_path_factory.mktemp("round") / f"private.{suffix}"
    written(path, [records[:cut], records[cut:]])
    if not records:
        assert read(path) == []
        return
    chunks = Table.at(str(path)).chunks(list(COLUMNS))
    found = [row for chunk in chunks for row in zip(*chunk.columns.values(), strict=True)]
    if suffix == "csv":
        assert [list(record) for record in found] == [as_csv(record) for record in records]
        assert [float(record[3]) for record in found] == [record[3] for record in records]
    else:
        assert found == records


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_appears_under_its_name_only_when_complete(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"private.{suffix}"
    with Output(Table.at(str(path)), COLUMNS) as output:
        output.write(RECORDS)
        assert not path.exists()
    assert path.exists()
    assert litter(tmp_path) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_failure_leaves_the_old_file_and_no_litter(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"private.{suffix}"
    path.write_bytes(b"of an earlier run")
    with pytest.raises(KeyError), Output(Table.at(str(path)), COLUMNS) as output:
        output.write(RECORDS)
        raise KeyError
    assert path.read_bytes() == b"of an earlier run"
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_leaves_neither_file_nor_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, step: str
) -> None:
    monkeypatch.setattr(os, step, full_disk)
    with pytest.raises(OSError, match="No space left"):
        written(tmp_path / f"private.{suffix}", [RECORDS])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_disk_that_fills_up_while_writing_leaves_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    kind = writers._Lines if suffix == "csv" else writers._Columnar
    whole = kind.close

    def half_closed(self: Any) -> None:
        whole(self)
        full_disk()

    monkeypatch.setattr(kind, "close", half_closed)
    with pytest.raises(OSError, match="No space left"):
        written(tmp_path / f"private.{suffix}", [RECORDS])
    assert list(tmp_path.iterdir()) == []


def test_the_content_is_on_disk_before_the_name_points_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, steps = tmp_path / "private.csv", mock.Mock()
    steps.fsync.side_effect, steps.replace.side_effect = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", steps.fsync)
    monkeypatch.setattr(os, "replace", steps.replace)
    written(path, [RECORDS])
    assert [name for name, _, _ in steps.mock_calls] == ["fsync", "replace", "fsync"]
    assert path.exists()


def test_what_a_killed_run_left_is_never_picked_up_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "private.csv"
    with pytest.raises(KeyError), Output(Table.at(str(path)), COLUMNS) as output:
        output.write(RECORDS)
        begun = tmp_path / litter(tmp_path)[0]
        raise KeyError
    begun.write_bytes(b"half of a longer file that was never finished" * 1000)
    written(path, [RECORDS])
    assert [list(record.values()) for record in read(path)] == [as_csv(r) for r in RECORDS]
    assert litter(tmp_path) == []


def test_documents_appear_together_with_the_table(tmp_path: Path) -> None:
    path, rules = tmp_path / "private.csv", tmp_path / "private.csv.plan.json"
    with Output(Table.at(str(path)), COLUMNS, {str(rules): b"{}"}) as output:
        output.write(RECORDS)
        assert not path.exists()
        assert not rules.exists()
    assert (path.exists(), rules.read_bytes()) == (True, b"{}")
    with pytest.raises(KeyError), Output(Table.at(str(path)), COLUMNS, {str(rules): b"new"}):
        raise KeyError
    assert rules.read_bytes() == b"{}"


def test_a_table_has_one_writer_at_a_time(tmp_path: Path) -> None:
    table = Table.at(str(tmp_path / "private.csv"))
    refusals: list[FileInUse] = []

    def intrude() -> None:
        with pytest.raises(FileInUse) as refusal, Output(table, COLUMNS):
            pass
        refusals.append(refusal.value)

    with Output(table, COLUMNS) as output:
        other = threading.Thread(target=intrude)
        other.start()
        other.join()
        output.write(RECORDS)
    assert len(refusals) == 1
    assert len(read(tmp_path / "private.csv")) == len(RECORDS)


def test_equal_tables_are_equal_compressed_files(tmp_path: Path) -> None:
    one, other = (written(tmp_path / f"{name}.csv.gz", [RECORDS]) for name in "ab")
    assert one.read_bytes() == other.read_bytes()


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    target = str(tmp_path / "missing" / "private.csv")
    with pytest.raises(BadTable, match="the folder of the output must exist"):
        Output(Table.at(target), COLUMNS)


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_a_pipe_gets_whole_lines_and_gets_them_at_once(
    monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    class Sink(io.StringIO):
        received = ""

        def flush(self) -> None:
            self.received = self.getvalue()

    sink = Sink()
    monkeypatch.setattr(sys, "stdout", sink)
    with Output(Table.at("-", format), COLUMNS) as output:
        for count, record in enumerate(RECORDS[:2], start=1):
            output.write([record])
            assert sink.received.endswith("\n")
            lines = sink.received.splitlines()
            assert len(lines) == count + (format == "csv")
    assert not sink.closed


def test_a_pipe_that_fails_keeps_the_lines_it_got(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = io.StringIO()
    monkeypatch.setattr(sys, "stdout", sink)
    with pytest.raises(KeyError), Output(Table.at("-"), COLUMNS) as output:
        output.write(RECORDS[:1])
        raise KeyError
    assert sink.getvalue() == "person,sequence,released,sip\np1,0,market,0.5\n"
