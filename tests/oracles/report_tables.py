"""Reports of sets of symbols, by their definition: every report there is, from the integers."""

import itertools
import math
from fractions import Fraction

from sfumato.noise.frequency import KaryResponse, Reporting, SubsetSelection, UnaryEncoding

WHOLE = 2**62
Report = tuple[int, ...]


def table(mechanism: Reporting) -> dict[Report, list[Fraction]]:
    """Probability of every report for every true symbol, from the integers, by definition."""
    size = mechanism.size
    found: dict[Report, list[Fraction]] = {}
    for bits in itertools.product((0, 1), repeat=size):
        rows = []
        for true in range(size):
            match mechanism:
                case KaryResponse():
                    honest = WHOLE - (size - 1) * mechanism.other
                    weight = honest if bits[true] else mechanism.other
                    p = Fraction(weight, WHOLE) if sum(bits) == 1 else Fraction(0)
                case UnaryEncoding():
                    p = Fraction(1, 2)
                    for place, bit in enumerate(bits):
                        if place != true:
                            false = Fraction(mechanism.false, WHOLE)
                            p *= false if bit else 1 - false
                case SubsetSelection():
                    kept, d = Fraction(mechanism.kept, WHOLE), mechanism.chosen
                    p = kept / math.comb(size - 1, d - 1)
                    if not bits[true]:
                        p = (1 - kept) / math.comb(size - 1, d)
                    if sum(bits) != d:
                        p = Fraction(0)
                case _:
                    raise AssertionError
            rows.append(p)
        if any(rows):
            found[bits] = rows
    return found
