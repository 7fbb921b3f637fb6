"""Whose stream is it, asked of a recurrent network that learnt from releases with known owners.

The attacker knows true values of everybody from before, as in `sfumato.attacks.reidentification`.
He releases them himself, several times, through the public plan, and shows a network what leaves:
symbols and signals alone, or with the belief that the model gives at each moment. It needs no
chains of people and finds what they miss; the exact likelihood beats it where people move by
chains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sfumato.attacks.network_input import NetworkInput, raw_rows, released_rows
from sfumato.attacks.recurrent_network import NetworkSpec, RecurrentNetwork, load_torch
from sfumato.attacks.rehearsal import rehearsed
from sfumato.attacks.reidentification import Reidentification
from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Event
from sfumato.core.progress import Progress
from sfumato.stream.plan import Plan
from sfumato.stream.released_tracks import ReleasedTracks


def reidentify_by_network(
    known: Mapping[str, Sequence[int]],
    released: ReleasedTracks | Mapping[str, Sequence[Event]],
    plan: Plan,
    *,
    shown: NetworkInput | str = NetworkInput.CHAIN,
    network: NetworkSpec | None = None,
    rehearsals: int = 4,
    progress: Progress | None = None,
) -> Reidentification:
    """Tell whose released streams are, by a network that learnt from people's known values.

    Args:
        known: Places of true values of each person, before those that were released.
        released: What left; names of its streams are not looked at.
        plan: The rule of the release.
        shown: What the network sees: `values` that left, or with what the `chain` makes of them.
        network: How it is built and taught.
        rehearsals: How often the known values are released to learn from.
        progress: Called with the number of steps done so far.

    Raises:
        InvalidParameter: If PyTorch is missing: `pip install sfumato[attacks]`.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]])
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(3.0)), sf.loss.hamming(chain.alphabet))
        >>> state, left, coins = plan.begin("x"), [], sf.secure()
        >>> for _ in range(30):
        ...     events, state = plan.step(state, [1], coins)
        ...     left.extend(events)
        >>> known = {"ann": [0, 0, 0, 1] * 9, "bob": [1, 1, 1, 0] * 9}
        >>> small = sf.attacks.NetworkSpec(hidden=4, window=12, steps=100)
        >>> reidentify_by_network(known, {"x": left}, plan, network=small).guesses()
        [('bob',)]

    References:
        [SIP, Fig. 8]
    """
    load_torch()  # before anything is computed
    checks.count("rehearsals", rehearsals)
    seen = checks.choice("shown", NetworkInput, shown)
    tracks = released
    if not isinstance(tracks, ReleasedTracks):
        tracks = ReleasedTracks.of(tracks, plan.model.alphabet)
    _check(known)
    spec = NetworkSpec() if network is None else network
    examples: list[Floats] = []
    for turn in range(rehearsals):
        examples += released_rows(rehearsed(plan, known, spec.seed + turn), plan, seen)
    learnt = RecurrentNetwork(examples, [*range(len(known))] * rehearsals, spec, progress)
    scores = learnt.scores(released_rows(tracks, plan, seen))
    lengths = tuple(np.diff(tracks.starts).tolist())
    return Reidentification(tracks.streams, tuple(known), scores, lengths)


def reidentify_raw_by_network(
    known: Mapping[str, Sequence[int]],
    raw: Mapping[str, Sequence[int]],
    plan: Plan,
    *,
    network: NetworkSpec | None = None,
    progress: Progress | None = None,
) -> Reidentification:
    """The same attack on true values: what it would give had nothing been blurred.

    Args:
        known: As in `reidentify_by_network`.
        raw: Places of the true values of each stream; -1 where unknown.
        plan: Whose symbols they are.
        network: How the network is built and taught.
        progress: Called with the number of steps done so far.
    """
    _check(known)
    examples = raw_rows(known, plan)
    learnt = RecurrentNetwork(examples, range(len(known)), network, progress)
    scores = learnt.scores(raw_rows(raw, plan))
    lengths = tuple(len(track) for track in raw.values())
    return Reidentification(tuple(raw), tuple(known), scores, lengths)


def _check(known: Mapping[str, Sequence[int]]) -> None:
    if len(known) < 2 or not all(len(values) for values in known.values()):
        raise InvalidParameter("known", len(known), "hold two people at least, with values")
