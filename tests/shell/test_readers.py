import gzip
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import InvalidParameter
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Chunk, Table
from tests.shell.releasing import STEP
from tests.shell.running import call, done, refused
from tests.shell.tables import FORMATS, SUFFIXES, arrow_table, write

NAMES = ("person", "place", "note")
RECORDS = [(f"p{i % 3}", f"place {i}", f"note {i}") for i in range(11)]
RAW = "raw-value-that-nobody-may-read"


def gathered(chunks: list[Chunk]) -> dict[str, list[object]]:
    return {
        name: [value for chunk in chunks for value in chunk.columns[name]]
        for name in chunks[0].columns
    }


def refusal(path: Path, *wanted: str) -> BadTable:
    """The error of reading a table; it never quotes a value."""
    with pytest.raises(BadTable) as caught:
        list(Table.at(str(path)).chunks(wanted or ("person", "place")))
    assert str(caught.value).startswith(str(path))
    assert RAW not in str(caught.value)
    return caught.value


def made(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


# What is read ------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_gives_the_same_rows(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"live.{suffix}", NAMES, RECORDS)
    chunks = list(Table.at(str(path)).chunks(["place", "person"]))
    assert gathered(chunks) == {
        "place": [place for _, place, _ in RECORDS],
        "person": [person for person, _, _ in RECORDS],
    }


@given(
    count=st.integers(1, 40), size=st.integers(1, 12), suffix=st.sampled_from(FORMATS), group=...
)
def test_chunks_are_the_rows_in_order_each_once(
    tmp_path_factory: pytest.TempPathFactory, count: int, size: int, suffix: str, group: bool
) -> None:
    records = [(f"p{i}", str(i)) for i in range(count)]
    path = tmp_path_factory.mktemp("chunks") / f"live.{suffix}"
    if suffix == "parquet" and group:
        table = arrow_table(["person", "place"], records)
        pyarrow.parquet.write_table(table, path, row_group_size=5)
    else:
        write(path, ["person", "place"], records)
    chunks = list(Table.at(str(path)).chunks(["place"], rows=size))
    following = 1
    for chunk in chunks:
        assert chunk.first == following
        assert 1 <= len(chunk) <= size
        following += len(chunk)
    assert gathered(chunks)["place"] == [place for _, place in records]


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl"])
def test_a_byte_order_mark_is_no_part_of_the_first_field(tmp_path: Path, suffix: str) -> None:
    plain = write(tmp_path / f"plain.{suffix.removesuffix('.gz')}", NAMES, RECORDS).read_bytes()
    marked = b"\xef\xbb\xbf" + plain
    path = made(
        tmp_path / f"live.{suffix}", gzip.compress(marked) if suffix.endswith("gz") else marked
    )
    chunks = list(Table.at(str(path)).chunks(["person"]))
    assert gathered(chunks)["person"] == [person for person, _, _ in RECORDS]


def test_quoted_fields_keep_commas_quotes_and_line_ends(tmp_path: Path) -> None:
    odd = [("a,b", 'say "x"', ""), ("two\nlines", "und\r\nzwei", "é ✓")]
    path = write(tmp_path / "live.csv", NAMES, odd)
    chunks = list(Table.at(str(path)).chunks(NAMES))
    assert list(zip(*gathered(chunks).values(), strict=True)) == odd


def test_line_ends_of_another_system_are_no_part_of_a_field(tmp_path: Path) -> None:
    path = made(tmp_path / "live.csv", b"person,place\r\np1,here\r\np2,there\r\n")
    chunks = list(Table.at(str(path)).chunks(["place"]))
    assert gathered(chunks) == {"place": ["here", "there"]}


def test_blank_lines_are_no_objects(tmp_path: Path) -> None:
    data = b'{"person":"p1","place":"here"}\n\n  \n{"person":"p2"}\n'
    assert refusal(made(tmp_path / "live.jsonl", data)).row == 2


def test_a_last_line_without_an_end_is_a_row(tmp_path: Path) -> None:
    path = made(tmp_path / "live.csv", b"person,place\np1,here\np2,there")
    assert gathered(list(Table.at(str(path)).chunks(["person"]))) == {"person": ["p1", "p2"]}


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_optional_column_is_read_only_where_it_exists(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"live.{suffix}", NAMES, RECORDS)
    (chunk,) = Table.at(str(path)).chunks(["place"], ["note", "absent"])
    assert list(chunk.columns) == ["place", "note"]


def test_numbers_keep_their_kind_where_the_format_has_one(tmp_path: Path) -> None:
    records = [(1, 2.5), (3, 4.0)]
    for suffix in ("jsonl", "parquet", "arrow"):
        path = write(tmp_path / f"live.{suffix}", ["person", "place"], records)
        (chunk,) = Table.at(str(path)).chunks(["person", "place"])
        assert chunk.columns == {"person": [1, 3], "place": [2.5, 4.0]}
        assert isinstance(chunk.columns["person"][0], int)


# How many rows there are -------------------------------------------------------------------------


def test_the_count_for_a_progress_bar_is_about_right(tmp_path: Path) -> None:
    for suffix in ("csv", "jsonl", "parquet"):
        path = write(tmp_path / f"live.{suffix}", NAMES, RECORDS)
        count = Table.at(str(path)).count()
        assert count is not None
        assert abs(count - len(RECORDS)) <= 1


def test_nothing_is_counted_that_only_reading_would_tell(tmp_path: Path) -> None:
    packed = write(tmp_path / "live.csv.gz", NAMES, RECORDS)
    for path in ("-", str(packed), str(tmp_path / "missing.csv"), str(tmp_path / "no.parquet")):
        assert Table.at(path).count() is None


# What is refused: the file, the row and the rule, never the value --------------------------------


@pytest.mark.parametrize(("fields", "found"), [(f"p2,{RAW},x,more", 4), (RAW, 1)])
def test_a_ragged_row_is_named(tmp_path: Path, fields: str, found: int) -> None:
    data = f"person,place,note\np1,here,x\n{fields}\np3,there,x\n".encode()
    problem = refusal(made(tmp_path / "live.csv", data))
    assert problem.row == 2
    assert f"must have 3 fields, like the header; it has {found}" in str(problem)


def test_a_row_with_an_open_quote_is_named(tmp_path: Path) -> None:
    problem = refusal(made(tmp_path / "live.csv", f'person,place\np1,a\np2,"{RAW}\n'.encode()))
    assert problem.row == 2


def test_text_after_a_closing_quote_is_refused(tmp_path: Path) -> None:
    problem = refusal(made(tmp_path / "live.csv", f'person,place\np1,"a"{RAW}\n'.encode()))
    assert problem.row == 1


@pytest.mark.parametrize("row", [1, 3])
def test_a_csv_row_of_another_encoding_is_named(tmp_path: Path, row: int) -> None:
    lines = [b"person,place", *[b"p1,here"] * 4]
    lines[row] = f"{RAW},caf\xe9".encode("latin-1")
    problem = refusal(made(tmp_path / "live.csv", b"\n".join(lines)))
    assert problem.row == row
    assert "must be UTF-8" in str(problem)


def test_a_file_of_wide_characters_is_refused(tmp_path: Path) -> None:
    path = made(tmp_path / "live.csv", f"person,place\np1,{RAW}\n".encode("utf-16"))
    assert "must be UTF-8" in str(refusal(path))


def test_a_nul_character_is_refused(tmp_path: Path) -> None:
    path = made(tmp_path / "live.csv", f"person,place\np1,a\np2,{RAW}\0\n".encode())
    problem = refusal(path)
    assert problem.row == 2
    assert "NUL" in str(problem)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl", "jsonl.gz", "parquet", "arrow"])
def test_an_empty_file_is_refused(tmp_path: Path, suffix: str) -> None:
    data = gzip.compress(b"") if suffix.endswith("gz") else b""
    assert refusal(made(tmp_path / f"live.{suffix}", data)).row is None


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_table_without_rows_is_refused(tmp_path: Path, suffix: str) -> None:
    problem = refusal(write(tmp_path / f"live.{suffix}", ["person", "place"], []))
    assert "must not be empty" in str(problem)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "jsonl"])
