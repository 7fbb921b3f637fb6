"""The part of `sfumato verify` that is for whoever has the true values, or the key as well."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.core.verification import Verification
    from sfumato.tables.held_against import HeldAgainst
    from sfumato.tables.readers import Table

_ASK = "(--against RAW computes them)"
_UNPROVEN = "that the key was drawn at random: publish its commitment before there are data"


def hold_against(
    found: Verification,
    document: dict[str, Any],
    table: Table,
    against: Table,
    history: Table | None,
    secret: bytes | None,
) -> None:
    """Release once more by what the certificate says, and note what comes out otherwise."""
    from sfumato.core.randomness import keyed
    from sfumato.store.keys import commitment_of
    from sfumato.tables.held_against import HeldAgainst

    if (secret is None) != (document["coins"] != "keyed") and secret is not None:
        raise InvalidParameter("--key-file", "given", "come with a release whose coins were keyed")
    if secret is not None:
        own = commitment_of(secret)
        if own != document["commitment"]:
            found.note("commitment", "it is not that of the key that was given")
        found.unchecked.append(_UNPROVEN)
    coins = None if secret is None else keyed(secret)
    held = HeldAgainst(found, document, table, against, history, coins)
    match document["job"]:
        case "privatize":
            from sfumato.column.column_replay import replay_column

            repeated = replay_column(held)
        case "publish":
            repeated = _publish(held)
        case "realtime":
            repeated = _realtime(held)
        case _:
            repeated = _streams(held)
    # Only what was really done is taken off the list of what was not.
    found.unchecked = still_open(found.unchecked, computed=found.promise_checked, repeated=repeated)


def still_open(unchecked: list[str], *, computed: bool, repeated: bool) -> list[str]:
    """What remains unchecked where figures were computed from true rows, or draws repeated."""
    answered = [_ASK] if computed else []
    answered += ["that the coins were fair, and"] if repeated else []
    return [each for each in unchecked if not any(words in each for words in answered)]


def _publish(held: HeldAgainst) -> bool:
    """Every delta again, from the records; with the key every value."""
    from dataclasses import replace

    from sfumato.record.publish import publish
    from sfumato.record.record_attest import figures_document
    from sfumato.record.record_spec import BEST
    from sfumato.record.record_verify import read_spec
    from sfumato.tables.columns import read_columns

    found, document, coins = held.found, held.document, held.coins
    spec = replace(read_spec(document), randomness=coins)
    rows = read_columns(held.rows, spec.table_columns)
    names = [*spec.beside.columns, *spec.columns]
    if document["asked"]["coupling"] == "given":
        found.unchecked.append("delta: the density was given, and is not in the certificate")
        if coins is None or spec.noise == BEST:
            what = "a key" if coins is None else "the density that the best noise was made against"
            found.unchecked.append(f"that the coins were fair: it needs {what}")
            return False
        # What attackers know shapes the promise, not the draws: those follow from the noise.
        plain = replace(spec, coupling="none", target_delta=None, sigma=document["sigma"])
        _same_rows(held, publish(rows, plain).frame, names)
        return True
    past = None if held.history is None else read_columns(held.history, spec.history_columns)
    done = publish(rows, spec, history=past)
    due = figures_document(done.certificate)
    told = [name for name in due if coins is not None or name != "fingerprint"]
    found.compare({name: document[name] for name in told}, {n: due[n] for n in told}, "the rows")
    found.figures |= {name: due[name] for name in told if name.startswith("delta")}
    found.promise = dict.fromkeys(found.promise, True)
    found.checked.append("every delta: computed again from the rows")
    if coins is None:
        return False
    _same_rows(held, done.frame, names)
    return True


def _realtime(held: HeldAgainst) -> bool:
    """Every value again, with the key; without it true values tell nothing that can be proven."""
    from dataclasses import replace

    from sfumato.cli.realtime_command import estimate_of
    from sfumato.core.digest import digest
    from sfumato.series.realtime_run import release_series
    from sfumato.series.series_audit import read_rules
    from sfumato.tables.columns import read_columns
    from sfumato.tables.moments import kept_rows, values_of

    document, coins, path = held.document, held.coins, held.rows.path
    asked, column = document["asked"], document["column"]
    if coins is None or asked["parts"]:
        what = "a key" if coins is None else "a series that was released at once"
        held.found.unchecked.append(f"that the coins were fair: it needs {what}")
        return False
    spec, _, purpose = read_rules(document["rules"], "the certificate")
    timed = [] if asked["time"] is None else [asked["time"]]
    cells = read_columns(held.rows, [column, *timed])
    rows = kept_rows(cells[column], asked["missing"], path)
    times = [cells[timed[0]][row] for row in rows] if timed else None
    series = values_of(cells[column], rows, path)
    estimate = estimate_of(asked["period"], held.history, column, times, path)
    again = release_series(
        series,
        replace(spec, estimate=estimate),
        name=digest("realtime", column, repr(series)),
        randomness=coins,
        purpose=purpose,
    )
    _same_rows(held, {column: again.values}, [column])
    return True


def _streams(held: HeldAgainst) -> bool:
    """Every row again, with the key."""
    import json
    from dataclasses import replace

    from sfumato.tables.columns import read_columns
    from sfumato.tables.input_groups import EventColumns
    from sfumato.temporal.temporal_rows import output_columns
    from sfumato.temporal.temporal_run import release_streams
    from sfumato.temporal.temporal_spec import parse_spec

    found, document, coins, table = held.found, held.document, held.coins, held.table
    if coins is None or document["moments"] != found.rows:
        what = "a key" if coins is None else "all rows of its streams in one file"
        found.unchecked.append(f"that the coins were fair: it needs {what}")
        return False
    spec = parse_spec(json.dumps(document["rules"]).encode(), "the certificate")
    columns = EventColumns(document["event"], document["time"])
    with tempfile.TemporaryDirectory() as folder:
        again = replace(table, path=str(Path(folder) / Path(table.path).name))
        release_streams(held.rows, again, spec, columns=columns, randomness=coins)
        names = list(output_columns(spec, columns))
        _same_rows(held, read_columns(again, names), names)
    return True


def _same_rows(held: HeldAgainst, due: Any, names: list[str]) -> None:
    from sfumato.tables.columns import read_columns

    found, cells = held.found, read_columns(held.table, names)
    drawn = [["" if cell is None else str(cell) for cell in due[name]] for name in names]
    stated = [["" if cell is None else str(cell) for cell in cells[name]] for name in names]
    for row, (one, other) in enumerate(
        zip(zip(*drawn, strict=True), zip(*stated, strict=True), strict=False), start=1
    ):
        if one != other:
            found.note("table", f"row {row} is not what the key draws for the true value")
    if len(drawn[0]) != len(stated[0]):
        found.note("table", "it has not as many rows as were released")
    found.checked.append(f"{found.rows:,} rows: every draw was repeated with the key")
