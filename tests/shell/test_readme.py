"""The README says what the program says: its commands are run in order, in an empty folder."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.shell.walked_pages import DOCS, README, steps, walk


def test_it_is_short() -> None:
    assert len(README.read_text("utf-8").splitlines()) < 120


def test_its_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", README.read_text("utf-8")):
        assert (README.parent / link).exists(), link


def test_ordinary_noise_leaks_what_the_tutorial_says() -> None:
    (claim,) = re.findall(
        r"each claim ([\d.]+) really leak ([\d.]+) .* and up to ([\d.]+) if",
        README.read_text("utf-8"),
    )
    page = (DOCS / "tutorials" / "existing.md").read_text("utf-8")
    (moment,) = re.findall(r"any single moment: ([\d.]+) nats", page)
    (ever,) = re.findall(r"for ever at ([\d.]+), a moment leaks .* both ([\d.]+)", page)
    assert claim == (ever[0], *(f"{float(said):.2f}" for said in (moment, ever[1])))


def test_its_second_claim_is_what_the_demo_says() -> None:
    (claim,) = re.findall(
        r"place is ([\d.]+) km off; .* is ([\d.]+) km off \(([\d.]+) after .* up to ([\d.]+)\.",
        README.read_text("utf-8"),
    )
    demo = (DOCS / "guides" / "more-commands.md").read_text("utf-8")
    (planned,) = re.findall(r"planned: ([\d.]+) km .* loses ([\d.]+) km, or ([\d.]+) km", demo)
    (leaked,) = re.findall(r"the published rule would have .* leaked up to ([\d.]+)", demo)
    assert claim == tuple(f"{float(said):.1f}" for said in (*planned, leaked))


@pytest.mark.slow
def test_first_steps_go_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(steps(README)) == 6
    walk(README, tmp_path)


def test_its_twenty_lines_of_python_run_as_they_are() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.M | re.S)
    assert len(code.splitlines()) <= 20
    names: dict[str, Any] = {}
    exec(compile(code, "README", "exec"), names)
    assert names["private"] in ("home", "work", "gym")
    assert 0.5 < names["release"].ledger.spent[0].epsilon <= 2.501
    assert len(names["step"].labels()) == 2
