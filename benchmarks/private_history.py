"""What a model fitted under differential privacy of people costs the release, in the demo's town.

A chain is fitted to a day of each of some people, with and without noise, and other people are
released with it: eight nats over 24 values, in bursts every 6. Beside the loss: what those releases
leak under the chain of 20,000 people, the best guess of what an adversary knows (`leakage_under`).
Every line is a mean over draws; a draw has its own history, noise, coins and released people, the
same for all lines of it, so that differences to the chain without noise are those of the noise.

    python benchmarks/private_history.py [--draws 8]
"""

from __future__ import annotations

import argparse

import numpy as np

import sfumato as sf
from sfumato.core.arrays import Floats, Ints
from sfumato.core.purpose import Purpose
from sfumato.models.fitting import smoothed_parts
from sfumato.models.markov import MarkovChain
from sfumato.stream.other_truth import leakage_under
from sfumato.stream.private_counts import PrivacySpec, counted, private_chain
from sfumato.stream.simulated_stream import as_simulation, simulated
from sfumato.studies.town import alphabet, people

CONTRIBUTION, TOTAL, STEPS, EVERY, RELEASED = 47, 8.0, 24, 6, 100
PEOPLE, EPSILONS, OPEN = (100, 500, 2_000, 10_000), (0.5, 1.0, 2.0, 4.0), "none: open"
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


def released(chain: MarkovChain, truth: MarkovChain, runs: list[list[Ints]], seed: int) -> Floats:
    """Loss per value, and leakage of a stream: stated, under the truth, whatever is true."""
    budget = sf.stream.Bursts(sf.SIP(TOTAL), STEPS, every=EVERY)
    plan, lost, left = as_simulation(sf.Plan(chain, budget, LOSS)), 0.0, {}
    for number, (run,) in enumerate(runs):
        events: list[sf.Event] = []
        for step in simulated(plan, f"p{number}", run[12 : 12 + STEPS].tolist(), sf.seeded(seed)):
            assert step.found is not None
            row = np.zeros(len(TOWN))
            row[step.places[0]] = 1.0
            lost += step.found.design.channel.mean_loss(row, LOSS)
            events += step.events
        left[f"p{number}"] = events
    told = leakage_under(left, plan, truth).streams.values()
    sums = [lost, *(sum(getattr(one, name) for one in told) for name in ("sip", "truth", "ldp"))]
    return np.asarray(np.array(sums) / np.array([len(runs) * STEPS, *[len(runs)] * 3]))


def drawn(draw: int, truth: MarkovChain) -> dict[tuple[str, str], Floats]:
    """One draw of everything: the figures of each line."""
    others, found = days(RELEASED, 1_000 + draw), dict[tuple[str, str], Floats]()

    def measure(people_: str, name: str, chain: MarkovChain) -> None:
        told = released(chain, truth, others, draw)
        found[people_, name] = np.array([log_loss(chain, others), *told])

    for count in PEOPLE:
        runs = days(count, 2 + draw)
        measure(f"{count:,}", OPEN, open_chain(runs))
        for epsilon in EPSILONS:
            privacy = PrivacySpec(epsilon, CONTRIBUTION, Purpose.SIMULATION)
            chain, _ = private_chain(runs, TOWN, privacy, sf.seeded(7_000 + draw))
            measure(f"{count:,}", f"{epsilon:g}", chain)
    even = MarkovChain.from_matrix(np.full((12, 12), 1 / 12), alphabet=TOWN)
    measure("0", "no history", even)
    return found


def mean(values: Floats, digits: int = 3, sign: str = "") -> str:
    """A mean over draws, and twice its standard error."""
    error = 2 * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():{sign}.{digits}f} +- {error:.{digits}f}"


def main() -> None:
    """Print the table of docs/benchmarks.md."""
    asked = argparse.ArgumentParser(description="What a private history costs a release.")
    asked.add_argument("--draws", type=int, default=8)
    draws = asked.parse_args().draws
    truth = open_chain(days(20_000, 1))
    found = [drawn(draw, truth) for draw in range(draws)]
    names = ("people", "epsilon", "nats per transition", "km lost", "more than open", "stated")
    print("|", " | ".join((*names, "under the truth", "more than open", "LDP")), "|")
    print("|" + "---|" * 9)
    for people_, name in found[0]:
        told = np.array([draw[people_, name] for draw in found]).T
        beside = people_ if people_ in [f"{count:,}" for count in PEOPLE] else f"{PEOPLE[-1]:,}"
        more = told - np.array([draw[beside, OPEN] for draw in found]).T
        apart = [mean(more[place], sign="+") if name != OPEN else "" for place in (1, 3)]
        cells = [mean(told[0]), mean(told[1]), apart[0], f"{told[2].mean():.3f}", mean(told[3])]
        print("|", " | ".join([people_, name, *cells, apart[1], f"{told[4].mean():.3f}"]), "|")


if __name__ == "__main__":
    main()
