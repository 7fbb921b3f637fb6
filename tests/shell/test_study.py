import csv
import json
from functools import partial
from pathlib import Path

import pytest

from sfumato.record.attack.bayes_attack import Found, Way
from sfumato.studies import lip_discrete, lip_numbers, mddp
from sfumato.studies.catalogue import FROM_DATA, STUDIES, sip_figure_5
from tests.shell.running import call, done, litter

NAME = "sip-figure-5"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The study with few budgets and a thin tree."""
    monkeypatch.setitem(STUDIES, NAME, partial(sip_figure_5, (0.5, 1.5), 6))


@pytest.mark.usefixtures("small")
def test_a_study_writes_numbers_and_a_figure_that_agree(tmp_path: Path) -> None:
    home = tmp_path / "new" / "folder"
    printed = done("study", NAME, "-o", home, "--json").document
    assert printed["files"] == [str(home / f"{NAME}.{suffix}") for suffix in ("csv", "json", "png")]
    assert sorted(path.name for path in home.iterdir()) == [
        f"{NAME}.{suffix}" for suffix in ("csv", "json", "png")
    ]
    assert litter(home) == []
    kept = json.loads((home / f"{NAME}.json").read_text(encoding="utf-8"))
    assert kept == {name: value for name, value in printed.items() if name != "files"}
    with (home / f"{NAME}.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [{n: str(v) for n, v in record.items()} for record in kept["records"]] == rows
    assert (home / f"{NAME}.png").read_bytes().startswith(b"\x89PNG\r\n")


@pytest.mark.usefixtures("small")
def test_a_study_prints_a_table_and_what_follows(tmp_path: Path) -> None:
    result = done("study", NAME, "-o", tmp_path)
    assert "curve\t0.5\t1.5" in result.out
    assert "(a) batches of 5\t" in result.out
    assert "certified curves leak at most epsilon per value: yes" in result.out
    assert "the published rule claims 0.5 and leaks up to 1." in result.out
    assert f"{NAME}.png" in result.err
    again = done("study", NAME, "-o", tmp_path, "--quiet")
    assert again.err == ""
    assert result.out.startswith(again.out)


def test_an_unknown_study_names_those_there_are(tmp_path: Path) -> None:
    home = tmp_path / "none"
    result = call("study", "sip-figure-55", "-o", home)
    assert (result.code, result.out) == (2, "")
    assert result.err == f"sfumato: NAME must be one of {', '.join(STUDIES)}; got 'sip-figure-55'\n"
    assert not home.exists()


def test_the_help_teaches_every_study() -> None:
    said = done("study", "--help").out
    for name in STUDIES:
        assert f"sfumato study {name}" in said[said.index("Examples:") :]
        assert name in said[said.index("Studies:") : said.index("Examples:")]


def test_the_figures_of_lip_come_from_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Few budgets and repetitions; the numbers themselves are tested with the papers.
    few = partial(lip_numbers.figure_9, epsilons=(1.0, 3.0))
    monkeypatch.setattr(lip_numbers, "figure_9", few)
    monkeypatch.setattr(lip_discrete, "figure_6", partial(lip_discrete.figure_6, repetitions=20))
    monkeypatch.setattr(lip_numbers, "figure_10", partial(lip_numbers.figure_10, (1.0, 2.0)))
    printed = done("study", "lip-figures", "-o", tmp_path, "--json").document
    names = ["lip-figures.csv", "lip-figures.json", "lip-figures.png", "lip-figures-numbers.png"]
    assert [Path(file).name for file in printed["files"]] == names
    assert {record["figure"][:2].rstrip("abc") for record in printed["records"]} == {
        "2", "4", "5", "6", "7", "8", "9", "10",
    }  # fmt: skip
    assert any("Cor. 10 claim delta 1e-4; at epsilon 1 it is 0.194" in f for f in printed["facts"])
    assert litter(tmp_path) == []


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figure 2 of MDDP with one accuracy and few attacks; its numbers are tested with the paper."""
    monkeypatch.setattr(
        mddp, "tied_points", partial(mddp.tied_points, accuracies=(4.0,), attacks=2)
    )
    monkeypatch.setattr(mddp, "joint_points", partial(mddp.joint_points, accuracies=(4.0,)))
    monkeypatch.setattr(mddp, "turning_noise", lambda joint, fails: 2.0)
    for name in ("bayes_disclosure", "coupled_disclosure"):
        monkeypatch.setattr(mddp, name, lambda *_: Found(0.5, 0.5, 0.5, Way.CLOSED))


@pytest.mark.usefixtures("brief")
def test_the_figure_of_mddp_needs_no_data(tmp_path: Path) -> None:
    printed = done("study", "mddp-figures", "-o", tmp_path, "--json").document
    names = ["mddp-figures.csv", "mddp-figures.json", "mddp-figures.png"]
    assert [Path(file).name for file in printed["files"]] == names
    assert {record["figure"] for record in printed["records"]} == {"2a", "2b", "2c", "2d"}
    assert {record["x"] for record in printed["records"]} == {4.0}
    assert printed["facts"][0].startswith("made-up people: 10,000 men")
    assert any("here they are 2.54 to 5.51 lb/in" in fact for fact in printed["facts"])
    assert any("bound fails at epsilon 4" in fact for fact in printed["facts"])
    assert litter(tmp_path) == []


@pytest.mark.usefixtures("brief")
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
    assert (home / "mddp-figures.png").read_bytes().startswith(b"\x89PNG\r\n")


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
    words = f"--data must name a file; there is none; got '{tmp_path / 'nobody.csv'}'"
    assert result.err == f"sfumato: {words}\n"
    assert not home.exists()


def test_a_table_is_refused_by_a_study_that_reads_none(tmp_path: Path) -> None:
    home = tmp_path / "none"
    result = call("study", "lip-figures", "-o", home, "--data", "people.csv")
    assert (result.code, result.out) == (2, "")
    assert (
        result.err == f"sfumato: --data must come with {', '.join(FROM_DATA)}; got 'people.csv'\n"
    )
    assert not home.exists()
