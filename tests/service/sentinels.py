"""Values that nobody may read anywhere, and how to find them however they are written."""

import base64
import json
import struct
from collections.abc import Iterable
from pathlib import Path

OUTSIDE = "zqOutsideTheAlphabet7Kx"
"""A text that no release knows: it may stand nowhere."""
NUMBER = 918273645.4375
"""A number that no release knows."""
TEXTS = (OUTSIDE, str(NUMBER))


def forms(text: str) -> set[bytes]:
    """A text as it may be written: in encodings, escaped, in base64 at any place, in hex."""
    plain = text.encode()
    found = {plain, text.encode("utf-16-le"), text.encode("utf-16-be"), plain.hex().encode()}
    found |= {plain[::-1], json.dumps(text)[1:-1].encode(), plain.upper(), plain.lower()}
    for shift in range(3):
        # Only the letters that do not depend on what stands before and behind.
        whole = base64.b64encode(b"x" * shift + plain)[4 if shift else 0 : -4]
        found |= {whole, whole.replace(b"+", b"-").replace(b"/", b"_")}
    return found


def number_forms(number: float) -> set[bytes]:
    """A number as it may be written: as text, and as the bytes of a float."""
    return forms(str(number)) | {struct.pack(order, number) for order in ("<d", ">d")}


FORMS = frozenset(forms(OUTSIDE) | number_forms(NUMBER))


def leaks(content: bytes | str) -> list[bytes]:
    """The forms of values that stand in something."""
    found = content.encode(errors="surrogateescape") if isinstance(content, str) else content
    return [form for form in FORMS if form in found]


def files(folder: Path) -> Iterable[Path]:
    """All files below a folder."""
    return [path for path in folder.rglob("*") if path.is_file()]
