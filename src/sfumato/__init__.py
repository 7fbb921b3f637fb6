"""Release live, correlated data with a privacy guarantee that can be checked.

A value arrives, one private value leaves, the adversary's belief moves on, and the leakage is
known exactly. Names are loaded when they are first used, so that importing costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato import batch_loss, loss
    from sfumato.accounting.allocation import Geometric, Horizon, PerStep, Window
    from sfumato.accounting.composition import composed
    from sfumato.accounting.events import Event, Outcome
    from sfumato.accounting.ledger import Ledger
    from sfumato.alphabet import Alphabet
    from sfumato.codec import from_bytes, to_bytes
    from sfumato.design.bounded_prior import bounded_prior
    from sfumato.design.certified import certified
    from sfumato.design.closed_form import (
        calibrated_randomized_response,
        published,
        randomized_response,
    )
    from sfumato.design.compiling import compile_policy
    from sfumato.design.context_free import context_free
    from sfumato.design.inverse import least_leakage
    from sfumato.design.methods import Method
    from sfumato.design.optimal import optimal
    from sfumato.design.policy import Policy
    from sfumato.design.result import Design
    from sfumato.errors import SfumatoError
    from sfumato.files import load, save
    from sfumato.guarantees import LDP, LIP, SIP, ApproxDP, Disclosure, PureDP, TemporalDP
    from sfumato.jobs.disclosure import disclosure
    from sfumato.jobs.privatize import privatize
    from sfumato.jobs.privatizer import Privatizer
    from sfumato.jobs.publishing import publish
    from sfumato.jobs.series import compare
    from sfumato.leakage.bounded import bounded_leakage
    from sfumato.leakage.information import (
        batch_leakage,
        information_leakage,
        instantaneous_leakage,
        sequence_leakage,
    )
    from sfumato.leakage.local import local_leakage
    from sfumato.leakage.over_time import temporal_leakage
    from sfumato.leakage.sequences import SequenceTable, tabulate
    from sfumato.leakage.temporal import LossFunction
    from sfumato.mechanisms.channel import Channel
    from sfumato.models.belief import Belief
    from sfumato.models.coupling import FullCoupling
    from sfumato.models.features import FeaturePrior
    from sfumato.models.joint import JointMixture
    from sfumato.models.library import PatternLibrary
    from sfumato.models.markov import MarkovChain
    from sfumato.models.mixture import GaussianMixture
    from sfumato.models.pair_chain import PairChain
    from sfumato.models.prior import Prior
    from sfumato.models.prior_sets import PriorBall, PriorBox, PriorList
    from sfumato.randomness import Address, Domain, keyed, secure, seeded
    from sfumato.streaming.banks import seasonal
    from sfumato.streaming.batched import BatchedRelease
    from sfumato.streaming.batched_fleet import BatchedFleet, BatchStep
    from sfumato.streaming.batched_plan import BatchedPlan
    from sfumato.streaming.fleet import FleetStep, InstantFleet
    from sfumato.streaming.instant import (
        Fallback,
        InstantPlan,
        InstantRelease,
        InstantState,
        Purpose,
    )
    from sfumato.streaming.realtime import Realtime
    from sfumato.streaming.series import Unit
    from sfumato.streaming.temporal import TemporalPlan, TemporalRelease

_HOMES = {
    "accounting.allocation": ("Geometric", "Horizon", "PerStep", "Window"),
    "accounting.composition": ("composed",),
    "accounting.events": ("Event", "Outcome"),
    "accounting.ledger": ("Ledger",),
    "alphabet": ("Alphabet",),
    "codec": ("from_bytes", "to_bytes"),
    "design.bounded_prior": ("bounded_prior",),
    "design.certified": ("certified",),
    "design.closed_form": ("calibrated_randomized_response", "published", "randomized_response"),
    "design.compiling": ("compile_policy",),
    "design.context_free": ("context_free",),
    "design.inverse": ("least_leakage",),
    "design.methods": ("Method",),
    "design.optimal": ("optimal",),
    "design.policy": ("Policy",),
    "design.result": ("Design",),
    "errors": ("SfumatoError",),
    "files": ("load", "save"),
    "guarantees": ("LDP", "LIP", "SIP", "ApproxDP", "Disclosure", "PureDP", "TemporalDP"),
    "jobs.disclosure": ("disclosure",),
    "jobs.privatize": ("privatize",),
    "jobs.privatizer": ("Privatizer",),
    "jobs.publishing": ("publish",),
    "jobs.series": ("compare",),
    "leakage.bounded": ("bounded_leakage",),
    "leakage.information": (
        "batch_leakage",
        "information_leakage",
        "instantaneous_leakage",
        "sequence_leakage",
    ),
    "leakage.local": ("local_leakage",),
    "leakage.over_time": ("temporal_leakage",),
    "leakage.sequences": ("SequenceTable", "tabulate"),
    "leakage.temporal": ("LossFunction",),
    "mechanisms.channel": ("Channel",),
    "models.belief": ("Belief",),
    "models.coupling": ("FullCoupling",),
    "models.features": ("FeaturePrior",),
    "models.joint": ("JointMixture",),
    "models.library": ("PatternLibrary",),
    "models.markov": ("MarkovChain",),
    "models.mixture": ("GaussianMixture",),
    "models.pair_chain": ("PairChain",),
    "models.prior": ("Prior",),
    "models.prior_sets": ("PriorBall", "PriorBox", "PriorList"),
    "randomness": ("Address", "Domain", "keyed", "secure", "seeded"),
    "streaming.banks": ("seasonal",),
    "streaming.batched": ("BatchedRelease",),
    "streaming.batched_fleet": ("BatchStep", "BatchedFleet"),
    "streaming.batched_plan": ("BatchedPlan",),
    "streaming.fleet": ("FleetStep", "InstantFleet"),
    "streaming.instant": ("Fallback", "InstantPlan", "InstantRelease", "InstantState", "Purpose"),
    "streaming.realtime": ("Realtime",),
    "streaming.series": ("Unit",),
    "streaming.temporal": ("TemporalPlan", "TemporalRelease"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "LDP",
    "LIP",
    "SIP",
    "Address",
    "Alphabet",
    "ApproxDP",
    "BatchStep",
    "BatchedFleet",
    "BatchedPlan",
    "BatchedRelease",
    "Belief",
    "Channel",
    "Design",
    "Disclosure",
    "Domain",
    "Event",
    "Fallback",
    "FeaturePrior",
    "FleetStep",
    "FullCoupling",
    "GaussianMixture",
    "Geometric",
    "Horizon",
    "InstantFleet",
    "InstantPlan",
    "InstantRelease",
    "InstantState",
    "JointMixture",
    "Ledger",
    "LossFunction",
    "MarkovChain",
    "Method",
    "Outcome",
    "PairChain",
    "PatternLibrary",
    "PerStep",
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
    "privatize",
    "publish",
    "published",
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


def __getattr__(name: str) -> object:
    if name in ("batch_loss", "loss"):
        return import_module(f"sfumato.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    return getattr(import_module(f"sfumato.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
