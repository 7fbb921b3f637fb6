"""Parquet and Arrow files, some rows at a time, without unpacking more than that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from sfumato.core import limits
from sfumato.core.arrays import Ints
from sfumato.tables.headers import check_names, no_column
from sfumato.tables.problems import BadTable

_MICROSECONDS = len("2024-05-01T08:30:00.123456")


def plain(cell: Any) -> Any:
    """A cell as a text, a number or None: moments and days as ISO 8601 text.

    A decimal that no floating-point number is written as stays a text, with all its digits.

    Examples:
        >>> plain(date(2026, 11, 15)), plain(Decimal("2.5")), plain("a")
        ('2026-11-15', 2.5, 'a')
        >>> plain(Decimal("1234567890.0123456789"))
        '1234567890.0123456789'
    """
    match cell:
        case datetime() | date() | time():
            return cell.isoformat() if cell == cell else None  # a missing moment is not itself
        case Decimal():
            number = float(cell)
            return number if Decimal(repr(number)) == cell else str(cell)
        case timedelta():
            return cell.total_seconds()
        case _:
            return cell


def column_arrays(
    path: str, format: str, wanted: Sequence[str], optional: Sequence[str], size: int
) -> Iterator[dict[str, Any]]:
    """The wanted columns of successive rows of a Parquet or an Arrow file, as arrays."""
    import pyarrow as pa
    import pyarrow.ipc
    import pyarrow.parquet

    if format == "parquet":
        file = pyarrow.parquet.ParquetFile(path)
        chosen = _chosen(path, file.schema_arrow.names, wanted, optional)
        coded = [name for name in chosen if is_text(file.schema_arrow.field(name).type)]
        # Words stay numbers of a list of words: one long word in many rows is held once.
        file = pyarrow.parquet.ParquetFile(path, read_dictionary=coded)
        _check_sizes(path, file.metadata, chosen)
        parts: Iterator[Any] = file.iter_batches(size, columns=chosen)
    else:
        with pa.memory_map(path) as source:
            names = pyarrow.ipc.open_file(source).schema.names
        chosen = _chosen(path, names, wanted, optional)
        only = pyarrow.ipc.IpcReadOptions(included_fields=[names.index(name) for name in chosen])
        reader = pyarrow.ipc.open_file(pa.memory_map(path), options=only)
        parts = (
            part
            for place in range(reader.num_record_batches)
            for part in _sliced(reader.get_batch(place), size)
        )
    for part in parts:
        if part.num_rows:
            yield {name: part[name] for name in chosen}


def _chosen(
    path: str, names: Sequence[str], wanted: Sequence[str], optional: Sequence[str]
) -> list[str]:
    check_names(names, path)
    for name in wanted:
        if name not in names:
            raise no_column(path, name, names)
    return [name for name in (*wanted, *optional) if name in names]


def _check_sizes(path: str, metadata: Any, chosen: Sequence[str]) -> None:
    """What one page may hold is bounded by what its group of rows declares."""
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group)
        for place in range(rows.num_columns):
            column = rows.column(place)
            name = column.path_in_schema
            if name not in chosen and name.split(".")[0] not in chosen:
                continue
            most = max(limits.CHUNK, rows.num_rows * limits.LABEL)
            if column.total_uncompressed_size > most:
                rule = (
                    f"column {name!r} must unpack to at most {most:,} bytes in a "
                    f"group of rows; it declares {column.total_uncompressed_size:,}"
                )
                raise BadTable(path, None, rule)


def is_text(kind: Any) -> bool:
    """Whether a column of Arrow holds text."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def checked_cells(array: Any, name: str, path: str) -> list[Any]:
    """The cells of some rows of a column, if they are within the limits."""
    import pyarrow as pa

    if isinstance(array, pa.DictionaryArray):
        used = array.indices.unique().drop_null()  # of a long list of words, few stand here
        _check_cells(array.dictionary.take(used), name, path)
    else:
        _check_cells(array, name, path)
    try:
        return python_cells(array)
    except (OverflowError, pa.ArrowInvalid):
        # A year beyond Python's calendar, also one that a zone leads to.
        rule = f"column {name!r} must hold moments of the years 1 to 9999"
        raise BadTable(path, None, rule) from None


