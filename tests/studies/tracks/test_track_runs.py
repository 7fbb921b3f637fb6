"""Runs of public rivals and plans: what is charged is what leaves."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats
from sfumato.core.budgets import PerStep
from sfumato.core.guarantees import SIP
from sfumato.core.loss import euclidean
from sfumato.models.markov import MarkovChain
from sfumato.stream.plan import Plan
from sfumato.studies.tracks.public_rivals import (
    Adaptive,
    PlanarLaplace,
    Predictive,
    PublicRival,
    Scales,
    loudest,
)
from sfumato.studies.tracks.track_runs import (
    PlanWalker,
    PublicWalker,
    Step,
    TrackWorld,
    Walker,
    followed,
    posteriors,
)

PLACES = np.array([[0.0, 0.0], [1.0, 0.0], [0.2, 1.1]])
MOVES = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.1, 0.6]])
NOISE = Scales(PLACES, count=40)
RIVALS: dict[str, PublicRival] = {
    "planar": PlanarLaplace(NOISE),
    "predictive": Predictive(NOISE, 0.5, 1.0, parrot=True),
    "predictive, guess": Predictive(NOISE, 1.0, 0.5, parrot=False),
    "adaptive": Adaptive(NOISE, 0.5, 1.05, 1.25, parrot=True),
}


def world(tracks: list[list[int]]) -> TrackWorld:
    places = Alphabet(["a", "b", "c"], [tuple(place) for place in PLACES.tolist()])
    chain = MarkovChain.from_matrix(MOVES, alphabet=places)
    return TrackWorld(chain, euclidean(places), PLACES, np.array(tracks))


def every_history(begin: Callable[[Floats], Walker], steps: int) -> float:
    """Largest leakage of whole releases over all outputs and truths, by brute force."""
    here = world([[0]])
    first, losses = here.chain.first().marginal, here.losses
    worst = 0.0

    def follow(outputs: tuple[int, ...]) -> list[Step | None]:
        walker, belief = begin(losses), first
        found: list[Step | None] = []
        for output in (*outputs, None):
            step = walker.step(belief)
            found.append(step)
            if output is None:
                break
            if step is None:
                walker.left(None)
                belief = belief @ MOVES
            else:
                walker.left(output)
                belief = belief * step.rows[:, output]
                belief = belief / belief.sum() @ MOVES
        return found

    def grow(outputs: tuple[int, ...], columns: list[Floats]) -> None:
        nonlocal worst
        if len(columns) == steps:
            paths = list(itertools.product(range(3), repeat=steps))
            chances = [
                math.prod(column[x] for column, x in zip(columns, p, strict=True)) for p in paths
            ]
            prior = [
                first[p[0]] * math.prod(MOVES[a, b] for a, b in itertools.pairwise(p))
                for p in paths
            ]
            whole = sum(c * q for c, q in zip(chances, prior, strict=True))
            worst = max(worst, *(abs(math.log(c / whole)) for c in chances))
            return
        step = follow(outputs)[-1]
        if step is None:
            grow((*outputs, 0), [*columns, np.ones(3)])
            return
        for output in range(step.rows.shape[1]):
            grow((*outputs, output), [*columns, step.rows[:, output]])

    grow((), [])
    return worst


@pytest.mark.parametrize("name", RIVALS)
def test_a_release_leaks_no_more_than_its_steps_may(name: str) -> None:
    cap = 0.4
    worst = every_history(lambda losses: PublicWalker(RIVALS[name], cap, losses), 3)
    assert 0.2 < worst <= 3 * cap + 1e-9


def test_one_step_reaches_what_is_charged() -> None:
    charged = every_history(lambda losses: PublicWalker(RIVALS["planar"], 0.4, losses), 1)
    here = world([[0], [1], [2]])
    told = followed(here, lambda: PublicWalker(RIVALS["planar"], 0.4, here.losses), seed=1)
    assert told.sip.tolist() == pytest.approx([charged] * 3, abs=1e-12)


def test_a_plan_walks_as_it_is_charged() -> None:
    here = world([[0, 1, 1, 2, 0], [2, 2, 2, 1, 1]])
    plan = Plan(here.chain, PerStep(SIP(0.6)), here.loss)
    told = followed(here, lambda: PlanWalker(plan), seed=3)
    assert (told.sip <= 0.6 + 1e-12).all()
    assert (told.ldp >= told.sip - 1e-12).all()


def test_the_loudest_channel_leaks_within_the_cap_and_the_next_does_not() -> None:
    family, belief = RIVALS["planar"].family(None, 0), np.array([0.2, 0.5, 0.3])
    found = loudest(family, belief, 0.3)
    assert found is not None
    place, leak = found
    following = family.rows[place + 1]
    assert leak <= 0.3 < np.abs(np.log(following / (belief @ following))).max()


def test_nothing_is_released_where_every_channel_leaks_more() -> None:
    louder = Adaptive(NOISE, 0.5, 1.05, 8.0, parrot=True)
    here = world([[0, 1], [1, 2]])
    told = followed(here, lambda: PublicWalker(louder, 1e-4, here.losses), seed=1)
    assert told.sip.tolist() == [0.0, 0.0]


def test_what_is_believed_of_the_past_is_the_sum_over_all_paths() -> None:
    rng = np.random.default_rng(5)
    likelihoods, first = rng.random((4, 3)), np.array([0.5, 0.3, 0.2])
    weights = np.zeros((4, 3))
    for path in itertools.product(range(3), repeat=4):
        chance = first[path[0]] * math.prod(MOVES[a, b] for a, b in itertools.pairwise(path))
        chance *= math.prod(likelihoods[moment, place] for moment, place in enumerate(path))
        for moment, place in enumerate(path):
            weights[moment, place] += chance
    expected = weights / weights.sum(axis=1, keepdims=True)
    assert np.abs(posteriors(first, MOVES, likelihoods) - expected).max() < 1e-12
