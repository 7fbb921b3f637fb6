import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato import Alphabet, PatternLibrary, PerStep, Plan, loss
from sfumato.core.errors import InvalidParameter, SfumatoError
from sfumato.core.guarantees import SIP
from sfumato.core.loss import Loss, Measure
from sfumato.stream import batch_loss as batch_losses
from sfumato.stream.partition.batch_loss import BatchLoss, Form, additive, as_batch_loss, listed
from tests.oracles.batches import Distance, bars, every, summed, table

LINE = Alphabet([0, 1, 3, 7])
PLANE = Alphabet.grid(2, 2)
SPOTS = [(0, 0), (0, 1), (1, 0), (1, 1)]
TABLE = np.array([[0.0, 2.0, 5.0, 1.0], [1.0, 0.5, 3.0, 0.0], [9, 2, 0, 4], [1, 1, 1, 0]])


def apart(x: int, y: int) -> float:
    return float(abs(int(LINE.labels[x]) - int(LINE.labels[y])))


def straight(x: int, y: int) -> float:
    return float(np.hypot(SPOTS[x][0] - SPOTS[y][0], SPOTS[x][1] - SPOTS[y][1]))


def blocks(x: int, y: int) -> float:
    return float(abs(SPOTS[x][0] - SPOTS[y][0]) + abs(SPOTS[x][1] - SPOTS[y][1]))


SUMS: dict[str, tuple[Loss, Distance]] = {
    "hamming": (loss.hamming(LINE), summed(lambda x, y: float(x != y))),
    "absolute": (loss.absolute(LINE), summed(apart)),
    "squared": (loss.squared(LINE), summed(lambda x, y: apart(x, y) ** 2)),
    "euclidean": (loss.euclidean(PLANE), summed(straight)),
    "blocks": (loss.absolute(PLANE), summed(blocks)),
    "any table": (loss.matrix(TABLE), summed(lambda x, y: float(TABLE[x, y]))),
    "wrong coordinates": (
        Loss.between(Measure.HAMMING, SPOTS),
        summed(lambda x, y: float(sum(a != b for a, b in zip(SPOTS[x], SPOTS[y], strict=True)))),
    ),
}


@pytest.mark.parametrize("name", list(SUMS))
@pytest.mark.parametrize("width", [1, 2, 3])
def test_an_additive_loss_is_the_sum_over_positions(name: str, width: int) -> None:
    each, distance = SUMS[name]
    batches = every(4, width)
    found = additive(each).between(np.array(batches)).matrix
    assert found == pytest.approx(table(distance, batches, batches), abs=1e-12)


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 5), min_size=1, max_size=9))
def test_a_loss_is_between_the_batches_it_is_asked_for(batches: list[tuple[int, ...]]) -> None:
    for each, distance in SUMS.values():
        if each.measure is not Measure.HAMMING or each.all_alike:
            found = additive(each).between(np.array(batches)).matrix
            assert found == pytest.approx(table(distance, batches, batches), abs=1e-12)


@pytest.mark.parametrize("groups", [[0, 1, 2, 3], [0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0]])
@pytest.mark.parametrize("width", [1, 2, 4])
def test_a_histogram_counts_how_often_each_bar_occurs(groups: list[int], width: int) -> None:
    named = {label: f"bar {bar}" for label, bar in zip(LINE.labels, groups, strict=True)}
    batches = every(4, width)
    found = batch_losses.histogram(LINE, named).between(np.array(batches)).matrix
    assert np.array_equal(found, table(bars(groups), batches, batches))


def test_a_histogram_does_not_look_at_the_order_of_values() -> None:
    counts = batch_losses.histogram(Alphabet("abc"))
    mixed = np.array(list(itertools.permutations([0, 1, 1, 2])))
    assert not counts.between(mixed).matrix.any()


def test_every_symbol_has_a_bar_of_its_own_if_not_told_otherwise() -> None:
    counts = batch_losses.histogram(Alphabet([1, "1"]))
    assert counts.between(np.array([[0], [1]])).matrix[0, 1] == 2.0


def test_a_histogram_without_a_bar_for_some_symbol_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="groups"):
        batch_losses.histogram(Alphabet("ab"), {"a": "first"})


ANSWERS: list[tuple[Callable[[tuple[object, ...]], float], Measure]] = [
    (lambda batch: float(max(map(int, map(str, batch)))), Measure.ABSOLUTE),
    (lambda batch: float(sum(map(int, map(str, batch)))), Measure.SQUARED),
    (lambda batch: float(len(set(batch))), Measure.HAMMING),
]


@pytest.mark.parametrize("place", range(len(ANSWERS)))
def test_a_query_compares_answers_to_labels_not_to_places(place: int) -> None:
    answer, measure = ANSWERS[place]
    batches = every(4, 3)
    told = [answer(tuple(LINE.labels[x] for x in batch)) for batch in batches]
    compare: dict[Measure, Callable[[float, float], float]] = {
        Measure.ABSOLUTE: lambda a, b: abs(a - b),
        Measure.SQUARED: lambda a, b: (a - b) ** 2,
        Measure.HAMMING: lambda a, b: float(a != b),
    }
    expected = [[compare[measure](a, b) for b in told] for a in told]
    found = batch_losses.query(LINE, answer, measure).between(np.array(batches)).matrix
    assert found == pytest.approx(np.array(expected), abs=1e-12)


