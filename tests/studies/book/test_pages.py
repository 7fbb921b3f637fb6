"""What a study leaves behind: whole, offline, and honest about its data."""

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.cli.app import Terminated
from sfumato.studies.book.result import Result
from sfumato.studies.catalogue import STUDIES
from sfumato.studies.figure_list import BY_KEY, FIGURES
from sfumato.studies.study import Setting, Study
from tests.shell.running import call, done, litter
from tests.studies.book.toy_study import GOOD, MODULE, findings

TEXTS = ["index.html", "index.md", "results.csv", "results.json", "toys.png", "toys.svg"]


@pytest.fixture
def toys() -> Iterator[None]:
    """A catalogue of toys alone."""
    before = dict(STUDIES)
    STUDIES.clear()
    STUDIES.update({"toy": GOOD, "other": Study("other", "Others.", MODULE, ("SIP 6",))})
    yield
    STUDIES.clear()
    STUDIES.update(before)


def outside(page: str) -> list[str]:
    """Whatever a page would load or open that is not in it or beside it."""
    links = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert "<script" not in page
    assert "@import" not in page
    return [link for link in links if not link.startswith("data:") and ":" in link]


@pytest.mark.usefixtures("toys")
def test_a_page_says_what_was_claimed_and_that_data_were_simulated(tmp_path: Path) -> None:
    printed = done("study", "toy", "-o", tmp_path)
    assert sorted(path.name for path in (tmp_path / "toy").iterdir()) == TEXTS
    page = (tmp_path / "toy" / "index.html").read_text(encoding="utf-8")
    text = (tmp_path / "toy" / "index.md").read_text(encoding="utf-8")
    assert outside(page) == []
    for words in (page, text):
        assert words.index("Simulated data stand in for: toys") < words.index("What is claimed")
        assert "sfumato study toy" in words
    assert "Toys | and &lt;tags&gt;." in page
    assert "<td>&lt;i&gt;</td>" in page
    assert '<span class="badge differs">differs</span>' in page
    assert r"| SIP 5b | a \| b | both | **agrees** |  |" in text
    assert "| SIP 5 | c | no c | **differs** | erratum 1 |" in text
    assert r"a fact with \*stars\*" in text
    assert "SIP 5: c: differs; no c" in printed.out
    assert "simulated, for want of --data: toys" in printed.err


@pytest.mark.usefixtures("toys")
def test_real_data_are_not_called_simulated_and_quick_runs_are_called_quick(tmp_path: Path) -> None:
    (tmp_path / "toys.csv.gz").write_bytes(b"")
    done("study", "toy", "-o", tmp_path / "out", "--data", tmp_path, "--quick")
    page = (tmp_path / "out" / "toy" / "index.html").read_text(encoding="utf-8")
    assert "Simulated" not in page
    assert "toys.csv.gz: a shop&#x27;s open data" in page
    assert "A quick run" in page
    assert "sfumato study toy --data DIR --quick" in page
    assert str(tmp_path) not in page


@pytest.mark.usefixtures("toys")
def test_the_same_seed_gives_the_same_bytes_and_every_number_is_there(tmp_path: Path) -> None:
    def numbers(where: str, seed: int) -> bytes:
        done("study", "toy", "-o", tmp_path / where, "--seed", seed)
        return (tmp_path / where / "toy" / "results.csv").read_bytes()

    assert numbers("a", 2) == numbers("b", 2) != numbers("c", 3)
    rows = list(csv.DictReader(numbers("a", 2).decode().splitlines()))
    made_up = {"stand_in": "True"}
    assert rows == [{"x": "1.5", "seed": ""} | made_up, {"x": "inf", "seed": "2"} | made_up]
    kept = json.loads((tmp_path / "a" / "toy" / "results.json").read_text(encoding="utf-8"))
    marked = {"stand_in": True}
    assert kept["records"] == [{"x": 1.5} | marked, {"x": "inf", "seed": 2} | marked]
    assert kept["simulated"] == ["toys"]
    assert [claim["verdict"] for claim in kept["claims"]][:2] == ["agrees", "differs"]


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize(("seed", "code"), [(13, 2), (66, 70), (99, 130)])
def test_a_study_that_fails_leaves_nothing(tmp_path: Path, seed: int, code: int) -> None:
    assert call("study", "toy", "-o", tmp_path / "out", "--seed", seed).code == code
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("toys")
def test_an_interrupted_drawing_leaves_neither_files_nor_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tests.studies.book.toy_study.save_figure", interrupted)
    assert call("study", "toy", "-o", tmp_path / "new" / "out").code == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("toys")
