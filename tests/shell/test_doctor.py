"""The doctor says what is wrong and what to do, and takes nothing that is optional for wrong."""

import re
import tomllib
from pathlib import Path

import pytest

from sfumato.cli import doctor_checks
from sfumato.cli.doctor_checks import EXTRAS, Health
from tests.shell.releasing import STEP
from tests.shell.running import call, done
from tests.shell.tables import table, walk


def test_this_installation_is_in_order() -> None:
    told = done("doctor", "--json").document["findings"]
    assert {one["health"] for one in told} <= {Health.GOOD.value, Health.ABSENT.value}
    assert {f"extra {name}" for name in EXTRAS} <= {one["what"] for one in told}


def test_an_extra_that_is_not_there_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(doctor_checks.EXTRAS, "spark", (("no_such_module.at_all",), "Spark"))
    told = done("doctor").out
    assert 'extra spark: not there; for Spark: pip install "sfumato[spark]"' in told


def test_every_declared_dependency_is_looked_at() -> None:
    """Read from the project file, which the package's metadata are made from."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[^\w-]", line)[0] for line in project["dependencies"]}
    assert len(declared) > 10
    found = {one["what"]: one["health"] for one in done("doctor", "--json").document["findings"]}
    assert {found.get(name) for name in declared} == {Health.GOOD.value}
    assert "torch" not in found


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("no-such-library>=1", "no-such-library: WRONG; not installed"),
        ("numpy>=999.1", "or newer is needed"),
    ],
)
def test_a_library_that_is_not_there_or_too_old_is_wrong(
    line: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [line, 'other>=1; extra == "spark"']
    monkeypatch.setattr("importlib.metadata.requires", lambda _: lines)
    found = call("doctor", "-q")
    assert found.code == 1
    assert told in found.out and "other" not in found.out


def test_a_ledger_is_read_through(model: Path, tmp_path: Path) -> None:
    live = tmp_path / "live.csv"
    table(live, walk(3, rows=20))
    ledger = tmp_path / "town.ledger"
    done(
        "release",
        live,
        "-m",
        model,
        "--epsilon",
        0.5,
        *STEP,
        "--ledger",
        ledger,
        "-o",
        tmp_path / "out.csv",
    )
    assert f"{ledger}: good; 20 rows, all of which fit" in done("doctor", ledger).out
    (tmp_path / "town.ledger.head").write_text("9:" + "0" * 64 + "\n")
    told = call("doctor", ledger)
    assert told.code == 1
    assert f"{ledger}: WRONG" in told.out
