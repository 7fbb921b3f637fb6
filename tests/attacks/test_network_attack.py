"""A network finds a planted leak, is at chance where there is none, and says the same again."""

import sys
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

import sfumato as sf
from sfumato.attacks import (
    NetworkInput,
    NetworkSpec,
    Reidentification,
    reidentify_by_network,
    reidentify_raw_by_network,
)
from sfumato.attacks.network_attack import rehearse
from sfumato.attacks.network_input import released_rows
from sfumato.attacks.recurrent_network import RecurrentNetwork
from sfumato.attacks.rehearsal import rehearsed
from sfumato.stream import recover
from tests.attacks.scenes import plan_of, released, sticky

SMALL = NetworkSpec(hidden=8, window=20, steps=150, rate=0.02)
PEOPLE, STREAMS, LENGTH = 4, 10, 20


def habits(owner: int, count: int, length: int, rng: np.random.Generator) -> list[list[int]]:
    """Everybody visits all symbols equally often, each in a turn of their own: no counts tell."""
    steps = owner + 1
    begins = rng.integers(0, PEOPLE + 1, count)
    return [[int(begin + steps * t) % (PEOPLE + 1) for t in range(length)] for begin in begins]


def scene(epsilon: float) -> tuple[sf.Plan, dict[str, list[int]], list[list[int]], list[str]]:
    rng = np.random.default_rng(4)
    chain = sf.MarkovChain.from_matrix(np.full((PEOPLE + 1, PEOPLE + 1), 1 / (PEOPLE + 1)))
    known = {f"p{owner}": habits(owner, 1, 160, rng)[0] for owner in range(PEOPLE)}
    live = [track for owner in range(PEOPLE) for track in habits(owner, STREAMS, LENGTH, rng)]
    owners = [f"p{owner}" for owner in range(PEOPLE) for _ in range(STREAMS)]
    return plan_of(chain, epsilon), known, live, owners


@pytest.mark.parametrize("shown", list(NetworkInput))
def test_a_planted_leak_is_found(shown: NetworkInput) -> None:
    plan, known, live, owners = scene(4.0)
    left = released(plan, live, seed=2)
    found = reidentify_by_network(
        known, left.events, plan, shown=shown, network=SMALL, rehearsals=2
    )
    accuracy = found.accuracy(owners)
    assert accuracy.share > 0.8
    assert accuracy.chance == 1 / PEOPLE
    assert accuracy.leaked is not None
    # What must have been told is less than what is certified, and more than half of all there is.
    assert 0.5 * np.log(PEOPLE) < accuracy.leaked.epsilon <= np.log(PEOPLE)
    assert not accuracy.leaked.exceeds(max(left.spent.values(), key=lambda one: one.epsilon))


def test_independent_labels_are_found_by_chance() -> None:
    rng = np.random.default_rng(3)
    streams = [rng.random((LENGTH, 3)) for _ in range(400)]
    labels = rng.integers(0, PEOPLE, 400)
    learnt = RecurrentNetwork(streams[:200], labels[:200].tolist(), SMALL)
    scores = learnt.scores(streams[200:])
    names = tuple(f"p{owner}" for owner in range(PEOPLE))
    found = Reidentification(tuple(map(str, range(200))), names, scores, (b"",) * 200)
    accuracy = found.accuracy([names[label] for label in labels[200:]])
    assert accuracy.low < accuracy.chance < accuracy.high


def test_silence_tells_a_network_nothing() -> None:
    plan, known, live, owners = scene(1e-3)
    left = released(plan, live, seed=2)
    found = reidentify_by_network(
        known, left.events, plan, network=replace(SMALL, steps=50), rehearsals=1
    )
    accuracy = found.accuracy(owners)
    assert accuracy.low < accuracy.chance
    assert accuracy.leaked is not None
    assert not accuracy.leaked.exceeds(max(left.spent.values(), key=lambda one: one.epsilon))


