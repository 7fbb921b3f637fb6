import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core import limits
from sfumato.tables.batches import Batch, Column
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Chunk, Table
from tests.shell.tables import SUFFIXES, write

NAMES = ("person", "place", "note")
RECORDS = [(f"p{i % 3}", f"place {i % 5}", f"note {i}") for i in range(200)]


def outcome(parts: Any) -> tuple[list[tuple[int, Any]], str | None]:
    """The rows with their numbers until the first error, and its text."""
    rows: list[tuple[int, Any]] = []
    try:
        for part in parts:
            chunk = part.chunk() if isinstance(part, Batch) else part
            cells = zip(*chunk.columns.values(), strict=True)
            rows += [
                (chunk.first + place, (tuple(chunk.columns), *row))
                for place, row in enumerate(cells)
            ]
    except BadTable as problem:
        return rows, str(problem)
    return rows, None


def assert_alike(table: Table, wanted: Sequence[str], optional: Sequence[str], rows: int) -> None:
    """Batches hold what the strict reader reads, and fail as it does."""
    due, problem = outcome(table.chunks(wanted, optional, 1))
    found, found_problem = outcome(table.batches(wanted, optional, rows))
    assert found_problem == problem
    # Rows of a part that does not end are not handed out; of those that are, none differs.
    assert found == due[: len(found)]
    if problem is None:
        assert len(found) == len(due)


MARKS = [b",", b";", b"\t", b"\n", b"\r\n", b"\r", b'"', b'""', b"\n\n", b"\0", b"\xff", b"\x0b"]
TEXTS = [b"a", b"b,c", b" ", b"1.50", b"NA", "é".encode(), b"\xef\xbb\xbf", b"\xe2\x80\xa8"]
LINES = [b"u1,home\n", b"u2,work\n", b"u3,home\r\n", b"u4,\n", b"p,q,r\n", b'"u,5","x\ny"\n']
QUOTED = [b'"u6","home"\n', b'"u7",work\r\n', b'u8,""\n', b'"u9","say ""no"""\n', b'"u0"']
PIECES = st.sampled_from([*MARKS, *TEXTS, *LINES, *QUOTED])


@given(
    header=st.sampled_from(
        [b"person,place\n", b"place,person\r\n", b"person\n", b'"person",place\n']
    ),
    pieces=st.lists(PIECES, max_size=30),
    rows=st.integers(1, 6),
    packed=st.booleans(),
)
def test_batches_hold_what_the_strict_reader_reads_and_fail_as_it_does(
    tmp_path_factory: pytest.TempPathFactory,
    header: bytes,
    pieces: list[bytes],
    rows: int,
    packed: bool,
) -> None:
    data = header + b"".join(pieces)
    path = tmp_path_factory.mktemp("batches") / ("live.csv.gz" if packed else "live.csv")
    path.write_bytes(gzip.compress(data) if packed else data)
    assert_alike(Table.at(str(path)), ["person"], ["place"], rows)


@given(
    lines=st.lists(
        st.sampled_from(
            [b"u1,home\n", b"u2,work\r\n", b"u3,\n", b'"u,4",home\n', b'u5,"a\n\nb"\n']
        ),
        min_size=1,
        max_size=60,
    ),
    rows=st.integers(1, 9),
)
def test_no_row_is_lost_where_the_reader_changes_lanes(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], rows: int
) -> None:
    path = tmp_path_factory.mktemp("batches") / "live.csv"
    path.write_bytes(b"person,place\n" + b"".join(lines))
    found, problem = outcome(Table.at(str(path)).batches(["place", "person"], rows=rows))
    assert problem is None
    assert [number for number, _ in found] == list(range(1, len(lines) + 1))
    assert_alike(Table.at(str(path)), ["place", "person"], [], rows)


