"""`audit --truth` with hours and clusters, from files and ledgers; reports with its numbers."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.shell.running import call, done
from tests.shell.test_forged_reports import forged, put, stream
from tests.shell.test_periodic import BY_HOUR, COLUMNS, TIMES, table_of

RULE = ("--epsilon", 1, "--method", "step-wise", *TIMES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Habits by the hour, released under a chain that does not know them, with a ledger."""
    home = tmp_path_factory.mktemp("truths")
    history = table_of(home / "history.csv", 1, 40, 6)
    table_of(home / "live.csv", 2, 4, 2)
    done("fit", history, *BY_HOUR, "-o", home / "day.model")
    done("fit", history, *COLUMNS, "-o", home / "plain.model")
    done("fit", history, *COLUMNS, "--clusters", 2, "-o", home / "kinds.model")
    asked = ("-m", home / "plain.model", *RULE, "--ledger", home / "all.ledger")
    done("release", home / "live.csv", *asked, "-o", home / "out.csv")
    return home


def audit(folder: Path, *asked: object) -> tuple[object, ...]:
    return ("audit", folder / "out.csv", "-m", folder / "plain.model", *asked)


def hours(folder: Path) -> tuple[object, ...]:
    return ("--truth", folder / "day.model", "--time", "when")


def under(document: dict[str, Any]) -> dict[str, float]:
    return {name: entry["truth"] for name, entry in document["truth"]["streams"].items()}


def test_who_knows_the_hours_is_followed_through_the_times_that_left(folder: Path) -> None:
    told = done(*audit(folder, *hours(folder), "--json")).document
    assert told["truth"]["phases"] == "4 of 24 phases (hour)"
    for entry in told["truth"]["streams"].values():
        assert 0 < entry["truth"] <= entry["transfer"] <= entry["ldp"]
    assert any(entry["truth"] > entry["sip"] + 0.1 for entry in told["truth"]["streams"].values())
    assert "times are taken for public" in done(*audit(folder, *hours(folder))).out


def test_the_ledger_alone_tells_the_same(folder: Path) -> None:
    files = under(done(*audit(folder, *hours(folder), "--json")).document)
    alone = ("audit", "-m", folder / "plain.model", "--ledger", folder / "all.ledger")
    kept = done(*alone, "--truth", folder / "day.model", "--json").document
    assert under(kept) == files


def test_a_truth_that_is_the_model_by_the_hour_is_told_what_is_stated(
    folder: Path, tmp_path: Path
) -> None:
    asked = ("-m", folder / "day.model", *RULE)
    done("release", folder / "live.csv", *asked, "-o", tmp_path / "out.csv")
    told = done("audit", tmp_path / "out.csv", "-m", folder / "day.model",
                "--truth", folder / "day.model", "--json").document  # fmt: skip
    for entry in told["truth"]["streams"].values():
        assert entry["truth"] == pytest.approx(entry["sip"], abs=1e-9)


def test_times_that_did_not_leave_are_asked_for(folder: Path, tmp_path: Path) -> None:
    told = call(*audit(folder, "--truth", folder / "day.model"))
    assert told.code == 2 and "--time" in told.err
    asked = ("-m", folder / "plain.model", "--epsilon", 1, "--method", "step-wise")
    done("release", folder / "live.csv", *asked, "-o", tmp_path / "out.csv")
    bare = ("audit", tmp_path / "out.csv", "-m", folder / "plain.model", *hours(folder))
    told = call(*bare)
    assert told.code == 2 and "left beside the values" in told.err
    told = call(*audit(folder, "--time", "when"))
    assert told.code == 2 and "come with --truth" in told.err


ASKED = {
    "hours": ("--truth", "day.model", "--time", "when"),
    "clusters": ("--truth", "kinds.model"),
    "radius": ("--radius", 0.05),
    "none": ("--radius", 0.0),
    "both": ("--truth", "plain.model", "--radius", 0.02),
}


@pytest.mark.parametrize("kind", ASKED)
def test_a_report_carries_what_others_were_told_and_is_found_again(folder: Path, kind: str) -> None:
    words = map(str, ASKED[kind])
    asked = [folder / word if word.endswith(".model") else word for word in words]
    report = folder / f"{kind}.json"
    done(*audit(folder, *asked, "--report", report, "--report", folder / f"{kind}.html"))
    told = json.loads(report.read_text())
    direct = done(*audit(folder, *asked, "--json")).document["truth"]["streams"]
    for name, entry in told["streams"].items():
        assert entry["under_truth"] == direct[name]["truth"]
        assert entry["over_set"] == direct[name]["over_set"]
        assert entry["transfer_bound"] == direct[name]["transfer"]
    assert told["totals"]["largest_under_truth"] == max(entry["truth"] for entry in direct.values())
    assert ("largest_over_set" in told["totals"]) == ("--radius" in ASKED[kind])
    assert "the report fits" in done("verify-report", report).out
    assert "under truth" in (folder / f"{kind}.html").read_text()


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (stream("under_truth", 0.5), ".under_truth: the report says 0.5"),
        (stream("over_set", 0.5), ".over_set: the report says 0.5"),
        (put("totals", "largest_over_set", value=0.5), "totals.largest_over_set"),
        (put("asked", "radius", value=0.01), ".over_set: the report says"),
        (put("checked", 2, value="nothing"), "checked[2]: the report says"),
    ],
)
def test_numbers_that_somebody_wrote_anew_are_found(folder: Path, edit: Any, said: str) -> None:
    report = folder / "edited.json"
    done(*audit(folder, "--radius", 0.05, "--report", report))
    told = call("verify-report", forged(report, edit))
    assert told.code == 1 and said in told.out


def made_set(folder: Path) -> Path:
    """A set of chains near the model."""
    from sfumato.models.markov import MarkovChain
    from sfumato.models.plausible import PlausibleChains
    from sfumato.store.files import load, save_plausible

    if not (folder / "near.set").exists():
        chain = load(folder / "plain.model").chain  # type: ignore[union-attr]
        assert isinstance(chain, MarkovChain)
        save_plausible(PlausibleChains.from_radius(chain, 0.03), folder / "near.set")
    return folder / "near.set"


def test_a_report_with_another_set_or_truth_does_not_fit(folder: Path, tmp_path: Path) -> None:
    report = folder / "named.json"
    asked = ("--truth", folder / "kinds.model", "--plausible", made_set(folder))
    done(*audit(folder, *asked, "--report", report))
    roles = {each["role"]: each["name"] for each in json.loads(report.read_text())["files"]}
    assert roles["truth"] == "kinds.model" and roles["plausible"] == "near.set"
    away = tmp_path / "away"
    away.mkdir()
    for name in ("named.json", "out.csv", "out.csv.plan.json", "plain.model", "near.set"):
        (away / name).write_bytes((folder / name).read_bytes())
    assert "truth kinds.model: not at hand" in call("verify-report", away / "named.json").out
    (away / "kinds.model").write_bytes((folder / "day.model").read_bytes())
    assert call("verify-report", away / "named.json").code == 1
