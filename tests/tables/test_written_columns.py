import gzip
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.core.events import Outcome
from sfumato.tables import writers
from sfumato.tables.readers import Table
from sfumato.tables.spelling import Cells, Coded
from sfumato.tables.writers import Output, file_digest

KINDS = {"stream": str, "sequence": int, "released": str, "sip": float, "good": bool}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ["u1", "a,b", 'say "x"', "two\nlines", "\r", "", " ", "é", "\x7f", "\x00", "\\", "a;b", "a\tb"]
)
FLOATS = st.floats() | st.sampled_from([0.0, -0.0, 1.0, 1e-5, 1e16, 999999.5, 1e6, 0.001, 1e-4])
ROWS = st.lists(
    st.tuples(
        TEXTS,
        st.integers(-(2**63), 2**63 - 1),
        st.none() | TEXTS,
        st.none() | FLOATS,
        st.none() | st.booleans(),
    ),
    max_size=9,
)


def shapes(cells: list[Any], kind: type) -> list[Cells]:
    """One column in every way in which it may be given."""
    words = list({repr(cell): cell for cell in cells if cell is not None}.values())
    places = {repr(word): place for place, word in enumerate(words)}
    codes = np.array([places.get(repr(cell), -1) for cell in cells], dtype=np.int64)
    array = pa.array(cells, {str: pa.string(), int: pa.int64(), float: pa.float64()}.get(kind))
    found: list[Cells] = [cells, Coded(codes, words), array, array.dictionary_encode()]
    if kind in (int, float):
        filled = np.array([0 if cell is None else cell for cell in cells], dtype=kind)
        gaps = [cell is None for cell in cells]
        found += [np.ma.masked_array(filled, gaps)] if any(gaps) else [filled]
    return found


def written(path: Path, rows: list[Any], kinds: dict[str, type] = KINDS) -> Path:
    with Output(Table.at(str(path)), kinds) as output:
        output.write(rows)
    return path


@given(
    rows=ROWS,
    suffix=st.sampled_from(["csv", "tsv", "jsonl", "csv.gz"]),
    few=st.sampled_from([0, 0, 200]),
    data=st.data(),
)
@example(rows=[], suffix="csv", few=0, data=None)
def test_columns_are_the_bytes_of_their_records(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], suffix: str, few: int, data: Any
) -> None:
    folder = tmp_path_factory.mktemp("columns")
    due = written(folder / f"due.{suffix}", rows * 2)
    columns: dict[str, Cells] = {}
    for place, (name, kind) in enumerate(KINDS.items()):
        ways = shapes([row[place] for row in rows], kind)
        columns[name] = ways[0] if data is None else data.draw(st.sampled_from(ways))
    found = folder / f"found.{suffix}"
    with (
        mock.patch.object(writers, "_FEW_ROWS", few),
        Output(Table.at(str(found)), KINDS) as output,
    ):
        output.write_columns(columns)
        output.write(rows)
    unpacked = gzip.decompress if suffix.endswith("gz") else bytes
    assert unpacked(found.read_bytes()) == unpacked(due.read_bytes())


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_table_of_one_column_quotes_as_its_records_do(tmp_path: Path, suffix: str) -> None:
    rows = [("a",), ("",), (None,), ("b,c",)]
    due = written(tmp_path / f"due.{suffix}", rows, {"stream": str})
    found = tmp_path / f"found.{suffix}"
    with Output(Table.at(str(found)), {"stream": str}) as output:
        output.write_columns({"stream": [cell for (cell,) in rows]})
    assert found.read_bytes() == due.read_bytes()


@pytest.mark.parametrize(
    "low, high", [(1e-8, 1e-3), (1e-3, 1.0), (1.0, 1e3), (1e3, 1e7), (1e9, 1e18)]
)
def test_floats_are_written_as_python_and_msgspec_write_them(
    tmp_path: Path, low: float, high: float
) -> None:
    rng = np.random.default_rng(7)
    drawn = np.exp(rng.uniform(np.log(low), np.log(high), 4000))
    edges = np.array([1e-4, 1e-3, 1e-2, 1e3, 1e5, 1e6])
    close = [edges, np.nextafter(edges, 0), np.nextafter(edges, np.inf)]
    numbers = np.concatenate([drawn, -drawn, np.round(drawn, 3), np.round(drawn, 6), *close])
    kinds = {"a": float, "b": float}
    for suffix, spelled in (("csv", repr), ("jsonl", lambda x: msgspec.json.encode(x).decode())):
        path = tmp_path / f"found.{suffix}"
        with Output(Table.at(str(path)), kinds) as output:
            output.write_columns({"a": numbers, "b": numbers})
        lines = path.read_text().splitlines()
        texts = [spelled(number) for number in numbers.tolist()]
        due = [f'{{"a":{one},"b":{one}}}' for one in texts]
        if suffix == "csv":
            due = ["a,b", *(f"{one},{one}" for one in texts)]
        assert lines == due


@given(rows=ROWS.filter(bool), suffix=st.sampled_from(["parquet", "arrow"]), data=st.data())
def test_columnar_files_hold_the_values_of_their_records(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], suffix: str, data: Any
) -> None:
    folder = tmp_path_factory.mktemp("columns")
    due, found = written(folder / f"due.{suffix}", rows), folder / f"found.{suffix}"
    with Output(Table.at(str(found)), KINDS) as output:
        output.write_columns(
            {
                name: data.draw(st.sampled_from(shapes([row[place] for row in rows], kind)))
                for place, (name, kind) in enumerate(KINDS.items())
            }
        )
    assert file_digest(found) == file_digest(due)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_groups_of_rows_do_not_tell_how_rows_came(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writers, "_GROUP_ROWS", 100)
    names = np.arange(1234) % 7
    digests = set()
    for step in (1, 33, 100, 250, 1234):
        path = tmp_path / f"{step}.{suffix}"
        with Output(Table.at(str(path)), {"stream": str, "sequence": int}) as output:
            for start in range(0, 1234, step):
                part = names[start : start + step]
                words = [f"u{place}" for place in range(7)]
                output.write_columns({"stream": Coded(part, words), "sequence": part})
        digests.add(file_digest(path))
    assert len(digests) == 1
    if suffix == "parquet":
        assert pyarrow.parquet.read_metadata(path).num_row_groups == 13
    chunks = Table.at(str(path)).chunks(["stream"])
    assert [name for chunk in chunks for name in chunk.columns["stream"]] == [
        f"u{n}" for n in names
    ]


def test_large_cells_are_not_gathered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.core.limits.CHUNK", 1000)
    path = tmp_path / "live.parquet"
    with Output(Table.at(str(path)), {"note": str}) as output:
        for _ in range(5):
            output.write_columns({"note": ["x" * 999] * 2})
    assert pyarrow.parquet.read_metadata(path).num_row_groups == 5


def test_outcomes_and_standard_output_are_written_as_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = next(iter(Outcome)).value
    for rows in (1, 300):
        with Output(Table.at("-"), {"stream": str, "outcome": str}) as output:
            outcomes = Coded(np.zeros(rows, dtype=np.int64), list(Outcome))
            output.write_columns({"stream": ["é"] * rows, "outcome": outcomes})
            output.write([("u2", Outcome.RELEASED)])
        lines = ["stream,outcome", *[f"é,{first}"] * rows, f"u2,{Outcome.RELEASED.value}"]
        assert capsys.readouterr().out.splitlines() == lines
