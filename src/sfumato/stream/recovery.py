"""What a receiver can make of released streams: free of privacy cost, from public things alone.

A release is what left; what it *tells* is more. An output also tells about earlier and later
values, since values depend on each other. Whoever knows the model and the plan, which are public,
can compute the distribution of every value given all outputs, and whatever follows from it: the
best guess for a loss, the most probable track, sets that hold the truth with a stated probability,
counts of populations. All of that is post-processing. It is right if the model is: where values do
not move as the model says, best guesses lean towards it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sfumato.core import checks
from sfumato.core.alphabet import Label
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Event
from sfumato.core.loss import Loss, as_loss, hamming
from sfumato.core.progress import Progress
from sfumato.models.clustered_chain import ClusteredChain
from sfumato.models.library import PatternLibrary
from sfumato.models.periodic import PeriodicChain
from sfumato.models.value_chains import ValueChain
from sfumato.stream.evidence import Evidence, evidence, split
from sfumato.stream.hidden_chain import HiddenChain
from sfumato.stream.learning_plan import LearningPlan
from sfumato.stream.learnt_outputs import estimates, value_starts
from sfumato.stream.plan import Plan
from sfumato.stream.recovery_loops import last_states, posteriors
from sfumato.stream.released_tracks import ReleasedTracks
from sfumato.stream.remap import Guesser
from sfumato.stream.track_loops import draw_tracks, likeliest_tracks

_CELLS = 4_000_000
"""Probabilities that are held at one time: 32 MB."""
_PHASED, _TOLD = 2_000, 100_000_000
"""Pairs of phase and symbol, which are followed by their matrix (32 MB), and what outputs told of
them over all values (800 MB)."""


@dataclass(frozen=True, slots=True, eq=False)
class RecoveredValues:
    """What is known of every value; one entry each, stream after stream.

    Attributes:
        guesses: Places of the best guesses for the loss.
        losses: What each is expected to lose.
        probabilities: Probability of each guess.
        set_starts: Where the credible set of each value begins in `set_places`, and the end.
        set_places: The symbols of each set, the most probable first: the fewest whose probability
            reaches what was asked for.
    """

    guesses: Ints
    losses: Floats
    probabilities: Floats
    set_starts: Ints
    set_places: Ints

    def credible(self, value: int) -> Ints:
        """The credible set of one value."""
        return self.set_places[self.set_starts[value] : self.set_starts[value + 1]]


@dataclass(frozen=True, slots=True, eq=False)
class Recovery:
    """Released streams, and what they told.

    Attributes:
        released: What left.
        plan: The rule of the release.
        evidence: What the outputs told.
        chain: What is known beforehand: the model; of a release that learns, what it learnt last in
            the start of each value (`learnt_outputs.py`).

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(chain.alphabet))
        >>> events, _ = plan.step(plan.begin("ann"), [1], sf.secure())
        >>> sf.stream.recover({"ann": events}, plan).posterior("ann").shape
        (1, 2)
    """

    released: ReleasedTracks
    plan: Plan
    evidence: Evidence
    chain: HiddenChain = field(init=False, repr=False)

    def __post_init__(self) -> None:
        model = self.plan.model
        if not isinstance(model, ValueChain | PeriodicChain):
            raise InvalidParameter("model", type(model).__name__, "be a chain of values")
        if isinstance(self.plan, LearningPlan):
            chain = HiddenChain.in_parts(estimates(self.plan))
        elif isinstance(model, PeriodicChain):
            chain = HiddenChain.in_parts([model.at(h) for h in range(model.cycle.phases)])
        else:
            chain = HiddenChain.of(model, self.evidence.span)
        object.__setattr__(self, "chain", chain)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The symbols."""
        return self.plan.model.alphabet.labels

    def of(self, stream: str) -> slice:
        """Where the values of a stream are."""
        names = self.released.streams
        if stream not in names:
            raise InvalidParameter("stream", stream, "be the name of a released stream")
        place = names.index(stream)
        return slice(int(self.evidence.starts[place]), int(self.evidence.starts[place + 1]))

    def posterior(self, stream: str, lag: int | None = None) -> Floats:
        """The distribution of every value of a stream: one row each.

        Args:
            stream: Its name.
            lag: Given the outputs until this many values later: 0 is what could be known at once
                (filtered), more is a fixed lag; None is everything that left (smoothed).
        """
        own = self.of(stream)
        told = self.evidence
        alone = Evidence(
            np.array([0, own.stop - own.start]),
            told.begins[own],
            told.reaches[own],
            told.ends[own],
            told.told,
        )
        return next(self._blocks(alone, lag))[2]

    def clusters(self) -> Floats:
        """How probably each stream is of each cluster at its end: one row per released stream.

        Raises:
            InvalidParameter: If the model is no mixture of chains.
        """
        model = self.plan.model
        if not isinstance(model, ClusteredChain):
            rule = "be a mixture of chains, to have clusters"
            raise InvalidParameter("model", type(model).__name__, rule)
        told = self.evidence
        found = np.empty((told.starts.size - 1, self.chain.contexts))
        last_states(self.chain.arrays, told.arrays, told.starts, found)
        return np.asarray(found.reshape(len(found), model.size, -1).sum(axis=1))

    def blocks(
        self, lag: int | None = None, progress: Progress | None = None
    ) -> Iterator[tuple[int, int, Floats]]:
        """The distributions of all values, some streams at a time: first value, end, rows."""
        for first, stop, found in self._blocks(self.evidence, lag):
            yield first, stop, found
            if progress:
                progress(stop)

    def _blocks(self, told: Evidence, lag: int | None) -> Iterator[tuple[int, int, Floats]]:
        until = -1 if lag is None else checks.count("lag", lag, at_least=0)
        chain = self.chain
        for first, stop, part in split(told, _CELLS, chain.symbols):
            found = np.empty((stop - first, chain.symbols))
            posteriors(chain.arrays, part.arrays, part.starts, chain.span, until, found)
            if not np.isfinite(found).all():
                rule = "be possible under the model; nothing could be inferred"
                raise InvalidParameter("released", "another", rule)
            # Several states show a symbol where chains of several parts are followed.
            parts = found.reshape(stop - first, -1, len(self.labels))
            yield first, stop, found if parts.shape[1] == 1 else parts.sum(axis=1)

    def values(
        self,
        *,
        lag: int | None = None,
        loss: Loss | None = None,
        cover: float = 0.9,
        progress: Progress | None = None,
    ) -> RecoveredValues:
        """Best guesses and credible sets of all values.

        Args:
            lag: As in `posterior`.
            loss: What a wrong guess costs; that of the plan, or right or wrong, if not given.
            cover: Probability that a credible set has at least.
            progress: Called with the number of values done so far.

        Examples:
            >>> import sfumato as sf
            >>> chain = sf.MarkovChain.from_matrix([[0.95, 0.05], [0.05, 0.95]])
            >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(chain.alphabet))
            >>> state, left = plan.begin("ann"), []
            >>> for _ in range(20):
            ...     (event,), state = plan.step(state, [1], sf.secure())
            ...     left.append(event)
            >>> guessed = recover({"ann": left}, plan).values()
            >>> guessed.losses.shape, bool((guessed.losses <= 0.5).all())
            ((20,), True)
        """
        checks.proper_fraction("cover", cover)
        asked = self.plan.value_loss if loss is None else as_loss(loss, len(self.labels))
        priced = hamming(self.plan.model.alphabet) if asked is None else asked
        guesser, count = Guesser(priced), len(self.evidence)
        guesses, losses = np.empty(count, dtype=np.int64), np.empty(count)
        sure, sizes, sets = np.empty(count), np.empty(count, dtype=np.int64), list[Ints]()
        for first, stop, found in self.blocks(lag, progress):
            own = slice(first, stop)
            guesses[own] = guesser.best(found.T, found.argmax(axis=1))
            losses[own] = _expected(found, guesses[own], priced)
            sure[own] = found[np.arange(stop - first), guesses[own]]
            sizes[own], members = _credible(found, cover)
            sets.append(members)
        starts = np.append(0, np.cumsum(sizes))
        return RecoveredValues(guesses, losses, sure, starts, np.concatenate(sets))

    def likeliest(self) -> Ints:
        """The most probable sequence of all values of each stream: places of symbols (Viterbi).

        It is right as a whole as often as any can be; value by value, best guesses err less.

        Raises:
            InvalidParameter: If several states of the model show the same symbol, as in a chain
                over the pairs that occur: a sequence of values then sums over many paths of states,
                and only the most probable one of these is known (`likeliest_path`).
        """
        if not self.chain.observable:
            rule = "be a chain of values: of one over pairs only likeliest_path is known"
            raise InvalidParameter("model", type(self.plan.model).__name__, rule)
        return self.likeliest_path()

    def likeliest_path(self) -> Ints:
        """The values along the most probable path of the model's states: places of symbols.

        Of a chain of values it is the most probable sequence of values. Of a chain over the pairs
        that occur it need not be: another sequence may gather more from several paths.
        """
        tracks = np.empty(len(self.evidence), dtype=np.int64)
        for first, stop, part in split(self.evidence, _CELLS, self.chain.contexts):
            arrays = (self.chain.arrays, part.arrays, part.starts, self.chain.span)
            likeliest_tracks(*arrays, tracks[first:stop])
        return tracks % len(self.labels)

    def draws(self, count: int, seed: int) -> Iterator[tuple[int, int, Ints]]:
        """Whole tracks as probable as the outputs make them: first value, end, one track a row.

        Streams follow each other; a stream's draws are those of the seed and its place.
        """
        checks.count("draws", count)
        for stream, (first, stop) in enumerate(
            zip(self.evidence.starts[:-1].tolist(), self.evidence.starts[1:].tolist(), strict=True)
        ):
            length = stop - first
            tracks = np.empty((count, length), dtype=np.int64)
            if length:
                coins = np.random.default_rng([seed, stream]).random((count, length))
                told, span = self.evidence.arrays, self.chain.span
                draw_tracks(self.chain.arrays, told, first, length, span, coins, tracks)
            yield first, stop, tracks % len(self.labels)


