"""Counts of populations: right on average, with errors that are those of the truth.

Each law holds for the channel as released, and fails where what outputs told is 30 % off.
"""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

import sfumato as sf
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Event
from sfumato.models.pair_chain import PairChain
from sfumato.stream.evidence import Evidence
from sfumato.stream.recovered_counts import Population
from sfumato.stream.recovery import Recovery, recover
from sfumato.stream.released_tracks import ReleasedTracks
from tests.oracles import tracks as oracle
from tests.stream.test_recovery import SHAPES, chain_prior, scene

Floats = NDArray[np.float64]
MOVES = np.array([[0.85, 0.1, 0.05], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]])
STREAMS, LENGTH = 4000, 10


def sharpened(recovery: Recovery, power: float) -> Recovery:
    """The same streams, with likelihoods as of channels that tell more or less."""
    told = recovery.evidence
    off = Evidence(told.starts, told.begins, told.reaches, told.ends, told.told**power)
    return Recovery(recovery.released, recovery.plan, off)


@pytest.fixture(scope="module")
def crowd() -> tuple[Recovery, NDArray[np.int64]]:
    """Many streams of the model, released by a fleet, and their true values, a row per stream."""
    chain = sf.MarkovChain.from_matrix(MOVES)
    loss = sf.loss.hamming(chain.alphabet)
    policy = sf.compile_policy(chain, loss, 0.8, steps=1500)
    plan = sf.Plan(
        chain, sf.PerStep(sf.SIP(0.8)), loss, policy=policy, purpose=sf.Purpose.SIMULATION
    )
    rng = np.random.default_rng(11)
    truth = np.empty((STREAMS, LENGTH), dtype=np.int64)
    truth[:, 0] = rng.choice(3, size=STREAMS, p=chain.initial)
    for t in range(1, LENGTH):
        coins = rng.random(STREAMS)
        truth[:, t] = (MOVES[truth[:, t - 1]].cumsum(axis=1) < coins[:, None]).sum(axis=1)
    names = [f"s{place}" for place in range(STREAMS)]
    fleet = sf.Fleet(plan, names, randomness=sf.seeded(5))
    left = np.stack([fleet.step(truth[:, t]).released for t in range(LENGTH)], axis=1)
    ones = np.full(truth.size, -1)
    tracks = ReleasedTracks(
        tuple(names),
        np.arange(0, truth.size + 1, LENGTH),
        left.ravel(),
        np.zeros(truth.size, dtype=np.int64),
        np.tile(np.arange(LENGTH), STREAMS),
        ones,
        np.arange(truth.size),
    )
    return recover(tracks, plan), truth


