"""Statistical audit of a release that cannot be looked into: at least how much does it leak?

Half of the outputs are spent on finding two inputs that are told apart best, and by what; the other
half, drawn from these two alone, tests that. What was found on one half is fixed before the other
is drawn, so the bound is as sure as a count is, however much was tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import special

from sfumato.attacks.black_box import BlackBox, black_box
from sfumato.attacks.guessing_rule import GuessingRule, Stakes, best_rule
from sfumato.attacks.lower_bound import LowerBound, Notion
from sfumato.attacks.output_codes import OutputCodes
from sfumato.attacks.proportions import largest_proportion, least_proportion
from sfumato.core import checks
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter

Pair = tuple[int, int]
_DOMAIN = 0x41554449
"""Sets the coins of an audit apart from those of a mechanism that was given the same seed."""
_KEPT = 4
"""One pair in so many stays in the next round of the search."""


@dataclass(frozen=True, slots=True)
class MechanismAudit:
    """What an audit of a black box found.

    Attributes:
        bound: What leaks at least.
        inputs: The two inputs that were told apart best; None stands for a draw from the prior.
        right: Guesses that were right, of which of the two an output came from.
        guesses: All guesses.
        tested: Outputs that were tested, guessed at or not.
        explored: Outputs that were spent on finding inputs and events.

    Examples:
        >>> import sfumato as sf
        >>> noisy = sf.Channel.from_probabilities([[0.75, 0.25], [0.25, 0.75]])
        >>> found = sf.attacks.audit_mechanism(noisy, [0, 1], seed=1)
        >>> sorted(found.inputs), found.guesses <= found.tested
        ([0, 1], True)
    """

    bound: LowerBound
    inputs: tuple[Any, Any]
    right: int
    guesses: int
    tested: int
    explored: int


def audit_mechanism(
    mechanism: Callable[[Any], Any] | BlackBox | Channel,
    inputs: Sequence[Any],
    *,
    prior: Sequence[float] | None = None,
    neighbours: Sequence[Pair] | None = None,
    delta: float = 0.0,
    samples: int = 40_000,
    failure: float = 0.05,
    seed: int | None = None,
) -> MechanismAudit:
    r"""A lower confidence bound on what a mechanism leaks, from samples of it alone.

    Without more it is a bound on LDP, over all pairs of inputs. With a `prior` it is one on LIP:
    each input is told apart from a draw of the prior. With `neighbours` it is one on DP, over these
    pairs of inputs (databases, say). Inputs may be whole sequences.

    Args:
        mechanism: Called with an input, gives a new output each time; or a `BlackBox`, or a
            `Channel`, whose sampler is asked.
        inputs: What it may be asked, at least two.
        prior: Probability of each input.
        neighbours: Places of the inputs that a promise of DP is about.
        delta: Of the promise.
        samples: How often the mechanism is asked, half of it in the test.
        failure: Probability that the bound is above the truth, at most.
        seed: For a repeatable audit; the mechanism's own coins are its own.

    Examples:
        >>> import sfumato as sf
        >>> noisy = sf.Channel.from_probabilities([[0.75, 0.25], [0.25, 0.75]])
        >>> found = audit_mechanism(noisy, [0, 1], seed=1)
        >>> found.bound.exceeds(sf.LDP(1.0)), found.bound.exceeds(sf.LDP(1.099))
        (True, False)
        >>> audit_mechanism(noisy, [0, 1], prior=[0.9, 0.1], seed=1).bound.exceeds(sf.LIP(1.0))
        False

    References:
        [Kairouz2017, Sec. II], [Clopper1934]
    """
    checks.proper_fraction("failure", failure)
    checks.fraction("delta", delta)
    checks.count("samples", samples, at_least=100)
    sources = _Sources(black_box(mechanism), inputs, prior, own_coins(seed))
    stakes = Stakes(delta, failure)
    found, explored = _explore(
        sources, _pairs(len(inputs), prior, neighbours), samples // 2, stakes
    )
    first = sources.coins.integers(0, 2, size=samples - samples // 2) == 1
    outputs = sources.draw(np.where(first, found.pair[0], found.pair[1]))
    guesses = found.rule(found.codes.coded(outputs))
    epsilon = _tested(first, guesses, found.rule, stakes)
    named = sources.name(found.pair[0]), sources.name(found.pair[1])
    seen = np.count_nonzero(found.rule.guesses)
    tried = (
        f"{_called(named[0])} against {_called(named[1])}, told apart by {seen} kinds of outputs"
    )
    notion = Notion.LIP if prior is not None else Notion.LDP if neighbours is None else Notion.DP
    return MechanismAudit(
        bound=LowerBound(epsilon, notion, delta, failure, tried),
        inputs=named,
        right=_right(first, guesses),
        guesses=int(np.count_nonzero(guesses)),
        tested=len(first),
        explored=explored,
    )


def own_coins(seed: int | None) -> np.random.Generator:
    """Coins of the audit: never those that a mechanism makes from the same seed."""
    if seed is None:
        return np.random.default_rng()
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_DOMAIN,)))


def _called(value: Any) -> str:
    return "a draw of the prior" if value is None else f"input {value!r}"


def _pairs(
    inputs: int, prior: Sequence[float] | None, neighbours: Sequence[Pair] | None
) -> list[Pair]:
    checks.count("inputs", inputs, at_least=2)
    if prior is not None:
        if neighbours is not None:
            raise InvalidParameter("neighbours", "some", "not come with a prior: one notion a time")
        return [(value, inputs) for value in range(inputs)]
    if neighbours is None:
        return list(combinations(range(inputs), 2))
    pairs = [(int(a), int(b)) for a, b in neighbours]
    if not pairs or any(a == b or not (0 <= a < inputs and 0 <= b < inputs) for a, b in pairs):
        raise InvalidParameter("neighbours", pairs, f"be pairs of places of {inputs} inputs")
    return pairs


class _Sources:
    """The inputs, and after them a draw of the prior, as places that give outputs."""

    def __init__(
        self,
        box: BlackBox,
        inputs: Sequence[Any],
        prior: Sequence[float] | None,
        coins: np.random.Generator,
    ) -> None:
        self._box, self._inputs, self.coins = box, list(inputs), coins
        self._prior: Floats | None = None
        if prior is not None:
            self._prior = checks.probabilities("prior", prior, len(self._inputs))
            self._prior = self._prior / self._prior.sum()

    def draw(self, places: Ints) -> Sequence[Any]:
        """One output for each place, in order."""
        taken = np.array(places)
        drawn = taken == len(self._inputs)
        if drawn.any():
            taken[drawn] = self.coins.choice(len(self._inputs), size=drawn.sum(), p=self._prior)
        outputs = self._box.draw([self._inputs[place] for place in taken.tolist()])
        if len(outputs) != len(taken):
            raise InvalidParameter("mechanism", len(outputs), f"give {len(taken)} outputs")
        return outputs

    def name(self, place: int) -> Any:
        """The input, or None for a draw of the prior."""
        return None if place == len(self._inputs) else self._inputs[place]


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Two sources, how their outputs are coded, and what is guessed."""

    pair: Pair
    codes: OutputCodes
    rule: GuessingRule


