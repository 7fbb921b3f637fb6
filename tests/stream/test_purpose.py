"""A simulation is another plan: no kind of state goes from one to the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato import loss
from sfumato.core.alphabet import Alphabet
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import SIP
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness, keyed, secure, seeded
from sfumato.models.markov import MarkovChain
from sfumato.series.realtime import Realtime
from sfumato.series.series_methods import METHODS
from sfumato.series.series_spec import SeriesSpec
from sfumato.stream.release import BatchedRelease, InstantRelease
from sfumato.temporal.loss_function import LossFunction
from sfumato.temporal.temporal_mechanisms import Answer
from sfumato.temporal.temporal_plan import TemporalPlan
from sfumato.temporal.temporal_release import TemporalRelease

CHAIN = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
RULE: dict[str, Any] = {"budget": SIP(1.0), "loss": loss.hamming(CHAIN.alphabet)}
SERIES = Realtime.laplace(1.0, epsilon=1.0, length=9)


def instant(state: Any, purpose: Purpose, coins: Randomness) -> Any:
    release = InstantRelease(CHAIN, **RULE, state=state, purpose=purpose, randomness=coins)
    release(0)
    return release.state


def batched(state: Any, purpose: Purpose, coins: Randomness) -> Any:
    how: Any = {"state": state, "purpose": purpose, "randomness": coins}
    release = BatchedRelease(CHAIN, width=2, **RULE, **how)
    list(release.over([0, 1]))
    return release.state


def realtime(state: Any, purpose: Purpose, coins: Randomness) -> Any:
    if state is None:
        running = SERIES.begin(coins, purpose=purpose)
    else:
        running = SERIES.begin(coins, purpose=purpose, state=state)
    running.step(1.0)
    return running.state


@pytest.mark.parametrize("release", [instant, batched, realtime])
@pytest.mark.parametrize("first", Purpose)
def test_a_state_is_continued_for_its_own_purpose_only(
    release: Callable[[Any, Purpose, Randomness], Any], first: Purpose
) -> None:
    second = next(purpose for purpose in Purpose if purpose is not first)
    begun = release(None, first, _coins(first))
    assert release(begun, first, _coins(first)) is not None
    for coins in (secure(), _coins(second)):
        with pytest.raises(InvalidParameter, match=r"must (come from|be the one)"):
            release(begun, second, coins)


def _coins(purpose: Purpose) -> Randomness:
    return secure() if purpose is Purpose.RELEASE else seeded(1)


@pytest.mark.parametrize("name", METHODS)
def test_every_series_method_has_a_plan_for_each_purpose(name: str) -> None:
    method = METHODS[name].make(SeriesSpec(1.0, 2.5, 1e-6, 12, 4, truth=np.arange(12.0)))
    key = keyed(b"a secret of sixteen bytes or more")
    plans = {method.own_coins(key, "flights", purpose).plan for purpose in Purpose}
    assert len(plans) == len(Purpose)


def test_a_temporal_release_has_a_plan_for_each_purpose() -> None:
    chain = LossFunction.of([[0.8, 0.2], [0.2, 0.8]])
    plan, make = TemporalPlan(chain, chain, 1.0), Answer.of(Alphabet("ab"))
    prints = {TemporalRelease(plan, make, purpose=one).plan.fingerprint for one in Purpose}
    assert len(prints) == len(Purpose)
