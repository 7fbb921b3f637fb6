"""Whatever is answered, the commands are ones that the program knows, with options that it has."""

import itertools
import shlex
from collections.abc import Iterator

import pytest
import typer

from sfumato.cli.app import app
from sfumato.explanations.first_steps import (
    KIND,
    DataKind,
    Promise,
    Question,
    ValueKind,
    commands,
    questions,
)
from tests.shell.running import call

PROGRAM = typer.main.get_command(app)


def ways(question: Question) -> list[str]:
    if question.choices is None:
        return [question.default]
    return [choice.value for choice in question.choices]


def answers() -> Iterator[dict[str, str]]:
    for kind in DataKind:
        asked = questions(kind)
        assert len(asked) <= 4
        for given in itertools.product(*map(ways, asked)):
            names = [question.name for question in asked]
            yield {KIND.name: kind.value, **dict(zip(names, given, strict=True))}


@pytest.mark.parametrize("given", list(answers()), ids=lambda given: "; ".join(given.values()))
def test_all_commands_are_understood(given: dict[str, str]) -> None:
    for line in commands(given):
        program, *words = shlex.split(line)
        assert program == "sfumato"
        group = PROGRAM
        while hasattr(group, "commands"):
            group = group.commands[words.pop(0)]
        group.make_context("x", words)  # raises on an option that is not there


def test_names_with_blanks_are_one_word() -> None:
    given = {
        "kind": DataKind.STREAMS,
        "stream": "the user",
        "values": ValueKind.MAP,
        "columns": "my lon, my lat",
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
