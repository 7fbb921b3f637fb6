"""Check the certificate of released streams: every row and every figure again, from their rules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sfumato.core.certificate import certificate_document
from sfumato.core.errors import CorruptData
from sfumato.core.randomness import Randomness
from sfumato.core.verification import Verification, reading_certificate
from sfumato.store.attestation import ENVELOPE, attested
from sfumato.tables.closed_file import check_file
from sfumato.tables.columns import read_columns
from sfumato.tables.input_groups import EventColumns
from sfumato.tables.readers import Table
from sfumato.temporal.temporal_audit import audit_streams
from sfumato.temporal.temporal_rows import output_columns
from sfumato.temporal.temporal_run import TemporalReport
from sfumato.temporal.temporal_spec import TemporalSpec, document, parse_spec

JOB = "temporal release"
# Sums over more moments are rounded otherwise: by far less than this.
_SLACK = 1e-9


def streams_document(
    report: TemporalReport,
    spec: TemporalSpec,
    columns: EventColumns,
    coins: Randomness | None,
    commitment: str | None,
    *,
    ledger: bool,
) -> dict[str, Any]:
    """The certificate of released streams as a JSON object; `sfumato verify` checks it.

    Args:
        report: What the run did.
        spec: The rules: matrices, alpha and mechanism, all of them public.
        columns: Those of ids and times, which left too.
        coins: Where the noise came from.
        commitment: To the key of the coins.
        ledger: Whether there was one, so that other files may hold moments of these streams.
    """
    told = certificate_document(report.certificate) | {
        "rules": json.loads(document(spec)),
        "event": columns.event,
        "time": columns.time,
        "rows": report.rows,
        "moments": report.moments,
        "streams": report.streams,
        "asked": {"ledger": ledger},
    }
    return attested(JOB, told, coins, commitment)


def verify_streams(stated: Mapping[str, Any], table: Table) -> Verification:
    """Compute the certificate of `temporal release` again, from its rules and the released rows.

    Args:
        stated: The certificate, as `store.attestation.read_certificate` reads it.
        table: What was released.

    Raises:
        CorruptData: If it is no certificate of streams, with the rule that it breaks.
    """
    with reading_certificate("streams"):
        spec = parse_spec(json.dumps(stated["rules"]).encode(), "the certificate")
        columns = EventColumns(stated["event"], stated["time"])
        cells = read_columns(table, list(output_columns(spec, columns)))
        found = Verification(stated["job"], spec.purpose, len(cells["sequence"]))
        _figures(found, stated, spec, table)
    check_file(found, table, cells)
    return found


def _figures(
    found: Verification, stated: Mapping[str, Any], spec: TemporalSpec, table: Table
) -> None:
    due = {name: value for name, value in stated.items() if name not in ENVELOPE}
    if stated["asked"] not in ({"ledger": True}, {"ledger": False}):
        raise CorruptData("asked: its only field must be ledger, true or false")
    # Only a ledger knows of moments that stand in other files.
    parts = stated["asked"]["ledger"] and stated["moments"] != found.rows
    audit = audit_streams([table], spec, simulation=True, parts=parts)
    for problem in audit.problems:
        found.note("table", problem)
    made = certificate_document(audit.certificate)
    due["rows"] = found.rows
    figures = {f"{one['notion']} {one['scope']}": one["alpha"] for one in made["guarantees"]}
    found.promise = dict.fromkeys(figures, not parts)
    if parts:
        _check_part(found, stated, made["guarantees"], len(audit.leakages))
    else:
        due = made | {name: due[name] for name in due if name not in made}
        due |= {"streams": len(audit.leakages), "moments": found.rows}
        found.figures = figures | {name: made[name] for name in ("cost", "silence", "gain")}
        found.checked.append("guarantees, cost, silence, gain: computed from rows and rules")
    held = {name: value for name, value in stated.items() if name not in ENVELOPE}
    found.compare(held, due, "the rows and the rules")
    found.unchecked.append("that the coins were fair, and that no stream or last row is missing")


def _check_part(
    found: Verification, stated: Mapping[str, Any], least: list[dict[str, Any]], streams: int
) -> None:
    """Of streams that go on elsewhere: nothing is less than what stands here from the first on."""
    for name, here in (("moments", found.rows), ("streams", streams)):
        if stated[name] < here:
            found.note(name, f"the certificate says {stated[name]}, and the file holds {here}")
    if len(stated["guarantees"]) != len(least):
        raise CorruptData(f"guarantees: there must be {len(least)}")
    for place, (one, other) in enumerate(zip(stated["guarantees"], least, strict=True)):
        if {**one, "alpha": 0} != {**other, "alpha": 0}:
            found.note(f"guarantees[{place}]", "it is none of the rules")
        if not one["alpha"] >= other["alpha"] * (1 - _SLACK):
            told = f"the certificate says {one['alpha']}; the rows of this file alone leak"
            found.note(f"guarantees[{place}].alpha", f"{told} {other['alpha']}")
    found.checked.append("guarantees: no less than what the rows of this file leak")
    found.unchecked.append(
        "guarantees, cost, silence: earlier rows of these streams stand in other files or in "
        "the ledger (sfumato temporal audit monday.csv tuesday.csv, or --ledger)"
    )
