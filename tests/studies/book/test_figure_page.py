"""docs/figures.md, which `study all` makes, lists every figure, and commands that exist."""

import re
from pathlib import Path

from sfumato.studies.book.figure_table import FAILED, studies_of
from sfumato.studies.catalogue import STUDIES
from sfumato.studies.figure_list import FIGURES

PAGE = (Path(__file__).parents[3] / "docs" / "figures.md").read_text(encoding="utf-8")
ROWS = {line.split(" | ")[0][2:]: line for line in PAGE.splitlines() if line.startswith("| ")}


def test_every_figure_and_table_of_the_papers_is_listed() -> None:
    assert {figure.key for figure in FIGURES} <= set(ROWS)


def test_every_command_exists() -> None:
    named = re.findall(r"`sfumato study ([a-z0-9-]+)[^`]*`", PAGE)
    assert named
    assert set(named) <= set(STUDIES)


def test_a_figure_stands_beside_a_study_that_answers_it() -> None:
    for figure in FIGURES:
        studies = {study.name for study in studies_of(figure.key)}
        assert set(re.findall(r"`sfumato study ([a-z0-9-]+)", ROWS[figure.key])) <= studies


def test_nothing_failed() -> None:
    assert f"**{FAILED}**" not in PAGE
