import json
import math
import random
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import sfumato as sf
from sfumato.core.printed import shown_up
from tests.shell.running import TOKEN, call, done, figures, files, litter, refused
from tests.shell.tables import FORMATS, read, write

NAMES = ["id", "height", "weight", "street"]
KEYS = {"delta", "delta_without_correlation", "gamma", "bound", "gain"}


def rows(count: int = 60) -> list[tuple[object, ...]]:
    rng = random.Random(4)
    found: list[tuple[object, ...]] = []
    for row in range(count):
        height = round(rng.gauss(170, 8), 1)
        weight = round(75 + 0.9 * (height - 170) + rng.gauss(0, 9), 1)
        found.append((f"p{row}", height, weight, TOKEN))
    return found


@pytest.fixture
def people(tmp_path: Path) -> Path:
    return write(tmp_path / "people.csv", NAMES, rows())


def asked(command: str, people: Path, *options: object) -> tuple[object, ...]:
    given = ("--table", people, "--columns", "height,weight", "--accuracy", 2)
    blind = () if "--coupling" in options else ("--coupling", "none")
    return (command, *given, *blind, *options)


def told(people: Path) -> dict[str, list[Any]]:
    table = read(people)
    return {name: [float(row[name]) for row in table] for name in ("height", "weight")}


# Help and reports --------------------------------------------------------------------------------


def test_help_names_every_noise_and_option_and_teaches_by_example() -> None:
    for command in ("disclosure", "publish"):
        text = done(command, "--help").out
        assert text.startswith(f"Usage: sfumato {command} ")
        for option in ("--table", "--columns", "--accuracy", "--sigma", "--coupling", "--domain"):
            assert option in text
        assert "--target-delta" in text
        assert f"sfumato {command} --table people.csv" in text
        assert f"sfumato {command}" in done("--help").out or command in done("--help").out
    words = done("disclosure", "--help").out.split()
    assert [
        name for name in ("uniform", "ball", "gaussian", "laplace", "best") if name not in words
    ] == []


@pytest.mark.parametrize(
    "options",
    [
        ("--sigma", 6),
        ("--sigma", 8, "--noise", "gaussian", "--coupling", "gaussian"),
        ("--sigma", "6,8", "--noise", "uniform", "--coupling", "weight ~ height", "--degree", 1),
    ],
)
def test_the_command_the_call_and_the_keys_agree(people: Path, options: tuple[object, ...]) -> None:
    found = done(*asked("disclosure", people, *options, "--json")).document
    assert set(found) >= KEYS
    given = dict(zip(options[::2], options[1::2], strict=True))
    report = sf.disclosure(
        told(people),
        ["height", "weight"],
        accuracy=2.0,
        sigma=[float(part) for part in str(given["--sigma"]).split(",")],
        noise=str(given.get("--noise", "ball")),
        coupling=str(given.get("--coupling", "none")),
        degree=int(str(given.get("--degree", 2))),
    )
    for name in KEYS | {"delta_low", "delta_high", "gamma_without_correlation"}:
        assert found[name] == getattr(report, name), name
    assert found["columns"] == ["height", "weight"]
    assert found["rows"] == 60


def test_words_on_the_terminal_are_the_numbers_of_the_report(people: Path) -> None:
    options = ("--sigma", 8, "--noise", "gaussian", "--coupling", "gaussian")
    found = done(*asked("disclosure", people, *options, "--json")).document
    text = done(*asked("disclosure", people, *options, "--papers")).out
    for name in ("delta", "delta_without_correlation", "gamma", "bound"):
        assert shown_up(found[name], 5) in text
    assert ("DOES NOT HOLD" in text) == (not found["bound_holds"])


def test_nothing_of_a_person_is_in_a_report_of_a_density(people: Path) -> None:
    result = done(*asked("disclosure", people, "--sigma", 6, "--coupling", "gaussian", "--json"))
    assert TOKEN not in result.out
    heights = told(people)["height"]
    assert not any(f"{end}" in result.out for end in (min(heights), max(heights)))


def test_a_picture_is_drawn_and_one_that_could_not_be_is_refused_first(
    people: Path, tmp_path: Path
) -> None:
    options = ("--sigma", 8, "--noise", "gaussian")
    done(*asked("disclosure", people, *options, "--plot", tmp_path / "delta.png"))
    assert (tmp_path / "delta.png").read_bytes().startswith(b"\x89PNG")
    refused(call(*asked("disclosure", people, *options, "--plot", "delta.txt")), "--plot")


