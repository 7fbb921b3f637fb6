"""What a method remembers of a series between two values, and how it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter

# Stands in stored arrays for a number that is not known yet; NaN in memory.
_NOTHING = float(np.finfo(np.float64).max)
# Whole numbers up to it are floats; larger ones are stored as two digits of this base.
_EXACT = 2**53
# Types of fields that hold whole numbers, evaluated or as they are written.
_WHOLE = (int, list[int], "int", "list[int]")


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
        return {name: _stored(getattr(self, name), kind) for name, kind in self._kinds.items()}

    def restore(self, arrays: Mapping[str, Floats]) -> None:
        """Go on from what was stored; this memory is a fresh one.

        Raises:
            InvalidParameter: If that is the memory of another kind of method.
        """
        if set(arrays) != set(self._kinds):
            raise InvalidParameter("arrays", sorted(arrays), "be those of this method")
        for name, given in arrays.items():
            fresh = getattr(self, name)
            stored = np.where(given == _NOTHING, np.nan, given)
            if self._kinds[name] in _WHOLE:
                stored = _joined(stored, np.ndim(fresh))
            if name not in self.growing and np.shape(fresh) != stored.shape:
                raise InvalidParameter("arrays", "other shapes", "be those of this method")
            setattr(self, name, _like(fresh, stored))
        if not self.consistent():
            raise InvalidParameter("arrays", "other shapes", "be those of this method")

    def consistent(self) -> bool:
        """Whether restored arrays have the shapes that compiled loops rely on."""
        return True

    @property
    def _kinds(self) -> dict[str, Any]:
        """The fields that are stored, and their types."""
        stored = (part for part in fields(self) if part.name not in self.parameters)  # type: ignore[arg-type]
        return {part.name: part.type for part in stored}


@dataclass(slots=True)
class Nothing(Memory):
    """The memory of a method that has none."""


def _stored(value: Any, kind: Any) -> Floats:
    if kind in _WHOLE and any(abs(each) > _EXACT for each in np.ravel(np.array(value, object))):
        exact = np.array(value, dtype=object)
        digits = (exact // _EXACT, exact % _EXACT)
        value = np.stack([np.asarray(digit, dtype=np.float64) for digit in digits], axis=-1)
    numbers = np.array(value, dtype=np.float64)
    return np.where(np.isnan(numbers), _NOTHING, numbers)


def _joined(stored: Floats, depth: int) -> Any:
    """Whole numbers of any size, from one float each or from two digits."""
    whole = np.vectorize(int, otypes=[object])(stored)
    if stored.ndim > depth and stored.shape[-1] == 2:
        whole = whole[..., 0] * _EXACT + whole[..., 1]
    return np.asarray(whole, dtype=object)


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
