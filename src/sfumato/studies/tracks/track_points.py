"""Every way to release a track, at the same leakage per value, on grids and check-ins."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats
from sfumato.stream.silence import Silence
from sfumato.studies import town
from sfumato.studies.data.sequence_data import GAZE, TOWN, SequenceSet, Source, halves
from sfumato.studies.data.simulated_sequences import Crowd, Streams, simulated_streams
from sfumato.studies.standard_error import standard_error
from sfumato.studies.study import Setting
from sfumato.studies.tracks.public_rivals import Scales
from sfumato.studies.tracks.track_rivals import OURS, fixed_rate, trials
from sfumato.studies.tracks.track_runs import Followed, TrackWorld

CAPS, FEW_CAPS = (0.25, 0.5, 1.0, 2.0), (0.5, 1.0)
TRACKS, FEW = 40, 6
SILENCE, FIXED = "silence", "planar Laplace, one rate"


def _check_ins(_: Path) -> tuple[list[Streams], Alphabet]:
    """People of the town who say where they are when they arrive there."""
    people: list[Streams] = []
    for places in town.people(120, 14, 8).values():
        people.append([[place for place, _ in itertools.groupby(places)]])
    return people, town.alphabet()


def _walks(_: Path) -> tuple[list[Streams], Alphabet]:
    return simulated_streams(Crowd(20, people=60, values=96, stay=0.6, skew=0.3, grid=5), seed=1)


CHECK_INS = Source("check-ins (the demo's town)", None, _check_ins, unit="km")
WALKS = Source("walks on a grid of 20 cells", None, _walks, unit="cells")
WORLDS: tuple[tuple[Source, int], ...] = ((TOWN, 24), (CHECK_INS, 8), (WALKS, 24), (GAZE, 24))
"""Sources, and the values of a track."""
FEW_WORLDS = ((TOWN, 12), (CHECK_INS, 8))


@dataclass(frozen=True, slots=True)
class TrackPoint:
    """One way to release, at one leakage per value, on one set.

    Attributes:
        data: Name of the set.
        unit: What errors are in.
        cap: Most nats a value, in the mean over a track.
        way: How it is released.
        setting: The best one of those that were tried, in hindsight.
        tracks: How many were released.
        shown: Mean error of what is shown.
        guessed: Mean error of the receiver's best guess, as things leave.
        error: Standard error of that over tracks.
        adversary: Mean error of who sees the whole release first.
        sip: Exact leakage per value under the chain, mean over tracks; for CAPP what is proven.
        ldp: Leakage per value whatever the chain is, mean over tracks.
        stand_in: Whether the set was made up because there are no real data.
    """

    data: str
    unit: str
    cap: float
    way: str
    setting: str
    tracks: int
    shown: float
    guessed: float
    error: float
    adversary: float
    sip: float
    ldp: float
    stand_in: bool


def track_points(setting: Setting, progress: Callable[[int], None]) -> list[TrackPoint]:
    """All ways on all sets.

    Args:
        setting: Where data are, how many tracks, which seed.
        progress: Called with the number of pairs of set and cap done so far.
    """
    points: list[TrackPoint] = []
    done = 0
    for source, values in FEW_WORLDS if setting.quick else WORLDS:
        found = halves(source, setting, values, FEW if setting.quick else TRACKS)
        world = world_of(found)
        noise = Scales(world.places)
        for cap in FEW_CAPS if setting.quick else CAPS:
            points += cap_points(found, world, noise, cap, setting.seed)
            done += 1
            progress(done)
    return points


def world_of(found: SequenceSet) -> TrackWorld:
    """The chain of one half, and the tracks of the other."""
    assert found.alphabet.coordinates is not None
    places = np.asarray(found.alphabet.coordinates, dtype=np.float64)
    return TrackWorld(found.model, found.loss, places, found.kept)


def cap_points(
    found: SequenceSet, world: TrackWorld, noise: Scales, cap: float, seed: int
) -> list[TrackPoint]:
    """Every way at one leakage per value, at its best setting.

    Args:
        found: Names and units.
        world: What is released.
        noise: Planar noise on its places.
        cap: Nats per value.
        seed: Of the coins.
    """

    def point(way: str, setting: str, told: Followed) -> TrackPoint:
        return TrackPoint(
            data=found.name,
            unit=found.unit,
            cap=cap,
            way=way,
            setting=setting,
            tracks=len(world.tracks),
            shown=float(told.shown.mean()),
            guessed=float(told.guessed.mean()),
            error=standard_error(told.guessed),
            adversary=float(told.adversary.mean()),
            sip=float(told.sip.mean()),
            ldp=float(told.ldp.mean()),
            stand_in=found.stand_in,
        )

    rate = cap / float(np.median(noise.distances[noise.distances > 0]))
    points = [
        point(SILENCE, "", silent(world)),
        point(
            FIXED, f"{rate:.3g} a {found.unit.rstrip('s')}", fixed_rate(world, noise, rate, seed)
        ),
    ]
    tried = [point(one.way, one.setting, one.run()) for one in trials(world, noise, cap, seed)]
    return points + best_settings(tried)


def best_settings(tried: Iterable[TrackPoint]) -> list[TrackPoint]:
    """The setting of each way with the least error of the receiver."""
    best: dict[str, TrackPoint] = {}
    for point in tried:
        if point.way not in best or point.guessed < best[point.way].guessed:
            best[point.way] = point
    return list(best.values())


def silent(world: TrackWorld) -> Followed:
    """What the best constant of each moment is off by."""
    values = world.tracks.shape[1]
    quiet = Silence(world.chain, world.loss)
    guesses = [quiet.at(moment)[0] for moment in range(values)]
    off: Floats = world.losses[world.tracks, guesses].mean(axis=1)
    nothing = np.zeros(len(off))
    return Followed(off, off, off, nothing, nothing)


def ours(points: Iterable[TrackPoint]) -> TrackPoint:
    """The best of what is ours."""
    return min((point for point in points if point.way in OURS), key=lambda one: one.guessed)


def rival(points: Iterable[TrackPoint]) -> TrackPoint:
    """The best of what is not, within the same leakage."""
    others = (
        point
        for point in points
        if point.way not in (*OURS, SILENCE, FIXED) and math.isfinite(point.sip)
    )
    return min(others, key=lambda one: one.guessed)
