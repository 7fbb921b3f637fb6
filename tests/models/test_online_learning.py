"""A learner that goes on: block by block, stored and resumed, from what left alone."""

import numpy as np
import pytest

from sfumato.core.alphabet import Alphabet
from sfumato.core.errors import InvalidParameter
from sfumato.models.emissions import Emissions
from sfumato.models.expectation import Guess, expected
from sfumato.models.learning import learn_chain
from sfumato.models.markov import MarkovChain
from sfumato.models.online_learning import LearnerState
from sfumato.store.codec import from_bytes, to_bytes
from tests.models.test_learning import drawn_emissions, drawn_guess, hidden_rows

TRUE = MarkovChain.from_matrix([[0.9, 0.1], [0.3, 0.7]])


def blocks(seed: int, streams: int, length: int, width: int) -> list[Emissions]:
    """The outputs of streams, `width` values of each at a time."""
    rows = hidden_rows(TRUE, 0.2, streams, length, seed)
    return [
        Emissions.of_rows([stream[begin : begin + width] for stream in rows])
        for begin in range(0, length, width)
    ]


def test_a_stream_in_parts_is_known_as_one_is_that_came_whole() -> None:
    rng = np.random.default_rng(1)
    guess: Guess = drawn_guess(rng, 3, 1)
    whole, _ = drawn_emissions(rng, 3, (9,), (1,))
    parts = [
        Emissions(3, np.array([0, 4]), whole.begins[:4], whole.reaches[:4], whole.told),
        Emissions(3, np.array([0, 5]), whole.begins[4:], whole.reaches[4:], whole.told),
    ]
    first = expected(guess, parts[0])
    second = expected(guess, parts[1], np.ones(1), first.after)
    together = expected(guess, whole)
    np.testing.assert_allclose(second.after, together.after, rtol=1e-12)
    assert first.scores + second.scores == pytest.approx(together.scores)
    assert second.starts.sum() == 0
    assert second.moves.sum() == pytest.approx(5)


def test_blocks_lead_to_the_true_chain() -> None:
    names = [f"s{place}" for place in range(100)]
    state = LearnerState.begin(TRUE.alphabet)
    for block in blocks(2, 100, 200, 10):
        state = state.learnt(block, names)
    assert (state.blocks, state.values) == (20, 20_000)
    np.testing.assert_allclose(state.chain.transition(), TRUE.transition(), atol=0.04)
    assert state.chain.full_support


def test_one_block_is_one_pass() -> None:
    (block,) = blocks(3, 20, 30, 30)
    state = LearnerState.begin(TRUE.alphabet).learnt(block, [f"s{n}" for n in range(20)])
    once = learn_chain(block, TRUE.alphabet, order=1, most=1)
    assert state.blocks == 1
    assert state.values == len(block)
    assert np.abs(state.moves - 0.5).max() > 0.01
    assert once.guess.moves.shape == state.moves.shape


def test_a_stored_learner_goes_on_to_the_same_bits() -> None:
    names, state = ["a", "b", "c"], LearnerState.begin(TRUE.alphabet)
    for block in blocks(4, 3, 30, 10):
        stored = from_bytes(to_bytes(state), LearnerState)
        again, state = stored.learnt(block, names), state.learnt(block, names)
        assert to_bytes(again) == to_bytes(state)
    assert state.names == ("a", "b", "c")


def test_streams_come_and_stay_away() -> None:
    first, second, third = blocks(5, 2, 12, 4)
    state = LearnerState.begin(TRUE.alphabet).learnt(first, ["a", "b"])
    alone = state.learnt(second.of_streams(np.array([1])), ["b"])
    np.testing.assert_array_equal(alone.beliefs[0], state.beliefs[0])
    more = alone.learnt(third, ["c", "a"])
    assert more.names == ("a", "b", "c")
    np.testing.assert_array_equal(more.beliefs[1], alone.beliefs[1])


def test_beliefs_are_those_after_the_last_output() -> None:
    sure = np.array([[1.0, 0.0], [0.0, 1.0], [1e-9, 1.0]])
    state = LearnerState.begin(TRUE.alphabet).learnt(Emissions.of_rows([sure]), ["a"])
    assert state.beliefs[0, 1] > 0.99


def test_what_does_not_fit_is_refused() -> None:
    state, (block,) = LearnerState.begin(Alphabet.of_size(2)), blocks(6, 2, 4, 4)
    for names in (["a"], ["a", "a"]):
        with pytest.raises(InvalidParameter, match="different streams"):
            state.learnt(block, names)
    with pytest.raises(InvalidParameter, match="single values"):
        LearnerState.begin(Alphabet.of_size(3)).learnt(block, ["a", "b"])
