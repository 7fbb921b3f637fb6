"""`release --per`: a budget for each day of event time, kept, resumed, audited and explained."""

import csv
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.oracles.period_sums import period_sums
from tests.shell.running import call, done, rows

TIMES = ("--time", "when", "--keep", "when")
DAILY = ("--budget", 2, "--per", "day", "--cap", 0.5, "--method", "calibrated", *TIMES)
GOES_ON = ("--when-exhausted", "suppress")
NIGHT = datetime(2024, 3, 30, 20)


def table(path: Path, begin: datetime, seed: int, zone: str = "") -> Path:
    """Two people at irregular times, over a midnight."""
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["user", "when", "place"])
        for user in ("ann", "bob"):
            now = begin
            for _ in range(25):
                now += timedelta(minutes=int(rng.integers(1, 40)))
                place = str(rng.choice(["home", "work", "park"]))
                writer.writerow([user, now.isoformat() + zone, place])
    return path


@pytest.fixture
def town(tmp_path: Path) -> Path:
    history = table(tmp_path / "history.csv", datetime(2024, 1, 1), 1)
    fitted = ("--stream", "user", "--value", "place", "-o", tmp_path / "town.model")
    done("fit", history, *fitted)
    return tmp_path


def charged(path: Path) -> list[tuple[str, str, float]]:
    return [(row["user"], row["when"], float(row["sip"])) for row in rows(path)]


def refused(*words: Any) -> str:
    """What is said of a call that is wrong; no table of private values is there after it."""
    result = call("release", *words)
    assert result.code == 2 and not Path(words[-1]).exists()
    return str(result.err)


def audited(town: Path, *given: Any) -> Any:
    return call("audit", town / "private.csv", "--model", town / "town.model", *given)


@pytest.mark.parametrize("zone", ["", "+02:00"])
def test_no_day_is_passed_each_is_used_and_an_audit_says_so(town: Path, zone: str) -> None:
    live, private = table(town / "live.csv", NIGHT, 2, zone), town / "private.csv"
    given = ("-m", town / "town.model", *DAILY, *GOES_ON, "-o", private)
    done("release", live, *given)
    sums = period_sums("day", charged(private))
    assert len(sums) == 4
    assert all(1.99 < spent <= 2 for spent in sums.values())
    found = audited(town, "--require-budget", "2/day")
    assert found.code == 0 and "in each day of event time" in found.out
    assert "period" in found.out
    assert audited(town, "--require-budget", "14/week").code == 0
    assert audited(town, "--require-budget", "1.9/day").code == 1
    assert audited(town, "--require-budget", "4/stream").code == 1
    assert audited(town, "--require-budget", "0.5/value").code == 0
    words = done("explain", f"{private}.plan.json").out
    assert "Periods follow from column 'when'" in words and "model changes" not in words
    assert "In each day of event time" in words and "twice as much" in words


def test_a_ledger_goes_on_in_the_middle_of_a_day(town: Path) -> None:
    key = town / "town.key"
    done("key", "new", key)
    live = table(town / "live.csv", NIGHT, 3)
    lines = live.read_text().splitlines()
    header, people = lines[0], (lines[1:26], lines[26:])
    parts = [
        [one for person in people for one in person[part]] for part in (slice(4), slice(4, 25))
    ]
    for number, part in enumerate(parts):
        (town / f"{number}.csv").write_text("\n".join([header, *part]) + "\n")
        given = ("-m", town / "town.model", *DAILY, *GOES_ON, "--ledger", town / "l.ledger")
        done("release", town / f"{number}.csv", *given, "-o", town / f"private{number}.csv")
    left = [*charged(town / "private0.csv"), *charged(town / "private1.csv")]
    sums = period_sums("day", left)
    assert len(sums) == 4 and all(1.99 < spent <= 2 for spent in sums.values())
    both = (town / "private0.csv", town / "private1.csv", "--model", town / "town.model")
    done("audit", *both, "--ledger", town / "l.ledger")


def test_a_value_that_is_said_to_lie_in_another_day_is_found(town: Path) -> None:
    private = town / "private.csv"
    given = ("-m", town / "town.model", *DAILY, *GOES_ON, "-o", private)
    done("release", table(town / "live.csv", NIGHT, 4), *given)
    lines = private.read_text().splitlines()
    first = next(n for n, line in enumerate(lines) if "2024-03-31" in line)
    moved = lines[first].split(",")
    moved[1] = lines[first - 1].split(",")[1]
    private.write_text("\n".join([*lines[:first], ",".join(moved), *lines[first + 1 :]]) + "\n")
    found = audited(town)
    assert found.code == 1 and "the budget was gone" in found.out


def test_a_budget_that_is_gone_is_refused_until_the_next_day(town: Path) -> None:
    given = ("-m", town / "town.model", *DAILY, "-o", town / "private.csv")
    told = refused(table(town / "live.csv", NIGHT, 5), *given)
    assert "until the next day begins" in told


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        (("--budget", 2, "--per", "day", *TIMES), "come with --budget B, and with --cap C"),
        (("--epsilon", 2, "--per", "day", *TIMES), "not come with --per"),
        (("--budget", 2, "--per", "day", "--cap", 1), "the time column"),
        (("--budget", 2, "--per", "day", "--cap", 1, "--time", "when"), "name 'when'"),
        ((*DAILY, "--late", "accept"), "be refuse"),
        ((*DAILY, "--every", 3), "not come with --per"),
        ((*DAILY, "--batch", 3), "not come with --per"),
        (("--budget", 2, "--per", "decade", "--cap", 1, *TIMES), "be one of hour, day"),
    ],
)
def test_what_does_not_go_with_periods_is_refused(town: Path, given: Any, rule: str) -> None:
    live = table(town / "live.csv", NIGHT, 6)
    assert rule in refused(live, "-m", town / "town.model", *given, "-o", town / "p.csv")


@pytest.mark.parametrize(
    ("when", "rule"),
    [("7", "the time must be a date or a moment"), ("2024-05-01", "the time must say the hour")],
)
def test_times_that_tell_no_period_are_refused(town: Path, when: str, rule: str) -> None:
    (town / "live.csv").write_text(f"user,when,place\nann,{when},home\n")
    asked = ("--budget", 2, "--per", "hour", "--cap", 1, *TIMES, "-o", town / "p.csv")
    assert rule in refused(town / "live.csv", "-m", town / "town.model", *asked)
