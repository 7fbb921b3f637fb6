"""Models, policies and states as versioned bytes: any frozen dataclass of plain fields.

What is stored of a value are the arguments of its constructor, each by the type that the class
declares; what is read goes through the constructor, which checks it. So a class of any room can be
stored without a word here: numbers, text, enumerations, arrays, sparse matrices, tuples, lists,
dictionaries and other such classes.

An envelope names the kind, the version and the layout of what is inside and carries a checksum.
Anything damaged, of another kind, version or layout is refused: no guessing, no pickle, no code in
data, and no class that the reader did not ask for.
"""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable
from dataclasses import is_dataclass
from enum import Enum
from functools import lru_cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sfumato.core.errors import CorruptData, InvalidParameter

MAGIC = b"sfumato\n"
VERSION = 2
Kind = TypeVar("Kind")

_PLAIN = (str, int, float, bool, bytes, NoneType)
_INDEX_TYPES = ("<i4", "<i8")  # scipy chooses the indices of sparse matrices by their size
_LAYOUT_BYTES = 8


class _Envelope(msgspec.Struct, frozen=True):
    kind: str
    version: int
    body: bytes
    checksum: bytes
    layout: bytes = b""


_read_envelope = msgspec.msgpack.Decoder(_Envelope).decode
_encode = msgspec.msgpack.Encoder().encode


class _Form(NamedTuple):
    """How values of one type are written as plain ones, and read again."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    layout: str


def to_bytes(thing: object) -> bytes:
    """Encode a model, a policy, a state or any other frozen dataclass of plain fields.

    Examples:
        >>> from sfumato.models.prior import Prior
        >>> back = from_bytes(to_bytes(Prior([0.7, 0.3])), Prior)
        >>> back.probabilities
        array([0.7, 0.3])
    """
    kind: Any = type(thing)
    form, layout = _sealed_form(kind)
    body = _encode(form.write(thing))
    checksum = _checksum(kind.__name__, VERSION, layout, body)
    return MAGIC + _encode(_Envelope(kind.__name__, VERSION, body, checksum, layout))


@lru_cache
def _sealed_form(kind: type) -> tuple[_Form, bytes]:
    """The form of a kind, and a digest of its layout."""
    if not is_dataclass(kind):
        raise InvalidParameter("thing", kind.__name__, "be a dataclass of plain fields")
    form = _form(kind)
    return form, hashlib.sha256(form.layout.encode()).digest()[:_LAYOUT_BYTES]


def from_bytes(data: bytes, kind: type[Kind]) -> Kind:
    """Decode what `to_bytes` made, if it is of the expected kind, or of one of a union of kinds.

    Raises:
        CorruptData: If the bytes are damaged, of another kind, version or layout.
    """
    kinds = {one.__name__: one for one in _options(kind)}
    envelope = _opened(data)
    if envelope.kind not in kinds:
        raise CorruptData(f"stored data must be of kind {' or '.join(kinds)}; got {envelope.kind}")
    form, layout = _sealed_form(kinds[envelope.kind])
    if envelope.layout != layout:
        raise CorruptData(
            f"stored data of kind {envelope.kind!r} has other fields than in this version"
        )
    try:
        read: Kind = form.read(msgspec.msgpack.decode(envelope.body))
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError) as problem:
        raise CorruptData(
            f"stored data of kind {envelope.kind!r} is refused: {problem}"
        ) from problem
    return read


def _opened(data: bytes) -> _Envelope:
    if not data.startswith(MAGIC):
        raise CorruptData("stored data must begin with the mark of Sfumato; it does not")
    try:
        envelope = _read_envelope(data[len(MAGIC) :])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise CorruptData(f"stored data is damaged: {problem}") from problem
    kind, version = envelope.kind, envelope.version
    if version != VERSION:
        raise CorruptData(
            f"stored data of kind {kind!r} must have version {VERSION}; got {version}: "
            "another build wrote it; make it anew"
        )
    if envelope.checksum != _checksum(kind, version, envelope.layout, envelope.body):
        raise CorruptData(f"stored data of kind {kind!r} is damaged: checksum differs")
    return envelope


def _checksum(kind: str, version: int, layout: bytes, body: bytes) -> bytes:
    return hashlib.sha256(f"{kind} {version} ".encode() + layout + body).digest()


def _options(kind: Any) -> tuple[Any, ...]:
    """The kinds of a union; a kind by itself."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


