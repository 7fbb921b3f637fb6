"""What methods remember, stored and read again: to the last unit."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.state import SeriesState
from sfumato.series.memory import Memory
from sfumato.store.codec import from_bytes, to_bytes

whole = st.integers(-(2**100), 2**100)


@dataclass(slots=True)
class Sums(Memory):
    growing = frozenset({"places"})

    noise: list[int]
    sum: int = 0
    level: float = float("nan")
    places: list[int] = field(default_factory=list)
    ring: Floats = field(default_factory=lambda: np.zeros(2))


def read_again(memory: Sums, levels: int) -> Sums:
    state = from_bytes(to_bytes(SeriesState("plan", 0, memory.arrays())), SeriesState)
    fresh = Sums([0] * levels)
    fresh.restore(state.arrays)
    return fresh


@given(st.lists(whole, min_size=1, max_size=4), whole, st.lists(whole, max_size=4))
@example([2**53 + 1, -(2**53) - 1], 2**53 + 1, [2**53 + 3])
@example([1, 2], 2**53, [])
def test_whole_numbers_of_any_size_keep_every_unit(
    noise: list[int], total: int, places: list[int]
) -> None:
    found = read_again(Sums(noise, total, places=places), len(noise))
    assert (found.noise, found.sum, found.places) == (noise, total, places)
    assert all(type(each) is int for each in (*found.noise, found.sum, *found.places))
    assert np.isnan(found.level) and found.ring.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "wrong", [{"noise": np.zeros(3)}, {"noise": np.zeros((2, 3))}, {"sum": np.zeros(3)}]
)
def test_other_shapes_are_refused(wrong: dict[str, Floats]) -> None:
    with pytest.raises(InvalidParameter, match="arrays"):
        Sums([0, 0]).restore(Sums([0, 0]).arrays() | wrong)
