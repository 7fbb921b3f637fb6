"""A series with a ledger is answered once, whatever happens; and an audit finds what is planted."""

import math
import sqlite3
from dataclasses import asdict, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.certificate import certificate_document
from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness, keyed, secure, seeded
from sfumato.series import series_ledger
from sfumato.series.calendar import Season
from sfumato.series.realtime import Realtime
from sfumato.series.realtime_run import ReleasedSeries, release_series
from sfumato.series.series_audit import SeriesAudit, audit_series
from sfumato.series.series_ledger import SeriesLedger
from sfumato.series.series_spec import SeriesSpec
from sfumato.store.ledger_reader import LedgerReader
from sfumato.store.protocol import Again, Identity, LedgerMismatch
from sfumato.tables.problems import BadTable
from tests.contracts.series_laws import SECRET, CountedCoins

SPEC = SeriesSpec(1.0, 2.0, length=40)
VALUES: list[float | None] = [round(100 + 20 * math.sin(moment / 5), 1) for moment in range(40)]
DAYS = [str(date(2011, 1, 1) + timedelta(days=day)) for day in range(40)]


def ledger(folder: Path, rows: range = range(40), **options: Any) -> SeriesLedger:
    given: dict[str, Any] = {"identity": Identity.TIME, "keys": [DAYS[row] for row in rows]}
    return SeriesLedger(folder / "year.ledger", "days.csv", "cnt", **given | options)


def released(
    where: SeriesLedger,
    values: list[float | None],
    spec: SeriesSpec = SPEC,
    coins: Randomness | None = None,
    purpose: Purpose = Purpose.RELEASE,
) -> ReleasedSeries:
    given = coins or secure()
    return release_series(values, spec, ledger=where, randomness=given, purpose=purpose)


@pytest.mark.parametrize("method", ["realtime", "laplace", "bd", "ba", "event-gaussian"])
def test_a_retry_gets_its_old_answer_and_draws_nothing(tmp_path: Path, method: str) -> None:
    spec = replace(SPEC, method=method)
    first = released(ledger(tmp_path, range(25)), VALUES[:25], spec)
    coins = CountedCoins()
    again = released(ledger(tmp_path, range(25)), VALUES[:25], spec, coins)
    assert again.values == first.values and coins.taken == 0
    whole = released(ledger(tmp_path), VALUES, spec)
    assert whole.values[:25] == first.values and len(whole.values) == 40
    later = released(ledger(tmp_path, range(30, 40)), VALUES[30:], spec, coins)
    assert later.values == whole.values[30:] and coins.taken == 0


def test_files_of_new_rows_go_on_where_the_series_is(tmp_path: Path) -> None:
    """And phases of the calendar are those of the dates, not of the rows of a file."""

    def weekly(rows: range) -> SeriesSpec:
        days = [DAYS[row] for row in rows]
        return replace(SPEC, estimate=Season.of("weekday").estimate(days, "days.csv"))

    parts = [range(9), range(9, 10), range(10, 40)]
    for rows in parts:
        released(ledger(tmp_path, rows), [VALUES[row] for row in rows], weekly(rows))
    with LedgerReader(tmp_path / "year.ledger") as kept:
        told = [answer.released for answer in kept.history()]
        state = kept.position("cnt")
    assert len(told) == 40 and state is not None and state.sequence == 40
    whole = released(ledger(tmp_path), VALUES, weekly(range(40)), CountedCoins())
    assert whole.values == told


