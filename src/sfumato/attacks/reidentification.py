"""Whose stream is it? Released streams without names, and people who are known a little.

The attacker has half of everybody's stream and learns from it how each person moves. He then asks,
for a released stream, how likely its outputs are if it is each person's: exactly, through the
channels of the plan, which are public. No attacker does better who believes the same chains.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.attacks.information_gain import probability_of_outputs
from sfumato.attacks.lower_bound import LowerBound, Notion
from sfumato.attacks.personal_chains import personal_chains
from sfumato.attacks.proportions import interval, least_proportion
from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Event
from sfumato.core.progress import Progress
from sfumato.models.markov import MarkovChain
from sfumato.stream.evidence import Evidence, check_steady, evidence, of_likelihoods
from sfumato.stream.hidden_chain import HiddenChain
from sfumato.stream.plan import Plan
from sfumato.stream.released_tracks import ReleasedTracks

_FAILURE = 0.025
"""Probability that what streams must have told is said to be more than it is."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How often the owner was among the best guesses.

    Attributes:
        share: Of all streams; ties count by their chance.
        low: A lower bound on the probability, wrong once in 40.
        high: An upper bound, the same.
        chance: What guessing without looking gives.
        leaked: What the streams must have told for that; None where owners could also be told by
            how long or how many their streams are, or by when nothing left.
    """

    share: float
    low: float
    high: float
    chance: float
    leaked: LowerBound | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Reidentification:
    """How likely each stream is each person's.

    Attributes:
        streams: Names of the streams.
        people: Names of the people who are known.
        scores: How likely each stream (row) is each person's (column): logarithms. With chains they
            are those of the probability of its outputs.
        outlines: What of each stream is seen beside values (its length, and what kind of answer
            left when), if that is known; equal ones look alike.

    Examples:
        >>> scores = np.log([[0.9, 0.1], [0.2, 0.8]])
        >>> found = Reidentification(("x", "y"), ("ann", "bob"), scores)
        >>> found.guesses(), found.accuracy(["ann", "ann"]).share
        ([('ann',), ('bob',)], 0.5)
    """

    streams: tuple[str, ...]
    people: tuple[str, ...]
    scores: Floats
    outlines: tuple[bytes, ...] = ()

    def guesses(self, top: int = 1) -> list[tuple[str, ...]]:
        """The likeliest people of each stream, the likeliest first."""
        order = np.argsort(-self.scores, axis=1, kind="stable")[:, : checks.count("top", top)]
        return [tuple(self.people[place] for place in row) for row in order.tolist()]

    def accuracy(self, owners: Sequence[str], top: int = 1) -> Accuracy:
        """How often the owner is among the likeliest people.

        Args:
            owners: Whose each stream is.
            top: How many guesses count.
        """
        hits = self.hits(owners, top)
        low, high = interval(round(float(hits.sum())), len(hits))
        chance = min(1.0, top / len(self.people))
        places = np.array([self.people.index(owner) for owner in owners])
        leaked = self._leaked(places, int(hits.sum() + 1e-9), chance)
        return Accuracy(float(hits.mean()), low, high, chance, leaked)

    def hits(self, owners: Sequence[str], top: int = 1) -> Floats:
        """Whether the owner of each stream is among the likeliest people; ties by their chance."""
        checks.count("top", top)
        if len(owners) != len(self.streams) or not set(owners) <= set(self.people):
            raise InvalidParameter("owners", len(owners), "name a known person for each stream")
        places = np.array([self.people.index(owner) for owner in owners])
        own = self.scores[np.arange(len(places)), places][:, None]
        before, alike = (self.scores > own).sum(axis=1), (self.scores == own).sum(axis=1)
        return np.asarray(np.clip((top - before) / alike, 0.0, 1.0))

    def _leaked(self, places: Ints, hits: int, chance: float) -> LowerBound | None:
        r"""What the streams told, at least, for so many owners to be found.

        $$\epsilon \ge \log \frac{p}{c}$$

        where $p$ is the probability to find an owner and $c$ that by chance: under a leakage of
        $\epsilon$ no guess is likelier than $e^\epsilon$ times what it is under the model, and
        there, where a stream does not depend on its owner, guesses are right by chance, if
        everybody has as many streams, of one outline.
        """
        streams = np.bincount(places, minlength=len(self.people))
        if len(set(self.outlines)) != 1 or streams.min() != streams.max():
            return None
        sure = least_proportion(hits, len(places), _FAILURE)
        tried = f"owners of {len(places)} streams among {len(self.people)} people"
        told = max(0.0, math.log(sure / chance)) if sure else 0.0
        return LowerBound(told, Notion.SIP, failure=_FAILURE, tried=tried)


def reidentify(
    known: Mapping[str, Sequence[int]],
    released: ReleasedTracks | Mapping[str, Sequence[Event]],
    plan: Plan,
    *,
    order: int = 1,
    progress: Progress | None = None,
) -> Reidentification:
    """Tell whose released streams are, from what is known of people.

    Args:
        known: Places of true values of each person, before those that were released.
        released: What left; names of its streams are not looked at.
        plan: The rule of the release.
        order: Of the chains of people.
        progress: Called with the number of people done so far.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]])
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(3.0)), sf.loss.hamming(chain.alphabet))
        >>> state, left, coins = plan.begin("x"), [], sf.secure()
        >>> for _ in range(30):
        ...     events, state = plan.step(state, [1], coins)
        ...     left.extend(events)
        >>> known = {"ann": [0, 0, 0, 1] * 9, "bob": [1, 1, 1, 0] * 9}
        >>> reidentify(known, {"x": left}, plan).guesses()
        [('bob',)]

    References:
        [SIP, Fig. 8]
    """
    alphabet, tracks = plan.model.alphabet, released
    if not isinstance(tracks, ReleasedTracks):
        tracks = ReleasedTracks.of(tracks, alphabet)
    check_steady(plan, "to be attacked")
    told = evidence(tracks, plan)
    chains = personal_chains(known, alphabet, order)
    return _scored(chains, tracks.streams, told, released_outlines(tracks), progress)


def reidentify_raw(
    known: Mapping[str, Sequence[int]],
    raw: Mapping[str, Sequence[int]],
    plan: Plan,
    *,
    order: int = 1,
) -> Reidentification:
    """The same attack on true values: what it would give had nothing been blurred.

    Args:
        known: As in `reidentify`.
        raw: Places of the true values of each stream; -1 where unknown.
        plan: Whose symbols they are.
        order: Of the chains of people.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]])
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(3.0)), sf.loss.hamming(chain.alphabet))
        >>> known = {"ann": [0, 0, 0, 1] * 9, "bob": [1, 1, 1, 0] * 9}
        >>> reidentify_raw(known, {"x": [1] * 30}, plan).guesses()
        [('bob',)]
    """
    alphabet = plan.model.alphabet
    rows = np.eye(len(alphabet))
    streams = [[(1, rows[place] if place >= 0 else None) for place in raw[name]] for name in raw]
    told = of_likelihoods(streams, len(alphabet))
    chains = personal_chains(known, alphabet, order)
    return _scored(chains, tuple(raw), told, raw_outlines(raw), None)


def released_outlines(tracks: ReleasedTracks) -> tuple[bytes, ...]:
    """What of each released stream is seen beside its values: outcomes, and where batches begin.

    No certificate is about that: moments that pass or are suppressed follow from the input.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]])
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(3.0)), sf.loss.hamming(chain.alphabet))
        >>> left, _ = plan.step(plan.begin("x"), [1], sf.secure())
        >>> silent, _ = plan.skip(plan.begin("y"))
        >>> one, other = released_outlines(ReleasedTracks.of([*left, *silent], chain.alphabet))
        >>> one == other
        False
    """
    seen = np.stack([tracks.outcomes, tracks.began], axis=1).astype(np.int64)
    return tuple(own.tobytes() for own in np.split(seen, tracks.starts[1:-1]))


def raw_outlines(raw: Mapping[str, Sequence[int]]) -> tuple[bytes, ...]:
    """The same of true values: which are known."""
    return tuple((np.asarray(track) >= 0).tobytes() for track in raw.values())


def _scored(
    chains: Mapping[str, MarkovChain],
    streams: tuple[str, ...],
    told: Evidence,
    outlines: tuple[bytes, ...],
    progress: Progress | None,
) -> Reidentification:
    scores = np.empty((len(streams), len(chains)))
    for place, chain in enumerate(chains.values()):
        scores[:, place] = probability_of_outputs(HiddenChain.of(chain, told.span), told)
        if progress:
            progress(place + 1)
    return Reidentification(streams, tuple(chains), scores, outlines)


def halves(
    tracks: Mapping[str, Sequence[int]],
) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """The first and the second half of everybody's values: what is known, and what is released.

    Examples:
        >>> halves({"ann": [3, 1, 4, 1, 5]})
        ({'ann': [3, 1]}, {'ann': [4, 1, 5]})
    """
    known = {name: list(track[: len(track) // 2]) for name, track in tracks.items()}
    return known, {name: list(track[len(track) // 2 :]) for name, track in tracks.items()}
