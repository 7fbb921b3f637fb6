"""What a release does that was not told: by which method, and where a total is spent.

With a cap on each value a stream is released far-sighted where that can be computed, else step by
step. A total is spent in the bursts that lose least on the model, where the search takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import SIP
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.models.periodic import PeriodicChain
from sfumato.models.stream_model import StreamModel
from sfumato.solver.design_methods import Method
from sfumato.solver.policy import Policy
from sfumato.store.kept import Kept
from sfumato.stream.release_spec import ReleaseSpec

SIGHTED_SYMBOLS = 24
"""Beyond so many symbols it takes more than some seconds to look ahead and to compile."""
ROBUST_SYMBOLS = 8
"""Beyond so many symbols a far-sighted step for many chains was not seen to gain over one that
looks at itself (16: it lost more): sets of beliefs are then wide, and what is ahead is known for
the middle alone."""
SEARCHED_SYMBOLS, SEARCHED_VALUES = 128, 100
"""Symbols, and values of a total, up to which it takes seconds to seek where it is best spent."""

Remark = Callable[[str], None]


def blind_because(model: StreamModel, ldp: float | None) -> str | None:
    """Why a stream of this model is not released far-sighted unless asked for; None if it is.

    Args:
        model: The model of the release.
        ldp: Cap on what a value may leak whatever the model.
    """
    chain = model.chain
    if ldp is not None:
        # Columns that keep both bounds are priced one by one: .3 s a step with six symbols.
        return "with a cap whatever the model it takes long to solve a step that looks ahead"
    if isinstance(chain, PeriodicChain):
        return "the model changes with time"
    if not isinstance(chain, MarkovChain) or chain.order != 1:
        return "the model is no chain of order 1"
    if chain.size > SIGHTED_SYMBOLS:
        return f"with more than {SIGHTED_SYMBOLS} symbols it takes long to look ahead"
    return None


def with_method(
    spec: ReleaseSpec, model: StreamModel, policy: Policy | None, remark: Remark | None = None
) -> ReleaseSpec:
    """The rules with a method, for whoever named none.

    Args:
        spec: The rules but for the method.
        model: The model of the release.
        policy: Its channels, if they were compiled: they have a method.
        remark: Told where a stream is not released far-sighted, and why.
    """
    if policy is not None:
        return msgspec.structs.replace(spec, method=policy.method)
    method = Method.OPTIMAL
    one_by_one = spec.batch is None and not isinstance(model.chain, PatternLibrary)
    if spec.epsilon is not None and one_by_one:
        because = blind_because(model, spec.ldp)
        if because is None and spec.robust is not None and len(model.alphabet) > ROBUST_SYMBOLS:
            because = f"for many chains of more than {ROBUST_SYMBOLS} symbols it gains nothing"
        method = Method.FAR_SIGHTED if because is None else method
        if because is not None and remark is not None:
            remark(f"each value has the best channel of its step (--method step-wise): {because}")
    return msgspec.structs.replace(spec, method=method.value)


def could_seek_bursts(spec: ReleaseSpec, model: StreamModel) -> bool:
    """Whether there is a total for which the best bursts can be sought, however long it takes."""
    if spec.budget is None or spec.first is not None or spec.batch is not None:
        return False
    if spec.per is not None:  # how many values share it depends on when they come
        return False
    if spec.robust is not None:  # the search follows one belief
        return False
    return not isinstance(model.chain, PatternLibrary | PeriodicChain)


def seeks_bursts(spec: ReleaseSpec, model: StreamModel) -> bool:
    """Whether the search for the best bursts takes seconds, where nobody said how to spend."""
    few = len(model.alphabet) <= SEARCHED_SYMBOLS and spent_over(spec) <= SEARCHED_VALUES
    return few and could_seek_bursts(spec, model)


def spent_over(spec: ReleaseSpec) -> int:
    """How many values share a total."""
    return spec.horizon or spec.window or 1


@dataclass(frozen=True, slots=True)
class KeptBursts:
    """The bursts that lose least on a model, as they are kept beside it.

    Attributes:
        plan: Fingerprint of the plan that spends its total evenly.
        cap: The most that a single value may leak; infinite for no cap.
        every: Values from one burst to the next.
        first: How many times what the others get is for the first.
    """

    plan: str
    cap: float
    every: int
    first: float


def with_bursts(
    spec: ReleaseSpec, model: StreamModel, beside: str | Path, remark: Remark | None = None
) -> ReleaseSpec:
    """The rules with their total in the bursts that lose least on the model.

    Args:
        spec: The rules, with a total, perhaps with a cap on single values.
        model: The model of the release.
        beside: Its file: what was found is kept beside it.
        remark: Told why what was kept is of no use, or nothing is kept.
    """
    from sfumato.stream.burst_search import best_bursts

    if spec.budget is None or spec.per is not None:
        rule = "come with --budget, without --per: else there is nothing to spread"
        raise InvalidParameter("--every", "auto", rule)
    if spec.width(model) is not None:
        raise InvalidParameter("--every", "auto", "be a number for batches")
    # What has no part in the loss has none in the name of the file.
    even = ReleaseSpec(
        budget=spec.budget,
        horizon=spec.horizon,
        window=spec.window,
        ldp=spec.ldp,
        loss=spec.loss,
        method=spec.method,
    ).instant(model)
    cap = float("inf") if spec.cap is None else SIP(spec.cap).epsilon

    def search() -> KeptBursts:
        best = best_bursts(even, cap=None if spec.cap is None else SIP(spec.cap)).best
        return KeptBursts(even.fingerprint, cap, best.every, best.first)

    def check(found: KeptBursts) -> None:
        if (found.plan, found.cap) != (even.fingerprint, cap):
            raise InvalidParameter("bursts", "those of another plan", "be of this one")

    place = Kept.beside(beside, "bursts", even.fingerprint, cap)
    best = place.get(KeptBursts, search, check, remark)
    return msgspec.structs.replace(spec, every=best.every, first=best.first)
