"""What a second thread is worth to a fleet, beside what it can be worth here: `make bench`.

Two limits: two threads of arithmetic that touches no memory, and two processes with a fleet each,
which share nothing but the machine. Where two processors are two halves of one core, or others use
them, even these are less than twice one. Fleets of 16 symbols and the limits by turns, of the wall,
since that is what threads are for: to be run on an idle machine. Where memory lies differs from
process to process, so the whole is done in several: medians of their medians. Beside them, what two
threads take of the processors together over what one takes, and what part of that the calling
thread does alone: what sharing costs and what it cannot reach, on a busy machine, too.

    python benchmarks/threads.py [--processes 5] [--turns 9]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from unittest import mock

import numpy as np
from chains import Case, ring
from numba import njit
from streams import EPSILON, Walk, plan_for

import sfumato as sf
from sfumato.core.randomness import Randomness
from sfumato.solver.policy import Policy
from sfumato.stream.fleet_threads import FleetThreads

STREAMS = (10_000, 100_000)
KEYED = "{}, coins of a key"
ROUNDS = 4_000_000
"""Some milliseconds of arithmetic: as long as a step of a large fleet."""
LIMIT = "arithmetic alone"


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


def fleet_jobs(
    case: Case, policy: Policy, streams: int, coins: Callable[[], Randomness] = sf.secure
) -> dict[int, Callable[[], object]]:
    """A step of a fleet under way, by one thread and by two."""
    jobs: dict[int, Callable[[], object]] = {}
    for threads in (1, 2):
        names = [f"s{place}" for place in range(streams)]
        fleet = sf.Fleet(plan_for(case, policy), names, randomness=coins(), threads=threads)
        walk = Walk(case, streams)
        for _ in range(12):
            fleet.step(walk.next())
        jobs[threads] = partial(fleet.step, walk.next())
    return jobs


def seconds(job: Callable[[], object], least: float = 0.05) -> float:
    """Seconds of the wall of a job, over as many runs as take a while."""
    return took(job, least)[0]


def took(job: Callable[[], object], least: float = 0.05) -> tuple[float, float]:
    """Seconds of the wall and of all processors."""
    runs, began, spent = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - began < least:
        job()
        runs += 1
    return (time.perf_counter() - began) / runs, (time.process_time() - spent) / runs


def alone(job: Callable[[], object], steps: int = 50) -> float:
    """What the calling thread does outside of shared work, of all that a step takes."""
    inside, share, together = 0, FleetThreads.share, FleetThreads.together

    def timed(work: Callable[..., None]) -> Callable[..., None]:
        def part(*given: int) -> None:
            nonlocal inside
            began = time.thread_time_ns()
            work(*given)
            if given[-1] == 0:  # the number of the thread
                inside += time.thread_time_ns() - began

        return part

    found = []
    with (
        mock.patch.object(FleetThreads, "share", lambda all, at, do: share(all, at, timed(do))),
        mock.patch.object(
            FleetThreads, "together", lambda all, do, done: together(all, timed(do), done)
        ),
    ):
        for _ in range(steps):
            inside, spent, own = 0, time.process_time_ns(), time.thread_time_ns()
            job()
            own = time.thread_time_ns() - own
            found.append((own - inside) / (time.process_time_ns() - spent))
    return statistics.median(found)


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


def measure(turns: int) -> dict[str, dict[str, float]]:
    """Medians of one process: what two threads or processes reach, and what they take."""
    case = ring()
    policy = sf.compile_policy(case.chain, case.loss, EPSILON, steps=case.steps)
    races = {LIMIT: limit_jobs()}
    for streams in STREAMS:
        races[_name(streams)] = fleet_jobs(case, policy, streams)
        keyed = partial(sf.keyed, b"the key of a benchmark")
        races[KEYED.format(_name(streams))] = fleet_jobs(case, policy, streams, keyed)
    for jobs in races.values():
        for job in jobs.values():
            job()  # what is compiled at the first call is not measured
    others = {streams: OtherFleet(streams) for streams in STREAMS}
    found: dict[str, dict[str, list[float]]] = {}
    for _ in range(turns):
        for name, jobs in races.items():
            (one, lone), (two, both) = took(jobs[1]), took(jobs[2])
            here = found.setdefault(name, {"wall": [], "processors": []})
            here["wall"].append(one / two)
            here["processors"].append(both / lone)
            if name != LIMIT:
                here.setdefault("alone", []).append(alone(jobs[2]))
        for streams, other in others.items():
            apart = found.setdefault(f"two processes, a {_name(streams)} each", {"wall": []})
            apart["wall"].append(other.gain(races[_name(streams)][1]))
    for other in others.values():
        other.close()
    return {
        name: {kind: statistics.median(each) for kind, each in kinds.items()}
        for name, kinds in found.items()
    }


def main() -> None:
    """Print what two threads reach, and what they can reach."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--turns", type=int, default=9, help="how often each is measured, in turn")
    asked.add_argument("--processes", type=int, default=5, help="how often all of it is done")
    asked.add_argument("--one", action="store_true", help="in this process, as JSON")
    given = asked.parse_args()
    if given.one:
        print(json.dumps(measure(given.turns)))
        return
    again = [sys.executable, __file__, "--one", "--turns", str(given.turns)]
    runs = [
        json.loads(subprocess.run(again, check=True, capture_output=True, text=True).stdout)
        for _ in range(given.processes)
    ]
    print(f"## Two threads against one, of the wall ({given.processes} processes)\n")
    print(
        "| work | times one thread, median | least | most | of arithmetic | of two processes | "
        "processor time, times one thread | of it by the caller alone |"
    )
    print("|---" * 8 + "|")
    limits = [run[LIMIT]["wall"] for run in runs]
    for name in runs[0]:
        gains = [run[name]["wall"] for run in runs]
        spread = f"{statistics.median(gains):.2f} | {min(gains):.2f} | {max(gains):.2f}"
        apart = [run.get(f"two processes, a {name} each", {}).get("wall") for run in runs]
        beside = "" if None in apart else share(gains, apart)
        spent = [run[name].get("processors") for run in runs]
        dear = "" if None in spent else f"{statistics.median(spent):.2f}"
        single = [run[name].get("alone") for run in runs]
        serial = "" if None in single else f"{statistics.median(single):.1%}"
        print(f"| {name} | {spread} | {share(gains, limits)} | {beside} | {dear} | {serial} |")


def _name(streams: int) -> str:
    return f"fleet of {streams:,}"


def share(gains: list[float], limits: list[float]) -> str:
    """Of a limit, the median over processes."""
    return f"{statistics.median((np.array(gains) / np.array(limits)).tolist()):.0%}"


if __name__ == "__main__":
    main()