def of_crowds(
    recovery: Recovery, truth: NDArray[np.int64], size: int
) -> tuple[Floats, Floats, Floats]:
    """Counts of many small crowds: true, estimated and their errors, a row per crowd."""
    streams = np.repeat(np.arange(STREAMS) // size, LENGTH)
    groups = streams * LENGTH + np.tile(np.arange(LENGTH), STREAMS)
    found = Population(recovery, groups).counts()
    true = np.zeros_like(found.values)
    np.add.at(true, (groups, truth.ravel()), 1.0)
    return true, found.values, found.errors


def calibrated(recovery: Recovery, truth: NDArray[np.int64]) -> bool:
    """Whether counts are right on average, and intervals hold the truth as often as they say.

    Crowds are independent; counts of one crowd at several moments are not, so every second moment
    and one symbol each are looked at, and the bounds are wide.
    """
    true, found, errors = of_crowds(recovery, truth, 40)
    off = ((true - found) / errors).reshape(-1, LENGTH, 3)[:, ::3, 0]
    unbiased = abs(off.mean()) < 4 / np.sqrt(off.size)
    squares = abs((off**2).mean() - 1) < 4 * np.sqrt(2 / off.size)
    # What is left over has nothing to do with the estimate, or that could be a better one.
    true, found, _ = of_crowds(recovery, truth, 1)
    middle = slice(LENGTH // 2, None, LENGTH)
    left_over, known = (true - found)[middle, 0], found[middle, 0] - found[middle, 0].mean()
    slope = (left_over * known).sum() / (known**2).sum()
    slope_error = left_over.std() / np.sqrt((known**2).sum())
    covered = (np.abs(off) < 1.96).mean()
    share = abs(covered - 0.95) < 4 * np.sqrt(0.95 * 0.05 / off.size) + 0.01
    return bool(unbiased and squares and share and abs(slope) < 4 * slope_error)


def test_counts_are_right_on_average_and_intervals_cover(
    crowd: tuple[Recovery, NDArray[np.int64]],
) -> None:
    assert calibrated(*crowd)


@pytest.mark.parametrize("power", [0.7, 1.3])
def test_counts_from_a_channel_that_is_off_are_found_out(
    crowd: tuple[Recovery, NDArray[np.int64]], power: float
) -> None:
    assert not calibrated(sharpened(crowd[0], power), crowd[1])


def test_counting_best_guesses_is_biased(crowd: tuple[Recovery, NDArray[np.int64]]) -> None:
    recovery, truth = crowd
    found = Population(recovery).counts()
    guessed = recovery.values().guesses.reshape(STREAMS, LENGTH)
    true = np.stack([np.bincount(truth[:, t], minlength=3) for t in range(LENGTH)])
    told = np.stack([np.bincount(guessed[:, t], minlength=3) for t in range(LENGTH)])
    assert np.abs(told - true).max() > 8 * found.errors.max()
    assert np.abs((found.values - true) / found.errors).max() < 4.5


def test_what_several_moments_sum_up_to_has_the_errors_of_the_truth(
    crowd: tuple[Recovery, NDArray[np.int64]],
) -> None:
    recovery, truth = crowd
    groups = np.repeat(np.arange(STREAMS) // 40, LENGTH)
    found = Population(recovery, groups, draws=60).counts()
    true = np.stack([(truth.reshape(-1, 40 * LENGTH) == x).sum(axis=1) for x in range(3)], axis=1)
    off = (true - found.values) / found.errors
    assert abs(off[:, 0].mean()) < 4 / np.sqrt(len(off))
    assert abs((off[:, 0] ** 2).mean() - 1) < 4 * np.sqrt(2 / len(off))
    # As if moments were independent of each other: far too small, and seen to be.
    alone = Population(recovery).counts()
    naive = np.sqrt((alone.errors**2).sum(axis=0) * 40 / STREAMS)
    assert ((true - found.values)[:, 0] / naive[0]).std() > 1.3


def test_means_and_quantiles_hold_the_truth(crowd: tuple[Recovery, NDArray[np.int64]]) -> None:
    recovery, truth = crowd
    streams = np.repeat(np.arange(STREAMS) // 100, LENGTH)
    population = Population(recovery, streams * LENGTH + np.tile(np.arange(LENGTH), STREAMS))
    means = population.means()
    values = truth.reshape(-1, 100, LENGTH).transpose(0, 2, 1).reshape(-1, 100)
    off = (values.mean(axis=1) - means.values[:, 0]) / means.errors[:, 0]
    assert abs(off.mean()) < 4 / np.sqrt(off.size / 3)
    assert 0.8 < (off**2).mean() < 1.25
    middle, low, high = population.quantiles((0.3, 0.5))
    true = np.quantile(values, [0.3, 0.5], axis=1, method="inverted_cdf").T
    assert ((low <= true) & (true <= high)).mean() > 0.94
    assert ((low <= middle) & (middle <= high)).all()
    assert (low < high).mean() < 0.9


@pytest.mark.parametrize("name", ["three symbols", "order 2", "batches of 3", "a short batch"])
def test_flows_are_those_of_all_tracks(name: str) -> None:
    plan, lengths = SHAPES[name]
    told = scene(plan, chain_prior(plan, sum(map(abs, lengths))), lengths, seed=22)
    whole = oracle.weighted(told.prior, told.factors, len(told.ends))
    found = Population(told.recovery, draws=3000).flows()
    np.testing.assert_allclose(found.values, oracle.flows(whole, told.size), rtol=1e-8, atol=1e-10)
    second = np.zeros_like(found.values)
    for track, chance in whole.items():
        times = oracle.flows({track: 1.0}, told.size)
        second += chance * (times - found.values) ** 2
    np.testing.assert_allclose(found.errors**2, second, atol=0.15 * second.max())


def test_flows_without_a_matrix_are_refused_by_the_rule_that_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(5)
    paths = [rng.integers(3, size=60).tolist() for _ in range(3)]
    pairs, chain = PairChain.fit(paths, smoothing=3.0, floor=1e-3), sf.MarkovChain.fit(paths)
    thin = replace(chain, known=sparse.csr_array(chain.known))
    monkeypatch.setattr("sfumato.stream.hidden_chain.DENSE", 0)
    for said, model in (("over the pairs that occur", pairs), ("of 3 contexts, sparse", thin)):
        loss = sf.loss.hamming(model.alphabet)
        plan = sf.Plan(model, sf.PerStep(sf.SIP(1.0)), loss, purpose=sf.Purpose.SIMULATION)
        left, _ = plan.step(plan.begin("ann"), [1], sf.seeded(1))
        with pytest.raises(InvalidParameter, match=f"a chain with a matrix.*a chain {said}"):
            Population(recover({"ann": left}, plan)).flows()


def test_the_largest_counts_are_named_with_how_sure_that_is(
    crowd: tuple[Recovery, NDArray[np.int64]],
) -> None:
    recovery, truth = crowd
    groups = np.tile(np.arange(LENGTH), STREAMS)
    groups[len(groups) // 2 :] = LENGTH
    largest, sure = Population(recovery, groups, draws=40).top(1)
    true = np.bincount(truth[: STREAMS // 2, 4], minlength=3).argmax()
    assert largest[4, 0] == true and sure[4, 0] > 0.95
    assert sure.min() >= 0 and sure.max() <= 1
    with pytest.raises(InvalidParameter, match="most must be at most the number of symbols, 3"):
        Population(recovery).top(4)


# Without the model --------------------------------------------------------------------------------


def responses(level: float, streams: int, seed: int) -> tuple[Recovery, NDArray[np.int64]]:
    """Streams that do not move as the model says, released by randomised response."""
    chain = sf.MarkovChain.from_matrix(MOVES)
    loss = sf.loss.hamming(chain.alphabet)
    plan = sf.Plan(
        chain,
        sf.PerStep(sf.SIP(level)),
        loss,
        method=sf.Method.RANDOMIZED_RESPONSE,
        purpose=sf.Purpose.SIMULATION,
    )
    truth = np.tile([2, 1, 2], (streams, 1))
    truth[::3] = 0
    coins, left = sf.seeded(seed), dict[str, list[Event]]()
    for place, row in enumerate(truth):
        state, events = plan.begin(f"s{place}"), list[Event]()
        for value in row.tolist():
            (event,), state = plan.step(state, [value], coins)
            events.append(event)
        left[f"s{place}"] = events
    return recover(left, plan, unbiased=True), truth


def off_by(recovery: Recovery, truth: NDArray[np.int64], size: int = 30) -> Floats:
    """How many standard errors the unbiased counts of small crowds are off, a row per crowd."""
    count = len(truth)
    groups = np.repeat(np.arange(count) // size, 3) * 3 + np.tile(np.arange(3), count)
    found = Population(recovery, groups).unbiased_counts()
    true = np.zeros_like(found.values)
    np.add.at(true, (groups, truth.ravel()), 1.0)
    return np.asarray((found.values - true) / found.errors)


def fits(off: Floats) -> bool:
    # Three symbols of a crowd sum to what is known: two of them count.
    free = off.size * 2 / 3
    return bool(
        np.abs(off.reshape(-1, 9).mean(axis=0)).max() < 4 / np.sqrt(len(off) / 3)
        and abs((off**2).mean() - 1) < 4 * np.sqrt(2 / free)
    )


def test_unbiased_counts_need_no_model() -> None:
    recovery, truth = responses(2.0, 1500, seed=1)
    assert fits(off_by(recovery, truth))
    # The model's own estimate leans towards the model, and is many errors off.
    by_model = Population(recovery).counts()
    true = np.stack([np.bincount(truth[:, t], minlength=3) for t in range(3)])
    assert np.abs((by_model.values - true) / by_model.errors).max() > 8


@pytest.mark.parametrize("level", [1.4, 2.6])
def test_unbiased_counts_of_another_channel_are_found_out(level: float) -> None:
    recovery, truth = responses(2.0, 1500, seed=1)
    other = recover(recovery.released, responses(level, 1, 1)[0].plan, unbiased=True)
    assert not fits(off_by(Recovery(recovery.released, recovery.plan, other.evidence), truth))


def test_channels_without_an_inverse_have_no_unbiased_counts() -> None:
    chain = sf.MarkovChain.from_matrix(MOVES)
    loss = sf.loss.hamming(chain.alphabet)
    plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.1)), loss, purpose=sf.Purpose.SIMULATION)
    (event,), _ = plan.step(plan.begin("ann"), [1], sf.seeded(1))
    found = recover({"ann": [event]}, plan, unbiased=True)
    assert np.isnan(Population(found).unbiased_counts().values).all()
    with pytest.raises(InvalidParameter, match="unbiased must be asked for"):
        Population(recover({"ann": [event]}, plan)).unbiased_counts()


def every_outcome(plan: sf.Plan, length: int) -> list[tuple[list[Event], list[Floats]]]:
    """All that can leave of a stream, with the likelihood of each output."""
    found = [(list[Event](), list[Floats](), plan.begin("ann"))]
    for _ in range(length):
        grown = []
        for events, told, state in found:
            design = plan.prepare(state)
            assert design is not None
            for output in design.design.channel.outputs.tolist():
                label = plan.model.alphabet.labels[output]
                left, after = plan.observe(state, [label])
                likelihood = design.design.channel.likelihood(output)
                grown.append(([*events, *left], [*told, likelihood], after))
        found = grown
    return [(events, told) for events, told, _ in found]


def means_of_numbers(
    plan: sf.Plan, truth: tuple[int, ...], groups: NDArray[np.int64] | None
) -> tuple[Floats, Floats]:
    """Exact mean of each unbiased count where it is a number, and how probably it is one."""
    total, chance = np.zeros(()), np.zeros(())
    for events, told in every_outcome(plan, len(truth)):
        own = np.prod([row[value] for row, value in zip(told, truth, strict=True)])
        counts = Population(recover({"ann": events}, plan, unbiased=True), groups).unbiased_counts()
        total = total + own * np.nan_to_num(counts.values)
        chance = chance + own * np.isfinite(counts.values)
    return total / chance, chance


SELECTING = sf.Plan(
    sf.MarkovChain.from_matrix([[0.95, 0.05], [0.15, 0.85]]),
    sf.PerStep(sf.SIP(0.8)),
    [[0.0, 1.0], [1.0, 0.0]],  # type: ignore[arg-type]
    purpose=sf.Purpose.SIMULATION,
)
TRUTHS = [(0, 0, 0), (1, 1, 1), (1, 0, 1)]


@pytest.mark.parametrize("truth", TRUTHS)
def test_unbiased_counts_of_single_moments_are_right_where_they_are_numbers(
    truth: tuple[int, ...],
) -> None:
    mean, chance = means_of_numbers(SELECTING, truth, None)
    np.testing.assert_allclose(mean, np.eye(2)[list(truth)], atol=1e-9)
    # Some channels have an inverse after some outputs only, or this would show nothing.
    assert (chance.min(axis=1) < 0.999).any() and chance.min() > 0.1


@pytest.mark.parametrize("truth", TRUTHS)
def test_sums_over_moments_would_be_selected_and_are_refused(
    truth: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    together = np.zeros(3, dtype=np.int64)
    with pytest.raises(InvalidParameter, match="groups must hold each stream once"):
        means_of_numbers(SELECTING, truth, together)
    monkeypatch.setattr("sfumato.stream.recovered_counts.check_unselected", lambda *_: None)
    mean, _ = means_of_numbers(SELECTING, truth, together)
    assert np.abs(mean - np.bincount(truth, minlength=2)).min() > 0.5


@pytest.mark.parametrize("truth", TRUTHS)
def test_sums_over_moments_of_one_channel_are_right_on_average(truth: tuple[int, ...]) -> None:
    plan = replace(SELECTING, method=sf.Method.RANDOMIZED_RESPONSE)
    mean, chance = means_of_numbers(plan, truth, np.zeros(3, dtype=np.int64))
    np.testing.assert_allclose(mean, [np.bincount(truth, minlength=2)], atol=1e-9)
    np.testing.assert_allclose(chance, 1.0, rtol=1e-12)
    total = replace(plan, budget=sf.Horizon(sf.SIP(3.0), 3))
    with pytest.raises(InvalidParameter, match="groups must hold each stream once"):
        means_of_numbers(total, truth, np.zeros(3, dtype=np.int64))


def test_groups_must_fit_and_fixed_lags_know_single_moments() -> None:
    plan, lengths = SHAPES["bits"]
    found = scene(plan, chain_prior(plan, 6), lengths, seed=22).recovery
    with pytest.raises(InvalidParameter, match="groups must be one for each of 6 values"):
        Population(found, np.zeros(2, dtype=np.int64))
    with pytest.raises(InvalidParameter, match="lag must be all outputs"):
        Population(found, np.zeros(6, dtype=np.int64), lag=1).counts()
    assert Population(found, lag=1).counts().values.shape == (6, 2)


def test_names_have_no_mean() -> None:
    plan, lengths = SHAPES["bits"]
    found = scene(plan, chain_prior(plan, 6), lengths, seed=22).recovery
    named = replace(plan.model, alphabet=sf.Alphabet(["a", "b"]))  # type: ignore[type-var]
    other = replace(plan, model=named)
    with pytest.raises(InvalidParameter, match="numbers or places for its symbols"):
        Population(Recovery(found.released, other, found.evidence)).means()
