"""Loss against budget: computed aside, between the bound and silence."""

from __future__ import annotations

import threading
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
        assert found.silence is not None and point.loss <= found.silence + 1e-9
        assert point.charged <= point.epsilon + 1e-9
    readouts.close()


def test_a_far_sighted_release_is_tried_as_it_is_served() -> None:
    spec = ReleaseSpec(epsilon=0.5, method="far-sighted")
    readouts = Readouts(FixedReleases([stream_release(spec, sticky(BITS, 0.9))]), PlanDesk(300.0))
    while (found := finished(readouts, PlanQuery(epsilon="0.5"))).served is None or (
        found.served.status == "computing"
    ):
        time.sleep(0.02)
    (step,) = found.points
    assert found.served_method == "far-sighted" and "not on the curve" in found.served_remark
    assert found.served.loss is not None and step.loss is not None
    assert found.served.charged is not None and step.charged is not None
    # It spends where it pays later: more leaks on average, never more than the cap of a step.
    assert step.charged < found.served.charged <= 0.5 and found.served.loss < step.loss
    readouts.close()


def test_a_release_that_is_on_the_curve_says_so_and_names_silence() -> None:
    release = stream_release(ReleaseSpec(epsilon=0.0001), sticky(BITS, 0.5))
    readouts = Readouts(FixedReleases([release]))
    found = finished(readouts, PlanQuery(epsilon="0.0001"))
    assert found.served is None and "works so itself" in found.served_remark
    assert found.remarks[0].startswith("a constant may do as well")
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
    assert readouts.plan(PlanQuery(epsilon="0.77")).points[0].status == "unknown"


def test_what_is_asked_last_is_tried_first(monkeypatch: pytest.MonkeyPatch) -> None:
    desk, held, tried = PlanDesk(), threading.Event(), list[float]()

    def compute(plan: object, asked: tuple[str, float]) -> None:
        assert held.wait(100.0)
        tried.append(asked[1])

    monkeypatch.setattr(desk, "_compute", compute)
    release = stream_release(ReleaseSpec(epsilon=0.4), sticky(BITS, 0.9))
    readouts = Readouts(FixedReleases([release]), desk)
    readouts.plan(PlanQuery(epsilon="0.1"))  # begun at once
    while desk._waiting:
        time.sleep(0.01)
    for asked in ("0.2,0.3,0.4", "0.5", "0.3"):
        readouts.plan(PlanQuery(epsilon=asked))
    held.set()
    while len(tried) < 5:
        time.sleep(0.01)
    assert tried == [0.1, 0.3, 0.5, 0.4, 0.2]
    readouts.close()


def test_no_more_wait_than_may(monkeypatch: pytest.MonkeyPatch) -> None:
    desk, held = PlanDesk(), threading.Event()
    monkeypatch.setattr(desk, "_compute", lambda plan, asked: held.wait(100.0))
    release = stream_release(ReleaseSpec(epsilon=0.4), sticky(BITS, 0.9))
    readouts = Readouts(FixedReleases([release]), desk)
    for first in range(1, 200, 10):
        asked = ",".join(str((first + k) / 100) for k in range(10))
        assert {one.status for one in readouts.plan(PlanQuery(epsilon=asked)).points} == {
            "computing"
        }
    assert len(desk._waiting) <= 64 and len(desk._points) <= 66
    held.set()
    readouts.close()


def test_after_a_fault_somebody_else_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = PlanDesk()
    release = stream_release(ReleaseSpec(epsilon=0.4), sticky(BITS, 0.9))
    readouts = Readouts(FixedReleases([release]), desk)

    def broken(plan: object, asked: object) -> None:
        raise RuntimeError("a fault")

    told = list[str]()
    with monkeypatch.context() as patched:
        patched.setattr(desk, "_compute", broken)
        patched.setattr(threading, "excepthook", lambda given: told.append(str(given.exc_value)))
        assert finished(readouts, PlanQuery(epsilon="0.3")).points[0].status == "unknown"
        while not told:
            time.sleep(0.01)
    assert told == ["a fault"]
    assert finished(readouts, PlanQuery(epsilon="0.5")).points[0].status == "ready"
    readouts.close()


def test_other_jobs_say_why_there_is_no_forecast() -> None:
    readouts = Readouts(FixedReleases([series_release(5, 1)]))
    assert "job release" in readouts.plan(PlanQuery()).unavailable
