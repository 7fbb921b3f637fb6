"""Models, policies and states as versioned bytes: any frozen dataclass of plain fields.

What is stored of a value are the arguments of its constructor, each by the type that the class
declares; what is read goes through the constructor, which checks it. So a class of any room can be
stored without a word here: numbers, text, enumerations, arrays, sparse matrices, tuples, lists,
dictionaries and other such classes.

For each class a reader and a writer are compiled once: msgspec reads the bytes into records of the
declared types, and checks them, in one pass of its own; the constructors then get their arguments.

A field that a class has got since files of it were written says so in its metadata (`later`). Such
fields stand in the order in which they came. While one and all behind it are None they are not
stored, so that older files stay what they were, and are read as before. A class
that fields may hold since then says so itself (`stored_later`): it has no part in their layout.

An envelope names the kind, the version and the layout of what is inside and carries a checksum.
Anything damaged, of another kind, version or layout is refused: no guessing, no pickle, no code in
data, and no class that the reader did not ask for.
"""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    NamedTuple,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sfumato.core.errors import CorruptData, InvalidParameter

MAGIC = b"sfumato\n"
VERSION = 2
Kind = TypeVar("Kind")

_PLAIN = (str, int, float, bool, bytes, NoneType)
_Types: TypeAlias = dict[str, np.dtype[Any]]
_NUMBERS: _Types = {"<f8": np.dtype("<f8")}
# scipy chooses the indices of sparse matrices by their size.
_INDEX_TYPES: _Types = {"<i4": np.dtype("<i4"), "<i8": np.dtype("<i8")}
_LAYOUT_BYTES = 8


class _Envelope(msgspec.Struct, frozen=True, gc=False):
    kind: str
    version: int
    body: bytes
    checksum: bytes
    layout: bytes = b""


class _Array(msgspec.Struct, forbid_unknown_fields=True):
    dtype: str
    shape: tuple[Annotated[int, msgspec.Meta(ge=0)], ...]
    data: bytes


_read_envelope = msgspec.msgpack.Decoder(_Envelope).decode
_encode = msgspec.msgpack.Encoder().encode


def _same(one: Any) -> Any:
    return one


class _Form(NamedTuple):
    """How values of one type are stored.

    Attributes:
        wire: What msgspec reads them as, and checks.
        layout: Tells this form from others.
        write: From a value to what is encoded; `_same` is not called.
        read: From what was read to the value; `_same` is not called.
        plain: Whether it is text, a number or nothing.
    """

    wire: Any
    layout: str
    write: Callable[[Any], Any] = _same
    read: Callable[[Any], Any] = _same
    plain: bool = False


class _Codec(NamedTuple):
    """All that one kind needs, made once: a state is written and read for every answer."""

    name: str
    write: Callable[[Any], Any]
    decode: Callable[[bytes], Any]
    read: Callable[[Any], Any]
    layout: bytes


def to_bytes(thing: object) -> bytes:
    """Encode a model, a policy, a state or any other frozen dataclass of plain fields.

    Examples:
        >>> from sfumato.models.prior import Prior
        >>> len(to_bytes(Prior([0.7, 0.3]))) > 16
        True
    """
    kind: Any = type(thing)
    later = _later(kind)
    used = [place + 1 for place, name in enumerate(later) if getattr(thing, name) is not None]
    codec = _codec(kind, later[max(used, default=0) :])
    begun = _begun_checksum(codec.name, VERSION, codec.layout)
    return _sealed(codec, _encode(codec.write(thing)), begun)


def forms_to_bytes(kind: type, forms: Iterable[Any]) -> list[bytes]:
    """Encode many values of one class that are at hand as they are stored: fields by their names.

    What `to_bytes` makes of a value is what this makes of its fields, without making the value.
    Nothing is checked here: what is read later is.

    Args:
        kind: The class.
        forms: The fields of each value, as plain trees; those that came later are left out.
    """
    codec = _codec(kind, _later(kind))
    begun = _begun_checksum(codec.name, VERSION, codec.layout)
    return [_sealed(codec, body, begun) for body in map(_encode, forms)]


def _sealed(codec: _Codec, body: bytes, begun: Any) -> bytes:
    checksum = begun.copy()
    checksum.update(body)
    return MAGIC + _encode(_Envelope(codec.name, VERSION, body, checksum.digest(), codec.layout))


@lru_cache
def _later(kind: Any) -> tuple[str, ...]:
    """Fields that files of a class may lack, the oldest first."""
    if not is_dataclass(kind):
        raise InvalidParameter("thing", kind.__name__, "be a dataclass of plain fields")
    return tuple(field.name for field in fields(kind) if field.metadata.get("later"))


