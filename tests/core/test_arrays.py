"""Arrays that threads write side by side."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.arrays import apart

LINES = 128
"""Bytes that processors pass to each other: two lines of a cache."""


def owner(array: NDArray[np.float64]) -> NDArray[np.generic]:
    """The block of memory that an array lies in."""
    block = array
    while isinstance(block.base, np.ndarray):
        block = block.base
    return block


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
@given(shape=st.tuples(st.integers(1, 9), st.integers(1, 40)))
def test_every_line_that_an_array_touches_is_its_own(dtype: type, shape: tuple[int, int]) -> None:
    room = apart(shape, dtype)
    block = owner(room)
    first, end = room.ctypes.data, room.ctypes.data + room.nbytes
    assert block.ctypes.data <= first // LINES * LINES
    assert -(-end // LINES) * LINES <= block.ctypes.data + block.nbytes
    assert not room.any() and room.flags.c_contiguous and room.flags.writeable