def test_a_query_may_have_several_answers() -> None:
    ends = batch_losses.query(LINE, lambda batch: (float(batch[0]), float(batch[-1])))
    found = ends.between(np.array([[0, 1, 2], [3, 0, 0]])).matrix
    assert found[0, 1] == 7.0 + 3.0


def test_a_compared_loss_knows_which_batch_is_true() -> None:
    late = batch_losses.compared(
        LINE, lambda true, told: 2.0 * (true[0] != told[0]) + (true[-1] == 7)
    )
    batches = every(4, 2)

    def expected(true: tuple[int, ...], told: tuple[int, ...]) -> float:
        return 2.0 * (true[0] != told[0]) + (true[-1] == 3)

    assert np.array_equal(late.between(np.array(batches)).matrix, table(expected, batches, batches))


def test_a_function_of_two_batches_is_not_called_millions_of_times() -> None:
    called: list[int] = []

    def distance(true: tuple[object, ...], told: tuple[object, ...]) -> float:
        called.append(1)
        return 0.0

    with pytest.raises(InvalidParameter, match="at most 600 batches"):
        batch_losses.compared(LINE, distance).between(listed(4, 5))
    assert not called


@given(st.integers(1, 4), st.integers(1, 4))
def test_batches_are_listed_once_each_the_first_value_slowest(symbols: int, width: int) -> None:
    assert [tuple(row) for row in listed(symbols, width).tolist()] == every(symbols, width)


# Identity ----------------------------------------------------------------------------------------


def test_losses_that_differ_have_other_fingerprints() -> None:
    half = batch_losses.query(LINE, lambda batch: float(batch[0]))
    losses = [additive(each) for each, _ in SUMS.values()]
    losses += [
        batch_losses.histogram(LINE),
        batch_losses.histogram(LINE, dict.fromkeys(LINE.labels, "one")),
        half,
        batch_losses.query(LINE, lambda batch: float(batch[0]), Measure.SQUARED),
        batch_losses.query(LINE, lambda batch: float(batch[-1]) if len(batch) > 2 else 0.0),
    ]
    for width in (1, 2, 3):

        def batches(most: int = width) -> list[NDArray[np.int64]]:
            return [listed(len(LINE), length) for length in range(1, most + 1)]

        marks = [one.fingerprint(batches) for one in losses]
        assert len(set(marks)) == len(marks)
        same = batch_losses.query(LINE, lambda batch: 1.0 * int(batch[0]))
        assert same.fingerprint(batches) == half.fingerprint(batches)


def test_a_loss_of_single_values_adds_up() -> None:
    found = as_batch_loss([[0.0, 1.0], [3.0, 0.0]], 2)
    assert found.form is Form.ADDITIVE
    assert found.between(np.array([[1, 1], [0, 0]])).matrix.tolist() == [[0.0, 6.0], [2.0, 0.0]]


@pytest.mark.parametrize(
    "wrong", [loss.hamming(LINE), additive(loss.hamming(LINE)), np.zeros((4, 4))]
)
def test_a_loss_for_other_symbols_is_refused(wrong: BatchLoss | Loss) -> None:
    with pytest.raises(InvalidParameter, match="loss"):
        as_batch_loss(wrong, 3)


@settings(max_examples=10)
@given(st.sampled_from([float("nan"), float("inf")]))
def test_answers_that_are_no_numbers_are_refused(answer: float) -> None:
    broken = batch_losses.query(LINE, lambda batch: answer)
    with pytest.raises(InvalidParameter):
        broken.between(np.array([[0], [1]]))


class Asked(Exception):
    """Raised by a query that is asked too often."""


def test_a_query_over_a_library_is_asked_about_kept_patterns_alone() -> None:
    # 16**4 = 65 536 batches of four values could occur; 20 are kept.
    alphabet, asked = Alphabet.of_size(16), [0]

    def answer(batch: tuple[object, ...]) -> float:
        asked[0] += 1
        if asked[0] > 5_000:
            raise Asked
        return float(len(set(batch)))

    draw = np.random.default_rng(1)
    paths = [[int(value) for value in draw.integers(0, 16, 13)] for _ in range(20)]
    library = PatternLibrary.fit(paths, width=4, most=20, alphabet=alphabet)
    query = batch_losses.query(alphabet, answer)
    plan = Plan(library, PerStep(SIP(0.5)), query, 4)
    assert plan.prepare(plan.begin("s")) is not None


def test_a_query_with_too_many_batches_is_refused_before_they_are_listed() -> None:
    from sfumato import MarkovChain

    asked = [0]

    def answer(batch: tuple[object, ...]) -> float:
        asked[0] += 1
        if asked[0] > 5_000:
            raise Asked
        return float(len(set(batch)))

    chain = MarkovChain.from_matrix(np.full((16, 16), 1 / 16))
    with pytest.raises(SfumatoError, match="at most 4096 batches"):
        plan = Plan(chain, PerStep(SIP(0.5)), batch_losses.query(chain.alphabet, answer), 4)
        plan.prepare(plan.begin("s"))
