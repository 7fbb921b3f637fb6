"""An adversary who knows a chain of whole weights, in whole numbers: nothing is rounded.

His belief is kept up to a common factor, so that all of it stays an integer. Nothing is shared with
the package.
"""

from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction

_DIGITS = Context(prec=60)


class ExactAdversary:
    """What is believed about the next value of a stream.

    Args:
        initial: Weights of the first value.
        rows: Weights of the next value after each; all rows have one sum.
    """

    def __init__(self, initial: Sequence[int], rows: Sequence[Sequence[int]]) -> None:
        assert len({sum(row) for row in rows}) == 1
        self._belief, self._rows = list(initial), [list(row) for row in rows]

    def told_by(self, weights: Sequence[Sequence[int]]) -> Fraction:
        """The largest of a(y|x)/P(y) and P(y)/a(y|x) over all values and outputs.

        Args:
            weights: Those of the channel: a row for each value, with one sum.
        """
        assert len({sum(row) for row in weights}) == 1
        whole, worst = sum(self._belief), Fraction(1)
        for column in zip(*weights, strict=True):
            mean = sum(b * weight for b, weight in zip(self._belief, column, strict=True))
            for weight in {min(column), max(column)}:
                ratio = Fraction(weight * whole, mean)
                worst = max(worst, ratio, 1 / ratio)
        return worst

    def sees(self, weights: Sequence[Sequence[int]], column: int) -> None:
        """An output left: carry the belief on."""
        after = [b * row[column] for b, row in zip(self._belief, weights, strict=True)]
        size = range(len(after))
        self._belief = [sum(after[x] * self._rows[x][y] for x in size) for y in size]


def within(ratio: Fraction, epsilon: float) -> bool:
    """Whether a ratio is at most e to the epsilon: proven, with 60 digits of it rounded down."""
    if epsilon == 0:
        return ratio == 1  # e to the 0 needs no digits
    power = _DIGITS.exp(Decimal(epsilon))
    return ratio <= Fraction(power) * (1 - Fraction(1, 10**58))
