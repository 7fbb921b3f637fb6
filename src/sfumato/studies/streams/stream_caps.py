"""A cap per step on real sequences: the step-wise optimum beside the far-sighted one.

Far sight mostly buys accuracy with leakage that the cap allows and a step alone has no use for, so
every loss stands beside the mean charge of a step, and beside the far-sighted release whose charges
are priced so that it leaks about as little as the step-wise one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sfumato.core.arrays import Ints
from sfumato.core.budgets import PerStep
from sfumato.core.guarantees import SIP
from sfumato.core.loss import Loss, hamming
from sfumato.models.markov import MarkovChain
from sfumato.solver.design_methods import Method
from sfumato.stream.look_ahead import look_ahead
from sfumato.stream.loss_floor import has_floor, loss_floor
from sfumato.stream.output_tree import OutputTree
from sfumato.stream.plan import Plan
from sfumato.stream.simulated_stream import as_simulation
from sfumato.studies.data import sequence_data as data
from sfumato.studies.held_out import held_out
from sfumato.studies.study import Setting

VALUES, STREAMS, FEW = 50, 80, 12
STAYS, CAPS = (0.9, 0.95, 0.98), (0.5, 1.0)
SOURCES = (data.ACTIVITIES, data.TOWN, data.GAZE)
_PRICES = (0.8, 0.4, 0.2, 0.1)
"""What a nat costs, in parts of the loss of silence, the dearest first."""
_PATHS = 64
"""Histories of a bit that are followed: its loss is that on the model."""


@dataclass(frozen=True, slots=True)
class CapPoint:
    """What one cap per step is worth.

    Attributes:
        data: Name of the set or chain.
        cap: Nats of a step.
        unit: What losses are in.
        stand_in: Whether the data were made up for want of real ones.
        step_wise: Loss per value of the optimum of each step.
        step_charge: Its mean charge.
        far_sighted: Loss of the optimum of the stream, which spends what helps it.
        far_charge: Its mean charge.
        thrifty: Loss at the least price of a nat that leaks no more than step-wise; None where no
            price was tried.
        thrifty_charge: Its mean charge.
        bound: What nothing within the cap loses less than on streams that move as the model says.
    """

    data: str
    cap: float
    unit: str
    stand_in: bool
    step_wise: float
    step_charge: float
    far_sighted: float
    far_charge: float
    thrifty: float | None
    thrifty_charge: float | None
    bound: float | None


def cap_points(
    setting: Setting, *, progress: Callable[[int], None] | None = None
) -> list[CapPoint]:
    """Binary chains, then every set.

    Args:
        setting: Where the files are; quick: fewer streams, bits and activities alone.
        progress: Called with the number of points done so far.
    """
    points: list[CapPoint] = []
    for one in _sets(setting):
        for cap in CAPS:
            points.append(_point(one, cap))
            if progress:
                progress(len(points))
    return points


@dataclass(frozen=True, slots=True, eq=False)
class _Set:
    """A chain, its loss, and true streams; None where the chain itself is all there is."""

    name: str
    chain: MarkovChain
    loss: Loss
    unit: str
    kept: Ints | None
    seed: int
    stand_in: bool = False

    def measured(self, plan: Plan) -> tuple[float, float]:
        """Loss and charge per value."""
        if self.kept is None:
            tree = OutputTree(as_simulation(plan), self.loss, _PATHS, self.seed)
            loss, _held, charge = tree.moments(VALUES).mean(axis=0).tolist()
            return loss, charge
        found = held_out(plan, self.kept, self.seed)
        return float(found.guessed.mean()), float(found.charged.mean())

    def far_sighted(self, plan: Plan, price: float = 0.0) -> tuple[float, float]:
        """The same for steps that look ahead."""
        sight = look_ahead(self.chain, self.loss, plan.budget.sip.epsilon, price=price)
        return self.measured(replace(plan, method=Method.FAR_SIGHTED, sight=sight))


def _sets(setting: Setting) -> list[_Set]:
    found: list[_Set] = []
    for stay in STAYS:
        chain = MarkovChain.from_matrix([[stay, 1 - stay], [1 - stay, stay]])
        wrong = hamming(chain.alphabet)
        name = f"a bit that stays with {stay:g}"
        found.append(_Set(name, chain, wrong, "wrong", None, setting.seed))
    streams = FEW if setting.quick else STREAMS
    for source in SOURCES[:1] if setting.quick else SOURCES:
        real = data.halves(source, setting, VALUES, streams)
        name, model, wrong = real.name, real.model, real.loss
        found.append(_Set(name, model, wrong, real.unit, real.kept, setting.seed, real.stand_in))
    return found


def _point(one: _Set, cap: float) -> CapPoint:
    plan = Plan(one.chain, PerStep(SIP(cap)), one.loss)
    near, far = one.measured(plan), one.far_sighted(plan)
    thrifty = _thrifty(one, plan, near[1]) if one.kept is None else (None, None)
    known = has_floor(one.chain)
    return CapPoint(
        data=one.name,
        cap=cap,
        unit=one.unit,
        stand_in=one.stand_in,
        step_wise=near[0],
        step_charge=near[1],
        far_sighted=far[0],
        far_charge=far[1],
        thrifty=thrifty[0],
        thrifty_charge=thrifty[1],
        bound=loss_floor(one.chain, one.loss, plan.budget, VALUES) if known else None,
    )


def _thrifty(one: _Set, plan: Plan, most: float) -> tuple[float | None, float | None]:
    """Far-sighted at the least price tried at which it leaks no more than step-wise."""
    silence = one.loss.best_constant(one.chain.first().marginal)[1]
    best: tuple[float | None, float | None] = (None, None)
    for price in _PRICES:
        loss, charge = one.far_sighted(plan, price * silence)
        if charge > most:
            break
        best = loss, charge
    return best
