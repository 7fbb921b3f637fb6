"""Fingerprints of frozen values: a state may only be continued by the plan that made it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Part = str | int | float | None | NDArray[Any]


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
        # Every bit counts: two floats that print alike are two.
        return "float", part.hex().encode()
    return type(part).__name__, str(part).encode()


def content(value: object) -> str:
    """Hash a frozen value with everything in it, however deep.

    A field that is added to a dataclass is part of its hash from then on. What has a fingerprint
    is known by that.

    Raises:
        TypeError: For what has no content that could be read, such as a function.

    Examples:
        >>> content((1.0, "a")) == content((1.0, "a")), content((1, "a")) == content((1.0, "a"))
        (True, False)
    """
    return _content(value, {})


def fields_content(value: object) -> str:
    """The same from the fields of a dataclass, for its own fingerprint."""
    return _of_fields(value, {})


# Hashes by identity, with the objects, so that no identity is used again.
_Hashes = dict[int, tuple[object, str]]


def _content(value: object, hashes: _Hashes) -> str:
    # A series has thousands of noises that are one object: its table is hashed once.
    if id(value) not in hashes:
        hashes[id(value)] = value, _read(value, hashes)
    return hashes[id(value)][1]


def _read(value: object, hashes: _Hashes) -> str:
    fingerprint = getattr(value, "fingerprint", None)
    if isinstance(fingerprint, str):
        return digest(type(value).__name__, fingerprint)
    match value:
        case Enum():
            return digest(type(value).__name__, value.name)
        case None | str() | int() | float():
            return digest(value)
        case np.ndarray() if value.dtype.kind in "biuf":
            return digest(value)
        case np.generic():
            return digest(np.asarray(value))
        case Mapping():
            parts = sorted((_content(k, hashes), _content(v, hashes)) for k, v in value.items())
            return digest("mapping", *(part for pair in parts for part in pair))
        case Sequence() | frozenset():
            each = [_content(part, hashes) for part in value]
            return digest("sequence", *(each if isinstance(value, Sequence) else sorted(each)))
        case _ if is_dataclass(value) and not isinstance(value, type):
            return _of_fields(value, hashes)
    raise TypeError(f"a {type(value).__name__} has no content to be known by; give a fingerprint")


def _of_fields(value: object, hashes: _Hashes) -> str:
    pairs = [(part.name, getattr(value, part.name)) for part in fields(value)]  # type: ignore[arg-type]
    parts = (word for name, held in pairs for word in (name, _content(held, hashes)))
    return digest(type(value).__qualname__, *parts)
