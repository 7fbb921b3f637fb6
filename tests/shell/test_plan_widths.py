"""`sfumato plan --batch`: what waiting saves, before anything is released."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.printed import shown_up
from sfumato.models.stream_model import StreamModel
from sfumato.store.files import load
from sfumato.stream.batch_widths import forecast_widths
from sfumato.stream.release_spec import ReleaseSpec
from tests.shell.running import call, done

RULE = ("--epsilon", 0.5, "--steps", 24)
CLOCK = ("seconds", "slowest")
KEYS = {
    "width",
    "loss",
    "loss_error",
    "gap",
    "sip",
    "ldp",
    "mean_delay",
    "longest_delay",
    "seconds",
    "slowest",
    "parts",
    "exact",
}


@pytest.fixture(scope="module")
def compared(model: Path) -> list[dict[str, Any]]:
    """Batches of one to three of four places."""
    plan = ("plan", "-m", model, *RULE, "--batch", "1,2,3", "--json")
    document = done(*plan).document
    assert list(document) == ["batches", "total", "one_value", "silent_loss"]
    assert document["total"] == 12.0
    assert 0.5 < document["one_value"] <= 12.0
    assert max(row["loss"] for row in document["batches"]) < document["silent_loss"]
    rows = document["batches"]
    assert isinstance(rows, list)
    return rows


def without_clock(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in CLOCK}


def test_every_width_is_told_with_all_its_numbers(compared: list[dict[str, Any]]) -> None:
    assert [row["width"] for row in compared] == [1, 2, 3]
    for row in compared:
        assert set(row) == KEYS
        assert 0 < row["loss"] < 1
        assert 0 <= row["gap"] <= 1e-6
        assert 0 < row["sip"] <= 0.5
        assert row["sip"] <= row["ldp"] <= 1.0
        assert row["mean_delay"] == (row["width"] - 1) / 2
        assert row["longest_delay"] == row["width"] - 1
        assert 0 < row["seconds"] <= row["slowest"]
        assert (row["parts"], row["exact"]) == (4 ** row["width"], True)


def test_waiting_longer_is_not_dearer(compared: list[dict[str, Any]]) -> None:
    one, two, three = (row["loss"] for row in compared)
    assert three <= two <= one


def test_the_command_says_what_the_python_call_says(
    model: Path, compared: list[dict[str, Any]]
) -> None:
    read = load(model)
    assert isinstance(read, StreamModel)
    plan = ReleaseSpec(epsilon=0.5, batch=3).batched(read)
    rows = [asdict(row) for row in forecast_widths(plan, [1, 2, 3], steps=24)]
    assert list(map(without_clock, rows)) == list(map(without_clock, compared))


def test_a_width_is_judged_alike_alone_and_among_others(
    model: Path, compared: list[dict[str, Any]]
) -> None:
    plan = ("plan", "-m", model, *RULE, "--json", "--batch")
    (alone,) = done(*plan, "2").document["batches"]
    assert without_clock(alone) == without_clock(compared[1])
    back = done(*plan, " 3, 1").document["batches"]
    assert [without_clock(row) for row in back] == [without_clock(compared[i]) for i in (2, 0)]


def test_the_seed_is_that_of_the_simulation(model: Path, compared: list[dict[str, Any]]) -> None:
    plan = ("plan", "-m", model, *RULE, "--batch", "2", "--json", "--seed")
    same, other = done(*plan, 1).document["batches"], done(*plan, 2).document["batches"]
    assert without_clock(same[0]) == without_clock(compared[1])
    assert other[0]["loss"] != same[0]["loss"]


def test_the_table_has_a_row_for_each_width(model: Path, compared: list[dict[str, Any]]) -> None:
    said = done("plan", "-m", model, *RULE, "--batch", "1,2,3").out
    assert "what a value loses and tells, on average over 96 values" in said
    for heading in ("batch", "loss", "gap", "SIP", "LDP", "waits for", "at most", "ms a batch"):
        assert heading in said
    for row in compared:
        assert f"{row['loss']:.4g}" in said
        assert shown_up(row["sip"], 4) in said
        assert f"{row['parts']:,}" in said


@pytest.mark.parametrize(
    "rule",
    [
        ("--budget", 5, "--horizon", 10),
        ("--budget", 2, "--window", 4),
        ("--epsilon", 0.5, "--ldp", 0.6),
        ("--epsilon", 0.5, "--loss", "histogram"),
    ],
)
def test_every_form_of_a_budget_and_a_loss_of_histograms_can_be_planned(
    model: Path, rule: tuple[object, ...]
) -> None:
    steps = () if "--horizon" in rule else ("--steps", 10)
    for row in done("plan", "-m", model, *rule, *steps, "--batch", "1,2", "--json").document[
        "batches"
    ]:
        assert 0 < row["sip"] <= 0.5 + 1e-9
        assert row["ldp"] <= (0.6 if "--ldp" in rule else 2.0)


def test_batches_too_many_to_be_listed_are_put_into_boxes(model: Path) -> None:
    plan = ("plan", "-m", model, "--epsilon", 0.5, "--steps", 14, "--batch", "7")
    (row,) = done(*plan, "--json").document["batches"]
    assert (row["exact"], row["gap"]) == (False, None)
    assert row["parts"] < 4**7
    assert 0 < row["sip"] <= 0.5
    assert " boxes" in done(*plan).out


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_picture_is_drawn(model: Path, tmp_path: Path, suffix: str) -> None:
    picture = tmp_path / f"widths.{suffix}"
    plan = ("plan", "-m", model, "--epsilon", 0.5, "--steps", 6, "--batch", "1,2", "--plot")
    said = done(*plan, picture)
    head = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert picture.read_bytes().startswith(head[suffix])
    assert f"{picture}: loss against the length of batches" in said.err


@pytest.mark.parametrize(
    "widths",
    [
        "",
        ",",
        "1,",
        "1,,2",
        "two",
        "1;2",
        "1.5",
        "-1",
        "0",
        "0,1",
        "1,1",
        "2,02",
        "1e1",
        "²",
        "1,③",
    ],
)
def test_bad_lists_are_refused_with_one_clear_line(
    model: Path, tmp_path: Path, widths: str
) -> None:
    picture = tmp_path / "widths.png"
    result = call("plan", "-m", model, *RULE, f"--batch={widths}", "--plot", picture)
    assert (result.code, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1
    assert result.err.startswith("sfumato: ")
    assert "--batch" in result.err or "width" in result.err
    assert not picture.exists()


def test_a_budget_must_be_given_once(model: Path) -> None:
    for rule in ((), ("--epsilon", 1, "--budget", 2), ("--budget", 2)):
        result = call("plan", "-m", model, *rule, "--batch", "1,2")
        assert result.code == 2
        assert "be --epsilon E, or --budget B --horizon T, or --budget B --window W" in result.err