def test_a_target_is_kept_when_asked_again(people: Path) -> None:
    options = ("--noise", "gaussian", "--coupling", "gaussian")
    goal = ("--target-delta", 0.15)
    found = done(*asked("disclosure", people, *options, *goal, "--json")).document
    assert found["delta_high"] <= 0.15
    sigma = ",".join(map(repr, found["sigma"]))
    again = done(*asked("disclosure", people, *options, "--sigma", sigma, "--json")).document
    assert again["delta_high"] == found["delta_high"]
    less = ",".join(repr(0.97 * each) for each in found["sigma"])
    assert (
        done(*asked("disclosure", people, *options, "--sigma", less, "--json")).document["delta"]
        > 0.15
    )


# Publishing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_comes_in_and_goes_out_with_its_certificate(
    tmp_path: Path, key: Path, suffix: str
) -> None:
    source = write(tmp_path / f"people.{suffix}", NAMES, rows())
    output = tmp_path / f"noisy.{suffix}"
    kept = ("--keep", "id", "--independent", "id")
    options = ("--sigma", 6, *kept, "--key-file", key, "-o", output, "--json")
    found = done(*asked("publish", source, *options)).document
    table = read(output)
    assert [list(row) for row in table] == [["id", "height", "weight"]] * 60
    document = figures(output)
    assert {name: found[name] for name in document} == document
    assert document["delta"] == pytest.approx(16 / (4 * math.pi * 36), rel=1e-4)
    assert document["delta"] >= 16 / (4 * math.pi * 36)
    assert TOKEN not in json.dumps(document)
    for row, (name, height, weight, _) in zip(table, rows(), strict=True):
        assert row["id"] == name
        off = math.hypot(
            float(row["height"]) - float(str(height)), float(row["weight"]) - float(str(weight))
        )
        assert 0 < off <= 12.001
    assert litter(tmp_path) == []


def test_an_output_that_exists_is_not_written_over(people: Path, tmp_path: Path) -> None:
    output = tmp_path / "noisy.csv"
    done(*asked("publish", people, "--sigma", 6, "-o", output))
    before = output.read_bytes(), Path(f"{output}.certificate.json").read_bytes()
    refused(call(*asked("publish", people, "--sigma", 6, "-o", output)), "--output", "not exist")
    assert (output.read_bytes(), Path(f"{output}.certificate.json").read_bytes()) == before


def test_a_key_writes_the_same_again_and_nothing_else(
    people: Path, key: Path, tmp_path: Path
) -> None:
    output = tmp_path / "noisy.csv"
    given = ("--key-file", key, "--id", "id", "-o", output, "--quiet")
    done(*asked("publish", people, "--sigma", 6, *given))
    before = output.read_bytes()
    done(*asked("publish", people, "--sigma", 6, *given))
    assert output.read_bytes() == before
    refused(call(*asked("publish", people, "--sigma", 5, *given)), "--output", "same mechanism")
    assert output.read_bytes() == before


def test_a_promise_is_not_replaced_by_one_against_a_weaker_attacker(
    people: Path, key: Path, tmp_path: Path
) -> None:
    output = tmp_path / "noisy.csv"
    given = ("--sigma", 6, "--noise", "gaussian", "--key-file", key, "-o", output, "-q")
    done(*asked("publish", people, *given, "--coupling", "gaussian"))
    before = {path: path.read_bytes() for path in (output, Path(f"{output}.certificate.json"))}
    weaker = call(*asked("publish", people, *given, "--coupling", "none"))
    refused(weaker, "--output", "same certificate")
    assert {path: path.read_bytes() for path in before} == before
    done(*asked("publish", people, *given, "--coupling", "gaussian"))
    assert {path: path.read_bytes() for path in before} == before


@pytest.fixture
def towns(tmp_path: Path) -> Path:
    table = [(*row[:3], "north" if place % 2 else "south") for place, row in enumerate(rows())]
    moved = [(a, float(str(b)) + 30 * (d == "north"), c, d) for a, b, c, d in table]
    return write(tmp_path / "towns.csv", ["id", "height", "weight", "town"], moved)


def test_kept_columns_are_known_to_the_attacker_in_both_commands(
    towns: Path, tmp_path: Path
) -> None:
    noise = ("--sigma", 6, "--noise", "gaussian", "--coupling", "gaussian")
    alone = done(*asked("disclosure", towns, *noise, "--json")).document
    kept = done(*asked("disclosure", towns, *noise, "--keep", "town", "--json")).document
    assert (alone["groups"], kept["groups"], kept["kept"]) == (1, 2, ["town"])
    assert kept["delta_mean"] > 1.1 * alone["delta"]
    output = ("-o", tmp_path / "noisy.csv", "--json")
    said = done(*asked("publish", towns, *noise, "--keep", "town", *output)).document
    for name, exact in (("delta", "delta_high"), ("delta_mean", "delta_mean")):
        assert kept[exact] <= said[name] <= 1.1 * kept[exact]  # two digits of what was learnt
    assert list(read(tmp_path / "noisy.csv")[0]) == ["town", "height", "weight"]
    text = done(*asked("disclosure", towns, *noise, "--keep", "town")).out
    assert "worst of 2 groups" in text
    assert shown_up(kept["delta_mean"], 5) in text
    many = call(*asked("disclosure", towns, *noise, "--keep", "id"))
    refused(many, towns, "20 rows", "(--independent)")


