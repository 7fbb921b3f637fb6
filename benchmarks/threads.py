"""What a second thread is worth to a fleet, beside what it can be worth here: `make bench`.

The limit is two threads of arithmetic that touches no memory: where two processors are two halves
of one core, or others use them, even that is less than twice one thread. Fleets of 16 symbols and
the limit by turns, of the wall, since that is what threads are for: to be run on an idle machine.

    python benchmarks/threads.py [--turns 9]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial

import numpy as np
from chains import Case, ring
from numba import njit
from streams import EPSILON, Walk, plan_for

import sfumato as sf
from sfumato.solver.policy import Policy

ROUNDS = 4_000_000
"""Some milliseconds of arithmetic: as long as a step of a large fleet."""


@njit(nogil=True)
def arithmetic(rounds: int, first: float) -> float:
    """Four chains of products and sums in registers."""
    a, b, c, d = first, first + 1.0, first + 2.0, first + 3.0
    for _ in range(rounds):
        a, b = a * 0.999 + 0.1, b * 0.998 + 0.2
        c, d = c * 0.997 + 0.3, d * 0.996 + 0.4
    return a + b + c + d


def limit_jobs() -> dict[int, Callable[[], object]]:
    """The same arithmetic by one thread, and half of it by each of two."""
    pool = ThreadPoolExecutor(1)

    def two() -> None:
        other = pool.submit(arithmetic, ROUNDS // 2, 1.0)
        arithmetic(ROUNDS // 2, 2.0)
        wait([other])

    return {1: lambda: arithmetic(ROUNDS, 1.0), 2: two}


def fleet_jobs(case: Case, policy: Policy, streams: int) -> dict[int, Callable[[], object]]:
    """A step of a fleet under way, by one thread and by two."""
    jobs: dict[int, Callable[[], object]] = {}
    for threads in (1, 2):
        names = [f"s{place}" for place in range(streams)]
        fleet = sf.Fleet(plan_for(case, policy), names, threads=threads)
        walk = Walk(case, streams)
        for _ in range(12):
            fleet.step(walk.next())
        jobs[threads] = partial(fleet.step, walk.next())
    return jobs


def seconds(job: Callable[[], object], least: float = 0.05) -> float:
    """Seconds of the wall of a job, over as many runs as take a while."""
    runs, began = 0, time.perf_counter()
    while time.perf_counter() - began < least:
        job()
        runs += 1
    return (time.perf_counter() - began) / runs


def main() -> None:
    """Print what two threads reach, and what they can reach."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--turns", type=int, default=9, help="how often each is measured, in turn")
    turns = asked.parse_args().turns
    case = ring()
    policy = sf.compile_policy(case.chain, case.loss, EPSILON, steps=case.steps)
    races = {"arithmetic alone": limit_jobs()}
    for streams in (10_000, 100_000):
        races[f"fleet of {streams:,}"] = fleet_jobs(case, policy, streams)
    for jobs in races.values():
        for job in jobs.values():
            job()  # what is compiled at the first call is not measured
    found: dict[str, list[float]] = {name: [] for name in races}
    for _ in range(turns):
        for name, jobs in races.items():
            found[name].append(seconds(jobs[1]) / seconds(jobs[2]))
    limits = np.array(found["arithmetic alone"])
    print("## Two threads against one, of the wall\n")
    print("| work | times one thread, median | least | most | of the limit, median |")
    print("|---" * 5 + "|")
    for name, gains in found.items():
        share = statistics.median((np.array(gains) / limits).tolist())
        spread = f"{min(gains):.2f} | {max(gains):.2f}"
        print(f"| {name} | {statistics.median(gains):.2f} | {spread} | {share:.0%} |")


if __name__ == "__main__":
    main()
