"""Counts under differential privacy of people: brute force over neighbours, and OpenDP."""

import itertools
import math
from collections import Counter

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Ints
from sfumato.core.errors import InsecureRandomness, InvalidParameter
from sfumato.core.guarantees import PureDP
from sfumato.core.purpose import Purpose
from sfumato.stream.private_counts import (
    PrivacySpec,
    counted,
    noisy_counts,
    private_chain,
    without_negatives,
)

SEEDS = st.integers(0, 2**32 - 1)


def everybody(longest: int) -> list[list[Ints]]:
    """Every person that there can be on two symbols: nobody's rows, one run or two."""
    runs = [
        np.array(values, dtype=np.int64)
        for length in range(1, longest + 1)
        for values in itertools.product((0, 1), repeat=length)
    ]
    return [[], *([run] for run in runs), *([one, other] for one in runs[:4] for other in runs)]


def table(people: list[list[Ints]], most: int, seed: int) -> tuple[Ints, Ints]:
    counts = counted(people, 2, most, sf.seeded(seed))
    return counts.moves.toarray().astype(int), counts.starts.astype(int)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_person_moves_the_tables_by_more_than_was_stated(most: int) -> None:
    reached = Counter[int]()
    for person in everybody(4):
        # Alone: what is counted of a person does not depend on the others.
        for seed in range(4):
            moves, starts = table([person], most, seed)
            reached[int(moves.sum())] += 1
            assert np.abs(moves).sum() <= most and np.abs(starts).sum() <= 1
    assert max(reached) == most


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_what_is_counted_of_people_adds_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = everybody(3)
    people = [kinds[place] for place in rng.integers(len(kinds), size=4)]
    # Where nothing is left out there is nothing to draw.
    whole, began = table(people, 100, seed)
    for place in range(4):
        rest, others = table(people[:place] + people[place + 1 :], 100, seed)
        own, first = table([people[place]], 100, seed)
        np.testing.assert_array_equal(whole, rest + own)
        np.testing.assert_array_equal(began, others + first)


def pmf(weights: Ints, repeat: int, reach: int) -> dict[int, float]:
    """The noise, written down from its integers: a difference of two geometric numbers."""
    tail = repeat / 2**62
    one = {}
    for value in range(3 * reach):
        block, rest = divmod(value, len(weights))
        one[value] = weights[rest] / 2**62 * tail**block * (1 - tail)
    found: dict[int, float] = dict.fromkeys(range(-reach, reach + 1), 0.0)
    for high, p in one.items():
        for low, q in one.items():
            if abs(high - low) <= reach:
                found[high - low] += p * q
    return found


def test_no_output_is_likelier_by_more_than_epsilon_with_any_one_person_more() -> None:
    """All persons of up to three values, all outputs near: every ratio of probabilities."""
    privacy, reach = PrivacySpec(1.5, contribution=1), 40
    moves_noise, starts_noise = privacy.noises()
    moves_law = pmf(moves_noise.weights, moves_noise.repeat, reach)
    starts_law = pmf(starts_noise.weights, starts_noise.repeat, reach)
    stated = privacy.certificate("user").epsilon
    worst = 0.0
    for person in everybody(3):
        pairs = [(int(a), int(b)) for run in person for a, b in itertools.pairwise(run)]
        draws = Counter(pairs)
        first = next((int(run[0]) for run in person), None)
        # One transition of his is counted, drawn evenly; his beginning always is.
        for output in itertools.product((-2, 0, 1, 3), repeat=2):
            near = [moves_law[value] for value in output]
            if not draws:
                mixed = near[0] * near[1]
            else:
                total = draws.total()
                mixed = 0.0
                for pair, times in draws.items():
                    # Two cells of the table are looked at: the first pair of symbols, and the last.
                    shift = (int(pair == (0, 0)), int(pair == (1, 1)))
                    mixed += (
                        times
                        / total
                        * math.prod(
                            moves_law[value - moved]
                            for value, moved in zip(output, shift, strict=True)
                        )
                    )
            ratio = mixed / (near[0] * near[1])
            for began in (-1, 0, 1, 2):
                apart = 1.0 if first is None else starts_law[began - 1] / starts_law[began]
                worst = max(worst, abs(math.log(ratio * apart)))
    assert worst <= stated + 1e-9
    assert worst > 0.95 * stated


@settings(max_examples=30, deadline=None)
@given(epsilon=st.floats(0.05, 5), contribution=st.integers(1, 60))
def test_the_certificate_is_within_the_budget_and_next_to_it(
    epsilon: float, contribution: int
) -> None:
    told = PrivacySpec(epsilon, contribution).certificate("user")
    assert told.guarantee <= PureDP(epsilon)
    assert told.epsilon > 0.999 * epsilon


