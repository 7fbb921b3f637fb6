"""Rows of many streams, and how threads share them."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import Fleet, secure
from sfumato.core.arrays import Ints
from sfumato.stream.fleet_loop import Batch
from tests.stream.fleet_scripts import NAMES, everything, keyed_coins, plan_of


def batch_of(lengths: list[int]) -> Batch:
    """Rows of as many streams, one stream after another."""
    which = np.arange(len(lengths)).repeat(lengths)
    slots = np.full(len(lengths), -1, dtype=np.int64)
    return Batch.of(which, slots)


def shares(batch: Batch, parts: int) -> Ints:
    """How many rows each part has."""
    edges = batch.split(parts)
    assert edges[0] == 0 and edges[-1] == len(batch.streams) and len(edges) == parts + 1
    assert edges == sorted(edges)
    due = np.append(0, np.cumsum(batch.ends - batch.turns))
    return np.diff(due[edges])


@pytest.mark.parametrize("parts", [1, 2, 3, 4])
@pytest.mark.parametrize("rows", [1, 2, 50])
@pytest.mark.parametrize("each", [1, 2, 5])
def test_streams_of_equal_length_are_shared_evenly(parts: int, rows: int, each: int) -> None:
    assert shares(batch_of([rows] * parts * each), parts).tolist() == [rows * each] * parts


@pytest.mark.parametrize("parts", [1, 2, 3, 4, 5])
def test_streams_of_one_row_are_shared_to_within_one(parts: int) -> None:
    for streams in range(12):
        found = shares(Batch.one_each(np.arange(streams)), parts)
        assert found.sum() == streams and found.max() - found.min() <= 1


def test_a_long_stream_leaves_the_others_to_another_thread() -> None:
    for lengths in ([100, *[1] * 100], [*[1] * 100, 100]):
        assert shares(batch_of(lengths), 2).tolist() == [100, 100]
    assert shares(batch_of([100]), 2).tolist() == [100, 0]


@given(st.lists(st.integers(1, 30), max_size=12), st.integers(1, 4), st.integers(0, 9))
def test_no_part_has_more_than_its_share_and_a_stream(
    lengths: list[int], parts: int, gone: int
) -> None:
    """At the beginning, and once some rows are done."""
    batch = batch_of(lengths)
    batch.turns[:] = np.minimum(batch.turns + gone, batch.ends)
    for going in (batch, batch.waiting()):
        found = shares(going, parts)
        assert found.sum() == (batch.ends - batch.turns).sum()
        if len(going.rows) > len(going.streams):
            assert found.max() <= found.sum() / parts + max(lengths) + 1


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_nothing_to_do_is_done_by_any_number_of_threads(threads: int) -> None:
    plan, none = plan_of("letters"), np.zeros(0, dtype=np.int64)
    fleet = Fleet(plan, ["ann", "bob"], randomness=keyed_coins(), threads=threads)
    before = everything(fleet)
    assert len(fleet.run(none, none).released) == 0
    assert len(fleet.step([], none).released) == 0
    assert everything(fleet) == before


@pytest.mark.parametrize("threads", [1, 2])
def test_a_helper_draws_the_coins_of_the_next_step(threads: int) -> None:
    """By turns instead of at once, so that the helper comes before the caller has done it all."""
    source: Any = secure()
    fleet = Fleet(plan_of("dense, order 1"), NAMES, randomness=source, threads=threads)
    shared: Any = fleet._arrays.threads

    def in_turn(work: Callable[[int], None], _: Callable[[int], bool]) -> None:
        for thread in reversed(range(threads)):
            work(thread)

    source.words(1)
    source.words(source._ready.size - len(NAMES))  # as many are left as a step takes
    with mock.patch.object(shared, "together", in_turn):
        # The first one: later ones may need coins for streams that go on by themselves.
        fleet.step([0, 1, 2, 0, 1])
    assert (len(source._ready) >= len(NAMES)) == (threads > 1)
