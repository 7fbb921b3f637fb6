"""What policies for large alphabets lose, hold and take: `python benchmarks/large_alphabets.py`.

Walks on grids, Euclidean loss. Extra loss is against the proven floor of each step, along streams
that the policy was not compiled from. Since a channel that tells less also leaves wider beliefs,
the loss of whole streams is compared too: the same number of streams, each step released by the
policy, and by the best channel of the step. Silence is the best constant at the beliefs of the
latter. `--kept` compares with channels that are kept, at several numbers of them.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from chains import Case, grid
from streams import fleet_time, single_time

import sfumato as sf
from sfumato.core.randomness import integer_weights
from sfumato.solver.policy import Policy

SIDES = (8, 12, 16, 32)
CASES = ((0.5, 0.3), (0.6, 0.5), (0.9, 0.5), (0.5, 1.0), (0.9, 1.0))
"""Probability to stay, and epsilon, on 16 x 16."""


def compiled(case: Case, epsilon: float, **options: object) -> tuple[Policy, float]:
    """A policy and the seconds of processor time that it took."""
    began = time.process_time()
    policy = sf.compile_policy(case.chain, case.loss, epsilon, **options)  # type: ignore[arg-type]
    return policy, time.process_time() - began


def stream_losses(
    case: Case, epsilon: float, policy: Policy | None, streams: int, steps: int
) -> tuple[float, float]:
    """Mean expected loss of steps, and of silence there; without a policy by the best channels."""
    rule = {"policy": policy, "purpose": sf.Purpose.SIMULATION}
    plan = sf.Plan(case.chain, sf.PerStep(sf.SIP(epsilon)), case.loss, **rule)  # type: ignore[arg-type]
    table, labels = case.loss.matrix, case.chain.alphabet.labels
    lost = silent = 0.0
    for stream in range(streams):
        state, coins, draw = plan.begin("s"), sf.seeded(stream), np.random.default_rng(stream)
        for _ in range(steps):
            belief = state.belief.marginal
            channel = plan.prepare(state).design.channel
            lost += belief @ (channel.probabilities * table[:, channel.outputs]).sum(axis=1)
            silent += (belief @ table).min()
            # What is true follows the belief, as the model says.
            weights = integer_weights(belief[None, :])[0]
            truth = int(draw.choice(len(belief), p=weights / weights.sum()))
            _, state = plan.step(state, [labels[truth]], coins)
    return lost / (streams * steps), silent / (streams * steps)


def sizes() -> None:
    """Sizes of the alphabet, at half a nat."""
    print("| cells | extra loss | kind | channels | MB | compile s | fleet us | one at a time us |")
    print("|---" * 8 + "|")
    for side in SIDES:
        case = grid(side)
        policy, seconds = compiled(case, 0.5)
        fleet = fleet_time(case, policy, 100)
        print(
            f"| {side * side:,} | {100 * policy.report.extra_loss:.2f} % | {policy.kind} | "
            f"{policy.channels} | {policy.memory / 1e6:.2f} | {seconds:.0f} | {fleet:.0f} | "
            f"{single_time(case, policy):.0f} |",
            flush=True,
        )


def budgets(streams: int = 4, steps: int = 60) -> None:
    """Budgets and walks on 256 cells, step by step and stream by stream."""
    print("\n| stay | epsilon | extra loss | stream, policy | stream, solved | ratio | silence |")
    print("|---" * 7 + "|")
    for stay, epsilon in CASES:
        case = grid(16, stay=stay)
        policy, _ = compiled(case, epsilon)
        ours, _ = stream_losses(case, epsilon, policy, streams, steps)
        best, silent = stream_losses(case, epsilon, None, streams, steps)
        print(
            f"| {stay} | {epsilon} | {100 * policy.report.extra_loss:.2f} % | {ours:.3f} | "
            f"{best:.3f} | {ours / best:.3f} | {silent:.3f} |",
            flush=True,
        )


def kept(side: int = 16) -> None:
    """What kept channels lose, the more of them the less."""
    print("\n| kept channels | extra loss | MB | compile s | fleet us |\n" + "|---" * 5 + "|")
    case = grid(side)
    for steps in (800, 1_600, 3_200, 6_400):
        policy, seconds = compiled(case, 0.5, kind="kept", steps=steps)
        print(
            f"| {policy.channels} | {100 * policy.report.extra_loss:.2f} % | "
            f"{policy.memory / 1e6:.2f} | {seconds:.0f} | {fleet_time(case, policy, 100):.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    if "--kept" in sys.argv:
        kept()
    else:
        sizes()
        budgets()
