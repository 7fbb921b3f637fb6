"""Ways to cheat and to tamper, each with who finds it and what he is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow.parquet

from sfumato.stream.release_spec import ReleaseSpec
from tests.audit.releasers import farthest, honest, likeliest, nearer_of_two, nearest
from tests.audit.scene import Level, Scene
from tests.shell.tables import PLACES, read

FAIR = ReleaseSpec(epsilon=0.8, method="randomized-response")
SUPPRESS = ReleaseSpec(epsilon=0.8, method="randomized-response", when_unknown="suppress")
REPEAT = ReleaseSpec(epsilon=0.8, method="randomized-response", when_unknown="repeat")
SKIP = ReleaseSpec(epsilon=0.8, method="randomized-response", missing="skip")
SPECIAL = PLACES[1]
"""A place that somebody wants to know of."""


@dataclass(frozen=True)
class Trick:
    """One way to cheat.

    Attributes:
        name: What is done.
        level: Who finds it; whoever has less does not.
        do: Does it to an honest release.
        says: A part of what the audit says.
        options: Of the audit, for everybody.
        scene: Which honest release it begins with.
    """

    name: str
    level: Level
    do: Callable[[Scene], object]
    says: str
    options: tuple[object, ...] = ()
    scene: str = "csv"


def _anyone(
    name: str, do: Callable[[Scene], object], says: str, *options: object, scene: str = "csv"
) -> Trick:
    return Trick(name, Level.ANYONE, do, says, options, scene)


def _raw(name: str, do: Callable[[Scene], object], says: str, *options: object) -> Trick:
    return Trick(name, Level.RAW_DATA, do, says, options, "long")


def _hidden_column(scene: Scene) -> None:
    values = [str(record["place"]) for record in read(scene.live)]
    scene.cells(
        lambda rows: [[*row, more] for row, more in zip(rows, ["note", *values], strict=True)]
    )


def _truth_in_last_digits(scene: Scene) -> None:
    """What was tried: the place of the true value in the last digits of sip."""
    places = [PLACES.index(str(record["place"])) for record in read(scene.live)]

    def told(rows: list[list[str]]) -> list[list[str]]:
        for row, place in zip(rows[1:], places, strict=True):
            row[-2] = repr(float(row[-2]) + (place + 1) * 2.0**-52)
        return rows

    scene.cells(told)


def _remark_in_parquet(scene: Scene) -> None:
    whole = pyarrow.parquet.read_table(scene.private)
    pyarrow.parquet.write_table(whole.replace_schema_metadata({"note": "clinic"}), scene.private)
    scene.seal()


def _other_type_in_parquet(scene: Scene) -> None:
    whole = pyarrow.parquet.read_table(scene.private)
    place = whole.schema.get_field_index("sequence")
    wide = whole.set_column(place, "sequence", whole["sequence"].cast("float64"))
    pyarrow.parquet.write_table(wide, scene.private)
    scene.seal()


def _swap_rows_of_a_stream(scene: Scene) -> None:
    def swapped(rows: list[list[str]]) -> list[list[str]]:
        first = 1
        second = next(i for i in range(2, len(rows)) if rows[i][0] == rows[first][0])
        rows[first], rows[second] = rows[second], rows[first]
        return rows

    scene.cells(swapped)


def _order_of_streams_changed(scene: Scene) -> None:
    """The order of rows of different people, with the old seal."""

    def sorted_rows(data: bytes) -> bytes:
        head, *rows = data.splitlines(keepends=True)
        return b"".join([head, *sorted(rows, key=lambda row: row.split(b",")[0])])

    scene.bytes(sorted_rows, seal=False)


def _last_value_edited(scene: Scene) -> None:
    """The last value of a stream: no later certificate depends on it."""
    last = len(read(scene.private))
    scene.cell(last, "released", lambda text: PLACES[PLACES.index(text) - 1])


def _end_left_out(scene: Scene) -> None:
    """The last values of all streams, as if they had never been released."""
    scene.cells(lambda rows: rows[:-7])


def _edited(scene: Scene, **fields: object) -> None:
    scene.plan(lambda rules: rules.update(fields))


TRICKS = [
    # Certificates and values -------------------------------------------------------------------
    _anyone("sip is understated", lambda s: s.cell(5, "sip", lambda t: "0.1"), "sip must be 0."),
    _anyone("ldp is understated", lambda s: s.cell(5, "ldp", lambda t: "0.1"), "ldp must be 0."),
    _anyone("truth in last digits of sip", _truth_in_last_digits, "in digits that are not shown"),
    _anyone("a zero more behind sip", lambda s: s.cell(3, "sip", lambda t: t + "0"), "sip must be"),
    _anyone(
        "sip with an exponent",
        lambda s: s.cell(3, "sip", lambda t: f"{float(t):.17e}"),
        "sip must be written as",
    ),
    _anyone(
        "a number with a zero before it",
        lambda s: s.cell(3, "sequence", lambda t: "0" + t),
        "sequence must be written as",
    ),
    _anyone(
        "a space before a number",
        lambda s: s.cell(3, "sequence", lambda t: " " + t),
        "sequence must be written as",
    ),
    _anyone(
        "a value outside the alphabet",
        lambda s: s.cell(3, "released", lambda t: "palace"),
        "the released value",
    ),
    _anyone(
        "a value is withheld that the plan refuses",
        lambda s: s.cells(
            lambda rows: [
                [*row[:2], "", "suppressed", "0.0", "0.0"] if i == 4 else row
                for i, row in enumerate(rows)
            ]
        ),
        "be one that the plan allows here",
    ),
    _anyone(
        "a row says it was skipped",
        lambda s: s.cells(
            lambda rows: [
                [*row[:2], "", "skipped", "0.0", "0.0"] if i == 4 else row
                for i, row in enumerate(rows)
            ]
        ),
        "never skips a row",
    ),
    # The form of the file ------------------------------------------------------------------------
    _anyone("true values in a column of their own", _hidden_column, "must be no column 'note'"),
    _anyone(
        "columns in another order",
        lambda s: s.cells(lambda rows: [[*row[:4], row[5], row[4]] for row in rows]),
        "in the order of the release",
    ),
    _anyone(
        "a column twice",
        lambda s: s.cells(lambda rows: [[*row, row[-1]] for row in rows]),
        "column names must be distinct",
    ),
    _anyone(
        "one more cell in a row",
        lambda s: s.bytes(lambda data: data.replace(b"\n", b",1\n").replace(b",1\n", b"\n", 1)),
        "fields, like the header",
    ),
    _anyone(
        "a bit in quotes",
        lambda s: s.bytes(lambda data: data.replace(b",released,", b',"released",', 1)),
        "must be written as the release writes it",
    ),
    _anyone(
        "a bit in line ends",
        lambda s: s.bytes(lambda data: data[:-1] + b"\r\n"),
        "must be written as the release writes it",
    ),
    _anyone(
        "a mark before the header",
        lambda s: s.bytes(lambda data: b"\xef\xbb\xbf" + data),
        "must be written as the release writes it",
    ),
    _anyone(
        "blank lines at the end",
        lambda s: s.bytes(lambda data: data + b"\n\n"),
        "must be written as the release writes it",
    ),
    _anyone(
        "no end of the last line",
        lambda s: s.bytes(lambda data: data[:-1]),
        "must be written as the release writes it",
    ),
    _anyone(
        "a remark in one line of JSON",
        lambda s: s.bytes(lambda data: data.replace(b"}\n", b',"note":1}\n', 1)),
        "have the fields of the release",
        scene="jsonl",
    ),
    _anyone(
        "an escaped letter in JSON",
        lambda s: s.bytes(lambda data: data.replace(b'"released"', b'"relea\\u0073ed"', 2)),
        "must be written as the release writes it",
        scene="jsonl",
    ),
    _anyone("a remark in Parquet", _remark_in_parquet, "no remarks", scene="parquet"),
    _anyone(
        "bits in a wider number", _other_type_in_parquet, "must have the type", scene="parquet"
    ),
    _anyone(
        "digits behind the centre of a cell",
        lambda s: s.cell(2, "x", lambda t: t + "0"),
        "x and y must be the centre",
        scene="grid",
    ),
    _anyone(
        "another batch",
        lambda s: s.cell(2, "batch", lambda t: str(int(t) + 7)),
        "sequence numbers from",
        scene="batch",
    ),
    # All of it -----------------------------------------------------------------------------------
    _anyone(
        "the end is cut off",
        lambda s: s.bytes(lambda data: b"".join(data.splitlines(True)[:-5]), seal=False),
        "rows that the release wrote; it has",
    ),
    _anyone(
        "rows are added",
        lambda s: s.bytes(lambda data: data + data.splitlines(True)[-1], seal=False),
        "rows that the release wrote; it has",
    ),
    _anyone("rows in another order", _order_of_streams_changed, "was changed afterwards"),
    _anyone(
        "a row is taken out", lambda s: s.cells(lambda r: [*r[:3], *r[4:]]), "sequence number must"
    ),
    _anyone(
        "a row is told twice",
        lambda s: s.cells(lambda r: [*r[:3], r[2], *r[3:]]),
        "sequence number must",
    ),
    _anyone("two rows of a stream change places", _swap_rows_of_a_stream, "sequence number must"),
    _anyone(
        "a row is given to another stream",
        lambda s: s.cell(3, "person", lambda t: t + "x"),
        "sequence number must",
    ),
    _anyone(
        "the plan does not say how long the file is",
        lambda s: s.plan(lambda rules: rules.pop("sealed")),
        "nothing else tells a part",
    ),
    # The promise ---------------------------------------------------------------------------------
    _anyone(
        "ten times the budget",
        lambda s: s.cheat(ReleaseSpec(epsilon=8.0, method="randomized-response"), honest),
        "must allow at most SIP(0.8/value); it allows SIP(8) for each value",
        *("--require-budget", "0.8/value"),
    ),
    _anyone(
        "a budget that may be spent again and again",
        lambda s: None,
        "must allow at most SIP(10/stream)",
        *("--require-budget", "10/stream"),
    ),
    _anyone("no cap whatever the model", lambda s: None, "it allows no cap", "--require-ldp", "3"),
    _anyone(
        "a smaller budget is written into the plan",
        lambda s: _edited(s, epsilon=0.4),
        "sip must be 0.",
    ),
    _anyone(
        "another method is written into the plan",
        lambda s: _edited(s, method="optimal"),
        "PROBLEM",
    ),
    _anyone(
        "a simulation",
        lambda s: s.cheat(ReleaseSpec(epsilon=0.8, purpose="simulation"), honest),
        "whose coins can be guessed",
    ),
    _anyone(
        "the plan does not name its model",
        lambda s: s.plan(lambda rules: rules.update(model=None)),
        "must name its model",
    ),
    _anyone(
        "another model than agreed",
        lambda s: None,
        "the one that --require-model names",
        *("--require-model", "ab12"),
    ),
    _anyone(
        "values are withheld at one place",
        lambda s: s.cheat(SUPPRESS, honest, withhold=lambda value: value == SPECIAL),
        "rows released nothing although there was budget",
    ),
    # The ledger tells ----------------------------------------------------------------------------
    Trick(
        "another value than was released, where nothing follows",
        Level.LEDGER,
        _last_value_edited,
        "must say what was released",
        scene="ledger",
    ),
    Trick(
        "the end of the streams is left out, and what is left is sealed",
        Level.LEDGER,
        _end_left_out,
        "the ledger holds 7 events more",
        scene="ledger",
    ),
    # Only true values tell -----------------------------------------------------------------------
    _raw(
        "the truth whenever the channel can give it", lambda s: s.cheat(FAIR, nearest), "fair draws"
    ),
    _raw("the truth in half of the rows", lambda s: s.cheat(FAIR, nearest, 0.5), "fair draws"),
    _raw("the nearer of two draws", lambda s: s.cheat(FAIR, nearer_of_two), "fair draws"),
    _raw("the likeliest output", lambda s: s.cheat(FAIR, likeliest), "fair draws"),
    _raw("never the truth", lambda s: s.cheat(FAIR, farthest), "fair draws"),
    _raw(
        "the truth of one person",
        lambda s: s.cheat(FAIR, nearest, only=lambda person, value: person == "person-1"),
        "fair draws",
    ),
    _raw(
        "the truth at one place",
        lambda s: s.cheat(FAIR, nearest, only=lambda person, value: value == SPECIAL),
        "fair draws",
    ),
    _raw(
        "suppressing exactly at one place, as if it were unknown",
        lambda s: s.cheat(SUPPRESS, honest, withhold=lambda value: value == SPECIAL),
        "must not be withheld while there is budget",
        *("--allow", "withheld"),
    ),
    _raw(
        "repeating exactly at one place, as if it were unknown",
        lambda s: s.cheat(REPEAT, honest, withhold=lambda value: value == SPECIAL),
        "must not be withheld while there is budget",
        *("--allow", "withheld"),
    ),
    _raw(
        "skipping exactly at one place, as if it were missing",
        lambda s: s.cheat(SKIP, honest, withhold=lambda value: value == SPECIAL),
        "must not be skipped",
    ),
]
