"""Bodies that are nearly as they should be: one or two places of a sound one are spoiled."""

from __future__ import annotations

import base64
import copy
import hashlib
import struct
from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import strategies as st

from tests.service.sentinels import NUMBER, OUTSIDE

JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(OUTSIDE, NUMBER, -NUMBER, [OUTSIDE], {OUTSIDE: NUMBER}, "", "\0", "x" * 5_000, "../x"),
        *(None, True, False, 0, -1, 1, 0.0, -0.0, 1e-320, 1e308, 2**53, 2**70, [], {}, [[[]]]),
        *("nan", "1e400", "2026-13-41", "é\u202e", [None], [0.5, 0.5], {"": ""}),
    ]
).map(copy.deepcopy)
"""What nobody should send: of wrong types, out of range, too long, and values to be looked for."""
FILE = base64.b64encode(b"sfumato\n\x85").decode()
"""How a file begins that is not cut short yet."""


def places(document: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each part of a document."""
    inner: Any = ()
    if isinstance(document, dict):
        inner = document.items()
    elif isinstance(document, list):
        inner = enumerate(document)
    for name, part in inner:
        yield (*above, name)
        yield from places(part, (*above, name))


@st.composite
def spoiled(draw: st.DrawFn, document: Any) -> Any:
    """A document in which something is replaced, left out, added or put a level deeper."""
    made = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 2))):
        found = list(places(made))
        if not found:
            break
        *way, name = draw(st.sampled_from(found))
        part = made
        for step in way:
            part = part[step]
        match draw(st.sampled_from(["replaced", "replaced", "replaced", "gone", "more", "deeper"])):
            case "replaced" if isinstance(part[name], bytes):
                part[name] = draw(spoiled_numbers(part[name]))
            case "replaced" if name == "data" and str(part[name]).startswith(FILE):
                part[name] = draw(spoiled_file(part[name]))
            case "replaced":
                part[name] = draw(JUNK)
            case "gone":
                del part[name]
            case "more" if isinstance(part, dict):
                part[draw(st.sampled_from([OUTSIDE, "note", "policy", "coins"]))] = draw(JUNK)
            case "more":
                part.append(draw(JUNK))
            case _:
                part[name] = [part[name]]
    return made


@st.composite
def spoiled_file(draw: st.DrawFn, data: str) -> str:
    """A file in base64 that is cut, damaged in one place, another one, or wrong inside."""
    content = bytearray(base64.b64decode(data))
    at = draw(st.integers(0, len(content) - 1))
    kinds = ["cut", "damaged", "another", "inside", "inside", "inside"]
    match draw(st.sampled_from(kinds)):
        case "cut":
            del content[at:]
        case "damaged":
            content[at] ^= 1 << draw(st.integers(0, 7))
        case "another":
            content = bytearray(draw(st.sampled_from([b"", OUTSIDE.encode(), b"\x80", b"{}"])))
        case _:
            content = bytearray(draw(_wrong_inside(bytes(content))))
    return base64.b64encode(content).decode()


@st.composite
def _wrong_inside(draw: st.DrawFn, content: bytes) -> bytes:
    """A file that is whole, checksum and all, of a thing that is none."""
    first, _, rest = content.partition(b"\n")
    try:
        envelope = msgspec.msgpack.decode(rest)
        inner = msgspec.msgpack.decode(envelope["body"])
    except (msgspec.DecodeError, TypeError, KeyError, UnicodeDecodeError):
        return content  # it was spoiled before
    try:
        body = msgspec.msgpack.encode(draw(spoiled(inner)))
    except (OverflowError, ValueError, TypeError):  # no file can hold it
        body = b"\x80"
    about = f"{envelope['kind']} {envelope['version']} ".encode()
    envelope["body"] = body
    envelope["checksum"] = hashlib.sha256(about + envelope["layout"] + body).digest()
    return first + b"\n" + msgspec.msgpack.encode(envelope)


@st.composite
def spoiled_numbers(draw: st.DrawFn, content: bytes) -> bytes:
    """The bytes of an array in which one number is another, or one byte is missing."""
    wrong = draw(st.sampled_from([float("nan"), float("inf"), -1.0, 0.0, 1e308, 1e-320, None]))
    if wrong is None or len(content) < 8:
        return content[:-1]
    at = 8 * draw(st.integers(0, len(content) // 8 - 1))
    return content[:at] + struct.pack("<d", wrong) + content[at + 8 :]
