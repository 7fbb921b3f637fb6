r"""What a stream will cost from a belief on: the sight of a far-sighted step.

$$V(b) = \min_a \sum_y P(y) \Big[\min_z q_y \cdot L(\cdot, z) + V(q_y M)\Big] + \lambda\,
  \mathcal{L}(a)$$

where $a$ is a channel within the cap, $q_y$ the belief after its output $y$, $L$ the loss, $M$ the
chain and $\lambda$ the price of a nat. $V$ is not concave: near a corner no useful posterior is
within reach (`docs/errata.md`). It is kept as vectors, $V(b) \approx \min_i \alpha_i \cdot b$, each
with the channel that it is the cost of, over those whose channel does not leak much more than the
cap at $b$. Nothing rests on it but the loss: a channel is certified from its integers, whatever
made it look good.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.solver.outlook import Outlook, of_batches, of_values

SYMBOLS, CONTEXTS, BATCHES = 2048, 64, 4096
"""Most symbols of a chain of order 1, contexts of one of higher order, and batches: beyond these a
value function would take minutes."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueFunction:
    """The value of beliefs about the next symbol, under a cap on each step.

    Attributes:
        chain: Fingerprint of the chain it was made for.
        loss: Fingerprint of the loss.
        epsilon: What a step may leak.
        price: What a nat costs, in units of the loss.
        transition: The chain: row = context, column = next symbol.
        losses: Row = true symbol, or batch, column = released one.
        vectors: What the stream costs from here on when each symbol is next, or each context the
            next one, but for a constant; for two symbols one by one, the pieces of a line over the
            cells of an even grid.
        channels: Vector, symbol, output: the channels that vectors begin with; none for two
            symbols, where each piece holds on its own cell.
        trust: A vector is believed where its channel leaks at most this times the cap.
        promised: Mean cost of a step that it promises.
        width: Values of a batch; a step is one batch.
        fingerprint: Identifies the value function.
    """

    chain: str
    loss: str
    epsilon: float
    price: float
    transition: Floats = field(repr=False)
    losses: Floats = field(repr=False)
    vectors: Floats = field(repr=False)
    channels: Floats = field(repr=False)
    trust: float
    promised: float
    width: int = 1
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        checks.epsilon("epsilon", self.epsilon)
        checks.finite("price", self.price)
        checks.positive("trust", self.trust)
        checks.count("width", self.width)
        arrays = ("transition", "losses", "vectors", "channels")
        for name in arrays:
            table = np.array(getattr(self, name), dtype=np.float64, order="C")
            if table.ndim != (3 if name == "channels" else 2) or not np.isfinite(table).all():
                raise InvalidParameter(name, table.shape, "be a table of finite numbers")
            object.__setattr__(self, name, checks.read_only(table))
        contexts, count = len(self.transition), len(self.vectors)
        if self.size**self.order != contexts or (self.width > 1 and self.order > 1):
            rule = "have a row for each context, of one value for batches"
            raise InvalidParameter("transition", self.transition.shape, rule)
        acts = self.size**self.width
        if len(self.losses) != acts:
            raise InvalidParameter("losses", self.losses.shape, f"have {acts} rows, as the chain")
        if self.vectors.shape != (count, contexts) or not count:
            raise InvalidParameter("vectors", self.vectors.shape, f"have {contexts} entries each")
        if self.channels.shape[:2] != (count, acts) or (self.channels < 0).any():
            raise InvalidParameter("channels", self.channels.shape, "be one for each vector")
        parts = (self.chain, self.loss, self.epsilon, self.price, self.trust, self.width)
        tables = tuple(getattr(self, name) for name in arrays)
        object.__setattr__(self, "fingerprint", digest("value function", 2, *parts, *tables))

    @property
    def size(self) -> int:
        """Number of symbols of a value."""
        return int(self.transition.shape[1])

    @property
    def order(self) -> int:
        """How many values the next one depends on."""
        return max(1, round(portable.log(len(self.transition)) / portable.log(self.size)))

    @property
    def is_grid(self) -> bool:
        """Whether the value stands on a grid: two symbols, one by one."""
        return self.size == 2 and self.order == 1 and self.width == 1

    def outlook(self, axis: int | None = None) -> Outlook:
        """The tables of a step: of a batch, or of the value of a context that is current."""
        if self.width > 1:
            return of_batches(self.transition, self.losses, self.width)
        last = self.order - 1
        return of_values(self.transition, self.losses, self.order, last if axis is None else axis)

    @property
    def is_step_wise(self) -> bool:
        """Whether nothing of the future is seen: a step then minimises its own loss."""
        return not self.vectors.any()

    @property
    def grid(self) -> Floats:
        """For two symbols: the value at the points of an even grid, from 0 to 1."""
        edges = np.linspace(0.0, 1.0, len(self.vectors) + 1)
        left = self.vectors[:, 0] * (1 - edges[:-1]) + self.vectors[:, 1] * edges[:-1]
        last = self.vectors[-1, 1]
        return np.append(left, last)


def from_grid(values: Floats) -> Floats:
    """Vectors of two symbols from the values at the points of an even grid.

    Examples:
        >>> from_grid(np.array([0.0, 1.0, 1.0]))
        array([[0., 2.],
               [1., 1.]])
    """
    cells = values.size - 1
    slopes = np.diff(values) * cells
    at_zero = values[:-1] - slopes * np.arange(cells) / cells
    return np.column_stack([at_zero, at_zero + slopes])
