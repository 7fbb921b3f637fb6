"""Steps of policies that keep no channels: solved for many streams at once, one value of each."""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Bools, Ints
from sfumato.core.budgets import USELESS_BELOW
from sfumato.core.ledger import Ledgers
from sfumato.stream.fleet_answers import RELEASED
from sfumato.stream.fleet_arrays import PREPARED, Prepared, StreamArrays
from sfumato.stream.fleet_loop import Batch, Details, Moves
from sfumato.stream.next_moves import RELEASE
from sfumato.stream.plan import Plan
from sfumato.stream.replay_loops import find_columns, likelihoods


class SolvedSteps:
    """What the loop of a fleet leaves to a solver, for all streams that stopped.

    Args:
        plan: The rule; with a policy that solves at each step.
        arrays: Beliefs of the streams.
        ledgers: Their accounts.
    """

    def __init__(self, plan: Plan, arrays: StreamArrays, ledgers: Ledgers) -> None:
        assert plan.policy is not None
        self._plan, self._arrays, self._ledgers = plan, arrays, ledgers
        self._tables, self._most = plan.policy.tables, plan.policy.allowed

    def step(self, mode: int, going: Batch, moves: Moves, last: Ints) -> Bools:
        """Let streams do the value at which they stopped; which of them the solver covered."""
        streams, rows = going.streams, going.rows[going.turns]
        due = self._plan.budget.allowances(self._ledgers, streams, self._plan.width)
        allowed = np.minimum(due, self._most)
        prepared = self._arrays.prepare(streams, allowed)
        quick: Bools = (prepared.status == PREPARED) & (allowed >= USELESS_BELOW).all(axis=1)
        if mode == RELEASE:
            quick &= moves.cells[rows] >= 0
        else:
            quick &= (moves.outcomes[rows] == RELEASED) & (moves.signals[rows] < 0)
            left = (moves.released[rows], moves.signals[rows], prepared.columns)
            find_columns(self._tables, prepared.chosen, prepared.blends, *left)
            quick &= prepared.columns >= 0
        if not quick.any():
            return quick
        some, at, moved = prepared.of(quick), rows[quick], streams[quick]
        moves.sequences[at] = self._arrays.moments[moved]
        if mode == RELEASE:
            told = self._arrays.release(some, moves.cells[at], moves.words[at])
            moves.released[at], moves.signals[at], moves.outcomes[at] = told, -1, RELEASED
        else:
            self._detail(some, at, last[moved], moves.details)
            told = self._arrays.inform(some)
        moves.charges[at] = some.charges
        last[moved] = told % len(self._plan.model.alphabet)
        self._ledgers.charge(moved, some.charges, self._plan.width)
        self._arrays.advance(moved)
        self._arrays.moments[moved] += self._plan.width - 1
        going.turns[quick] += 1
        return quick

    def _detail(self, some: Prepared, at: Ints, last: Ints, details: Details) -> None:
        """Put down what is asked of channels beyond their answers."""
        if not len(details.told):
            return
        details.before[at] = last
        drawn = (some.chosen, some.parts, some.blends, some.columns)
        likelihoods(self._tables, *drawn, at, details.told, details.tells)
        if len(details.chosen):
            kept = (details.chosen, details.parts, details.blends, details.columns)
            for room, part in zip(kept, drawn, strict=True):
                room[at] = part
