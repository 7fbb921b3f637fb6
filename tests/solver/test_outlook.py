"""Tables of a far-sighted step against enumeration of the values that they stand for."""

import itertools

import numpy as np
import pytest

from sfumato.solver.outlook import of_batches, of_values

RNG = np.random.default_rng(7)


@pytest.mark.parametrize(("size", "length"), [(2, 1), (2, 3), (3, 2)])
def test_batches_open_and_move_on_as_their_values_do(size: int, length: int) -> None:
    chain = RNG.dirichlet(np.ones(size), size)
    shown = of_batches(chain, np.zeros((size**length, 1)), length)
    first, told = RNG.dirichlet(np.ones(size)), RNG.random(size**length)
    masses, following = np.zeros(size**length), np.zeros(size)
    for number, batch in enumerate(itertools.product(range(size), repeat=length)):
        masses[number] = first[batch[0]]
        for here, after in itertools.pairwise(batch):
            masses[number] *= chain[here, after]
        following += masses[number] * told[number] * chain[batch[-1]]
    assert shown.opens is not None
    assert first @ shown.opens == pytest.approx(masses)
    assert (masses * told) @ shown.moves == pytest.approx(following)
    assert shown.symbols.tolist() == list(range(size**length))


@pytest.mark.parametrize(("size", "order"), [(3, 1), (2, 2), (3, 2), (2, 3)])
def test_contexts_move_on_as_their_values_do(size: int, order: int) -> None:
    chain = RNG.dirichlet(np.ones(size), size**order)
    shown = of_values(chain, np.zeros((size, 1)), order, order - 1)
    contexts = list(itertools.product(range(size), repeat=order))
    for number, context in enumerate(contexts):
        expected = np.zeros(size**order)
        for after in range(size):
            expected[contexts.index((*context[1:], after))] = chain[number, after]
        assert shown.moves[number] == pytest.approx(expected)
        assert shown.symbols[number] == context[-1]
    for axis in range(order - 1):
        begun = of_values(chain, np.zeros((size, 1)), order, axis)
        assert begun.symbols.tolist() == [context[axis] for context in contexts]
        assert np.array_equal(begun.moves, np.eye(size**order))
