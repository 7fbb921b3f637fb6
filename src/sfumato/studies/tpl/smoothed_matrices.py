r"""Transition matrices of TPL's experiments: those printed, and identities that were smoothed.

Equation 28 adds $s$ to every cell of the identity and divides each row by its sum. With $s$ in
every cell the figures drawn from it do not come out; with $s/50$ in every cell they do, for either
size (erratum 28). Both readings are kept, and a third one, $s$ as what is added to a whole row.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.temporal.loss_function import LossFunction

SHOWN_SIZE = 50
"""Cells among which one `s` is spread so that the paper's Figure 7 comes out."""


class Reading(StrEnum):
    """What `s` of Equation 28 is."""

    CELL = "s in every cell, as printed"
    ROW = "s in every row"
    FIFTIETH = "s/50 in every cell"


def smoothed(size: int, s: float, reading: Reading) -> Floats:
    """The identity with `s` added as a reading has it, rows divided by their sums.

    Examples:
        >>> smoothed(2, 0.25, Reading.CELL)
        array([[0.8333, 0.1666],
               [0.1666, 0.8333]])

    References:
        [TPL, Eq. 28]
    """
    each = {Reading.CELL: s, Reading.ROW: s / size, Reading.FIFTIETH: s / SHOWN_SIZE}[reading]
    rows = np.eye(size) + each
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


@cache
def smoothed_loss(size: int, s: float, reading: Reading) -> LossFunction:
    """Its loss function; the same matrix serves several figures."""
    return LossFunction.of(smoothed(size, s, reading))
