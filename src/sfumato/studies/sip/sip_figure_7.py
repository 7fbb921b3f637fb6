"""Figure 7 of SIP: where somebody looked, and what is released of it at ten nats a second.

Recordings of Lund 2013 stand in for the paper's set, which is not public, on a screen of 48 cells
instead of 10,000. Three pieces of two seconds are released; the picture shows the first.

References:
    [SIP, Fig. 7], [SIP, Sec. VI-B]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.budgets import Budget, PerStep
from sfumato.core.bursts import Bursts
from sfumato.core.guarantees import SIP
from sfumato.core.loss import euclidean
from sfumato.core.randomness import seeded
from sfumato.models.markov import MarkovChain
from sfumato.solver.design_methods import Method
from sfumato.stream.plan import Plan
from sfumato.stream.simulated_stream import SimulatedStep, as_simulation, simulated
from sfumato.studies.data import data_files
from sfumato.studies.data.gaze_data import Grid, gaze
from sfumato.studies.sip.gaze_drawings import tracks_on_screen
from sfumato.studies.standard_error import standard_error
from sfumato.studies.study import Claim, Findings, Setting, Work, verdict_of

GRID, SECOND, LENGTH = Grid(8, 6), 50, 100
TOTAL = 10.0
"""Nats a second."""
PIECES, QUICK_PIECES = 3, 1
LEAST_CELLS = 4
"""Cells that a piece must see: one that rests on a spot shows nothing."""
TRUTH = "as recorded"


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """One piece, released in one way.

    Attributes:
        way: How.
        piece: Which piece.
        places: Of the released cells.
        distances: To the true ones, moment by moment.
        leaked: True leakage under the chain in all (SIP).
    """

    way: str
    piece: int
    places: Ints
    distances: Floats
    leaked: float


_EACH = PerStep(SIP(TOTAL / SECOND))
_TOGETHER = Bursts(SIP(TOTAL * LENGTH / SECOND), LENGTH, every=10)
_WAYS: dict[str, tuple[Method, int, Budget]] = {
    "k-RR, LDP": (Method.RANDOMIZED_RESPONSE, 1, _EACH),
    "instantaneous": (Method.OPTIMAL, 1, _EACH),
    "far-sighted": (Method.FAR_SIGHTED, 1, _EACH),
    "bursts every 10": (Method.OPTIMAL, 1, _TOGETHER),
    "batches of 10": (Method.OPTIMAL, 10, _EACH),
}


def prepare(setting: Setting) -> Work:
    """Some pieces, each in every way."""
    seen = gaze(setting.path(data_files.GAZE), GRID)
    draw, pieces = np.random.default_rng(setting.seed), seen.pieces(LENGTH)
    lively = [piece for piece in pieces if len(set(piece)) >= LEAST_CELLS]
    count = min(QUICK_PIECES if setting.quick else PIECES, len(lively))
    chosen = [lively[place] for place in draw.permutation(len(lively))[:count]]
    streams = np.array([seen.alphabet.indices(piece) for piece in chosen])
    stand_ins = [f"gaze: {data_files.GAZE.name}"] if seen.simulated else []
    return Work(count * len(_WAYS), partial(_run, seen.chain(), streams, setting.seed, stand_ins))


def _run(
    chain: MarkovChain,
    streams: Ints,
    seed: int,
    stand_ins: list[str],
    show: Callable[[int], None],
) -> Findings:
    places = chain.alphabet.coordinates
    assert places is not None
    tracks: list[Track] = [
        Track(TRUTH, n, stream, np.zeros(len(stream)), np.inf) for n, stream in enumerate(streams)
    ]
    loss = euclidean(chain.alphabet)
    for way, (method, width, budget) in _WAYS.items():
        plan = as_simulation(Plan(chain, budget, loss, width, method=method))
        for piece, stream in enumerate(streams):
            tracks.append(_track(plan, way, piece, stream, places, seed))
            show(len(tracks) - len(streams))
    first = {track.way: track for track in tracks if track.piece == 0}
    return Findings(
        title=f"{TOTAL:g} nats a second, {LENGTH / SECOND:g} seconds: mean distance on a screen of "
        "1 by 1, true leakage a second (SIP, nats)",
        columns=["way", "mean distance", "leaks a second"],
        rows=[[way, *cells] for way, cells in _rows(tracks).items()],
        records=[
            {
                "way": track.way,
                "piece": track.piece,
                "moment": moment,
                "x": float(places[place, 0]),
                "y": float(places[place, 1]),
                "distance": float(track.distances[moment]),
            }
            for track in tracks
            for moment, place in enumerate(track.places.tolist())
        ],
        facts=[_lively(streams, len(places))],
        pictures={"gaze": partial(tracks_on_screen, first, places, GRID)},
        claims=claims(tracks),
        stand_ins=stand_ins,
        captions={"gaze": "SIP Fig. 7: two seconds of gaze, early dark and late bright"},
    )


def _track(plan: Plan, way: str, piece: int, stream: Ints, places: Floats, seed: int) -> Track:
    steps = list(simulated(plan, f"piece {piece}", stream.tolist(), seeded(seed)))
    events = [event for step in steps for event in step.events]
    left = np.array([place for step in steps for place in _shown(plan, step)])
    apart = np.hypot(*(places[left] - places[stream]).T)
    leaked = sum(event.sip.epsilon for event in events)
    return Track(way, piece, left, apart, leaked)


def _shown(plan: Plan, step: SimulatedStep) -> list[int]:
    """What a receiver sees; in a pause, his best guess under the belief."""
    if step.events[0].released is None:
        assert plan.value_loss is not None
        return [int(plan.value_loss.means(step.state.belief.marginal).argmin())]
    return [plan.model.alphabet.place(event.released) for event in step.events]


def _rows(tracks: Sequence[Track]) -> dict[str, list[str]]:
    rows = {}
    for way in dict.fromkeys(track.way for track in tracks):
        own = [track for track in tracks if track.way == way]
        means = np.array([track.distances.mean() for track in own])
        error = standard_error(means)
        leaked = SECOND * np.mean([track.leaked / len(track.places) for track in own])
        rows[way] = [f"{means.mean():.3f} +- {2 * error:.3f}", f"{leaked:.3g}"]
    return rows


def _lively(streams: Ints, cells: int) -> str:
    seen = [len(np.unique(stream)) for stream in streams]
    return f"{len(streams)} pieces see {min(seen)} to {max(seen)} of {cells} cells"


def claims(tracks: Sequence[Track]) -> list[Claim]:
    """What the pictures of the paper are meant to show."""

    def distance(way: str, piece: int) -> float:
        [track] = [one for one in tracks if (one.way, one.piece) == (way, piece)]
        return float(track.distances.mean())

    pieces = sorted({track.piece for track in tracks})
    nearer = [distance("instantaneous", n) < distance("k-RR, LDP", n) for n in pieces]
    nearest = [distance("batches of 10", n) < distance("instantaneous", n) for n in pieces]
    return [
        Claim(
            "SIP 7",
            "at ten nats a second the instantaneous release looks more like the truth than LDP, "
            "and batches of ten more than both",
            f"nearer than randomised response in {sum(nearer)} of {len(pieces)} pieces, batches "
            f"nearer than the instantaneous release in {sum(nearest)}",
            verdict_of([*nearer, *nearest]),
            ""
            if all([*nearer, *nearest])
            else "at .2 nats a value the optimum of a step says next to nothing",
        )
    ]
