"""The page of errata: a section for each paper, and tests beside each entry that are there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "errata.md").read_text("utf-8")
PAPERS = ("SIP", "LIP", "RTR", "TPL", "MDDP")
ENTRY = re.compile(r"^### (N?\d+)\. (.+)\n\n((?:(?!^##).*\n?)*)", re.M)
ENTRIES = {number: body for number, _, body in ENTRY.findall(TEXT)}
TESTS = [
    (number, test) for number, body in ENTRIES.items() for test in re.findall(r"- `(.+)`", body)
]
NUMBER = r"(?:N\d+|\d+)"
CITED = re.compile(rf"\berrat(?:um|a) ({NUMBER}(?:(?:, | and |, and ){NUMBER})*)\b", re.I)


@cache
def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_paper_has_a_section_with_its_title() -> None:
    known = (ROOT / "docs" / "references.bib").read_text("utf-8")
    found = dict(re.findall(r"^## ([A-Z]{3,4}): .+\n\n\*(.+)\*$", TEXT, re.M))
    assert tuple(found) == PAPERS
    for key, title in found.items():
        assert f"{{{key}, title={{{title}}}" in known


def test_every_entry_says_what_is_wrong_what_is_done_and_which_test_shows_it() -> None:
    assert len(ENTRIES) == len(re.findall(r"^### ", TEXT, re.M)) > 60
    for number, body in ENTRIES.items():
        wrong, instead, tests = re.split(r"^\*\*(?:Instead|Tests?):\*\*", body, flags=re.M)
        assert len(wrong.split()) > 4 and instead.strip() and "- `" in tests, number


@pytest.mark.parametrize(("number", "test"), TESTS)
def test_the_test_of_an_entry_is_there(number: str, test: str) -> None:
    file, _, name = test.partition("::")
    assert name.startswith("test_") and name in functions(ROOT / file), number


def test_every_erratum_that_is_cited_is_on_the_page() -> None:
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]
    cited = {
        number
        for path in files
        for listed in CITED.findall(path.read_text("utf-8"))
        for number in re.findall(NUMBER, listed)
    }
    assert len(cited) > 25
    assert cited - set(ENTRIES) == set()
