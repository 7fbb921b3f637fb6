r"""The truth with some probability, else a draw that ignores it: a channel without a matrix.

$$a(y \mid x) = s(y) + e\,[y = t(x)]$$

where $s$ is shared by all true symbols, $t(x)$ is the output that stands for $x$, and $e$, what
$s$ leaves of $2^{62}$, is the same for all of them. Randomised response and the rule of the paper
are of this form, and so is either of them followed by any function of the output. Certificates,
costs and draws take time in proportion to the alphabet, not to its square.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.core import portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.channel import Channel, checked_outputs, checked_places
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss
from sfumato.core.randomness import BITS

# Symbols up to which the whole matrix is made, when somebody asks for it.
_STORED = 5000
# Outputs whose columns of the loss are computed one by one; else all means in one pass.
_FEW = 64


class ResponseChannel(Channel):
    """A channel that releases `target[x]` with one probability for all `x`, else a shared draw.

    Args:
        shared: Weight of each output, whatever is true; what they leave of `2**62` is for the
            output that stands for the truth.
        target: The column that stands for each true symbol.
        outputs: The symbol that each column releases; 0, 1, ... if not given.

    Examples:
        >>> coin = ResponseChannel.even(3, kept=0.4)
        >>> coin.probabilities
        array([[0.6, 0.2, 0.2],
               [0.2, 0.6, 0.2],
               [0.2, 0.2, 0.6]])
        >>> ResponseChannel.even(100_000, kept=0.4).marginal(np.full(100_000, 1e-5))[:2]
        array([1.e-05, 1.e-05])
    """

    __slots__ = ("_extra", "_shared", "_target")
    _shared: Ints
    _target: Ints
    _extra: int

    def __init__(
        self, shared: ArrayLike, target: ArrayLike, outputs: ArrayLike | None = None
    ) -> None:
        common, stands = _exact(shared), np.asarray(target)
        symbols = checked_outputs(outputs, common.size)
        if stands.ndim != 1 or not stands.size or stands.dtype.kind not in "iu":
            raise InvalidParameter("target", stands.shape, "be one whole number per true symbol")
        if stands.min() < 0 or stands.max() >= common.size:
            raise InvalidParameter("target", "another column", f"lie in range({common.size})")
        extra = 2**BITS - int(common.sum())
        used = common > 0
        used[stands] |= extra > 0
        if not used.all():
            stands = (used.cumsum() - 1)[stands]
            common, symbols = common[used], symbols[used]
        for name, array in (("_shared", common), ("_target", stands), ("outputs", symbols)):
            copy = np.array(array, dtype=np.int64)
            copy.setflags(write=False)
            object.__setattr__(self, name, copy)
        alike = extra == 0 or bool((self._target == self._target[0]).all())
        object.__setattr__(self, "_extra", extra)
        object.__setattr__(self, "is_constant", alike)

    @classmethod
    def even(cls, size: int, kept: float) -> Self:
        """Every output equally likely to be drawn; the truth is kept with probability `kept`."""
        return cls.keeping(size, round(kept * 2**BITS))

    @classmethod
    def keeping(cls, size: int, extra: int) -> Self:
        """The same with the weight of the kept truth as an integer."""
        if not 0 <= extra <= 2**BITS:
            raise InvalidParameter("extra", extra, "lie in [0, 2**62]")
        each, left = divmod(2**BITS - extra, size)
        shared = np.full(size, each, dtype=np.int64)
        shared[:left] += 1
        return cls(shared, np.arange(size))

    @property
    def integers(self) -> tuple[Ints, Ints]:
        """What it is made of: the shared weights, and the column that stands for each symbol."""
        return self._shared, self._target

    @property
    def fingerprint(self) -> str:
        """Identifies the channel by what is sampled."""
        return digest("response", self._shared, self._target, self.outputs)

    @property
    def weights(self) -> Ints:
        """The whole matrix, made anew; refused where it would fill the memory."""
        if self.size > _STORED:
            raise InvalidParameter(
                "channel", f"{self.size} symbols", f"have at most {_STORED} to be a matrix"
            )
        table = np.tile(self._shared, (self.size, 1))
        table[np.arange(self.size), self._target] += self._extra
        return table

    @property
    def size(self) -> int:
        """Number of true symbols."""
        return len(self._target)

    @property
    def extremes(self) -> tuple[Ints, Ints]:
        """The least and the largest weight of each output over all true symbols."""
        standing = np.bincount(self._target, minlength=self._shared.size)
        least = self._shared + self._extra * (standing == self.size)
        return least, self._shared + self._extra * (standing > 0)

    def mean_weights(self, belief: Floats) -> Floats:
        """Mean weight of each output under a belief that need not sum to 1."""
        stood = np.bincount(self._target, belief, minlength=self._shared.size)
        return np.asarray(self._shared + float(self._extra) * stood / belief.sum())

    def ratios(self, belief: ArrayLike) -> Floats:
        """How much more likely each output is when each symbol is true: a matrix."""
        return Channel(self.weights, self.outputs).ratios(belief)

    def likelihood(self, output: int) -> Floats:
        """Probability of an output (a symbol, not a column) for each true symbol."""
        column = self.column(output)
        weights = np.where(self._target == column, self._extra, 0) + self._shared[column]
        return np.asarray(np.ldexp(weights.astype(np.float64), -BITS))

    def mean_loss(self, prior: Floats, loss: Loss) -> float:
        """Mean loss when the truth follows a checked belief."""
        if self.outputs.size <= _FEW:
            means = portable.dot(prior, loss.columns(self.outputs))
        else:
            means = loss.means(prior)[self.outputs]
        drawn = portable.dot(np.ldexp(self._shared.astype(np.float64), -BITS), means)
        stood = portable.dot(prior, loss.paired(self.outputs[self._target]))
        return float((drawn + np.ldexp(float(self._extra), -BITS) * stood) / prior.sum())

    def merged(self, told: Sequence[int]) -> Self:
        """Rename outputs after the draw: column `j` releases `told[j]`; equal names add up."""
        symbols, places = self.renamed(told)
        shared = np.zeros(symbols.size, dtype=np.int64)
        np.add.at(shared, places, self._shared)
        return type(self)(shared, places[self._target], symbols)

    def mixed(self, belief: Floats, part: float) -> Self:
        """The channel with a part of its own output marginal mixed in: ratios come nearer to 1."""
        mean = np.ldexp(self.mean_weights(belief), -BITS)
        own = np.ldexp(self._shared.astype(np.float64), -BITS)
        shared = np.rint(np.ldexp((1 - part) * own + part * mean, BITS)).astype(np.int64)
        return type(self)(shared, self._target, self.outputs)

    def parts(self) -> tuple[Floats, float, Ints]:
        """Shared probabilities, that of the truth's own output, and which column it is."""
        shared = np.ldexp(self._shared.astype(np.float64), -BITS)
        return shared, float(np.ldexp(float(self._extra), -BITS)), self._target

    def draw(self, values: ArrayLike, words: NDArray[np.uint64]) -> Ints:
        """Release many symbols, one uniformly random 64-bit word each; see `Channel.draw`."""
        rows = checked_places(values, words, self.size)
        coins = (words >> np.uint64(64 - BITS)).astype(np.int64)
        # Coins below the extra weight keep the truth; the others are spread by the shared weights.
        spread = np.searchsorted(self._shared.cumsum(), coins - self._extra, side="right")
        return np.asarray(self.outputs[np.where(coins < self._extra, self._target[rows], spread)])


def _exact(shared: ArrayLike) -> Ints:
    table = np.asarray(shared)
    if table.ndim != 1 or not table.size or table.dtype.kind not in "iu":
        raise InvalidParameter("shared", table.shape, "be one whole number per output")
    exact = table.astype(np.int64)
    # The float sum rules out integers that wrap around.
    about = table.astype(np.float64).sum()
    if table.min() < 0 or about > 2.0 ** (BITS + 1) or int(exact.sum()) > 2**BITS:
        raise InvalidParameter("shared", "another sum", "be nowhere negative and at most 2**62")
    return exact
