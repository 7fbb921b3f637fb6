"""Sec. V-A of LIP on a simulated school: for one budget, who knows more beforehand loses less."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato import Alphabet, loss
from sfumato.column.feature_prior import FeaturePrior
from sfumato.solver import Design, optimal, randomized_response
from tests.grids import covered

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

TOP = 20  # the best grade
KNOWN, RELEASING = 400, 60
BUDGETS = (0.5, 1.0, 2.0)
SIZES = (2, 5, 10)
ROUNDING = 1e-9


@dataclass(frozen=True)
class Losses:
    """Mean absolute error of the released grade, by what the release knew."""

    local: float
    overall: float
    nothing: float


def school(people: int, seed: int) -> tuple[dict[str, NDArray[np.generic]], Places]:
    """Two earlier grades, columns that say nothing, and the final grade."""
    rng = np.random.default_rng(seed)
    able = rng.normal(11.0, 3.5, size=people)
    first, second, final = (
        np.clip(np.round(able + rng.normal(0.0, noise, size=people)), 0, TOP).astype(np.int64)
        for noise in (1.6, 1.1, 1.1)
    )
    features = {
        "first": first,
        "second": second,
        "age": rng.integers(15, 20, size=people),
        "travel": rng.normal(size=people),
        "guardian": np.array(["mother", "father", "other"])[rng.integers(0, 3, size=people)],
    }
    return features, final


@cache
def priors(size: int) -> tuple[Floats, Floats, Places]:
    """Local priors and the global one, learnt from other people, and the true classes."""
    features, final = school(KNOWN, seed=1)
    others, truth = school(RELEASING, seed=2)
    classes, alphabet = final * size // (TOP + 1), Alphabet.of_size(size)
    local = FeaturePrior.fit(features, classes, alphabet=alphabet).priors(others)
    counts = np.bincount(classes, minlength=size) + 1.0
    return local, counts / counts.sum(), truth * size // (TOP + 1)


def row_losses(design: Design, size: int) -> Floats:
    """Expected absolute error for each true class, from the channel that is sampled."""
    table = loss.absolute(Alphabet.of_size(size)).matrix
    return np.asarray((design.channel.probabilities * table[:, design.channel.outputs]).sum(axis=1))


def mean_losses(size: int, epsilon: float) -> tuple[Losses, Losses]:
    """Expected under each person's local prior; and for the true classes."""
    local, overall, truth = priors(size)
    absolute = loss.absolute(Alphabet.of_size(size))
    own = [row_losses(optimal(prior, absolute, epsilon), size) for prior in local]
    same = row_losses(optimal(overall, absolute, epsilon), size)
    none = row_losses(randomized_response(overall, absolute, epsilon), size)
    tables = [np.array(own), np.tile(same, (len(truth), 1)), np.tile(none, (len(truth), 1))]
    people = np.arange(len(truth))
    return (
        Losses(*(float((local * table).sum(axis=1).mean()) for table in tables)),
        Losses(*(float(table[people, truth].mean()) for table in tables)),
    )


@pytest.mark.parametrize(("size", "epsilon"), covered(SIZES, BUDGETS))
def test_local_priors_lose_less_than_a_global_one_and_that_less_than_none(
    size: int, epsilon: float
) -> None:
    for losses in mean_losses(size, epsilon):
        assert losses.local < losses.overall < losses.nothing


@pytest.mark.parametrize("size", SIZES)
def test_every_release_keeps_the_same_budget(size: int) -> None:
    local, overall, _ = priors(size)
    absolute = loss.absolute(Alphabet.of_size(size))
    for epsilon in BUDGETS:
        for prior in (*local[:10], overall):
            assert optimal(prior, absolute, epsilon).sip.epsilon <= epsilon
            assert randomized_response(prior, absolute, epsilon).ldp.epsilon <= epsilon


@pytest.mark.parametrize("epsilon", BUDGETS)
def test_no_channel_of_the_same_budget_loses_less_under_a_local_prior(epsilon: float) -> None:
    local, overall, _ = priors(5)
    absolute = loss.absolute(Alphabet.of_size(5))
    none = row_losses(randomized_response(overall, absolute, epsilon), 5)
    for prior in local[:20]:
        best = optimal(prior, absolute, epsilon)
        assert (
            best.cost <= prior @ none + ROUNDING
        )  # LDP is within the same budget, for every prior
        assert best.gap is not None and best.gap < 1e-6


def test_shuffled_priors_lose_their_lead() -> None:
    """The gain comes from knowing this person, not from having many priors."""
    size, epsilon = 5, 1.0
    local, _, truth = priors(size)
    absolute = loss.absolute(Alphabet.of_size(size))
    rows = np.array([row_losses(optimal(prior, absolute, epsilon), size) for prior in local])
    people = np.arange(len(truth))
    strangers = np.roll(people, 1)
    assert rows[people, truth].mean() < 0.5 * rows[strangers, truth].mean()


def test_twice_the_budget_without_a_prior_can_beat_a_local_one() -> None:
    """What keeps 2 epsilon whatever the prior may leak as much as LIP at epsilon does then."""
    local, overall, _ = priors(10)
    absolute = loss.absolute(Alphabet.of_size(10))
    twice = row_losses(randomized_response(overall, absolute, 8.0), 10)
    once = [row_losses(optimal(prior, absolute, 4.0), 10) for prior in local]
    assert float((local @ twice).mean()) < float((local * np.array(once)).sum(axis=1).mean())
