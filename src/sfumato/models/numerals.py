"""Numbers as people write them: `$1,200.50`, `1 234,5`, `(300) EUR`, `45 %`.

Which mark groups digits and which one begins the fraction is seen from the whole column, never from
one cell: `1,200` alone may be either.
"""

from __future__ import annotations

import math
import re
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from sfumato.models.encoding import Raw, Unreadable, number

_NUMBER = re.compile(r"[-+]?[0-9][0-9.,]*|[-+]?[.,][0-9]+")
_CODE = re.compile(r"^[A-Za-z]{3}(?=[-+0-9.,(])|(?<=[0-9.,)])[A-Za-z]{3}$")
_PADDED = re.compile(r"[-+]?0[0-9]")
_BLANKS = " \t\u00a0\u2007\u2009\u202f'’_"


@dataclass(frozen=True, slots=True)
class Numerals:
    """How the numbers of a column are written.

    Attributes:
        decimal: The mark that begins the fraction.
        grouped: The mark that groups digits; empty if there is none.
        plain: Whether they are written as programs do, without anything to take away.

    Examples:
        >>> money = Numerals.of(["$1,200.50", "$90"])
        >>> money, money.read("$12,345.6"), money.read(7)
        (Numerals(decimal='.', grouped=',', plain=False), 12345.6, 7.0)
        >>> Numerals.of(["1 234,5", "7,25"]).read("1 000,5")
        1000.5
        >>> Numerals.of(["red", "green"]) is None
        True
    """

    decimal: str = "."
    grouped: str = ""
    plain: bool = True

    @classmethod
    def of(cls, values: Sequence[Raw]) -> Numerals | None:
        """How the values of a column are written, if all of them are numbers; else None."""
        # What begins with a zero is a code: a postal one, a telephone number.
        if any(isinstance(value, str) and _PADDED.match(value.strip()) for value in values):
            return None
        if all(_plain(value) for value in values):
            return cls()
        bare = []
        for value in dict.fromkeys(value for value in values if isinstance(value, str)):
            bare.append(_bare(value))
            if not _NUMBER.fullmatch(bare[-1]):
                return None
        decimal = _decimal(bare)
        numerals = cls(decimal, "," if decimal == "." else ".", plain=False)
        return numerals if all(numerals._readable(value) for value in values) else None

    def read(self, value: Raw) -> float:
        """A finite number, or the rule that was broken."""
        if self.plain or not isinstance(value, str):
            return number(value)
        text = _bare(value)
        integer, _, fraction = text.partition(self.decimal)
        digits = integer.lstrip("+-").split(self.grouped)
        grouped = len(digits) == 1 or (len(digits[0]) < 4 and all(len(d) == 3 for d in digits[1:]))
        if not grouped or self.grouped in fraction or self.decimal in fraction:
            raise Unreadable("must be a number, written like the others")
        return number(f"{integer.replace(self.grouped, '')}.{fraction or '0'}" if text else "")

    def _readable(self, value: Raw) -> bool:
        try:
            self.read(value)
        except Unreadable:
            return False
        return True


# Numbers as programs write them.
PLAIN = Numerals()


def _plain(value: Raw) -> bool:
    try:
        return math.isfinite(number(value))
    except Unreadable:
        return False


@cache
def _changed() -> dict[int, str | None]:
    """What becomes of marks that are no part of a number; there are some sixty currencies."""
    money = (mark for mark in range(sys.maxunicode) if unicodedata.category(chr(mark)) == "Sc")
    return {**dict.fromkeys([*money, *map(ord, _BLANKS + "%‰")]), ord("\u2212"): "-"}


def _bare(text: str) -> str:
    """Without blanks, signs and codes of currencies and per cent; brackets mean a minus."""
    bare = text.strip().translate(_changed())
    bare = _CODE.sub("", bare)
    if bare.startswith("(") and bare.endswith(")"):
        bare = f"-{bare[1:-1]}"
    return bare


def _decimal(bare: Sequence[str]) -> str:
    """The mark that begins fractions: a point, unless the column shows that it is a comma."""
    for text in bare:
        comma, point = text.rfind(","), text.rfind(".")
        if comma >= 0 and point >= 0:
            return "," if comma > point else "."
        if text.count(".") > 1:
            return ","
        if text.count(",") > 1:
            return "."
    # One comma that no three digits follow begins a fraction.
    halves = [text.partition(",") for text in bare if "," in text]
    return "," if any(len(after) != 3 for _, _, after in halves) else "."
