r"""A compiled policy: certified channels kept for the beliefs that occur.

A tree over beliefs leads to a few kept channels. The one that is cheapest at the belief of the
moment is mixed with its own output marginal as far as that belief demands, and certified from
its integers. All of that is a function of the policy and the belief: whoever knows them can
compute the channel, without a solver.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.channel import Channel
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.core.local_leakage import local_leakage
from sfumato.solver.design_methods import Method
from sfumato.solver.loop_tables import LoopTables
from sfumato.solver.solving_tables import (
    EXCHANGED,
    PolicyKind,
    are_solving,
    check_sighted_solving,
    check_solving,
    solved_rows,
    solved_symbols,
)
from sfumato.solver.value_function import ValueFunction

# Weights of a kept channel sum to `2**PART_BITS`; mixing weights are parts of `WHOLE`; columns
# are padded to a multiple of `LANES`.
PART_BITS, WHOLE, LANES = 40, 2**22, 4

Tables = tuple[Ints, Floats, NDArray[np.uint16], Floats, Floats, Ints, Floats, Ints, Floats, Ints]
_LEAST_SCALE = 1e-3
"""Part of the largest loss that a step costs at least, where repairs are judged by that."""
# Type and number of axes of each table.
_LAYOUT = ("i8 2", "f8 1", "u2 2", "f8 3", "f8 2", "i8 1", "f8 2", "i8 2", "f8 1", "i8 1")


@dataclass(frozen=True, slots=True)
class PolicyReport:
    """How good a policy was in a simulation that it was not compiled from.

    Attributes:
        steps: Simulated steps.
        extra_loss: How much more it lost than a proven floor under the loss of every channel, as
            a part of that floor: rounded up, the gap of the solver included. Of a far-sighted
            policy: how much more its channels cost, with all that follows them, than those that
            sight finds on the spot at the same beliefs, as a part of the mean cost of a step. This
            is by what the value function can be held to promise there; streams of channels that
            are solved by small programs were not seen to lose more.
        missed: Part of the steps at which no kept channel would do.
        repair: Mean mixing weight.
    """

    steps: int
    extra_loss: float
    missed: float
    repair: float


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """Kept channels, and which of them to try at which beliefs.

    Attributes:
        chain: Fingerprint of the chain it was compiled for.
        loss: Fingerprint of the loss.
        method: How its channels were found.
        epsilon: What a step may leak under the model.
        ldp: What a step may leak whatever the model; None for no cap.
        repair_limit: By what part mixing may make a kept channel dearer; a belief at which all
            candidates get dearer than that is solved on the spot. Far-sighted costs are known but
            for a constant: there it is a part of the mean cost of a step.
        tables: The channels as arrays; `sfumato.stream.kept_channel_loops` says what they hold.
        report: How good it was when compiled.
        sight: What beliefs are worth, for far-sighted channels: beliefs that are not covered are
            solved by it, and columns of one channel may then release the same symbol. The column
            is the `signal` of an event.
        fingerprint: Identifies the policy.
        loop_tables: The same channels, as the loops want them.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> policy = sf.compile_policy(chain, sf.loss.hamming(chain.alphabet), 0.5, steps=500)
        >>> policy.epsilon, policy.size, policy.channels > 0
        (0.5, 2, True)
    """

    chain: str
    loss: str
    method: str
    epsilon: float
    ldp: float | None
    repair_limit: float
    tables: Tables = field(repr=False)
    report: PolicyReport
    sight: ValueFunction | None = field(default=None, repr=False, metadata={"later": True})
    fingerprint: str = field(init=False)
    loop_tables: LoopTables = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.tables) != len(_LAYOUT):
            raise InvalidParameter("policy.tables", len(self.tables), f"be {len(_LAYOUT)} arrays")
        checks.epsilon("epsilon", self.epsilon)
        if self.ldp is not None:
            checks.epsilon("ldp", self.ldp)
        checks.positive("repair_limit", self.repair_limit)
        pairs: Any = zip(self.tables, _LAYOUT, strict=True)
        tables: Any = tuple(_frozen(table, layout.split()[0]) for table, layout in pairs)
        if are_solving(tables) and self.sight is not None:
            _check_solving_tree(tables)
        elif are_solving(tables):
            check_solving(tables)
        else:
            _check(tables, signals=self.sight is not None)
        object.__setattr__(self, "tables", tables)
        parts = (self.chain, self.loss, self.method, self.epsilon, self.ldp, self.repair_limit)
        self._check_sight()
        # Policies without sight keep the digests, and so the coins, that they had.
        ahead = () if self.sight is None else (self.sight.fingerprint, self.scale)
        # Those of far-sighted steps were others before some were solved by interior points.
        inner = self.sight is not None and self.size > EXCHANGED
        version = (3 if inner else 2) if self.solves else 1
        object.__setattr__(self, "fingerprint", digest("policy", version, *parts, *tables, *ahead))
        object.__setattr__(self, "loop_tables", LoopTables.of(tables, self.scale))

    def _check_sight(self) -> None:
        sight = self.sight
        if (sight is not None) != (self.method == Method.FAR_SIGHTED.value):
            rule = "stand at a policy of far-sighted channels, and at no other"
            raise InvalidParameter("sight", None if sight is None else "one", rule)
        own = (self.chain, self.loss, self.size)
        if sight is not None and (sight.chain, sight.loss, sight.size) != own:
            raise InvalidParameter("sight", "that of others", "be made for this chain and loss")

    @property
    def scale(self) -> float:
        """What `repair_limit` is a part of; 0 where that is the cost of the channel itself."""
        return 0.0 if self.sight is None else step_cost(self.sight)

    @property
    def allowed(self) -> tuple[float, float]:
        """What a step may leak: under the model, and whatever the model."""
        return self.epsilon, math.inf if self.ldp is None else self.ldp

    @property
    def kind(self) -> PolicyKind:
        """Where its channels come from."""
        return PolicyKind.SOLVED if self.solves else PolicyKind.KEPT

    @property
    def solves(self) -> bool:
        """Whether channels are solved at each step, and none is kept."""
        return are_solving(self.tables)

    @property
    def channels(self) -> int:
        """How many channels are kept."""
        return 0 if self.solves else len(self.tables[0])

    @property
    def size(self) -> int:
        """Number of symbols."""
        return int(self.tables[2].shape[1])

    @property
    def width(self) -> int:
        """The most outputs that any of them has."""
        return int(self.tables[0][:, 4 if self.solves else 3].max())

    @property
    def memory(self) -> int:
        """Bytes that the tables take."""
        return sum(table.nbytes for table in self.tables)

    def outputs(self, node: int, blend: Ints | None = None) -> Ints:
        """The symbols that the columns of a kept channel, or of one in some words, release."""
        if self.solves and blend is not None:
            return solved_symbols(blend)
        _, _, column, _, width = self.tables[0][node]
        return self.tables[5][column : column + width]

    def channel(self, node: int, parts: int = 0, blend: Ints | None = None) -> Channel:
        """A kept channel as it is sampled: mixed with `blend` at a weight of `parts / WHOLE`.

        Its outputs are symbols; of a far-sighted channel they are its columns, or signals.
        Where channels are solved at each step, `blend` is the channel itself.
        """
        if self.solves:
            if blend is None:
                raise InvalidParameter("blend", None, "be the channel that the step has solved")
            solved, symbols = solved_rows(self.tables, blend)
            return Channel(solved, None if self.sight else symbols)
        nodes, _, row_of, _, weights, *_ = self.tables
        rows = kept_rows(weights, nodes[node])[:, : nodes[node, 4]]
        mixed = (WHOLE - parts) * rows.astype(np.int64)
        if blend is not None and parts:
            mixed = mixed + parts * blend[None, : rows.shape[1]]
        return Channel(mixed[row_of[node]], None if self.sight else self.outputs(node))


@dataclass(frozen=True, slots=True, eq=False)
class PolicyChannel:
    """One channel on its way into a policy: different rows, and whose they are."""

    weights: Ints
    row_of: NDArray[np.uint16]
    outputs: Ints
    costs: Floats
    ldp: float

    @classmethod
    def of(
        cls, channel: Channel, belief: Floats, loss: Floats, symbols: Ints | None = None
    ) -> PolicyChannel:
        """Round a channel to weights that sum to `2**PART_BITS`.

        Args:
            channel: A channel designed for the belief.
            belief: The belief.
            loss: Row = true symbol, column = column of the channel.
            symbols: What its columns release, where its outputs are signals.
        """
        rows = part_weights(channel.probabilities)
        weights, row_of = np.unique(rows, axis=0, return_inverse=True)
        exact = Channel((rows * WHOLE), channel.outputs)
        share = np.ldexp(rows.astype(np.float64), -PART_BITS)
        return cls(
            weights,
            row_of.ravel().astype(np.uint16),
            channel.outputs if symbols is None else symbols,
            np.stack([(share * loss).sum(axis=1), portable.dot(loss, portable.dot(belief, share))]),
            local_leakage(exact).epsilon,
        )


def step_cost(sight: ValueFunction) -> float:
    """The mean cost of a far-sighted step, which extra costs are a part of."""
    return max(sight.promised, _LEAST_SCALE * float(np.ptp(sight.losses)))


def part_weights(rows: Floats) -> Ints:
    """Round rows of probabilities to integers of at least 1 that sum to `2**PART_BITS`.

    Examples:
        >>> int(part_weights(np.array([[0.25, 0.75]]))[0, 0]) == 2**38
        True
    """
    weights = np.maximum(np.rint(np.ldexp(rows, PART_BITS)), 1.0).astype(np.int64)
    # The largest takes up the rounding: there it changes a ratio least.
    largest = rows.argmax(axis=1)
    weights[np.arange(len(weights)), largest] += 2**PART_BITS - weights.sum(axis=1)
    return weights


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A tree over beliefs; see `sfumato.stream.kept_channel_loops` for its arrays."""

    splits: Ints
    thresholds: Floats
    candidates: Ints


