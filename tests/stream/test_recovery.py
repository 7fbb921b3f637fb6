"""What the receiver infers, against every track written down."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

import sfumato as sf
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Event
from sfumato.models.pair_chain import PairChain
from sfumato.stream.partition import batch_loss
from sfumato.stream.partition.cells import StepDesign
from sfumato.stream.recovered_rows import value_columns
from sfumato.stream.recovery import Recovery, recover
from tests.oracles import tracks as oracle

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scene:
    """A stream, what left, and every track with its probability."""

    recovery: Recovery
    prior: dict[oracle.Track, float]
    factors: list[oracle.Factor]
    ends: list[int]
    size: int

    def horizon(self, moment: int, lag: int | None) -> int:
        last = len(self.ends) - 1
        return last if lag is None else self.ends[min(moment + lag, last)]

    def expected(self, lag: int | None) -> Floats:
        rows = []
        for moment in range(len(self.ends)):
            told = oracle.weighted(self.prior, self.factors, self.horizon(moment, lag))
            rows.append(oracle.marginal(told, moment, self.size))
        return np.array(rows)


def random_chain(size: int, order: int, seed: int) -> sf.MarkovChain:
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet(np.full(size, 0.7), size=size**order) * 0.9 + 0.1 / size
    chain = sf.MarkovChain.from_matrix(moves)
    start = rng.dirichlet(np.ones(size**order)) * 0.9 + 0.1 / size**order
    return replace(chain, initial=start.reshape((size,) * order))


def factor(
    design: StepDesign, likelihood: Floats, first: int, length: int, recalled: int
) -> oracle.Factor:
    cell: Callable[[Sequence[int]], int] = design.partition.cell

    def of(track: oracle.Track) -> float:
        return float(likelihood[cell(track[first - recalled : first + length])])

    return oracle.Factor(first + length - 1, of)


def scene(plan: sf.Plan, prior: dict[oracle.Track, float], lengths: list[int], seed: int) -> Scene:
    """Release a track that the seed draws, in batches of the lengths; None is a skipped value."""
    rng = np.random.default_rng(seed)
    size, total = len(plan.model.alphabet), sum(map(abs, lengths))
    track = [int(value) for value in rng.integers(size, size=total)]
    coins, state, first = sf.seeded(seed), plan.begin("ann"), 0
    events: list[Event] = []
    factors: list[oracle.Factor] = []
    ends: list[int] = []
    for length in lengths:
        if length < 0:
            left, state = plan.skip(state, -length)
        else:
            recalled = plan.recalled(state)
            design = plan.prepare(state, length)
            assert design is not None
            before = track[first - recalled : first]
            left, state = plan.step(state, track[first : first + length], coins, before)
            places = plan.model.alphabet.indices([event.released for event in left])
            output = design.output(places)
            assert output is not None
            likelihood = design.design.channel.likelihood(output)
            factors.append(factor(design, likelihood, first, length, recalled))
        ends += [first + abs(length) - 1] * abs(length)
        events += left
        first += abs(length)
    return Scene(recover({"ann": events}, plan), prior, factors, ends, size)


def plan_of(
    size: int, order: int, width: int, seed: int, *, memory: int = 1, histogram: bool = False
) -> sf.Plan:
    chain = random_chain(size, order, seed)
    budget = sf.PerStep(sf.SIP(0.9))
    counts, each = batch_loss.histogram(chain.alphabet), sf.loss.hamming(chain.alphabet)
    loss = counts if histogram else each
    return sf.Plan(chain, budget, loss, width, memory, purpose=sf.Purpose.SIMULATION)


def chain_prior(plan: sf.Plan, length: int) -> dict[oracle.Track, float]:
    assert isinstance(plan.model, sf.MarkovChain)
    return oracle.chances(plan.model.initial, plan.model.transition(), length)


SHAPES = {
    "bits": (plan_of(2, 1, 1, 1), [1] * 6),
    "three symbols": (plan_of(3, 1, 1, 2), [1] * 5),
    "order 2": (plan_of(2, 2, 1, 3), [1] * 6),
    "order 3": (plan_of(2, 3, 1, 13), [1] * 5),
    "order 2, one value": (plan_of(3, 2, 1, 4), [1]),
    "a skipped value": (plan_of(3, 1, 1, 5), [1, -1, 1, 1, -1, 1]),
    "batches of 3": (plan_of(2, 1, 3, 6), [3, 3]),
    "a short batch": (plan_of(3, 1, 2, 7), [2, 2, 1]),
    "batches of order 2": (plan_of(2, 2, 2, 8), [2, 2, 2]),
    "batches with a memory": (plan_of(2, 1, 2, 9, memory=2), [2, 2, 2]),
    "histograms": (plan_of(2, 1, 3, 10, histogram=True), [3, 3]),
    "histograms of three": (plan_of(3, 1, 2, 11, histogram=True), [2, 2]),
}


@pytest.fixture(params=SHAPES, scope="module")
def told(request: pytest.FixtureRequest) -> Scene:
    plan, lengths = SHAPES[request.param]
    return scene(plan, chain_prior(plan, sum(map(abs, lengths))), lengths, seed=21)


@pytest.mark.parametrize("lag", [0, 1, 2, None])
def test_posteriors_are_those_of_all_tracks(told: Scene, lag: int | None) -> None:
    assert told.factors
    np.testing.assert_allclose(
        told.recovery.posterior("ann", lag), told.expected(lag), rtol=1e-9, atol=1e-12
    )


def test_the_likeliest_track_is_the_likeliest_of_all(told: Scene) -> None:
    all_tracks = oracle.weighted(told.prior, told.factors, len(told.ends))
    found = tuple(told.recovery.likeliest().tolist())
    assert "likeliest" in value_columns(told.recovery)
    assert all_tracks[found] == pytest.approx(max(all_tracks.values()), rel=1e-9)


def test_best_guesses_and_sets_follow_from_the_posteriors(told: Scene) -> None:
    values = told.recovery.values(cover=0.8)
    rows = told.expected(None)
    priced = told.recovery.plan.value_loss
    matrix = 1 - np.eye(told.size) if priced is None else priced.matrix
    means = rows @ matrix
    np.testing.assert_allclose(values.losses, means.min(axis=1), rtol=1e-9)
    for place, row in enumerate(rows):
        assert means[place, values.guesses[place]] == pytest.approx(means[place].min())
        inside = values.credible(place)
        assert row[inside].sum() >= 0.8 - 1e-9
        assert row[inside[:-1]].sum() < 0.8 + 1e-9
        assert values.probabilities[place] == pytest.approx(row[values.guesses[place]])


def sharpened(one: oracle.Factor, power: float) -> oracle.Factor:
    return oracle.Factor(one.end, lambda track: one.likelihood(track) ** power)


def test_a_likelihood_off_by_a_third_would_show(told: Scene) -> None:
    wrong = [sharpened(one, 1.3) for one in told.factors]
    if all(len({one.likelihood(track) for track in told.prior}) == 1 for one in told.factors):
        pytest.fail("a scene in which nothing is told checks nothing")
    off = replace(told, factors=wrong).expected(None)
    assert np.abs(off - told.recovery.posterior("ann")).max() > 1e-4


def test_draws_are_as_probable_as_the_outputs_make_them(told: Scene) -> None:
    count = 4000
    ((_, _, drawn),) = told.recovery.draws(count, seed=3)
    expected = told.expected(None)
    for moment in range(len(told.ends)):
        seen = np.bincount(drawn[:, moment], minlength=told.size) / count
        assert np.abs(seen - expected[moment]).max() < 5 * 0.5 / np.sqrt(count)


def test_a_policy_is_followed_by_its_loops_to_the_same_posteriors() -> None:
    chain = random_chain(3, 1, 31)
    loss = sf.loss.hamming(chain.alphabet)
    policy = sf.compile_policy(chain, loss, 0.8, steps=300)
    plan = sf.Plan(
        chain, sf.Horizon(sf.SIP(3.0), 5), loss, policy=policy, purpose=sf.Purpose.SIMULATION
    )
    found = scene(plan, chain_prior(plan, 5), [1] * 5, seed=3)
    np.testing.assert_allclose(found.recovery.posterior("ann"), found.expected(None), rtol=1e-9)
    skipped = scene(plan, chain_prior(plan, 5), [1, -1, 1, 1, 1], seed=4)
    np.testing.assert_allclose(skipped.recovery.posterior("ann"), skipped.expected(None), rtol=1e-9)


def test_a_policy_for_batches_is_followed() -> None:
    chain = random_chain(2, 1, 32)
    loss = sf.loss.hamming(chain.alphabet)
    policy = sf.compile_policy(chain, loss, 1.5, width=2, steps=300)
    plan = sf.Plan(
        chain, sf.PerStep(sf.SIP(0.75)), loss, 2, policy=policy, purpose=sf.Purpose.SIMULATION
    )
    found = scene(plan, chain_prior(plan, 5), [2, 2, 1], seed=3)
    for lag in (0, 1, None):
        got = found.recovery.posterior("ann", lag)
        np.testing.assert_allclose(got, found.expected(lag), rtol=1e-9)


def pair_scene(seed: int, length: int) -> tuple[PairChain, Scene]:
    """A stream of a chain over the pairs that occur."""
    rng = np.random.default_rng(seed)
    paths = [rng.integers(3, size=length).tolist() for _ in range(3)]
    chain = PairChain.fit(paths, alphabet=sf.Alphabet([0, 1, 2]), smoothing=3.0, floor=1e-3)
    loss = sf.loss.hamming(chain.alphabet)
    plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.9)), loss, purpose=sf.Purpose.SIMULATION)
    prior: dict[oracle.Track, float] = {}

    def grow(track: oracle.Track, chance: float, belief: object) -> None:
        if len(track) == 4:
            prior[track] = chance
            return
        for value in range(3):
            told = np.eye(3)[value]
            share = float(belief.marginal[value])  # type: ignore[attr-defined]
            after = chain.following(belief.update(told))  # type: ignore[attr-defined]
            grow((*track, value), chance * share, after)

    grow((), 1.0, chain.first())
    return chain, scene(plan, prior, [1] * 4, seed=6)


def test_pairs_that_occur_are_inferred_through_their_states() -> None:
    _, found = pair_scene(5, 60)
    for lag in (0, 1, None):
        got = found.recovery.posterior("ann", lag)
        np.testing.assert_allclose(got, found.expected(lag), rtol=1e-9)


def test_the_likeliest_path_of_states_is_that_and_not_called_a_track() -> None:
    others = 0
    for seed in range(12):
        chain, found = pair_scene(seed, 8)
        known, backoff, background, shown = chain.hidden_moves()
        moves = (1 - backoff)[:, None] * known.toarray() + backoff[:, None] * background
        told = [[one.likelihood((value,) * 4) for value in range(3)] for one in found.factors]
        # Every path of four states, written down.
        joint = chain.first().joint * np.array(told[0])[shown]
        for row in told[1:]:
            joint = joint[..., None] * moves * np.array(row)[shown]
        track = tuple(found.recovery.likeliest_path().tolist())
        showing = joint[np.ix_(*(np.flatnonzero(shown == value) for value in track))]
        assert showing.max() == pytest.approx(joint.max(), rel=1e-9)
        whole = oracle.weighted(found.prior, found.factors, 4)
        others += whole[track] < max(whole.values()) * (1 - 1e-9)
        with pytest.raises(InvalidParameter, match="of one over pairs only likeliest_path"):
            found.recovery.likeliest()
        assert "likeliest_path" in value_columns(found.recovery)
    # It is no idle distinction: another track is likelier in some of these.
    assert others > 0


def test_a_sparse_chain_gives_what_its_matrix_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    chain = sf.MarkovChain.fit([rng.integers(5, size=40).tolist()], floor=1e-3)
    loss = sf.loss.hamming(chain.alphabet)
    plan = sf.Plan(chain, sf.PerStep(sf.SIP(1.2)), loss, purpose=sf.Purpose.SIMULATION)
    dense = scene(plan, {}, [1] * 6, seed=9).recovery
    monkeypatch.setattr("sfumato.stream.hidden_chain.DENSE", 0)
    from scipy import sparse

    thin = replace(chain, known=sparse.csr_array(chain.known))
    other = sf.Plan(thin, plan.budget, loss, purpose=sf.Purpose.SIMULATION)
    same = Recovery(dense.released, other, dense.evidence)
    assert dense.chain.dense and not same.chain.dense
    for lag in (0, 2, None):
        np.testing.assert_allclose(same.posterior("ann", lag), dense.posterior("ann", lag), 1e-9)
    assert same.likeliest().tolist() == dense.likeliest().tolist()
    for one, two in zip(same.draws(50, 1), dense.draws(50, 1), strict=True):
        np.testing.assert_array_equal(one[2], two[2])


def expected_losses(plan: sf.Plan, length: int) -> dict[object, float]:
    """Exact mean loss per value, over all outputs: as released, and after recovery at each lag."""
    assert isinstance(plan.loss, sf.loss.Loss)
    matrix = plan.loss.matrix
    found: dict[object, float] = dict.fromkeys(["released", 0, 1, 2, None], 0.0)

    def grow(state: object, events: list[Event], chance: float) -> None:
        if len(events) == length:
            recovery = recover({"ann": events}, plan)
            rows = recovery.posterior("ann")
            places = plan.model.alphabet.indices([event.released for event in events])
            found["released"] += chance * float((rows @ matrix)[np.arange(length), places].mean())
            for lag in (0, 1, 2, None):
                found[lag] += chance * float(recovery.values(lag=lag).losses.mean())
            return
        design = plan.prepare(state)  # type: ignore[arg-type]
        assert design is not None
        shares = design.design.channel.marginal(design.partition.masses)
        for output, share in zip(design.design.channel.outputs, shares, strict=True):
            label = plan.model.alphabet.labels[output]
            left, following = plan.observe(state, [label])  # type: ignore[arg-type]
            grow(following, [*events, *left], chance * float(share))

    grow(plan.begin("ann"), [], 1.0)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_smoothing_never_raises_the_expected_loss(seed: int) -> None:
    chain = random_chain(3, 1, 40 + seed)
    loss = [sf.loss.hamming, sf.loss.absolute, sf.loss.squared][seed](chain.alphabet)
    methods = (sf.Method.OPTIMAL, sf.Method.CALIBRATED)
    for method in methods:
        plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.8)), loss, method=method)
        losses = expected_losses(plan, 4)
        falling = [losses[key] for key in ("released", 0, 1, 2, None)]
        assert all(later <= one + 1e-12 for one, later in pairwise(falling))
        assert losses[None] < losses[0]
