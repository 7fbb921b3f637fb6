import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.alphabet import Alphabet, Label
from sfumato.core.errors import InvalidParameter, UnknownSymbol

labels = st.lists(
    st.one_of(st.integers(-(2**40), 2**40), st.text(max_size=5)),
    min_size=1,
    max_size=8,
    unique=True,
)


@given(labels)
def test_every_symbol_has_its_own_place(symbols: list[Label]) -> None:
    alphabet = Alphabet(symbols)
    assert len(alphabet) == len(symbols)
    assert alphabet.labels == tuple(symbols)
    assert [alphabet.index(symbol) for symbol in symbols] == list(range(len(symbols)))
    assert alphabet.indices(symbols[::-1]).tolist() == list(range(len(symbols)))[::-1]


@given(labels, labels)
def test_equal_alphabets_and_no_others_share_a_fingerprint(
    one: list[Label], other: list[Label]
) -> None:
    left, right = Alphabet(one), Alphabet(other)
    assert (left == right) == (one == other)
    assert (left.fingerprint == right.fingerprint) == (one == other)
    assert left == Alphabet(one)
    assert hash(left) == hash(Alphabet(one))


def test_order_places_and_kinds_of_symbols_count() -> None:
    different = [
        Alphabet(["a", "b"]),
        Alphabet(["b", "a"]),
        Alphabet(["ab"]),
        Alphabet(["a", "b"], [0.0, 1.0]),
        Alphabet(["a", "b"], [0.0, 2.0]),
        Alphabet(["a", "b"], [[0.0, 1.0], [1.0, 1.0]]),
        Alphabet([1, 2]),
        Alphabet(["1", "2"]),
        Alphabet(["1", "2"], [1.0, 2.0]),
    ]
    assert len({alphabet.fingerprint for alphabet in different}) == len(different)
    for i, alphabet in enumerate(different):
        assert [alphabet == other for other in different] == [i == j for j in range(len(different))]
    assert Alphabet(["a"]) != "a"


def test_whole_numbers_are_their_own_coordinates() -> None:
    coordinates = Alphabet([10, 20, 40]).coordinates
    assert coordinates is not None
    assert coordinates.tolist() == [[10.0], [20.0], [40.0]]
    assert Alphabet(["a", 1]).coordinates is None


def test_a_grid_has_unit_cells_row_by_row() -> None:
    grid = Alphabet.grid(2, 3)
    assert grid.labels == ("0,0", "0,1", "0,2", "1,0", "1,1", "1,2")
    assert grid.coordinates is not None
    assert grid.coordinates.tolist() == [[r, c] for r in (0.0, 1.0) for c in (0.0, 1.0, 2.0)]


def test_numpy_whole_numbers_become_plain_ones() -> None:
    alphabet = Alphabet(np.array([3, 5]))
    assert alphabet == Alphabet([3, 5])
    assert all(type(label) is int for label in alphabet.labels)
    assert alphabet.index(np.int64(5)) == 1


@pytest.mark.parametrize(
    "symbol", ["secret-717", 717, -1, None, True, 1.5, math.nan, ["0"], ("0",)]
)
def test_refuses_a_symbol_outside_and_does_not_quote_it(symbol: object) -> None:
    alphabet = Alphabet([0, 1, "x"])
    with pytest.raises(UnknownSymbol, match="must be one of the 3 symbols of the alphabet") as no:
        alphabet.index(symbol)
    assert "717" not in str(no.value)
    assert no.value.size == 3
    with pytest.raises(UnknownSymbol):
        alphabet.indices([0, symbol])


@pytest.mark.parametrize("symbols", [[], ["a", "a"], [1, 1], [1, np.int64(1)]])
def test_refuses_symbols_that_are_missing_or_the_same(symbols: list[Label]) -> None:
    with pytest.raises(InvalidParameter, match="labels must be distinct, and at least one"):
        Alphabet(symbols)


@pytest.mark.parametrize("symbol", [1.5, True, None, b"a", ("a",)])
def test_refuses_symbols_that_are_neither_strings_nor_whole_numbers(symbol: object) -> None:
    with pytest.raises(InvalidParameter, match="labels must be strings or whole numbers"):
        Alphabet([symbol])  # type: ignore[list-item]


@pytest.mark.parametrize(
    "coordinates", [[1.0], [1.0, math.nan], [1.0, math.inf], [[1.0]], [[[1.0]], [[2.0]]], 1.0]
)
def test_refuses_coordinates_that_are_not_one_finite_row_each(coordinates: list[float]) -> None:
    with pytest.raises(InvalidParameter, match="coordinates must be 2 rows of finite numbers"):
        Alphabet(["a", "b"], coordinates)


@pytest.mark.parametrize("size", [0, -1])
def test_refuses_an_alphabet_of_nothing(size: int) -> None:
    with pytest.raises(InvalidParameter, match="size must be a whole number of at least 1"):
        Alphabet.of_size(size)
    with pytest.raises(InvalidParameter, match="rows must be a whole number of at least 1"):
        Alphabet.grid(size, 2)
    with pytest.raises(InvalidParameter, match="columns must be a whole number of at least 1"):
        Alphabet.grid(2, size)


def test_an_alphabet_cannot_be_changed() -> None:
    given_places = np.array([0.0, 1.0])
    alphabet = Alphabet(["a", "b"], given_places)
    given_places[0] = 9.0
    assert alphabet.coordinates is not None
    assert alphabet.coordinates.tolist() == [[0.0], [1.0]]
    with pytest.raises(ValueError, match="read-only"):
        alphabet.coordinates[0] = 1.0
    with pytest.raises(AttributeError):
        alphabet.labels = ("c",)  # type: ignore[misc]