def test_the_same_seed_gives_the_same_scores_and_leaves_coins_and_threads_alone() -> None:
    import torch

    plan, known, live, _ = scene(2.0)
    raw = {str(place): track for place, track in enumerate(live[:4])}
    short, threads, state = replace(SMALL, steps=10), torch.get_num_threads(), torch.get_rng_state()
    one, two = (reidentify_raw_by_network(known, raw, plan, network=short) for _ in range(2))
    other = reidentify_raw_by_network(known, raw, plan, network=replace(short, seed=1))
    np.testing.assert_array_equal(one.scores, two.scores)
    assert (one.scores != other.scores).any()
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def test_the_chain_adds_what_is_believed_at_once() -> None:
    plan = plan_of(sticky(3, 0.8), 1.0)
    left = rehearsed(plan, {"ann": [0, 0, 1, 1], "bob": [2, 2]}, seed=1).tracks
    rows = released_rows(left, plan, NetworkInput.CHAIN)
    assert [len(one) for one in rows] == [4, 2]
    found = recover(left, plan)
    for name, own in zip(("ann", "bob"), rows, strict=True):
        np.testing.assert_allclose(own[:, 3:], found.posterior(name, lag=0), atol=1e-12)
        np.testing.assert_array_equal(own[:, :3].argmax(axis=1), left.places[found.of(name)])
    assert released_rows(left, plan, NetworkInput.VALUES)[0].shape == (4, 3)


def test_a_rehearsal_by_policy_is_a_release_and_signals_are_seen() -> None:
    chain = sticky(2, 0.9)
    loss = sf.loss.hamming(chain.alphabet)
    policy = sf.compile_policy(chain, loss, 0.5, steps=200, method="far-sighted")
    plan = plan_of(chain, 0.5, method=sf.Method.FAR_SIGHTED, policy=policy)
    left = rehearsed(plan, {"ann": [0, 1, -1, 1], "bob": [1]}, seed=3).tracks
    assert left.streams == ("ann", "bob") and left.places[2] == -1
    recover(left, plan)  # the plan can have released it
    (rows, _) = released_rows(left, plan, NetworkInput.VALUES)
    seen = rows[:, 2:].argmax(axis=1)
    assert [seen[t] == left.signals[t] for t in (0, 1, 3)] == [True] * 3
    assert rows[2].sum() == 0


def test_a_network_does_not_learn_from_the_coins_of_a_release_with_the_same_seed() -> None:
    plan, known, _, _ = scene(0.01)
    learnt = rehearse(known, plan, NetworkInput.VALUES, 5, 2).rows
    np.testing.assert_array_equal(learnt, rehearse(known, plan, NetworkInput.VALUES, 5, 2).rows)
    turns = [np.vstack(learnt[:PEOPLE]), np.vstack(learnt[PEOPLE:])]
    others = [
        np.vstack(released_rows(rehearsed(plan, known, seed).tracks, plan, NetworkInput.VALUES))
        for seed in (5, 6)
    ]
    for one, two in [*product(turns, others), tuple(turns)]:
        assert (one == two).all(axis=1).mean() < 0.6  # some .4 by chance, all with the same coins


def test_who_has_longer_streams_is_not_found_by_that() -> None:
    scores = np.log([[0.9, 0.1], [0.1, 0.9]] * 4)
    names = tuple(map(str, range(8)))
    alike = Reidentification(names, ("ann", "bob"), scores, (b"5",) * 8)
    owners = ["ann", "bob"] * 4
    bound = alike.accuracy(owners).leaked
    assert bound is not None and bound.epsilon > 0.2 and bound.failure == 0.025
    longer = replace(alike, outlines=(b"5", b"6") * 4)
    assert longer.accuracy(owners).leaked is None
    assert alike.accuracy(["ann"] * 7 + ["bob"]).leaked is None
    by_top = [alike.accuracy(owners, top).leaked for top in (1, 2)]
    assert all(a and b and a.epsilon > b.epsilon == 0 for a, b in pairwise(by_top))


def test_a_missing_torch_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, known, live, _ = scene(2.0)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(sf.SfumatoError, match=r"pip install .sfumato\[attacks\]"):
        reidentify_raw_by_network(known, {"x": live[0]}, plan)


def test_people_without_values_are_refused() -> None:
    plan, known, live, _ = scene(2.0)
    with pytest.raises(sf.SfumatoError, match="hold two people at least, with values"):
        reidentify_raw_by_network({**known, "zoe": []}, {"x": live[0]}, plan)
    with pytest.raises(sf.SfumatoError, match="shown must be one of values, chain"):
        left = released(plan, live[:1], seed=1)
        reidentify_by_network(known, left.events, plan, shown="all")
