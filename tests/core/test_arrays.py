"""Room of threads: no line of a cache is written by two of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import MarkovChain
from sfumato.core.arrays import apart
from sfumato.solver.few_output_loops import interior_room
from sfumato.solver.solving_tables import sighted_solving_tables
from sfumato.stream.fleet_arrays import StreamArrays
from tests.compiled import CHAINS, policy_of

LINE = 128


def lines_of(array: np.ndarray[Any, Any]) -> range:
    first = array.ctypes.data
    return range(first // LINE, (first + array.nbytes - 1) // LINE + 1)


def arrays_in(room: Any) -> Iterator[np.ndarray[Any, Any]]:
    if isinstance(room, np.ndarray):
        yield room
    elif isinstance(room, tuple):
        for part in room:
            yield from arrays_in(part)


def in_lines(room: Any) -> set[int]:
    return {line for array in arrays_in(room) for line in lines_of(array)}


def has_its_lines(room: np.ndarray[Any, Any]) -> bool:
    """Whether every line that it touches is in the block of memory that was made for it."""
    block: Any = room
    while isinstance(block.base, np.ndarray):
        block = block.base
    lines = lines_of(room)
    end = block.ctypes.data + block.nbytes
    return bool(block.ctypes.data <= lines.start * LINE and lines.stop * LINE <= end)


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.bool_, np.uint64])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (7, 3), (2, 5, 11), (4_099,)])
def test_arrays_apart_are_zeros_like_any_other(shape: tuple[int, ...], dtype: type) -> None:
    array = apart(shape, dtype)
    np.testing.assert_array_equal(array, np.zeros(shape, dtype), strict=True)
    assert array.flags.c_contiguous and array.flags.writeable and array.flags.aligned


@given(shape=st.tuples(st.integers(1, 9), st.integers(1, 40)))
def test_every_line_that_an_array_touches_is_in_its_own_block(shape: tuple[int, int]) -> None:
    assert has_its_lines(apart(shape))


def test_no_array_has_a_line_of_another() -> None:
    rooms = [apart((size,), np.int64) for size in range(1, 60)]
    spans = [in_lines(room) for room in rooms]
    assert len(set().union(*spans)) == sum(map(len, spans))


def test_threads_write_no_line_of_each_other() -> None:
    """Kept channels, and far-sighted programs of a small and a larger alphabet."""
    crowds = [StreamArrays.under(policy_of("letters"), CHAINS["letters"], 8, threads=3)]
    for size in (4, 12):
        even, pairs = np.full((size, size), 1 / size), 2 * size
        tree = (np.array([[-1, 0, pairs]]), np.zeros(1), np.zeros(pairs + size, np.int64))
        orders = np.tile(np.arange(size, dtype=np.uint16), (pairs + size, 1))
        symbols = np.zeros(pairs, np.int64)
        tables = sighted_solving_tables(np.ones((pairs, size)), symbols, *tree, orders)
        crowds.append(StreamArrays(MarkovChain.from_matrix(even), tables, 0.1, 8, threads=3))
    for crowd in crowds:
        names = np.arange(crowd.chain.size)  # read, and never written
        rooms = [list(arrays_in(crowd.room(worker))) for worker in range(3)]
        written = [
            tuple(one for one in room if one.size and not np.array_equal(one, names))
            for room in rooms
        ]
        spans = list(map(in_lines, written))
        assert len(set().union(*spans)) == sum(map(len, spans))
        # Arrays of any other kind lie apart by chance only.
        assert len(sum(written, ())) > 9 and all(map(has_its_lines, sum(written, ())))


def test_the_room_of_a_program_is_its_own() -> None:
    one, two = interior_room(5, 8), interior_room(5, 8)
    assert not in_lines(one) & in_lines(two)
