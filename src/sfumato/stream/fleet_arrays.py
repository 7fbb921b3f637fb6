"""Many streams under one policy: their beliefs as arrays, and the compiled step on them.

The arrays know no budget and no names; `Fleet` adds those. One stream is an array of one, so a
stream gets the same answers alone and among others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.core import checks, portable
from sfumato.core.arrays import Bools, Floats, Ints, apart
from sfumato.core.belief import Belief
from sfumato.core.budgets import Allowance
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.ledger import FREE, Charge
from sfumato.core.loss import Loss
from sfumato.core.state import StreamState
from sfumato.models.markov import MarkovChain
from sfumato.solver.design_result import Design
from sfumato.solver.loop_tables import LoopTables
from sfumato.solver.policy import Policy, Tables
from sfumato.solver.solving_tables import are_solving
from sfumato.stream import draw_loops, stepping
from sfumato.stream.claim_loops import claims
from sfumato.stream.fleet_threads import FleetThreads
from sfumato.stream.sighted_solve_loops import program_room, solve_sighted_channels
from sfumato.stream.stepping import SIDE_BY_SIDE

PREPARED, EXHAUSTED, MISSED = stepping.PREPARED, stepping.EXHAUSTED, stepping.MISSED


class Prepared(NamedTuple):
    """The channels of one step: row by row for the streams in `which`.

    Attributes:
        which: The streams.
        chosen: The kept channel of each.
        parts: Its mixing weight.
        blends: The integers it is mixed with.
        charges: Leakage under the model and whatever the model.
        status: `PREPARED`, `EXHAUSTED` or `MISSED`.
        columns: The column that was drawn, once it is.
        released: The symbol that it releases.

    In the order of `draw_loops.Ready`.
    """

    which: Ints
    chosen: Ints
    parts: Ints
    blends: Ints
    charges: Floats
    status: Ints
    columns: Ints
    released: Ints

    def of(self, rows: slice | Bools | Ints) -> Prepared:
        """The same for some of the streams."""
        parts: tuple[Any, ...] = tuple(part[rows] for part in self)
        return Prepared(*parts)


def _room(count: int, width: int) -> Prepared:
    """Room for the channels of a step of `count` streams, of at most `width` columns each."""
    return Prepared(
        which=np.arange(count),
        chosen=np.empty(count, dtype=np.int64),
        parts=np.empty(count, dtype=np.int64),
        blends=np.empty((count, width), dtype=np.int64),
        charges=np.empty((count, 2)),
        status=np.empty(count, dtype=np.int64),
        columns=np.empty(count, dtype=np.int64),
        released=np.empty(count, dtype=np.int64),
    )


class _Work(NamedTuple):
    """Work space of `stepping.prepare`."""

    beliefs: Floats
    reached: Floats
    figures: Floats
    leaves: Ints
    mass: Floats
    outs: Floats


def _work(size: int, rows: int, width: int) -> _Work:
    """Work space of a thread for so many symbols, rows of a channel and columns."""
    work = _Work(
        beliefs=apart((SIDE_BY_SIDE, size)),
        reached=apart((SIDE_BY_SIDE, size)),
        figures=apart((4, SIDE_BY_SIDE)),
        leaves=apart((SIDE_BY_SIDE,), np.int64),
        mass=apart((max(rows, size) + 3,)),
        outs=apart((SIDE_BY_SIDE, width)),
    )
    work.figures[:] = 1.0
    return work


class StreamArrays:
    """Beliefs of `count` streams, all at their first value.

    Args:
        chain: What the adversary is assumed to know.
        tables: Kept channels, as in a `Policy`.
        repair_limit: By what part mixing may make a kept channel dearer.
        count: Number of streams.
        threads: How many threads share the work of a step.
        scale: What that is a part of; 0 for the cost of the channel itself.
        loop_tables: The tables as the loops want them, if they were made before.
    """

    def __init__(
        self,
        chain: MarkovChain,
        tables: Tables,
        repair_limit: float,
        count: int,
        threads: int = 1,
        *,
        scale: float = 0.0,
        loop_tables: LoopTables | None = None,
    ) -> None:
        self.chain = chain
        self.repair_limit, self.scale = repair_limit, scale
        self.joints = np.tile(chain.initial.reshape(1, -1), (count, 1))
        self.moments = np.zeros(count, dtype=np.int64)
        self.drifts = np.zeros(count)
        self.threads, self.claims = FleetThreads(threads), claims(threads)
        self.tables, self._solving = tables, are_solving(tables)
        self._loop_tables = LoopTables.of(tables, scale) if loop_tables is None else loop_tables
        width, rows = int(tables[0][:, 3].max()), int(tables[0][:, 1].max())
        self._room = _room(count, width)
        # Of far-sighted steps that are solved the loops take the program, too.
        self._sighted = self._solving and tables[5].size > 0
        self._programs = [program_room(tables) if self._sighted else None for _ in range(threads)]
        self._work = [_work(chain.size, rows, width) for _ in range(threads)]
        # For each thread what `follow` keeps of streams under way, that, and room for contexts.
        self._rooms = [
            (
                apart((7, SIDE_BY_SIDE), np.int64),
                apart((SIDE_BY_SIDE, 2)),
                apart((SIDE_BY_SIDE, 2)),
                apart((SIDE_BY_SIDE, width), np.int64),
                *work,
                apart((self._contexts,)),
                apart((8 * chain.size,)),
            )
            for work in self._work
        ]

    @classmethod
    def under(
        cls, policy: Policy, chain: MarkovChain, count: int, threads: int = 1
    ) -> StreamArrays:
        """Streams under a policy."""
        limit, tables = policy.repair_limit, policy.loop_tables
        return cls(
            chain, policy.tables, limit, count, threads, scale=policy.scale, loop_tables=tables
        )

    def grow(self, count: int) -> None:
        """Make room for `count` streams; those that come are at their first value."""
        more = count - len(self.moments)
        first = np.tile(self.chain.initial.reshape(1, -1), (more, 1))
        self.joints = np.concatenate([self.joints, first])
        self.moments = np.concatenate([self.moments, np.zeros(more, dtype=np.int64)])
        self.drifts = np.concatenate([self.drifts, np.zeros(more)])

    @property
    def _contexts(self) -> int:
        return int(self.joints.shape[1])

    def put(self, stream: int, moment: int, belief: Belief) -> None:
        """Set where a stream stands."""
        self.check(belief)
        self.joints[stream] = belief.joint.ravel()
        self.moments[stream] = moment
        self.drifts[stream] = belief.drift

    def check(self, belief: Belief) -> None:
        """Refuse what is no distribution of this chain's values."""
        joint, error = belief.joint, belief.drift
        if joint.shape != self.chain.initial.shape or not 0 <= error < math.inf:
            raise InvalidParameter("belief", joint.shape, "be one about the values of the chain")
        checks.probabilities("belief", joint.ravel())

    def belief(self, stream: int) -> Belief:
        """Where a stream stands, as a value."""
        axis = min(int(self.moments[stream]), self.chain.order - 1)
        joint = self.joints[stream].reshape(self.chain.initial.shape)
        return Belief(joint.copy(), axis, float(self.drifts[stream]))

    def marginals(self) -> Floats:
        """Belief of every stream about its next value."""
        beliefs = np.empty((len(self.joints), self.chain.size))
        for stream in range(len(beliefs)):
            late = max(0, self.chain.order - 1 - int(self.moments[stream]))
            stride = self.chain.size**late
            running = self._work[0].reached[0]
            total = stepping.marginal(self.joints, stream, stride, beliefs[stream], running)
            beliefs[stream] /= total
        return beliefs

    def prepare(self, which: Ints, allowed: Floats) -> Prepared:
        """Choose and certify the next channel of some streams; each may leak what `allowed` says.

        The result is overwritten by the next call.
        """
        self.threads.settle()
        if len(which) > len(self._room.which):
            self._room = _room(len(self.moments), self._room.blends.shape[1])
        room = self._room.of(slice(len(which)))
        room.which[:] = which
        given = (self.repair_limit, self.scale, *self._streams)
        nodes, local, row_of, costs, weights, _, *others = self._loop_tables
        kept: Any = (nodes, local, row_of, costs, weights, *others)

        def part(rows: slice, worker: int) -> None:
            which, chosen, parts, blends, charges, status, _, _ = some = room.of(rows)
            found: Any = (which, chosen, parts, blends, charges, status, allowed[rows])
            stepping.prepare(*(*kept, *given, len(which), *found, *self._work[worker]))
            if self._solving:
                self._solve(some, allowed[rows], worker)

        self._shared(len(which), part)
        return room

    def release(self, prepared: Prepared, symbols: Ints, words: NDArray[np.uint64]) -> Ints:
        """Draw an output for each true symbol, inform the beliefs; return the released symbols."""

        def part(rows: slice, _worker: int) -> None:
            ready: Any = tuple(prepared.of(rows))
            draw_loops.draw(self.tables, ready, symbols[rows], words[rows])

        self._shared(len(symbols), part)
        return self.inform(prepared)

    def inform(self, prepared: Prepared) -> Ints:
        """Condition the beliefs on the drawn columns; return the symbols that they release."""

        def part(rows: slice, worker: int) -> None:
            ready: Any = tuple(prepared.of(rows))
            draw_loops.inform(*(self.tables, *self._streams, ready, self._work[worker].mass))

        self._shared(len(prepared.which), part)
        return prepared.released

    @property
    def _streams(self) -> tuple[int, Floats, Ints, Floats]:
        """Order of the chain; joint, moment and drift of every stream."""
        return self.chain.order, self.joints, self.moments, self.drifts

    def _solve(self, prepared: Prepared, allowed: Floats, worker: int) -> None:
        """Find the channels of a policy that keeps none."""
        from sfumato.stream.solve_loops import solve_channels

        nodes, _, row_of, costs, _, outputs, _, splits, thresholds, candidates = self.tables
        which, chosen, parts, blends, charges, status, _, _ = prepared
        ready: Any = (which, chosen, parts, blends, charges, status)
        room = self._work[worker]
        work = (room.beliefs[0], room.reached[0])
        if self._sighted:
            tree = (nodes, row_of, costs, outputs, splits, thresholds, candidates, *self._streams)
            found: Any = (len(which), *ready, allowed, self._programs[worker])
            solve_sighted_channels(*tree, *found)
            return
        solve_channels(*(nodes, costs, candidates, *self._streams, *ready, allowed, *work))

    def advance(self, which: Ints) -> None:
        """Carry the beliefs of some streams to their next moment."""

        def part(rows: slice, worker: int) -> None:
            streams = (self.joints, self.moments, self.drifts, which[rows])
            self.chain.carrier(*streams, self._rooms[worker][-2])()

        self._shared(len(which), part)

    def _shared(self, count: int, part: Callable[[slice, int], None]) -> None:
        """Split rows evenly among the threads; what a stream gets does not depend on how."""
        threads = self.threads.count
        parts = 1 if count < 2 * threads else threads
        edges = [count * worker // parts for worker in range(parts + 1)]
        self.threads.share(edges, lambda begin, end, worker: part(slice(begin, end), worker))

    def room(self, worker: int) -> tuple[Any, ...]:
        """Work space of a thread for `run_loops.follow`."""
        return (*self._rooms[worker], self._programs[worker])


class Compiled(NamedTuple):
    """A policy's channel for a belief: its price, and what its outputs release, if not symbols."""

    design: Design
    charge: Charge
    symbols: Ints | None


def compiled_channel(
    chain: MarkovChain, loss: Loss, policy: Policy, state: StreamState, allowance: Allowance
) -> Compiled | None:
    """A policy's channel for a belief, repaired and certified; None where none will do.

    By the same loops as a fleet's, so that a stream gets the same answers alone.
    """
    alone = StreamArrays.under(policy, chain, 1)
    alone.put(0, state.sequence, state.belief)
    ldp = math.inf if allowance.ldp is None else allowance.ldp
    step = alone.prepare(np.zeros(1, dtype=np.int64), np.array([[allowance.sip, ldp]]))
    if step.status[0] in (MISSED, EXHAUSTED):
        return None
    node = int(step.chosen[0])
    channel = policy.channel(node, int(step.parts[0]), step.blends[0])
    charge = FREE if channel.is_constant else Charge(*step.charges[0].tolist())
    symbols = None if policy.sight is None else policy.outputs(node, step.blends[0])
    names = channel.outputs if symbols is None else symbols[channel.outputs]
    marginal = alone.marginals()[0]
    per_row = (channel.probabilities * loss.columns(names)).sum(axis=1)
    cost = float(portable.dot(marginal, per_row) / marginal.sum())
    return Compiled(Design(channel, cost, None, SIP(charge.sip), LDP(charge.ldp)), charge, symbols)
