"""Mixtures learnt from what outputs told: passes by brute force, and what is found again."""

import math
from typing import Any

import numpy as np
import pytest

from sfumato.core.alphabet import Alphabet
from sfumato.core.errors import InvalidParameter
from sfumato.core.randomness import seeded
from sfumato.models.cluster_learning import cluster_scores, learn_clusters
from sfumato.models.clustered_chain import ClusteredChain
from sfumato.models.emissions import Emissions
from sfumato.models.expectation import Guess, expected
from sfumato.models.markov import MarkovChain
from tests.models.test_cluster_fitting import people
from tests.models.test_clustered_chain import joint_of_paths, mixture

THREE = Alphabet.of_size(3)


def told_of(paths: list[Any], epsilon: float, seed: int) -> Emissions:
    """Outputs of randomised response, as likelihoods."""
    right = math.exp(epsilon) / (math.exp(epsilon) + 2)
    channel = (1 - right) / 2 * np.ones((3, 3)) + (right - (1 - right) / 2) * np.eye(3)
    rng = np.random.default_rng(seed)
    return Emissions.of_rows(
        [channel[:, [rng.choice(3, p=channel[x]) for x in path]].T for path in paths]
    )


def test_outputs_are_as_probable_as_the_list_of_all_hidden_paths_says() -> None:
    model, rng = mixture(4, clusters=3, change=1e-12), np.random.default_rng(1)
    rows = rng.uniform(0.1, 1.0, (4, 3))
    found = cluster_scores(Emissions.of_rows([rows]), model)
    whole = sum(
        mass * math.prod(rows[t, x] for t, (_, x) in enumerate(path))
        for path, mass in joint_of_paths(model, 4).items()
    )
    assert found.tolist() == pytest.approx([math.log(whole)], rel=1e-9)


def test_streams_count_as_much_as_their_shares_say() -> None:
    """A stream that counts twice is as good as two; one that counts for nothing is none."""
    rng = np.random.default_rng(2)
    streams = [rng.uniform(0.1, 1.0, (length, 3)) for length in (5, 3, 4)]
    guess = Guess(rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3))
    shared = expected(guess, Emissions.of_rows(streams), shares=np.array([2.0, 0.0, 1.0]))
    plain = expected(guess, Emissions.of_rows([streams[0], streams[0], streams[2]]))
    assert shared.moves == pytest.approx(plain.moves, rel=1e-12)
    assert shared.starts == pytest.approx(plain.starts, rel=1e-12)


def test_a_pass_never_lowers_what_is_maximised() -> None:
    _, paths = people(3, 60, 12)
    found = learn_clusters(told_of(paths, 1.5, 1), THREE, 3, most=40)
    assert (np.diff(found.objective) >= -1e-8).all()
    assert len(found.objective) > 5


def test_kinds_of_people_are_found_behind_private_outputs() -> None:
    model, paths = people(4, 400, 30)
    emissions = told_of(paths, 2.0, 2)
    found = learn_clusters(emissions, THREE, 2)
    assert found.converged
    assert found.chain.shares == pytest.approx(model.shares, abs=0.1)
    for own, drawn in zip(found.chain.chains, model.chains, strict=True):
        assert own.transition() == pytest.approx(drawn.transition(), abs=0.12)
    assert found.log_likelihood > found.common.log_likelihood + 100
    assert found.chain.full_support


def test_what_is_told_of_nobody_is_learnt_of_nobody() -> None:
    """Constants leave both clusters the common chain."""
    found = learn_clusters(Emissions.of_rows([np.ones((6, 3))] * 8), THREE, 2, most=30)
    for chain in found.chain.chains:
        assert chain.transition() == pytest.approx(np.full((3, 3), 1 / 3), abs=1e-6)


def test_batches_and_more_clusters_than_streams_are_refused() -> None:
    rows = np.full(9, 0.5)
    pair = Emissions(3, np.array([0, 2]), np.array([-1, 0]), np.array([1, 2]), rows)
    with pytest.raises(InvalidParameter, match="not learnt from batches"):
        learn_clusters(pair, THREE, 1)
    with pytest.raises(InvalidParameter, match="be at most the 1 streams"):
        learn_clusters(Emissions.of_rows([np.ones((3, 3))]), THREE, 2)


def test_a_chain_alone_is_a_mixture_of_one() -> None:
    chain = MarkovChain.from_matrix(0.1 + 0.7 * np.eye(3))
    emissions = told_of([chain.sample(9, seeded(1))], 1.0, 3)
    alone = ClusteredChain(np.ones(1), (chain,))
    assert cluster_scores(emissions, alone) == pytest.approx(cluster_scores(emissions, chain))
