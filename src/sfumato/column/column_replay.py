"""A released column once more, for whoever has its rows: figures, fit of outputs, every draw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.column.column_attest import figures_document
from sfumato.column.column_certificate import Privatized
from sfumato.column.column_release import (
    FittedColumn,
    learn_and_release,
    release_known,
)
from sfumato.column.column_verify import known_of, read_spec, remarks_due
from sfumato.column.knowledge import Records
from sfumato.core import portable
from sfumato.core.fair_coins import LEVEL, largest_fortune
from sfumato.core.randomness import BITS
from sfumato.core.verification import Verification
from sfumato.noise.lattice import Lattice
from sfumato.tables.cells import Missing, is_missing
from sfumato.tables.columns import read_columns
from sfumato.tables.held_against import HeldAgainst
from sfumato.tables.row_order import Order

# What is drawn, or follows from what was drawn: with fresh coins it comes out otherwise.
_DRAWN = ("frequencies",)


def replay_column(held: HeldAgainst) -> bool:
    """Hold a certificate and its table against the true rows, and note what does not fit.

    Without the key, outputs are tested by how well they fit.

    Returns:
        Whether every draw was repeated.
    """
    found, document, coins = held.found, held.document, held.coins
    spec = replace(read_spec(document), randomness=coins)
    rows = read_columns(held.rows, spec.released_columns)
    past = None if held.history is None else read_columns(held.history, spec.learnt_columns)
    done = _released_again(document, spec, rows, past)
    due = figures_document(done.certificate)
    due["remarks"] = remarks_due(document["remarks"], due["remarks"])
    keyed = coins is not None
    skipped = set(() if keyed else _DRAWN) | (set() if keyed else {"fingerprint"})
    stated = {name: document[name] for name in due if name in document and name not in skipped}
    due = {name: value for name, value in due.items() if name not in skipped}
    found.compare(stated, due, "the rows")
    found.figures |= {name: due[name] for name in ("lip", "ldp", "cost", "silence", "gain")}
    found.promise = dict.fromkeys(found.promise, True)
    found.checked.append(f"{', '.join(stated)}: computed again from the rows")
    names = [*spec.pass_through.columns, spec.column]
    cells = read_columns(held.table, names)
    if len(cells[spec.column]) != done.certificate.rows:
        return False
    if keyed:
        _check_draws(found, done, cells, names)
    elif spec.order is not Order.SHUFFLED:
        _check_fit(found, done, rows, cells[spec.column])
    return keyed


def _released_again(document: Mapping[str, Any], spec: Any, rows: Any, past: Any) -> Privatized:
    evidence = document["evidence"]
    if evidence is not None and evidence["priors"]:
        kept = {name: rows[name] for name in spec.pass_through.linked}
        known = known_of(document, spec, kept, "frame")
        assert known[0] is not None  # there are priors
        return release_known(spec, rows, known[1], known[0])
    if past is not None:
        return FittedColumn.learnt(spec, past, Records.PUBLIC).release(rows)
    return learn_and_release(spec, rows)


def _check_draws(
    found: Verification, done: Privatized, cells: Mapping[str, Sequence[Any]], names: Sequence[str]
) -> None:
    """Every row is what the key draws."""
    drawn = {name: [str(cell) for cell in done.frame[name]] for name in names}
    for row, both in enumerate(
        zip(zip(*drawn.values(), strict=True), zip(*cells.values(), strict=True), strict=True), 1
    ):
        if list(both[0]) != [str(cell) for cell in both[1]]:
            found.note("table", f"row {row} is not what the key draws for the true value")
    found.checked.append(f"{found.rows:,} rows: every draw was repeated with the key")


def _check_fit(
    found: Verification, done: Privatized, rows: Mapping[str, Sequence[Any]], cells: Sequence[Any]
) -> None:
    """Outputs follow the channels of their true values, as far as a bet can tell."""
    evidence, knowledge = done.sampler.evidence, done.knowledge
    if not evidence.channels:
        found.unchecked.append("that the coins were fair: there is no test for reports")
        return
    left = [cell for cell in rows[done.spec.column] if not _is_dropped(done, cell)]
    values = done.spec.cells(left)
    places = knowledge.places(values, "frame")
    fortune = largest_fortune(_hits(found, evidence, knowledge.owner, places, cells))
    # What bets make moves with every true value: whoever holds those may see it, no report.
    made = f"{portable.exp(min(fortune, 700.0)):.3g}"
    found.private.append(f"bets against fair coins made {made} of 1 at best")
    found.checked.append(
        "outputs beside their true values: bets against fair coins, which honest releases let make "
        f"{1 / LEVEL:,.0f} of 1 with probability {LEVEL:g} at most"
    )
    if fortune >= -portable.log(LEVEL):
        found.note("table", "the outputs are no fair draws: the truth leaves too often")


def _is_dropped(done: Privatized, cell: Any) -> bool:
    return done.spec.missing is Missing.DROP and is_missing(cell)


def _hits(
    found: Verification, evidence: Any, owner: Any, places: Any, cells: Sequence[Any]
) -> Iterator[tuple[bool, float]]:
    """Whether each output is the nearest that its true value can have, and how likely that is."""
    texts = {str(label): place for place, label in enumerate(evidence.labels)}
    of_row = np.zeros(len(cells), np.int64) if owner is None else evidence.of_group[owner]
    lattice = evidence.where if isinstance(evidence.where, Lattice) else None
    for row, (cell, place) in enumerate(zip(cells, places.tolist(), strict=True), start=1):
        channel = evidence.channels[of_row[row - 1]]
        weights, output = channel.weights[place], texts.get(str(cell))
        columns = np.flatnonzero(channel.outputs == output)
        if columns.size == 0 or weights[columns[0]] == 0:
            found.note("table", f"row {row} is no output that the true value can have")
            continue
        distances = _distances(evidence, lattice, place)[channel.outputs]
        distances = np.where(weights > 0, distances, np.inf)
        nearest = distances <= distances.min()
        chance = float(np.ldexp(weights[nearest].astype(np.float64), -BITS).sum())
        yield bool(nearest[columns[0]]), min(chance, 1.0)


def _distances(evidence: Any, lattice: Lattice | None, place: int) -> Any:
    if lattice is not None:
        return np.abs(lattice.points - lattice.points[place])
    return evidence.loss.matrix[place]