def test_rows_in_an_order_that_tells_are_refused_or_shuffled(tmp_path: Path) -> None:
    table = write(tmp_path / "sorted.csv", NAMES, sorted(rows(), key=lambda row: str(row[1])))
    given = asked("publish", table, "--sigma", 6, "-o", tmp_path / "noisy.csv")
    refused(call(*given), table, "order of the rows tells of 'height'")
    said = done(*given, "--order", "shuffled", "--json").document
    assert said["order"] == "shuffled"
    assert len(read(tmp_path / "noisy.csv")) == 60


def test_the_default_attacker_and_the_blind_guess_are_told(people: Path, tmp_path: Path) -> None:
    given = ("--table", people, "--columns", "weight", "--accuracy", 2, "--sigma", 6)
    found = done("disclosure", *given, "--json").document
    report = sf.disclosure(told(people), ["weight"], accuracy=2.0, sigma=6.0)
    assert found["coupling"] == report.coupling == "mixture"
    assert found["delta"] == report.delta
    guess = shown_up(found["delta_before"], 5)
    assert f"blind guess\t{guess}" in done("disclosure", *given).out
    blind = done("publish", *given, "--coupling", "none", "-o", tmp_path / "noisy.csv")
    assert "a blind guess, before anything is published, finds" in blind.out
    assert "note: NO PROMISE AGAINST ANYONE" in blind.err


def test_silence_and_rows_left_out_are_told_to_whoever_publishes(
    people: Path, tmp_path: Path
) -> None:
    holed = write(tmp_path / "holed.csv", NAMES, [*rows(), ("q", "", 70, "s")])
    refused(call(*asked("disclosure", holed, "--sigma", 6)), holed, "row 61", "'height'")
    refused(call(*asked("disclosure", holed, "--sigma", 6, "--missing", "skip")), "--missing")
    options = ("--sigma", 40, "--missing", "drop", "--noise", "gaussian")
    output = tmp_path / "noisy.csv"
    result = done(*asked("publish", holed, *options, "-o", output))
    assert "note: 1 rows with a missing value were left out" in result.err
    assert "NO BETTER THAN A CONSTANT: the noise on 'height'" in result.err
    assert "how far off (root mean square): height as published 40" in result.out
    assert len(read(output)) == 60
    told_alone = done(*asked("publish", holed, *options, "-o", tmp_path / "n.csv", "--json"))
    assert told_alone.document["operator"]["dropped"] == 1
    assert told_alone.document["operator"]["silence"]["error"][0] >= 40
    document = json.loads(Path(f"{output}.certificate.json").read_text())
    assert document["silence"] is None
    assert not {"dropped", "operator"} & set(document)


def test_a_write_that_fails_leaves_nothing(people: Path, tmp_path: Path) -> None:
    before = files(tmp_path)
    for place in ("sfumato.tables.columns.write_columns", "sfumato.store.files.write_whole"):
        with mock.patch(place, side_effect=OSError("disk full")):
            result = call(*asked("publish", people, "--sigma", 6, "-o", tmp_path / "noisy.csv"))
        assert result.code != 0
        assert files(tmp_path) == before


def test_a_write_again_that_fails_leaves_what_was_there(
    people: Path, key: Path, tmp_path: Path
) -> None:
    output = tmp_path / "noisy.csv"
    given = ("--sigma", 6, "--key-file", key, "-o", output)
    done(*asked("publish", people, *given))
    before = {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}
    with mock.patch("sfumato.tables.columns.write_columns", side_effect=OSError("disk full")):
        assert call(*asked("publish", people, *given)).code != 0
    assert {name: (tmp_path / name).read_bytes() for name in files(tmp_path)} == before


def test_an_interrupt_leaves_nothing(people: Path, tmp_path: Path) -> None:
    before = files(tmp_path)
    with mock.patch("sfumato.tables.columns.write_columns", side_effect=KeyboardInterrupt):
        assert call(*asked("publish", people, "--sigma", 6, "-o", tmp_path / "n.csv")).code != 0
    assert files(tmp_path) == before


def test_standard_output_holds_the_table_alone(people: Path, tmp_path: Path) -> None:
    before = files(tmp_path)
    kept = ("--keep", "id", "--independent", "id")
    result = done(*asked("publish", people, "--sigma", 6, "-o", "-", *kept))
    lines = result.out.splitlines()
    assert lines[0] == "id,height,weight"
    assert len(lines) == 61
    assert "probability" in result.err
    assert files(tmp_path) == before