def test_when_a_column_is_missing_those_that_are_there_are_listed(
    tmp_path: Path, suffix: str
) -> None:
    path = write(tmp_path / f"live.{suffix}", ["person", "spot"], [("p1", RAW)] * 3)
    problem = refusal(path)
    assert "'place'; it has 'person', 'spot'" in str(problem)


def test_many_columns_are_listed_in_part(tmp_path: Path) -> None:
    names = [f"c{place}" for place in range(50)]
    problem = refusal(write(tmp_path / "live.parquet", names, [tuple(range(50))]))
    assert "'c19' and 30 more" in str(problem)


@pytest.mark.parametrize(
    "rows",
    [
        f"p1,{RAW}\np2,here\n",
        f"{RAW},NA\np2,3\np3,4\n",
        f"p1,{RAW}\np1,here\np2,here\np2,here\n",
        f"{RAW},3\np2,4\n",
        f"{RAW}\n",
    ],
)
def test_a_table_without_a_header_does_not_tell_its_first_row(tmp_path: Path, rows: str) -> None:
    path = tmp_path / "live.csv"
    path.write_text(rows)
    assert "must have a column 'person'; none of its" in str(refusal(path))


SEPARATED = "person{0}place{0}note\np1{0}here{0}a\np2{0}there{0}b\n"


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_the_first_line_tells_what_separates_the_columns(
    tmp_path: Path, mark: str, suffix: str
) -> None:
    data = SEPARATED.format(mark).encode()
    path = made(tmp_path / f"live.{suffix}", gzip.compress(data) if "gz" in suffix else data)
    (chunk,) = Table.at(str(path)).chunks(["person", "place"])
    assert chunk.columns == {"person": ["p1", "p2"], "place": ["here", "there"]}


