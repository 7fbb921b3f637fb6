r"""Batches too many to list: cut the space of batches into boxes.

A box is a set of batches $C_1 \times \dots \times C_w$, one set of symbols per position. Its
probability is exact: the forward algorithm carries the belief through the chain and drops, at each
position, what lies outside. The boxes are the leaves of a tree: the box that contributes most to
the loss is cut in two, at the position where it is widest, until there are enough of them. The
channel acts on boxes, so its certificates hold for batches, of which there may be $10^{40}$.

Only the utility is approximate: batches of a box share their row, and released batches are
put together from a few dozen symbols per position.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.belief import Belief
from sfumato.core.loss import Loss, Measure
from sfumato.core.numerics import UNIT
from sfumato.models.markov import MarkovChain
from sfumato.solver.large_alphabets import centres_of
from sfumato.stream.partition.forward import Forward

_SYMBOLS = 96
"""Symbols per position that released batches are made of."""
_FAINT = 1e-12
"""Contexts with a smaller part of a box are left out of expected losses (never of masses)."""
_LEAST_MASS = 1e-12
"""Boxes of less probability are not cut off."""


@dataclass(slots=True)
class _Box:
    """A node of the tree.

    Attributes:
        allowed: The symbols of each position; None where all are.
        tail: Probability of being in the box and in each context at its end.
        mass: Probability of being in the box.
        spans: At each position, what the best symbol still costs.
        cuts: How each position would be cut: the symbols that go to the first child.
        position: Where it was cut; its children are then places of nodes.
        cell: Number of the box among the leaves.
    """

    allowed: tuple[Bools | None, ...]
    tail: Floats
    mass: float
    spans: Floats
    cuts: list[Bools]
    position: int = -1
    children: tuple[int, int] | None = None
    cell: int = -1


class Boxes(Forward):
    """Boxes of batches with exact masses, cut finest where the loss is largest.

    Args:
        chain: How values follow each other.
        belief: Belief about the first value of the batch.
        width: Values of the batch.
        loss: What an error at one position costs; errors add up.
        count: How many boxes to make.

    Attributes:
        masses: Probability of each box.
        error: Bound on the log ratio of `masses` to the exact ones, up to a common factor.
        symbols: The symbols that released batches may have at each position.
        costs: Expected loss of each of them, for each box and position, times the box's mass.

    Examples:
        >>> from sfumato.core.loss import absolute
        >>> chain = MarkovChain.from_matrix(np.full((100, 100), 0.01))
        >>> boxes = Boxes(chain, chain.first(), 10, absolute(chain.alphabet), count=16)
        >>> len(boxes.masses), float(boxes.masses.sum())
        (16, 1.0)
    """

    def __init__(
        self, chain: MarkovChain, belief: Belief, width: int, loss: Loss, count: int
    ) -> None:
        super().__init__(chain, belief, width)
        self._loss = loss
        self._nodes: list[_Box] = []
        self._grow(count)
        leaves = [node for node in self._nodes if node.children is None]
        for cell, leaf in enumerate(leaves):
            leaf.cell = cell
        self.masses = np.array([leaf.mass for leaf in leaves])
        self.symbols, self.costs = self._priced([leaf.allowed for leaf in leaves])
        self._tails = [leaf.tail for leaf in leaves]
        self.error: float = self._drift + belief.joint.size * UNIT

    def cell(self, places: Sequence[int]) -> int:
        """The box that a batch lies in."""
        node = self._nodes[0]
        while node.children is not None:
            first = bool(node.cuts[node.position][places[node.position]])
            node = self._nodes[node.children[0 if first else 1]]
        return node.cell

    def typical(self) -> Ints:
        """The best batch of every node of the tree, as places in `symbols`, the root first."""
        costs: list[Floats] = [np.empty(0)] * len(self._nodes)
        for place in reversed(range(len(self._nodes))):
            node = self._nodes[place]
            if node.children is None:
                costs[place] = self.costs[node.cell]
            else:
                costs[place] = costs[node.children[0]] + costs[node.children[1]]
        return np.stack([cost.argmin(axis=1) for cost in costs])

    def grouped(self, least: float) -> tuple[Ints, Ints]:
        """Boxes put together, by the tree, into groups of at least a mass, if all have it.

        Returns:
            The group of each box, and the best batch of each group, as places in `symbols`.
        """
        # Children stand behind their parents: one pass backwards collects what is in each node.
        inside_of: list[list[int]] = [[] for _ in self._nodes]
        for place in reversed(range(len(self._nodes))):
            node = self._nodes[place]
            if node.children is None:
                inside_of[place] = [node.cell]
            else:
                inside_of[place] = [cell for child in node.children for cell in inside_of[child]]
        groups = np.empty(len(self.masses), dtype=np.int64)
        best: list[Ints] = []
        pending = [0]
        while pending:
            place = pending.pop()
            node = self._nodes[place]
            heavy = node.children is not None and all(
                self._nodes[child].mass >= least for child in node.children
            )
            if heavy and node.children is not None:
                pending += node.children
                continue
            inside = inside_of[place]
            groups[inside] = len(best)
            best.append(self.costs[inside].sum(axis=0).argmin(axis=1))
        return groups, np.stack(best)

    def _grow(self, count: int) -> None:
        root = self._box((None,) * self._width)
        self._nodes.append(root)
        queue = [(-root.spans.sum(), 0)]
        leaves = 1
        while queue and leaves < count:
            _, place = heapq.heappop(queue)
            node = self._nodes[place]
            for position in np.argsort(-node.spans, kind="stable"):
                if node.spans[position] > 0 and self._cut(node, int(position)):
                    assert node.children is not None
                    for child in node.children:
                        heapq.heappush(queue, (-self._nodes[child].spans.sum(), child))
                    leaves += 1
                    break
            # Only the leaves need what the next cut and the final masses are made from.
            if node.children is not None:
                node.tail = np.empty(0)

    def _cut(self, node: _Box, position: int) -> bool:
        """Cut a box in two, unless one of them would hardly ever occur."""
        first = node.cuts[position]
        before = node.allowed[position]
        halves = []
        for mask in (first, ~first):
            kept = mask if before is None else mask & before
            if not kept.any():
                return False
            halves.append((*node.allowed[:position], kept, *node.allowed[position + 1 :]))
        boxes = [self._box(half) for half in halves]
        if min(box.mass for box in boxes) < _LEAST_MASS:
            return False
        node.position, node.children = position, (len(self._nodes), len(self._nodes) + 1)
        self._nodes.extend(boxes)
        return True

    def _box(self, allowed: tuple[Bools | None, ...]) -> _Box:
        forward = self._forward(allowed)
        looked = [_span(p, self._loss) for p in self._marginals(allowed, forward)]
        spans, cuts = np.array([span for span, _ in looked]), [cut for _, cut in looked]
        return _Box(allowed, forward[-1], float(forward[-1].sum()), spans, cuts)

    def _priced(self, boxes: list[tuple[Bools | None, ...]]) -> tuple[Ints, Floats]:
        """Symbols to release at each position, and what each costs in each box."""
        from sfumato.solver.group_loops import weighted_sum

        everywhere: tuple[Bools | None, ...] = (None,) * self._width
        whole = self._marginals(everywhere, self._forward(everywhere))
        symbols = np.stack([_candidates(marginal, self._loss) for marginal in whole])
        columns = [self._loss.columns(told) for told in symbols]
        costs = np.empty((len(boxes), *symbols.shape))
        for place, box in enumerate(boxes):
            for position, marginal in enumerate(self._marginals(box, self._forward(box))):
                costs[place, position] = weighted_sum(marginal, columns[position])
        return symbols, costs

    def _forward(self, allowed: tuple[Bools | None, ...]) -> list[Floats]:
        """Weights of contexts at each position, of the batches inside so far."""
        weights, found = self._belief.joint.ravel(), []
        for position, mask in enumerate(allowed):
            if self._carried(position):
                weights = self._chain.spread(weights)
            if mask is not None:
                weights = weights * mask[self._at[position]]
            found.append(weights)
        return found

    def _marginals(self, allowed: tuple[Bools | None, ...], forward: list[Floats]) -> list[Floats]:
        """Probability of each symbol at each position, and of being in the box."""
        size, later = self._chain.size, np.ones(self._belief.joint.size)
        found: list[Floats] = []
        for position in reversed(range(self._width)):
            both = forward[position] * later
            found.append(np.bincount(self._at[position], both, size).astype(np.float64))
            mask = allowed[position]
            if mask is not None:
                later = later * mask[self._at[position]]
            if self._carried(position):
                before = forward[position - 1]
                later = self._chain.expect(later, before, _FAINT * float(before.max()))
        return found[::-1]


def _candidates(marginal: Floats, loss: Loss) -> Ints:
    """Symbols that released batches may have at one position: all, or spread by the marginal."""
    if len(loss) <= _SYMBOLS:
        return np.arange(len(loss))
    chosen = centres_of(marginal / marginal.sum(), loss, _SYMBOLS)[0]
    return np.asarray(np.resize(chosen, _SYMBOLS))


def _span(marginal: Floats, loss: Loss) -> tuple[float, Bools]:
    """What the best symbol costs, about, and the symbols that a cut would set apart."""
    if loss.measure in (None, Measure.HAMMING) or loss.places is None:
        return _span_of_table(marginal, loss)
    mass = marginal.sum()
    middle = portable.dot(marginal, loss.places) / mass
    away = np.abs(loss.places - middle)
    spread = portable.dot(marginal, away * away if loss.measure is Measure.SQUARED else away)
    axis = int(spread.argmax())
    straight = loss.measure in (Measure.EUCLIDEAN, Measure.GREAT_CIRCLE)
    total = math.hypot(*spread) if straight else float(spread.sum())
    return float(total), loss.places[:, axis] <= middle[axis]


def _span_of_table(marginal: Floats, loss: Loss) -> tuple[float, Bools]:
    apart = np.zeros(len(loss), dtype=np.bool_)
    if loss.all_alike:
        likely = int(marginal.argmax())
        apart[likely] = True
        return float(marginal.sum() - marginal[likely]), apart
    means = portable.dot(marginal, loss.matrix)
    best = int(means.argmin())
    worst = int((marginal * loss.matrix[:, best]).argmax())
    other = int(loss.matrix[worst].argmin())
    apart |= loss.matrix[:, other] < loss.matrix[:, best]
    return float(means[best]), apart