def test_a_seed_is_said_to_be_a_simulation(people: Path, tmp_path: Path) -> None:
    result = done(*asked("publish", people, "--sigma", 6, "--seed", 3, "-o", tmp_path / "n.csv"))
    assert "simulation" in result.err


def test_outputs_that_are_inputs_or_in_no_folder_are_refused(people: Path, tmp_path: Path) -> None:
    before = people.read_bytes()
    refused(call(*asked("publish", people, "--sigma", 6, "-o", people)), "--output")
    refused(
        call(*asked("publish", people, "--sigma", 6, "-o", tmp_path / "x" / "n.csv")), "--output"
    )
    assert people.read_bytes() == before


# Refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["disclosure", "publish"])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--sigma", 0), ("--sigma", "greater than 0")),
        (("--sigma", -2), ("--sigma", "greater than 0")),
        (("--sigma", "six"), ("--sigma",)),
        (("--sigma", "1,2,3"), ("--sigma",)),
        ((), ("--sigma", "--target-delta")),
        (("--sigma", 6, "--noise", "cauchy"), ("--noise", "best")),
        (("--sigma", 6, "--attacker-bound", 0.1), ("--attacker-bound",)),
        (("--target-delta", 0.1, "--noise", "best"), ("--noise",)),
        (("--target-delta", 2), ("--target-delta",)),
        (("--target-delta", 0.001, "--coupling", "gaussian"), ("--target-delta", "guess")),
        (("--sigma", 6, "--coupling", "weight = height + 1000"), ("--coupling", "'weight'")),
        (("--sigma", 6, "--coupling", "weight = age"), ("--coupling", "age")),
        (("--sigma", 6, "--coupling", "weight ~ age"), ("--coupling", "age")),
        (("--sigma", 6, "--coupling", "weight ~ height,height"), ("--coupling",)),
        (("--sigma", 6, "--coupling", "weight ~"), ("--coupling",)),
        (("--sigma", 6, "--coupling", "weight = open('x')"), ("--coupling", "arithmetic")),
        (("--sigma", 6, "--coupling", "nonsense"), ("--coupling", "kernel")),
        (("--sigma", 6, "--domain", "height"), ("--domain", "COLUMN=LOW:HIGH")),
        (("--sigma", 6, "--domain", "height=5:5"), ("--domain",)),
        (("--sigma", 6, "--domain", "height=a:b"), ("--domain",)),
        (("--sigma", 6, "--domain", "street=1:2"), ("--domain", "street")),
        (("--sigma", 6, "--coupling", "gaussian", "--domain", "height=900:901"), ("--domain",)),
        (("--sigma", 6, "--coupling", "weight ~ height", "--degree", 0), ("--degree",)),
    ],
)
def test_what_cannot_be_asked_is_refused_by_the_name_of_its_option(
    people: Path, tmp_path: Path, command: str, options: tuple[object, ...], words: tuple[str, ...]
) -> None:
    before = files(tmp_path)
    output = ("-o", tmp_path / "noisy.csv") if command == "publish" else ()
    refused(call(*asked(command, people, *options, *output)), *words)
    assert files(tmp_path) == before


@pytest.mark.parametrize("command", ["disclosure", "publish"])
def test_a_column_that_is_no_number_is_refused_by_name_and_row(
    people: Path, tmp_path: Path, command: str
) -> None:
    output = ("-o", tmp_path / "noisy.csv") if command == "publish" else ()
    given = ("--table", people, "--columns", "height,street", "--accuracy", 2, "--sigma", 6)
    refused(call(command, *given, *output), people, "row 1", "'street'", "number")
    missing = ("--table", people, "--columns", "height,zz", "--accuracy", 2, "--sigma", 6)
    refused(call(command, *missing, *output), people, "zz")


def test_a_history_is_named_in_its_own_problems(people: Path, tmp_path: Path) -> None:
    past = write(tmp_path / "past.csv", NAMES, [("p", "tall", 70, "s"), ("q", 171, 71, "s")])
    options = ("--sigma", 6, "--coupling", "gaussian", "--history", past)
    refused(call(*asked("disclosure", people, *options)), past, "row 1", "'height'")


def test_columns_too_far_from_0_are_refused_by_name(tmp_path: Path) -> None:
    table = write(tmp_path / "far.csv", ["x", "y"], [(1e12, 1), (1.1e12, 2), (1.3e12, 3)])
    asked = ("--accuracy", 2, "--sigma", 6, "--coupling", "none")  # nothing to learn from three
    given = ("--table", table, "--columns", "x,y", *asked)
    refused(call("publish", *given, "-o", tmp_path / "noisy.csv"), "x")
    assert "column 'x'" in call("publish", *given, "-o", tmp_path / "noisy.csv").err
