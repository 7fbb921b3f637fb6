import json
from collections.abc import Iterator
from itertools import pairwise
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core import limits
from sfumato.tables.batches import Batch
from sfumato.tables.chunks import Chunk
from sfumato.tables.csv_rows import CsvRows
from sfumato.tables.json_rows import JsonRows
from sfumato.tables.lines import Lines
from sfumato.tables.pipes import Pipe
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Table
from tests.tables.test_batches import PIECES, outcome


class Feed:
    """Parts that come one by one, each when somebody reads."""

    def __init__(self, parts: list[bytes]) -> None:
        self._parts = iter([part for part in parts if part])
        self.read = 0

    def __call__(self, descriptor: int, size: int) -> bytes:
        self.read += 1
        part = next(self._parts, b"")
        assert len(part) <= size
        return part

    def chunks(self, format: str = "csv", size: int = 4096) -> Iterator[Chunk]:
        with mock.patch("sfumato.tables.pipes.os.read", self):
            lines = Lines(Pipe(-1), "-")
            if format == "csv":
                yield from CsvRows(lines, "-", None, ["person"], ["place"]).chunks(size)
            else:
                yield from JsonRows(lines, "-", ["person"], ["place"]).chunks(size)


def told(parts: list[bytes], format: str = "csv") -> list[tuple[int, list[object], int]]:
    """The chunks, and after how many reads each was handed out."""
    feed = Feed(parts)
    return [(one.first, one.columns["person"], feed.read) for one in feed.chunks(format)]


def test_what_is_waiting_comes_together_and_no_row_waits_for_what_follows_it() -> None:
    parts = [b"person,place\nu1,a\nu2,b\nu3", b",c\nu4,d\n", b"u5,e\n", b"u6,f"]
    assert told(parts) == [
        (1, ["u1", "u2"], 1),
        (3, ["u3", "u4"], 2),
        (5, ["u5"], 3),
        (6, ["u6"], 5),
    ]


def test_rows_do_not_wait_for_the_end_of_a_quote() -> None:
    parts = [b'person,place\nu1,a\nu2,"b\n', b'c"\nu3,d\n']
    assert told(parts) == [(1, ["u1"], 1), (2, ["u2"], 2), (3, ["u3"], 2)]


def test_quoted_rows_that_are_whole_come_together() -> None:
    assert told([b'person,place\n"u,1","a\n\nb"\nu2,b\n"u3",c\n']) == [(1, ["u,1", "u2", "u3"], 1)]


def test_objects_do_not_wait_for_a_blank_line_or_the_next_part() -> None:
    parts = [b'{"person":"u1"}\n{"person":2}\n\n', b"\n", b'{"person":"u3"}\n{"per', b'son":"u4"}']
    assert told(parts, "jsonl") == [(1, ["u1", 2], 1), (3, ["u3"], 3), (4, ["u4"], 5)]


@pytest.mark.parametrize(
    "format, parts",
    [
        ("csv", [b"person,place\nu1,a\nu2,b\nu3\nu4,d\n"]),
        ("csv", [b"person,place\nu1,a\nu2,b\n\xff,c\n"]),
        ("jsonl", [b'{"person":"u1"}\n{"person":"u2"}\n{"place":"u3"}\n{"person":"u4"}\n']),
        ("jsonl", [b'{"person":"u1"}\n{"person":"u2"}\n\xff\n']),
    ],
)
def test_rows_before_a_bad_one_are_handed_out_first(format: str, parts: list[bytes]) -> None:
    rows: list[object] = []
    with pytest.raises(BadTable, match="-, row 3: "):
        for chunk in Feed(parts).chunks(format):
            rows += chunk.columns["person"]
    assert rows == ["u1", "u2"]


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory() -> None:
    feed = Feed([b"person,place\nu1,a\n", *[b"x" * (1 << 16)] * 100])
    chunks = feed.chunks()
    assert len(next(chunks)) == 1
    with pytest.raises(BadTable, match=f"row 2: a row must have at most {limits.LINE:,} bytes"):
        next(chunks)
    assert feed.read < 20


OBJECTS = [b'{"person":"u1","place":"a"}\n', b'{"person":2,"place":null}\n', b"\n", b"{}\n", b"x\n"]


@given(
    pieces=st.lists(PIECES, max_size=30),
    objects=st.lists(st.sampled_from(OBJECTS), max_size=9),
    cuts=st.lists(st.integers(0, 120), max_size=9),
    size=st.integers(1, 5),
)
def test_however_a_pipe_is_cut_it_holds_what_a_file_holds(
    tmp_path_factory: pytest.TempPathFactory,
    pieces: list[bytes],
    objects: list[bytes],
    cuts: list[int],
    size: int,
) -> None:
    folder = tmp_path_factory.mktemp("pipes")
    for format, data in (
        ("csv", b"person,place\n" + b"".join(pieces)),
        ("jsonl", b'{"person":"u0","place":"b"}\n' + b"".join(objects)),
    ):
        path = folder / f"live.{format}"
        path.write_bytes(data)
        due, problem = outcome(Table.at(str(path)).chunks(["person"], ["place"], 1))
        if problem is not None:
            problem = problem.replace(str(path), "-")
        places = sorted({0, *cuts, len(data)})
        parts = [data[a:b] for a, b in pairwise(places)]
        found = outcome(Feed(parts).chunks(format, size))
        if problem == "-: the table must not be empty":
            problem = None  # a pipe may end before its first row
        assert found == (due, problem)


def test_rows_of_a_pipe_come_as_arrays() -> None:
    many = b"person,place\n" + b"u1,a\n" * 50
    with (
        mock.patch("sfumato.tables.pipes.os.read", Feed([many, b'"u,2",b\n'])),
        mock.patch("sys.stdin", mock.Mock(fileno=lambda: -1)),
    ):
        found = list(Table.at("-").batches(["person"]))
    assert [(type(part), len(part)) for part in found] == [(Batch, 50), (Batch, 1)]


def test_columns_of_mixed_types_stay_cells() -> None:
    lines = [{"person": 1}, {"person": "1"}] * 20
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    with (
        mock.patch("sfumato.tables.pipes.os.read", Feed([data])),
        mock.patch("sys.stdin", mock.Mock(fileno=lambda: -1)),
    ):
        (chunk,) = Table.at("-", "jsonl").batches(["person"])
    assert isinstance(chunk, Chunk)
    assert chunk.columns["person"] == [1, "1"] * 20
