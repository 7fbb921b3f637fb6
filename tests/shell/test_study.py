import csv
import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from sfumato.record.attack.bayes_attack import Found, Way
from sfumato.studies.catalogue import STUDIES
from sfumato.studies.lip import lip_numbers
from sfumato.studies.mddp import tied_columns
from sfumato.studies.sip import sip_figure_5
from sfumato.studies.study import Findings, Work
from tests.shell.running import call, done, litter

NAME = "sip-figure-5"
PICTURE = "loss-against-leakage"
TEXTS = ("results.csv", "results.json", "index.md", "index.html")


@cache
def thin_work(seed: int) -> Work:
    """The study with few budgets and a thin tree, done once: tests ask what is said."""
    work = sip_figure_5.figure_work((0.5, 1.5), 6, seed)
    found = work.run(lambda done: None)

    def again(show: Callable[[int], None]) -> Findings:
        show(work.steps)
        return found

    return Work(work.steps, again)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what is said: pictures cost most of a study, and are drawn by a test for that."""
    monkeypatch.setattr(Figure, "savefig", lambda self, path, **how: Path(path).touch())


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sip_figure_5, "prepare", lambda setting: thin_work(setting.seed))


@pytest.mark.usefixtures("small")
def test_a_study_writes_numbers_and_a_figure_that_agree(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    home = out / NAME
    printed = done("study", NAME, "-o", out, "--json").document
    names = [*TEXTS, *(f"{PICTURE}.{ending}" for ending in ("png", "svg"))]
    assert printed["files"] == [str(home / name) for name in names]
    assert sorted(path.name for path in home.iterdir()) == sorted(names)
    assert litter(home) == []
    kept = json.loads((home / "results.json").read_text(encoding="utf-8"))
    assert kept == {name: value for name, value in printed.items() if name != "files"}
    with (home / "results.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [{n: str(v) for n, v in record.items()} for record in kept["records"]] == rows
    assert (home / f"{PICTURE}.png").read_bytes().startswith(b"\x89PNG\r\n")


@pytest.mark.usefixtures("small", "undrawn")
def test_a_study_prints_a_table_and_what_follows(tmp_path: Path) -> None:
    result = done("study", NAME, "-o", tmp_path)
    assert "curve\t0.5\t1.5" in result.out
    assert "(a) batches of 5\t" in result.out
    assert "certified curves leak at most epsilon per value: yes" in result.out
    assert "the published rule claims 0.5 and leaks up to 1." in result.out
    assert f"{PICTURE}.png" in result.err
    again = done("study", NAME, "-o", tmp_path, "--quiet")
    assert again.err == ""
    assert result.out.startswith(again.out)


def test_an_unknown_study_is_told_the_nearest(tmp_path: Path) -> None:
    home = tmp_path / "none"
    result = call("study", "sip-figure-55", "-o", home)
    assert (result.code, result.out) == (2, "")
    rule = "NAME must be one that `sfumato study list` names, such as sip-figure-5"
    assert result.err == f"sfumato: {rule}; got 'sip-figure-55'\n"
    assert not home.exists()


def test_the_list_names_every_study_with_its_figures_and_data() -> None:
    assert "sfumato study list" in done("study", "--help").out
    listed = {row["name"]: row for row in done("study", "list", "--json").document["studies"]}
    assert list(listed) == list(STUDIES)
    printed = done("study", "list").out
    for name, study in STUDIES.items():
        assert f"{name}\t" in printed
        assert tuple(listed[name]["figures"]) == study.figures
        assert [row["name"] for row in listed[name]["data"]] == [file.name for file in study.data]
        assert all(file.name in printed for file in study.data)


@pytest.mark.usefixtures("undrawn")
def test_the_figures_of_lip_come_from_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Few budgets and repetitions; numbers and pictures themselves are tested with the papers.
    few = partial(lip_numbers.figure_9, epsilons=(1.0, 3.0))
    monkeypatch.setattr(lip_numbers, "figure_9", few)
    monkeypatch.setattr(lip_numbers, "figure_10", partial(lip_numbers.figure_10, (1.0, 2.0)))
    printed = done("study", "lip-figures", "-o", tmp_path, "--json", "--quick").document
    names = [*TEXTS, "symbols.png", "symbols.svg", "numbers.png", "numbers.svg"]
    assert [Path(file).name for file in printed["files"]] == names
    assert all(Path(file).is_file() for file in printed["files"])
    assert {record["figure"][:2].rstrip("abc") for record in printed["records"]} == {
        "2", "4", "5", "6", "7", "8", "9", "10",
    }  # fmt: skip
    assert any("Cor. 10 claim delta 1e-4; at epsilon 1 it is 0.194" in f for f in printed["facts"])
    assert litter(tmp_path) == []


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figure 2 of MDDP with one accuracy and few attacks; its numbers are tested with the paper."""
    monkeypatch.setattr(tied_columns, "tied_points", partial(tied_columns.tied_points, attacks=2))
    for name in ("TIED_ACCURACIES", "JOINT_ACCURACIES"):
        monkeypatch.setattr(tied_columns, name, (4.0,))
    monkeypatch.setattr(tied_columns, "turning_noise", lambda joint, fails: 2.0)
    for name in ("bayes_disclosure", "coupled_disclosure"):
        monkeypatch.setattr(tied_columns, name, lambda *_: Found(0.5, 0.5, 0.5, Way.CLOSED))


