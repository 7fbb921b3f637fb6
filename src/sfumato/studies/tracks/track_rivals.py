"""Everything that a track is released by, with the settings that are tried of each.

Rivals have several settings and are judged by the best of them, in hindsight, on the very tracks
that the losses are of. What is ours has none. *Population division*, seen from one person, tells
one value of every N by randomised response, with all that the N may leak.

References:
    [Ren2022, Sec. 6]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sfumato.core.budgets import Horizon, PerStep
from sfumato.core.bursts import spread_out
from sfumato.core.guarantees import SIP
from sfumato.solver.design_methods import Method
from sfumato.stream.burst_search import best_bursts
from sfumato.stream.look_ahead import look_ahead
from sfumato.stream.plan import Plan
from sfumato.studies.tracks.clustered_reports import ClusteredReports, follow_clustered
from sfumato.studies.tracks.compensated_noise import CompensatedNoise, follow_compensated
from sfumato.studies.tracks.public_rivals import (
    Adaptive,
    Family,
    PlanarLaplace,
    Predictive,
    PublicRival,
    Scales,
)
from sfumato.studies.tracks.track_runs import (
    Followed,
    PlanWalker,
    PublicWalker,
    TrackWorld,
    followed,
)

OURS = ("step-wise", "far-sighted", "bursts")
UNBOUNDED = "clustered reports"


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting of one way to release.

    Attributes:
        way: Name of the way.
        setting: What was tried, in words; empty where there is nothing to set.
        run: Releases the tracks.
    """

    way: str
    setting: str
    run: Callable[[], Followed]


def trials(world: TrackWorld, noise: Scales, cap: float, seed: int) -> Iterator[Trial]:
    """All ways and settings at one leakage per value.

    Args:
        world: Chain, loss and tracks.
        noise: Planar noise on its places.
        cap: Nats per value.
        seed: Of the coins.
    """
    for way, setting, rival in _public(noise):
        yield Trial(way, setting, _walked(world, rival, cap, seed))
    for gap in _gaps(world):
        told = _walked(world, PlanarLaplace(noise), cap, seed, gap)
        yield Trial("planar Laplace, every N", f"every {gap}", told)
    for radius in (0.0, _typical(noise)):
        yield Trial(UNBOUNDED, f"radius {radius:.3g}", _clustered(world, noise, radius, cap, seed))
    for margin in (-0.1, 0.0, 0.25):
        rule = CompensatedNoise(cap, margin, window=3)
        yield Trial(
            "compensated noise (CAPP)", f"margin {margin:g}", _compensated(world, rule, seed)
        )
    yield from _plans(world, cap, seed)


def fixed_rate(world: TrackWorld, noise: Scales, rate: float, seed: int) -> Followed:
    """Planar Laplace as it is published: one rate, whatever it leaks.

    Args:
        world: Chain, loss and tracks.
        noise: Planar noise on its places.
        rate: The nearest one that is there is taken.
        seed: Of the coins.
    """
    place = int(np.abs(np.log(noise.rates / rate)).argmin())
    family = Family(noise.channels[place : place + 1], np.arange(noise.channels.shape[2]))
    return _walked(world, _Constant(family), math.inf, seed)()


@dataclass(frozen=True, slots=True, eq=False)
class _Constant:
    """The same channels for every history."""

    only: Family

    def family(self, last: int | None, guess: int) -> Family:
        return self.only


def _public(noise: Scales) -> Iterator[tuple[str, str, PublicRival]]:
    typical = _typical(noise)
    yield "planar Laplace", "", PlanarLaplace(noise)
    for parrot in (True, False):
        by = "last report" if parrot else "best guess"
        for near in (0.5 * typical, typical):
            rival = Predictive(noise, near, 1.0, parrot)
            yield "predictive", f"{by}, within {near:.3g}", rival
        for factor in (1.25, 2.0):
            adaptive = Adaptive(noise, 0.5 * typical, 1.5 * typical, factor, parrot)
            yield "adaptive", f"{by}, factor {factor:g}", adaptive


def _typical(noise: Scales) -> float:
    """Median distance of a place to the nearest other one."""
    apart = np.where(noise.distances > 0, noise.distances, np.inf)
    return float(np.median(apart.min(axis=1)))


def _walked(
    world: TrackWorld, rival: PublicRival, cap: float, seed: int, every: int = 1
) -> Callable[[], Followed]:
    losses = world.losses
    return lambda: followed(world, lambda: PublicWalker(rival, cap, losses, every), seed)


def _gaps(world: TrackWorld) -> list[int]:
    """Every so many values; all of a track in groups of the same size, so that totals agree."""
    values = world.tracks.shape[1]
    return [gap for gap in range(2, values + 1) if values % gap == 0]


def _clustered(
    world: TrackWorld, noise: Scales, radius: float, cap: float, seed: int
) -> Callable[[], Followed]:
    """Fresh reports share what the whole track may leak, as if their moments told nothing."""
    near = noise.distances <= radius

    def run() -> Followed:
        quiet = ClusteredReports(noise.channels[0], near)
        rng = np.random.default_rng(seed)
        tracks = world.tracks.tolist()
        reports = sum(told is not None for track in tracks for told in quiet.released(track, rng))
        most = cap * world.tracks.size / reports
        with np.errstate(divide="ignore", invalid="ignore"):
            leaks = np.log(noise.channels.max(axis=1) / noise.channels.min(axis=1)).max(axis=1)
        scale = max(int(np.flatnonzero(leaks <= most)[-1:].sum()), 0)
        return follow_clustered(world, ClusteredReports(noise.channels[scale], near), seed)

    return run


def _compensated(world: TrackWorld, rule: CompensatedNoise, seed: int) -> Callable[[], Followed]:
    return lambda: follow_compensated(world, rule, seed)


def _plans(world: TrackWorld, cap: float, seed: int) -> Iterator[Trial]:
    values = world.tracks.shape[1]
    each = Plan(world.chain, PerStep(SIP(cap)), world.loss)
    total = Horizon(SIP(cap * values), values)
    whole = Plan(world.chain, total, world.loss)

    def run(plan: Callable[[], Plan]) -> Callable[[], Followed]:
        def released() -> Followed:
            asked = plan()
            return followed(world, lambda: PlanWalker(asked), seed)

        return released

    def sighted() -> Plan:
        sight = look_ahead(world.chain, world.loss, cap)
        return replace(each, method=Method.FAR_SIGHTED, sight=sight)

    response = replace(each, method=Method.CALIBRATED)
    yield Trial("randomised response", "", run(lambda: response))
    for gap in _gaps(world):
        plan = replace(whole, method=Method.CALIBRATED, budget=spread_out(total, gap))
        yield Trial("population division", f"every {gap}", run(partial(replace, plan)))
    yield Trial("step-wise", "", run(lambda: each))
    yield Trial("far-sighted", "", run(sighted))
    yield Trial("bursts", "", run(lambda: replace(whole, budget=best_bursts(whole).best.budget)))
