"""Mixtures of chains: the belief is about cluster and value, and certificates cover both."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from sfumato.core.alphabet import Alphabet
from sfumato.core.budgets import PerStep
from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.core.guarantees import SIP
from sfumato.core.loss import hamming
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import seeded
from sfumato.core.state import StreamState
from sfumato.models.clustered_chain import ClusteredChain
from sfumato.models.encoding import Symbols
from sfumato.models.markov import MarkovChain
from sfumato.models.stream_model import StreamModel
from sfumato.solver.design_methods import Method
from sfumato.store.codec import from_bytes, to_bytes
from sfumato.stream.plan import Plan

METHODS = (Method.OPTIMAL, Method.RANDOMIZED_RESPONSE)
Hidden = tuple[tuple[int, int], ...]
"""A path of (cluster, value)."""


def joint_of_paths(model: ClusteredChain, length: int) -> dict[Hidden, float]:
    """Probability of every path of clusters and values, product by product."""
    tables = [chain.transition().tolist() for chain in model.chains]
    shares, change = model.shares.tolist(), model.change
    states = list(itertools.product(range(len(shares)), range(model.size)))
    found: dict[Hidden, float] = {}
    for path in itertools.product(states, repeat=length):
        cluster, value = path[0]
        mass = shares[cluster] * float(model.chains[cluster].initial[value])
        for (before, was), (now, shown) in itertools.pairwise(path):
            mass *= change * shares[now] + (1 - change if before == now else 0.0)
            mass *= tables[now][was][shown]
        found[path] = mass
    return found


def joint_of_values(model: ClusteredChain, length: int) -> dict[tuple[int, ...], float]:
    """The same of values alone."""
    found: dict[tuple[int, ...], float] = {}
    for path, mass in joint_of_paths(model, length).items():
        values = tuple(value for _, value in path)
        found[values] = found.get(values, 0.0) + mass
    return found


def mixture(seed: int, clusters: int = 2, size: int = 3, change: float = 0.05) -> ClusteredChain:
    """Clusters whose chains are far from each other."""
    rng = np.random.default_rng(seed)
    chains = tuple(
        MarkovChain.from_matrix(
            rng.dirichlet(np.full(size, 0.6), size), rng.dirichlet(np.ones(size)), floor=0.01
        )
        for _ in range(clusters)
    )
    return ClusteredChain(rng.dirichlet(np.full(clusters, 3.0)), chains, change)


@st.composite
def mixtures(draw: st.DrawFn) -> ClusteredChain:
    seed, clusters = draw(st.integers(0, 2**16)), draw(st.integers(1, 3))
    change = draw(st.sampled_from([1e-6, 0.05, 0.5]))
    return mixture(seed, clusters, draw(st.integers(2, 3)), change)


@given(mixtures(), st.integers(0, 2**32))
@settings(max_examples=40)
def test_a_belief_is_carried_as_the_definition_says(model: ClusteredChain, seed: int) -> None:
    rng, belief = np.random.default_rng(seed), model.first()
    likelihoods: list[Any] = []
    for moment in range(3):
        exact = np.zeros((model.size, len(model.chains)))
        for path, mass in joint_of_paths(model, moment + 1).items():
            told = math.prod(row[x] for row, (_, x) in zip(likelihoods, path, strict=False))
            cluster, value = path[-1]
            exact[value, cluster] += mass * told
        assert belief.joint == pytest.approx(exact.ravel() / exact.sum(), rel=1e-9)
        assert model.clusters(belief) == pytest.approx(exact.sum(axis=0) / exact.sum())
        likelihoods.append(rng.random(model.size) + 1e-3)
        belief = model.following(belief.update(likelihoods[-1]))


@given(mixtures(), st.floats(0.2, 1.5), st.sampled_from(METHODS))
@settings(max_examples=15, deadline=None)
def test_what_all_outputs_tell_of_values_and_clusters_is_within_what_was_charged(
    model: ClusteredChain, epsilon: float, method: Method
) -> None:
    """Brute force over the joint table of clusters, values and outputs of three steps."""
    plan = Plan(model, PerStep(SIP(epsilon)), hamming(model.alphabet), method=method)
    joint = joint_of_paths(model, 3)
    assert sum(joint.values()) == pytest.approx(1.0)
    for outputs in itertools.product(range(model.size), repeat=3):
        told = likelihoods_of(plan, joint, outputs)
        if told is None:
            continue
        likelihood, charged = told
        whole = sum(joint[path] * likelihood[path] for path in joint)
        ratios = [abs(math.log(one / whole)) for one in likelihood.values()]
        assert max(ratios) <= charged + 1e-12
        for about in (about_cluster, about_last_value, about_both):
            assert leaks(joint, likelihood, about) <= charged + 1e-12


def likelihoods_of(
    plan: Plan, joint: dict[Hidden, float], outputs: tuple[int, ...]
) -> tuple[dict[Hidden, float], float] | None:
    """How likely every path made the outputs, and their charge; None if they cannot leave."""
    likelihood, state = dict.fromkeys(joint, 1.0), plan.begin("u")
    for moment, output in enumerate(outputs):
        prepared = plan.prepare(state)
        assert prepared is not None
        channel = prepared.design.channel
        if output not in channel.outputs:
            return None
        column = channel.likelihood(output)
        likelihood = {z: told * column[z[moment][1]] for z, told in likelihood.items()}
        _, state = plan.observe(state, [plan.model.alphabet.labels[output]])
    return likelihood, state.ledger.sip


def about_cluster(path: Hidden) -> Any:
    return path[0][0]


def about_last_value(path: Hidden) -> Any:
    return path[-1][1]


def about_both(path: Hidden) -> Any:
    return path[0][0], path[0][1]


def leaks(joint: dict[Hidden, float], likelihood: dict[Hidden, float], about: Any) -> float:
    """Largest log ratio of posterior to prior of a function of the hidden path."""
    before: dict[Any, float] = {}
    after: dict[Any, float] = {}
    for path, mass in joint.items():
        before[about(path)] = before.get(about(path), 0.0) + mass
        after[about(path)] = after.get(about(path), 0.0) + mass * likelihood[path]
    whole = sum(after.values())
    return max(abs(math.log(after[one] / whole / before[one])) for one in before)


def test_the_charges_of_the_common_chain_do_not_hold_for_who_knows_the_clusters() -> None:
    """The law above can fail: a release by one chain leaks more than it was charged for."""
    stays = MarkovChain.from_matrix([[0.98, 0.02], [0.02, 0.98]])
    moves = MarkovChain.from_matrix([[0.02, 0.98], [0.98, 0.02]])
    model = ClusteredChain(np.array([0.5, 0.5]), (stays, moves), 1e-6)
    common = MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]])
    plan = Plan(common, PerStep(SIP(1.0)), hamming(common.alphabet))
    joint = joint_of_paths(model, 4)
    told = likelihoods_of(plan, joint, (0, 0, 0, 0))
    assert told is not None
    likelihood, charged = told
    whole = sum(joint[path] * likelihood[path] for path in joint)
    assert max(abs(math.log(one / whole)) for one in likelihood.values()) > charged + 0.3


def test_evidence_about_a_cluster_is_never_forgotten_nor_final() -> None:
    """A thousand values of one kind, then of the other: the belief turns round, as it should."""
    stays = MarkovChain.from_matrix([[0.99, 0.01], [0.01, 0.99]])
    moves = MarkovChain.from_matrix([[0.01, 0.99], [0.99, 0.01]])
    model = ClusteredChain(np.array([0.5, 0.5]), (stays, moves), 1e-6)
    belief = model.first()
    for moment in range(2000):
        shown = 0 if moment < 1000 else moment % 2
        belief = model.following(belief.update(np.eye(2)[shown]))
        assert model.clusters(belief).min() >= 0.5e-6 * (1 - 1e-9)
        if moment == 999:
            assert model.clusters(belief)[0] > 0.999
    assert model.clusters(belief)[1] > 0.999


def test_sparse_rows_are_carried_as_dense_ones() -> None:
    dense = mixture(3, clusters=3, size=5)
    chains = tuple(
        MarkovChain(
            one.alphabet, 1, one.initial, sparse.csr_array(one.known), one.backoff, one.background
        )
        for one in dense.chains
    )
    few = ClusteredChain(dense.shares, chains, dense.change)
    belief = dense.first().update(np.array([0.9, 0.1, 0.3, 0.2, 0.5]))
    assert few.following(belief).joint == pytest.approx(dense.following(belief).joint, rel=1e-13)


def test_samples_follow_the_joint_table() -> None:
    stays = MarkovChain.from_matrix([[0.95, 0.05], [0.05, 0.95]])
    moves = MarkovChain.from_matrix([[0.05, 0.95], [0.95, 0.05]])
    model = ClusteredChain(np.array([0.5, 0.5]), (stays, moves), 0.6)
    joint, coins = joint_of_values(model, 3), seeded(5)
    seen = dict.fromkeys(joint, 0)
    for _ in range(1500):
        seen[tuple(model.sample(3, coins).tolist())] += 1
    for values, mass in joint.items():
        assert abs(seen[values] - 1500 * mass) < 5 * math.sqrt(1500 * mass) + 3


def test_hidden_moves_are_those_of_beliefs() -> None:
    model = mixture(6, clusters=3)
    moves, shown = model.hidden_moves()
    assert moves.sum(axis=1) == pytest.approx(1.0)
    assert shown.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    belief = model.first()
    assert belief.joint @ moves == pytest.approx(model.following(belief).joint, rel=1e-12)


def test_model_and_state_survive_storage() -> None:
    model = mixture(1)
    encoding = Symbols(Alphabet(["a", "b", "c"]))
    chains = tuple(
        MarkovChain.from_matrix(one.transition(), one.initial, encoding.alphabet)
        for one in model.chains
    )
    stored = StreamModel(ClusteredChain(model.shares, chains, model.change), encoding)
    back = from_bytes(to_bytes(stored), StreamModel).chain
    assert isinstance(back, ClusteredChain)
    assert back.fingerprint == stored.chain.fingerprint
    plan = Plan(back, PerStep(SIP(1.0)), hamming(back.alphabet), purpose=Purpose.SIMULATION)
    _, state = plan.step(plan.begin("u"), ["b"], seeded(1))
    kept = from_bytes(to_bytes(state), StreamState)
    assert kept.belief.joint.tolist() == state.belief.joint.tolist()
    assert plan.step(kept, ["c"], seeded(2))[0] == plan.step(state, ["c"], seeded(2))[0]


def test_a_kind_that_came_later_leaves_files_of_earlier_ones_as_they_were() -> None:
    """What `fit` wrote before there were mixtures is read: its layout is in the test."""
    plain = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]], alphabet=Alphabet(["a", "b"]))
    data = to_bytes(StreamModel(plain, Symbols(plain.alphabet)))
    assert bytes.fromhex("87eaa2ff206a7d04") in data


def test_a_stored_mixture_without_a_share_is_refused() -> None:
    model = mixture(1)
    object.__setattr__(model, "shares", np.array([1.0, 0.0]))
    with pytest.raises(CorruptData, match="shares must be at least 1e-12"):
        from_bytes(to_bytes(model), ClusteredChain)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"shares": [0.5, 0.6]}, "shares must sum to 1"),
        ({"shares": [1.0]}, "shares"),
        ({"shares": [1.0, 5e-324]}, "shares must be at least 1e-12 each"),
        ({"chains": ()}, "chains must be at least one"),
        ({"change": 0.0}, "change must be at least 1e-12 and less than 1"),
        ({"change": 1.0}, "change must be at least 1e-12 and less than 1"),
        ({"chains": (mixture(1).chains[0], mixture(1, size=2).chains[0])}, "the same symbols"),
    ],
)
def test_what_is_no_mixture_is_refused(change: dict[str, Any], rule: str) -> None:
    model = mixture(1)
    parts: dict[str, Any] = {"shares": model.shares, "chains": model.chains, "change": 0.1}
    with pytest.raises(InvalidParameter, match=rule):
        ClusteredChain(**(parts | change))


def test_a_cluster_with_zeros_has_no_full_support_and_no_plan() -> None:
    sure = MarkovChain.from_matrix([[1.0, 0.0], [0.5, 0.5]], [0.5, 0.5])
    model = ClusteredChain(
        np.array([0.5, 0.5]), (sure, MarkovChain.from_matrix(np.full((2, 2), 0.5)))
    )
    assert not model.full_support
    with pytest.raises(InvalidParameter, match="give every value some probability"):
        Plan(model, PerStep(SIP(1.0)), hamming(model.alphabet))


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        ({"width": 2}, "be a chain or a library, for batches"),
        ({"method": Method.FAR_SIGHTED}, "the same for all streams and times, to look ahead"),
    ],
)
def test_plans_that_mixtures_have_not_are_refused_by_name(asked: Any, rule: str) -> None:
    model = mixture(1)
    with pytest.raises(InvalidParameter, match=rule):
        Plan(model, PerStep(SIP(1.0)), hamming(model.alphabet), **asked)
