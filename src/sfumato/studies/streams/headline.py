"""How much less certified releases lose than randomised response that leaks as much.

All ways have the same certified leakage per value under the chain (SIP): randomised response is
calibrated to leak just that, and its receiver makes the best guess from all outputs so far, which
costs no privacy. The chain is learnt from one half of the people; losses are those of the other
half, and errors come from drawing people again. A batch may leak as much as its values together,
and leaves when its last value is there: so may its rival, and the better of both rivals counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.budgets import PerStep
from sfumato.core.guarantees import SIP
from sfumato.solver.design_methods import Method
from sfumato.stream.plan import Plan
from sfumato.stream.silence import Silence
from sfumato.studies.data import sequence_data as data
from sfumato.studies.held_out import HeldOut, held_out
from sfumato.studies.streams.waiting_rival import best_waiting
from sfumato.studies.study import Setting

CAPS, QUICK_CAPS = (0.25, 0.5, 1.0, 2.0), (0.5, 1.0)
STREAMS, FEW = 100, 16
_DRAWS = 2_000
_TAIL = 0.025
"""Of the factors of people drawn again, so much is left out on either side."""

RIVAL, WAITING = "k-RR, best guess", "k-RR that waits"
SILENCE, PLAIN = "say nothing", "k-RR as released"
BATCHES = "batches"
OURS = ("instantaneous", "far-sighted", BATCHES)


@dataclass(frozen=True, slots=True)
class Sample:
    """Sequences of one kind: how long they are, and how wide a batch is."""

    source: data.Source
    values: int
    width: int


SAMPLES = (
    Sample(data.GAZE, 12, 2),
    Sample(data.BIKES, 4, 2),
    Sample(data.CLICKS, 12, 2),
    Sample(data.ACTIVITIES, 12, 3),
)


@dataclass(frozen=True, slots=True)
class HeadlinePoint:
    """One way to release one set at one cap.

    Attributes:
        data: Name of the set.
        way: Name of the way.
        cap: Certified leakage per value, in nats.
        width: Values of a batch.
        unit: What losses are in.
        loss: Mean loss per value.
        error: Its standard error over people.
        charge: Mean leakage per value that was charged, never over the cap.
        rival: Whom it is compared with: for batches, the better of those that wait and do not.
        factor: How many times as much the rival loses.
        least: The factor's lower confidence limit (95 % on both sides), over people.
        most: Its upper one.
        people: Whose streams they are.
        streams: How many.
        stand_in: Whether the data were made up for want of real ones.
    """

    data: str
    way: str
    cap: float
    width: int
    unit: str
    loss: float
    error: float
    charge: float
    rival: str
    factor: float
    least: float
    most: float
    people: int
    streams: int
    stand_in: bool


def headline_points(
    setting: Setting, progress: Callable[[int], None] | None = None
) -> list[HeadlinePoint]:
    """Every way on every set at every cap.

    Args:
        setting: Where the files are; quick: fewer streams and caps.
        progress: Called with the number of sets and caps done so far.
    """
    points: list[HeadlinePoint] = []
    caps, done = QUICK_CAPS if setting.quick else CAPS, 0
    for sample in SAMPLES:
        most = FEW if setting.quick else STREAMS
        found = data.halves(sample.source, setting, sample.values, most)
        for cap in caps:
            points += _points(sample, found, cap, setting.seed)
            done += 1
            if progress:
                progress(done)
    return points


def _points(sample: Sample, found: data.SequenceSet, cap: float, seed: int) -> list[HeadlinePoint]:
    chain, loss = found.model, found.loss

    def told(method: Method, width: int = 1) -> HeldOut:
        plan = Plan(chain, PerStep(SIP(cap)), loss, width, method=method)
        return held_out(plan, found.kept, seed)

    rival = told(Method.CALIBRATED)
    waiting = best_waiting(chain, cap, loss, sample.width, found.kept, seed)
    moments = [Silence(chain, loss).at(moment)[0] for moment in range(sample.values)]
    silent = np.mean(
        [loss.rows(found.kept[:, t].tolist())[:, guess] for t, guess in enumerate(moments)], axis=0
    )
    own = {
        "instantaneous": (1, told(Method.OPTIMAL)),
        "far-sighted": (1, told(Method.FAR_SIGHTED)),
        BATCHES: (sample.width, told(Method.OPTIMAL, sample.width)),
    }
    ways: dict[str, tuple[int, Floats, Floats]] = {
        SILENCE: (1, silent, np.zeros(len(silent))),
        PLAIN: (1, rival.guessed, rival.charged),
        RIVAL: (1, rival.received, rival.charged),
        WAITING: (sample.width, waiting.lost, waiting.charged),
        **{name: (width, each.received, each.charged) for name, (width, each) in own.items()},
    }
    people = Drawn(found.owners, seed)
    points = []
    for way, (width, lost, charged) in ways.items():
        among = (RIVAL, WAITING) if way == BATCHES else (RIVAL,)
        other = min(among, key=lambda name: float(ways[name][1].mean()))
        factor, least, most = people.factor(ways[other][1], lost)
        points.append(
            HeadlinePoint(
                data=found.name,
                way=way,
                cap=cap,
                width=width,
                unit=found.unit,
                loss=float(lost.mean()),
                error=people.error(lost),
                charge=float(charged.mean()),
                rival=other,
                factor=factor,
                least=least,
                most=most,
                people=people.count,
                streams=len(lost),
                stand_in=found.stand_in,
            )
        )
    return points


class Drawn:
    """People drawn again and again, each with all of their streams.

    Args:
        owners: Whose each stream is.
        seed: Of the draws.

    Examples:
        >>> people = Drawn(np.array([0, 0, 1, 1]), seed=1)
        >>> people.factor(np.array([2.0, 2.0, 4.0, 4.0]), np.array([1.0, 1.0, 2.0, 2.0]))
        (2.0, 2.0, 2.0)
        >>> people.count
        2
    """

    def __init__(self, owners: Ints, seed: int) -> None:
        _, self._places, self._sizes = np.unique(owners, return_inverse=True, return_counts=True)
        self.count = len(self._sizes)
        draws = np.random.default_rng(seed).integers(self.count, size=(_DRAWS, self.count))
        self._times = np.stack([np.bincount(row, minlength=self.count) for row in draws])

    def _means(self, lost: Floats) -> Floats:
        sums = np.bincount(self._places, weights=lost, minlength=self.count)
        return np.asarray((self._times @ sums) / (self._times @ self._sizes))

    def error(self, lost: Floats) -> float:
        """Standard error of a mean loss."""
        return float(self._means(lost).std())

    def factor(self, rival: Floats, lost: Floats) -> tuple[float, float, float]:
        """How many times as much the rival loses on the same streams, with its limits."""
        ratios = self._means(rival) / np.maximum(self._means(lost), 1e-12)
        least, most = np.quantile(ratios, [_TAIL, 1 - _TAIL]).tolist()
        return float(rival.mean() / max(lost.mean(), 1e-12)), least, most
