"""Eight words side by side are what eight words alone are."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from sfumato.core.lane_words import below, down, eight, in_all, put_eight, turned, up
from sfumato.core.sha256_loops import Words32

words = st.lists(st.integers(0, 2**32 - 1), min_size=16, max_size=16)


# Not kept on disk: a loop of a test would not see that what it calls has changed.
@njit(error_model="numpy")
def _all(given: Words32, places: int, value: int, found: Words32) -> None:
    one, other = eight(given, 0), eight(given, 1)
    put_eight(found, 0, one + other)
    put_eight(found, 1, (one ^ other) & in_all(value))
    put_eight(found, 2, down(one, places))
    put_eight(found, 3, up(one, places))
    put_eight(found, 4, turned(one, places))
    put_eight(found, 5, below(value, one, other, one | other))


@given(words, st.integers(1, 31), st.integers(0, 2**32 - 1))
def test_lanes_are_what_words_alone_are(given: list[int], places: int, value: int) -> None:
    found = np.empty(48, dtype=np.uint32)
    _all(np.array(given, dtype=np.uint32), places, value, found)
    whole = 2**32 - 1
    pairs = list(zip(given[:8], given[8:], strict=True))
    assert found.reshape(6, 8).tolist() == [
        [(a + b) & whole for a, b in pairs],
        [(a ^ b) & value for a, b in pairs],
        [a >> places for a, _ in pairs],
        [a << places & whole for a, _ in pairs],
        [(a >> places | a << 32 - places) & whole for a, _ in pairs],
        [b if value < a else a | b for a, b in pairs],
    ]
