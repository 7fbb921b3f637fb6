"""Mixtures fitted to whole streams: what EM maximises, what it finds, how many it takes."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.alphabet import Alphabet
from sfumato.core.errors import InvalidParameter
from sfumato.core.randomness import seeded
from sfumato.models.cluster_choice import choose_clusters
from sfumato.models.cluster_fitting import fit_clusters, stream_scores
from sfumato.models.clustered_chain import ClusteredChain
from sfumato.models.markov import MarkovChain
from sfumato.models.stream_counts import StreamCounts

THREE = Alphabet.of_size(3)


def people(seed: int, streams: int, length: int) -> tuple[ClusteredChain, list[Any]]:
    """Streams of people who stay, and of people who go round."""
    stays = MarkovChain.from_matrix(0.1 + 0.7 * np.eye(3))
    round_ = MarkovChain.from_matrix(0.1 + 0.7 * np.roll(np.eye(3), 1, axis=1))
    model = ClusteredChain(np.array([0.7, 0.3]), (stays, round_), 1e-9)
    coins = seeded(seed)
    return model, [model.sample(length, coins) for _ in range(streams)]


def by_hand(model: ClusteredChain, path: Any) -> float:
    """Log probability of a stream that keeps its cluster, factor by factor."""
    total = 0.0
    for share, chain in zip(model.shares, model.chains, strict=True):
        table, mass = chain.transition(), share * chain.initial[path[0]]
        for before, after in itertools.pairwise(path):
            mass *= table[before, after]
        total += mass
    return math.log(total)


@given(st.integers(0, 999), st.integers(1, 4), st.floats(0.2, 3), st.sampled_from([0.0, 0.5]))
@settings(max_examples=12, deadline=None)
def test_a_pass_never_lowers_what_is_maximised(
    seed: int, clusters: int, pull: float, smoothing: float
) -> None:
    _, paths = people(seed, 20, 8)
    found = fit_clusters(THREE, paths, clusters, pull=pull, smoothing=smoothing)
    rises = np.diff(found.objective)
    assert (rises >= -1e-9 * abs(found.objective[-1])).all()


def test_a_stream_is_as_probable_as_its_factors_say() -> None:
    model, paths = people(1, 12, 7)
    scores = stream_scores(model, StreamCounts.of(paths, 3))
    assert scores == pytest.approx([by_hand(model, path) for path in paths])


def test_what_was_drawn_is_found_again() -> None:
    model, paths = people(2, 300, 40)
    found = fit_clusters(THREE, paths, 2).chain
    assert found.shares == pytest.approx(model.shares, abs=0.08)
    for own, drawn in zip(found.chains, model.chains, strict=True):
        assert own.transition() == pytest.approx(drawn.transition(), abs=0.05)


def test_one_cluster_is_the_chain_of_all_streams() -> None:
    _, paths = people(3, 30, 10)
    found = fit_clusters(THREE, paths, 1)
    (alone,) = found.chain.chains
    assert alone.transition() == pytest.approx(found.common.transition(), rel=1e-12)


def test_a_cluster_that_was_seen_little_does_what_everybody_does() -> None:
    _, paths = people(4, 12, 10)
    near = fit_clusters(THREE, paths, 2, pull=1e6)
    for chain in near.chain.chains:
        assert chain.transition() == pytest.approx(near.common.transition(), abs=1e-3)


@pytest.mark.parametrize("floor", [1e-6, 1e-3])
def test_every_cluster_keeps_the_floor(floor: float) -> None:
    """Values that a history shows once, last, or never."""
    paths = [np.array([0, 1, 0, 1]), np.array([0, 0, 0]), np.array([2]), np.array([1, 1, 3])]
    found = fit_clusters(Alphabet.of_size(5), paths, 2, floor=floor).chain
    assert found.full_support
    assert found.floor >= floor * (1 - 1e-9)


def test_the_same_streams_make_the_same_mixture_in_any_process_order() -> None:
    _, paths = people(5, 40, 12)
    once, again = fit_clusters(THREE, paths, 3), fit_clusters(THREE, list(paths), 3)
    assert once.chain.fingerprint == again.chain.fingerprint


def test_kinds_of_people_are_counted_by_streams_held_out() -> None:
    _, paths = people(6, 90, 30)
    choice = choose_clusters(THREE, paths)
    assert choice.clusters == 2
    gain, error = choice.gain(2)
    assert gain > 10 * error > 0


def test_people_who_do_not_differ_are_one_kind() -> None:
    chain, coins = MarkovChain.from_matrix(0.1 + 0.7 * np.eye(3)), seeded(7)
    paths = [chain.sample(30, coins) for _ in range(90)]
    assert choose_clusters(THREE, paths).clusters == 1


def test_a_stream_held_out_has_no_part_in_what_predicts_it() -> None:
    """Streams of one third are changed: what the others are held to be stays."""
    _, paths = people(8, 30, 10)
    changed = [path if place % 3 else (path + 1) % 3 for place, path in enumerate(paths)]
    before = choose_clusters(THREE, paths, (1, 2)).scores
    after = choose_clusters(THREE, changed, (1, 2)).scores
    for number in (1, 2):
        own = stream_scores(
            fit_clusters(THREE, [p for k, p in enumerate(paths) if k % 3], number).chain,
            StreamCounts.of(changed[::3], 3),
        )
        assert after[number][::3] == pytest.approx(own)
        assert not np.allclose(before[number][1::3], after[number][1::3])


@pytest.mark.parametrize(("clusters", "streams"), [((1, 9), 20), ((1, 2), 5), ((1, 2, 3), 3)])
def test_more_kinds_than_streams_can_show_are_refused(
    clusters: tuple[int, ...], streams: int
) -> None:
    _, paths = people(9, streams, 5)
    with pytest.raises(InvalidParameter, match="be at most a third of the number of streams"):
        choose_clusters(THREE, paths, clusters)


def test_more_clusters_than_streams_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="clusters must be at most the 3 streams"):
        fit_clusters(THREE, people(9, 3, 5)[1], 4)
    with pytest.raises(InvalidParameter, match="each hold at least one value"):
        fit_clusters(THREE, [np.zeros(0, dtype=np.int64)], 1)
