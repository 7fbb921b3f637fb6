"""`release --per`: a budget for each day of event time, kept, resumed, audited and explained."""

import csv
from datetime import UTC, datetime, timedelta
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
    assert "In each day of event time" in words and "twice as much" in words
    assert "Its periods" in words and "Its model changes with time" not in words


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


def test_times_that_were_moved_to_spend_more_are_found_by_whoever_holds_the_true_table(
    town: Path,
) -> None:
    live = table(town / "live.csv", NIGHT, 7, "+02:00")
    lines = live.read_text().splitlines()
    parts = [line.split(",") for line in lines[1:]]
    began = datetime.fromisoformat(parts[0][1])
    moved = [
        (who, (began + 5 * (datetime.fromisoformat(when) - began)).isoformat(), place)
        for who, when, place in parts
    ]
    other = town / "moved.csv"
    other.write_text("\n".join([lines[0], *map(",".join, moved)]) + "\n")
    done("release", other, "-m", town / "town.model", *DAILY, *GOES_ON, "-o", town / "private.csv")
    assert audited(town, "--require-budget", "2/day").code == 0  # nobody else can know
    assert audited(town, "--against", other).code == 0
    found = audited(town, "--against", live)
    assert found.code == 1 and "the time must be that of the true value" in found.out
    # The same moments in another zone are the same times.
    utc = [(w, datetime.fromisoformat(t).astimezone(UTC).isoformat(), p) for w, t, p in moved]
    other.write_text("\n".join([lines[0], *map(",".join, utc)]) + "\n")
    same = audited(town, "--against", other)
    assert same.code == 0 and "what column 'when' says" not in same.out
    # A true table without times says nothing of them, and the audit says so.
    bare = [f"{who},{place}" for who, _, place in moved]
    other.write_text("\n".join(["user,place", *bare]) + "\n")
    unseen = audited(town, "--against", other)
    assert unseen.code == 0 and "not checked: what column 'when' says" in unseen.out


def test_an_event_that_was_answered_keeps_its_day(town: Path) -> None:
    """An old answer beside a later time would be of a day whose budget it was not charged to."""
    private, again = town / "private.csv", town / "again.csv"
    given = ("-m", town / "town.model", *DAILY, *GOES_ON, "--event", "id")
    kept = ("--ledger", town / "l.ledger", "-o")
    lines = ["user,when,place,id", "ann,2024-03-30T20:00,home,e1", "ann,2024-03-30T21:00,work,e2"]
    (town / "live.csv").write_text("\n".join(lines) + "\n")
    done("release", town / "live.csv", *given, *kept, private)
    moved = "\n".join(lines).replace("-30T", "-31T")
    (town / "late.csv").write_text(moved + "\n")
    said = refused(town / "late.csv", *given, *kept, again)
    assert "row 1" in said and "answered before, for another time" in said
    (town / "zone.csv").write_text("\n".join([*lines, "ann,2024-03-31T00:00,home,e3"]) + "\n")
    done("release", town / "zone.csv", *given, *kept, again)
    assert [row["sip"] for row in rows(again)][:2] == [row["sip"] for row in rows(private)]


def test_rows_that_come_again_in_another_day_are_found(town: Path) -> None:
    private, again = town / "private.csv", town / "again.csv"
    given = ("-m", town / "town.model", *DAILY, *GOES_ON, "-o", private)
    done("release", table(town / "live.csv", NIGHT, 6), *given)
    again.write_text(private.read_text())
    both = ("--model", town / "town.model", "--plan", town / "private.csv.plan.json")
    freely = ("--allow", "unsealed")
    assert call("audit", private, again, *both, *freely).code == 0
    again.write_text(private.read_text().replace("2024-03-31", "2024-04-02"))
    found = call("audit", private, again, *both, *freely)
    assert found.code == 1 and "again.csv, row" in found.out


def test_a_row_that_goes_back_is_not_told_what_would_be_refused(town: Path) -> None:
    live = town / "live.csv"
    live.write_text("user,when,place\nann,2024-05-02T01:00,home\nann,2024-05-01T01:00,work\n")
    told = refused(live, "-m", town / "town.model", *DAILY, "-o", town / "p.csv")
    assert "sort the table" in told and "--late" not in told and "work" not in told


def test_a_refusal_names_an_option_once_and_comes_before_anything_is_compiled(town: Path) -> None:
    live = table(town / "live.csv", NIGHT, 8)
    model = ("-m", town / "town.model")
    told = refused(live, *model, *DAILY, "--late", "accept", "-o", town / "p.csv")
    assert told.count("--late") == 1
    asked = ("--epsilon", 1, "--per", "day", "--cap", 1, *TIMES)
    told = refused(live, *model, *asked, "-o", town / "p.csv")
    assert "not come with --per" in told and "far-sighted" not in told
    asked = ("--budget", 1, "--per", "day", "--cap", 0, *TIMES)
    assert "--cap must be" in refused(live, *model, *asked, "-o", town / "p.csv")


def test_a_ledger_of_days_takes_no_weeks(town: Path) -> None:
    live, ledger = table(town / "live.csv", NIGHT, 9), ("--ledger", town / "l.ledger")
    model = ("-m", town / "town.model", *GOES_ON, *ledger)
    done("release", live, *model, *DAILY, "-o", town / "private.csv")
    weekly = ("--budget", 2, "--per", "week", "--cap", 0.5, "--method", "calibrated", *TIMES)
    assert "--per" in refused(live, *model, *weekly, "-o", town / "p.csv")


def test_a_receiver_reads_the_file_or_the_ledger_with_or_without_a_policy(town: Path) -> None:
    live, private = table(town / "live.csv", NIGHT, 10), town / "private.csv"
    model, ledger = ("-m", town / "town.model"), ("--ledger", town / "l.ledger")
    done("release", live, *model, *DAILY, *GOES_ON, *ledger, "-o", private)
    done("recover", private, *model, "-o", town / "one.csv")
    done("recover", *model, *ledger, "-o", town / "two.csv")
    assert (town / "one.csv").read_text() == (town / "two.csv").read_text()
    done("attack", private, *model, "--against", live)
    daily = ("--budget", 2, "--per", "day", "--cap", 0.5)
    done("compile", *model, *daily, "-o", town / "town.policy")
    given = (*model, *daily, *TIMES, *GOES_ON, "--policy", town / "town.policy")
    done("release", live, *given, "-o", town / "quick.csv")
    asked = ("--policy", town / "town.policy", "-o", town / "three.csv")
    done("recover", town / "quick.csv", *model, *asked)
    assert len(rows(town / "three.csv")) == len(rows(private))


def test_whose_stream_it_is_is_not_asked_of_a_budget_for_periods(town: Path) -> None:
    live, model = table(town / "live.csv", NIGHT, 11), ("-m", town / "town.model")
    done("release", live, *model, *DAILY, *GOES_ON, "-o", town / "private.csv")
    asked = call("attack", town / "private.csv", *model, "--known", town / "history.csv")
    assert asked.code == 2 and "the budget must count values" in asked.err
