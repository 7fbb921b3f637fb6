r"""What a released column cost on its true values, and whether the prior fits them.

Both are functions of the private rows: they are for whoever holds the data, never for a
certificate. Rows contradict a prior if somebody who learns their frequencies as they come predicts
them far better than it does,

$$\log E = \log \frac{\Gamma(k/2)}{\Gamma(n + k/2)} \prod_j \frac{\Gamma(c_j + 1/2)}{\Gamma(1/2)}
    - \sum_i \log P_i(x_i)$$

where $c_j$ of the $n$ rows lie in cell $j$ of $k$ and $P_i$ is the prior of row $i$. Under the
priors the mean of $E$ is 1, so that $E \ge e^t$ has a probability of at most $e^{-t}$, for few rows
too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.column.column_sampler import ColumnSampler
from sfumato.column.knowledge import Knowledge
from sfumato.core import portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.loss import Loss
from sfumato.core.printed import shown_up
from sfumato.noise.lattice import Lattice

# More would find fault with every prior that was learnt from a hundred rows.
_CELLS = 10
# Probability at most with which rows that follow the prior are said to contradict it.
_CHANCE = 1e-6
# Nats per row from which a contradiction matters; half and half against 28 and 72 % has 0.1.
_PLAIN = 0.1


@dataclass(frozen=True, slots=True)
class ColumnFit:
    """What a release really cost, and how its prior fits.

    Attributes:
        realised: Mean loss on the true values; None where a report is no single value.
        constant: What the best constant would have lost on them.
        contradicted: Whether the rows plainly contradict the prior.
    """

    realised: float | None
    constant: float
    contradicted: bool

    @classmethod
    def of(
        cls,
        knowledge: Knowledge,
        places: Ints,
        truth: Loss | Floats,
        outputs: Sequence[Any],
        sampler: ColumnSampler,
    ) -> ColumnFit:
        """Compare what left with the truth: numbers as written; of symbols what errors cost."""
        realised: float | None
        if isinstance(truth, Loss):
            shares = np.bincount(places, minlength=len(truth)) / places.size
            constant = float(truth.means(shares).min())
            realised = (
                None if sampler.cost is None else _mean_loss(truth, knowledge, places, outputs)
            )
        else:
            realised = float(np.abs(truth - np.asarray(outputs, np.float64)).mean())
            constant = float(np.abs(truth - np.median(truth)).mean())
        return cls(realised, constant, contradicts(knowledge, places))

    def notes(self, sampler: ColumnSampler) -> tuple[str, ...]:
        """What is said loudly."""
        notes = []
        if self.contradicted:
            notes.append(
                f"THE PRIOR DOES NOT FIT these rows, so the expected loss is not theirs either: "
                f"{sampler.lip} is under the prior, only {sampler.ldp} holds"
            )
        if self.realised is not None and self.realised >= self.constant:
            notes.append(
                f"NO BETTER THAN A CONSTANT on these rows: {sampler.loss} loss "
                f"{shown_up(self.realised, 3)}, where the best constant loses {self.constant:.3g}"
            )
        return tuple(notes)


def contradicts(knowledge: Knowledge, places: Ints) -> bool:
    """Whether rows plainly contradict what was known of them, beyond chance."""
    cells = _cells(knowledge)
    size = int(cells.max()) + 1
    counts = np.bincount(cells[places], minlength=size)
    learnt = portable.log_gamma(size / 2) - portable.log_gamma(places.size + size / 2)
    none = portable.log_gamma(0.5)
    learnt += sum(portable.log_gamma(count + 0.5) - none for count in counts.tolist())
    owner = np.zeros(places.size, np.int64) if knowledge.owner is None else knowledge.owner
    evidence = learnt - portable.log(_masses(knowledge, cells, size)[owner, cells[places]]).sum()
    return bool(evidence > max(-portable.log(_CHANCE), _PLAIN * places.size))


def _mean_loss(costs: Loss, knowledge: Knowledge, places: Ints, outputs: Sequence[Any]) -> float:
    answers = np.array([knowledge.alphabet.place(label) for label in outputs], np.int64)
    in_turn = np.argsort(answers, kind="stable")
    different, starts = np.unique(answers[in_turn], return_index=True)
    true_of = np.split(places[in_turn], starts[1:])
    lost = (
        costs.columns([answer])[true, 0].sum()
        for answer, true in zip(different.tolist(), true_of, strict=True)
    )
    return float(sum(lost) / places.size)


def _cells(knowledge: Knowledge) -> Ints:
    """A few cells of the possible values: neighbours together, or the rarest symbols."""
    mean = knowledge.mean
    if isinstance(knowledge.where, Lattice):
        middle = (np.cumsum(mean) - mean / 2) / mean.sum()
        cells = np.minimum(_CELLS - 1, (_CELLS * middle).astype(np.int64))
        return np.asarray(np.unique(cells, return_inverse=True)[1].ravel(), np.int64)
    cells = np.empty(mean.size, np.int64)
    cells[np.argsort(-mean, kind="stable")] = np.minimum(np.arange(mean.size), _CELLS - 1)
    return cells


def _masses(knowledge: Knowledge, cells: Ints, size: int) -> Floats:
    """The most that each prior gives to each cell."""
    indicators = np.eye(size)[cells]
    if knowledge.within is not None:
        return np.minimum(1.0, knowledge.within.most_means(indicators))[None, :]
    return np.asarray(portable.dot(knowledge.priors, indicators))
