"""Rows that coins decided, each with the row of its true value in its channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.channel import Channel
from sfumato.core.randomness import BITS, integer_weights
from sfumato.stream.checked_columns import CheckedColumns
from sfumato.stream.plan import Plan
from sfumato.stream.replay_loops import fair_rows


@dataclass(frozen=True, slots=True, eq=False)
class DrawnRows:
    """Rows whose channels are not constants.

    Attributes:
        rows: Which they are.
        places: The places of their true symbols; -1 for a value outside the alphabet, of which
            a substitute left.
        fair: Probability of each output, given the true value.
        symbols: What each output says.
        widths: How many outputs there are.
        columns: Which of them left.
    """

    rows: Ints
    places: Ints
    fair: Floats
    symbols: Ints
    widths: Ints
    columns: Ints

    @property
    def possible(self) -> bool:
        """Whether every output is one that its true value can have."""
        return bool((self.fair[np.arange(len(self.rows)), self.columns] > 0.0).all())

    @classmethod
    def of(cls, plan: Plan, columns: CheckedColumns, places: Ints) -> Self:
        """The rows that coins decided, under a plan with a policy.

        Args:
            plan: The rule.
            columns: All rows.
            places: The places of their true symbols.
        """
        assert plan.policy is not None
        followed = columns.followed
        rows = np.flatnonzero(followed.tells)
        kept, solved = followed.channels.of(followed.tells), followed.solved
        wide = [found.design.channel.outputs.size for found, _ in solved.values()]
        # Where channels are solved at each step, their words take more room than their columns.
        most = plan.policy.tables[0][:, 4].max() if plan.policy.solves else plan.policy.width
        shape = (len(rows), max([int(most), *wide]))
        drawn = cls(
            rows=rows,
            places=places[rows],
            fair=np.zeros(shape),
            symbols=np.zeros(shape, dtype=np.int64),
            widths=np.zeros(len(rows), dtype=np.int64),
            columns=kept.columns.copy(),
        )
        made = (kept.chosen, kept.parts, kept.blends, drawn.places)
        fair_rows(plan.policy.tables, *made, drawn.fair, drawn.symbols, drawn.widths)
        # Channels that were solved, and substitutes of unknown values, are few.
        for row in np.flatnonzero((kept.chosen < 0) | (drawn.places < 0)).tolist():
            at, place = int(rows[row]), int(drawn.places[row])
            if at in solved:
                design, output = solved[at]
                channel = design.design.channel
                drawn.columns[row] = channel.column(output)
                symbols = design.patterns[channel.outputs, 0]
            else:
                node = int(kept.chosen[row])
                channel = plan.policy.channel(node, int(kept.parts[row]), kept.blends[row])
                symbols, said = channel.outputs, columns.left.released[at]
                if plan.sight is not None:
                    symbols = plan.policy.outputs(node, kept.blends[row])
                    said = columns.left.signals[at]
                drawn.columns[row] = channel.column(int(said))
            fair = fair_substitute(followed.masses[at], channel)
            if place >= 0:
                fair = np.ldexp(channel.weights[place].astype(np.float64), -BITS)
            drawn.widths[row] = fair.size
            drawn.fair[row, : fair.size] = fair
            drawn.symbols[row, : fair.size] = symbols
        return drawn


def fair_substitute(masses: Floats, channel: Channel) -> Floats:
    """Probability of each output for a value outside the alphabet.

    A substitute is drawn as the adversary expects a value, and so are its outputs.
    """
    weights = integer_weights((masses / masses.sum())[None])
    shares = np.ldexp(weights[0].astype(np.float64), -BITS)
    return np.asarray(portable.dot(shares, channel.probabilities))
