import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import Alphabet, MarkovChain
from sfumato.core.errors import InvalidParameter
from sfumato.models.encoding import Bins, Grid, Raw, Symbols, Unreadable, number, text
from sfumato.models.stream_model import StreamModel

EMPTY: list[Raw] = [None, ""]
NOT_FINITE: list[Raw] = ["nan", "NaN", "inf", "-inf", "Infinity", "1e999", math.nan, -math.inf]
NOT_NUMBERS: list[Raw] = ["here", "12,5", "1 2", "0x10", "--5", "five"]

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
wholes = st.integers(-(10**15) + 1, 10**15 - 1)


@dataclass(frozen=True)
class Case:
    """Edges, and a number that lies between the first and the last."""

    edges: tuple[float, ...]
    value: float


@st.composite
def all_edges(draw: st.DrawFn) -> tuple[float, ...]:
    """Rising numbers, near enough to 0 for their middles to have names of their own."""
    start = draw(st.floats(-1e4, 1e4))
    widths = draw(st.lists(st.floats(0.01, 100.0), min_size=1, max_size=7))
    return tuple(itertools.accumulate(widths, initial=start))


@st.composite
def inside(draw: st.DrawFn) -> Case:
    """Often an edge, or the float next to one."""
    edges = draw(all_edges())
    near = [math.nextafter(edge, way) for edge in edges for way in (-math.inf, math.inf)]
    within = [value for value in (*near, *edges) if edges[0] <= value <= edges[-1]]
    return Case(edges, draw(st.one_of(st.sampled_from(within), st.floats(edges[0], edges[-1]))))


@st.composite
def outside(draw: st.DrawFn) -> Case:
    edges = draw(all_edges())
    below = st.floats(max_value=edges[0], exclude_max=True, allow_infinity=False)
    above = st.floats(min_value=edges[-1], exclude_min=True, allow_infinity=False)
    return Case(edges, draw(st.one_of(below, above)))


def bin_of(edges: Sequence[float], value: float) -> int:
    """The bin that contains a value, by looking at each; the last includes its upper edge."""
    (place,) = (
        i
        for i, (low, high) in enumerate(itertools.pairwise(edges))
        if low <= value < high or (value == high == edges[-1])
    )
    return place


# Bins --------------------------------------------------------------------------------------------


@given(inside())
def test_a_number_inside_belongs_to_the_bin_that_contains_it(case: Case) -> None:
    bins = Bins(case.edges)
    symbol = bins.encode(case.value)
    assert bins.alphabet.index(symbol) == bin_of(case.edges, case.value)


@given(outside())
def test_a_number_outside_all_bins_has_no_symbol(case: Case) -> None:
    assert Bins(case.edges).encode(case.value) is None


@given(inside())
def test_a_number_and_its_text_have_the_same_bin(case: Case) -> None:
    bins = Bins(case.edges)
    assert bins.encode(repr(case.value)) == bins.encode(case.value)
    assert bins.encode(f" {case.value!r} ") == bins.encode(case.value)


@given(all_edges())
def test_bins_are_named_by_their_middles_and_lie_there(edges: tuple[float, ...]) -> None:
    bins = Bins(edges)
    middles = [(low + high) / 2 for low, high in itertools.pairwise(edges)]
    assert np.asarray(bins.alphabet.coordinates).ravel() == pytest.approx(middles)
    for name, middle in zip(bins.alphabet.labels, middles, strict=True):
        assert float(name) == pytest.approx(middle, rel=1e-9, abs=1e-9)
        assert bins.encode(middle) == name


@given(
    values=st.lists(st.integers(-10_000, 10_000).map(lambda n: n / 8), min_size=1, max_size=20),
    count=st.integers(1, 12),
)
def test_covering_bins_hold_every_value_they_were_cut_for(values: list[float], count: int) -> None:
    bins = Bins.covering(values, count)
    widths = np.diff(bins.edges)
    assert len(bins.alphabet) == count
    assert widths == pytest.approx(np.full(count, widths[0]))
    for value in values:
        assert bins.alphabet.index(bins.encode(value)) == bin_of(bins.edges.tolist(), value)
    if min(values) < max(values):
        assert (bins.edges[0], bins.edges[-1]) == (min(values), max(values))


def test_values_that_are_all_the_same_lie_inside_their_bins() -> None:
    bins = Bins.covering([7.0, 7.0], count=2)
    assert bins.encode(7) is not None
    assert bins.edges[0] < 7.0 < bins.edges[-1]


@pytest.mark.parametrize("edges", [[], [1.0], [1.0, 1.0], [2.0, 1.0], [0.0, math.nan, 1.0]])
def test_edges_must_rise(edges: list[float]) -> None:
    with pytest.raises(InvalidParameter, match="at least two numbers in rising order"):
        Bins(edges)


