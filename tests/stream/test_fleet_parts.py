"""Threads of a fleet share its streams: each has its own, and about as many rows."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.stream.fleet_loop import Batch

PARTS = st.integers(1, 5)


def batch_of(counts: list[int]) -> Batch:
    """So many rows of each stream."""
    ends = np.cumsum(counts, dtype=np.int64)
    begins = ends - np.array(counts, dtype=np.int64)
    streams, rows = np.arange(len(counts)), np.arange(sum(counts))
    return Batch(streams, begins, begins.copy(), ends, rows)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), PARTS)
def test_every_stream_is_in_one_part_and_none_is_much_longer(counts: list[int], parts: int) -> None:
    edges = batch_of(counts).split(parts)
    assert len(edges) == parts + 1 and (edges[0], edges[-1]) == (0, len(counts))
    assert edges == sorted(edges)
    longest = max(sum(counts[begin:end]) for begin, end in pairwise(edges))
    assert longest <= sum(counts) / parts + 2 * max(counts)


@given(st.integers(1, 100), PARTS)
def test_streams_with_one_row_each_are_shared_evenly(count: int, parts: int) -> None:
    edges = Batch.one_each(np.arange(count)).split(parts)
    assert (edges[0], edges[-1]) == (0, count)
    sizes = [end - begin for begin, end in pairwise(edges)]
    assert len(sizes) == parts and max(sizes) - min(sizes) <= 1
