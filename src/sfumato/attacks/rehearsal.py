"""Releases that an attacker makes himself: values that he knows, through the plan, which is public.

They are examples to learn from: what each person's values look like once they have been released.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Event
from sfumato.core.randomness import seeded
from sfumato.stream.fleet import Fleet
from sfumato.stream.plan import Plan
from sfumato.stream.released_tracks import ReleasedTracks
from sfumato.stream.simulated_stream import as_simulation, simulated


@dataclass(frozen=True, slots=True, eq=False)
class Rehearsal:
    """What left in a simulation, and what it leaked.

    Attributes:
        tracks: What left.
        sip: Leakage of each stream under the model.
        ldp: Leakage of each stream whatever the model.
    """

    tracks: ReleasedTracks
    sip: Floats
    ldp: Floats


def rehearsed(plan: Plan, tracks: Mapping[str, Sequence[int]], seed: int) -> Rehearsal:
    """What would leave of tracks, in a simulation.

    Args:
        plan: The rule of the release.
        tracks: Places of the values of each stream; -1 where one is unknown, which passes.
        seed: Of the coins.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(chain.alphabet))
        >>> left = rehearsed(plan, {"ann": [0, 0, 1], "bob": [1, 1]}, seed=1)
        >>> left.tracks.streams, left.tracks.starts.tolist()
        (('ann', 'bob'), [0, 3, 5])
        >>> left.sip.round(9)
        array([0.5, 0.5])
    """
    if not tracks or not all(len(track) for track in tracks.values()):
        raise InvalidParameter("tracks", len(tracks), "be some, each of at least one value")
    rule, coins = as_simulation(plan), seeded(seed)
    if rule.policy is not None and not rule.in_batches:
        return _by_fleet(rule, tracks, seed)
    events: dict[str, list[Event]] = {}
    for name, track in tracks.items():
        events[name] = [one for step in simulated(rule, name, track, coins) for one in step.events]
    charges = [
        (sum(one.sip.epsilon for one in left), sum(one.ldp.epsilon for one in left))
        for left in events.values()
    ]
    return Rehearsal(ReleasedTracks.of(events, plan.model.alphabet), *np.array(charges).T)


def _by_fleet(plan: Plan, tracks: Mapping[str, Sequence[int]], seed: int) -> Rehearsal:
    """All streams together, by the loops of a fleet."""
    lengths = [len(track) for track in tracks.values()]
    cells = np.concatenate([np.asarray(track, dtype=np.int64) for track in tracks.values()])
    cells = np.where(cells < 0, -2, cells)  # a moment that passes
    fleet = Fleet(plan, list(tracks), randomness=seeded(seed))
    run = fleet.run(cells, np.repeat(np.arange(len(lengths)), lengths))
    signals = np.full(len(cells), -1) if run.signals is None else run.signals
    starts = np.append(0, np.cumsum(lengths))
    outcomes, number = run.outcomes.astype(np.int64), np.arange(1, len(cells) + 1)
    left = ReleasedTracks(
        tuple(tracks), starts, run.released, outcomes, run.sequences, signals, number
    )
    return Rehearsal(left, *np.add.reduceat(run.charges, starts[:-1]).T)
