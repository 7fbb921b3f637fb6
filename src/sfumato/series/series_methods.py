"""Ways to release a series of numbers by name: a new one is one file, and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from sfumato.core.errors import InvalidParameter
from sfumato.noise.registry import Registry
from sfumato.series.filters import plain
from sfumato.series.paper_rule import best_paper_rule, geometric_paper_rule, measured, paper_rule
from sfumato.series.realtime import Realtime
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


@dataclass(frozen=True, slots=True)
class Entry:
    """A method by name.

    Attributes:
        says: What it does, in one line.
        make: Makes it for a spec.
        tuned: Whether it is tuned on the true series, as its papers do: not for real releases.
        weighted: Whether a weight in the spec does instead.
        whole: Whether the whole value is protected, not what the sensitivity says of it.
        learns: Whether it may be given another filter.
        both: Whether it protects a person's whole series or one value, as the spec says.
    """

    says: str
    make: Make
    tuned: bool = False
    weighted: bool = False
    whole: bool = False
    learns: bool = False
    both: bool = False

    def helped(self, spec: SeriesSpec) -> bool:
        """Whether the true series is looked at to make it."""
        return self.tuned and not (self.weighted and spec.weight is not None)


def _event(make: Make) -> Make:
    return lambda spec: make(replace(spec, unit="event"))


_filtered = partial(measured, noise="gaussian")
_laplace_filtered = partial(measured, noise="laplace")
_discrete = partial(measured, noise="discrete-gaussian")
_binomial = partial(measured, noise="binomial")


def _gaussian(spec: SeriesSpec) -> Realtime:
    return measured(spec, "gaussian", plain())


def _laplace(spec: SeriesSpec) -> Realtime:
    return measured(spec, "laplace", plain())


def _whole_laplace(spec: SeriesSpec) -> AnyMethod:
    ceiling = float(np.abs(spec.true_series).max()) or 1.0
    return _event(_laplace)(replace(spec, sensitivity=ceiling))


def _silence(spec: SeriesSpec) -> Silence:
    return Silence(float(spec.true_series.mean()))


METHODS: Registry[Entry] = Registry(
    "method",
    {
        "silence": Entry(
            "the mean of the series for every value: what says nothing loses", _silence, tuned=True
        ),
        "realtime": Entry(
            "Gaussian noise, then a bank of filters that learns the process as it goes",
            _filtered,
            learns=True,
            both=True,
        ),
        "published": Entry(
            "the paper's rule, with the weight that its own formulas ask for",
            paper_rule,
            tuned=True,
            weighted=True,
            both=True,
        ),
        "published-best": Entry(
            "the paper's rule, with the weight of least error", best_paper_rule, tuned=True
        ),
        "published-geometric": Entry(
            "the paper's rule, with weights that fall by one factor",
            geometric_paper_rule,
            tuned=True,
        ),
        "gaussian": Entry("independent Gaussian noise", _gaussian, both=True),
        "laplace": Entry("independent Laplace noise", _laplace, both=True),
        "laplace-filtered": Entry(
            "Laplace noise, then the bank of filters", _laplace_filtered, learns=True, both=True
        ),
        "discrete-gaussian": Entry(
            "discrete Gaussian noise, then the bank of filters", _discrete, learns=True, both=True
        ),
        "binomial": Entry(
            "binomial noise, then the bank of filters", _binomial, learns=True, both=True
        ),
        "fast": Entry("FAST: Laplace noise and the filter of a random walk", Fast.of, tuned=True),
        "fast-sampling": Entry(
            "FAST with adaptive sampling of a quarter of the values", Fast.sampling, tuned=True
        ),
        "fourier": Entry(
            "noise on the first Fourier coefficients; needs the whole series",
            Fourier.of,
            tuned=True,
        ),
        "delayed-fourier": Entry(
            "the same, block by block: late, but online", DelayedFourier.of, tuned=True
        ),
        "bd": Entry("w-event: budget distribution", BudgetDistribution.of),
        "ba": Entry("w-event: budget absorption", BudgetAbsorption.of),
        "event-realtime": Entry(
            "event level: Gaussian noise and the bank", _event(_filtered), learns=True
        ),
        "event-laplace-filtered": Entry(
            "event level: Laplace noise and the bank", _event(_laplace_filtered), learns=True
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
            _whole_laplace,
            tuned=True,
            whole=True,
        ),
        "tops": Entry(
            "event level, the whole value protected: threshold, perturb and smooth",
            Tops.of,
            tuned=True,
            whole=True,
        ),
        "topl": Entry(
            "local, the whole value protected: the same by the person herself",
            Topl.of,
            tuned=True,
            whole=True,
        ),
    },
)


def series_method(spec: SeriesSpec) -> AnyMethod:
    """The method of a spec; refused if it is tuned on the truth or for another unit."""
    entry = METHODS.named(spec.method)
    if entry.helped(spec):
        rule = (
            "come with a weight (--weight)" if entry.weighted else "not be tuned on the true series"
        )
        raise InvalidParameter("method", spec.method, rule)
    if spec.estimate is not None and not entry.learns:
        raise InvalidParameter("method", spec.method, "learn, to be given a period or a history")
    made = entry.make(spec if entry.both else replace(spec, unit=None))
    wanted: Unit | None = None if spec.unit is None else UNITS[spec.unit]
    if wanted not in (None, made.unit):
        rule = f"be that of {spec.method}, which is {made.unit.value}"
        raise InvalidParameter("unit", spec.unit, rule)
    return made
