"""Tutorials show what commands say, and each sample has one."""

import re
from pathlib import Path

import pytest

from sfumato.studies.samples.catalogue import SAMPLES
from tests.shell.running import Result
from tests.shell.walked_pages import (
    DOCS,
    GUIDES,
    TUTORIALS,
    fits,
    laid_out,
    record,
    shown_anew,
    steps,
    walk,
)

QUICK = ("existing",)
"""Walked by default; the others take longer."""
PAGES = (*TUTORIALS, *GUIDES)
NUMBERS = {6: "Six", 7: "Seven", 8: "Eight", 9: "Nine", 10: "Ten"}
"""How many commands a tutorial may have, as it says itself."""


def test_each_sample_has_a_tutorial_that_begins_with_it() -> None:
    assert {page.stem for page in TUTORIALS} == set(SAMPLES)
    for page in TUTORIALS:
        assert steps(page)[0].words == ["sfumato", "sample", page.stem]


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_is_short_and_ends_with_a_check(page: Path) -> None:
    ours = [step.words[1:] for step in steps(page) if step.words[0] == "sfumato"]
    assert f"{NUMBERS[len(steps(page))]} commands" in page.read_text("utf-8")
    assert any({"audit", "verify"} & set(words) for words in ours)
    assert "## With your own data" in page.read_text("utf-8")


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.S)
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (page.parent / link).exists(), link


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=() if page.stem in QUICK else pytest.mark.slow)
        for page in PAGES
    ],
)
def test_a_page_goes_as_shown(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    walk(page, tmp_path)


# The walker ---------------------------------------------------------------------------------------

SAID = Result(0, "a table\nname\tloss\nours\t0.25\ndrawn 17 of 40\nend\n", "warning: few rows\n")


@pytest.mark.parametrize(
    ("shown", "fit"),
    [
        ("a table|name  loss|ours  0.25|drawn 17 of 40|end", True),
        ("a table|name loss|ours 0.25|drawn ... of 40|end", True),
        ("a table|...|end", True),
        ("warning: few rows|...", True),
        ("...|drawn 17 of 40|warning: few rows|end", True),
        ("a table|...|drawn 18 of 40|end", False),
        ("a table|name loss|ours 0.26|...", False),
        ("a table|name loss", False),
        ("...|end|a table", False),
        ("...|warning: many rows|end", False),
        ("...|warning: few rows|warning: few rows|end", False),
        ("", False),
    ],
)
def test_what_is_shown_must_be_said(shown: str, fit: bool) -> None:
    assert fits(shown.split("|") if shown else [], SAID) is fit


def test_tables_are_lined_up() -> None:
    assert laid_out(SAID.out)[1:3] == ["name  loss", "ours  0.25"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a table|...|drawn ... of 40|end", "a table|...|drawn ... of 40|end"),
        ("...|ours 0.31|...|end", "...|ours  0.25|...|end"),
        ("...|a line that is gone|end", "a table|name  loss|ours  0.25|drawn 17 of 40|end"),
        ("...|drawn  9 of ...|ends", "...|drawn 17 of ...|end"),
        ("...|ours  ...|drawn 9 of 40|...", "...|ours   ...|drawn 17 of 40|..."),
        ("...|drawn|end", "...|drawn 17 of 40|end"),
        ("a table|drawn 17 of 41|end", "a table|name  loss|ours  0.25|drawn 17 of 40|end"),
        ("...|drawn 3 of 40|warning: few rows|...", "...|drawn 17 of 40|warning: few rows|..."),
        ("", "a table|name  loss|ours  0.25|drawn 17 of 40|end"),
    ],
)
def test_pages_are_written_anew_with_their_dots(before: str, after: str) -> None:
    assert shown_anew(before.split("|") if before else [], SAID) == after.split("|")


def test_a_row_of_a_table_is_found_by_how_it_begins() -> None:
    said = Result(0, "row\tloss\n1\t0.1\n2\t0.2\n3\t0.3\nend\n", "")
    assert shown_anew(["...", "3  0.9", "..."], said) == ["...", "3     0.3", "..."]


def test_what_is_said_on_the_side_alone_is_shown_in_order() -> None:
    said = Result(0, "", "7 values\nso it is\nexpected 4.2; a constant 9\n")
    shown = ["8 values", "expected ...; a constant ..."]
    assert shown_anew(shown, said) == ["7 values", "so it is", "expected ...; a constant ..."]


def test_a_page_is_written_by_its_commands(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Words.\n\n```console\n$ sfumato one \\\n    two\nold\n$ cat it\n```\nMore.\n")
    ran: list[list[str]] = []

    def run(words: object, folder: Path) -> Result:
        assert isinstance(words, list) and folder == tmp_path
        ran.append(words)
        return Result(0, "new\n", "")

    assert record(page, tmp_path, run)
    assert ran == [["sfumato", "one", "two"], ["cat", "it"]]
    text = page.read_text()
    assert "    two\nnew\n$ cat it\nnew\n```\nMore.\n" in text and text.startswith("Words.\n")
    assert not record(page, tmp_path, run)
    page.write_text(text.replace("new\n$", "old\n$"))
    with pytest.raises(AssertionError, match="old"):
        walk(page, tmp_path, run)