def tabulated(channels: Sequence[PolicyChannel], tree: Tree) -> Tables:
    """Lay out channels and the tree that leads to them as tables."""
    widths = np.array([len(one.outputs) for one in channels])
    padded = -(-widths // LANES) * LANES
    rows = np.array([len(one.weights) for one in channels])
    first = np.concatenate([[0], np.cumsum(rows * padded // LANES)[:-1]])
    column = np.concatenate([[0], np.cumsum(widths)[:-1]])
    extremes = [np.column_stack([one.weights.max(0), one.weights.min(0)]) for one in channels]
    return (
        np.column_stack([first, rows, column, padded, widths]).astype(np.int64),
        np.array([one.ldp for one in channels]),
        np.stack([one.row_of for one in channels]),
        np.stack([one.costs for one in channels]),
        np.concatenate([_blocks(one.weights) for one in channels]).astype(np.float64),
        np.concatenate([one.outputs for one in channels]).astype(np.int64),
        np.concatenate(extremes).astype(np.float64),
        tree.splits,
        tree.thresholds,
        tree.candidates,
    )


def _blocks(weights: Ints) -> Ints:
    """Four columns of all rows, then the next four; empty columns at the end."""
    padded = np.pad(weights, ((0, 0), (0, -weights.shape[1] % LANES)))
    parts = padded.reshape(len(weights), -1, LANES).swapaxes(0, 1)
    return np.ascontiguousarray(parts).reshape(-1, LANES)


def kept_rows(weights: Floats, node: Ints) -> Floats:
    """The rows of one channel, empty columns included: `_blocks` undone."""
    first, rows, _, padded, _ = node
    parts = weights[first : first + rows * padded // LANES].reshape(-1, rows, LANES)
    return parts.swapaxes(0, 1).reshape(rows, padded)


def _frozen(table: NDArray[np.generic], kind: str) -> NDArray[np.generic]:
    array = np.array(table, dtype=kind, order="C")
    array.setflags(write=False)
    return array


def _check(tables: Tables, *, signals: bool) -> None:
    """Refuse tables that the loops could not trust, so that damage never becomes a release.

    With signals, several columns of a channel may release one symbol.
    """
    nodes, local, row_of, costs, weights, outputs, extremes, *tree = tables
    axes = [int(layout.split()[1]) for layout in _LAYOUT]
    if [array.ndim for array in tables] != axes or nodes.shape[1:] != (5,):
        raise InvalidParameter("policy.tables", "other shapes", "be those of a compiled policy")
    count = len(nodes)
    sizes = nodes[:, 1] * nodes[:, 3] // LANES
    begins = [np.concatenate([[0], np.cumsum(part)]) for part in (sizes, nodes[:, 4])]
    laid_out = (
        count > 0
        and bool((nodes[:, 1] > 0).all() and (nodes[:, 4] > 0).all())
        and np.array_equal(nodes[:, 3], -(-nodes[:, 4] // LANES) * LANES)
        and np.array_equal(nodes[:, 0], begins[0][:-1])
        and np.array_equal(nodes[:, 2], begins[1][:-1])
        and weights.shape == (begins[0][-1], LANES)
        and outputs.shape == (begins[1][-1],)
        and extremes.shape == (begins[1][-1], 2)
        and local.shape == (count,)
        and costs.shape == (count, 2, row_of.shape[1])
        and bool(np.isfinite(costs).all())
        and len(row_of) == count
        and bool((row_of < nodes[:, 1:2]).all())
        and bool(((outputs >= 0) & (outputs < row_of.shape[1])).all())
    )
    if not laid_out or not _is_tree(*tree, channels=count, size=row_of.shape[1]):  # type: ignore[arg-type]
        raise InvalidParameter("policy.tables", "another layout", "be those of a compiled policy")
    for node, (_, _, column, _, width) in enumerate(nodes):
        padded = kept_rows(weights, nodes[node])
        table = padded[:, :width]
        symbols = outputs[column : column + width]
        exact = (
            table.min() >= 1
            and not padded[:, width:].any()
            and bool((table == np.rint(table)).all())
            and bool((table.sum(axis=1) == 2.0**PART_BITS).all())
            and np.array_equal(extremes[column : column + width, 0], table.max(axis=0))
            and np.array_equal(extremes[column : column + width, 1], table.min(axis=0))
            and (signals or len(set(symbols.tolist())) == width)
            and len(np.unique(table, axis=0)) == len(table) == len(np.unique(row_of[node]))
        )
        if not exact:
            raise InvalidParameter(
                f"policy channel {node}", "other weights", "have different rows that sum to 2**40"
            )
        own = Channel((table * WHOLE).astype(np.int64))
        if local[node] != local_leakage(own).epsilon:
            raise InvalidParameter(f"policy channel {node}", "another leakage", "be its own")


def _check_solving_tree(tables: Tables) -> None:
    """Refuse tables from which far-sighted steps could not be solved."""
    splits, thresholds, candidates = tables[7:]
    axes = [int(layout.split()[1]) for layout in _LAYOUT]
    laid_out = [array.ndim for array in tables] == axes and _is_tree(
        splits, thresholds, candidates, channels=len(tables[5]), size=int(tables[2].shape[1])
    )
    if not laid_out:
        raise InvalidParameter("policy.tables", "another layout", "be those of a compiled policy")
    check_sighted_solving(tables)


def _is_tree(
    splits: Ints, thresholds: Floats, candidates: Ints, *, channels: int, size: int
) -> bool:
    """Whether every walk ends at a leaf with a candidate; branches lead to later places."""
    places = np.arange(len(splits))
    if splits.shape != (len(thresholds), 3) or len(splits) == 0:
        return False
    inner = splits[:, 0] >= 0
    later = (splits[:, 1] > places) & (splits[:, 1] < len(splits) - 1)
    later &= splits[:, 2] - 1 == splits[:, 1]
    ranges = (splits[:, 1] >= 0) & (splits[:, 1] < splits[:, 2])
    return bool(
        (splits[:, 0] < size).all()
        and later[inner].all()
        and ranges[~inner].all()
        and (splits[~inner, 2] <= candidates.size).all()
        and ((candidates >= 0) & (candidates < channels)).all()
    )
