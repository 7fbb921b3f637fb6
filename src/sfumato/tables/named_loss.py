"""Losses by name, or from a file of numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import sfumato.core.loss as losses
from sfumato.core.alphabet import Alphabet
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss
from sfumato.tables.documents import read_rows

NAMED_LOSSES = {
    "hamming": losses.hamming,
    "absolute": losses.absolute,
    "squared": losses.squared,
    "euclidean": losses.euclidean,
    "great-circle": losses.great_circle,
}


def named_loss(loss: str | list[list[float]], alphabet: Alphabet) -> Loss:
    """A loss by name, from a CSV file of numbers, or from the numbers themselves.

    Examples:
        >>> named_loss("absolute", Alphabet.of_size(3)).matrix[0]
        array([0., 1., 2.])
    """
    if not isinstance(loss, str):
        if len({len(row) for row in loss}) != 1:
            raise InvalidParameter("loss", "ragged rows", "have rows of equal length")
        return losses.matrix(np.array(loss))
    if loss in NAMED_LOSSES:
        return NAMED_LOSSES[loss](alphabet)
    if not Path(loss).is_file():
        raise InvalidParameter("loss", loss, f"be one of {', '.join(NAMED_LOSSES)}, or a file")
    return losses.matrix(read_matrix(loss), name=Path(loss).name)


def read_matrix(path: str) -> list[list[float]]:
    """Numbers from a CSV file without a header."""
    try:
        rows = [[float(cell) for cell in row] for row in read_rows("file", path)]
    except InvalidParameter:
        raise
    except ValueError:
        raise InvalidParameter("file", path, "hold rows of numbers, separated by commas") from None
    if len({len(row) for row in rows}) != 1:
        raise InvalidParameter("file", path, "hold rows of equal length")
    return rows
