"""Some answers in, the commands that suit them out."""

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


class History(StrEnum):
    """Whether somebody may learn from streams that were recorded before."""

    RECORDED = "yes: such streams were recorded before, in history.csv"
    NONE = "no: nothing may be learnt from beforehand"


class Arrival(StrEnum):
    """How values come."""

    FILE = "in files: live.csv, and others later"
    LIVE = "one by one, and each is answered at once"


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


RANGE = Question("range", "Between which two numbers do they lie?", None, "0:4000")
MAP_RANGE = Question(
    "range", "Between which longitudes and latitudes?", None, "13.0:13.8,52.3:52.7"
)
HORIZON = Question("horizon", "How many values has a stream at most?", None, "50")
HISTORY = Question("history", "Is there a history to learn from?", History, History.RECORDED)
SYMBOLS = Question("symbols", "Which values are there?", None, "home,work,elsewhere")
ARRIVAL = Question("arrival", "How do values come?", Arrival, Arrival.FILE)


def questions(answers: Mapping[str, str]) -> tuple[Question, ...]:
    """What is asked of somebody with such data, in turn; answers so far decide what follows."""
    match DataKind(answers[KIND.name]):
        case DataKind.STREAMS:
            return _stream_questions(answers)
        case DataKind.SERIES | DataKind.COLUMN | DataKind.RECORD:
            return FILE, COLUMNS
        case DataKind.EXISTING:
            return FILE, STREAM, COLUMNS
        case kind:
            assert_never(kind)


def _stream_questions(answers: Mapping[str, str]) -> tuple[Question, ...]:
    values = answers.get(VALUES.name, VALUES.default)
    recorded = answers.get(HISTORY.name, HISTORY.default) == History.RECORDED
    asked = [STREAM, VALUES, COLUMNS]
    # A range of a history would show the values at its ends; so it is named beforehand.
    if values != ValueKind.NAMES:
        asked.append(MAP_RANGE if values == ValueKind.MAP else RANGE)
    asked.append(HISTORY)
    if recorded:
        asked.append(PROMISE)
        if answers.get(PROMISE.name, PROMISE.default) == Promise.TOTAL:
            asked.append(HORIZON)
    elif values == ValueKind.NAMES:
        asked.append(SYMBOLS)
    return *asked, ARRIVAL


PURPOSES = {
    "fit": "learn from recorded streams what an observer may know beforehand",
    "explain": "say in plain words what the file holds and promises",
    "plan": "try ways to release, on streams that are made up: what each loses and tells",
    "release": "release the live values; each leaves with what it tells, and no answer is drawn "
    "twice",
    "serve": "answer values one by one, over HTTP; it prints the access key to put into my.access",
    "push": "send values to the service, from another terminal, and keep what it answers",
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
    recorded = History(answers["history"]) is History.RECORDED
    source = "history.csv" if recorded else "--uniform"
    model = f"sfumato fit {source} --stream {given['stream']}{_values(answers, given)} -o my.model"
    if not recorded:
        rule = "--epsilon 2 --learn"
    elif Promise(answers["promise"]) is Promise.TOTAL:
        rule = f"--budget 5 --horizon {given['horizon']}"
    else:
        rule = "--epsilon 0.5"
    plan = [f"sfumato plan --model my.model {rule}"] if recorded else []
    first = [model, "sfumato explain my.model", *plan]
    if Arrival(answers["arrival"]) is Arrival.FILE:
        return [*first, *_from_files(rule)]
    # A service learns nothing while it answers: what left is learnt from afterwards.
    served = rule if recorded else "--epsilon 2 --method randomized-response"
    return [*first, *_from_service(served, answers, given)]


def _values(answers: Mapping[str, str], given: Mapping[str, str]) -> str:
    """The options of `fit` that say what values are."""
    match ValueKind(answers["values"]):
        case ValueKind.NAMES:
            named = f" --values {given['symbols']}" if "symbols" in given else ""
            return f" --value {given['columns']}{named}"
        case ValueKind.NUMBERS:
            return f" --value {given['columns']} --bins 12 --range {given['range']}"
        case ValueKind.MAP:
            x, y = map(shlex.quote, _two(answers["columns"]))
            return f" --grid 8x8 --x {x} --y {y} --units degrees --range {given['range']}"


def _from_files(rule: str) -> list[str]:
    return [
        f"sfumato release live.csv --model my.model {rule} --ledger my.ledger -o private.csv",
        "sfumato audit private.csv --model my.model --ledger my.ledger",
        "sfumato explain my.ledger",
    ]


def _from_service(rule: str, answers: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    column = given["columns"]
    if ValueKind(answers["values"]) is ValueKind.MAP:
        column = shlex.quote(",".join(_two(answers["columns"])))
    columns = f"--stream {given['stream']} --value {column}"
    return [
        f"sfumato serve --home my-home --model my.model {rule}",
        "sfumato push live.csv --to http://localhost:8477 --access-key-file my.access "
        f"{columns} --source first -o private.csv",
        "sfumato audit --home my-home --release default",
        "sfumato explain my-home",
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
