"""What a model fitted under differential privacy of people costs the release, in the demo's town.

A chain is fitted to a day of each of some people, with and without noise, and 200 other people are
released with it: eight nats over 24 values, in bursts every 6. Beside the loss: what those releases
leak under the chain of 20,000 people, the best guess of what an adversary knows (`leakage_under`).

    python benchmarks/private_history.py
"""

from __future__ import annotations

import numpy as np

import sfumato as sf
from sfumato.core.arrays import Floats, Ints
from sfumato.models.fitting import smoothed_parts
from sfumato.models.markov import MarkovChain
from sfumato.stream.other_truth import leakage_under
from sfumato.stream.private_counts import PrivacySpec, counted, private_chain
from sfumato.stream.simulated_stream import as_simulation, simulated
from sfumato.studies.town import alphabet, people

CONTRIBUTION, TOTAL, STEPS, EVERY, RELEASED = 47, 8.0, 24, 6, 200
TOWN = alphabet()
LOSS = sf.loss.euclidean(TOWN)


def days(count: int, seed: int) -> list[list[Ints]]:
    """A day of each person, as one run of places."""
    return [[TOWN.indices(day)] for day in people(count, 1, seed).values()]


def open_chain(runs: list[list[Ints]]) -> MarkovChain:
    """The same counts without noise."""
    counts = counted(runs, len(TOWN), CONTRIBUTION, sf.seeded(1))
    return MarkovChain(TOWN, 1, *smoothed_parts(counts, 1, 0.5, 1e-6))


def log_loss(chain: MarkovChain, runs: list[list[Ints]]) -> float:
    """Nats per transition of people whom the chain has not seen."""
    moves = chain.transition()
    found = [-np.log(moves[run[:-1], run[1:]]) for (run,) in runs]
    return float(np.concatenate(found).mean())


def released(chain: MarkovChain, truth: MarkovChain, runs: list[list[Ints]]) -> Floats:
    """Loss per value, and leakage of a stream: stated, under the truth, whatever is true."""
    budget = sf.stream.Bursts(sf.SIP(TOTAL), STEPS, every=EVERY)
    plan, lost, left = as_simulation(sf.Plan(chain, budget, LOSS)), 0.0, {}
    for number, (run,) in enumerate(runs):
        events: list[sf.Event] = []
        for step in simulated(plan, f"p{number}", run[12 : 12 + STEPS].tolist(), sf.seeded(number)):
            assert step.found is not None
            row = np.zeros(len(TOWN))
            row[step.places[0]] = 1.0
            lost += step.found.design.channel.mean_loss(row, LOSS)
            events += step.events
        left[f"p{number}"] = events
    told = leakage_under(left, plan, truth).streams.values()
    sums = [lost, *(sum(getattr(one, name) for one in told) for name in ("sip", "truth", "ldp"))]
    return np.asarray(np.array(sums) / np.array([len(runs) * STEPS, *[len(runs)] * 3]))


def main() -> None:
    """Print the table of docs/benchmarks.md."""
    truth, others = open_chain(days(20_000, 1)), days(RELEASED, 99)
    even = MarkovChain.from_matrix(np.full((12, 12), 1 / 12), alphabet=TOWN)
    print("| people | epsilon | nats per transition | km lost | stated | under the truth | LDP |")
    print("|---|---|---|---|---|---|---|")
    for count in (100, 500, 2_000, 10_000):
        runs = days(count, 2)
        made: dict[str, MarkovChain] = {"none: open": open_chain(runs)}
        for epsilon in (0.5, 1.0, 2.0, 4.0):
            privacy = PrivacySpec(epsilon, CONTRIBUTION)
            made[f"{epsilon:g}"] = private_chain(runs, TOWN, privacy, sf.secure())[0]
        for name, chain in made.items():
            show(f"{count:,}", name, chain, truth, others)
    show("0", "no history", even, truth, others)


def show(
    count: str, name: str, chain: MarkovChain, truth: MarkovChain, others: list[list[Ints]]
) -> None:
    """One row."""
    cells = [log_loss(chain, others), *released(chain, truth, others)]
    print("|", " | ".join([count, name, *(f"{cell:.3f}" for cell in cells)]), "|", flush=True)


if __name__ == "__main__":
    main()
