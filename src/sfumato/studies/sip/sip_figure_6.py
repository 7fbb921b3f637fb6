"""Figure 6 of SIP: click streams, loss against leakage, each rival charged what it really leaks.

The paper has 990,002 sessions with 41,270 categories, and measures the absolute distance between
the numbers of categories. Here are 20,000 of the sessions; numbers of categories are put into four
bins of about equal share, so that a chain can be learnt and batches can be listed, and the distance
is that of bins. The chain is learnt from half of the sessions with at least 30 clicks and the
losses are those of the other half, of which the paper says nothing.

References:
    [SIP, Fig. 6], [SIP, Sec. VI-B]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np

from sfumato.core.alphabet import Alphabet
from sfumato.core.loss import as_matrix
from sfumato.solver.design_methods import Method
from sfumato.studies.data import data_files
from sfumato.studies.data.gzipped_rows import gzipped_lines
from sfumato.studies.data.sequence_data import Source, halves
from sfumato.studies.data.simulated_sequences import Crowd, Streams
from sfumato.studies.sip.compared_releases import (
    SILENCE,
    Released,
    Trial,
    Way,
    pooled,
    released_points,
)
from sfumato.studies.sip.fixed_channels import best_threshold, response, temporal_response, topl
from sfumato.studies.sip.release_claims import (
    better_than_twice_epsilon,
    equal_leakage,
    rival_rows,
    steadily_better,
    truncation_helps,
)
from sfumato.studies.sip.release_drawings import losses_at_true_leakage
from sfumato.studies.study import Claim, Findings, Setting, Work

BINS, LENGTH = 4, 30
EPSILONS, QUICK_EPSILONS = (0.25, 0.5, 1.0, 1.5), (0.25, 0.5)
RUNS, QUICK_RUNS = 3, 1
STREAMS, QUICK_STREAMS = 5, 6
_CROWD = Crowd(BINS, people=2000, values=40, stay=0.25, skew=0.0, grid=BINS, sessions=True)


def _numbers(path: Path) -> tuple[list[Streams], Alphabet]:
    """Sessions as bins of category numbers, each bin with about as many clicks."""
    sessions = [np.array(line, dtype=np.int64) for line in gzipped_lines(path)]
    edges = np.quantile(np.concatenate(sessions), np.arange(1, BINS) / BINS)
    names = [str(number) for number in range(BINS)]
    binned = [np.searchsorted(edges, session, side="right") for session in sessions]
    people: list[Streams] = [[[names[place] for place in session]] for session in binned]
    return people, Alphabet(names, np.arange(BINS))


CLICK_NUMBERS = Source("clicks (kosarak)", data_files.CLICKS, _numbers, _CROWD, "bins")


def _plan(method: Method, width: int = 1) -> Callable[[str], Way]:
    return lambda name: lambda trial, epsilon: trial.planned(name, epsilon, method, width)


def _response(multiple: float) -> Callable[[str], Way]:
    def way(name: str, trial: Trial, epsilon: float) -> Released:
        rival = response(trial.chain.size, multiple * epsilon)
        return trial.fixed(name, epsilon, rival)

    return lambda name: partial(way, name)


def _topl(name: str) -> Way:
    def way(trial: Trial, epsilon: float) -> Released:
        loss = as_matrix(trial.loss, trial.chain.size)
        return trial.fixed(name, epsilon, best_threshold(topl, epsilon, loss, trial.streams))

    return way


def _temporal(name: str) -> Way:
    return lambda trial, epsilon: trial.fixed(
        name, epsilon, temporal_response(trial.chain, epsilon)
    )


_WAYS: dict[str, Callable[[str], Way]] = {
    "k-RR, epsilon-LDP": _response(1.0),
    "k-RR, 2 epsilon-LDP": _response(2.0),
    "ToPL": _topl,
    "temporal LDP": _temporal,
    "k-RR, calibrated": _plan(Method.CALIBRATED),
    "instantaneous": _plan(Method.OPTIMAL),
    "far-sighted": _plan(Method.FAR_SIGHTED),
    "batches of 2": _plan(Method.OPTIMAL, 2),
    "batches of 3": _plan(Method.OPTIMAL, 3),
    "batches of 5": _plan(Method.OPTIMAL, 5),
}
WAYS = {name: make(name) for name, make in _WAYS.items()}
OURS = ("instantaneous", "far-sighted", "batches of 2", "batches of 3", "batches of 5")
CERTIFIED = ("k-RR, calibrated", *OURS)


def prepare(setting: Setting) -> Work:
    """Several splits of the sessions, each with streams of its own."""
    epsilons = QUICK_EPSILONS if setting.quick else EPSILONS
    runs, streams = (QUICK_RUNS, QUICK_STREAMS) if setting.quick else (RUNS, STREAMS)
    sets = [
        halves(CLICK_NUMBERS, replace(setting, seed=setting.seed + 10 * run), LENGTH, streams)
        for run in range(runs)
    ]
    trials = [
        Trial(one.model, one.loss, one.kept, setting.seed + run) for run, one in enumerate(sets)
    ]
    stand_ins = [f"{CLICK_NUMBERS.name}: {data_files.CLICKS.name}"] if sets[0].stand_in else []
    return Work(len(trials) * len(epsilons) * len(WAYS), partial(_run, trials, epsilons, stand_ins))


def _run(
    trials: Sequence[Trial],
    epsilons: Sequence[float],
    stand_ins: list[str],
    show: Callable[[int], None],
) -> Findings:
    points = pooled(released_points(trials, WAYS, epsilons, show))
    return Findings(
        title="mean distance in bins as released / with the best guess (true leakage per value)",
        columns=["way", *(f"{epsilon:g}" for epsilon in epsilons)],
        rows=rival_rows(points),
        records=[asdict(point) for point in points],
        facts=facts(points),
        pictures={
            "loss-against-leakage": partial(
                losses_at_true_leakage, points, "mean distance to the true bin", OURS
            )
        },
        claims=claims(points),
        stand_ins=stand_ins,
        captions={
            "loss-against-leakage": "SIP Fig. 6: every way at its true leakage under the chain; "
            "solid as released, dotted after the receiver's best guess"
        },
    )


def claims(points: Sequence[Released]) -> list[Claim]:
    """What the paper says of the figure."""
    widths = ("instantaneous", "batches of 2", "batches of 3", "batches of 5")
    return [
        better_than_twice_epsilon("SIP 6", points, widths, "k-RR, 2 epsilon-LDP"),
        steadily_better("SIP 6", points, widths),
        truncation_helps("SIP 6", points, "ToPL", "k-RR, epsilon-LDP", widths),
        equal_leakage("SIP 6", points, OURS, "k-RR, calibrated"),
    ]


def facts(points: Sequence[Released]) -> list[str]:
    """What follows, beside the claims."""
    certified = [point for point in points if point.curve in CERTIFIED]
    kept = all(point.leakage <= point.epsilon for point in certified)
    silence = next(point for point in points if point.curve == SILENCE)
    nothing = sorted({p.curve for p in points if p.loss > silence.loss and p.curve != SILENCE})
    return [
        f"certified ways leak at most epsilon per value: {'yes' if kept else 'NO'}",
        f"saying nothing loses {silence.loss:.3f} +- {2 * silence.error:.3f}; worse than that as "
        f"released, at some budget: {', '.join(nothing) or 'none'}",
    ]
