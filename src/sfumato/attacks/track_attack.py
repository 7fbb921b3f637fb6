"""Bayes' attack on released streams: who knows the model and the plan infers what was true.

The inference is that of a receiver (`sfumato.stream.recovery`), turned against the release: how
often the adversary's best guesses are right, how far off he is on average (the measure of location
privacy), and how far his belief moved, beside what he could have guessed without any output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.information_gain import prior_marginals, realised_gains, value_gains
from sfumato.attacks.lower_bound import LowerBound
from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Event
from sfumato.core.loss import Loss, as_loss, hamming
from sfumato.core.progress import Progress
from sfumato.stream.history_paths import mean_and_error
from sfumato.stream.plan import Plan
from sfumato.stream.recovery import Recovery, recover
from sfumato.stream.released_tracks import ReleasedTracks
from sfumato.stream.remap import Guesser


@dataclass(frozen=True, slots=True)
class Score:
    """A mean over values, and its standard error; values of a stream may depend on each other.

    Attributes:
        mean: Over all values whose truth is known.
        error: Standard error between streams; infinite if there is one stream alone.
    """

    mean: float
    error: float


@dataclass(frozen=True, slots=True)
class TrackScores:
    """How well the attack did, beside true values.

    Attributes:
        values: How many true values are known.
        first: How often the likeliest symbol was right.
        top: How often the truth was among the likeliest ones that are kept.
        blind: How often the likeliest symbol without any output was right.
        error: What best guesses lost: the adversary's error.
        blind_error: What best guesses without any output lost.
        track: How often the likeliest track was right, value by value.
    """

    values: int
    first: Score
    top: Score
    blind: Score
    error: Score
    blind_error: Score
    track: Score


@dataclass(frozen=True, slots=True, eq=False)
class TrackAttack:
    """What the adversary infers of every value; one row each, stream after stream.

    Attributes:
        recovery: What left, and what it told.
        loss: What an error costs him.
        ranked: Places of the likeliest symbols of each value, the likeliest first.
        chances: Their probabilities.
        guesses: Places of the best guesses for the loss.
        errors: What each is expected to lose.
        blind: Likeliest symbol, best guess and its expected loss at each moment without any output.
        gains: What each stream told about its track, at least; empty where outputs look at values
            twice (a memory of several batches).
        value_gains: The same about any one of its values.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.95, 0.05], [0.05, 0.95]])
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(chain.alphabet))
        >>> events, _ = plan.step(plan.begin("ann"), [1], sf.secure())
        >>> found = sf.attacks.attack_tracks({"ann": events}, plan, top=1)
        >>> found.guesses.shape, found.expected_error <= found.expected_blind_error + 1e-9
        ((1,), True)
    """

    recovery: Recovery
    loss: Loss
    ranked: Ints
    chances: Floats
    guesses: Ints
    errors: Floats
    blind: tuple[Ints, Ints, Floats]
    gains: tuple[LowerBound, ...]
    value_gains: Floats

    @property
    def expected_first(self) -> float:
        """How often the likeliest symbol is right, by his own account."""
        return float(self.chances[:, 0].mean())

    @property
    def expected_top(self) -> float:
        """How often the truth is among the symbols that are kept, by his own account."""
        return float(self.chances.sum(axis=1).mean())

    @property
    def expected_error(self) -> float:
        """What he expects to lose: the measure of location privacy where losses are distances."""
        return float(self.errors.mean())

    @property
    def expected_blind_error(self) -> float:
        """What he would expect to lose had nothing left."""
        return float(self.blind[2][self.recovery.released.moments].mean())

    def scored(self, truths: Ints) -> TrackScores:
        """How well he did.

        Args:
            truths: The place of each true symbol, in the order of the values; -1 where unknown.
        """
        truths = np.asarray(truths)
        if truths.shape != self.guesses.shape:
            raise InvalidParameter("truths", truths.shape, f"be {len(self.guesses)} places")
        known, moments = np.flatnonzero(truths >= 0), self.recovery.released.moments
        if not known.size:
            raise InvalidParameter("truths", "none", "be known of one value at least")
        true, when = truths[known], moments[known]
        starts = self.recovery.evidence.starts
        stream = np.searchsorted(starts, known, side="right") - 1
        sizes = np.bincount(stream, minlength=len(starts) - 1).astype(np.float64)

        def score(each: NDArray[Any]) -> Score:
            sums = np.bincount(stream, each.astype(np.float64), minlength=len(sizes))
            met = sizes > 0
            return Score(*mean_and_error(np.asarray(sums[met], dtype=np.float64), sizes[met]))

        likeliest, guess, _ = self.blind
        return TrackScores(
            values=int(known.size),
            first=score(self.ranked[known, 0] == true),
            top=score((self.ranked[known] == true[:, None]).any(axis=1)),
            blind=score(likeliest[when] == true),
            error=score(_losses(self.loss, true, self.guesses[known])),
            blind_error=score(_losses(self.loss, true, guess[when])),
            track=score(self.recovery.likeliest_path()[known] == true),
        )


def attack_tracks(
    released: ReleasedTracks | Mapping[str, Sequence[Event]],
    plan: Plan,
    *,
    lag: int | None = None,
    loss: Loss | None = None,
    top: int = 3,
    progress: Progress | None = None,
) -> TrackAttack:
    """Infer what is behind released streams, as an adversary who knows the model and the plan.

    Args:
        released: What left: from `sf.stream.read_tracks`, or the events of each stream.
        plan: The rule of the release.
        lag: He decides when this many values more have left: 0 is at once; None is at the end.
        loss: What an error costs him; that of the plan, or right or wrong, if not given.
        top: How many of the likeliest symbols are kept.
        progress: Called with the number of values done so far.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.95, 0.05], [0.05, 0.95]])
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(chain.alphabet))
        >>> state, left, coins = plan.begin("ann"), [], sf.secure()
        >>> for _ in range(20):
        ...     events, state = plan.step(state, [1], coins)
        ...     left.extend(events)
        >>> found = attack_tracks({"ann": left}, plan, top=1)
        >>> found.expected_error <= found.expected_blind_error + 1e-9
        True
        >>> found.gains[0].exceeds(state.ledger.spent[0])
        False
        >>> found.scored([1] * 20).values
        20

    References:
        [Shokri2011]
    """
    recovery = recover(released, plan, progress=progress)
    symbols = len(recovery.labels)
    checks.count("top", top)
    asked = plan.value_loss if loss is None else as_loss(loss, symbols)
    priced = hamming(plan.model.alphabet) if asked is None else asked
    found = recovery.values(lag=lag, loss=priced)
    kept = min(top, symbols)
    count = len(recovery.evidence)
    ranked, chances = np.empty((count, kept), dtype=np.int64), np.empty((count, kept))
    for first, stop, rows in recovery.blocks(lag):
        order = np.argsort(-rows, axis=1, kind="stable")[:, :kept]
        ranked[first:stop] = order
        chances[first:stop] = np.take_along_axis(rows, order, axis=1)
    return TrackAttack(
        recovery=recovery,
        loss=priced,
        ranked=ranked,
        chances=chances,
        guesses=found.guesses,
        errors=found.losses,
        blind=_blind(recovery, priced),
        gains=realised_gains(recovery) if plan.memory == 1 else (),
        value_gains=value_gains(recovery),
    )


def _blind(recovery: Recovery, loss: Loss) -> tuple[Ints, Ints, Floats]:
    """What he would say had nothing left, at each moment."""
    rows = prior_marginals(recovery)
    guesses = Guesser(loss).best(rows.T, rows.argmax(axis=1))
    paired = zip(rows, guesses.tolist(), strict=True)
    costs = np.array([row @ loss.columns([guess])[:, 0] for row, guess in paired])
    return rows.argmax(axis=1), guesses, costs


def _losses(loss: Loss, true: Ints, guesses: Ints) -> Floats:
    costs = np.empty(len(true))
    for guess in np.unique(guesses):
        own = guesses == guess
        costs[own] = loss.columns([guess])[true[own], 0]
    return costs