def recover(
    released: ReleasedTracks | Mapping[str, Sequence[Event]],
    plan: Plan,
    *,
    unbiased: bool = False,
    progress: Progress | None = None,
) -> Recovery:
    """What a receiver can infer from released streams, given the public model and plan.

    Args:
        released: What left: from `read_tracks`, or the events of each stream from its first moment
            on.
        plan: The rule of the release; it holds the model, and the policy if one was used. Of a
            release that learns, `LearningRelease.plan` or `learnt_plan`: it holds what left.
        unbiased: Also prepare estimates that need no model, where the channels allow them.
        progress: Called with the number of values done so far.

    Raises:
        InvalidParameter: If the plan could not have released this.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(3.0)), sf.loss.hamming(chain.alphabet))
        >>> state, left = plan.begin("ann"), []
        >>> for _ in range(20):
        ...     events, state = plan.step(state, [1], sf.secure())
        ...     left.extend(events)
        >>> bool(recover({"ann": left}, plan).posterior("ann")[10, 1] > 0.9)
        True
    """
    alphabet = plan.model.alphabet
    if isinstance(plan.model, PatternLibrary):
        raise InvalidParameter("model", "a library of patterns", "be a chain of values")
    tracks = released
    if not isinstance(tracks, ReleasedTracks):
        tracks = ReleasedTracks.of(tracks, alphabet)
    told = evidence(tracks, plan, unbiased=unbiased, progress=progress)
    if isinstance(plan, LearningPlan) and plan.history.restarts:
        told = told.in_parts(value_starts(tracks, plan), plan.history.restarts + 1, len(alphabet))
    if isinstance(plan.model, PeriodicChain):
        told = _by_phase(told, tracks, plan.model)
    return Recovery(tracks, plan, told)


