"""What other mechanisms would lose on the same column at the same leakage, each at its best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.column.column_sampler import column_sampler
from sfumato.column.column_spec import ColumnSpec
from sfumato.column.knowledge import Knowledge
from sfumato.column.mechanism_registry import mechanism_named
from sfumato.column.number_mechanisms import NumberDesign, guessed
from sfumato.column.scaled_noise import MOST_POINTS_EACH
from sfumato.core import portable
from sfumato.noise.lattice import Lattice

CONSTANT = "a constant"
_SYMBOLS = ("optimal", "calibrated", "context-free", "randomized-response")
_NUMBERS = ("optimal", "quantile-response")
_NOISE = ("laplace", "laplace-each", "gaussian", "laplace-local")


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


def rivals(spec: ColumnSpec, knowledge: Knowledge) -> tuple[Rival, ...]:
    """What a constant and each mechanism would lose, the best one first.

    Noise is shown by itself and with the receiver's best guess from it, which tells no more. A cap
    on the model-free leakage does not bind rivals.

    Examples:
        >>> from sfumato.column.column_learning import learn
        >>> from sfumato.column.knowledge import Records
        >>> asked = ColumnSpec("x", epsilon=1.0)
        >>> bits = learn(asked, {"x": ["no", "no", "yes"]}, Records.PUBLIC)
        >>> [rival.name for rival in rivals(asked, bits)][-1]
        'a constant'
    """
    if isinstance(knowledge.where, Lattice):
        ways = list(_for_numbers(spec, knowledge, knowledge.where))
    else:
        ways = list(_for_symbols(spec, knowledge))
    return tuple(sorted(ways, key=lambda rival: rival.cost))


def _for_symbols(spec: ColumnSpec, knowledge: Knowledge) -> Iterator[Rival]:
    # Only the optimal one knows what to do with a set of priors.
    for name in _SYMBOLS if knowledge.within is None else _SYMBOLS[:1]:
        sampler = column_sampler(replace(spec, mechanism=name, ldp=None), knowledge)
        if name == "optimal":
            yield Rival(CONSTANT, sampler.silence, 0.0, 0.0)
        if sampler.cost is not None:
            yield Rival(name, sampler.cost, sampler.lip.epsilon, sampler.ldp.epsilon)


def _for_numbers(spec: ColumnSpec, knowledge: Knowledge, lattice: Lattice) -> Iterator[Rival]:
    silence = portable.dot(knowledge.shares, [true.silence for true in knowledge.numbers])
    yield Rival(CONSTANT, float(silence), 0.0, 0.0)
    for name in (*_NUMBERS, *_NOISE):
        rule = mechanism_named(name).numbers
        # Scales of their own are refused for more points than these.
        if rule is None or (name == "laplace-each" and lattice.count > MOST_POINTS_EACH):
            continue
        designs = [rule(lattice, prior, spec.budget, None) for prior in knowledge.priors]
        yield _mean(name, knowledge, designs)
        if name in _NOISE:
            pairs = zip(designs, knowledge.priors, strict=True)
            best = [guessed(design, prior) for design, prior in pairs]
            yield _mean(f"{name}, best guess", knowledge, best)


def _mean(name: str, knowledge: Knowledge, designs: Sequence[NumberDesign]) -> Rival:
    pairs = zip(knowledge.numbers, designs, strict=True)
    costs = [true.error(design.channel) for true, design in pairs]
    used = np.flatnonzero(knowledge.shares).tolist()
    lip = max(designs[place].lip.epsilon for place in used)
    ldp = max(designs[place].ldp.epsilon for place in used)
    return Rival(name, float(portable.dot(knowledge.shares, costs)), lip, ldp)
