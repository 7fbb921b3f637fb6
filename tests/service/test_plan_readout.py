"""Loss against budget: computed aside, between the bound and silence."""

from __future__ import annotations

import time

import pytest

from sfumato.service.fleet_documents import PlanDocument
from sfumato.service.plan_readout import PlanDesk
from sfumato.service.readout_queries import PlanQuery
from sfumato.service.readouts import Readouts
from sfumato.stream.release_spec import ReleaseSpec
from tests.service.example_releases import (
    BITS,
    FixedReleases,
    series_release,
    sticky,
    stream_release,
)


def finished(readouts: Readouts, query: PlanQuery) -> PlanDocument:
    """The document once nothing is computed any more."""
    while True:
        found = readouts.plan(query)
        if all(point.status != "computing" for point in found.points):
            return found
        time.sleep(0.02)


@pytest.mark.parametrize(
    "spec",
    [
        ReleaseSpec(epsilon=0.4),
        ReleaseSpec(budget=8.0, horizon=20),
        ReleaseSpec(budget=4.0, window=10),
        ReleaseSpec(epsilon=0.4, batch=2),
    ],
)
def test_losses_lie_between_the_bound_and_silence(spec: ReleaseSpec) -> None:
    readouts = Readouts(FixedReleases([stream_release(spec, sticky(BITS, 0.9))]))
    found = finished(readouts, PlanQuery(epsilon="0.2,0.8,2.0"))
    assert found.epsilon == pytest.approx(0.4) and found.silence == pytest.approx(0.5)
    assert [point.epsilon for point in found.points] == [0.2, 0.8, 2.0]
    assert found.unit == "wrong"
    losses = [point.loss for point in found.points]
    assert losses == sorted(losses, reverse=True)  # type: ignore[type-var]
    for point in found.points:
        assert point.loss is not None and point.low is not None and point.high is not None
        assert point.floor is not None and point.charged is not None
        assert point.floor <= point.high and point.low <= point.loss <= point.high
        assert point.loss <= found.silence + 1e-9 and point.charged <= point.epsilon + 1e-9
    readouts.close()


def test_what_was_computed_is_kept() -> None:
    readouts = Readouts(
        FixedReleases([stream_release(ReleaseSpec(epsilon=0.4), sticky(BITS, 0.9))])
    )
    asked = PlanQuery(epsilon="0.5")
    assert readouts.plan(asked).points[0].status in ("computing", "ready")
    first = finished(readouts, asked)
    readouts.close()
    assert readouts.plan(asked) == first  # also when nobody computes any more


def test_what_takes_too_long_is_given_up_and_says_so() -> None:
    release = stream_release(ReleaseSpec(epsilon=0.4), sticky(BITS, 0.9))
    readouts = Readouts(FixedReleases([release]), PlanDesk(seconds=-1.0))
    assert finished(readouts, PlanQuery()).points[0].status == "too slow"
    readouts.close()


def test_closing_does_not_wait_for_what_was_asked() -> None:
    release = stream_release(ReleaseSpec(epsilon=0.4), sticky(BITS, 0.9))
    readouts = Readouts(FixedReleases([release]))
    readouts.plan(PlanQuery(epsilon=",".join(str(0.1 * k) for k in range(1, 16))))
    readouts.close()
    assert readouts.plan(PlanQuery(epsilon="0.77")).points[0].status == "too slow"


def test_other_jobs_say_why_there_is_no_forecast() -> None:
    readouts = Readouts(FixedReleases([series_release(5, 1)]))
    assert "job release" in readouts.plan(PlanQuery()).unavailable
