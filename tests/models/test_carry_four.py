"""Four streams that are carried forward side by side end where each would alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from sfumato.core.arrays import Floats, Ints
from sfumato.models.carry_loops import carry_four
from sfumato.models.chain_loops import Known, advance


# Not kept on disk: a loop of a test would not see that what it calls has changed.
@njit(error_model="numpy")
def _carried(
    joints: Floats, which: Ints, known: Known, backoff: Floats, background: Floats, work: Floats
) -> bool:
    return carry_four(joints, which, known, backoff, background, work)


@given(st.integers(1, 19), st.integers(0, 2**32 - 1))
def test_four_streams_are_carried_as_each_alone(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    joints, known = rng.random((6, size)), rng.dirichlet(np.ones(size), size)
    backoff, background = rng.random(size), rng.dirichlet(np.ones(size))
    which, alone = np.array([4, 0, 5, 2]), joints.copy()
    moments, drifts = np.zeros(6, dtype=np.int64), np.zeros(6)
    advance(alone, moments, drifts, which, known, backoff, background, np.empty(size))
    assert _carried(joints, which, known, backoff, background, np.empty(8 * size))
    assert np.array_equal(joints, alone)
