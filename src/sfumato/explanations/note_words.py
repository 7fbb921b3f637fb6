"""Notes of a certificate for whoever types commands: arguments of the library by their options."""

from __future__ import annotations

import re

_NAMED = re.compile(r"\((history|values|independent|order)(?:: (\w+))?\)")


def in_options(note: str) -> str:
    """A note with the options of commands in the place of arguments of Python.

    A certificate says the same whoever made it, and is compared letter by letter; so names are
    changed where it is shown.

    Examples:
        >>> in_options("learn it from public records (history) to be safe")
        'learn it from public records (--history) to be safe'
        >>> in_options("shuffle the rows (order: shuffled) to be safe")
        'shuffle the rows (--order shuffled) to be safe'
    """
    return _NAMED.sub(lambda found: f"(--{' '.join(filter(None, found.groups()))})", note)