@lru_cache
def _form(hint: Any) -> _Form:
    """The form of a declared type."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return _plain((hint,))
    if origin in (Union, UnionType):
        return _union(inner)
    if origin is np.ndarray:
        return _array(get_args(inner[1])[0])
    if hint is sparse.csr_array:
        return _Form(_write_sparse, _read_sparse, "csr")
    if origin in (tuple, list):
        return _sequence(origin, inner)
    if origin is dict:
        each = _form(inner[1])
        return _Form(
            lambda stored: {name: each.write(one) for name, one in stored.items()},
            lambda found: {_text(name): each.read(one) for name, one in _of(dict, found).items()},
            f"{{{each.layout}}}",
        )
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _Form(lambda one: one.value, hint, f"{hint.__name__}")
    if is_dataclass(hint):
        return _record(hint)
    raise InvalidParameter("thing", str(hint), "have plain fields, each of a type that is known")


def _plain(kinds: tuple[Any, ...]) -> _Form:
    """Text, numbers and nothing."""

    def read(found: Any) -> Any:
        if type(found) is int and int not in kinds and float in kinds:
            return float(found)
        if type(found) not in kinds:
            raise CorruptData(f"a stored field must be {layout}; got {type(found).__name__}")
        return found

    layout = "|".join(sorted(kind.__name__ for kind in kinds))
    return _Form(_as_it_is, read, layout)


def _as_it_is(one: Any) -> Any:
    return one


def _union(kinds: tuple[Any, ...]) -> _Form:
    """One of some types; those that are not plain are told apart by their names."""
    others = [kind for kind in kinds if kind not in _PLAIN]
    if not others:
        return _plain(kinds)
    if len(others) == 1 and len(kinds) == 2 and NoneType in kinds:
        form = _form(others[0])
        return _Form(
            lambda one: None if one is None else form.write(one),
            lambda found: None if found is None else form.read(found),
            f"{form.layout}?",
        )
    if len(others) < len(kinds):
        raise InvalidParameter("thing", str(kinds), "have fields of one sort of type")
    forms = {(get_origin(kind) or kind): _form(kind) for kind in others}
    by_name = {kind.__name__: form for kind, form in forms.items()}

    def read(found: Any) -> Any:
        name, content = _of(list, found, 2)
        if name not in by_name:
            raise CorruptData(f"a stored part must be one of {', '.join(by_name)}; got {name!r}")
        return by_name[name].read(content)

    return _Form(
        lambda one: [type(one).__name__, forms[type(one)].write(one)],
        read,
        "|".join(form.layout for form in forms.values()),
    )


def _sequence(kind: type, inner: tuple[Any, ...]) -> _Form:
    if kind is list or inner[-1] is Ellipsis:
        each = _form(inner[0])
        return _Form(
            lambda stored: [each.write(one) for one in stored],
            lambda found: kind([each.read(one) for one in _of(list, found)]),
            f"[{each.layout}]",
        )
    forms = [_form(one) for one in inner]
    return _Form(
        lambda stored: [form.write(one) for form, one in zip(forms, stored, strict=True)],
        lambda found: tuple(
            form.read(one) for form, one in zip(forms, _of(list, found, len(forms)), strict=True)
        ),
        f"({', '.join(form.layout for form in forms)})",
    )


def _record(kind: Any) -> _Form:
    """A dataclass: the arguments of its constructor by name; a row of them if all are plain."""
    names = list(inspect.signature(kind).parameters)
    hints = get_type_hints(kind)
    forms = {name: _form(hints[name]) for name in names}
    layout = ", ".join(f"{name}: {form.layout}" for name, form in forms.items())
    fields = attrgetter(*names) if len(names) > 1 else lambda one: (getattr(one, names[0]),)
    # Most fields are plain: they are written as they are, without a call.
    others = [(name, one.write) for name, one in forms.items() if one.write is not _as_it_is]

    def write(thing: Any) -> Any:
        parts = dict(zip(names, fields(thing), strict=True))
        for name, each in others:
            parts[name] = each(parts[name])
        return parts

    def read(found: Any) -> Any:
        if not others:
            found = dict(zip(names, _of(list, found, len(names)), strict=True))
        if list(_of(dict, found)) != names:
            raise CorruptData(f"a stored {kind.__name__} must have the fields {', '.join(names)}")
        return kind(**{name: form.read(found[name]) for name, form in forms.items()})

    return _Form(write if others else fields, read, f"{kind.__name__}({layout})")


def _array(kind: Any) -> _Form:
    little = np.dtype(kind).newbyteorder("<")
    expected = little.str

    def write(array: NDArray[Any]) -> Any:
        if array.dtype != little:
            raise InvalidParameter("thing", str(array.dtype), f"have arrays of {expected}")
        return {"dtype": expected, "shape": array.shape, "data": array.tobytes()}

    return _Form(write, lambda found: _read_array(found, (expected,)), f"array {expected}")


def _read_array(found: Any, expected: tuple[str, ...]) -> NDArray[Any]:
    if list(_of(dict, found)) != ["dtype", "shape", "data"]:
        raise CorruptData("a stored array must have a type, a shape and its content")
    kind, shape, data = found.values()
    if kind not in expected:
        raise CorruptData(f"a stored array must be of type {' or '.join(expected)}; got {kind!r}")
    lengths = [_of(int, length) for length in _of(list, shape)]
    # A shape of no elements, or of -1, would be free to declare anything.
    size = math.prod(lengths) * np.dtype(kind).itemsize
    if min(lengths, default=0) < 0 or size != len(_of(bytes, data)):
        raise CorruptData("a stored array must have the shape that its content has")
    array = np.frombuffer(data, dtype=kind).reshape(lengths).copy()
    if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
        raise CorruptData("stored numbers must be finite")
    return array


def _write_sparse(rows: sparse.csr_array) -> list[Any]:
    parts = (rows.data, rows.indices, rows.indptr)
    return [rows.shape, *(_array(part.dtype).write(part) for part in parts)]


def _read_sparse(found: Any) -> sparse.csr_array:
    shape, data, indices, indptr = _of(list, found, 4)
    lengths = tuple(_of(int, length) for length in _of(list, shape, 2))
    parts = [_read_array(part, _INDEX_TYPES) for part in (indices, indptr)]
    rows = sparse.csr_array((_read_array(data, ("<f8",)), *parts), shape=lengths)
    rows.check_format(full_check=True)
    return rows


def _of(kind: type[Kind], found: Any, length: int | None = None) -> Kind:
    """A decoded part, if it is of the kind, and the length, that it must have."""
    if type(found) is not kind or (length is not None and len(found) != length):  # type: ignore[arg-type]
        raise CorruptData("a stored part has another form than its kind")
    return found


def _text(name: object) -> str:
    return _of(str, name)