@pytest.mark.parametrize("count", [0, -1])
def test_there_must_be_a_bin(count: int) -> None:
    with pytest.raises(InvalidParameter, match="bins"):
        Bins.covering([0.0, 1.0], count)


@pytest.mark.parametrize("values", [[], [math.nan], [0.0, math.inf]])
def test_bins_are_cut_from_finite_numbers(values: list[float]) -> None:
    with pytest.raises(InvalidParameter, match="at least one finite number"):
        Bins.covering(values, 2)


def test_edges_cannot_be_changed_afterwards() -> None:
    given_edges = np.array([0.0, 1.0, 2.0])
    bins = Bins(given_edges)
    given_edges[1] = 1.9
    assert bins.encode(1.5) == "1.5"
    with pytest.raises(ValueError, match="read-only"):
        bins.edges[1] = 1.9


# Grids -------------------------------------------------------------------------------------------


@given(inside(), inside())
def test_a_point_inside_belongs_to_the_cell_that_contains_it(x: Case, y: Case) -> None:
    grid = Grid(x.edges, y.edges)
    column, row = bin_of(x.edges, x.value), bin_of(y.edges, y.value)
    symbol = grid.encode(x.value, repr(y.value))
    assert symbol == f"{column},{row}"
    place = np.asarray(grid.alphabet.coordinates)[grid.alphabet.index(symbol)]
    centre = [sum(x.edges[column : column + 2]) / 2, sum(y.edges[row : row + 2]) / 2]
    assert place == pytest.approx(centre)


@given(inside(), outside())
def test_a_point_outside_in_either_direction_has_no_symbol(within: Case, beyond: Case) -> None:
    grid = Grid(within.edges, beyond.edges)
    assert grid.encode(within.value, beyond.value) is None
    assert Grid(beyond.edges, within.edges).encode(beyond.value, within.value) is None


@given(all_edges(), all_edges())
def test_a_grid_has_a_symbol_for_each_cell(xs: tuple[float, ...], ys: tuple[float, ...]) -> None:
    grid = Grid(xs, ys)
    columns, rows = range(len(xs) - 1), range(len(ys) - 1)
    assert set(grid.alphabet.labels) == {f"{i},{j}" for i in columns for j in rows}


def test_a_covering_grid_holds_every_point_it_was_cut_for() -> None:
    xs, ys = [0.0, 4.0, 1.5, 4.0], [2.0, 0.0, 0.7, 2.0]
    grid = Grid.covering(xs, ys, columns=3, rows=2)
    assert len(grid.alphabet) == 6
    found = [grid.encode(x, y) for x, y in zip(xs, ys, strict=True)]
    assert found == ["0,1", "2,0", "1,0", "2,1"]


# Symbols -----------------------------------------------------------------------------------------


@given(st.lists(words, min_size=1, max_size=8))
def test_every_word_that_occurs_is_a_symbol_of_its_own(values: list[str]) -> None:
    symbols = Symbols.of(values)
    encoded = {value: symbols.encode(value) for value in values}
    assert set(symbols.alphabet.labels) == set(encoded.values())
    assert len(set(encoded.values())) == len(set(values))


@given(st.lists(wholes, min_size=1, max_size=8), st.sampled_from([int, float, str]))
def test_whole_numbers_become_whole_numbers_however_they_are_written(
    values: list[int], written: type
) -> None:
    symbols = Symbols.of([written(value) for value in values])
    assert symbols.alphabet.labels == tuple(sorted(set(values)))
    for value in values:
        assert symbols.encode(str(value)) == symbols.encode(float(value)) == value
    places = np.asarray(symbols.alphabet.coordinates).ravel()
    assert places.tolist() == [float(value) for value in sorted(set(values))]


@pytest.mark.parametrize("other", ["01", " 1", "1 ", "+1", "1.0", "-0", "1_000", "١", "1e3", "x"])
def test_one_word_that_is_no_whole_number_makes_all_of_them_words(other: str) -> None:
    assert Symbols.of(["1", "2", other]).alphabet.labels == tuple(sorted({"1", "2", other}))


@pytest.mark.parametrize("other", ["01", " 1", "+1", "1.0", "-0", "9", "x", "1" * 20, 1.5, 1e300])
def test_a_value_outside_a_numeric_alphabet_is_none_of_its_symbols(other: Raw) -> None:
    symbols = Symbols.of(["1", "2"])
    assert symbols.encode(other) not in symbols.alphabet.labels


def test_a_word_outside_the_alphabet_is_none_of_its_symbols() -> None:
    symbols = Symbols.of(["here", "there"])
    for other in ("HERE", "here ", "elsewhere", 1, True):
        assert symbols.encode(other) not in symbols.alphabet.labels


