"""All streams at one look: counted once, then by what is new; and a hint of drift."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.service import fleet_overview
from sfumato.service.drift_hint import LEAST
from sfumato.service.fleet_overview import Activity
from sfumato.service.readout_queries import DriftQuery, ReleaseQuery
from sfumato.service.readouts import Readouts
from sfumato.store.live import Answered, Reason, Refused, Reply, Waiting
from sfumato.store.live_columns import ReplyColumns
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.stream.remarks import ABSURD, large_total
from tests.service.example_releases import (
    BITS,
    PLACES,
    FixedReleases,
    answer_stream,
    series_release,
    sticky,
    stream_release,
    temporal_release,
    walked,
)

ASKED = ReleaseQuery()


def test_what_is_new_is_enough_to_know_all(tmp_path: Path) -> None:
    model = sticky(BITS, 0.9)
    spec = ReleaseSpec(budget=3.0, horizon=6, when_exhausted="suppress")
    release = stream_release(spec, model, path=tmp_path / "a.ledger")
    kept = Readouts(FixedReleases([release]))
    for round_ in range(4):
        for number in range(5):
            answer_stream(release, f"s{number}", walked(model, 1 + number % 3, round_), seed=round_)
        found = kept.overview(ASKED)
        fresh = Readouts(FixedReleases([release])).overview(ASKED)
        assert found == fresh
        assert found.complete and found.streams == sum(found.left) == 5
    steps = [4 * (1 + number % 3) for number in range(5)]
    assert found.exhausted == sum(count >= 6 for count in steps) == 3
    assert found.left[0] >= 3 and found.entries == sum(steps)
    release.store.close()


def test_counting_many_streams_is_done_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    model = sticky(BITS, 0.9)
    release = stream_release(ReleaseSpec(epsilon=0.3), model)
    for number in range(7):
        answer_stream(release, f"s{number}", ["no"])
    monkeypatch.setattr(fleet_overview, "_PAGE", 2)
    monkeypatch.setattr(fleet_overview, "_SECONDS", -1.0)
    readouts = Readouts(FixedReleases([release]))
    assert not readouts.overview(ASKED).complete
    monkeypatch.setattr(fleet_overview, "_SECONDS", 10.0)
    found = readouts.overview(ASKED)
    assert found.complete and found.streams == 7 and found.left == []


def test_totals_are_told_where_nothing_limits_them() -> None:
    model = sticky(BITS, 0.9)
    release = stream_release(ReleaseSpec(epsilon=2.0), model)
    sums = []
    for name, length in (("a", 2), ("b", 3), ("c", 12)):
        answers = answer_stream(release, name, walked(model, length, 1))
        sums.append(sum(answer.leakage for answer in answers))
    found = Readouts(FixedReleases([release])).overview(ASKED).totals
    assert found is not None and found.median == pytest.approx(sums[1])
    assert found.largest == pytest.approx(sums[2]) and found.largest > ABSURD
    assert found.warning == large_total(found.largest)
    total = stream_release(ReleaseSpec(budget=4.0, horizon=8), model)
    answer_stream(total, "a", ["no"])
    assert Readouts(FixedReleases([total])).overview(ASKED).totals is None


def test_a_window_is_as_full_as_its_last_steps_leave_it() -> None:
    model = sticky(BITS, 0.9)
    release = stream_release(ReleaseSpec(budget=2.0, window=4), model)
    answers = answer_stream(release, "ann", walked(model, 9, 1))
    left = 1 - sum(answer.leakage for answer in answers[-3:]) / 2.0
    found = Readouts(FixedReleases([release])).overview(ASKED)
    assert found.left[int(left * 10)] == 1 and found.exhausted == 0


def test_series_and_temporal_streams_are_counted_too() -> None:
    done = Readouts(FixedReleases([series_release(4, 4)])).overview(ASKED)
    assert (done.streams, done.exhausted, done.left[0]) == (1, 1, 1)
    endless = Readouts(FixedReleases([temporal_release(4)])).overview(ASKED)
    assert (endless.streams, endless.exhausted, endless.left[-1]) == (1, 0, 1)


def test_minutes_pass_and_are_forgotten() -> None:
    seen = Activity()
    first: list[Reply] = [Answered(()), Answered((), repeated=True), Waiting(2)]
    second: list[Reply] = [Refused(Reason.VALUE, ""), Refused(Reason.BUDGET, "")]
    seen.saw(ReplyColumns(len(first), others=dict(enumerate(first))), now=0.0)
    seen.saw(ReplyColumns(len(second), others=dict(enumerate(second))), now=60.0)
    told = seen.minutes(now=61.0)
    assert len(told) == 60
    assert (told[-2].answered, told[-2].repeated, told[-1].refused) == (1, 1, 2)
    assert seen.refused() == {"value": 1, "budget": 1}
    later = seen.minutes(now=60.0 * 61)
    assert sum(minute.answered + minute.refused for minute in later) == 0


def test_no_drift_is_seen_where_values_move_as_the_model_says() -> None:
    model = sticky(PLACES, 0.8)
    release = stream_release(ReleaseSpec(epsilon=1.5), model)
    for number in range(3):
        answer_stream(release, f"s{number}", walked(model, 60, number), seed=number)
    found = Readouts(FixedReleases([release])).drift(DriftQuery())
    assert found.false_alarm is not None and found.false_alarm > 0.05
    assert found.log_capital is not None and not found.alarm and "however often" in found.proof
    assert found.outputs >= LEAST and abs(sum(one.observed for one in found.shares)) > 0


def test_drift_is_seen_where_they_do_not() -> None:
    model = sticky(PLACES, 0.8)
    release = stream_release(ReleaseSpec(epsilon=1.5), model)
    for number in range(3):  # always at home, which the model does not expect
        answer_stream(release, f"s{number}", ["home"] * 60, seed=number)
    found = Readouts(FixedReleases([release])).drift(DriftQuery())
    assert found.false_alarm is not None and found.false_alarm < 1e-3
    assert found.shares[0].symbol == "home" and found.shares[0].surprise > 3
    assert "compare the model" in found.hint
    assert found.alarm and "values stay" in found.proof


def test_a_hint_needs_enough_outputs() -> None:
    model = sticky(BITS, 0.9)
    release = stream_release(ReleaseSpec(epsilon=0.5), model)
    answer_stream(release, "ann", ["no"] * 3)
    found = Readouts(FixedReleases([release])).drift(DriftQuery())
    assert found.unavailable and found.false_alarm is None
