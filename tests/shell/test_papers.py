"""Theorems and papers are named where they are asked for, and nowhere else."""

import re
from pathlib import Path

import pytest

from sfumato.cli.console import PAPERS
from tests.shell.running import done
from tests.shell.tables import write

GOLDEN = Path(__file__).parent / "golden"
PLACES = re.compile(r"Theorem|Lemma|Definition \d|Corollary|Proposition|\bEq\. \d|Algorithm \d")
ASKED = ("disclosure", "--columns", "height,weight", "--accuracy", 2, "--noise", "gaussian")
LINE = "gamma (MDDP Definition 6)"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rows = [(150 + row, 50 + row + row % 7) for row in range(30)]
    write(tmp_path / "people.csv", ["height", "weight"], rows)
    return tmp_path / "people.csv"


def test_no_output_names_a_theorem_unless_papers_were_asked_for() -> None:
    for path in GOLDEN.glob("*.txt"):
        if path.stem.startswith(("study", "python", "help")) or path.stem == "disclosure-papers":
            continue
        for line in path.read_text("utf-8").splitlines():
            told = line.startswith("remarks = ")  # a document has all of them
            assert told or not PLACES.search(line), f"{path.name}: {line}"
    assert PLACES.search((GOLDEN / "disclosure-papers.txt").read_text("utf-8"))


def test_papers_may_be_asked_for_before_the_command_behind_it_or_around_it(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest = ("--table", people, "--sigma", 6, "--coupling", "none")
    assert LINE not in done(*ASKED, *rest).out
    assert LINE in done("--papers", *ASKED, *rest).out
    assert LINE in done(*ASKED, *rest, "--papers").out
    monkeypatch.setenv(PAPERS, "1")
    assert LINE in done(*ASKED, *rest).out
    monkeypatch.setenv(PAPERS, "0")
    assert LINE not in done(*ASKED, *rest).out
