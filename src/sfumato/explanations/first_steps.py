"""Five answers in, the commands that suit them out."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never


class DataKind(StrEnum):
    """What somebody has."""

    STREAMS = "values of people over time"
    SERIES = "a series of counts or readings"
    COLUMN = "a table, of which one column is to leave"
    RECORD = "a table, of which several columns are to leave"
    EXISTING = "releases with DP noise that are made already"


class ValueKind(StrEnum):
    """What the values of a stream are."""

    NAMES = "names: activities, pages, places"
    NUMBERS = "numbers: watts, degrees, levels"
    MAP = "longitude and latitude"


class Promise(StrEnum):
    """What a stream is to be limited by."""

    TOTAL = "a total for each stream, which ends"
    EACH = "a cap on each value, for ever"


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its choices, or with an answer in words.

    Attributes:
        name: Of the answer.
        asked: The question.
        choices: What may be answered; anything if there are none.
        default: What is taken if nothing is answered.
    """

    name: str
    asked: str
    choices: type[StrEnum] | None
    default: str


KIND = Question("kind", "What have you got?", DataKind, DataKind.STREAMS)
FILE = Question("file", "In which file?", None, "data.csv")
STREAM = Question("stream", "Which column tells people (or devices) apart?", None, "user")
VALUES = Question("values", "What are the values?", ValueKind, ValueKind.NAMES)
COLUMNS = Question("columns", "In which column (columns: a,b) do they stand?", None, "value")
PROMISE = Question("promise", "How shall a stream be limited?", Promise, Promise.TOTAL)


def questions(kind: DataKind) -> tuple[Question, ...]:
    """What else is asked of somebody with such data; five questions at most in all."""
    match kind:
        case DataKind.STREAMS:
            return STREAM, VALUES, COLUMNS, PROMISE
        case DataKind.SERIES | DataKind.COLUMN | DataKind.RECORD:
            return FILE, COLUMNS
        case DataKind.EXISTING:
            return FILE, STREAM, COLUMNS
        case _:
            assert_never(kind)


PURPOSES = {
    "fit": "learn from recorded streams what an observer may know beforehand",
    "explain": "say in plain words what the file holds and promises",
    "plan": "try ways to release, on streams that are made up: what each loses and tells",
    "release": "release the live values; each leaves with what it tells, and no answer is drawn "
    "twice",
    "audit": "check what left from public things alone, as a stranger could",
    "recover": "guess the true values from what left, as a receiver may: it costs no privacy",
    "compare": "try all methods on the series, side by side; nothing is released",
    "realtime": "release the series value by value, with a certificate beside it",
    "privatize": "publish one column, with a certificate beside it",
    "verify": "compute the certificate again, as a stranger could",
    "disclosure": "how likely an attacker finds a person through such noise; nothing is published",
    "publish": "publish the columns with the least noise that keeps attackers that rare",
    "temporal fit": "learn how values follow each other, in both directions",
    "temporal leakage": "what each of the releases really tells of people who stay the same",
    "temporal allocate": "the budgets that keep a promise to them",
}
"""What the commands of first steps do, in a line."""


def purpose(command: str) -> str:
    """What a command line does.

    Examples:
        >>> purpose("sfumato temporal fit history.csv -o town")
        'learn how values follow each other, in both directions'
    """
    _, first, second, *_ = [*command.split(), "", ""]
    return PURPOSES.get(f"{first} {second}") or PURPOSES[first]


def commands(answers: Mapping[str, str]) -> list[str]:
    """The commands for some answers, in the order in which they are run.

    Examples:
        >>> for line in commands({"kind": DataKind.SERIES, "file": "c.csv", "columns": "n"}):
        ...     print(line)
        sfumato compare c.csv --value n --sensitivity 1 --epsilon 1
        sfumato realtime c.csv --value n --sensitivity 1 --epsilon 1 -o private.csv
        sfumato explain private.csv.certificate.json
    """
    given = {name: shlex.quote(answer) for name, answer in answers.items()}
    made: Mapping[DataKind, Callable[[Mapping[str, str], Mapping[str, str]], list[str]]] = {
        DataKind.STREAMS: _stream_commands,
        DataKind.SERIES: _series_commands,
        DataKind.COLUMN: _column_commands,
        DataKind.RECORD: _record_commands,
        DataKind.EXISTING: _existing_commands,
    }
    return made[DataKind(answers["kind"])](answers, given)


def _stream_commands(answers: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    fit = f"sfumato fit history.csv --stream {given['stream']}"
    match ValueKind(answers["values"]):
        case ValueKind.NAMES:
            fit += f" --value {given['columns']}"
        case ValueKind.NUMBERS:
            fit += f" --value {given['columns']} --bins 12"
        case ValueKind.MAP:
            x, y = _two(answers["columns"])
            fit += f" --grid 8x8 --x {shlex.quote(x)} --y {shlex.quote(y)} --units degrees"
    budget = "--epsilon 0.5"
    if Promise(answers["promise"]) is Promise.TOTAL:
        budget = "--budget 5 --horizon 50"
    return [
        f"{fit} -o my.model",
        "sfumato explain my.model",
        f"sfumato plan --model my.model {budget}",
        f"sfumato release live.csv --model my.model {budget} --ledger my.ledger -o private.csv",
        "sfumato audit private.csv --model my.model --ledger my.ledger",
        "sfumato explain my.ledger",
    ]


def _two(columns: str) -> tuple[str, str]:
    """Columns of a map, or what they usually are called."""
    names = [name.strip() for name in columns.split(",")]
    return (names[0], names[1]) if len(names) == 2 else ("lon", "lat")


def _series_commands(answers: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    rest = f"{given['file']} --value {given['columns']} --sensitivity 1 --epsilon 1"
    return [
        f"sfumato compare {rest}",
        f"sfumato realtime {rest} -o private.csv",
        "sfumato explain private.csv.certificate.json",
    ]


def _column_commands(answers: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    return [
        f"sfumato privatize {given['file']} -c {given['columns']} --epsilon 1 --compare "
        "-o private.csv",
        "sfumato verify private.csv.certificate.json",
        "sfumato explain private.csv.certificate.json",
    ]


def _record_commands(answers: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    table = f"--table {given['file']} --columns {given['columns']} --accuracy 3"
    return [
        f"sfumato disclosure {table} --sigma 8",
        f"sfumato publish {table} --target-delta 0.2 -o private.csv",
        "sfumato explain private.csv.certificate.json",
    ]


def _existing_commands(answers: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    matrices = "--backward people.backward.csv --forward people.forward.csv"
    return [
        f"sfumato temporal fit {given['file']} --stream {given['stream']} "
        f"--value {given['columns']} -o people",
        f"sfumato temporal leakage {matrices} --epsilon 0.1 --steps 50",
        f"sfumato temporal allocate --alpha 1 {matrices} --steps 50",
    ]