def test_an_interrupted_run_keeps_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done("study", "toy", "-o", tmp_path)
    before = {path.name: path.read_bytes() for path in (tmp_path / "toy").iterdir()}

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tests.studies.book.toy_study.save_figure", interrupted)
    assert call("study", "toy", "-o", tmp_path, "--seed", 5).code == 130
    assert {path.name: path.read_bytes() for path in (tmp_path / "toy").iterdir()} == before
    assert litter(tmp_path / "toy") == []


# The book -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("toys")
def test_a_book_leads_to_every_page_and_back(tmp_path: Path) -> None:
    said = done("study", "all", "-o", tmp_path, "--quick")
    assert "2 of 2 studies" in said.out
    pages = [tmp_path / "index.html", *(tmp_path / name / "index.html" for name in STUDIES)]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert outside(text) == []
        for link in re.findall(r'href="([^"]*)"', text):
            assert (page.parent / link).is_file()
    index = pages[0].read_text(encoding="utf-8")
    assert "other/index.html" in index
    assert "Simulated data stood in, in whole or in part: toy, other" in index


@pytest.mark.usefixtures("toys")
def test_the_table_of_figures_has_all_of_them_with_verdicts(tmp_path: Path) -> None:
    done("study", "all", "-o", tmp_path)
    lines = (tmp_path / "figures.md").read_text(encoding="utf-8").splitlines()
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in lines if line[:2] == "| "}
    assert set(rows) >= {figure.key for figure in FIGURES}
    # Toy claims of SIP 5 are true and false; the second toy has no claim of SIP 6.
    assert "`sfumato study toy` | **agrees in part** |" in rows["SIP 5"]
    told = lines[lines.index("### SIP 5") + 2 :]
    assert told[:2] == ["- (b) a | b: agrees; both", "- c: differs; no c [erratum 1]"]
    assert "`sfumato study other` | **no claim** |" in rows["SIP 6"]
    assert "**nothing to compute**" in rows["SIP 1"]
    assert "**not computed**" in rows["SIP 7"]
    assert "elsewhere: agrees in part" in lines[lines.index("### SIP Sec. I") + 2]


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize(
    ("seed", "code", "why"), [(13, 2, "--seed must be lucky"), (66, 70, "(ZeroDivisionError)")]
)
def test_a_study_that_fails_does_not_end_the_book(
    tmp_path: Path, seed: int, code: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        STUDIES, "whole", Study("whole", "Sound.", "tests.studies.book.sound_study")
    )
    result = call("study", "all", "-o", tmp_path, "--seed", seed)
    assert result.code == code
    assert result.err.count("failed: ") == 2
    assert why in result.err
    assert "a value of a person" not in result.err
    assert "1 of 3 studies" in result.out
    assert (tmp_path / "whole" / "results.csv").is_file()
    assert "It failed: " in (tmp_path / "toy" / "index.html").read_text(encoding="utf-8")
    assert "Failed: toy, other." in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "**failed**" in (tmp_path / "figures.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("toys")
def test_only_what_is_missing_is_run_and_comes_out_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done("study", "all", "-o", tmp_path, "--seed", 5)
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*.*"))}
    refused = lambda *_: pytest.fail("it was run again")  # noqa: E731
    monkeypatch.setattr("tests.studies.book.toy_study.findings", refused)
    done("study", "all", "-o", tmp_path, "--seed", 5, "--missing")
    assert {path: path.read_bytes() for path in sorted(tmp_path.rglob("*.*"))} == before
    done("study", "all", "-o", tmp_path, "--seed", 5, "--missing", "--quick")  # whole runs serve
    monkeypatch.undo()
    done("study", "all", "-o", tmp_path, "--seed", 6, "--missing")
    kept = json.loads((tmp_path / "toy" / "results.json").read_text(encoding="utf-8"))
    assert kept["seed"] == 6


@pytest.mark.usefixtures("toys")
def test_a_quick_run_does_not_serve_who_asks_for_a_whole_one(tmp_path: Path) -> None:
    done("study", "all", "-o", tmp_path, "--quick")
    done("study", "all", "-o", tmp_path, "--missing")
    kept = json.loads((tmp_path / "toy" / "results.json").read_text(encoding="utf-8"))
    assert not kept["quick"]


@pytest.mark.usefixtures("toys")
def test_ctrl_c_ends_the_book(tmp_path: Path) -> None:
    assert call("study", "all", "-o", tmp_path / "out", "--seed", 99).code == 130
    assert not (tmp_path / "out").exists()


# What is said of the papers -----------------------------------------------------------------------


def test_every_study_answers_figures_that_there_are_and_says_what_it_is_about() -> None:
    for study in STUDIES.values():
        assert set(study.figures) <= set(BY_KEY), study.name
        assert not any(BY_KEY[key].illustration for key in study.figures), study.name
        assert study.about.endswith(".")


def test_the_list_has_every_figure_of_every_paper_once() -> None:
    assert len(BY_KEY) == len(FIGURES)
    for paper, last in {"SIP": 9, "RTR": 19, "LIP": 12, "TPL": 9, "MDDP": 2}.items():
        numbers = [key.split()[1] for key in BY_KEY if key.split()[0] == paper]
        assert [number for number in numbers if number != "Table"] == [
            str(number) for number in range(1, last + 1)
        ]


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("name", ["toy", "all"])
def test_a_negative_seed_is_refused(tmp_path: Path, name: str) -> None:
    result = call("study", name, "-o", tmp_path / "out", "--seed", -1)
    assert (result.code, result.out) == (2, "")
    assert result.err == "sfumato: --seed must be 0 or more; got -1\n"
    assert not (tmp_path / "out").exists()


def stopped_in_nested_loops(_: object) -> None:
    """A polite kill, as it comes out of a compiled loop that was called by another."""
    try:
        try:
            raise Terminated(15)
        except Terminated as stopped:
            raise SystemError("inner") from stopped
    except SystemError as inner:
        raise SystemError("outer") from inner


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("name", ["toy", "all"])
def test_termination_within_a_compiled_loop_is_no_defect(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.studies.book.toy_study.findings", stopped_in_nested_loops)
    result = call("study", name, "-o", tmp_path / "out")
    assert (result.code, result.out, result.err) == (143, "", "sfumato: terminated\n")


@pytest.mark.usefixtures("toys")
def test_a_book_that_is_interrupted_says_what_failed_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = iter([ZeroDivisionError, KeyboardInterrupt])

    def fails(_: object) -> None:
        raise next(ends)

    monkeypatch.setattr("tests.studies.book.toy_study.findings", fails)
    result = call("study", "all", "-o", tmp_path)
    assert result.code == 130
    first, last = result.err.splitlines()
    assert first.startswith("failed: toy: internal error (ZeroDivisionError)")
    assert last == "sfumato: interrupted"


@pytest.mark.usefixtures("toys")
def test_the_same_command_writes_the_same_bytes(tmp_path: Path) -> None:
    for home in ("one", "two"):
        done("study", "toy", "-o", tmp_path / home)
    for name in TEXTS:
        one, two = ((tmp_path / home / "toy" / name).read_bytes() for home in ("one", "two"))
        assert one == two, name
    assert b"<dc:date>" not in (tmp_path / "one" / "toy" / "toys.svg").read_bytes()


@pytest.mark.usefixtures("toys")
def test_every_number_of_a_study_that_reads_says_whether_data_stood_in(tmp_path: Path) -> None:
    done("study", "toy", "-o", tmp_path / "simulated")
    (tmp_path / "toys.csv.gz").write_bytes(b"")
    done("study", "toy", "-o", tmp_path / "real", "--data", tmp_path)
    done("study", "other", "-o", tmp_path / "none")

    def table(home: str) -> str:
        [file] = (tmp_path / home).glob("*/results.csv")
        return file.read_text(encoding="utf-8")

    assert table("simulated") == "x,stand_in,seed\n1.5,True,\ninf,True,1\n"
    assert table("real") == table("simulated").replace("True", "False")
    assert "stand_in" not in table("none")


def test_a_number_that_says_itself_whether_data_stood_in_is_believed() -> None:
    found = replace(findings(Setting()), records=[{"x": 1, "stand_in": False}])
    assert Result(GOOD, Setting(), found, "", "").records == found.records
