"""Small files that ask for much: refused by rule, in little memory."""

import gzip
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from sfumato import Alphabet, MarkovChain, load
from sfumato.core import limits
from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.store import codec, to_bytes
from sfumato.stream.release_document import read_spec
from sfumato.tables.columns import read_columns
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Table
from tests.shell.running import call, refused
from tests.shell.tables import write

LITTLE = 32 << 20


@contextmanager
def little_memory() -> Iterator[None]:
    """What happens inside takes at most some megabytes."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < LITTLE
    finally:
        tracemalloc.stop()


def refusal(path: Path, *wanted: str) -> str:
    with little_memory(), pytest.raises(BadTable) as caught:
        for _ in Table.at(str(path)).chunks(wanted or ("a",)):
            pass
    return str(caught.value)


def test_four_gigabytes_in_one_compressed_line_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n") + gzip.compress(b"x" * (1 << 20)) * 4096)
    assert "row 1: a row must have at most 1,048,576 bytes" in refusal(path)


def test_a_header_without_an_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.csv.gz"
    path.write_bytes(gzip.compress(b"a" * (1 << 20)) * 64)
    assert "at most 1,048,576 bytes" in refusal(path)


@pytest.mark.parametrize("row", ['"' + "x\n" * 600_000, '"\n",' * 300_000])
def test_a_row_of_lines_without_an_end_is_refused(tmp_path: Path, row: str) -> None:
    path = tmp_path / "long.csv"
    path.write_text(f"a,b\n1,2\n{row}")
    assert "row 2: " in refusal(path)


def test_a_field_without_an_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text(f"a,b\n1,{'x' * (limits.FIELD + 1)}\n")
    assert "field larger than field limit" in refusal(path)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_columns_without_an_end_are_refused(tmp_path: Path, suffix: str) -> None:
    names = [f"c{place}" for place in range(limits.COLUMNS + 1)]
    path = write(tmp_path / f"wide.{suffix}", names, [(1,) * len(names)])
    with pytest.raises(BadTable, match="at most 10,000 columns; it has 10,001"):
        list(Table.at(str(path)).chunks(["c1"]))


def test_json_nested_without_an_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.jsonl"
    path.write_text('{"a": ' + "[" * 400_000 + "\n")
    assert "row 1: a line must hold one JSON object that is not nested so deeply" in refusal(path)


def test_a_long_word_in_many_parquet_rows_is_held_once(tmp_path: Path) -> None:
    rows, word = 20_000, "x" * 100_000
    codes = pa.array(np.zeros(rows, dtype=np.int32))
    column = pa.DictionaryArray.from_arrays(codes, pa.array([word]))
    path = tmp_path / "words.parquet"
    pyarrow.parquet.write_table(pa.table({"a": column}), path, compression="zstd")
    assert path.stat().st_size < 10_000  # and two gigabytes if every row had its own
    with little_memory():
        count = sum(len(chunk) for chunk in Table.at(str(path)).chunks(["a"]))
    assert count == rows


def test_a_word_too_long_for_a_cell_of_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "words.parquet"
    column = pa.array(["x" * (limits.FIELD + 1)])
    pyarrow.parquet.write_table(pa.table({"a": column}), path, compression="zstd")
    assert "a cell of column 'a' must have at most 131,072 characters" in refusal(path)


def test_a_parquet_column_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "words.parquet"
    column = pa.array(["x" * 100_000 + str(place) for place in range(100)])
    pyarrow.parquet.write_table(pa.table({"a": column}), path, compression="zstd")
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(limits, "CHUNK", 1 << 20)
    assert "column 'a' must unpack to at most 1,048,576 bytes in a group of rows" in refusal(path)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_rows_that_would_fill_the_memory_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    path = write(tmp_path / f"long.{suffix}", ["a", "b"], [(1, 2)] * 101)
    monkeypatch.setattr(limits, "CELLS", 200)
    with pytest.raises(BadTable, match="must have at most 100 rows; split it"):
        read_columns(Table.at(str(path)), ["a", "b"])
    assert len(read_columns(Table.at(str(path)), ["a"])["a"]) == 101


def test_a_label_without_an_end_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "h.csv", ["stream", "value"], [("u", "a"), ("u", "b" * 1001)])
    refused(call("fit", path, "-o", tmp_path / "m"), "row 2", "at most 1,000 characters")
    path = write(tmp_path / "h.csv", ["stream", "value"], [("u", "a"), ("u" * 1001, "b")])
    refused(call("fit", path, "-o", tmp_path / "m"), "row 2", "at most 1,000 characters")
    with pytest.raises(InvalidParameter, match="at most 1,000 characters each"):
        Alphabet(["a", "b" * 1001])


# Models and other documents -----------------------------------------------------------------------


def sealed(body: bytes) -> bytes:
    """A chain in an envelope whose checksum is right: made by somebody who knows how."""
    layout = codec._codec(MarkovChain).layout
    checksum = codec._checksum("MarkovChain", codec.VERSION, layout, body)
    envelope = codec._Envelope("MarkovChain", codec.VERSION, body, checksum, layout)
    return codec.MAGIC + msgspec.msgpack.encode(envelope)


CHAIN = MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]])


def altered(**changes: object) -> bytes:
    stored = codec._form(MarkovChain).write(CHAIN)
    return sealed(msgspec.msgpack.encode(stored | changes))


def array(shape: list[int], data: bytes = b"") -> dict[str, object]:
    return {"dtype": "<f8", "shape": shape, "data": data}


NESTED = b"\x91" * 1_000_000
BOMBS = {
    "order": altered(order=2_000_000_000),
    "order of one symbol": altered(
        order=2_000_000_000, alphabet=codec._form(Alphabet).write(Alphabet(["only"]))
    ),
    "negative order": altered(order=-3),
    "nested envelope": codec.MAGIC + b"\x81\xa1z" + NESTED,
    "nested body": sealed(b"\x81\xa8alphabet" + NESTED),
    "labels declared": sealed(b"\x81\xa8alphabet\x81\xa6labels\xdd\xff\xff\xff\xff"),
    "bytes declared": codec.MAGIC + b"\x81\xa4body\xc6\xff\xff\xff\xff",
    "shape declared": altered(backoff=array([2**62])),
    "shape of nothing": altered(backoff=array([0, 2**40])),
    "shape left open": altered(initial=array([-1], CHAIN.initial.tobytes())),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_model_that_asks_for_more_than_it_holds_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_bytes(BOMBS[name])
    with little_memory(), pytest.raises(CorruptData, match="m: "):
        load(path)
    refused(call("plan", "-m", path, "--epsilon", 1), path)


def test_a_long_file_that_is_no_model_is_refused_by_its_first_bytes(tmp_path: Path) -> None:
    path = tmp_path / "m"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a terabyte of nothing
    with little_memory(), pytest.raises(CorruptData, match="mark of Sfumato"):
        load(path)


@pytest.mark.parametrize("content", [b"[" * 200_000, b'{"loss": ' + b"[" * 200_000, b"\xff\xfe"])
def test_rules_that_are_none_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "private.csv.plan.json"
    path.write_bytes(content)
    with little_memory(), pytest.raises(CorruptData, match="not the plan of a release"):
        read_spec(path)


def test_documents_without_an_end_are_refused_before_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "endless.csv"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    model = tmp_path / "m"
    model.write_bytes(to_bytes(CHAIN))
    most = "at most 268,435,456 bytes"
    refused(call("design", "--belief", path, "--epsilon", 1), "--belief", most)
    refused(call("implied", "--prior", path, "--epsilon", 1), "--prior", most)
    refused(call("plan", "-m", model, "--epsilon", 1, "--loss", path), most)
    table = write(tmp_path / "t.csv", ["a"], [("x",), ("y",)])
    command = ("privatize", table, "-c", "a", "--epsilon", 1, "-o", tmp_path / "out.csv")
    refused(call(*command, "--prior", path), "prior", most)
    refused(call("temporal", "leakage", "--backward", path, "--epsilon", 1, "--steps", 2), most)


@pytest.mark.parametrize("command", ["design --belief", "implied --prior"])
def test_a_file_of_bytes_is_no_list_of_numbers(command: str, tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(bytes(range(256)))
    refused(call(*command.split(), path, "--epsilon", 1), "must name a file of text in UTF-8")
    path.write_bytes(b"1\0 2")
    refused(call(*command.split(), path, "--epsilon", 1), "without NUL characters")
