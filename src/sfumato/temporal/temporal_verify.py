"""Check the certificate of released streams: every row and every figure again, from their rules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sfumato.core.certificate import certificate_document
from sfumato.core.errors import CorruptData, SfumatoError
from sfumato.core.randomness import Randomness
from sfumato.core.verification import Verification
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


def streams_document(
    report: TemporalReport,
    spec: TemporalSpec,
    columns: EventColumns,
    coins: Randomness | None,
    commitment: str | None,
) -> dict[str, Any]:
    """The certificate of released streams as a JSON object; `sfumato verify` checks it.

    Args:
        report: What the run did.
        spec: The rules: matrices, alpha and mechanism, all of them public.
        columns: Those of ids and times, which left too.
        coins: Where the noise came from.
        commitment: To the key of the coins.
    """
    told = certificate_document(report.certificate) | {
        "rules": json.loads(document(spec)),
        "event": columns.event,
        "time": columns.time,
        "rows": report.rows,
        "moments": report.moments,
        "streams": report.streams,
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
    try:
        spec = parse_spec(json.dumps(stated["rules"]).encode(), "the certificate")
        columns = EventColumns(stated["event"], stated["time"])
        cells = read_columns(table, list(output_columns(spec, columns)))
        found = Verification(stated["job"], spec.purpose, len(cells["sequence"]))
        _figures(found, stated, spec, table)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as problem:
        if isinstance(problem, SfumatoError):
            raise
        raise CorruptData(f"the certificate of streams is damaged: {problem!r}") from problem
    check_file(found, table, cells)
    return found


def _figures(
    found: Verification, stated: Mapping[str, Any], spec: TemporalSpec, table: Table
) -> None:
    due = {name: value for name, value in stated.items() if name not in ENVELOPE}
    due["rows"] = found.rows
    if stated["moments"] == found.rows:
        audit = audit_streams([table], spec, simulation=True)
        for problem in audit.problems:
            found.note("table", problem)
        made = certificate_document(audit.certificate)
        due = made | {name: due[name] for name in due if name not in made}
        due["streams"] = len(audit.leakages)
        found.figures = {
            f"{one['notion']} {one['scope']}": one["alpha"] for one in made["guarantees"]
        } | {name: made[name] for name in ("cost", "silence", "gain")}
        found.checked.append("guarantees, cost, silence, gain: computed from rows and rules")
    else:
        found.unchecked.append(
            "guarantees, cost, silence: earlier rows of these streams stand in other files or in "
            "the ledger (sfumato temporal audit monday.csv tuesday.csv, or --ledger)"
        )
    held = {name: value for name, value in stated.items() if name not in ENVELOPE}
    found.compare(held, due, "the rows and the rules")
    found.unchecked.append("that the coins were fair, and that no stream or last row is missing")
