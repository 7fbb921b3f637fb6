"""What left under a release that learns, start by start: what else is inferred from it.

Learning starts anew where outputs prove that streams have changed. Whatever is inferred from
outputs afterwards treats each start by itself, as the release did: channels are those of the
version of each value, and what was learnt of values is what was learnt in their own start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sfumato.core.arrays import Bools, Ints
from sfumato.models.markov import MarkovChain
from sfumato.models.plausible import PlausibleChains
from sfumato.stream.learning_plan import LearningPlan
from sfumato.stream.model_versions import ModelVersion
from sfumato.stream.released_tracks import ReleasedTracks


def by_start(versions: Sequence[ModelVersion]) -> list[list[ModelVersion]]:
    """The versions of each start; one that starts learning anew ends the one before."""
    found: list[list[ModelVersion]] = [[]]
    for version in versions:
        found[-1].append(version)
        if version.restarts:
            found.append([])
    return found


def last_learnt(versions: Sequence[ModelVersion]) -> ModelVersion | None:
    """The last version of a start that has a model; None if none has."""
    return next((one for one in reversed(versions) if one.chains is not None), None)


def value_starts(tracks: ReleasedTracks, plan: LearningPlan) -> Ints:
    """How often learning had started anew when each value left."""
    parts = []
    for name, length in zip(tracks.streams, np.diff(tracks.starts).tolist(), strict=True):
        began = np.array(plan.history.starts(name))
        parts.append(np.searchsorted(began, np.arange(length), side="right") - 1)
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def since_last_start(tracks: ReleasedTracks, plan: LearningPlan) -> Bools:
    """Which values left since learning started last."""
    return np.asarray(value_starts(tracks, plan) == plan.history.restarts)


def estimates(plan: LearningPlan) -> tuple[MarkovChain, ...]:
    """What was learnt last in each start; where nothing was, the model that knows nothing."""
    nothing = plan.model
    assert isinstance(nothing, MarkovChain)  # a release that learns begins with one
    found = [last_learnt(own) for own in by_start(plan.history.versions())]
    return tuple(
        nothing if one is None or one.chains is None else one.chains.estimate for one in found
    )


def last_set(plan: LearningPlan) -> tuple[int, PlausibleChains] | None:
    """The version learnt last since learning started last, and its set; None if there is none."""
    found = last_learnt(by_start(plan.history.versions())[-1])
    if found is None or found.chains is None:
        return None
    return found.number, found.chains


def with_any_first(chains: PlausibleChains) -> PlausibleChains:
    """The same chains for streams that go on after a change: what they begin with may be any."""
    none, whole = np.zeros_like(chains.first_low), np.ones_like(chains.first_high)
    return replace(chains, first_low=none, first_high=whole)
