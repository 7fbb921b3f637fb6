"""Streams whose names are one number, written in two ways: `1` and `1.0`.

A name is a text. Of a column of numbers (Parquet, Arrow, JSON) it is the shortest text of the
number, and `1.0` is called `1`; text, as in every CSV file, is taken as it is. A person whose
number is written in two ways is two streams with a budget each, which no rule can tell from two
people: so nothing is joined, and it is told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import islice

from sfumato.models.encoding import text

_LOOKED_UP = 500
"""A column is written in one way, as a rule: some of its names tell."""


def spelled_twice(
    names: Iterable[str], others: Callable[[list[str]], set[str]]
) -> tuple[str, str] | None:
    """Two streams whose names are one number; None if there are none.

    Args:
        names: The streams of a run.
        others: Which of some names are streams that came before.

    Examples:
        >>> spelled_twice(["7", "1.0", "1"], lambda _: set())
        ('1', '1.0')
        >>> spelled_twice(["7", "01", "1"], lambda names: {"7.0"} & {*names})
        ('7', '7.0')
    """
    own = dict.fromkeys(names)
    plain: dict[str, str] = {}
    for name in sorted(name for name in own if "." in name):
        if (number := _number(name)) not in (None, name):
            if number in own or number in plain:
                return plain.get(number, number), name
            plain[number] = name
    if before := others([*islice(plain, _LOOKED_UP)]):
        number = min(before)
        return number, plain[number]
    whole = islice((name for name in own if name.isdecimal()), _LOOKED_UP)
    if before := others([f"{name}.0" for name in whole]):
        name = min(before)
        return name.removesuffix(".0"), name
    return None


def _number(name: str) -> str | None:
    """The name that a stream of a number has; None if it is none."""
    try:
        number = float(name)
    except ValueError:
        return None
    return text(number) if math.isfinite(number) else None
