"""What other mechanisms would lose on the same column at the same leakage, each at its best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.column.column_knowledge import Known
from sfumato.column.column_mechanisms import Mechanism, number_mechanism, one_shot
from sfumato.column.number_mechanisms import MOST_POINTS_EACH, NumberDesign, guessed
from sfumato.core.guarantees import LIP
from sfumato.noise.lattice import Lattice

CONSTANT = "a constant"
_SYMBOLS = (
    Mechanism.OPTIMAL,
    Mechanism.CALIBRATED,
    Mechanism.CONTEXT_FREE,
    Mechanism.RANDOMIZED_RESPONSE,
)
_NUMBERS = (Mechanism.OPTIMAL, Mechanism.QUANTILE_RESPONSE)
_NOISE = (
    Mechanism.LAPLACE,
    Mechanism.LAPLACE_EACH,
    Mechanism.GAUSSIAN,
    Mechanism.LAPLACE_LOCAL,
)


@dataclass(frozen=True, slots=True)
class Rival:
    """A way to release a column.

    Attributes:
        name: What it is called.
        cost: Expected loss of a value.
        lip: Its exact leakage under the prior.
        ldp: The same whatever the prior.
    """

    name: str
    cost: float
    lip: float
    ldp: float


def rivals(known: Known, budget: LIP, *, loss: str | None = None) -> tuple[Rival, ...]:
    """What a constant and each mechanism would lose, the best one first.

    Noise is shown by itself and with the receiver's best guess from it, which tells no more.

    Args:
        known: What is known of the column, for its people.
        budget: Leakage that each may have.
        loss: What a wrong symbol costs.

    Examples:
        >>> from sfumato.column.column_knowledge import Learning, know
        >>> from sfumato.column.column_reading import Reading
        >>> bits = know("x", {"x": ["no", "no", "yes"]}, "estimate", Reading(), Learning("here"))
        >>> [rival.name for rival in rivals(bits, LIP(1.0))][-1]
        'a constant'
    """
    if isinstance(known.where, Lattice):
        found = list(_for_numbers(known, known.where, budget))
    else:
        found = list(_for_symbols(known, budget, loss))
    return tuple(sorted(found, key=lambda rival: rival.cost))


def _for_symbols(known: Known, budget: LIP, loss: str | None) -> Iterator[Rival]:
    # Only the optimal one knows what to do with a set of priors.
    for mechanism in _SYMBOLS if known.within is None else _SYMBOLS[:1]:
        made = one_shot(mechanism, known, budget, loss=loss)
        if mechanism is Mechanism.OPTIMAL:
            yield Rival(CONSTANT, made.nothing, 0.0, 0.0)
        if made.cost is not None:
            yield Rival(mechanism.value, made.cost, made.lip.epsilon, made.ldp.epsilon)


def _for_numbers(known: Known, lattice: Lattice, budget: LIP) -> Iterator[Rival]:
    silence = known.shares @ [true.silence for true in known.numbers]
    yield Rival(CONSTANT, float(silence), 0.0, 0.0)
    for mechanism in (*_NUMBERS, *_NOISE):
        if mechanism is Mechanism.LAPLACE_EACH and lattice.count > MOST_POINTS_EACH:
            continue
        made = [number_mechanism(mechanism, lattice, p, budget, None) for p in known.priors]
        yield _mean(mechanism.value, known, made)
        if mechanism in _NOISE:
            best = [guessed(one, prior) for one, prior in zip(made, known.priors, strict=True)]
            yield _mean(f"{mechanism.value}, best guess", known, best)


def _mean(name: str, known: Known, made: Sequence[NumberDesign]) -> Rival:
    costs = [true.error(one.channel) for true, one in zip(known.numbers, made, strict=True)]
    used = np.flatnonzero(known.shares).tolist()
    lip = max(made[place].lip.epsilon for place in used)
    ldp = max(made[place].ldp.epsilon for place in used)
    return Rival(name, float(known.shares @ costs), lip, ldp)