def test_what_stands_in_quotes_separates_nothing(tmp_path: Path) -> None:
    data = '"a;b";"c,d"\n1;2\n'
    (chunk,) = Table.at(str(made(tmp_path / "live.csv", data.encode()))).chunks(["a;b", "c,d"])
    assert chunk.columns == {"a;b": ["1"], "c,d": ["2"]}


def test_of_two_separators_it_is_the_one_with_the_wanted_columns(tmp_path: Path) -> None:
    path = made(tmp_path / "live.csv", b"person;height, cm;place\np1;180;here\n")
    (chunk,) = Table.at(str(path)).chunks(["person", "height, cm"])
    assert chunk.columns == {"person": ["p1"], "height, cm": ["180"]}


def test_nobody_guesses_between_two_separators(tmp_path: Path) -> None:
    path = str(made(tmp_path / "live.csv", b"person;a,b\np1;2,3\n"))
    with pytest.raises(BadTable, match="a comma or a semicolon: say it with --separator"):
        list(Table.at(path).chunks(["nothing"]))
    with pytest.raises(BadTable, match="'nothing'"):
        list(Table.at(path, separator=";").chunks(["nothing"]))
    (chunk,) = Table.at(path, separator="semicolon").chunks(["a,b"])
    assert chunk.columns == {"a,b": ["2,3"]}


def test_a_separator_is_one_of_three() -> None:
    with pytest.raises(InvalidParameter, match="--separator must be comma, semicolon, tab"):
        Table.at("live.csv", separator="|")


