"""Release live, correlated data with a privacy guarantee that can be checked.

A value arrives, one private value leaves, the adversary's belief moves on, and the leakage is
known exactly. Names are loaded when they are first used, so that importing costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.column.bounded_prior import bounded_leakage, bounded_prior
    from sfumato.column.feature_prior import FeaturePrior
    from sfumato.column.prior_sets import PriorBall, PriorBox, PriorList
    from sfumato.column.privatize import Privatizer, privatize
    from sfumato.core import loss
    from sfumato.core.alphabet import Alphabet
    from sfumato.core.belief import Belief
    from sfumato.core.budgets import Geometric, Horizon, PerStep, Window
    from sfumato.core.channel import Channel
    from sfumato.core.errors import SfumatoError
    from sfumato.core.events import Event, Outcome
    from sfumato.core.guarantees import LDP, LIP, SIP, ApproxDP, Disclosure, PureDP, TemporalDP
    from sfumato.core.information_leakage import (
        batch_leakage,
        information_leakage,
        instantaneous_leakage,
        sequence_leakage,
    )
    from sfumato.core.ledger import Ledger
    from sfumato.core.local_leakage import local_leakage
    from sfumato.core.purpose import Fallback, Purpose
    from sfumato.core.randomness import Address, Domain, keyed, secure, seeded
    from sfumato.core.state import StreamState
    from sfumato.models.library import PatternLibrary
    from sfumato.models.markov import MarkovChain
    from sfumato.models.mixture import GaussianMixture
    from sfumato.models.pair_chain import PairChain
    from sfumato.models.prior import Prior
    from sfumato.record.coupling.coupling import FullCoupling
    from sfumato.record.coupling.joint_mixture import JointMixture
    from sfumato.record.disclosure import disclosure
    from sfumato.record.publish import publish
    from sfumato.series.filter_banks import seasonal
    from sfumato.series.realtime import Realtime
    from sfumato.series.series_compare import compare
    from sfumato.series.series_release import Unit
    from sfumato.solver.certify import certified
    from sfumato.solver.closed_form import (
        calibrated_randomized_response,
        paper_response,
        randomized_response,
    )
    from sfumato.solver.context_free_channel import context_free
    from sfumato.solver.design_methods import Method
    from sfumato.solver.design_result import Design
    from sfumato.solver.inverse import least_leakage
    from sfumato.solver.optimal_channel import optimal
    from sfumato.solver.policy import Policy
    from sfumato.store.codec import from_bytes, to_bytes
    from sfumato.store.files import load, save
    from sfumato.stream.compile import compile_policy
    from sfumato.stream.composition import composed
    from sfumato.stream.fleet import Fleet, Step
    from sfumato.stream.partition import batch_loss
    from sfumato.stream.plan import Plan
    from sfumato.stream.release import BatchedRelease, InstantRelease
    from sfumato.stream.sequence_leakage import SequenceTable, tabulate
    from sfumato.temporal.over_time import temporal_leakage
    from sfumato.temporal.temporal_leakage import LossFunction
    from sfumato.temporal.temporal_plan import TemporalPlan
    from sfumato.temporal.temporal_release import TemporalRelease

_HOMES = {
    "core.budgets": ("Geometric", "Horizon", "PerStep", "Window"),
    "stream.composition": ("composed",),
    "core.events": ("Event", "Outcome"),
    "core.ledger": ("Ledger",),
    "core.alphabet": ("Alphabet",),
    "store.codec": ("from_bytes", "to_bytes"),
    "column.bounded_prior": ("bounded_leakage", "bounded_prior"),
    "solver.certify": ("certified",),
    "solver.closed_form": (
        "calibrated_randomized_response",
        "paper_response",
        "randomized_response",
    ),
    "stream.compile": ("compile_policy",),
    "solver.context_free_channel": ("context_free",),
    "solver.inverse": ("least_leakage",),
    "solver.design_methods": ("Method",),
    "solver.optimal_channel": ("optimal",),
    "solver.policy": ("Policy",),
    "solver.design_result": ("Design",),
    "core.errors": ("SfumatoError",),
    "store.files": ("load", "save"),
    "core.guarantees": ("LDP", "LIP", "SIP", "ApproxDP", "Disclosure", "PureDP", "TemporalDP"),
    "record.disclosure": ("disclosure",),
    "column.privatize": ("Privatizer", "privatize"),
    "record.publish": ("publish",),
    "series.series_compare": ("compare",),
    "core.information_leakage": (
        "batch_leakage",
        "information_leakage",
        "instantaneous_leakage",
        "sequence_leakage",
    ),
    "core.local_leakage": ("local_leakage",),
    "temporal.over_time": ("temporal_leakage",),
    "stream.sequence_leakage": ("SequenceTable", "tabulate"),
    "temporal.temporal_leakage": ("LossFunction",),
    "core.channel": ("Channel",),
    "core.belief": ("Belief",),
    "record.coupling.coupling": ("FullCoupling",),
    "column.feature_prior": ("FeaturePrior",),
    "record.coupling.joint_mixture": ("JointMixture",),
    "models.library": ("PatternLibrary",),
    "models.markov": ("MarkovChain",),
    "models.mixture": ("GaussianMixture",),
    "models.pair_chain": ("PairChain",),
    "models.prior": ("Prior",),
    "column.prior_sets": ("PriorBall", "PriorBox", "PriorList"),
    "core.randomness": ("Address", "Domain", "keyed", "secure", "seeded"),
    "series.filter_banks": ("seasonal",),
    "stream.fleet": ("Fleet", "Step"),
    "stream.plan": ("Plan",),
    "stream.release": ("BatchedRelease", "InstantRelease"),
    "core.purpose": ("Fallback", "Purpose"),
    "core.state": ("StreamState",),
    "series.realtime": ("Realtime",),
    "series.series_release": ("Unit",),
    "temporal.temporal_plan": ("TemporalPlan",),
    "temporal.temporal_release": ("TemporalRelease",),
}
_MODULES = {"loss": "sfumato.core.loss", "batch_loss": "sfumato.stream.partition.batch_loss"}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "LDP",
    "LIP",
    "SIP",
    "Address",
    "Alphabet",
    "ApproxDP",
    "BatchedRelease",
    "Belief",
    "Channel",
    "Design",
    "Disclosure",
    "Domain",
    "Event",
    "Fallback",
    "FeaturePrior",
    "Fleet",
    "FullCoupling",
    "GaussianMixture",
    "Geometric",
    "Horizon",
    "InstantRelease",
    "JointMixture",
    "Ledger",
    "LossFunction",
    "MarkovChain",
    "Method",
    "Outcome",
    "PairChain",
    "PatternLibrary",
    "PerStep",
    "Plan",
    "Policy",
    "Prior",
    "PriorBall",
    "PriorBox",
    "PriorList",
    "Privatizer",
    "PureDP",
    "Purpose",
    "Realtime",
    "SequenceTable",
    "SfumatoError",
    "Step",
    "StreamState",
    "TemporalDP",
    "TemporalPlan",
    "TemporalRelease",
    "Unit",
    "Window",
    "batch_leakage",
    "batch_loss",
    "bounded_leakage",
    "bounded_prior",
    "calibrated_randomized_response",
    "certified",
    "compare",
    "compile_policy",
    "composed",
    "context_free",
    "disclosure",
    "from_bytes",
    "information_leakage",
    "instantaneous_leakage",
    "keyed",
    "least_leakage",
    "load",
    "local_leakage",
    "loss",
    "optimal",
    "paper_response",
    "privatize",
    "publish",
    "randomized_response",
    "save",
    "seasonal",
    "secure",
    "seeded",
    "sequence_leakage",
    "tabulate",
    "temporal_leakage",
    "to_bytes",
]


_ROOMS = ("column", "record", "series", "stream", "temporal")
"""What the top does not have is in the room of its job: `sf.temporal.release_streams`."""


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _ROOMS:
        return import_module(f"sfumato.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    return getattr(import_module(f"sfumato.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
