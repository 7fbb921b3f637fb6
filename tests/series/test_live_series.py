"""Live numbers: each stream is a series of its own."""

import sqlite3
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
from sfumato.series.series_audit import audit_series
from sfumato.series.series_ledger import SeriesLedger, rules_document
from sfumato.series.series_methods import series_method
from sfumato.series.series_spec import SeriesSpec
from sfumato.store.live import Answered, Asked, Reason
from sfumato.store.protocol import Identity
from tests.contracts.live_laws import (
    FEW,
    SECRET,
    LiveLaws,
    Opened,
    coins_or_fresh,
    ledger,
    reason,
    single,
)
from tests.contracts.live_stores import Place
from tests.shell.commands import run as command

SPEC = SeriesSpec(1.0, 2.0, length=60, method="laplace", interval=(0.0, 50.0))


def rules_of(spec: SeriesSpec, purpose: Purpose = Purpose.RELEASE) -> bytes:
    """The rules of a release of series."""
    return msgspec.json.encode(rules_document(series_method(spec), spec, purpose))


class TestLiveSeries(LiveLaws):
    """Numbers under independent noise."""

    readable = (10.0, 20.5, 30, "12.25")
    unreadable = ("many", "", float("nan"), True, [1.0], 10**400)
    most_spent = 2.0 * (1 + 1e-9)
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
            release_series(values, self.spec, ledger=asked, randomness=keyed(SECRET))

    def events(self, *given: Any, **options: Any) -> list[Asked]:
        # A series by event ids keeps no times: there they are not compared.
        return super().events(*given, **options)


class TestLiveFilters(TestLiveSeries):
    """Numbers, some missing, under a bank of filters with a period."""

    spec = replace(SPEC, method="realtime", estimate=seasonal(3))
    readable = (10.0, 20.5, 30, None)
    most_spent = float("inf")  # squared ratios, not epsilons: the audit adds them up