@lru_cache
def _codec(kind: type, without: tuple[str, ...] = ()) -> _Codec:
    form = _record(kind, without)
    layout = hashlib.sha256(form.layout.encode()).digest()[:_LAYOUT_BYTES]
    decode = msgspec.msgpack.Decoder(form.wire).decode
    return _Codec(kind.__name__, form.write, decode, form.read, layout)


@lru_cache
def _codecs(kind: Any) -> dict[str, dict[bytes, _Codec]]:
    """Those of a kind, or of the kinds of a union, by name and layout."""
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return {one.__name__: {codec.layout: codec for codec in _ages(one)} for one in kinds}


def _ages(kind: type) -> list[_Codec]:
    """Those of files from before and after each field that came later."""
    later = _later(kind)
    return [_codec(kind, later[known:]) for known in range(len(later) + 1)]


def from_bytes(data: bytes, kind: type[Kind]) -> Kind:
    """Decode what `to_bytes` made, if it is of the expected kind, or of one of a union of kinds.

    Raises:
        CorruptData: If the bytes are damaged, of another kind, version or layout.

    Examples:
        >>> from sfumato.models.prior import Prior
        >>> from_bytes(to_bytes(Prior([0.7, 0.3])), Prior).probabilities
        array([0.7, 0.3])
    """
    kinds = _codecs(kind)  # type: ignore[arg-type]
    envelope = _opened(data)
    layouts = kinds.get(envelope.kind)
    if layouts is None:
        raise CorruptData(f"stored data must be of kind {' or '.join(kinds)}; got {envelope.kind}")
    codec = layouts.get(envelope.layout)
    if codec is None:
        raise CorruptData(
            f"stored data of kind {envelope.kind!r} has other fields than in this version"
        )
    try:
        thing: Kind = codec.read(codec.decode(envelope.body))
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError) as problem:
        raise CorruptData(
            f"stored data of kind {envelope.kind!r} is refused: {problem}"
        ) from problem
    return thing


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


def _begun_checksum(kind: str, version: int, layout: bytes) -> Any:
    return hashlib.sha256(f"{kind} {version} ".encode() + layout)