def test_moments_days_and_categories_are_text_in_every_columnar_format(tmp_path: Path) -> None:
    moment, day = datetime(2026, 11, 15, 8, 30), date(2026, 11, 15)
    table = pa.table(
        {
            "moment": pa.array([moment, None], pa.timestamp("ns")),
            "day": pa.array([day, None]),
            "kind": pa.array(["red", None]).dictionary_encode(),
            "price": pa.array([Decimal("2.50"), None]),
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    with pyarrow.ipc.new_file(str(tmp_path / "t.arrow"), table.schema) as file:
        file.write_table(table)
    for suffix in ("parquet", "arrow"):
        (chunk,) = Table.at(str(tmp_path / f"t.{suffix}")).chunks(table.column_names)
        assert chunk.columns == {
            "moment": ["2026-11-15T08:30:00", None],
            "day": ["2026-11-15", None],
            "kind": ["red", None],
            "price": [2.5, None],
        }


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_column_names_that_occur_twice_are_refused(tmp_path: Path, suffix: str) -> None:
    names, record = ["person", "place", "place"], ("p1", RAW, RAW)
    path = tmp_path / f"live.{suffix}"
    if suffix == "csv":
        made(path, f"{','.join(names)}\n{','.join(record)}\n".encode())
    else:
        write(path, names, [record])
    assert "column names must be distinct" in str(refusal(path))


@pytest.mark.parametrize(
    "line", [f'{{"person": "{RAW}"', f'["{RAW}"]', f'"{RAW}"', RAW, f'{{"a": 1}} {RAW}', "7"]
)
def test_a_line_that_is_no_json_object_is_named(tmp_path: Path, line: str) -> None:
    good = '{"person": "p1", "place": "here"}'
    problem = refusal(made(tmp_path / "live.jsonl", f"{good}\n{good}\n{line}\n{good}\n".encode()))
    assert problem.row == 3
    assert "must hold one JSON object" in str(problem)


@pytest.mark.parametrize(
    "line",
    [
        f'{{"person": "p1", "place": "{RAW}", "place": "here"}}',
        f'{{"place": "{RAW}" , "person":"p1","pl\\u0061ce" :"here"}}',
        f'{{"person":"p1","at":"08:00","at":"{RAW}","place":"here"}}',
        f'{{"person":"p1","place":"here","more":{{"a":"{RAW}","a":1}}}}',
        '{"person":"p1","place":"\\"","place":"here"}',
    ],
)
def test_a_field_that_an_object_has_twice_is_refused(tmp_path: Path, line: str) -> None:
    good = '{"person":"p1","place":"here","at":"08:00","more":{"at":"\\":","place":{}}}'
    path = made(tmp_path / "live.jsonl", f"{good}\n{good}\n{line}\n{good}\n".encode())
    problem = refusal(path)
    assert problem.row == 3
    assert "must not have a field twice" in str(problem)
    path.write_text(f"{good}\n{good}\n")
    assert sum(len(chunk) for chunk in Table.at(str(path)).chunks(["person", "place"])) == 2


def test_a_missing_field_of_an_object_is_named(tmp_path: Path) -> None:
    lines = f'{{"person": "p1", "place": "here"}}\n{{"person": "p1", "spot": "{RAW}"}}\n'
    problem = refusal(made(tmp_path / "live.jsonl", lines.encode()))
    assert problem.row == 2
    assert "must have a field 'place'" in str(problem)


def test_a_compressed_file_cut_short_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(b"person,place\n" + b"p1,here\n" * 1000)
    problem = refusal(made(tmp_path / "live.csv.gz", whole[:-12]))
    assert "damaged" in str(problem)


def test_a_plain_file_named_as_compressed_is_refused(tmp_path: Path) -> None:
    assert "damaged" in str(refusal(made(tmp_path / "live.csv.gz", b"person,place\np1,a\n")))


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("kept", [0.3, 0.97])
def test_a_columnar_file_cut_short_is_refused(tmp_path: Path, suffix: str, kept: float) -> None:
    path = write(tmp_path / f"live.{suffix}", NAMES, RECORDS * 50)
    whole = path.read_bytes()
    assert "damaged" in str(refusal(made(path, whole[: int(kept * len(whole))])))


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_text_named_as_a_columnar_file_is_refused(tmp_path: Path, suffix: str) -> None:
    data = b"person,place\n" + f"p1,{RAW}\n".encode() * 50
    assert "damaged" in str(refusal(made(tmp_path / f"live.{suffix}", data)))


def test_an_arrow_stream_is_no_arrow_file(tmp_path: Path) -> None:
    table = arrow_table(["person", "place"], [("p1", RAW)])
    path = tmp_path / "live.arrow"
    with pa.OSFile(str(path), "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert "damaged" in str(refusal(path))


def test_a_folder_is_no_table(tmp_path: Path) -> None:
    for name in ("live.csv", "live.jsonl"):
        (tmp_path / name).mkdir()
        assert "must be one file" in str(refusal(tmp_path / name))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_missing_file_is_named(tmp_path: Path, suffix: str) -> None:
    assert "must exist" in str(refusal(tmp_path / f"live.{suffix}"))


@pytest.mark.parametrize("name", ["live", "live.txt", "live.gz", "live.xlsx"])
def test_a_suffix_that_says_no_format_is_refused(name: str) -> None:
    with pytest.raises(BadTable, match=r"must end in \.csv, \.tsv, \.jsonl, \.parquet or \.arrow"):
        Table.at(name)


def test_what_came_before_a_bad_row_is_given_first(tmp_path: Path) -> None:
    path = made(tmp_path / "live.csv", b"person,place\np1,a\np1,b\np1,c\np1\n")
    chunks = Table.at(str(path)).chunks(["place"], rows=2)
    assert next(chunks).columns == {"place": ["a", "b"]}
    with pytest.raises(BadTable, match="row 4"):
        list(chunks)


# In every command ---------------------------------------------------------------------------------


def test_every_command_that_reads_a_table_takes_a_separator_and_lists_the_columns(
    tmp_path: Path, model: Path
) -> None:
    path = made(tmp_path / "t.csv", b"person;a,b;x\np;1,2;3\nq;2,3;4\np;2,3;3\nq;1,2;4\n")
    out = tmp_path / "out.csv"
    commands: dict[str, list[object]] = {
        "fit": [path, "--stream", "person", "--value", "nothing", "-o", out],
        "release": [path, "-m", model, "--stream", "nothing", "--epsilon", 1, *STEP, "-o", out],
        "audit": [path, "-m", model, "--plan", made(tmp_path / "plan.json", b'{"epsilon": 1}')],
        "privatize": [path, "-c", "nothing", "--epsilon", 1, "-o", out],
        "disclosure": ["-t", path, "-c", "nothing", "--accuracy", 1, "--sigma", 1],
        "publish": ["-t", path, "-c", "nothing", "--accuracy", 1, "--sigma", 1, "-o", out],
        "compare": [path, "--value", "nothing", "--sensitivity", 1, "--epsilon", 1],
        "realtime": [path, "--value", "no", "--sensitivity", 1, "--epsilon", 1, "-o", out],
        "temporal fit": [path, "--stream", "person", "--value", "nothing", "-o", out],
    }
    for command, options in commands.items():
        told = call(*command.split(), *options)
        refused(told, "say it with --separator")
        told = call(*command.split(), *options, "--separator", "semicolon")
        refused(told, "it has 'person', 'a,b', 'x'")
    assert {file.name for file in tmp_path.iterdir()} == {"t.csv", "plan.json"}


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_table_of_another_separator_goes_through(tmp_path: Path, mark: str) -> None:
    rows = [("person", "place"), *((f"p{i % 3}", f"r{i % 2}") for i in range(60))]
    path = made(tmp_path / "h.csv", "".join(f"{p}{mark}{q}\n" for p, q in rows).encode())
    model, out = tmp_path / "m", tmp_path / "out.tsv"
    done("fit", path, "--stream", "person", "--value", "place", "-o", model)
    done("release", path, "-m", model, "--epsilon", 0.5, *STEP, "-o", out)
    assert out.read_text().startswith("person\tsequence\treleased\t")
    done("audit", out, "-m", model)


# Blank lines -------------------------------------------------------------------------------------


def test_a_blank_line_in_a_table_of_one_column_is_a_missing_value(tmp_path: Path) -> None:
    path = made(tmp_path / "one.csv", b"value\n\n5\n\n\r\n7\n\n\n")
    assert gathered(list(Table.at(str(path)).chunks(["value"]))) == {
        "value": ["", "5", "", "", "7"]
    }


def test_a_blank_line_between_rows_of_several_columns_is_refused(tmp_path: Path) -> None:
    path = made(tmp_path / "two.csv", b"person,place\na,1\n\nb,2\n")
    assert "row 2" in str(refusal(path)) and "2 fields" in str(refusal(path))


def test_blank_lines_after_the_last_row_are_no_rows(tmp_path: Path) -> None:
    path = made(tmp_path / "two.csv", b"person,place\na,1\nb,2\n\n\r\n")
    assert gathered(list(Table.at(str(path)).chunks(["person"]))) == {"person": ["a", "b"]}


def test_a_missing_value_in_a_table_of_one_column_does_not_vanish(tmp_path: Path) -> None:
    path = made(tmp_path / "one.csv", b"ans\n" + b"yes\nno\n\n" * 30 + b"no\n")
    command = ("privatize", path, "-c", "ans", "--epsilon", 1, "-o", tmp_path / "out.csv")
    refused(call(*command), "row 3: the value must not be missing; 30 are")
    assert "61 values" in done(*command, "--missing", "drop", "--order", "kept").out


@pytest.mark.parametrize("command", [("realtime", "-", "-o", "-"), ("compare", "-")])
def test_a_blank_line_does_not_shift_a_series(command: tuple[object, ...]) -> None:
    result = call(*command, "--sensitivity", 1, "--epsilon", 1, stdin=b"value\n5\n\n7\n")
    assert result.code == 2 and "row 2: the value must not be empty" in result.err
