"""What batches cost and save: `make bench`, or this file alone with a size as its argument.

Budgets are equal per value: a batch of w values may leak w times what one value may. Times are
those of the processor; ratios are to the instantaneous release, to HiGHS on the same program, and
to a fleet of single values, each in the same run.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from chains import Case, binary, grid, ring

import sfumato as sf
from sfumato.solver.linear_programs import solve_transport
from sfumato.stream.partition.batch_design import design_batch
from sfumato.stream.partition.cells import StepDesign

EPSILON = 0.2
"""Leakage per value: 10 in a second of 50 values."""


def timed(run: Callable[[], object]) -> tuple[float, object]:
    """Processor seconds, and what came out."""
    began = time.process_time()
    found = run()
    return time.process_time() - began, found


def line(size: int) -> Case:
    """A walk on a line that mostly stays."""
    return ring(size, stay=0.6)


def growth_of_listed() -> None:
    """Batches that are all listed: time and proven gap, as their number grows."""
    print("## Listed batches\n")
    print("| symbols | w | batches | ms a batch | ms a value | proven gap | HiGHS / design |")
    print("|---|---|---|---|---|---|---|")
    for case, widths in ((binary(), (1, 2, 4, 6, 8, 10, 12)), (line(4), (1, 2, 3, 4, 5, 6))):
        loss = sf.stream.batch_loss.additive(case.loss)
        belief = case.chain.following(case.chain.first())
        for width in widths:
            size = case.chain.size**width
            budget = EPSILON * width
            run = partial(design_batch, case.chain, belief, width, loss, budget)
            run()
            spent, found = min((timed(run) for _ in range(3)), key=lambda pair: pair[0])
            assert isinstance(found, StepDesign)
            ratio = ""
            if 16 <= size <= 256:
                table = loss.between(found.patterns).matrix
                peer, _ = timed(partial(solve_transport, found.partition.masses, table, budget))
                ratio = f"{peer / spent:,.0f}"
            gap = (found.design.gap or 0.0) / found.design.cost
            print(
                f"| {case.chain.size} | {width} | {size:,} | {1e3 * spent:.2f} | "
                f"{1e3 * spent / width:.2f} | {gap:.1e} | {ratio} |",
                flush=True,
            )


def given_up() -> None:
    """What boxes lose where the exact optimum can be computed."""
    print("\n## Boxes against the listed optimum\n")
    print("| chain | loss | w | epsilon of the batch | boxes' loss over listed loss |")
    print("|---|---|---|---|---|")
    for case, width in ((line(4), 6), (line(16), 3), (binary(), 11)):
        for name in ("absolute", "hamming"):
            loss = sf.stream.batch_loss.additive(getattr(sf.loss, name)(case.chain.alphabet))
            belief = case.chain.first()
            for budget in (0.5, 1.0, 2.0, 4.0):
                best = design_batch(case.chain, belief, width, loss, budget).design
                boxes = design_batch(case.chain, belief, width, loss, budget, most=1).design
                extra = boxes.cost / best.cost - 1
                print(f"| {case.name} | {name} | {width} | {budget} | {extra:+.2%} |", flush=True)


def large(sides: tuple[int, ...]) -> None:
    """Grids: time, memory and loss of a batch after some batches, against single values."""
    print("\n## Grids, sparse chain, boxes\n")
    print(
        "| cells | w | batches | s a batch | s a value | loss a value | loss one by one | "
        "largest certificate a value | MB |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for side in sides:
        case = grid(side)
        alone = walked(case, 1)
        for width in (1, 2, 5, 10):
            spent, cost, most = alone if width == 1 else walked(case, width)
            size = case.chain.size
            held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
            print(
                f"| {size:,} | {width} | 1e{width * np.log10(size):.0f} | {spent * width:.2f} | "
                f"{spent:.2f} | {cost:.2f} | {alone[1]:.2f} | {most:.6f} | {held:.0f} |",
                flush=True,
            )


def walked(case: Case, width: int, values: int = 20) -> tuple[float, float, float]:
    """Seconds and expected loss per value, and the largest certificate, over a short stream."""
    loss = sf.stream.batch_loss.additive(case.loss)
    budget = sf.PerStep(sf.SIP(EPSILON))
    listed = 1 if width > 1 else 4096
    if width == 1:
        # One value is what the instantaneous release solves on all cells.
        listed = case.chain.size
    plan = sf.Plan(case.chain, budget, loss, width, listed=listed, purpose=sf.Purpose.SIMULATION)
    coins, labels = sf.seeded(1), case.chain.alphabet.labels
    path = case.chain.sample(values, sf.seeded(2))
    state = plan.begin("grid")
    plan.prepare(state)
    began, cost, most = time.process_time(), 0.0, 0.0
    for start in range(0, values, width):
        found = plan.prepare(state)
        assert found is not None
        events, state = plan.step(
            state, [labels[place] for place in path[start : start + width]], coins
        )
        cost, most = cost + found.design.cost, max(most, events[-1].sip.epsilon / width)
    return (time.process_time() - began) / values, cost / values, most


def walk(case: Case, streams: int, values: int, rng: np.random.Generator) -> np.ndarray:
    """True values of many streams that follow the chain, a row each."""
    moves, place = case.chain.transition().cumsum(axis=1), rng.integers(2, size=streams)
    path = np.empty((streams, values), dtype=np.int64)
    for moment in range(values):
        place = (moves[place] < rng.random(streams)[:, None]).sum(axis=1).clip(max=1)
        path[:, moment] = place
    return path


def fleets() -> None:
    """Many streams with a compiled policy: batches against single values."""
    print("\n## Fleets of 10,000 streams, compiled policies\n")
    print("| chain | w | channels | extra loss | us a value | of single values |")
    print("|---|---|---|---|---|---|")
    case, streams = binary(), 10_000
    loss = sf.stream.batch_loss.additive(case.loss)
    rng, alone = np.random.default_rng(1), 0.0
    for width in (1, 2, 3, 4, 5):
        budget = 0.5 * width
        policy = sf.compile_policy(case.chain, loss, budget, width=width, steps=16_000)
        plan = sf.Plan(case.chain, sf.PerStep(sf.SIP(0.5)), loss, width, policy=policy)
        fleet = sf.Fleet(plan, [str(place) for place in range(streams)])
        steps = np.split(walk(case, streams, 24 * width, rng), 24, axis=1)
        spent = min([timed(partial(fleet.step, values))[0] for values in steps][4:])
        each = 1e6 * spent / streams / width
        alone = alone or each
        print(
            f"| {case.name} | {width} | {policy.channels} | {policy.report.extra_loss:.2%} | "
            f"{each:.2f} | {each / alone:.2f} |",
            flush=True,
        )


def main() -> None:
    """Print the tables."""
    print(f"# Batches (epsilon {EPSILON} a value unless said)\n")
    growth_of_listed()
    given_up()
    large((32, 64, 100) if len(sys.argv) < 2 else (int(sys.argv[1]),))
    fleets()


if __name__ == "__main__":
    main()
