"""How fast released streams are recovered: `python benchmarks/recovery.py`.

A million events of a fleet, processor time of one thread. Ratios are to the fleet's own step
(choose, certify, draw, update) of the same run, and to a forward filter in numpy over all streams
at once, which is told the likelihoods.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from chains import Case, binary, ring

import sfumato as sf
from sfumato.stream.evidence import evidence
from sfumato.stream.recovery import Recovery
from sfumato.stream.released_tracks import ReleasedTracks

EPSILON, STREAMS, LENGTH = 0.5, 10_000, 100


def released(case: Case, plan: sf.Plan) -> tuple[ReleasedTracks, float]:
    """Streams of the chain, and the seconds that their release took."""
    rng = np.random.default_rng(1)
    moves = case.chain.transition().cumsum(axis=1)
    truth = rng.integers(case.chain.size, size=STREAMS)
    names = [f"s{place}" for place in range(STREAMS)]
    fleet, left, seconds = sf.Fleet(plan, names), [], 0.0
    fleet.step(truth)
    fleet = sf.Fleet(plan, names)
    for _ in range(LENGTH):
        began = time.process_time()
        left.append(fleet.step(truth).released)
        seconds += time.process_time() - began
        truth = (moves[truth] < rng.random(STREAMS)[:, None]).sum(axis=1)
        truth = np.minimum(truth, case.chain.size - 1)
    count = STREAMS * LENGTH
    tracks = ReleasedTracks(
        tuple(names),
        np.arange(0, count + 1, LENGTH),
        np.stack(left, axis=1).ravel(),
        np.zeros(count, dtype=np.int64),
        np.tile(np.arange(LENGTH), STREAMS),
        np.full(count, -1),
        np.arange(count),
    )
    return tracks, seconds


def numpy_filter(case: Case, told: np.ndarray) -> float:
    """Seconds of a forward filter in numpy; `told` has streams, moments, symbols."""
    moves, belief = case.chain.transition(), np.tile(case.chain.initial, (STREAMS, 1))
    began = time.process_time()
    for moment in range(LENGTH):
        belief = belief * told[:, moment]
        belief /= belief.sum(axis=1, keepdims=True)
        belief = belief @ moves
    return time.process_time() - began


def timed(run: Callable[[], object]) -> float:
    """Seconds of the second of two runs: the first may compile."""
    found = []
    for _ in range(2):
        began = time.process_time()
        run()
        found.append(time.process_time() - began)
    return found[1]


def main() -> None:
    """Print a table."""
    print(
        "| chain | likelihoods, s | smoothed guesses, s | tracks, s | all / fleet's step | ", end=""
    )
    print("smoothing / numpy filter |\n|---|---|---|---|---|---|")
    for case in (binary(), ring(4), ring()):
        policy = sf.compile_policy(case.chain, case.loss, EPSILON, steps=min(case.steps, 2000))
        plan = sf.Plan(case.chain, sf.PerStep(sf.SIP(EPSILON)), case.loss, policy=policy)
        tracks, fleet = released(case, plan)
        told = evidence(tracks, plan)
        recovery = Recovery(tracks, plan, told)
        likely = timed(partial(evidence, tracks, plan))
        guessed = timed(recovery.values)
        walked = timed(recovery.likeliest)
        table = np.ones((STREAMS * LENGTH, case.chain.size))
        known = told.begins >= 0
        table[known] = told.told.reshape(-1, case.chain.size)[np.flatnonzero(known)]
        plain = numpy_filter(case, table.reshape(STREAMS, LENGTH, -1))
        cells = (likely, guessed, walked, (likely + guessed) / fleet, guessed / plain)
        print(f"| {case.name} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
