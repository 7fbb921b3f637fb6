"""Losses in the user's units, from `fit` to `audit`, and plans on held-out streams."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.shell.releasing import STEP
from tests.shell.running import call, done
from tests.shell.tables import write

FIT = ("--stream", "phone", "--grid", "3x2", "--x", "lon", "--y", "lat")


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Phones that wander over a town in degrees: a history, a day and a model."""
    home = tmp_path_factory.mktemp("town")
    draw = np.random.default_rng(4)
    for name, steps in (("history", 150), ("live", 12)):
        rows = []
        for phone in ("a", "b", "c"):
            where = np.array([8.5, 47.4])
            for _ in range(steps):
                where = np.clip(where + draw.normal(0, 0.02, 2), [8.4, 47.3], [8.6, 47.5])
                rows.append([phone, *where.round(5).tolist()])
        write(home / f"{name}.csv", ["phone", "lon", "lat"], rows)
    ranges = ("--range", "8.4:8.6,47.3:47.5", "--units", "degrees")
    done("fit", home / "history.csv", *FIT, *ranges, "-o", home / "town.model")
    return home


def test_a_grid_in_degrees_is_fitted_planned_released_and_audited_in_km(town: Path) -> None:
    model, private = town / "town.model", town / "private.csv"
    rule = ("-m", model, "--epsilon", 1, *STEP)
    said = done("plan", *rule, "--length", 6, "--streams", 3).out
    assert "loss: great-circle loss of a value, in km" in said
    assert "a constant would be off by" in said and " km a value; step-wise saves" in said
    done("release", town / "live.csv", *rule, "-o", private)
    assert json.loads(Path(f"{private}.plan.json").read_text())["loss"] == "great-circle"
    audited = done("audit", private, "-m", model, "--against", town / "live.csv").out
    assert " km over 36 values" in audited
    assert "the best constant, which tells nothing: " in audited
    assert "about any one value" in audited


def test_a_plan_takes_held_out_streams(town: Path) -> None:
    rule = (
        "plan",
        "-m",
        town / "town.model",
        "--epsilon",
        1,
        *STEP,
        "--history",
        town / "live.csv",
    )
    found = done(*rule, "--streams", 2, "--length", 5, "--json").document
    assert (found["streams"], found["length"], found["held_out"]) == (2, 5, True)
    assert (found["loss"], found["unit"]) == ("great-circle", "km")
    assert found["total"] == 5.0
    assert all(isinstance(remark, str) for remark in found["remarks"])


def test_a_plan_of_batches_takes_no_held_out_streams(town: Path) -> None:
    rule = ("plan", "-m", town / "town.model", "--epsilon", 1, "--batch", "1,2")
    result = call(*rule, "--history", town / "live.csv")
    assert result.code == 2
    assert "--history must not come with --batch" in result.err


def test_an_absurd_total_is_said_aloud(town: Path) -> None:
    rule = (
        "plan",
        "-m",
        town / "town.model",
        "--epsilon",
        4,
        *STEP,
        "--length",
        20,
        "--streams",
        2,
    )
    said = done(*rule)
    told = "the probability of what is true may change by a factor of 10^35. THAT IS MUCH"
    assert said.out.count(told) == 1  # and once is enough
    assert "TOTAL" not in said.err and "factor" not in said.err


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (("--range", "8:9"), "--range"),
        (("--range", "high:low"), "--range"),
        (("--range", "0:1,0:400", "--units", "degrees"), "--y"),
        (("--missing", "guess"), "--missing"),
        (("--missing", "symbol"), "--missing"),
    ],
)
def test_options_that_make_no_sense_are_named(
    town: Path, tmp_path: Path, wrong: tuple[str, ...], field: str
) -> None:
    result = call("fit", town / "history.csv", *FIT, *wrong, "-o", tmp_path / "town.model")
    assert result.code == 2
    assert field in result.err
    assert not list(tmp_path.iterdir())


def test_an_audit_says_what_a_large_total_means(town: Path, tmp_path: Path) -> None:
    model, private = town / "town.model", tmp_path / "private.csv"
    done("release", town / "live.csv", "-m", model, "--epsilon", 4, *STEP, "-o", private)
    most = max(
        entry["sip"]
        for entry in done("audit", private, "-m", model, "--json").document["streams"].values()
    )
    said = done("audit", private, "-m", model).out
    assert ("A LARGE TOTAL" in said) == (most > 10)
    assert "symbols that were never released" in said or "never" not in said
