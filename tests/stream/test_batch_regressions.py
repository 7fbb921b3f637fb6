"""Laws of batches that were once broken: each was found by trying to break the code."""

import itertools
import linecache
import math
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.belief import Belief
from sfumato.core.errors import InvalidParameter
from sfumato.stream import batch_loss
from sfumato.stream.partition.batch_beliefs import unrolled
from sfumato.stream.partition.batch_design import design_batch


@pytest.mark.slow
def test_deep_trees_of_boxes_are_walked_without_recursion() -> None:
    chain = sf.MarkovChain.from_matrix(np.full((300, 300), 1 / 300))
    loss = batch_loss.additive(sf.loss.hamming(chain.alphabet))
    found = design_batch(chain, chain.first(), 50, loss, 5.0)
    assert found.design.sip.epsilon <= 5.0


@pytest.mark.parametrize("width", [40, 120])
def test_histograms_that_hardly_occur_do_not_stop_a_long_batch(width: int) -> None:
    chain = sf.MarkovChain.from_matrix([[1 - 1e-6, 1e-6]] * 2)
    loss = batch_loss.histogram(chain.alphabet)
    found = design_batch(chain, chain.first(), width, loss, 2.0)
    assert found.partition.cell([1] * width) == found.partition.cell([1] * (width - 1) + [0])
    assert found.design.sip.epsilon <= 2.0


def test_rows_off_by_rounding_are_within_the_bound_of_a_batch_belief() -> None:
    size, width = 16, 3
    rows = np.full((size, size), 1 / size)
    rows[::2] *= 1 + 3.6 * size * 2.0**-53
    rows[1::2] *= 1 - 3.6 * size * 2.0**-53
    chain = sf.MarkovChain.from_matrix(rows, np.full(size, 1 / size))
    told = unrolled(chain, chain.first(), width)
    exact = [[Fraction(float(p)) for p in row] for row in chain.transition()]
    normal = [[p / sum(row) for p in row] for row in exact]
    logs = []
    for code in range(size**width):
        first, second, third = code // size**2, code // size % size, code % size
        true = Fraction(1, size) * normal[first][second] * normal[second][third]
        logs.append(float(Fraction(float(told.masses[code])) / true - 1))
    assert (max(logs) - min(logs)) / 2 <= told.error


@pytest.mark.parametrize(
    "belief",
    [
        Belief(np.array([0.5, 0.25, 0.25])),
        Belief(np.array([1.5, -0.5])),
        Belief(np.array([1.0, 0.0])),
        Belief(np.array([0.5, 0.5]), drift=math.nan),
        Belief(np.array([0.5, 0.5]), drift=-1.0),
        Belief(np.array([0.5, 0.5]), drift=math.inf),
        Belief(np.array([0.9, 0.9])),
    ],
)
@pytest.mark.parametrize("listed", [1, 4096])
def test_a_batched_plan_refuses_a_belief_that_is_none(belief: Belief, listed: int) -> None:
    chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
    loss = batch_loss.additive(sf.loss.hamming(chain.alphabet))
    plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), loss, 2, listed=listed)
    state = replace(plan.begin("s"), belief=belief)
    with pytest.raises(InvalidParameter, match="belief"):
        plan.step(state, [0, 1], sf.secure())


def test_ctrl_c_leaves_a_batch_waiting_or_released_never_lost() -> None:
    chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
    for line in itertools.count(1):
        release = sf.BatchedRelease(
            chain, width=2, budget=sf.SIP(0.5), loss=sf.loss.hamming(chain.alphabet)
        )
        release.add(0)
        seen = 0

        def interrupt(frame: object, event: str, argument: object, most: int = line) -> object:
            nonlocal seen
            code = getattr(frame, "f_code", None)
            if code is not None and code.co_filename.endswith("stream/release.py"):
                here = linecache.getline(code.co_filename, frame.f_lineno)  # type: ignore[attr-defined]
                # A lock is taken and given back in C, where no signal breaks in; a tracer would.
                seen += event == "line" and "with self._lock" not in here
                if seen == most:
                    raise KeyboardInterrupt
            return interrupt

        before = sys.gettrace()
        sys.settrace(interrupt)  # type: ignore[arg-type]
        try:
            release.add(1)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        assert (release.state.sequence, release.waiting) in {(0, 1), (2, 0)}
        if seen < line:
            break
    assert line > 5