@pytest.mark.usefixtures("brief")
def test_the_figure_of_mddp_needs_no_data(tmp_path: Path) -> None:
    printed = done("study", "mddp-figures", "-o", tmp_path, "--json").document
    names = [*TEXTS, "tied-columns.png", "tied-columns.svg"]
    assert [Path(file).name for file in printed["files"]] == names
    assert {record["figure"] for record in printed["records"]} == {"2a", "2b", "2c", "2d"}
    assert {record["x"] for record in printed["records"]} == {4.0}
    assert printed["facts"][0].startswith("made-up people: 10,000 men")
    assert printed["simulated"] == ["made-up people"]
    assert any("here they are 2.54 to 5.51 lb/in" in fact for fact in printed["facts"])
    assert any("bound fails at epsilon 4" in fact for fact in printed["facts"])
    assert Path(printed["files"][-2]).read_bytes().startswith(b"\x89PNG\r\n")
    assert litter(tmp_path) == []


@pytest.mark.usefixtures("brief", "undrawn")
def test_the_figure_of_mddp_reads_real_people(tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    rows = [
        f"12800;2;{160 + i % 20};{60 + i % 7 + i % 20};{110 + i % 13 + i % 7}" for i in range(60)
    ]
    rows += ["12800;2;17;70;120", "12800;1;170;70;120"]
    table.write_text("\n".join(["age;gender;height;weight;ap_hi", *rows]), encoding="utf-8")
    home = tmp_path / "out"
    said = done("study", "mddp-figures", "-o", home, "--data", table).out
    assert "people.csv: 62 people, 1 left out (kept: height 140 to 210; weight 40 to 180;" in said
    assert "60 men aged 30 to 39, where the paper says 10,000" in said
    assert "kg/cm" in said
    assert (home / "mddp-figures" / "tied-columns.png").is_file()


def test_a_table_that_cannot_be_read_leaves_nothing_behind(tmp_path: Path) -> None:
    table, home = tmp_path / "people.csv", tmp_path / "none"
    table.write_text("age;gender;height\n1;2;3\n", encoding="utf-8")
    result = call("study", "mddp-figures", "-o", home, "--data", table)
    assert (result.code, result.out) == (2, "")
    assert result.err == (
        f"sfumato: {table}: must have the columns age, gender, height, weight, ap_hi, separated "
        "by ';'; there is no weight, ap_hi\n"
    )
    result = call("study", "mddp-figures", "-o", home, "--data", tmp_path / "nobody.csv")
    assert (result.code, result.out) == (2, "")
    words = f"--data must name a file or a folder; there is none; got '{tmp_path / 'nobody.csv'}'"
    assert result.err == f"sfumato: {words}\n"
    assert not home.exists()


def test_a_table_is_refused_by_a_study_that_does_not_read_just_one(tmp_path: Path) -> None:
    home, table = tmp_path / "none", tmp_path / "people.csv"
    table.write_text("age\n1\n", encoding="utf-8")
    for name in ("lip-figures", "stream-totals"):
        result = call("study", name, "-o", home, "--data", table)
        assert (result.code, result.out) == (2, "")
        words = f"--data must name a folder; this is a file; got '{table}'"
        assert result.err == f"sfumato: {words}\n"
        assert not home.exists()


@pytest.mark.usefixtures("brief")
def test_the_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path))
    result = call("study", "mddp-figures", "-o", tmp_path / "out")
    assert result.code == 2
    assert "--data must hold cardio_train.csv.gz: Kaggle" in result.err
    assert not (tmp_path / "out").exists()
