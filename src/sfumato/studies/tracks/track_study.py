"""What a user would pick instead for a track, as a table, sentences and a picture."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from itertools import groupby

from sfumato.core.printed import shown_up
from sfumato.studies.study import Findings, Setting, Work
from sfumato.studies.tracks import track_drawings, track_points
from sfumato.studies.tracks.track_points import FIXED, SILENCE, TrackPoint, ours, rival
from sfumato.studies.tracks.track_rivals import UNBOUNDED


def prepare(setting: Setting) -> Work:
    """Every way on every set at every leakage; quick: two made-up sets, few tracks."""
    worlds = track_points.FEW_WORLDS if setting.quick else track_points.WORLDS
    caps = track_points.FEW_CAPS if setting.quick else track_points.CAPS

    def run(show: Callable[[int], None]) -> Findings:
        points = track_points.track_points(setting, show)
        return Findings(
            title="error per value at the same leakage; every rival at its best setting",
            columns=[
                "data, nats a value",
                "way",
                "as shown",
                "best guess",
                "adversary",
                "SIP a value",
                "LDP a value",
                "setting",
            ],
            rows=[_row(point) for point in points],
            records=[asdict(point) for point in points],
            facts=facts(points),
            stand_ins=sorted({point.data for point in points if point.stand_in}),
            pictures={"tracks": partial(track_drawings.errors, points)},
            captions={
                "tracks": "Error of the receiver's best guess against the leakage per value that "
                "all ways are held to; bars are two standard errors over tracks."
            },
        )

    return Work(len(worlds) * len(caps), run)


def _row(point: TrackPoint) -> list[str]:
    return [
        f"{point.data}, {point.cap:g}",
        point.way,
        f"{point.shown:.3f}",
        f"{point.guessed:.3f} +- {2 * point.error:.3f}",
        f"{point.adversary:.3f}",
        _nats(point.sip),
        _nats(point.ldp),
        point.setting,
    ]


def _nats(leak: float) -> str:
    return shown_up(leak, 4) if math.isfinite(leak) else "unbounded"


def facts(points: Sequence[TrackPoint]) -> list[str]:
    """What follows from the points.

    Args:
        points: Of all sets and leakages, those of one set and leakage side by side.
    """
    groups = [list(group) for _, group in groupby(points, key=lambda one: (one.data, one.cap))]
    pairs = [(ours(group), rival(group)) for group in groups]
    shares = [own.guessed / other.guessed for own, other in pairs]
    lost = [
        f"{own.data}, {own.cap:g} ({other.way}: {other.guessed:.3f} against {own.guessed:.3f})"
        for own, other in pairs
        if other.guessed < own.guessed
    ]
    worse = Counter(
        point.way
        for group in groups
        for point in group
        if point.way not in (SILENCE, FIXED) and point.shown > _of(group, SILENCE).shown
    )
    published = [point for point in points if point.way == FIXED]
    most = max(published, key=lambda one: one.ldp / one.cap)
    return [
        "at the same certified leakage the best of ours is off by "
        f"{min(shares):.2f} to {max(shares):.2f} times what the best rival is off by",
        f"a rival wins at: {'; '.join(lost) or 'none'}",
        *_free_of_chains(groups),
        f"{UNBOUNDED}: a repetition excludes places, so no bound holds at any noise",
        f"taken at its word, what is shown is worse than silence (of {len(groups)} times): "
        f"{', '.join(f'{way} {times}' for way, times in worse.items()) or 'never'}",
        f"planar Laplace at one rate, {most.setting}, as published: {_nats(most.sip)} nats a value "
        f"under the chain, {_nats(most.ldp)} whatever the chain is ({most.data})",
    ]


def _free_of_chains(groups: Sequence[Sequence[TrackPoint]]) -> list[str]:
    """Who wins for a user who trusts no chain: rivals may then leak twice as much under it."""
    by_cap = {(group[0].data, group[0].cap): group for group in groups}
    pairs = [
        (ours(group), rival(by_cap[data, 2 * cap]))
        for (data, cap), group in by_cap.items()
        if (data, 2 * cap) in by_cap
    ]
    won = sum(own.guessed <= other.guessed for own, other in pairs)
    if not pairs:
        return []
    most = max(own.ldp / own.cap for own, _ in pairs)
    return [
        f"whatever the chain is, ours leaks up to {shown_up(most, 3)} times the cap; held against "
        f"rivals at twice the cap it is no worse {won} of {len(pairs)} times"
    ]


def _of(group: Sequence[TrackPoint], way: str) -> TrackPoint:
    return next(point for point in group if point.way == way)