def test_after_a_kill_nothing_is_answered_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series_ledger, "_GROUP", 8)
    honest, calls = Realtime.step, []

    def killed(self: Realtime, *args: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return honest(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Realtime, "step", killed)
        with pytest.raises(KeyboardInterrupt):
            released(ledger(tmp_path), VALUES)
    with LedgerReader(tmp_path / "year.ledger") as kept:
        before = [answer.released for answer in kept.history()]
    assert len(before) == 16
    assert released(ledger(tmp_path), VALUES).values[:16] == before
    with LedgerReader(tmp_path / "year.ledger") as kept:
        assert kept.count() == 40


def test_rows_by_number_are_resumed_or_appended_and_never_guessed(tmp_path: Path) -> None:
    rows: Any = {"identity": Identity.ROW, "keys": ()}
    first = released(ledger(tmp_path, **rows), VALUES[:20])
    with pytest.raises(LedgerMismatch, match="--resume"):
        released(ledger(tmp_path, **rows), VALUES[:20])
    resumed = released(ledger(tmp_path, again=Again.RESUME, **rows), VALUES[:25])
    assert resumed.values[:20] == first.values and len(resumed.values) == 25
    with pytest.raises(LedgerMismatch, match="only 10 of them"):
        released(ledger(tmp_path, again=Again.RESUME, **rows), VALUES[:10])
    more = released(ledger(tmp_path, again=Again.APPEND, **rows), VALUES[25:])
    assert len(more.values) == 15


def test_two_ledgers_of_one_key_share_no_noise(tmp_path: Path) -> None:
    """Else two series under one name would be told by their difference."""
    plain = replace(SPEC, method="gaussian")
    told = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        done = released(ledger(tmp_path / name), VALUES, plain, keyed(SECRET))
        told.append(done.values)
    assert sum(one == other for one, other in zip(*told, strict=True)) < 10


@pytest.mark.parametrize(
    ("change", "problem", "words"),
    [
        ({"values": [7.0, *VALUES[1:]]}, LedgerMismatch, "another value"),
        ({"spec": replace(SPEC, epsilon=3.0)}, LedgerMismatch, "begun with another"),
        ({"spec": replace(SPEC, interval=(0.0, 50.0))}, LedgerMismatch, "begun with another"),
        ({"keys": [DAYS[0], *DAYS[:39]]}, LedgerMismatch, "must differ"),
        ({"keys": ["2010-12-31", *DAYS[:39]]}, LedgerMismatch, "after those"),
        ({"spec": replace(SPEC, method="pegasus")}, InvalidParameter, "memory tells nothing"),
        ({"purpose": Purpose.SIMULATION}, LedgerMismatch, "simulation"),
    ],
)
def test_what_is_no_retry_is_refused_and_draws_nothing(
    tmp_path: Path, change: dict[str, Any], problem: type[Exception], words: str
) -> None:
    released(ledger(tmp_path, range(30)), VALUES[:30])
    coins, keys = CountedCoins(), change.pop("keys", DAYS)
    given: dict[str, Any] = {"values": VALUES, "spec": SPEC, "purpose": Purpose.RELEASE} | change
    with pytest.raises(problem, match=words):
        released(ledger(tmp_path, keys=keys), coins=coins, **given)
    assert coins.taken == 0


def test_more_values_than_the_budget_is_for_and_times_that_go_back_are_refused(
    tmp_path: Path,
) -> None:
    short = replace(SPEC, length=30, method="bd")
    released(ledger(tmp_path, range(10, 30)), VALUES[10:30], short)
    coins = CountedCoins()
    days = [*DAYS[10:], "2012-01-01"]
    with pytest.raises(InvalidParameter, match="at most 30 values"):
        released(ledger(tmp_path, keys=days), [*VALUES[10:], 100.0], short, coins)
    with pytest.raises(BadTable, match="before that of the row above"):
        released(ledger(tmp_path, range(5)), VALUES[:5], short, coins)
    assert coins.taken == 0


# Audits -------------------------------------------------------------------------------------------


def audited(done: ReleasedSeries, where: Path | None, **change: Any) -> SeriesAudit:
    certificate = certificate_document(done.certificate) | change
    return audit_series(certificate, done.values, where)


@pytest.mark.parametrize("method", ["realtime", "gaussian", "laplace", "binomial", "bd", "ba"])
def test_an_honest_series_passes_and_says_what_cannot_be_told(tmp_path: Path, method: str) -> None:
    spec = replace(SPEC, method=method, interval=(0.0, 200.0))
    done = released(ledger(tmp_path), VALUES, spec)
    report = audited(done, tmp_path / "year.ledger")
    assert report.problems == [] and report.rows == 40
    assert report.epsilon == done.certificate.epsilon
    assert any("sensitivity" in what for what in report.unchecked)
    assert audited(done, None).passed
    assert audit_series(None, None, tmp_path / "year.ledger").passed
    estimated = any("estimates" in what for what in report.unchecked)
    assert estimated == (method not in ("gaussian", "laplace"))


def test_lies_of_output_and_certificate_are_found(tmp_path: Path) -> None:
    done = released(ledger(tmp_path), VALUES, replace(SPEC, method="gaussian"))
    where = tmp_path / "year.ledger"
    for change, words in (
        ({"epsilon": 0.5}, "says epsilon"),
        ({"unit": "event level"}, "says event level"),
        ({"sensitivity": 9.0}, "another sensitivity"),
        ({"rules": done.certificate.rules | {"sensitivity": 0.1}}, "not those of the plan"),
    ):
        report = audited(done, None if "rules" in change else where, **change)
        assert any(words in problem for problem in report.problems), change
    moved = replace(done, values=[0.1, *done.values[1:]])
    problems = audited(moved, where).problems
    assert any("does not hold" in problem for problem in problems)
    assert any("no point of the lattice" in problem for problem in problems)
    with pytest.raises(CorruptData, match="rules"):
        audited(done, None, rules={})


@pytest.mark.parametrize(
    ("method", "column", "value", "words"),
    [
        ("realtime", "leakage", 0.0, "the charge is 0.0"),
        ("bd", "leakage", 0.0, "none was paid for"),
        ("bd", "leakage", 9.0, "over the budget"),
        ("realtime", "released", 1.0, "was changed"),
    ],
)
def test_lies_of_the_ledger_are_found(
    tmp_path: Path, method: str, column: str, value: float, words: str
) -> None:
    where = tmp_path / "year.ledger"
    wild = [1e6 * (-1) ** moment for moment in range(40)]  # a step publishes almost always
    released(ledger(tmp_path), list(wild), replace(SPEC, method=method, epsilon=20.0))
    assert audit_series(None, None, where).passed
    with sqlite3.connect(where) as database:
        database.execute(f"UPDATE events SET {column} = ? WHERE sequence < 2", (value,))
    problems = audit_series(None, None, where).problems
    assert any(words in problem for problem in problems), problems


def test_a_simulation_fails_unless_it_is_meant(tmp_path: Path) -> None:
    done = released(ledger(tmp_path), VALUES, coins=seeded(1), purpose=Purpose.SIMULATION)
    assert "simulation" in audited(done, None).problems[0]
    certificate = certificate_document(done.certificate)
    assert audit_series(certificate, done.values, None, simulation=True).passed
    assert asdict(audited(done, None))["purpose"] == "simulation"
