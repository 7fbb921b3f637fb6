"""Streams that were released in a simulation, with their truths."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import sfumato as sf
from sfumato.core.events import Event
from sfumato.stream.simulated_stream import as_simulation


def sticky(size: int, stay: float) -> sf.MarkovChain:
    moves = np.full((size, size), (1 - stay) / (size - 1))
    np.fill_diagonal(moves, stay)
    return sf.MarkovChain.from_matrix(moves)


def plan_of(chain: sf.MarkovChain, epsilon: float, **asked: object) -> sf.Plan:
    loss = sf.loss.hamming(chain.alphabet)
    plan = sf.Plan(chain, sf.PerStep(sf.SIP(epsilon)), loss, **asked)  # type: ignore[arg-type]
    return as_simulation(plan)


def walk(moves: np.ndarray, length: int, rng: np.random.Generator) -> list[int]:
    track = [int(rng.integers(len(moves)))]
    while len(track) < length:
        track.append(int(rng.choice(len(moves), p=moves[track[-1]])))
    return track


@dataclass(frozen=True)
class Left:
    """What left of some streams, and what was spent."""

    events: dict[str, list[Event]]
    spent: dict[str, sf.SIP]


def released(plan: sf.Plan, tracks: Sequence[Sequence[int]], seed: int) -> Left:
    events: dict[str, list[Event]] = {}
    spent, coins, labels = {}, sf.seeded(seed), plan.model.alphabet.labels
    for number, track in enumerate(tracks):
        name = f"s{number}"
        state, events[name] = plan.begin(name), []
        for first in range(0, len(track), plan.width):
            batch = [labels[place] for place in track[first : first + plan.width]]
            left, state = plan.step(state, batch, coins)
            events[name].extend(left)
        spent[name] = state.ledger.spent[0]
    return Left(events, spent)
