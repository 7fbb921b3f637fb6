"""Ways to release a series of numbers by name: a new one is one file, and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Flag, auto
from functools import partial
from typing import Any

import numpy as np

from sfumato.core.errors import InvalidParameter
from sfumato.noise.registry import Registry
from sfumato.series.filters import plain
from sfumato.series.paper_rule import best_paper_rule, geometric_paper_rule, measured, paper_rule
from sfumato.series.rivals.delayed_fourier import DelayedFourier
from sfumato.series.rivals.fast import Fast
from sfumato.series.rivals.fourier import Fourier
from sfumato.series.rivals.pegasus import Pegasus
from sfumato.series.rivals.square_root_tree import SquareRootTree
from sfumato.series.rivals.topl import Topl
from sfumato.series.rivals.tops import Tops
from sfumato.series.rivals.tree import BinaryTree
from sfumato.series.rivals.windowed import BudgetAbsorption, BudgetDistribution
from sfumato.series.series_release import SeriesMethod, Unit
from sfumato.series.series_spec import UNITS, SeriesSpec
from sfumato.series.silence import Silence

AnyMethod = SeriesMethod[Any]
Make = Callable[[SeriesSpec], AnyMethod]


class Trait(Flag):
    """What is special about a method.

    Attributes:
        TUNED: It is tuned on the true series, as its papers do: not for real releases.
        WEIGHTED: A weight in the spec does instead.
        WHOLE: The whole value is protected, not what the sensitivity says of it.
        LEARNS: It may be given another filter.
        BOTH: It protects a person's whole series or one value, as the spec says.
    """

    NONE = 0
    TUNED = auto()
    WEIGHTED = auto()
    WHOLE = auto()
    LEARNS = auto()
    BOTH = auto()


@dataclass(frozen=True, slots=True)
class Entry:
    """A method by name: what it does in one line, what makes it for a spec, and its traits."""

    says: str
    make: Make
    traits: Trait = Trait.NONE

    def helped(self, spec: SeriesSpec) -> bool:
        """Whether the true series is looked at to make it."""
        weighed = Trait.WEIGHTED in self.traits and spec.weight is not None
        return Trait.TUNED in self.traits and not weighed


def _event(make: Make) -> Make:
    return lambda spec: make(replace(spec, unit="event"))


def _whole_value(spec: SeriesSpec) -> AnyMethod:
    ceiling = float(np.abs(spec.true_series).max()) or 1.0
    return _event(_laplace)(replace(spec, sensitivity=ceiling))


def _silence(spec: SeriesSpec) -> Silence:
    return Silence(float(spec.true_series.mean()))


_filtered = partial(measured, noise="gaussian")
_laplace_bank = partial(measured, noise="laplace")
_gaussian = partial(measured, noise="gaussian", estimate=plain())
_laplace = partial(measured, noise="laplace", estimate=plain())
_discrete = partial(measured, noise="discrete-gaussian")
_binomial = partial(measured, noise="binomial")
# Combinations that several methods have.
_TUNED, _BANK = Trait.TUNED, Trait.LEARNS | Trait.BOTH
_WEIGHED, _WHOLE = _TUNED | Trait.WEIGHTED | Trait.BOTH, _TUNED | Trait.WHOLE

METHODS: Registry[Entry] = Registry(
    "method",
    {
        "silence": Entry(
            "the mean of the series for every value: what says nothing loses", _silence, _TUNED
        ),
        "realtime": Entry(
            "Gaussian noise, then a bank of filters that learns the process as it goes",
            _filtered,
            _BANK,
        ),
        "published": Entry(
            "the paper's rule, with the weight that its own formulas ask for", paper_rule, _WEIGHED
        ),
        "published-best": Entry(
            "the paper's rule, with the weight of least error", best_paper_rule, _TUNED
        ),
        "published-geometric": Entry(
            "the paper's rule, with weights that fall by one factor", geometric_paper_rule, _TUNED
        ),
        "gaussian": Entry("independent Gaussian noise", _gaussian, Trait.BOTH),
        "laplace": Entry("independent Laplace noise", _laplace, Trait.BOTH),
        "laplace-filtered": Entry("Laplace noise, then the bank of filters", _laplace_bank, _BANK),
        "discrete-gaussian": Entry(
            "discrete Gaussian noise, then the bank of filters", _discrete, _BANK
        ),
        "binomial": Entry("binomial noise, then the bank of filters", _binomial, _BANK),
        "fast": Entry("FAST: Laplace noise and the filter of a random walk", Fast.of, _TUNED),
        "fast-sampling": Entry(
            "FAST with adaptive sampling of a quarter of the values", Fast.sampling, _TUNED
        ),
        "fourier": Entry(
            "noise on the first Fourier coefficients; needs the whole series", Fourier.of, _TUNED
        ),
        "delayed-fourier": Entry(
            "the same, block by block: late, but online", DelayedFourier.of, _TUNED
        ),
        "bd": Entry("w-event: budget distribution", BudgetDistribution.of),
        "ba": Entry("w-event: budget absorption", BudgetAbsorption.of),
        "event-realtime": Entry(
            "event level: Gaussian noise and the bank", _event(_filtered), Trait.LEARNS
        ),
        "event-laplace-filtered": Entry(
            "event level: Laplace noise and the bank", _event(_laplace_bank), Trait.LEARNS
        ),
        "event-gaussian": Entry("event level: independent Gaussian noise", _event(_gaussian)),
        "event-laplace": Entry("event level: independent Laplace noise", _event(_laplace)),
        "tree": Entry("event level: binary tree of sums, differences told", BinaryTree.of),
        "square-root-tree": Entry(
            "event level: Gaussian noise through a square root of the sums", SquareRootTree.of
        ),
        "pegasus": Entry("event level: perturb, group and smooth", Pegasus.of),
        "whole-laplace": Entry(
            "event level, the whole value protected: independent Laplace noise",
            _whole_value,
            _WHOLE,
        ),
        "tops": Entry(
            "event level, the whole value protected: threshold, perturb and smooth", Tops.of, _WHOLE
        ),
        "topl": Entry(
            "local, the whole value protected: the same by the person herself", Topl.of, _WHOLE
        ),
    },
)


def series_method(spec: SeriesSpec) -> AnyMethod:
    """The method of a spec; refused if it is tuned on the truth or for another unit.

    Examples:
        >>> series_method(SeriesSpec(1.0, 2.0, length=50)).guarantee.epsilon <= 2.0
        True
    """
    entry = METHODS.named(spec.method)
    if entry.helped(spec):
        rule = (
            "come with a weight (--weight)"
            if Trait.WEIGHTED in entry.traits
            else "not be tuned on the true series"
        )
        raise InvalidParameter("method", spec.method, rule)
    if spec.estimate is not None and Trait.LEARNS not in entry.traits:
        raise InvalidParameter("method", spec.method, "learn, to be given a period or a history")
    made = entry.make(spec if Trait.BOTH in entry.traits else replace(spec, unit=None))
    wanted: Unit | None = None if spec.unit is None else UNITS[spec.unit]
    if wanted not in (None, made.unit):
        rule = f"be that of {spec.method}, which is {made.unit.value}"
        raise InvalidParameter("unit", spec.unit, rule)
    return made