@pytest.mark.parametrize("table_", ["transitions", "beginnings"])
@pytest.mark.parametrize(("epsilon", "contribution"), [(0.5, 3), (2.0, 20)])
def test_opendp_says_the_same_of_this_noise(epsilon: float, contribution: int, table_: str) -> None:
    dp.enable_features("contrib")
    privacy = PrivacySpec(epsilon, contribution)
    told = privacy.certificate("user")
    ours, scale, moved = {
        "transitions": (privacy.noises()[0], told.move_scale, contribution),
        "beginnings": (privacy.noises()[1], told.start_scale, 1),
    }[table_]
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    theirs = dp.m.make_laplace(*space, scale=scale)
    assert theirs.map(d_in=moved) == pytest.approx(  # type: ignore[no-untyped-call]
        ours.leakage(moved).epsilon, rel=1e-9
    )
    drawn = np.array(theirs([0] * 20_000))
    own = ours.draw(20_000, sf.seeded(1))
    spread = math.sqrt(ours.variance)
    assert np.abs(drawn).mean() == pytest.approx(np.abs(own).mean(), abs=5 * spread / 20_000**0.5)


@pytest.mark.parametrize(("epsilon", "contribution"), [(0.5, 3), (1.0, 1), (2.0, 20)])
def test_opendp_says_the_same_of_both_tables_together(epsilon: float, contribution: int) -> None:
    dp.enable_features("contrib")
    told = PrivacySpec(epsilon, contribution).certificate("user")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    # In persons: one moves the transitions by their bound, and the beginnings by one.
    scales = (told.move_scale / contribution, told.start_scale)
    both = dp.c.make_composition([dp.m.make_laplace(*space, scale=scale) for scale in scales])
    theirs = both.map(d_in=1)  # type: ignore[no-untyped-call]
    assert told.epsilon == pytest.approx(theirs, rel=1e-9)
    # The transitions alone, or half the beginnings, would be noticed.
    assert abs(told.epsilon - theirs * 0.95) > 1e-3 * theirs


def test_the_noise_is_as_large_as_the_budget_asks_and_no_other() -> None:
    """Mean size of what is added, against that of budgets 30 % off."""
    privacy = PrivacySpec(1.0, 4, Purpose.SIMULATION)
    noise, _ = privacy.noises()
    drawn = np.abs(noise.draw(40_000, sf.seeded(5))).mean()

    def size(epsilon: float) -> float:
        ratio = math.exp(-0.9 * epsilon / 4)
        return 2 * ratio / (1 - ratio**2)

    error = 5 * math.sqrt(noise.variance / 40_000)
    assert abs(drawn - size(1.0)) < error
    assert abs(drawn - size(0.7)) > error and abs(drawn - size(1.3)) > error


def test_empty_cells_get_noise_too() -> None:
    privacy = PrivacySpec(1.0, 4, Purpose.SIMULATION)
    chains = [
        private_chain([], Alphabet.of_size(3), privacy, sf.seeded(seed))[0] for seed in range(6)
    ]
    assert len({chain.fingerprint for chain in chains}) == 6
    assert all(chain.full_support for chain in chains)


def test_every_cell_of_both_tables_has_noise_of_its_own() -> None:
    privacy = PrivacySpec(1.0, 4, Purpose.SIMULATION)
    people = [[np.array([0] * 5)] for _ in range(3)]
    drawn = [noisy_counts(people, 2, privacy, sf.seeded(seed)) for seed in range(200)]
    moves = np.array([one for one, _ in drawn]) - np.array([[12, 0], [0, 0]])
    starts = np.array([one for _, one in drawn]) - np.array([3, 0])
    for cells, noise in zip((moves, starts), privacy.noises(), strict=True):
        spread = cells.reshape(200, -1).std(axis=0)
        np.testing.assert_allclose(spread, math.sqrt(noise.variance), rtol=0.3)
        apart = np.corrcoef(cells.reshape(200, -1).T)
        assert np.abs(apart - np.eye(len(apart))).max() < 0.35


def test_coins_that_can_be_guessed_are_refused() -> None:
    with pytest.raises(InsecureRandomness):
        private_chain([], Alphabet.of_size(2), PrivacySpec(1.0), sf.seeded(1))


def test_the_same_people_get_other_noise_each_time() -> None:
    people = [[np.array([0, 1, 1])]] * 20
    made = [
        private_chain(people, Alphabet.of_size(2), PrivacySpec(1.0), sf.secure())[0]
        for _ in range(2)
    ]
    assert made[0].fingerprint != made[1].fingerprint


def test_with_many_people_the_chain_is_that_without_noise() -> None:
    rng, moves = np.random.default_rng(1), np.array([[0.9, 0.1], [0.3, 0.7]])
    people = []
    for _ in range(4_000):
        path = [int(rng.integers(2))]
        while len(path) < 11:
            path.append(int(rng.random() < moves[path[-1], 1]))
        people.append([np.array(path)])
    chain, total = private_chain(people, Alphabet.of_size(2), PrivacySpec(1.0, 10), sf.secure())
    np.testing.assert_allclose(chain.transition(), moves, atol=0.02)
    assert total == pytest.approx(40_000, rel=0.02)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-50, 200), min_size=1, max_size=12))
def test_negative_counts_go_and_the_sum_stays(noisy: list[int]) -> None:
    cleared = without_negatives(np.array(noisy, dtype=float))
    assert cleared.min() >= 0
    assert cleared.sum() == pytest.approx(max(sum(noisy), 0), abs=1e-9)


def test_too_many_symbols_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="every pair"):
        private_chain([], Alphabet.of_size(1025), PrivacySpec(1.0), sf.secure())
