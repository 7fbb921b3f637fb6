"""People differ: what a mixture of chains predicts and loses beside one chain for everybody.

Models are fitted to one half of the people; what they predict and lose is measured on the other.
Every model has the same budget, certified under itself. The certificate of one chain presumes that
the adversary knows no more than that chain: what such a release leaks to somebody who knows the
mixture is computed, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.belief import Model
from sfumato.core.budgets import Budget, PerStep
from sfumato.core.bursts import Bursts
from sfumato.core.events import Event
from sfumato.core.guarantees import SIP
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import seeded
from sfumato.models.cluster_choice import choose_clusters
from sfumato.models.cluster_fitting import fit_clusters
from sfumato.models.markov import MarkovChain
from sfumato.stream.other_truth import leakage_under
from sfumato.stream.plan import Plan
from sfumato.studies.data import sequence_data as data
from sfumato.studies.data.sequence_data import SequenceSet
from sfumato.studies.held_out import held_out
from sfumato.studies.streams.model_points import CAP, BurstTask, Measured, ModelPoint
from sfumato.studies.study import Setting

STREAMS, FEW = 200, 12
"""Streams that losses are measured on; in a quick look."""
_FOLLOWED = 60
"""Streams whose leakage to somebody who knows the mixture is computed."""
ONE, TWO, MIXTURE = "one chain", "order 2", "clusters"


@dataclass(frozen=True, slots=True)
class PeopleTask(BurstTask):
    """A set in pieces of so many values, and a total for each piece."""

    source: data.Source
    values: int


TASKS = (
    PeopleTask(10.0, 6, data.TOWN, 48),
    PeopleTask(10.0, 10, data.ACTIVITIES, 50),
    PeopleTask(10.0, 1, data.VISITS, 12),
    PeopleTask(10.0, 1, data.CLICKS, 12),
    PeopleTask(6.0, 1, data.BIKES, 4),
)


@dataclass(frozen=True, slots=True)
class PeoplePoint(ModelPoint):
    """What one model is worth on streams that it was not fitted to, per value.

    Attributes:
        clusters: How many chains it has.
        stated: What whole streams under the total were charged, on average.
        leaked: What they leaked to somebody who knows the mixture, on average.
        worst: The most that a stream leaked to him beyond its charge.
    """

    clusters: int
    stated: float
    leaked: float
    worst: float


def models_of(found: SequenceSet) -> dict[str, tuple[Model, int]]:
    """The models that are compared, each with its number of chains."""
    paths = [found.alphabet.indices(path) for path in found.learnt]
    number = choose_clusters(found.alphabet, paths).clusters
    order_two = MarkovChain.fit(found.learnt, alphabet=found.alphabet, order=2)
    one: Model = found.model
    # Where the half that is learnt from speaks for one kind of people, that is the mixture.
    mixture = one if number == 1 else fit_clusters(found.alphabet, paths, number).chain
    return {ONE: (one, 1), TWO: (order_two, 1), MIXTURE: (mixture, number)}


def people_points(
    tasks: tuple[PeopleTask, ...],
    setting: Setting,
    *,
    progress: Callable[[int], None] | None = None,
) -> list[PeoplePoint]:
    """Every set, one point for each model.

    Args:
        tasks: Sets and totals.
        setting: Where the files are; quick: fewer streams.
        progress: Called with the number of points done so far.
    """
    points: list[PeoplePoint] = []
    for task in tasks:
        most = FEW if setting.quick else STREAMS
        found = data.halves(task.source, setting, task.values, most)
        models = models_of(found)
        told = {
            name: _Measured.of(model, models[MIXTURE][0], found, task, setting.seed)
            for name, (model, _) in models.items()
        }
        for name, own in told.items():
            worth = ModelPoint.beside(told[ONE], name, own, found, task)
            points.append(_point(worth, models[name][1], own))
            if progress:
                progress(len(points))
    return points


@dataclass(frozen=True, slots=True, eq=False)
class _Measured(Measured):
    """The same, and leakages of whole streams."""

    stated: Floats
    leaked: Floats

    @classmethod
    def of(
        cls, model: Model, truth: Model, found: SequenceSet, task: PeopleTask, seed: int
    ) -> _Measured:
        """The same streams, and the same coins, for every model."""
        total = Bursts(SIP(task.total), task.values, every=task.every)
        capped = held_out(Plan(model, PerStep(SIP(CAP)), found.loss), found.kept, seed)
        stated, leaked = leakages(model, truth, found, total, seed)
        return cls(
            predicted=scores(model, found.kept) / task.values,
            loss=held_out(Plan(model, total, found.loss), found.kept, seed).received,
            capped=capped.received,
            charged=capped.charged,
            stated=stated,
            leaked=leaked,
            silent=held_out(Plan(model, PerStep(SIP(1e-10)), found.loss), found.kept).received,
        )


def scores(model: Model, streams: Ints) -> Floats:
    """Logarithm of the probability of each stream, from beliefs alone.

    Examples:
        >>> fair = MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]])
        >>> scores(fair, np.array([[0, 1]])).round(3)
        array([-1.386])
    """
    sums, sure = np.zeros(len(streams)), np.eye(len(model.alphabet))
    for row, path in enumerate(streams.tolist()):
        belief = model.first()
        for place in path:
            sums[row] += np.log(belief.marginal[place])
            belief = model.following(belief.update(sure[place]))
    return sums


def leakages(
    model: Model, truth: Model, found: SequenceSet, budget: Budget, seed: int
) -> tuple[Floats, Floats]:
    """What streams were charged under a model, and what they leaked to who knows another one."""
    plan = Plan(model, budget, found.loss, purpose=Purpose.SIMULATION)
    labels, left = found.alphabet.labels, dict[str, list[Event]]()
    for number, path in enumerate(found.kept[:_FOLLOWED].tolist()):
        name = f"stream {number}"
        state, left[name] = plan.begin(name), []
        for place in path:
            (event,), state = plan.step(state, [labels[place]], seeded(seed))
            left[name].append(event)
    told = leakage_under(left, plan, truth).streams.values()
    return np.array([one.sip for one in told]), np.array([one.truth for one in told])


def _point(worth: ModelPoint, clusters: int, own: _Measured) -> PeoplePoint:
    return PeoplePoint(
        **asdict(worth),
        clusters=clusters,
        stated=float(own.stated.mean()),
        leaked=float(own.leaked.mean()),
        worst=float((own.leaked - own.stated).max()),
    )
