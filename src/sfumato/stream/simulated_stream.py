"""A stream released in a simulation, step by step: what a forecast looks at."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sfumato.core.events import Event
from sfumato.core.purpose import Fallback, Purpose
from sfumato.core.randomness import Randomness
from sfumato.core.state import StreamState
from sfumato.stream.partition.cells import StepDesign
from sfumato.stream.plan import Plan


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedStep:
    """One step of a simulated stream.

    Attributes:
        state: Where the stream stood before it.
        places: The true symbols; -1 for one that is missing or outside the alphabet.
        found: The channel that they went through; None where nothing could leave.
        events: What left.
        following: Where the stream stands after it.
        seconds: Time to find the channel and to draw.
    """

    state: StreamState
    places: Sequence[int]
    found: StepDesign | None
    events: tuple[Event, ...]
    following: StreamState
    seconds: float


def as_simulation(plan: Plan, **changes: object) -> Plan:
    """The same rule for a simulation, which goes on when its budget is gone."""
    simulation = {"purpose": Purpose.SIMULATION, "on_exhausted": Fallback.SUPPRESS}
    return replace(plan, **{**changes, **simulation})  # type: ignore[arg-type]


def simulated(
    plan: Plan, stream: str, path: Sequence[int], coins: Randomness
) -> Iterator[SimulatedStep]:
    """Release a stream, given as places of its true symbols; what is unknown passes in silence."""
    state, labels = plan.begin(stream), plan.model.alphabet.labels
    for start in range(0, len(path), plan.width):
        places = path[start : start + plan.width]
        began = time.perf_counter()
        found = plan.prepare(state, len(places)) if min(places) >= 0 else None
        if found is None:
            events, following = plan.skip(state, len(places))
        else:
            events, following = plan.step(state, [labels[place] for place in places], coins)
        seconds = time.perf_counter() - began
        yield SimulatedStep(state, places, found, events, following, seconds)
        state = following
