"""Releases for many chains tell three numbers wherever they say what they leaked."""

import json
from pathlib import Path

import pytest

from tests.shell.running import call, done
from tests.shell.tables import table, walk
from tests.shell.test_forged_reports import forged


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, model: Path) -> Path:
    """A release for all chains within a radius."""
    home = tmp_path_factory.mktemp("three")
    live = table(home / "live.csv", walk(11, rows=40))
    (home / "city.model").write_bytes(model.read_bytes())
    asked = ("-m", home / "city.model", "--epsilon", 0.8, "--robust", 0.05)
    done("release", live, *asked, "-o", home / "private.csv")
    return home


def audit(folder: Path, *asked: object) -> tuple[object, ...]:
    return ("audit", folder / "private.csv", "-m", folder / "city.model", *asked)


def test_an_audit_tells_all_three_unasked(folder: Path) -> None:
    told = done(*audit(folder, "--json")).document
    assert told["truth"]["widest"] == pytest.approx(0.1)
    for name, entry in told["truth"]["streams"].items():
        stated = told["streams"][name]
        # The charge is that over the set; under the model alone it is less.
        assert entry["over_set"] == pytest.approx(stated["sip"], abs=1e-9)
        assert entry["truth"] <= entry["over_set"] + 1e-9 <= stated["ldp"] + 2e-9
    assert any(e["truth"] < e["over_set"] - 1e-3 for e in told["truth"]["streams"].values())
    said = done(*audit(folder)).out
    assert "near it" in said and "under it" in said and "LDP" in said


def test_a_report_holds_them_and_one_of_before_still_fits(folder: Path) -> None:
    report = folder / "told.json"
    done(*audit(folder, "--report", report))
    told = json.loads(report.read_text())
    assert told["asked"]["three_numbers"] is True
    totals = told["totals"]
    assert totals["largest_under_truth"] < totals["largest_over_set"] <= totals["largest_ldp"]
    assert "the report fits" in done("verify-report", report).out

    def as_before(document: dict[str, object]) -> None:
        """What a program wrote that did not know these numbers."""
        names = ("under_truth", "over_set", "transfer_bound")
        del document["asked"]["three_numbers"]  # type: ignore[attr-defined]
        for entry in document["streams"].values():  # type: ignore[attr-defined]
            for name in names:
                del entry[name]
        for name in names:
            del document["totals"][f"largest_{name}"]  # type: ignore[attr-defined]
        del document["checked"][1:]  # type: ignore[attr-defined]

    assert "the report fits" in done("verify-report", forged(report, as_before)).out
    half = forged(report, lambda document: document["asked"].pop("three_numbers"))
    assert call("verify-report", half).code == 1


def test_what_left_is_explained_with_all_three(folder: Path) -> None:
    said = done("explain", folder / "private.csv.plan.json").out
    assert "kept for every chain within 0.05" in said and "Three numbers" in said


def test_the_end_of_a_release_tells_all_three(folder: Path, tmp_path: Path) -> None:
    asked = ("-m", folder / "city.model", "--epsilon", 0.8, "--robust", 0.05)
    said = done("release", folder / "live.csv", *asked, "-o", tmp_path / "out.csv").err
    assert "under the estimate" in said and "LDP" in said


def test_a_release_that_learns_reports_its_last_estimate_and_set(tmp_path: Path) -> None:
    rows = walk(3, rows=260, symbols=("home", "work"))
    live = table(tmp_path / "live.csv", rows)
    start = ("fit", "--uniform", "--values", "home,work", "--stream", "person", "--value", "place")
    done(*start, "-o", tmp_path / "start.model")
    asked = ("-m", tmp_path / "start.model", "--epsilon", 2, "--learn", "--learn-after", 120)
    done("release", live, *asked, "--ledger", tmp_path / "l.ledger", "-o", tmp_path / "out.csv")
    report = tmp_path / "told.json"
    done("audit", tmp_path / "out.csv", "-m", tmp_path / "start.model", "--ledger",
         tmp_path / "l.ledger", "--report", report)  # fmt: skip
    told = json.loads(report.read_text())
    assert told["asked"]["three_numbers"] is True and "largest_over_set" in told["totals"]
    assert "the report fits" in done("verify-report", report).out
    assert "Three numbers" in done("explain", tmp_path / "out.csv.plan.json").out
