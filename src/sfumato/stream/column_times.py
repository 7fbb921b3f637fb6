"""The times of many rows as whole numbers in the same order, so that arrays compare them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np

from sfumato.core.arrays import Bools, Ints
from sfumato.models.encoding import Unreadable
from sfumato.stream.column_values import Irregular
from sfumato.tables.arrow_arrays import numbers_of
from sfumato.tables.batches import Column
from sfumato.tables.cells import Time
from sfumato.tables.columnar import microseconds

_EPOCH = datetime(1970, 1, 1)
_TICK = timedelta(microseconds=1)
_EXACT = 2**53
"""Whole numbers up to here are floats, too."""
LATEST = (datetime.max - _EPOCH) // _TICK
"""The last microsecond that Python knows."""
EARLIEST = (datetime.min - _EPOCH) // _TICK


class Clock(Enum):
    """What times are: those of different clocks cannot be compared."""

    WHOLE = "whole numbers"
    REAL = "numbers"
    LOCAL = "moments without a zone"
    ZONED = "moments with a zone"


@dataclass(frozen=True, slots=True)
class TimeKeys:
    """Times as whole numbers that compare as the times do.

    Attributes:
        clock: What they are.
        keys: Whole numbers themselves; the bits of a float, so turned that they rise with it; or
            microseconds.
    """

    clock: Clock
    keys: Ints

    def on(self, clock: Clock) -> TimeKeys:
        """The same times on another clock, if that is possible."""
        if clock is self.clock:
            return self
        if self.clock is not Clock.WHOLE or clock is not Clock.REAL:
            raise Irregular
        if ((self.keys > _EXACT) | (self.keys < -_EXACT)).any():
            raise Irregular
        return TimeKeys(Clock.REAL, _rising(self.keys.astype(np.float64)))

    def time(self, place: int) -> Time:
        """One of them as a time."""
        key = self.keys[place : place + 1]
        match self.clock:
            case Clock.WHOLE:
                return Time.of(int(key[0]))
            case Clock.REAL:
                return Time.of(float(_unrisen(key)[0]))
        moment = _EPOCH + int(key[0]) * _TICK
        return Time.of(moment if self.clock is Clock.LOCAL else moment.replace(tzinfo=UTC))


def time_keys(column: Column, kept: Bools) -> TimeKeys:
    """The times of rows; those that are not kept may be anything.

    Raises:
        Irregular: If one cannot be read, or they are on different clocks.
    """
    read = _by_array(column)
    if read is not None:
        return read
    codes, words = column.coded()
    used = np.zeros(len(words), dtype=np.bool_)
    used[codes[kept]] = True
    try:
        times = [Time.of(word) for word, there in zip(words, used, strict=True) if there]
    except Unreadable:
        raise Irregular from None
    found = keys_of(times)
    keys = np.zeros(len(words), dtype=np.int64)
    keys[used] = found.keys
    return TimeKeys(found.clock, keys[codes])


def time_texts(column: Column) -> list[str]:
    """The one way to write the time of each row."""
    codes, words = column.coded()
    texts = [Time.of(word).text for word in words]
    return [texts[code] for code in codes.tolist()]


def keys_of(times: list[Time]) -> TimeKeys:
    """Times that were read, if all of them are on one clock."""
    values: list[Any] = [time.value for time in times]
    if all(isinstance(value, Decimal) for value in values):
        return _numbers(values)
    if any(isinstance(value, Decimal) for value in values):
        raise Irregular
    zoned = {value.tzinfo is not None for value in values}
    if len(zoned) > 1:
        raise Irregular
    keys = [(value.replace(tzinfo=None) - _EPOCH) // _TICK for value in values]
    clock = Clock.ZONED if zoned == {True} else Clock.LOCAL
    return TimeKeys(clock, np.array(keys, dtype=np.int64))


def _numbers(values: list[Decimal]) -> TimeKeys:
    if all(value == value.to_integral_value() and abs(value) < 2**63 for value in values):
        return TimeKeys(Clock.WHOLE, np.array([int(value) for value in values], dtype=np.int64))
    floats = [float(value) for value in values]
    # Two numbers of many digits may be one float: only what a float says in full is compared so.
    if any(Decimal(repr(one)) != value for one, value in zip(floats, values, strict=True)):
        raise Irregular
    return TimeKeys(Clock.REAL, _rising(np.array(floats)))


def _by_array(column: Column) -> TimeKeys | None:
    """Whole numbers and moments of Parquet and Arrow, and text that is one of them throughout."""
    import pyarrow as pa
    import pyarrow.compute

    array, kinds = column.array, pa.types
    if array.null_count or isinstance(array, pa.DictionaryArray) or not len(array):
        return None
    if kinds.is_string(array.type) or kinds.is_large_string(array.type):
        return _read_text(array)
    if kinds.is_timestamp(array.type):
        clock = Clock.LOCAL if array.type.tz is None else Clock.ZONED
        return _moments(clock, microseconds(array))
    if kinds.is_integer(array.type) and not kinds.is_uint64(array.type):
        return TimeKeys(Clock.WHOLE, numbers_of(array).astype(np.int64))
    return None


def _read_text(array: Any) -> TimeKeys | None:
    import pyarrow as pa
    import pyarrow.compute

    try:
        # Sixteen as 0x10 is a number to this reader alone.
        if not pa.compute.any(pa.compute.match_substring(array, "x", ignore_case=True)).as_py():
            keys = numbers_of(array.cast(pa.int64()))
            return TimeKeys(Clock.WHOLE, keys.astype(np.int64))
    except pa.ArrowInvalid:
        pass
    try:
        return _moments(Clock.LOCAL, array.cast(pa.timestamp("us")))
    except pa.ArrowInvalid:
        return None


def _moments(clock: Clock, array: Any) -> TimeKeys | None:
    import pyarrow as pa

    keys = numbers_of(array.cast(pa.int64())).astype(np.int64)
    # Years that Python does not know are named row by row.
    within = keys.min() >= EARLIEST and keys.max() <= LATEST
    return TimeKeys(clock, keys) if within else None


def _rising(numbers: Any) -> Ints:
    """Bits of floats, so turned that they rise with the numbers; -0 is 0."""
    bits: Ints = (numbers + 0.0).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def _unrisen(keys: Ints) -> Any:
    return np.where(keys < 0, keys ^ np.int64(2**63 - 1), keys).view(np.float64)
