"""Coins of a table that is released once: secure unless asked otherwise, addressed row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.digest import digest
from sfumato.core.errors import InsecureRandomness, InvalidParameter
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import (
    Address,
    Domain,
    Randomness,
    row_words,
    secure,
    words_at,
)
from sfumato.models.encoding import Raw, text
from sfumato.tables.cells import read_each
from sfumato.tables.problems import BadTable


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


@dataclass(frozen=True, slots=True)
class RowCoins:
    """Coins of the rows of one table under one plan.

    Attributes:
        source: Where they come from.
        domain: What is released.
        plan: Fingerprint of all that shapes the answers of every row.
        names: Which row is which.
    """

    source: Randomness
    domain: Domain
    plan: str
    names: Sequence[str]

    @property
    def addressed(self) -> bool:
        """Whether coins depend on their address."""
        return self.source.addressed

    def of(self, row: int, own: str = "") -> Randomness:
        """The coins of one row; `own` is what shapes its answer alone, such as its channel."""
        return self.source.at(Address(self.domain, self._plan(own), self.names[row], 0))

    def _plan(self, own: str) -> str:
        return digest(self.plan, own) if own else self.plan

    def words(self, each: int) -> NDArray[np.uint64]:
        """So many words for each row."""
        return row_words(self.source, self.domain, self.plan, self.names, each)

    def each_word(self, own: Sequence[str], which: Ints) -> NDArray[np.uint64]:
        """A word for each row, as `of(row, own[which[row]]).word()`.

        Args:
            own: What shapes answers of some rows alone, such as their channels.
            which: The place of each row's among them.
        """
        if not self.addressed:
            return self.source.words(which.size)
        words = np.empty(which.size, dtype=np.uint64)
        in_turn = np.argsort(which, kind="stable")
        ends = np.flatnonzero(np.diff(which[in_turn])) + 1
        for rows in np.split(in_turn, ends) if which.size else ():
            plan = self._plan(own[which[rows[0]]])
            moments = np.zeros_like(rows)
            words[rows] = words_at(self.source, self.domain, plan, self.names, rows, moments)
        return words


def row_addresses(
    values: Floats | Ints,
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
