"""Types of arrays, by what they hold, and arrays that threads can write side by side."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_LINES = 128
"""Bytes of memory that processors pass to each other at once: two lines of a cache."""


def apart(shape: tuple[int, ...], dtype: type = np.float64) -> NDArray[Any]:
    """Zeros that share no cache line with any other array.

    What a thread writes all the time must not lie beside what another does: each write would take
    the line away from the other.

    Examples:
        >>> room = apart((3, 2))
        >>> room.shape, room.ctypes.data % 64, room.flags.c_contiguous
        ((3, 2), 0, True)
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    block = np.zeros(size + 2 * _LINES, dtype=np.uint8)
    first = -block.ctypes.data % _LINES
    # Behind it as much is left as a line may reach over its end.
    return block[first : first + size].view(dtype).reshape(shape)
