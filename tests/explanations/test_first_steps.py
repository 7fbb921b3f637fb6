"""Whatever is answered, the commands are ones that the program knows, with options that it has."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from sfumato.cli.app import app
from sfumato.explanations.first_steps import (
    KIND,
    Arrival,
    DataKind,
    History,
    Promise,
    Question,
    ValueKind,
    commands,
    questions,
)
from tests.shell.running import call, done

PROGRAM = typer.main.get_command(app)


def ways(question: Question) -> list[str]:
    if question.choices is None:
        return [question.default]
    return [choice.value for choice in question.choices]


def answers(given: dict[str, str] | None = None) -> Iterator[dict[str, str]]:
    """All that can be answered, question after question."""
    if given is None:
        for kind in DataKind:
            yield from answers({KIND.name: kind.value})
        return
    left = [one for one in questions(given) if one.name not in given]
    if not left:
        assert len(given) <= 9
        yield given
        return
    for choice in ways(left[0]):
        yield from answers({**given, left[0].name: choice})


@pytest.mark.parametrize("given", list(answers()), ids=lambda given: "; ".join(given.values()))
def test_all_commands_are_understood(given: dict[str, str]) -> None:
    for line in commands(given):
        program, *words = shlex.split(line)
        assert program == "sfumato"
        group = PROGRAM
        while hasattr(group, "commands"):
            group = group.commands[words.pop(0)]
        group.make_context("x", words)  # raises on an option that is not there


STREAMS = {"kind": DataKind.STREAMS, "history": History.RECORDED, "arrival": Arrival.FILE}
SAMPLES: dict[str, dict[str, str]] = {
    "cells": {
        **{**STREAMS, "stream": "phone", "values": ValueKind.MAP, "columns": "lon,lat"},
        **{"range": "12.3:12.424,43.7:43.79", "promise": Promise.TOTAL, "horizon": "96"},
    },
    "activities": {
        **{**STREAMS, "stream": "person", "values": ValueKind.NAMES, "columns": "activity"},
        **{"promise": Promise.TOTAL, "horizon": "100"},
    },
    "meter": {
        **{**STREAMS, "stream": "home", "values": ValueKind.NUMBERS, "columns": "watts"},
        **{"range": "0:3000", "promise": Promise.EACH},
    },
    "clicks": {
        **{**STREAMS, "stream": "visit", "values": ValueKind.NAMES, "columns": "page"},
        **{"history": History.NONE, "symbols": "PAGES"},
    },
    "counts": {"kind": DataKind.SERIES, "file": "counts.csv", "columns": "people"},
    "people": {"kind": DataKind.COLUMN, "file": "people.csv", "columns": "commute"},
    "existing": {
        **{"kind": DataKind.EXISTING, "file": "history.csv"},
        **{"stream": "person", "columns": "place"},
    },
}
"""What somebody with the data of a sample answers."""


@pytest.mark.parametrize("sample", SAMPLES)
def test_printed_commands_run_on_the_samples(
    sample: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done("sample", sample)
    given = SAMPLES[sample]
    if given.get("symbols") == "PAGES":
        cells = {line.split(",")[-1] for line in Path("live.csv").read_text().splitlines()[1:]}
        given = {**given, "symbols": ",".join(sorted(cells))}
    for line in commands(given):
        # Fewer streams try the same: what is tried is not what is tested here.
        quick = ("--streams", 2, "--length", 8) if line.startswith("sfumato plan") else ()
        done(*shlex.split(line)[1:], *quick)


@pytest.mark.slow
def test_printed_commands_for_several_columns_run_on_their_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done("sample", "people")
    given = {"kind": DataKind.RECORD, "file": "people.csv", "columns": "height,weight"}
    for line in commands(given):
        done(*shlex.split(line)[1:])


def test_bins_and_maps_never_take_their_range_from_the_history() -> None:
    for given in answers():
        first = commands(given)[0]
        if "--bins" in first or "--grid" in first:
            assert "--range" in first


def test_who_has_no_history_starts_from_nothing() -> None:
    found = [given for given in answers() if given.get("history") == History.NONE]
    assert found
    for given in found:
        first, *rest = commands(given)
        assert "--uniform" in first and "history.csv" not in first
        assert any("--learn" in line or "randomized-response" in line for line in rest)


def test_live_values_are_answered_by_a_service() -> None:
    for given in answers():
        served = [line for line in commands(given) if line.startswith("sfumato serve")]
        assert bool(served) == (given.get("arrival") == Arrival.LIVE)


def test_names_with_blanks_are_one_word() -> None:
    given = {
        **STREAMS,
        "stream": "the user",
        "values": ValueKind.MAP,
        "columns": "my lon, my lat",
        "range": "0:1,0:1",
        "promise": Promise.EACH,
    }
    first = shlex.split(commands(given)[0])
    assert first[first.index("--stream") + 1] == "the user"
    assert first[first.index("--x") + 1] == "my lon"


def test_the_commands_alone_are_the_output() -> None:
    told = call("start", stdin=b"2\ncounts.csv\nn\n")
    assert told.code == 0
    assert "sfumato realtime counts.csv --value n" in told.out
    assert "What have you got?" in told.err
    assert "What have you got?" not in told.out


def test_a_number_that_is_no_choice_is_asked_for_again() -> None:
    told = call("start", "--json", stdin=b"9\n3\npeople.csv\nsalary\n")
    assert told.document["answers"]["kind"] == DataKind.COLUMN.value


def test_an_end_in_the_middle_is_no_answer() -> None:
    told = call("start", stdin=b"1\n")
    assert told.code != 0
    assert "sfumato fit" not in told.out
