r"""Versions of a model that is learnt from what left: the chain, the set around it, its worth.

Bounds come from context-free outputs alone, by bets on one channel. Until streams move, those are
all outputs; after that, those of scouts, which never move. Bets on all streams end with the first
move, and a supermartingale that is stopped is one; so are bets on scouts. Both are paid for
(`LearningRules.lasting_failure`), and each holds for all versions at once (`models/block_bets.py`).
In edition 2 each version had bets of its own, and a part of the failure (`LearningRules.failure`).

Sets are nested: each version keeps what earlier ones ruled out. So whatever was charged under an
earlier set holds for every chain of the last one.

Streams may change. Where outputs prove that they have left the set of the version in use
(`models/set_bets.py`), or that no chain explains them, a version without a model says so: values
leave context-free again, and learning starts anew from what leaves after it. Nothing that left
before goes into a bound stated after: not even what raised the alarm, which was chosen by it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.core.printed import shown_up
from sfumato.core.randomness import seeded
from sfumato.models.block_bets import BlockSums, block_sums, bounds_left
from sfumato.models.chain_bets import FixedOutputs, plausible_chains
from sfumato.models.drift_capital import DriftCapital
from sfumato.models.emissions import Emissions
from sfumato.models.learning import FLOOR, learn_chain
from sfumato.models.markov import MarkovChain
from sfumato.models.plausible import PlausibleChains, tightened
from sfumato.stream.history_paths import draw_paths
from sfumato.stream.learning_rules import LearningRules
from sfumato.stream.plan import Plan
from sfumato.stream.silence import Silence
from sfumato.stream.simulated_stream import as_simulation, simulated

_GUIDING = 4
"""Every so many streams guide the bets on the others."""
_WALKS, _LENGTH, _SEED = 6, 20, 1
"""Streams of the public forecast, and their values."""
_NARROW = 0.5
"""Intervals must be narrower than this before a forecast under the estimate is believed."""
_PASSES = 200
_HALVINGS = 60
_ANEW = "values are context-free from now on, and learning starts anew"


@dataclass(frozen=True, slots=True)
class VersionLosses:
    """What a value is expected to cost under the estimate, by a public forecast.

    Attributes:
        context_free: Randomised response, as in version 0.
        robust: The plan that keeps the budget for the whole set.
        known: The plan that keeps it for the estimate alone, as if that were the truth.
        silent: The best constant.
    """

    context_free: float
    robust: float
    known: float
    silent: float


@dataclass(frozen=True, slots=True, eq=False)
class ModelVersion:
    """One version: what was learnt, from how much, and whether streams use it.

    Attributes:
        number: From 1 on; version 0 has no model.
        values: How many values had left.
        streams: How many context-free streams it was learnt from.
        telling: How many of their values.
        chains: The chains that are left, around the estimate; None where none is left.
        losses: What the forecast says; None where no chain is left.
        moves: Whether streams that are no scouts use it.
        remark: Why not, in words; "" where they do.
        since: How many values had left when learning started: it was learnt from later ones.
        restarts: Whether learning starts anew after it.

    Examples:
        >>> first = ModelVersion(1, 1000, 20, 1000, None, None, False, "too few values")
        >>> first.moves, first.fingerprint == first.fingerprint
        (False, True)
    """

    number: int
    values: int
    streams: int
    telling: int
    chains: PlausibleChains | None
    losses: VersionLosses | None
    moves: bool
    remark: str
    since: int = 0
    restarts: bool = False

    def __str__(self) -> str:
        began = f"version {self.number}, after {self.values:,} values: "
        if self.chains is None or self.losses is None:
            return began + self.remark
        found = (
            f"probabilities lie in intervals of at most {shown_up(self.chains.widest, 3)}; a value "
            f"would lose {self.losses.robust:.4g} where the budget is kept for all chains that are "
            f"left, {self.losses.context_free:.4g} by randomised response, "
            f"{self.losses.silent:.4g} in silence"
        )
        used = (
            f"not used yet: {self.remark}" if self.remark else "streams that are no scouts use it"
        )
        return f"{began}{found}; {used}"

    @property
    def fingerprint(self) -> str:
        """Identifies the version; words are not part of it, and may be put better some day."""
        chains = None if self.chains is None else self.chains.fingerprint
        told = (self.number, self.values, self.streams, self.telling)
        did = (int(self.moves), self.since, int(self.restarts))
        return digest("model version", *told, chains, *did)


@dataclass(frozen=True, slots=True)
class ContextFree:
    """Context-free outputs that follow each other, of some streams.

    Attributes:
        outputs: Places of the symbols that left, by the name of the stream.
        going_on: Streams of which others left before these: they tell nothing of beginnings.
    """

    outputs: Mapping[str, bytes]
    going_on: Collection[str] = ()

    def fixed(self, channel: Floats) -> FixedOutputs:
        """The same as columns of the one channel, in the order of the names."""
        names = sorted(self.outputs)
        parts = [np.frombuffer(self.outputs[name], dtype=np.uint8) for name in names]
        starts = np.append(0, np.cumsum([part.size for part in parts], dtype=np.int64))
        columns = np.concatenate([np.empty(0, np.uint8), *parts]).astype(np.int64)
        begun = np.array([name not in self.going_on for name in names], dtype=np.bool_)
        return FixedOutputs(channel, starts, columns, begun)


def since_restart(versions: Sequence[ModelVersion]) -> tuple[Sequence[ModelVersion], int, int]:
    """Versions since learning started last, how many values had left then, and how often it has."""
    ends = [place for place, version in enumerate(versions) if version.restarts]
    if not ends:
        return versions, 0, 0
    return versions[ends[-1] + 1 :], versions[ends[-1]].values, len(ends)


def next_version(
    rules: LearningRules,
    earlier: Sequence[ModelVersion],
    left: ContextFree,
    blocks: BlockSums | None = None,
) -> ModelVersion:
    """The version that is due after some others: a function of outputs.

    Args:
        rules: The rules of the release.
        earlier: The versions so far.
        left: What left context-free since learning started: of all streams if none has moved since
            then, else of scouts.
        blocks: What the blocks of these outputs showed, bet on version by version; as one block of
            time, without a guide, if not given. Not asked for in edition 2.
    """
    number, (own, since, restarts) = len(earlier) + 1, since_restart(earlier)
    values, fixed = since + rules.cut(len(own) + 1, restarts), left.fixed(rules.channel)
    told = (number, values, len(fixed.starts) - 1, len(fixed.columns))
    before = own[-1].chains if own else None
    if own and not left.outputs:
        # There are no scouts: nothing can be learnt any more.
        return replace(own[-1], number=number, values=values)
    try:
        if rules.edition == 2:
            chains = _narrowed(rules, number, fixed, before)
        else:
            shown = block_sums(fixed, None) if blocks is None else blocks
            chains = _within_bounds(rules, restarts, fixed, shown, before)
    except InvalidParameter as problem:
        # Outputs that no chain explains: what holds whatever is true goes on, and nothing else.
        remark = f"outputs must {problem.rule}; {_ANEW}"
        return ModelVersion(
            *told, None, None, moves=False, remark=remark, since=since, restarts=True
        )
    losses = _forecast(rules, chains)
    moved = any(version.moves for version in own)
    remark = "" if moved else _waiting(rules, chains, losses)
    return ModelVersion(*told, chains, losses, moves=not remark, remark=remark, since=since)


def changed_version(
    earlier: Sequence[ModelVersion], values: int, found: DriftCapital, block: ContextFree
) -> ModelVersion:
    """The version that says that streams have left the set of the one in use.

    Args:
        earlier: The versions so far.
        values: How many values had left when it was noticed.
        found: What bets against the set made.
        block: What was looked at last.
    """
    assert found.alarm is not None  # or nothing would be noticed
    last, (_, since, _) = earlier[-1], since_restart(earlier)
    used = (
        f"; what left under version {last.number} after the change may have told more than its "
        "sip, never more than its ldp"
    )
    remark = (
        f"streams no longer move as any chain of version {last.number} does ({found.best.name})"
        f"{used if last.moves else ''}; {_ANEW}"
    )
    seen = sum(map(len, block.outputs.values()))
    return ModelVersion(
        *(last.number + 1, values, len(block.outputs), seen, None, None),
        moves=False,
        remark=remark,
        since=since,
        restarts=True,
    )


def _emissions(fixed: FixedOutputs) -> Emissions:
    size, ones = len(fixed.channel), np.ones_like(fixed.columns)
    told = np.ascontiguousarray(fixed.channel.T).ravel()
    return Emissions(size, fixed.starts, fixed.columns * size, ones, told)


def _narrowed(
    rules: LearningRules, number: int, fixed: FixedOutputs, before: PlausibleChains | None
) -> PlausibleChains:
    """The chains that outputs leave of those that were left before."""
    places, alphabet = np.arange(len(fixed.starts) - 1), rules.alphabet
    learnt = learn_chain(_emissions(fixed), alphabet, most=_PASSES).chain
    guide, betting = None, fixed
    if places.size >= _GUIDING:
        guiding = places % _GUIDING == 0
        seen = _emissions(fixed.of_streams(places[guiding]))
        guide = learn_chain(seen, alphabet, most=60).chain
        betting = fixed.of_streams(places[~guiding])
    sure = 1 - rules.failure(number)
    found = plausible_chains(betting, learnt, guide=guide, confidence=sure)
    bounds = (found.low, found.high, found.first_low, found.first_high)
    return _left_of(rules, learnt, bounds, before)


def _within_bounds(
    rules: LearningRules,
    restarts: int,
    fixed: FixedOutputs,
    blocks: BlockSums,
    before: PlausibleChains | None,
) -> PlausibleChains:
    """The same by bets on blocks, whose bounds hold for all versions at once."""
    learnt = learn_chain(_emissions(fixed), rules.alphabet, most=_PASSES).chain
    failure = rules.lasting_failure(restarts)
    bounds = bounds_left(blocks, rules.channel, fixed.beginnings, failure, fixed.alike)
    return _left_of(rules, learnt, bounds, before)


def _left_of(
    rules: LearningRules,
    learnt: MarkovChain,
    bounds: tuple[Floats, Floats, Floats, Floats],
    before: PlausibleChains | None,
) -> PlausibleChains:
    """The chains within bounds that were left before, around the one of them that was learnt."""
    low, high, first_low, first_high = bounds
    if before is not None:
        low, high = _common(before.low, before.high, low, high)
        first = (before.first_low, before.first_high)
        first_low, first_high = _common(*first, first_low, first_high)
    moves = np.array([_inside(*row) for row in zip(learnt.transition(), low, high, strict=True)])
    begins = _inside(learnt.initial.ravel(), first_low, first_high)
    estimate = MarkovChain.from_matrix(moves, begins, rules.alphabet, FLOOR)
    return PlausibleChains(estimate, low, high, first_low, first_high, rules.confidence)


def _common(low: Floats, high: Floats, other: Floats, top: Floats) -> tuple[Floats, Floats]:
    """What two sets have in common."""
    lower, upper = np.maximum(low, other), np.minimum(high, top)
    if np.any(lower > upper):
        rule = "come from streams that follow one chain of order 1: no such chain is left"
        raise InvalidParameter("released", "others", rule)
    return tightened(lower, upper)


def _inside(row: Floats, low: Floats, high: Floats) -> Floats:
    """The nearest distribution between bounds: moved by one amount, and cut."""
    below, above = -1.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (below + above)
        below, above = (middle, above) if _cut(row, middle, low, high) < 1 else (below, middle)
    found = np.clip(row + above, low, high)
    return np.asarray(found / found.sum())


def _cut(row: Floats, off: float, low: Floats, high: Floats) -> float:
    return float(np.clip(row + off, low, high).sum())


def _forecast(rules: LearningRules, chains: PlausibleChains) -> VersionLosses:
    """Expected losses under the estimate, on the same streams for all."""
    chain = chains.estimate
    walks = draw_paths(chain, _LENGTH, _WALKS, _SEED)
    robust = rules.plan(chains)
    known = Plan(chain, rules.budget, rules.loss, method=robust.method, sight=robust.sight)
    costs = (rules.channel * rules.loss.matrix).sum(axis=1)
    silence, belief = Silence(chain, rules.loss), chain.first()
    free, silent = 0.0, 0.0
    for moment in range(_LENGTH):
        free += float(portable.dot(belief.marginal, costs)) / _LENGTH
        silent += silence.at(moment)[1] / _LENGTH
        belief = chain.following(belief)
    return VersionLosses(free, _lost(robust, walks), _lost(known, walks), silent)


def _lost(plan: Plan, walks: Sequence[Sequence[int]]) -> float:
    """What a plan loses per value in a simulation."""
    rule, coins, total = as_simulation(plan), seeded(_SEED), 0.0
    for place, walk in enumerate(walks):
        for step in simulated(rule, f"stream {place}", walk, coins):
            assert step.found is not None  # every value of the walk is a symbol
            total += step.found.design.cost
    return total / sum(map(len, walks))


def _waiting(rules: LearningRules, chains: PlausibleChains, losses: VersionLosses) -> str:
    """Why streams do not move yet; "" if they do."""
    if chains.widest > _NARROW:
        # A forecast under an estimate of next to nothing would often advise silence.
        return f"streams move once every probability is known to {_NARROW:g}"
    most = losses.context_free - losses.known
    if most <= 0:
        return "a model would save nothing of what context-free values lose"
    share = (losses.context_free - losses.robust) / most
    if share >= rules.ready:
        return ""
    return (
        f"kept for all chains that are left, the budget would save {max(share, 0.0):.0%} of what "
        f"knowing the chain would; streams move at {rules.ready:.0%}"
    )
