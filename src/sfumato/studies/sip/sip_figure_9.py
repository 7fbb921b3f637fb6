"""Figure 9 of SIP: gaze, mean distance between what was seen and what is released.

The paper's set is not public: recordings of Lund 2013 stand in, at its 50 values a second. They are
13 minutes of thirty people instead of 50 hours of ten, so the screen has 24 cells, not 10,000:
a chain of order 2 must be learnt from 19,000 values. The chain is that of everybody's first halves;
what is released are pieces of .6 seconds from the second halves, one of each person. Budgets are
those of a second, evenly split, as in the paper.

References:
    [SIP, Fig. 9], [SIP, Sec. VI-B]
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial

import numpy as np

from sfumato.core.loss import euclidean
from sfumato.solver.design_methods import Method
from sfumato.studies.data import data_files
from sfumato.studies.data.gaze_data import Gaze, Grid, gaze
from sfumato.studies.sip.compared_releases import SILENCE, Released, Trial, Way, released_points
from sfumato.studies.sip.fixed_channels import response
from sfumato.studies.sip.release_claims import (
    better_than_twice_epsilon,
    equal_leakage,
    rival_rows,
    steadily_better,
)
from sfumato.studies.sip.release_drawings import losses_at_true_leakage
from sfumato.studies.sip.support_response import SupportResponse
from sfumato.studies.study import Claim, Findings, Setting, Work, verdict_of

GRID, SECOND, LENGTH = Grid(6, 4), 50, 30
TOTALS, QUICK_TOTALS = (5.0, 10.0, 25.0), (10.0,)
"""Budgets of a second, in nats."""
PIECES, QUICK_PIECES = 24, 3
OURS = ("instantaneous", "far-sighted", "bursts every 10", "batches of 5", "batches of 10")
_SUPPORT, _TWICE = "temporal LDP, as published", "temporal LDP, as published, 2 epsilon"


def _plan(name: str, method: Method, width: int = 1) -> Way:
    return lambda trial, epsilon: trial.planned(name, epsilon, method, width)


def _response(name: str, multiple: float) -> Way:
    return lambda trial, epsilon: trial.fixed(
        name, epsilon, response(trial.chain.size, multiple * epsilon)
    )


def _support(name: str, multiple: float) -> Way:
    def way(trial: Trial, epsilon: float) -> Released:
        rival = SupportResponse(trial.chain, multiple * epsilon)
        lost = rival.losses(trial.loss, trial.streams)
        return trial.released(name, epsilon, lost, lost, np.full(len(lost), rival.leakage))

    return way


WAYS: dict[str, Way] = {
    "k-RR, epsilon-LDP": _response("k-RR, epsilon-LDP", 1.0),
    "k-RR, 2 epsilon-LDP": _response("k-RR, 2 epsilon-LDP", 2.0),
    _SUPPORT: _support(_SUPPORT, 1.0),
    _TWICE: _support(_TWICE, 2.0),
    "k-RR, calibrated": _plan("k-RR, calibrated", Method.CALIBRATED),
    "instantaneous": _plan("instantaneous", Method.OPTIMAL),
    "far-sighted": _plan("far-sighted", Method.FAR_SIGHTED),
    "bursts every 10": lambda trial, epsilon: trial.bursts("bursts every 10", epsilon, 10),
    "batches of 5": _plan("batches of 5", Method.OPTIMAL, 5),
    "batches of 10": _plan("batches of 10", Method.OPTIMAL, 10),
}
_ORDER_1 = ("far-sighted",)
"""Value functions know the beliefs of chains of order 1, or of a few contexts."""


def trials_of(seen: Gaze, orders: Sequence[int], pieces: int, seed: int) -> list[Trial]:
    """Pieces of as many people as there are, the same for each order of the chain."""
    draw, people = np.random.default_rng(seed), itertools.cycle(seen.viewers)
    own = [seen.of(viewer).pieces(LENGTH) for viewer in itertools.islice(people, pieces)]
    chosen = [mine[int(draw.integers(len(mine)))] for mine in own]
    streams = np.array([seen.alphabet.indices(piece) for piece in chosen])
    loss = euclidean(seen.alphabet)
    return [Trial(seen.chain(order), loss, streams, seed) for order in orders]


def ways_of(order: int) -> dict[str, Way]:
    """What can be done under a chain of an order."""
    return {name: way for name, way in WAYS.items() if order == 1 or name not in _ORDER_1}


def prepare(setting: Setting) -> Work:
    """Chains of order 1 and 2; a look has few pieces and order 1 alone."""
    seen = gaze(setting.path(data_files.GAZE), GRID)
    totals, orders = (QUICK_TOTALS, (1,)) if setting.quick else (TOTALS, (1, 2))
    pieces = QUICK_PIECES if setting.quick else PIECES
    trials = trials_of(seen, orders, pieces, setting.seed)
    steps = len(totals) * sum(len(ways_of(order)) for order in orders)
    stand_ins = [f"gaze: {data_files.GAZE.name}"] if seen.simulated else []
    return Work(steps, partial(_run, trials, totals, stand_ins))


def _run(
    trials: Sequence[Trial],
    totals: Sequence[float],
    stand_ins: list[str],
    show: Callable[[int], None],
) -> Findings:
    points: list[Released] = []
    done = 0
    epsilons = [total / SECOND for total in totals]
    for trial in trials:
        ways = ways_of(trial.chain.order)
        points += released_points([trial], ways, epsilons, partial(_shifted, show, done))
        done += len(ways) * len(epsilons)
    return Findings(
        title="mean distance on a screen of 1 by 1, as released / with the best guess (true "
        "leakage per value); by nats a second",
        columns=["order of the chain, way", *(f"{total:g}" for total in totals)],
        rows=[
            [f"{order}, {name}", *cells]
            for order in sorted({point.order for point in points})
            for name, *cells in rival_rows([p for p in points if p.order == order])
        ],
        records=[asdict(point) for point in points],
        facts=facts(points),
        pictures={
            "distance": partial(
                losses_at_true_leakage, points, "mean distance on a screen of 1 by 1", OURS
            )
        },
        claims=[one for order in _orders(points) for one in claims(order, points)],
        stand_ins=stand_ins,
        captions={
            "distance": "SIP Fig. 9: solid as released, dotted after the receiver's best guess; "
            "dashed what leaks without a bound, at its claim"
        },
    )


def _shifted(show: Callable[[int], None], done: int, more: int) -> None:
    show(done + more)


def _orders(points: Sequence[Released]) -> list[int]:
    return sorted({point.order for point in points})


def claims(order: int, points: Sequence[Released]) -> list[Claim]:
    """What the paper says of one panel of the figure."""
    here, figure = [p for p in points if p.order == order], f"SIP 9 ({'ab'[order - 1]})"
    widths = ("instantaneous", "batches of 5", "batches of 10")
    ours = [name for name in OURS if name in ways_of(order)]
    return [
        _beats_published(figure, here),
        better_than_twice_epsilon(figure, here, widths, "k-RR, 2 epsilon-LDP"),
        steadily_better(figure, here, widths),
        equal_leakage(figure, here, ours, "k-RR, calibrated"),
    ]


def _beats_published(figure: str, points: Sequence[Released]) -> Claim:
    """Whether the instantaneous release loses less than the temporal rival at 2 epsilon."""
    mine = {p.epsilon: p for p in points if p.curve == "instantaneous"}
    rival = {p.epsilon: p for p in points if p.curve == _TWICE}
    held = [mine[epsilon].loss < rival[epsilon].loss for epsilon in mine]
    unbounded = sum(not np.isfinite(point.leakage) for point in rival.values())
    return Claim(
        figure,
        "the instantaneous release is nearer to the truth than temporal LDP at 2 epsilon",
        f"at {sum(held)} of {len(held)} budgets; at {unbounded} of them that rival leaks without a "
        "bound, because it draws from what can follow the true value before",
        verdict_of(held),
        "erratum N51" if unbounded else "",
    )


def facts(points: Sequence[Released]) -> list[str]:
    """What follows, beside the claims."""
    own = [point for point in points if point.curve in (*OURS, "k-RR, calibrated")]
    kept = all(point.leakage <= point.epsilon for point in own)
    said = [f"certified ways leak at most epsilon per value: {'yes' if kept else 'NO'}"]
    for order in _orders(points):
        here = [p for p in points if p.order == order and p.curve in (*OURS, SILENCE)]
        best = min(here, key=lambda point: point.loss)
        silence = next(p for p in here if p.curve == SILENCE)
        said.append(
            f"order {order}: saying nothing is off by {silence.loss:.3f} +- "
            f"{2 * silence.error:.3f}, {best.curve} at {SECOND * best.epsilon:g} nats a second by "
            f"{best.loss:.3f} +- {2 * best.error:.3f}"
        )
    return said
