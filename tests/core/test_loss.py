import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import loss
from sfumato.core.alphabet import Alphabet, Label
from sfumato.core.errors import InvalidParameter

places = st.lists(
    st.tuples(st.floats(-100.0, 100.0), st.floats(-100.0, 100.0)), min_size=1, max_size=6
)


def in_the_plane(points: list[tuple[float, float]]) -> Alphabet:
    return Alphabet([f"p{i}" for i in range(len(points))], points)


@given(places)
def test_distances_are_those_of_the_textbook(points: list[tuple[float, float]]) -> None:
    alphabet = in_the_plane(points)
    absolute, squared = loss.absolute(alphabet).matrix, loss.squared(alphabet).matrix
    euclidean, hamming = loss.euclidean(alphabet).matrix, loss.hamming(alphabet).matrix
    for i, (x, y) in enumerate(points):
        for j, (u, v) in enumerate(points):
            assert absolute[i, j] == pytest.approx(abs(x - u) + abs(y - v))
            assert squared[i, j] == pytest.approx((x - u) ** 2 + (y - v) ** 2)
            assert euclidean[i, j] == pytest.approx(math.dist((x, y), (u, v)))
            assert hamming[i, j] == (0.0 if i == j else 1.0)


@given(places)
def test_the_truth_costs_nothing(points: list[tuple[float, float]]) -> None:
    alphabet = in_the_plane(points)
    for measure in (loss.hamming, loss.absolute, loss.squared, loss.euclidean):
        assert np.diag(measure(alphabet).matrix).tolist() == [0.0] * len(points)
        assert len(measure(alphabet)) == len(points)


def test_a_query_measures_answers_and_not_symbols() -> None:
    def parity(label: int | str) -> int:
        return int(label) % 2

    table = loss.query(Alphabet([1, 2, 3]), parity, lambda true, told: 3.0 * (true > told)).matrix
    assert table.tolist() == [[0.0, 3.0, 0.0], [0.0, 0.0, 0.0], [0.0, 3.0, 0.0]]


def test_a_histogram_is_off_in_two_bars_or_in_none() -> None:
    groups: dict[Label, str] = {"cat": "animal", "dog": "animal", "oak": "plant"}
    table = loss.histogram(Alphabet(list(groups)), groups)
    counts = {"animal": np.array([1, 0]), "plant": np.array([0, 1])}
    for i, true in enumerate(groups.values()):
        for j, told in enumerate(groups.values()):
            assert table.matrix[i, j] == np.abs(counts[true] - counts[told]).sum()
    assert table.name == "histogram"


def test_refuses_a_histogram_without_a_bar_for_every_symbol() -> None:
    with pytest.raises(InvalidParameter, match="name a group for every symbol"):
        loss.histogram(Alphabet(["cat", "oak"]), {"cat": "animal"})


@pytest.mark.parametrize("measure", [loss.absolute, loss.squared, loss.euclidean])
def test_refuses_a_distance_between_symbols_without_places(
    measure: Callable[[Alphabet], loss.Loss],
) -> None:
    with pytest.raises(InvalidParameter, match=r"alphabet\.coordinates must be given"):
        measure(Alphabet(["a", "b"]))


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        ([[0.0, 1.0]], "be a square matrix"),
        ([0.0, 1.0], "be a square matrix"),
        (np.empty((0, 0)), "be a square matrix"),
        ([[0.0, -1.0], [1.0, 0.0]], "be finite and nowhere negative"),
        ([[0.0, math.nan], [1.0, 0.0]], "be finite and nowhere negative"),
        ([[0.0, math.inf], [1.0, 0.0]], "be finite and nowhere negative"),
    ],
)
def test_refuses_a_table_that_is_no_loss(table: list[list[float]], rule: str) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        loss.matrix(table)
    with pytest.raises(InvalidParameter, match=rule):
        loss.as_matrix(table)


def test_a_loss_is_checked_against_the_size_that_is_needed() -> None:
    table = loss.hamming(Alphabet.of_size(3))
    assert loss.as_matrix(table, 3).tolist() == table.matrix.tolist()
    assert loss.as_matrix(table).tolist() == table.matrix.tolist()
    for given_loss in (table, table.matrix):
        with pytest.raises(InvalidParameter, match="loss must be 2 by 2, like the belief"):
            loss.as_matrix(given_loss, 2)


def test_a_loss_cannot_be_changed() -> None:
    given_table = np.zeros((2, 2))
    table = loss.matrix(given_table, "mine")
    given_table[0, 1] = 9.0
    assert table.matrix.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert table.name == "mine"
    with pytest.raises(ValueError, match="read-only"):
        table.matrix[0, 0] = 1.0


@given(places)
def test_columns_rows_and_means_are_those_of_the_matrix(points: list[tuple[float, float]]) -> None:
    belief = np.full(len(points), 1 / len(points))
    for measure in (loss.hamming, loss.absolute, loss.squared, loss.euclidean):
        computed, tabled = measure(in_the_plane(points)), measure(in_the_plane(points)).matrix
        chosen = np.arange(0, len(points), 2)
        assert np.array_equal(computed.columns(chosen), tabled[:, chosen])
        assert np.array_equal(computed.rows(chosen), tabled[chosen])
        assert computed.means(belief) == pytest.approx(belief @ tabled)
        assert tabled.max() <= computed.bound * (1 + 1e-12)
        assert np.array_equal(computed.matrix[:, chosen], computed.columns(chosen))


def test_a_large_loss_is_computed_and_never_stored() -> None:
    large = loss.euclidean(Alphabet.grid(100, 100))
    assert len(large) == 10_000
    assert large.columns([0, 9_999])[5_050].tolist() == [
        math.dist((50, 50), (0, 0)),
        69.29646455628166,
    ]
    with pytest.raises(InvalidParameter, match="have at most 5000 to be a matrix"):
        _ = large.matrix
    with pytest.raises(InvalidParameter, match="be 3 by 3, like the belief"):
        loss.as_loss(large, 3)


def test_a_fingerprint_tells_losses_apart() -> None:
    line, wider = Alphabet.of_size(3), Alphabet([0, 1, 3])
    made = [loss.hamming(line), loss.absolute(line), loss.squared(line), loss.absolute(wider)]
    made.append(loss.matrix(loss.absolute(line).matrix))
    assert len({each.fingerprint for each in made}) == len(made)
    assert loss.absolute(line).fingerprint == loss.absolute(Alphabet.of_size(3)).fingerprint


def test_refuses_places_whose_distance_is_no_number() -> None:
    with pytest.raises(InvalidParameter, match="be finite and nowhere negative"):
        loss.squared(Alphabet("ab", [0.0, 1e200]))


@pytest.mark.parametrize("size", [7, 700])
def test_means_do_not_depend_on_whether_the_table_was_asked_for(size: int) -> None:
    alphabet = Alphabet.of_size(size)
    belief = np.random.default_rng(1).dirichlet(np.ones(size))
    for make in (loss.absolute, loss.hamming):
        fresh, asked = make(alphabet), make(alphabet)
        asked.matrix  # noqa: B018  makes the table
        assert fresh.means(belief).tobytes() == asked.means(belief).tobytes()
