"""What a second thread is worth to a fleet, beside what it can be worth here: `make bench`.

Two limits: two threads of arithmetic that touches no memory, and two processes with a fleet each,
which share nothing but the machine. Where two processors are two halves of one core, or others use
them, even these are less than twice one. Fleets of 16 symbols and the limits by turns, of the wall,
since that is what threads are for: to be run on an idle machine.

    python benchmarks/threads.py [--turns 9]
"""

from __future__ import annotations

import argparse
import multiprocessing
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

STREAMS = (10_000, 100_000)
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


class OtherFleet:
    """A fleet in a process of its own, which steps while it is asked to."""

    def __init__(self, streams: int) -> None:
        asked = multiprocessing.get_context("spawn")
        self._steps, self._over = asked.Value("q", 0), asked.Event()
        self._going, self._ready = asked.Event(), asked.Event()
        everything = (streams, self._steps, self._going, self._over, self._ready)
        self._process = asked.Process(target=_stepping, args=everything, daemon=True)
        self._process.start()
        self._ready.wait()

    def gain(self, job: Callable[[], object]) -> float:
        """Steps of both together, over those of one alone in the same time."""
        alone = seconds(job)
        self._going.set()
        first, began = self._steps.value, time.perf_counter()
        both = seconds(job)
        others = (self._steps.value - first) / (time.perf_counter() - began)
        self._going.clear()
        return alone * (1 / both + others)

    def close(self) -> None:
        """End it."""
        self._over.set()
        self._going.set()
        self._process.join()


def _stepping(streams: int, steps, going, over, ready) -> None:
    """Step a fleet for as long as it is asked to, and count."""
    case = ring()
    policy = sf.compile_policy(case.chain, case.loss, EPSILON, steps=case.steps)
    step = fleet_jobs(case, policy, streams)[1]
    ready.set()
    while going.wait() and not over.is_set():
        step()
        steps.value += 1


def main() -> None:
    """Print what two threads reach, and what they can reach."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--turns", type=int, default=9, help="how often each is measured, in turn")
    turns = asked.parse_args().turns
    case = ring()
    policy = sf.compile_policy(case.chain, case.loss, EPSILON, steps=case.steps)
    limit = "arithmetic alone"
    races = {limit: limit_jobs()}
    races |= {_name(streams): fleet_jobs(case, policy, streams) for streams in STREAMS}
    for jobs in races.values():
        for job in jobs.values():
            job()  # what is compiled at the first call is not measured
    others = {streams: OtherFleet(streams) for streams in STREAMS}
    found: dict[str, list[float]] = {name: [] for name in races}
    apart: dict[str, list[float]] = {_name(streams): [] for streams in STREAMS}
    for _ in range(turns):
        for name, jobs in races.items():
            found[name].append(seconds(jobs[1]) / seconds(jobs[2]))
        for streams, other in others.items():
            apart[_name(streams)].append(other.gain(races[_name(streams)][1]))
    for other in others.values():
        other.close()
    print("## Two threads against one, of the wall\n")
    print("| work | times one thread, median | least | most | of arithmetic | of two processes |")
    print("|---" * 6 + "|")
    for name, gains in found.items():
        spread = f"{statistics.median(gains):.2f} | {min(gains):.2f} | {max(gains):.2f}"
        beside = f"{share(gains, apart[name])}" if name in apart else ""
        print(f"| {name} | {spread} | {share(gains, found[limit])} | {beside} |")
    for name, gains in apart.items():
        spread = f"{statistics.median(gains):.2f} | {min(gains):.2f} | {max(gains):.2f}"
        print(f"| two processes, a {name} each | {spread} | {share(gains, found[limit])} | |")


def _name(streams: int) -> str:
    return f"fleet of {streams:,}"


def share(gains: list[float], limits: list[float]) -> str:
    """Of a limit, the median over turns."""
    return f"{statistics.median((np.array(gains) / np.array(limits)).tolist()):.0%}"


if __name__ == "__main__":
    main()
