"""What learning costs a step, a version and a stream: `python benchmarks/learning_costs.py`.

Processor time, kinds of steps in alternation in one run. A step is that of `Plan.step` on streams
drawn from the model: step-wise for the model alone, the same for many chains, far-sighted for many
chains. A version: the EM passes, the bets (on pairs, on blocks) and the forecast, apart. A stream:
the bytes of its stored state, and what it takes to move to a version after 100 context-free values.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from chains import Case, binary, ring
from learning import drawn
from learning_release import EPSILON, outputs

import sfumato as sf
from sfumato.models.block_bets import block_sums, bounds_left
from sfumato.models.chain_bets import plausible_chains
from sfumato.models.learning import learn_chain
from sfumato.models.plausible import PlausibleChains
from sfumato.solver.design_methods import Method
from sfumato.store.codec import to_bytes
from sfumato.stream.learning_rules import LearningRules
from sfumato.stream.model_versions import ContextFree, _emissions, _forecast, moved
from sfumato.stream.plan import Plan
from sfumato.stream.simulated_stream import as_simulation

STEPS, ROUNDS, RADIUS = 40, 3, 0.01


def timed(run: Callable[[], object]) -> float:
    """Processor seconds."""
    began = time.process_time()
    run()
    return time.process_time() - began


def walk(plan: Plan, seed: int) -> None:
    """Some steps of a stream of its own: no channel is known from before."""
    rng, state = np.random.default_rng(seed), plan.begin(f"s{seed}")
    for _ in range(STEPS):
        _, state = plan.step(state, [int(rng.integers(plan.model.size))], sf.seeded(seed))  # type: ignore[union-attr]


def steps(case: Case) -> str:
    """A row of the table of steps."""
    chain, budget = case.chain, sf.PerStep(sf.SIP(EPSILON))
    loss, near = sf.loss.hamming(chain.alphabet), PlausibleChains.from_radius(case.chain, RADIUS)
    plans = [
        as_simulation(Plan(chain, budget, loss, method=method, robust=chains))
        for method, chains in (
            (Method.OPTIMAL, None),
            (Method.OPTIMAL, near),
            (Method.FAR_SIGHTED, near),
        )
    ]
    found: list[list[float]] = [[] for _ in plans]
    for number in range(ROUNDS + 1):
        for place, plan in enumerate(plans):
            found[place].append(timed(lambda rule=plan, seed=number: walk(rule, seed)))
    alone, stepwise, ahead = (1e3 * min(times[1:]) / STEPS for times in found)
    return f"| {case.name} | {alone:.2f} | {stepwise:.2f} | {ahead:.2f} | {ahead / stepwise:.1f} |"


def versions(case: Case, streams: int = 2_000, length: int = 100) -> str:
    """A row of the table of versions and streams."""
    chain = case.chain
    loss = sf.loss.hamming(chain.alphabet)
    rules = LearningRules(chain.alphabet, sf.PerStep(sf.SIP(EPSILON)), loss)
    left = outputs(rules, drawn(chain, streams, length, 1), 2)
    told = ContextFree({f"s{place}": row.tobytes() for place, row in enumerate(left)})
    fixed = told.fixed(rules.channel)
    block_sums(fixed, chain), plausible_chains(fixed, chain, guide=chain)  # compiled now
    em = timed(lambda: learn_chain(_emissions(fixed), chain.alphabet, most=200))
    pairs = timed(lambda: plausible_chains(fixed, chain, guide=chain))
    begun = fixed.beginnings
    blocks = timed(
        lambda: bounds_left(block_sums(fixed, chain), rules.channel, begun, 0.01, fixed.alike)
    )
    near = PlausibleChains.from_radius(chain, RADIUS)
    plan = rules.plan(near)
    forecast = timed(lambda: _forecast(rules, near))
    state = rules.start.begin("s0")
    since = (left[0].tolist(), True)
    moving = min(timed(lambda: moved(rules, plan, state, since)) for _ in range(5))
    size = len(to_bytes(moved(rules, plan, state, since)))
    many = streams * length
    return (
        f"| {case.name} | {1e9 * em / many:,.0f} | {1e9 * pairs / many:.0f} | "
        f"{1e9 * blocks / many:.0f} | {forecast:.2f} | {1e3 * moving:.2f} | {size} |"
    )


def main() -> None:
    """Print the tables."""
    cases = (binary(), ring(4, 0.8), ring(8, 0.8))
    print("| chain | step-wise, ms a step | many chains | many chains, far-sighted | ratio |")
    print("|" + "---|" * 5, flush=True)
    for case in cases:
        print(steps(case), flush=True)
    print(
        "\n| chain | EM of a version, ns a value | bets on pairs, ns | bets on blocks, ns | "
        "forecast of a version, s | to move a stream, ms | its state, bytes |"
    )
    print("|" + "---|" * 7, flush=True)
    for case in cases:
        print(versions(case), flush=True)


if __name__ == "__main__":
    main()
