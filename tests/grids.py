"""Grids of parameters: a cover that every run tries, and the rest, which only slow runs do."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

TURNS = 2
"""How many partners each value of the longest axis meets in every run."""


def covered(*axes: Sequence[Any]) -> list[Any]:
    """Every combination; those beyond a cover of all values, in changing company, are slow.

    Examples:
        >>> [len(one.marks) for one in covered("abc", "xyz")]
        [0, 0, 1, 1, 0, 0, 0, 1, 0]
    """
    longest = max(map(len, axes))
    cover = {
        tuple((turn + shift * place) % len(axis) for place, axis in enumerate(axes))
        for turn in range(longest)
        for shift in range(TURNS)
    }
    return [
        pytest.param(
            *(axis[place] for axis, place in zip(axes, places, strict=True)),
            marks=[] if places in cover else [pytest.mark.slow],
        )
        for places in product(*(range(len(axis)) for axis in axes))
    ]
