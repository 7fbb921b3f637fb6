"""Colours on terminals that want them; everywhere else a text stays as it is, byte for byte.

What a line is follows from how it begins or from the words in capitals that commands use, so that
no command need say it: problems are red, warnings yellow, what is in order green, names of columns
bold, and what explains dim.
"""

from __future__ import annotations

import os
import re
from enum import Enum
from typing import TextIO


class Role(Enum):
    """What a line is, by the code that a terminal shows it with."""

    PLAIN = ""
    HEADER = "1"
    LEGEND = "2"
    PROBLEM = "31"
    GOOD = "32"
    WARNING = "33"


_ROLES = (
    (Role.PROBLEM, re.compile(r"PROBLEM |sfumato: |FAILED|.*\bFAILED$|.*: WRONG;|.*\bis NOT\b")),
    (
        Role.WARNING,
        re.compile(
            r"warning: |note: |not certified: |cannot be checked: |not checked: |.*: not there;"
            r"|.*\b(?:WORSE|AS GOOD AS SILENT|SIMULATION|INSECURE|THAT IS MUCH|NOT ONE|SECRET)\b"
        ),
    ),
    (
        Role.GOOD,
        re.compile(
            r"the audit found nothing wrong|the certificate fits|the (?:home|ledger) is whole"
            r"|Everything in it fits|.*: good;|the commitment is to this key|checked: "
        ),
    ),
    (Role.HEADER, re.compile(r"next:")),
    (Role.LEGEND, re.compile(r"#|\s+# ")),
)


def role_of(line: str) -> Role:
    """What a line is.

    Examples:
        >>> role_of("warning: few streams"), role_of("12 rows")
        (<Role.WARNING: '33'>, <Role.PLAIN: ''>)
    """
    return next((role for role, begins in _ROLES if begins.match(line)), Role.PLAIN)


def wants_colour(stream: TextIO) -> bool:
    """Whether a stream gets colours.

    A terminal does, unless it is dumb; `NO_COLOR` says never, and `FORCE_COLOR` also in a pipe.
    Both count as they are usually taken: if they are set, and not empty.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return stream.isatty() and os.environ.get("TERM", "") != "dumb"


def painted(text: str, role: Role, stream: TextIO) -> str:
    r"""A text as the stream shows that role.

    Examples:
        >>> import io
        >>> painted("loss", Role.HEADER, io.StringIO())
        'loss'
    """
    if role is Role.PLAIN or not text.strip() or not wants_colour(stream):
        return text
    return f"\x1b[{role.value}m{text}\x1b[0m"