# What cannot be read: the rule is said, the value is not -----------------------------------------


@pytest.mark.parametrize("value", EMPTY)
def test_an_empty_value_is_refused_everywhere(value: Raw) -> None:
    for encoding in (Symbols.of(["a", "b"]), Symbols.of(["1", "2"]), Bins([0.0, 1.0, 2.0])):
        with pytest.raises(Unreadable, match=r"^must not be empty$"):
            encoding.encode(value)
    for point in ((value, 0.5), (0.5, value)):
        with pytest.raises(Unreadable, match=r"^must not be empty$"):
            Grid([0.0, 1.0], [0.0, 1.0]).encode(*point)
    with pytest.raises(Unreadable, match=r"^must not be empty$"):
        Symbols.of(["a", value])


@pytest.mark.parametrize("value", NOT_FINITE)
def test_a_number_that_is_not_finite_is_refused_without_quoting_it(value: Raw) -> None:
    with pytest.raises(Unreadable, match=r"^must be a finite number$"):
        Bins([0.0, 1.0]).encode(value)
    for point in ((value, 0.5), (0.5, value)):
        with pytest.raises(Unreadable, match=r"^must be a finite number$"):
            Grid([0.0, 1.0], [0.0, 1.0]).encode(*point)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_float_that_is_not_finite_is_no_symbol(value: float) -> None:
    with pytest.raises(Unreadable, match=r"^must be a finite number$"):
        Symbols.of(["1", "2"]).encode(value)
    with pytest.raises(Unreadable, match=r"^must be a finite number$"):
        Symbols.of([1.0, value])


@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_text_that_is_no_number_is_refused_without_quoting_it(value: Raw) -> None:
    with pytest.raises(Unreadable, match=r"^must be a number$") as caught:
        Bins([0.0, 1.0]).encode(value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@given(st.one_of(words, st.floats(), st.none(), st.booleans(), st.integers(-(10**9), 10**9)))
def test_reading_gives_a_finite_number_or_a_rule(value: Raw) -> None:
    try:
        assert math.isfinite(number(value))
    except Unreadable as problem:
        assert str(problem) in {
            "must not be empty",
            "must be a number",
            "must be a finite number",
        }


@given(st.one_of(words, st.integers(-(10**9), 10**9), st.floats(-1e9, 1e9)))
def test_reading_a_symbol_twice_gives_the_same_text(value: Raw) -> None:
    assert text(text(value)) == text(value)


# A chain and how a table is read for it ----------------------------------------------------------


def test_a_model_is_read_with_the_alphabet_of_its_chain() -> None:
    chain = MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]], alphabet=Alphabet(["a", "b"]))
    assert StreamModel(chain, Symbols(chain.alphabet)).values == ("value",)
    with pytest.raises(InvalidParameter, match="be that of the chain"):
        StreamModel(chain, Symbols(Alphabet(["a", "c"])))


def test_a_model_names_a_column_for_each_part_of_a_value() -> None:
    grid, bins = Grid([0.0, 1.0, 2.0], [0.0, 1.0]), Bins([0.0, 1.0, 2.0])
    even = [[0.5, 0.5], [0.5, 0.5]]
    plane = MarkovChain.from_matrix(even, alphabet=grid.alphabet)
    line = MarkovChain.from_matrix(even, alphabet=bins.alphabet)
    assert StreamModel(plane, grid, values=("x", "y")).encoding is grid
    with pytest.raises(InvalidParameter, match="name 2 columns"):
        StreamModel(plane, grid)
    with pytest.raises(InvalidParameter, match="name 1 columns"):
        StreamModel(line, bins, values=("x", "y"))


@given(
    st.lists(st.floats(-3, 8) | st.sampled_from([0.0, -0.0, 1.0, 2.5, 4.0]), max_size=30),
    st.booleans(),
)
def test_numbers_are_cut_by_array_as_one_by_one(numbers: list[float], clip: bool) -> None:
    bins, values = Bins([0.0, 1.0, 2.5, 4.0], clip=clip), np.array(numbers)
    assert bins.cells(values).tolist() == [bins.alphabet.place(bins.encode(v)) for v in numbers]
    assert bins.beyond(values).tolist() == [bins.outside(v) for v in numbers]
    grid, others = Grid([0.0, 2.0, 4.0], [-1.0, 1.0, 2.5], clip=clip), values[::-1]
    points = [*zip(values.tolist(), others.tolist(), strict=True)]
    due = [grid.alphabet.place(grid.encode(*point)) for point in points]
    assert grid.cells(values, others).tolist() == due
    assert grid.beyond(values, others).tolist() == [grid.outside(*point) for point in points]
