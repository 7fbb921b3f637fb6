"""What a fleet's step must compute at least, stage by stage, beside the bare loop and the fleet.

Each stage is a loop of its own over ready arrays: no accounts, no allowances, no copies to undo a
step, no answers. Their sum is what no arrangement of the same arithmetic gets below by much; the
bare loop (`streams.py`) draws from one channel, given, that all streams share. Least processor
times of several runs, ring of 16 symbols.

    python benchmarks/fleet_limit.py [--turns 60]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from chains import ring
from numba import njit
from streams import EPSILON, Walk, bare_floors, plan_for

import sfumato as sf
from sfumato.core.lane_vectors import four, put
from sfumato.core.numerics import UNIT
from sfumato.models.carry_loops import carry_four
from sfumato.stream.draw_loops import draw_column, inform_one
from sfumato.stream.fleet_arrays import StreamArrays
from sfumato.stream.kept_channel_loops import CHAINS, least_repair, leaves_of, output_marginal
from sfumato.stream.mixture_loops import blend, logs_up, marginal_error, ratios
from sfumato.stream.stepping import four_marginals

STREAMS = 10_000


@njit(error_model="numpy")
def sums(joints, which, beliefs, reached, totals):
    """Beliefs, and their running sums."""
    for at in range(0, len(which), 4):
        put(totals, at, four_marginals(joints, which, 0, at, beliefs, reached))


@njit(error_model="numpy")
def tree_walk(tree, thresholds, reached, totals, leaves):
    """The leaf of each belief."""
    for at in range(0, len(totals), CHAINS):
        leaves_of(tree, thresholds, reached, totals, at, leaves)


@njit(error_model="numpy")
def marginals(nodes, row_of, weights, splits, candidates, leaves, beliefs, mass, outs):
    """What each column of the channel is worth under the belief."""
    for at in range(len(leaves)):
        c = candidates[splits[leaves[at], 1]]
        output_marginal(nodes, row_of, weights, c, beliefs[at], mass, outs[at])


@njit(error_model="numpy")
def repairs(nodes, extremes, chosen, outs, totals, k, h, mixes):
    """The mixing weight that keeps the bound."""
    for at in range(len(chosen)):
        mixes[at] = least_repair(nodes, extremes, chosen[at], outs[at], totals[at], k, h)


@njit(error_model="numpy")
def roundings(nodes, chosen, outs, totals, blends):
    """Output marginals as integers."""
    for at in range(len(chosen)):
        blend(outs[at], totals[at], nodes[chosen[at], 4], blends, at)


@njit(error_model="numpy")
def certificates(nodes, extremes, chosen, outs, totals, parts, blends, tops, spreads):
    """Both ratios of the integers, and their logarithms, rounded up."""
    size = 16
    for at in range(len(chosen)):
        given = (nodes, extremes, chosen[at], outs[at], totals[at], parts[at], blends, at)
        tops[at], spreads[at] = ratios(*given)
    for at in range(0, len(chosen), 4):
        put(tops, at, logs_up(four(tops, at), marginal_error(size)))
        put(spreads, at, logs_up(four(spreads, at), 4 * UNIT))


@njit(error_model="numpy")
def draws(nodes, row_of, weights, chosen, parts, blends, symbols, words, columns):
    """A column of each channel."""
    for at in range(len(chosen)):
        made = (chosen[at], parts[at], blends, at)
        columns[at] = draw_column(nodes, row_of, weights, *made, symbols[at], words[at])


@njit(error_model="numpy")
def conditions(nodes, row_of, weights, chosen, parts, blends, columns, joints, mass):
    """Beliefs given what left."""
    for at in range(len(chosen)):
        made = (chosen[at], parts[at], blends, at, columns[at])
        inform_one(nodes, row_of, weights, *made, joints, at, 1, mass)


@njit(error_model="numpy")
def predictions(joints, which, known, backoff, background, work):
    """Beliefs about the next value."""
    for at in range(0, len(which), 4):
        carry_four(joints, which[at : at + 4], known, backoff, background, work)


def least(run: Callable[[], object], turns: int) -> float:
    """Microseconds a stream, the least of several runs."""
    run()
    found = []
    for _ in range(turns):
        began = time.process_time()
        run()
        found.append(time.process_time() - began)
    return 1e6 * min(found) / STREAMS


def main() -> None:
    """Print the stages, their sum, and what they are beside."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--turns", type=int, default=60, help="runs of each stage")
    turns = asked.parse_args().turns
    case = ring()
    policy = sf.compile_policy(case.chain, case.loss, EPSILON, steps=case.steps)
    fleet = sf.Fleet(plan_for(case, policy), [f"s{place}" for place in range(STREAMS)])
    walk, size = Walk(case, STREAMS), case.chain.size
    arrays, which = StreamArrays.under(policy, case.chain, STREAMS), np.arange(STREAMS)
    words, allowed = sf.secure().words(STREAMS), np.tile(policy.allowed, (STREAMS, 1))
    for _ in range(12):
        symbols = walk.next()
        fleet.step(symbols)
        ready = arrays.prepare(which, allowed)
        arrays.release(ready, symbols, words)
        arrays.inform(ready)
        arrays.advance(which)
    ready = arrays.prepare(which, allowed)
    chosen, parts, blends = ready.chosen, ready.parts, ready.blends
    nodes, _, row_of, _, weights, _, extremes, splits, tree, thresholds, candidates, _ = (
        policy.loop_tables
    )
    beliefs, reached = np.zeros((STREAMS, size)), np.zeros((STREAMS, size))
    totals, leaves = np.ones(STREAMS), np.zeros(STREAMS, dtype=np.int64)
    outs, mass = np.zeros((STREAMS, blends.shape[1])), np.zeros(4 * size)
    mixes, tops, spreads = np.zeros(STREAMS), np.ones(STREAMS), np.ones(STREAMS)
    columns, work = np.zeros(STREAMS, dtype=np.int64), np.zeros(8 * size)
    told = arrays.joints.copy()
    kept, bounds = (nodes, row_of, weights), np.exp(policy.allowed)
    stages = {
        "beliefs": lambda: sums(arrays.joints, which, beliefs, reached, totals),
        "the tree": lambda: tree_walk(tree, thresholds, reached, totals, leaves),
        "output marginals": lambda: marginals(
            *kept, splits, candidates, leaves, beliefs, mass, outs
        ),
        "mixing weights": lambda: repairs(nodes, extremes, chosen, outs, totals, *bounds, mixes),
        "integers": lambda: roundings(nodes, chosen, outs, totals, blends),
        "certificates": lambda: certificates(
            nodes, extremes, chosen, outs, totals, parts, blends, tops, spreads
        ),
        "draws": lambda: draws(*kept, chosen, parts, blends, symbols, words, columns),
        "conditions": lambda: conditions(*kept, chosen, parts, blends, columns, told, mass),
        "predictions": lambda: predictions(told, which, *case.chain.loop_rows, work),
    }
    floor, _ = bare_floors(case, STREAMS)
    found = {name: least(run, turns) for name, run in stages.items()}
    found["all stages"] = sum(found.values())
    found["fleet"] = least(lambda: fleet.step(symbols), turns)
    print("## What a step must compute\n\n| stage | us a stream | bare loops |\n|---|---|---|")
    for name, spent in found.items():
        print(f"| {name} | {spent:.4f} | {spent / floor:.2f} |")
    print(f"\nBare loop: {floor:.4f} us.")


if __name__ == "__main__":
    main()
