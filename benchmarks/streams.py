"""How fast streams are released, one at a time and in fleets: `make bench`.

Every event is certified under both notions and drawn with secure coins. Times are those of the
processor, of one thread, best of several runs; ratios are to the floor and to the peers of the same
run (`benchmarks/peers.py` writes the peers' figures to the file that is given as an argument).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import numpy as np
from chains import Case, binary, fitted, grid, ring
from numba import njit

import sfumato as sf
from sfumato.solver.policy import Policy
from sfumato.stream.look_ahead import look_ahead

EPSILON = 0.5


@njit
def bare(joints, moves, likelihood, cumulative, symbols, words, outputs, work):
    """The floor: draw from a given channel, update the belief, predict; nothing is certified."""
    size = moves.shape[0]
    for stream in range(len(joints)):
        coin = np.int64(words[stream] >> np.uint64(2))
        row = symbols[stream]
        y = 0
        while coin >= cumulative[row, y]:
            y += 1
        outputs[stream] = y
        for x in range(size):
            work[x] = 0.0
        for c in range(size):
            weight = joints[stream, c] * likelihood[c, y]
            for x in range(size):
                work[x] += weight * moves[c, x]
        total = 0.0
        for x in range(size):
            total += work[x]
        for x in range(size):
            joints[stream, x] = work[x] / total


def best(
    run: Callable[[], object], events: int, clock: Callable[[], float] = time.process_time
) -> float:
    """Microseconds per event, the best of several runs."""
    run()
    began, count = clock(), 0
    while clock() - began < 0.06:
        run()
        count += 1
    found = []
    for _ in range(9):
        began = clock()
        for _ in range(count):
            run()
        found.append((clock() - began) / count / events)
    return 1e6 * min(found)


def aligned(count: int) -> np.ndarray:
    """Floats that begin where a cache line does.

    Where the allocator happens to put the bare loop's sums makes it a third slower or not.
    """
    room = np.empty(count + 8)
    skipped = -room.ctypes.data % 64 // room.itemsize
    return room[skipped : skipped + count]


def bare_floors(case: Case, streams: int) -> tuple[float, float]:
    """The floor for many streams in one call, and for one stream a call."""
    size = case.chain.size
    moves = case.chain.transition()
    rows = np.full((size, size), 0.2 / size) + 0.8 * np.eye(size)
    cumulative = np.rint(rows * 2.0**62).astype(np.int64).cumsum(axis=1)
    cumulative[:, -1] = 2**62
    rng, coins = np.random.default_rng(0), sf.secure()
    found = []
    for count in (streams, 1):
        joints = np.tile(case.chain.initial.ravel(), (count, 1))
        symbols = rng.integers(size, size=count)
        outputs, work = np.empty(count, dtype=np.int64), aligned(size)
        words = coins.words(count)
        arguments = (joints, moves, rows, cumulative, symbols, words, outputs, work)
        found.append(best(lambda args=arguments: bare(*args), count))
    return found[0], found[1]


def fleet_time(case: Case, policy: Policy, streams: int, threads: int = 1) -> float:
    """Microseconds per event of a fleet that has been under way for a while."""
    plan = plan_for(case, policy)
    fleet = sf.Fleet(plan, [f"s{place}" for place in range(streams)], threads=threads)
    walk = Walk(case, streams)
    labels = case.chain.alphabet.labels
    numbered = labels == tuple(range(len(labels)))
    for _ in range(12):
        fleet.step(values_of(walk.next(), labels, numbered))
    now = values_of(walk.next(), labels, numbered)
    clock = time.process_time if threads == 1 else time.perf_counter
    return best(lambda: fleet.step(now), streams, clock)


def values_of(places: np.ndarray, labels: tuple[object, ...], numbered: bool) -> object:
    """Symbols of an alphabet: numbers as they are, names as a list."""
    return places if numbered else [labels[place] for place in places.tolist()]


def single_time(case: Case, policy: Policy) -> float:
    """Microseconds per event of one live stream."""
    asked = {"loss": case.loss, "policy": policy, "method": policy.method}
    release = sf.InstantRelease(case.chain, budget=sf.SIP(EPSILON), **asked)
    walk, labels = Walk(case, 1), case.chain.alphabet.labels
    values = [labels[int(walk.next()[0])] for _ in range(500)]

    def run() -> None:
        for value in values:
            release(value)

    return best(run, len(values))


def plan_for(case: Case, policy: Policy) -> sf.Plan:
    """A release of the same budget for every step."""
    method = sf.Method(policy.method)
    budget = sf.PerStep(sf.SIP(EPSILON))
    return sf.Plan(case.chain, budget, case.loss, method=method, policy=policy)


class Walk:
    """True values of many streams."""

    def __init__(self, case: Case, streams: int) -> None:
        self._rng = np.random.default_rng(1)
        self._moves = case.chain.transition().cumsum(axis=1)
        self._places = self._rng.integers(case.chain.size, size=streams)

    def next(self) -> np.ndarray:
        """Where every stream is now."""
        coins = self._rng.random(len(self._places))[:, None]
        reached = (self._moves[self._places] < coins).sum(axis=1)
        self._places = np.minimum(reached, self._moves.shape[1] - 1)
        return self._places


def compiled(case: Case) -> tuple[Policy, float]:
    """A policy and the seconds it took."""
    began = time.perf_counter()
    policy = sf.compile_policy(case.chain, case.loss, EPSILON, steps=case.steps)
    return policy, time.perf_counter() - began


def peers(path: str | None) -> dict[int, tuple[str, float]]:
    """For each size, the fastest peer and its microseconds per value."""
    if path is None:
        return {}
    with open(path, encoding="utf-8") as file:
        contenders = json.load(file)["contenders"]
    found: dict[int, tuple[str, float]] = {}
    for one in contenders:
        if one["name"].startswith("numpy"):
            continue
        for size, times in one["microseconds"].items():
            if int(size) not in found or times["best"] < found[int(size)][1]:
                found[int(size)] = one["name"], times["best"]
    return found


def sparse_large() -> None:
    """A grid of 10,000 cells with nine neighbours: what a belief update and an event take."""
    case = grid(100, steps=64)
    joints = np.tile(case.chain.initial, (8, 1))
    which, moments, drifts = np.arange(8), np.zeros(8, dtype=np.int64), np.zeros(8)
    work = np.empty(case.chain.size)
    carried = best(lambda: case.chain.carrier(joints, moments, drifts, which, work)(), 8)
    known = case.chain.known
    print("\n## Grid of 100 x 100 cells, sparse chain\n")
    print(f"entries {known.nnz:,}; carrying a belief {carried:,.0f} us")
    policy, seconds = compiled(case)
    print(f"compiled from {case.steps} steps in {seconds:.0f} s: {policy.channels} channels, ")
    print(f"{policy.memory / 1e6:.1f} MB, {policy.report}")
    spent = single_time_large(case, policy)
    print(f"one event {spent:,.0f} us, {1e6 / spent:,.0f} events/s")


def single_time_large(case: Case, policy: Policy) -> float:
    """Microseconds per event of one stream on a large alphabet, misses included."""
    release = sf.InstantRelease(case.chain, budget=sf.SIP(EPSILON), loss=case.loss, policy=policy)
    labels = case.chain.alphabet.labels
    release(labels[0])
    began = time.process_time()
    for place in range(200):
        release(labels[(37 * place) % len(labels)])
    return 1e6 * (time.process_time() - began) / 200


def main() -> None:
    """Print the tables."""
    rivals = peers(sys.argv[1] if len(sys.argv) > 1 else None)
    policies, lines = [], []
    for case in (binary(), ring(), grid(), fitted()):
        policy, seconds = compiled(case)
        policies.append((case, policy, seconds))
        size = case.chain.size
        if case.name.startswith("fitted"):
            continue
        streams = 10_000 if size <= 16 else 1_000
        floor, one_floor = bare_floors(case, streams)
        fleet, pair = fleet_time(case, policy, streams), fleet_time(case, policy, streams, 2)
        single = single_time(case, policy)
        name, rival = rivals.get(size, ("", float("nan")))
        lines.append(
            f"| {size} | {fleet:.2f} | {pair:.2f} | {floor:.2f} | {fleet / floor:.1f} | {name} "
            f"{rival:.2f} | {fleet / rival:.2f} | {single:.1f} | {one_floor:.2f} | "
            f"{single / one_floor:.1f} | {1e6 / fleet:,.0f} | {1e6 / single:,.0f} |"
        )
    print("## Events, microseconds of processor time\n")
    print(
        "| symbols | fleet | 2 threads, wall | bare loop | ratio | fastest peer | ratio | one "
        "at a time | bare call | ratio | fleet events/s | single events/s |\n" + "|---" * 12 + "|"
    )
    print("\n".join(lines))
    print("\n## Policies\n")
    print(
        "| chain | symbols | channels | MB | extra loss | solved on the spot | mean repair | "
        "compile s |\n" + "|---" * 8 + "|"
    )
    for case, policy, seconds in policies:
        report = policy.report
        print(
            f"| {case.name} | {case.chain.size} | {policy.channels} | {policy.memory / 1e6:.2f} | "
            f"{100 * report.extra_loss:.2f} % | {100 * report.missed:.2f} % | "
            f"{report.repair:.3f} | {seconds:.0f} |"
        )
    sighted_table()
    memory_table()
    sparse_large()


def sighted_table() -> None:
    """Far-sighted policies beside step-wise ones of the same chain, in turn."""
    print("\n## Far-sighted policies\n")
    print(
        "| symbols | look ahead s | compile s | channels | extra cost | on the spot | fleet, "
        "step-wise | far-sighted | ratio | one at a time, step-wise | far-sighted | ratio |\n"
        + "|---" * 12
        + "|"
    )
    for size in (2, 4, 8, 16, 24):
        rng = np.random.default_rng(size)
        moves = 0.9 * np.eye(size) + 0.1 * rng.dirichlet(np.ones(size), size)
        chain = sf.MarkovChain.from_matrix(moves, floor=1e-4 / size)
        case = Case(f"sticky, {size}", chain, sf.loss.hamming(chain.alphabet), 16_000)
        began = time.process_time()
        sight = look_ahead(chain, case.loss, EPSILON)
        looked = time.process_time()
        asked = {"method": sf.Method.FAR_SIGHTED, "sight": sight, "repair_limit": 1.0}
        ahead = sf.compile_policy(chain, case.loss, EPSILON, **asked)
        seconds = time.process_time() - looked
        near = sf.compile_policy(chain, case.loss, EPSILON)
        turns = [(fleet_time(case, near, 10_000), fleet_time(case, ahead, 10_000)) for _ in (1, 2)]
        one, two = map(min, zip(*turns, strict=True))
        alone, alone_ahead = single_time(case, near), single_time(case, ahead)
        print(
            f"| {size} | {looked - began:.1f} | {seconds:.1f} | {ahead.channels} | "
            f"{100 * ahead.report.extra_loss:.1f} % | {100 * ahead.report.missed:.2f} % | "
            f"{one:.2f} | {two:.2f} | {two / one:.2f} | {alone:.1f} | {alone_ahead:.1f} | "
            f"{alone_ahead / alone:.2f} |",
            flush=True,
        )


def memory_table() -> None:
    """Bytes per stream, before and after many steps."""
    print("\n## Memory per stream, bytes\n")
    print("| symbols | order | budget | after 1 step | after 1,000 steps |\n" + "|---" * 5 + "|")
    rng = np.random.default_rng(2)
    for size, order in ((2, 1), (16, 1), (256, 1), (4, 2), (4, 3)):
        rows = rng.dirichlet(np.ones(size), size**order)
        chain = sf.MarkovChain.from_matrix(rows, floor=1e-4 / size)
        loss = sf.loss.hamming(chain.alphabet)
        policy = sf.compile_policy(chain, loss, EPSILON, steps=64)
        budgets = {
            "per step": sf.PerStep(sf.SIP(EPSILON)),
            "window of 10": sf.Window(sf.SIP(5.0), 10),
        }
        for name, budget in budgets.items():
            plan = sf.Plan(chain, budget, loss, policy=policy)
            fleet = sf.Fleet(plan, [str(place) for place in range(8)])
            sizes = []
            for step in range(1_000):
                fleet.step(rng.integers(size, size=8))
                if step in (0, 999):
                    sizes.append(fleet.bytes_per_stream)
            print(f"| {size} | {order} | {name} | {sizes[0]} | {sizes[1]} |")


if __name__ == "__main__":
    main()
