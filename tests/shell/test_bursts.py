"""`--every`: totals that are spent in bursts, from the plan to the audit."""

from itertools import pairwise
from pathlib import Path

import pytest

from sfumato.stream.release_document import read_spec
from tests.shell.releasing import LIVE, refused
from tests.shell.running import call, done, rows
from tests.shell.tables import by_stream, table

TOTAL = ("--budget", 3, "--horizon", 30)


@pytest.fixture
def live(tmp_path: Path) -> Path:
    return table(tmp_path / "live.csv", LIVE)


def test_between_bursts_nothing_is_charged_and_an_audit_agrees(
    model: Path, live: Path, tmp_path: Path
) -> None:
    output = tmp_path / "private.csv"
    done("release", live, "-m", model, *TOTAL, "--every", 8, "--first", 1.5, "-o", output)
    for left in by_stream(rows(output)).values():
        charged = [place for place, row in enumerate(left) if float(row["sip"]) > 0]
        assert all(later - earlier >= 8 for earlier, later in pairwise(charged))
        assert {row["outcome"] for row in left} == {"released"}
        assert 0 < sum(float(row["sip"]) for row in left) <= 3
    spec = read_spec(f"{output}.plan.json")
    assert (spec.every, spec.first, spec.cap) == (8, 1.5, None)
    assert "found nothing wrong" in done("audit", output, "-m", model).out


def test_auto_writes_down_what_it_found_and_asking_for_that_is_the_same_release(
    model: Path, live: Path, tmp_path: Path
) -> None:
    output, again, seed = tmp_path / "private.csv", tmp_path / "again.csv", ("--seed", 4)
    told = done("release", live, "-m", model, *TOTAL, "--every", "auto", *seed, "-o", output)
    spec = read_spec(f"{output}.plan.json")
    assert f"(--every {spec.every}" in told.err
    found = ("--every", spec.every, "--first", spec.first)
    done("release", live, "-m", model, *TOTAL, *found, *seed, "-o", again)
    assert rows(again) == rows(output)


def test_a_policy_for_bursts_covers_what_a_burst_may_leak(
    model: Path, live: Path, tmp_path: Path
) -> None:
    policy, output = tmp_path / "city.policy", tmp_path / "private.csv"
    bursts = (*TOTAL, "--every", 10)
    done("compile", "-m", model, *bursts, "--steps", 64, "-o", policy)
    done("release", live, "-m", model, *bursts, "--policy", policy, "-o", output)
    assert max(float(row["sip"]) for row in rows(output)) == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (*TOTAL, "--every", "often"),
            "--every must be a whole number of at least 1, or auto; got 'often'",
        ),
        ((*TOTAL, "--every", 0), "--every must be a whole number of at least 1; got 0"),
        (("--epsilon", 1, "--every", 3), "--every must come with --budget"),
        (("--epsilon", 1, "--cap", 3), "--cap must come with --budget"),
        (("--epsilon", 1, "--every", "auto"), "there is nothing to spread"),
        ((*TOTAL, "--every", "auto", "--batch", 2), "--every must be a number for batches"),
        ((*TOTAL, "--every", "auto", "--first", 2), "--first must not come with --every auto"),
        (("--budget", 3, "--window", 6, "--every", 2, "--first", 2), "a window has no first burst"),
    ],
)
def test_what_cannot_be_spread_is_refused(
    model: Path, live: Path, tmp_path: Path, arguments: tuple[object, ...], message: str
) -> None:
    assert message in refused(live, "-m", model, *arguments, output=tmp_path / "private.csv")


def test_a_plan_of_bursts_asked_for_is_not_sought(model: Path) -> None:
    shape = ("--budget", 3, "--horizon", 6, "--streams", 1)
    asked = done("plan", "-m", model, *shape, "--every", 3).out
    assert "the same total in bursts" not in asked
    sought = call("plan", "-m", model, *shape)
    assert "the same total in bursts" in sought.out
    assert "on the model the total is best spent" in sought.out