def is_sound(array: Any) -> bool:
    """Whether nothing in a column is malformed, too large or beyond the calendar.

    Not even a word that nobody uses.
    """
    import pyarrow as pa

    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    words = getattr(array, "dictionary", array)
    if not _in_calendar(words):
        return False
    return _longest(words) <= limits.FIELD and words.nbytes <= limits.CHUNK


def _in_calendar(array: Any) -> bool:
    """Whether Python knows the years of all moments and days of a column, if it has such."""
    import pyarrow as pa
    import pyarrow.compute

    if not (pa.types.is_timestamp(array.type) or pa.types.is_date(array.type)):
        return True
    try:
        ends = microseconds(array) if pa.types.is_timestamp(array.type) else array
        pa.compute.min_max(ends).as_py()
    except (OverflowError, ValueError, pa.ArrowInvalid):
        return False
    return True


def _check_cells(array: Any, name: str, path: str) -> None:
    if _longest(array) > limits.FIELD:
        rule = f"a cell of column {name!r} must have at most {limits.FIELD:,} characters"
        raise BadTable(path, None, rule)
    if array.nbytes > limits.CHUNK:
        rule = f"column {name!r} must take at most {limits.CHUNK:,} bytes in {len(array):,} rows"
        raise BadTable(path, None, rule)


def _longest(array: Any) -> int:
    """Characters of the longest text; 0 where there is none."""
    import pyarrow as pa
    import pyarrow.compute

    if not is_text(array.type) or not len(array):
        return 0
    return pa.compute.max(pa.compute.utf8_length(array)).as_py() or 0


def python_cells(array: Any) -> list[Any]:
    """Cells as Python values; equal words of a coded column are one object."""
    import pyarrow as pa

    if isinstance(array, pa.DictionaryArray):
        used = array.indices.unique().drop_null()
        words = python_cells(array.dictionary.take(used))
        by_code = dict(zip(used.to_pylist(), words, strict=True))
        return [by_code.get(code) for code in array.indices.to_pylist()]
    if pa.types.is_timestamp(array.type) and has_nanoseconds(array):
        return _nanoseconds(array)
    if pa.types.is_timestamp(array.type):
        array = microseconds(array)
    elif pa.types.is_duration(array.type):
        array = array.cast(pa.duration("us"), safe=False)
    cells: list[Any] = array.to_pylist()
    is_plain = is_text(array.type) or pa.types.is_primitive(array.type)
    if is_plain and not pa.types.is_temporal(array.type):
        return cells
    return [plain(cell) for cell in cells]


def microseconds(array: Any) -> Any:
    """Moments as Python knows them: a nanosecond goes down, as the digits of its text are cut."""
    import pyarrow as pa

    kind = pa.timestamp("us", tz=array.type.tz)
    if array.type.unit != "ns":
        return array.cast(kind)  # an error where seconds are too many: they would begin anew
    gone = array.is_null().to_numpy(zero_copy_only=False)
    return pa.array(_ticks(array) // 1_000, mask=gone).cast(kind)


def has_nanoseconds(array: Any) -> bool:
    """Whether some moments have digits that microseconds do not hold."""
    return array.type.unit == "ns" and bool((_ticks(array) % 1_000).any())


def _ticks(array: Any) -> Ints:
    import pyarrow as pa

    ticks: Ints = array.cast(pa.int64()).fill_null(0).to_numpy()
    return ticks


def _nanoseconds(array: Any) -> list[str | None]:
    """Moments as text with all their digits, though Python's know no nanoseconds."""
    pairs = zip(microseconds(array).to_pylist(), (_ticks(array) % 1_000).tolist(), strict=True)
    return [_with_digits(moment, rest) if rest else plain(moment) for moment, rest in pairs]


def _with_digits(moment: datetime, digits: int) -> str:
    text = moment.isoformat(timespec="microseconds")
    return f"{text[:_MICROSECONDS]}{digits:03d}{text[_MICROSECONDS:]}"


def _sliced(batch: Any, size: int) -> Iterator[Any]:
    for start in range(0, batch.num_rows, size):
        yield batch.slice(start, size)
