"""Every work cited in the code is in docs/references.bib, and the reverse."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "src").rglob("*.py"))

KEY = r"[A-Z]{3,4}|[A-Z][a-z]+\d{4}[a-z]?"
CITATION = re.compile(rf"\[({KEY})(?:, ([^\]\[]+))?\]")
PLACE = re.compile(
    r"(Thm|Def|Eq|Alg|Prop|Cor|Lem|Ex|Sec|App|Fig|Rem|Tab)s?\. [\w.()-]+"
    r"(( and|,) ((Thm|Def|Eq|Alg|Prop|Cor|Lem|Ex|Sec|App|Fig|Rem|Tab)s?\. )?[\w.()-]+)*"
)


@cache
def docstrings(path: Path) -> list[str]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse(path.read_text())
    return [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, kinds)]


def references_section(docstring: str) -> str:
    """The text below "References:", up to the next line that is not indented."""
    found = re.search(r"^References:((?:\n[ \t]+\S.*|[ \t]+\S.*)+)", docstring, re.MULTILINE)
    return " ".join(found.group(1).split()) if found else ""


def sections() -> list[tuple[str, str]]:
    return [
        (str(path.relative_to(ROOT)), section)
        for path in FILES
        if "References:" in path.read_text()  # each worker collects: a tree takes long to grow
        for docstring in docstrings(path)
        if (section := references_section(docstring))
    ]


def listed_keys() -> list[str]:
    return re.findall(r"@\w+\{([^,\s]+),", (ROOT / "docs" / "references.bib").read_text())


def test_citations_and_bibliography_match() -> None:
    cited = {
        key
        for path in FILES
        for docstring in docstrings(path)
        for key, _ in CITATION.findall(docstring)
    }
    assert cited == set(listed_keys())


def test_every_work_is_listed_once_with_a_title_and_authors() -> None:
    keys = listed_keys()
    assert len(keys) == len(set(keys))
    entries = (ROOT / "docs" / "references.bib").read_text().split("@")[1:]
    assert len(entries) == len(keys)
    for entry in entries:
        assert re.search(r"title\s*=\s*\{.{10,}?\}", entry), entry
        assert re.search(r"author\s*=\s*\{.{3,}?\}", entry), entry


def test_keys_look_like_keys() -> None:
    for key in listed_keys():
        assert re.fullmatch(KEY, key), key


def test_references_are_found() -> None:
    assert len(sections()) > 30


@pytest.mark.parametrize(("path", "section"), sections())
def test_every_reference_names_a_work_and_a_place_in_it(path: str, section: str) -> None:
    # Nothing but citations, separated by commas.
    assert re.sub(r"[,.\s]", "", CITATION.sub("", section)) == "", path
    for key, place in CITATION.findall(section):
        if len(key) <= 4:
            assert place, f"{path}: [{key}] must say where"
        if place:
            assert PLACE.fullmatch(place), f"{path}: {place!r}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[SIP, Thm. 1]", [("SIP", "Thm. 1")]),
        ("[Dwork2006]", [("Dwork2006", "")]),
        ("[SIP, Thms. 1 and 2], [LIP, Eq. 19]", [("SIP", "Thms. 1 and 2"), ("LIP", "Eq. 19")]),
        ("a number in [0, 1], a list [a, b], [X, Y]", []),
    ],
)
def test_a_citation_is_told_from_other_brackets(text: str, expected: list[tuple[str, str]]) -> None:
    assert CITATION.findall(text) == expected