def _explore(
    sources: _Sources, pairs: list[Pair], samples: int, stakes: Stakes
) -> tuple[_Found, int]:
    """Find the pair and the rule that promise the most: round by round, of fewer pairs each."""
    rounds = 1
    while _KEPT**rounds < len(pairs):
        rounds += 1
    outputs: dict[int, list[Any]] = {}
    spent, left = 0, pairs
    for turn in range(rounds + 1):
        active = sorted({place for pair in left for place in pair})
        places = np.repeat(active, max((samples - spent) // (rounds + 1 - turn) // len(active), 2))
        sources.coins.shuffle(places)
        for place, output in zip(places.tolist(), sources.draw(places), strict=True):
            outputs.setdefault(place, []).append(output)
        spent += len(places)
        codes = OutputCodes.fitted([output for place in active for output in outputs[place]])
        coded = {place: codes.coded(outputs[place]) for place in active}
        sizes = tuple(column.size for column in codes.columns)
        rules = [(best_rule(coded[a], coded[b], sizes, stakes), (a, b)) for a, b in left]
        # The sort is stable: where nothing promises anything, the first pair is tested.
        rules.sort(key=lambda found: -found[0].promise)
        left = [pair for _, pair in rules[: -(-len(rules) // _KEPT)]]
    rule, pair = rules[0]
    return _Found(pair, codes, rule), spent


def _tested(first: Bools, guesses: Ints, rule: GuessingRule, stakes: Stakes) -> float:
    """The bound, from guesses on outputs that the rule has not seen."""
    if stakes.delta == 0:
        right = _right(first, guesses)
        sure = least_proportion(right, int(np.count_nonzero(guesses)), stakes.failure)
        return max(float(special.logit(sure)), 0.0)
    # A rule for a delta guesses at one source alone.
    own, half = first if (rule.guesses == 1).any() else ~first, stakes.failure / 2
    inside = guesses != 0
    least = least_proportion(int((inside & own).sum()), int(own.sum()), half)
    most = largest_proportion(int((inside & ~own).sum()), int((~own).sum()), half)
    return math.log((least - stakes.delta) / most) if least - stakes.delta > most else 0.0


def _right(first: Bools, guesses: Ints) -> int:
    return int((first & (guesses == 1)).sum() + (~first & (guesses == -1)).sum())