@lru_cache
def _form(hint: Any) -> _Form:
    """The form of a declared type."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return _plain(hint, (hint,))
    if origin in (Union, UnionType):
        return _union(hint, inner)
    if origin is np.ndarray:
        return _array(np.dtype(get_args(inner[1])[0]))
    if hint is sparse.csr_array:
        wire = tuple[tuple[int, int], _Array, _Array, _Array]
        return _Form(wire, "csr", _write_sparse, _read_sparse)
    if origin in (tuple, list):
        return _sequence(origin, inner)
    if origin is dict:
        return _dictionary(_form(inner[1]))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _Form(hint, hint.__name__, attrgetter("value"))
    if is_dataclass(hint):
        return _record(hint)
    raise InvalidParameter("thing", str(hint), "have plain fields, each of a type that is known")


def _plain(hint: Any, kinds: tuple[Any, ...]) -> _Form:
    return _Form(hint, "|".join(sorted(kind.__name__ for kind in kinds)), plain=True)


def _union(hint: Any, kinds: tuple[Any, ...]) -> _Form:
    """One of some types; those that are not plain are told apart by their names."""
    others = [kind for kind in kinds if kind not in _PLAIN]
    if not others:
        return _plain(hint, kinds)
    if len(others) == 1 and len(kinds) == 2 and NoneType in kinds:
        form = _form(others[0])
        return _Form(
            form.wire | None,
            f"{form.layout}?",
            lambda one: None if one is None else form.write(one),
            lambda found: None if found is None else form.read(found),
        )
    if len(others) < len(kinds):
        raise InvalidParameter("thing", str(kinds), "have fields of one sort of type")
    forms = {(get_origin(kind) or kind): _form(kind) for kind in others}
    # What is inside is read as what its name says, when that is known.
    inside = {
        kind.__name__: (msgspec.msgpack.Decoder(form.wire).decode, form.read)
        for kind, form in forms.items()
    }

    def read(found: tuple[str, msgspec.Raw]) -> Any:
        name, content = found
        if name not in inside:
            raise CorruptData(f"a stored part must be one of {', '.join(inside)}; got {name!r}")
        decode, made = inside[name]
        return made(decode(content))

    return _Form(
        tuple[str, msgspec.Raw],
        "|".join(
            form.layout for kind, form in forms.items() if not getattr(kind, "stored_later", False)
        ),
        lambda one: (type(one).__name__, forms[type(one)].write(one)),
        read,
    )


def _sequence(kind: Any, inner: tuple[Any, ...]) -> _Form:
    if kind is list or inner[-1] is Ellipsis:
        form = _form(inner[0])
        wire = list[form.wire] if kind is list else tuple[form.wire, ...]  # type: ignore[name-defined]
        layout, write, read = f"[{form.layout}]", form.write, form.read
        return _Form(
            wire,
            layout,
            _same if write is _same else lambda stored: [write(one) for one in stored],
            _same if read is _same else lambda found: kind([read(one) for one in found]),
        )
    forms = [_form(one) for one in inner]
    return _Form(
        tuple[tuple(form.wire for form in forms)],  # type: ignore[misc]
        f"({', '.join(form.layout for form in forms)})",
        lambda stored: [form.write(one) for form, one in zip(forms, stored, strict=True)],
        lambda found: tuple(form.read(one) for form, one in zip(forms, found, strict=True)),
    )


def _dictionary(form: _Form) -> _Form:
    return _Form(
        dict[str, form.wire],  # type: ignore[name-defined]
        f"{{{form.layout}}}",
        lambda stored: {name: form.write(one) for name, one in stored.items()},
        lambda found: {name: form.read(one) for name, one in found.items()},
    )


def _record(kind: Any, without: tuple[str, ...] = ()) -> _Form:
    """A dataclass: the arguments of its constructor by name; a row of them if all are plain."""
    parameters = inspect.signature(kind).parameters
    hints = get_type_hints(kind)
    forms = {name: _form(hints[name]) for name in parameters if name not in without}
    plain = all(form.plain for form in forms.values())
    wire = msgspec.defstruct(
        kind.__name__,
        [(name, form.wire) for name, form in forms.items()],
        array_like=plain,
        forbid_unknown_fields=True,
    )
    # One expression for each direction, compiled once: a loop over the fields takes twice the time.
    # Nothing but the names of a constructor's arguments is in it.
    known: dict[str, Any] = {"kind": kind}
    parts, arguments = [], []
    for name, form in forms.items():
        known |= {f"write_{name}": form.write, f"read_{name}": form.read}
        parts.append(f"one.{name}" if form.write is _same else f"write_{name}(one.{name})")
        value = f"one.{name}" if form.read is _same else f"read_{name}(one.{name})"
        named = without or parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        arguments.append(f"{name}={value}" if named else value)
    pairs = (f"{name!r}: {part}" for name, part in zip(forms, parts, strict=True))
    written = f"({', '.join(parts)},)" if plain else f"{{{', '.join(pairs)}}}"
    return _Form(
        wire,
        f"{kind.__name__}({', '.join(f'{name}: {form.layout}' for name, form in forms.items())})",
        eval(f"lambda one: {written}", known),
        eval(f"lambda one: kind({', '.join(arguments)})", known),
    )


@lru_cache
def _array(kind: np.dtype[Any]) -> _Form:
    little = kind.newbyteorder("<")
    expected = {little.str: little}

    def write(array: NDArray[Any]) -> Any:
        if array.dtype != little:
            raise InvalidParameter("thing", str(array.dtype), f"have arrays of {little.str}")
        return {"dtype": little.str, "shape": array.shape, "data": array.tobytes()}

    return _Form(_Array, f"array {little.str}", write, lambda found: _read_array(found, expected))


def _read_array(found: _Array, expected: _Types) -> NDArray[Any]:
    kind, shape = expected.get(found.dtype), found.shape
    if kind is None:
        rule = f"be of type {' or '.join(expected)}"
        raise CorruptData(f"a stored array must {rule}; got {found.dtype!r}")
    # A shape of no elements would be free to declare anything.
    if math.prod(shape) * kind.itemsize != len(found.data):
        raise CorruptData("a stored array must have the shape that its content has")
    array = np.frombuffer(found.data, kind).reshape(shape).copy()
    if kind.kind == "f" and not np.isfinite(array).all():
        raise CorruptData("stored numbers must be finite")
    return array


def _write_sparse(rows: sparse.csr_array) -> list[Any]:
    parts = (rows.data, rows.indices, rows.indptr)
    return [rows.shape, *(_array(part.dtype).write(part) for part in parts)]


def _read_sparse(found: tuple[tuple[int, int], _Array, _Array, _Array]) -> sparse.csr_array:
    shape, data, indices, indptr = found
    parts = (_read_array(part, _INDEX_TYPES) for part in (indices, indptr))
    rows = sparse.csr_array((_read_array(data, _NUMBERS), *parts), shape=shape)
    rows.check_format(full_check=True)
    return rows
