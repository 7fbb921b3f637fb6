"""Whose stream is it, asked of a recurrent network that learnt from releases with known owners.

The attacker knows true values of everybody from before, as in `sfumato.attacks.reidentification`.
He releases them himself, several times, through the public plan, and shows a network what leaves:
symbols and signals alone, or with the belief that the model gives at each moment. It needs no
chains of people and finds what they miss; the exact likelihood beats it where people move by
chains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.attacks.network_input import NetworkInput, raw_rows, released_rows
from sfumato.attacks.recurrent_network import NetworkSpec, RecurrentNetwork, load_torch
from sfumato.attacks.rehearsal import rehearsed
from sfumato.attacks.reidentification import Reidentification, raw_outlines, released_outlines
from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Event
from sfumato.core.progress import Progress
from sfumato.stream.plan import Plan
from sfumato.stream.released_tracks import ReleasedTracks

_DOMAIN = 0x52454845


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
    seen = checks.choice("shown", NetworkInput, shown)
    spec = NetworkSpec() if network is None else network
    examples = rehearse(known, plan, seen, spec.seed, rehearsals)
    tracks = released
    if not isinstance(tracks, ReleasedTracks):
        tracks = ReleasedTracks.of(tracks, plan.model.alphabet)
    rows, outlines = released_rows(tracks, plan, seen), released_outlines(tracks)
    return examples.judged(tracks.streams, rows, outlines, spec, progress)


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """What a network learns from: rows of streams, several of each person.

    Attributes:
        people: Names.
        rows: What is seen of each stream, person after person, again and again.
    """

    people: tuple[str, ...]
    rows: list[Floats]

    def judged(
        self,
        streams: tuple[str, ...],
        rows: Sequence[Floats],
        outlines: tuple[bytes, ...],
        spec: NetworkSpec,
        progress: Progress | None = None,
    ) -> Reidentification:
        """Teach a network, and ask it whose other streams are."""
        owners = [*range(len(self.people))] * (len(self.rows) // len(self.people))
        learnt = RecurrentNetwork(self.rows, owners, spec, progress)
        return Reidentification(streams, self.people, learnt.scores(rows), outlines)


def rehearse(
    known: Mapping[str, Sequence[int]], plan: Plan, shown: NetworkInput, seed: int, times: int
) -> Examples:
    """Release known values several times: what a network can learn from."""
    load_torch()  # before anything is computed
    checks.count("rehearsals", times)
    _check(known)
    rows: list[Floats] = []
    for turn in range(times):
        rows += released_rows(rehearsed(plan, known, own_seed(seed, turn)).tracks, plan, shown)
    return Examples(tuple(known), rows)


def own_seed(seed: int, turn: int) -> int:
    """The seed of a rehearsal: its coins are never those of a release with the same seed.

    A network that learnt from the very noise of a simulated release would know it by that.

    Examples:
        >>> own_seed(0, 0).bit_length() > 100, own_seed(0, 0) == own_seed(0, 1)
        (True, False)
    """
    checks.count("seed", seed, at_least=0)
    own = np.random.SeedSequence(seed, spawn_key=(_DOMAIN, turn))
    return int.from_bytes(own.generate_state(4).astype("<u4").tobytes(), "little")


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

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]])
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(3.0)), sf.loss.hamming(chain.alphabet))
        >>> known = {"ann": [0, 0, 0, 1] * 9, "bob": [1, 1, 1, 0] * 9}
        >>> small = sf.attacks.NetworkSpec(hidden=4, window=12, steps=100)
        >>> reidentify_raw_by_network(known, {"x": [1] * 30}, plan, network=small).guesses()
        [('bob',)]
    """
    load_torch()
    _check(known)
    spec = NetworkSpec() if network is None else network
    examples = Examples(tuple(known), raw_rows(known, plan))
    return examples.judged(tuple(raw), raw_rows(raw, plan), raw_outlines(raw), spec, progress)


def _check(known: Mapping[str, Sequence[int]]) -> None:
    if len(known) < 2 or not all(len(values) for values in known.values()):
        raise InvalidParameter("known", len(known), "hold two people at least, with values")
