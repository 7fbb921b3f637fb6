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


def test_its_first_claim_is_what_the_demo_says() -> None:
    (claim,) = re.findall(
        r"it is ([\d.]+) km off where .* is ([\d.]+) km off \(([\d.]+) after .* up to ([\d.]+)\.",
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


def test_its_twenty_lines_of_python_run() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.M | re.S)
    assert len(code.splitlines()) <= 20
    days = [["home", "work"] * 20, ["home"] * 20 + ["work"] * 20]
    given = {"history": days, "stream": days[0][:5], "names": ["ann", "bob"], "values": days[0][:2]}
    names: dict[str, Any] = dict(given)
    exec(compile(code, "README", "exec"), names)
    assert names["private"] in ("home", "work")
    assert names["release"].ledger.spent[0].epsilon <= 1.001
    assert len(names["step"].labels()) == 2
