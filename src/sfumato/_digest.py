"""Fingerprints of frozen values: a state may only be continued by the plan that made it."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

Part = str | int | float | None | NDArray[np.float64] | NDArray[np.int64]


def digest(*parts: Part) -> str:
    """Hash parts in order; their kinds and lengths count, so no two lists run together.

    Examples:
        >>> digest("ab", 1) == digest("a", "b1")
        False
    """
    state = hashlib.sha256()
    for part in parts:
        kind, content = _bytes(part)
        state.update(f"{kind}:{len(content)}:".encode())
        state.update(content)
    return state.hexdigest()


def _bytes(part: Part) -> tuple[str, bytes]:
    if isinstance(part, np.ndarray):
        little = part.astype(part.dtype.newbyteorder("<"))
        return f"array{part.shape}{little.dtype.str}", np.ascontiguousarray(little).tobytes()
    if isinstance(part, float):
        return "float", part.hex().encode()
    return type(part).__name__, str(part).encode()
