"""The outputs that would tell the most: a search over what a plan can release.

A certificate that no output sequence comes near would be safe but wasteful. Here the adversary's
best case is looked for: outputs, and a track behind them, whose posterior is as far from its prior
as can be found. What is found is a lower bound; beside the certificate of the same outputs it says
how tight that is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks.information_gain import rounded_down
from sfumato.attacks.lower_bound import LowerBound, Notion
from sfumato.core import checks
from sfumato.core.alphabet import Label
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Outcome
from sfumato.core.guarantees import SIP
from sfumato.core.state import StreamState
from sfumato.stream.plan import Plan

_NOTHING = 1e-9
"""Leakage up to which a step tells nothing."""


@dataclass(frozen=True, slots=True)
class WorstOutputs:
    """Outputs that tell much, and what is certified for them.

    Attributes:
        outputs: What leaves; None where the budget was gone.
        bound: How far they move the belief about some track.
        certified: What the ledger says that they leaked, at most.
        least_step: Of each step that tells anything, some output alone moves the belief of that
            moment by a part of what is certified for the step: the least such part.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(chain.alphabet))
        >>> found = sf.attacks.worst_outputs(plan, 3)
        >>> len(found.outputs), 0.9 < found.tightness <= 1
        (3, True)
    """

    outputs: tuple[Label | None, ...]
    bound: LowerBound
    certified: SIP
    least_step: float

    @property
    def tightness(self) -> float:
        """Which part of the certificate was reached."""
        return self.bound.epsilon / self.certified.epsilon if self.certified.epsilon else 1.0


@dataclass(frozen=True, slots=True, eq=False)
class _Path:
    """Some outputs: how much likelier, and how much less likely, some track is after them."""

    state: StreamState
    outputs: tuple[Label | None, ...] = ()
    up: float = 0.0
    down: float = 0.0
    least_step: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class _Move:
    """One more output of a path."""

    path: _Path
    labels: tuple[Label | None, ...]
    outcome: Outcome
    signal: int | None
    up: float
    down: float
    least_step: float


def worst_outputs(plan: Plan, length: int, *, beam: int = 8) -> WorstOutputs:
    """Search for the outputs of a stream that move the adversary's belief the most.

    Args:
        plan: The rule of the release.
        length: Values of the stream.
        beam: Paths that are followed at a time: half of them for a track that becomes likelier,
            half for one that becomes less likely.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(chain.alphabet))
        >>> found = worst_outputs(plan, 4)
        >>> found.tightness > 0.95, found.bound.exceeds(found.certified)
        (True, False)
        >>> found.least_step > 0.999
        True
    """
    checks.count("length", length)
    checks.count("beam", beam, at_least=2)
    if plan.memory > 1:
        rule = "be 1: outputs that look at the same value are not at their worst together"
        raise InvalidParameter("memory", plan.memory, rule)
    paths = [_Path(plan.begin("attacked"))]
    while (done := paths[0].state.sequence) < length:
        values = min(plan.width, length - done)
        moves = [move for path in paths for move in _moves(plan, path, values)]
        paths = [_followed(plan, move) for move in _best(moves, beam)]
    best = max(paths, key=lambda path: max(path.up, path.down))
    gain = rounded_down(max(best.up, best.down))
    tried = f"a search over outputs of {length} values, {beam} at a time"
    certified, _ = best.state.ledger.spent
    bound = LowerBound(gain, Notion.SIP, tried=tried)
    return WorstOutputs(best.outputs, bound, certified, best.least_step)


def _moves(plan: Plan, path: _Path, values: int) -> list[_Move]:
    """All that can leave next."""
    design = plan.prepare(path.state, values)
    if design is None:
        events, _ = plan.skip(path.state, values)
        labels = tuple(event.released for event in events)
        before = (path.up, path.down, path.least_step)
        return [_Move(path, labels, Outcome.SKIPPED, None, *before)]
    channel, masses = design.design.channel, design.partition.masses
    symbols, told = plan.model.alphabet.labels, dict[int, tuple[float, float]]()
    for output in channel.outputs.tolist():
        likelihood = channel.likelihood(output)
        chance = float(masses @ likelihood / masses.sum())
        with np.errstate(divide="ignore"):
            up = float(np.log(likelihood.max() / chance))
            told[output] = up, float(np.log(chance) - np.log(likelihood.min()))
    least = path.least_step
    if design.charge.sip > _NOTHING:
        least = min(least, max(max(gains) for gains in told.values()) / design.charge.sip)
    found = []
    for output, (up, down) in told.items():
        labels = tuple(symbols[place] for place in design.patterns[output].tolist())
        signal = None if plan.sight is None else output
        after = (path.up + up, path.down + down, least)
        found.append(_Move(path, labels, Outcome.RELEASED, signal, *after))
    return found


def _best(moves: list[_Move], beam: int) -> list[_Move]:
    ups = sorted(moves, key=lambda move: -move.up)[: beam - beam // 2]
    downs = [move for move in sorted(moves, key=lambda move: -move.down) if move not in ups]
    return [*ups, *downs[: beam // 2]]


def _followed(plan: Plan, move: _Move) -> _Path:
    _, state = plan.observe(move.path.state, move.labels, move.outcome, move.signal)
    return _Path(state, (*move.path.outputs, *move.labels), move.up, move.down, move.least_step)
