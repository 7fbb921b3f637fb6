"""Live numbers: each stream is a series of its own."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sfumato.core.errors import CorruptData, InsecureRandomness, InvalidParameter
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness, keyed, secure, seeded
from sfumato.series.calendar import Season
from sfumato.series.filter_banks import seasonal
from sfumato.series.live_series import live_method, open_release
from sfumato.series.realtime_run import release_series
from sfumato.series.series_ledger import SeriesLedger, rules_document
from sfumato.series.series_methods import series_method
from sfumato.series.series_spec import SeriesSpec
from sfumato.store.live import Answered, Asked
from sfumato.store.protocol import Identity
from tests.contracts.live_laws import (
    FEW,
    SECRET,
    LiveLaws,
    Opened,
    coins_or_fresh,
    single,
    table_coins,
)
from tests.contracts.live_stores import Place
from tests.shell.running import Result, call

SPEC = SeriesSpec(1.0, 2.0, length=60, method="laplace", interval=(0.0, 50.0))


def rules_of(spec: SeriesSpec, purpose: Purpose = Purpose.RELEASE) -> bytes:
    """The rules of a release of series."""
    return msgspec.json.encode(rules_document(series_method(spec), spec, purpose))


class TestLiveSeries(LiveLaws):
    """Numbers under independent noise."""

    readable: Sequence[Any] = (10.0, 20.5, 30, "12.25")
    unreadable: Sequence[Any] = ("many", "", float("nan"), True, [1.0], 10**400)
    most_spent = 2.0 * (1 + 1e-9)
    timed = False
    spec = SPEC

    def open(
        self, place: Any, coins: Randomness | None = None, *, few: bool = False, source: str = "x"
    ) -> Opened:
        rules = rules_of(replace(self.spec, length=FEW) if few else self.spec)
        return open_release(rules, None, None, place.open, coins_or_fresh(coins), source)

    def release_table(self, folder: Path, path: Path, events: list[Asked]) -> None:
        for stream in dict.fromkeys(one.stream for one in events):
            own = [one for one in events if one.stream == stream]
            asked = SeriesLedger(path, "day.csv", stream, Identity.EVENT, [one.id for one in own])
            values = [None if one.value is None else float(one.value) for one in own]
            release_series(values, self.spec, ledger=asked, randomness=table_coins(path))

    def audit(self, path: Path) -> Result:
        return call("audit", "--ledger", path)


class TestLiveFilters(TestLiveSeries):
    """Numbers, some missing, under a bank of filters with a period."""

    spec = replace(SPEC, method="realtime", estimate=seasonal(3))
    readable: Sequence[Any] = (10.0, 20.5, 30, None)
    most_spent = float("inf")  # squared ratios, not epsilons: the audit adds them up

    def events(self, *given: Any, **options: Any) -> list[Asked]:
        """A table of a series has at least one number."""
        events = super().events(*given, **options)
        first = {event.stream: event.id for event in reversed(events)}
        return [replace(one, value=1.5) if first[one.stream] == one.id else one for one in events]


def test_numbers_are_clamped_before_the_noise_and_after_it(tmp_path: Path) -> None:
    place = Place("memory", tmp_path)
    run, _ = open_release(rules_of(SPEC), None, None, place.open, secure(), "x")
    replies = run.answer([Asked(f"e{n}", "ann", 10.0**9) for n in range(20)])
    assert all(0.0 <= float(single(one).released or 0) <= 50.0 for one in replies)
    (same,) = run.answer([Asked("e0", "ann", 50)])  # the value that was released
    assert isinstance(same, Answered) and same.repeated
    assert run.conflicts == 0
    assert run.answer([Asked("e0", "ann", 49)]) == [same] and run.conflicts == 1


def test_two_series_and_two_ledgers_share_no_coins(tmp_path: Path) -> None:
    spec, told = replace(SPEC, interval=None), []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        place = Place("sqlite", tmp_path / name)
        run, store = open_release(rules_of(spec), None, None, place.open, keyed(SECRET), "x")
        told += [
            single(one).released for one in run.answer([Asked("a", "u", 0), Asked("b", "v", 0)])
        ]
        store.close()
    assert len({*told}) == 4


def test_an_audit_of_several_series_says_that_each_has_the_guarantee(tmp_path: Path) -> None:
    place = Place("sqlite", tmp_path)
    run, store = open_release(rules_of(SPEC), None, None, place.open, secure(), "x")
    run.answer([Asked(f"{stream}{n}", stream, 9.0) for stream in "ab" for n in range(3)])
    store.close()
    told = call("audit", "--ledger", place.path).out
    assert "6 values; each of 2 streams: PureDP(" in told and "60 values of a series" in told
    assert "a person in several of the streams has the sum" in told


@pytest.mark.parametrize(
    "spec",
    [
        replace(
            SPEC, method="realtime", estimate=Season.of("weekday").estimate(["2024-05-01"], "x")
        ),
        replace(SPEC, method="tree", interval=None),
    ],
    ids=["calendar", "secret"],
)
def test_what_the_rules_cannot_rebuild_or_no_store_may_keep_is_refused(spec: SeriesSpec) -> None:
    with pytest.raises(InvalidParameter):
        live_method(rules_of(spec))


def test_rules_that_were_changed_are_refused(tmp_path: Path) -> None:
    place = Place("sqlite", tmp_path)
    rules = rules_of(SPEC)
    for wrong in (b"{", b"[]", b"{}", rules.replace(b"2.0", b"9.0", 1)):
        with pytest.raises(CorruptData):
            open_release(wrong, None, None, place.open, secure(), "x")
    with pytest.raises(InsecureRandomness):
        open_release(rules, None, None, place.open, seeded(1), "x")
    assert not place.path.exists()
