"""What a method remembers of a series between two values, and how it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter

_NOTHING = float(np.finfo(np.float64).max)
"""Stands in stored arrays for a number that is not known yet; NaN in memory."""


class Memory:
    """A dataclass of numbers and arrays of them; changed in place, under the lock of a release.

    Attributes:
        parameters: Fields that belong to the method and are not stored.
        growing: Fields whose size changes as the series goes.
    """

    __slots__ = ()
    parameters: ClassVar[frozenset[str]] = frozenset()
    growing: ClassVar[frozenset[str]] = frozenset()

    def arrays(self) -> dict[str, Floats]:
        """All that is stored, by name, as copies."""
        return {name: _stored(getattr(self, name)) for name in self._names()}

    def restore(self, arrays: Mapping[str, Floats]) -> None:
        """Go on from what was stored; this memory is a fresh one.

        Raises:
            InvalidParameter: If that is the memory of another kind of method.
        """
        if set(arrays) != set(self._names()):
            raise InvalidParameter("arrays", sorted(arrays), "be those of this method")
        for name, given in arrays.items():
            fresh, stored = getattr(self, name), np.where(given == _NOTHING, np.nan, given)
            if name not in self.growing and np.shape(fresh) != stored.shape:
                raise InvalidParameter("arrays", "other shapes", "be those of this method")
            setattr(self, name, _like(fresh, stored))
        if not self.consistent():
            raise InvalidParameter("arrays", "other shapes", "be those of this method")

    def consistent(self) -> bool:
        """Whether restored arrays have the shapes that compiled loops rely on."""
        return True

    def _names(self) -> list[str]:
        return [part.name for part in fields(self) if part.name not in self.parameters]  # type: ignore[arg-type]


def _stored(value: object) -> Floats:
    numbers = np.array(value, dtype=np.float64)
    return np.where(np.isnan(numbers), _NOTHING, numbers)


def _like(fresh: object, stored: Floats) -> Any:
    """A stored number or array, of the kind of a fresh one."""
    match fresh:
        case np.ndarray():
            return np.array(stored, dtype=fresh.dtype)
        case list():
            return stored.tolist()
        case int():
            return int(stored)
        case _:
            return float(stored)
