"""Coins of a table that is released once: secure unless asked otherwise, addressed row by row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato._digest import digest
from sfumato.errors import InsecureRandomness, InvalidParameter
from sfumato.formats.problems import BadTable
from sfumato.jobs.fit import read_each
from sfumato.models.encoding import Raw, text
from sfumato.randomness import Randomness, secure
from sfumato.streaming.instant import Purpose


def release_coins(
    what: str, randomness: Randomness | None, purpose: Purpose, identity: str | None
) -> Randomness:
    """The coins to release with; guessable ones are refused unless it is a simulation."""
    coins = secure() if randomness is None else randomness
    if coins.simulated and purpose is not Purpose.SIMULATION:
        raise InsecureRandomness(what)
    if identity is not None and not coins.addressed:
        raise InvalidParameter("identity", identity, "come with keyed coins")
    return coins


def row_addresses(
    values: NDArray[np.float64] | NDArray[np.int64],
    names: Sequence[Raw] | None,
    identity: str | None,
    source: str,
) -> list[str]:
    """Where the coins of each row are.

    Without names of the rows, all values are part of the address: the same values get the same
    answers again, and any other ones independent coins.
    """
    if names is None:
        content = digest(values)
        return [f"{content} {row}" for row in range(len(values))]
    told = read_each(names, text, source)
    if len(set(told)) != len(told):
        raise BadTable(source, None, f"column {identity!r} must name each row once")
    return [f"named {name}" for name in told]