def _by_phase(told: Evidence, tracks: ReleasedTracks, model: PeriodicChain) -> Evidence:
    """The same about pairs of phase and symbol: each value is known to be of its own phase.

    The chain moves by the matrix of the phase that a value lies in, so phases are parts of a stream
    as those of `HiddenChain.in_parts` are, however often they take turns.
    """
    phases, states = model.cycle.phases, model.cycle.phases * model.size
    if states > _PHASED or len(told) * states > _TOLD:
        rule = f"have at most {_PHASED:,} pairs of phase and symbol, and {_TOLD:,} of them over all"
        rule += " values: fit it with fewer --phases, or recover fewer files at a time"
        got = f"{states:,} pairs, {len(told):,} values"
        raise InvalidParameter("model", got, rule)
    if phases == 1:
        return told
    return told.in_parts(tracks.value_phases(model.cycle), phases, model.size)


def _expected(found: Floats, guesses: Ints, loss: Loss) -> Floats:
    """Expected loss of a guess in each row."""
    costs = np.empty(len(found))
    for place in np.unique(guesses):
        own = guesses == place
        costs[own] = found[own] @ loss.columns([place])[:, 0]
    return costs


def _credible(found: Floats, cover: float) -> tuple[Ints, Ints]:
    """How many symbols the credible set of each row has, and those of all, row after row."""
    order = np.argsort(-found, axis=1, kind="stable")
    reached = np.cumsum(np.take_along_axis(found, order, axis=1), axis=1)
    # One symbol more than those that do not reach it; rounding must not take all of them.
    sizes = np.minimum((reached < cover * (1 - 1e-12)).sum(axis=1) + 1, found.shape[1])
    inside = np.arange(found.shape[1]) < sizes[:, None]
    return sizes, order[inside]