@pytest.mark.parametrize(
    "odd", [b"\n\nb\n", b"\n\n\n", b"\n\xef\xbb\xbfb\nc\n", b'\n"b\n\nc"\n\nd\n', b"\r\n\r\nb"]
)
def test_what_is_odd_is_read_alike_wherever_a_block_ends(tmp_path: Path, odd: bytes) -> None:
    path = tmp_path / "live.csv"
    for length in range(1, 40):
        path.write_bytes(b"person\n" + b"x" * length + odd)
        assert_alike(Table.at(str(path)), ["person"], [], 1)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_gives_the_rows_of_its_chunks(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"live.{suffix}", NAMES, RECORDS)
    for rows in (1, 7, 1000):
        assert_alike(Table.at(str(path)), ["note", "person"], ["absent", "place"], rows)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "arrow"])
def test_plain_rows_come_as_arrays(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"live.{suffix}", NAMES, RECORDS)
    parts = list(Table.at(str(path)).batches(["person"], rows=64))
    assert all(isinstance(part, Batch) for part in parts)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_quotes_around_whole_cells_are_no_obstacle(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "live.csv"
    rows = [b'"u1","home"', b'u2,"work"', b'"u3",', b'u4,""', b'"","a b"', '"é","ü"'.encode()]
    for last in (end, b""):
        path.write_bytes(b'"person","place"\n' + end.join(rows * 50) + last)
        parts = list(Table.at(str(path)).batches(["place", "person"], rows=64))
        assert all(isinstance(part, Batch) for part in parts)
        assert_alike(Table.at(str(path)), ["place", "person"], [], 64)


@pytest.mark.parametrize(
    "cell", [b'"a,b"', b'"a\nb"', b'"say ""no"""', b'a"b"', b'"a"b', b' "a"', b'"a', b'a"', b'"""']
)
@pytest.mark.parametrize("line", [b"%s\n", b"%s,c\n", b"c,%s\n", b'"c",%s\n', b'%s,"c"'])
def test_quotes_inside_a_cell_are_left_to_the_strict_reader(
    tmp_path: Path, line: bytes, cell: bytes
) -> None:
    path = tmp_path / "live.csv"
    path.write_bytes(b"person,place\n" + b'"u1","home"\n' * 3 + line % cell)
    assert_alike(Table.at(str(path)), ["person", "place"], [], 64)


@pytest.mark.parametrize("odd", [b'""\n', b'""', b'"a"\n""', b'""\na', b'"a"\n\n"b"\n'])
@pytest.mark.parametrize("begin", [b"person\n", b'person\n"x"\n', b'person,place\n"x",\n'])
def test_an_empty_cell_that_is_a_line_of_its_own_is_a_row(
    tmp_path: Path, begin: bytes, odd: bytes
) -> None:
    path = tmp_path / "live.csv"
    path.write_bytes(begin + odd)
    for rows in (1, 64):
        assert_alike(Table.at(str(path)), ["person"], ["place"], rows)


def test_a_file_comes_back_to_arrays_after_a_quote(tmp_path: Path) -> None:
    path = tmp_path / "live.csv"
    path.write_bytes(b"person\n" + b"a\n" * 100 + b'"b\nc"\n' + b"a\n" * 100)
    kinds = [type(part) for part in Table.at(str(path)).batches(["person"], rows=10)]
    assert kinds.count(Chunk) < 4
    assert kinds[0] is kinds[-1] is Batch


@pytest.mark.parametrize(
    "data",
    [
        b"a," + b"x" * (limits.FIELD + 1) + b"\n",
        b"a,b\n" * 9 + b"a," + b"x" * (limits.LINE + 1) + b"\nc,d\n",
        b"a,b\n" + b"x" * (limits.LINE + 9),
        b"a,b," + b"x" * limits.FIELD + b"\n",
    ],
)
def test_limits_hold_and_are_told_alike(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "live.csv"
    path.write_bytes(b"person,place\n" + data)
    for rows in (1, 4, 1 << 16):
        assert_alike(Table.at(str(path)), ["person", "place"], [], rows)
        assert outcome(Table.at(str(path)).batches(["person"], rows=rows))[1]


def test_a_bad_line_behind_a_million_good_ones_is_named(tmp_path: Path) -> None:
    path = tmp_path / "live.csv"
    path.write_bytes(b"person,place\n" + b"u1,home\n" * 200_000 + b"u1\n" + b"u1,home\n" * 9)
    _, problem = outcome(Table.at(str(path)).batches(["person"]))
    assert problem is not None
    assert "row 200001: a row must have 2 fields, like the header; it has 1" in problem


def test_a_damaged_archive_is_refused_alike(tmp_path: Path) -> None:
    path = tmp_path / "live.csv.gz"
    packed = gzip.compress(b"person,place\n" + b"u1,home\n" * 9999)
    for data in (packed[:-9], packed[:-8] + b"12345678", b"no archive"):
        path.write_bytes(data)
        assert_alike(Table.at(str(path)), ["person"], [], 1 << 16)


@pytest.mark.parametrize("name", ["absent.csv", "absent.parquet", "absent.jsonl"])
def test_what_is_not_there_is_refused_alike(tmp_path: Path, name: str) -> None:
    assert_alike(Table.at(str(tmp_path / name)), ["person"], [], 9)
    path = write(tmp_path / name.replace("absent", "live"), NAMES, RECORDS)
    assert_alike(Table.at(str(path)), ["nobody"], [], 9)
    empty = write(tmp_path / name.replace("absent", "empty"), NAMES, [])
    assert_alike(Table.at(str(empty)), ["person"], [], 9)


# Columns -----------------------------------------------------------------------------------------

ODD = [
    pa.array(["a", None, "b", "a", None]),
    pa.array(["a", None, "b", "a"]).dictionary_encode(),
    pa.DictionaryArray.from_arrays(pa.array([2, 0, None, 1, 3]), pa.array(["x", "x", "y", None])),
    pa.DictionaryArray.from_arrays(pa.array([2, 0, 1]), pa.array([0.0, -0.0, float("nan")])),
    pa.array([0.0, -0.0, 1.5, None, float("nan"), 1.5]),
    pa.array([1, None, 2**63 - 1, 1]),
    pa.array([True, False, None, True]),
    pa.array([1, 2, 1], type=pa.timestamp("ns")),
    pa.array([1, None], type=pa.date32()),
    pa.array([[1], [1, 2], None, [1]]),
    pa.array([b"a", b"b", b"a"]),
    pa.array([], type=pa.string()),
]


@pytest.mark.parametrize("array", ODD, ids=lambda array: str(array.type))
def test_codes_and_words_are_the_cells(array: Any) -> None:
    column = Column(array)
    codes, words = column.coded()
    assert codes.dtype == np.int64
    assert list(map(repr, (words[code] for code in codes))) == list(map(repr, column.cells()))
    assert len(set(map(repr, words))) == len(words)
    # In the order in which they appear.
    assert list(dict.fromkeys(codes.tolist())) == list(range(len(words)))


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_what_is_too_large_is_refused_as_the_strict_reader_does(
    tmp_path: Path, suffix: str
) -> None:
    long = pa.array(["a"] * 5000 + ["x" * (limits.FIELD + 1)])
    table, path = pa.table({"person": long}), tmp_path / f"live.{suffix}"
    if suffix == "parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        with pyarrow.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    assert_alike(Table.at(str(path)), ["person"], [], 1 << 16)
    found, problem = outcome(Table.at(str(path)).batches(["person"]))
    assert len(found) == 4096
    assert problem is not None
    assert "characters" in problem


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize(
    "array",
    [
        pa.array([0, 253_402_300_800], pa.timestamp("s")),
        pa.array([0, -62_135_596_801], pa.timestamp("s")),
        pa.array([0, 253_402_300_799], pa.timestamp("s", "Pacific/Apia")),
        pa.array([0, 2**64 // 10**6 + 60], pa.timestamp("s")),
        pa.array([0, 4_000_000], pa.date32()),
    ],
)
def test_a_year_beyond_the_calendar_is_refused_by_name(
    tmp_path: Path, suffix: str, array: Any
) -> None:
    path, table = tmp_path / f"far.{suffix}", pa.table({"when": array})
    if suffix == "parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        with pyarrow.ipc.new_file(str(path), table.schema) as file:
            file.write_table(table)
    for read in (Table.at(str(path)).chunks, Table.at(str(path)).batches):
        said = outcome(read(["when"]))[1]
        assert said is not None and "column 'when' must hold moments of the years 1 to 9999" in said
