"""Check the certificate of a released series: its noise made again, and every figure with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.core.certificate import certificate_document
from sfumato.core.randomness import Randomness
from sfumato.core.verification import Verification, asked_of, reading_certificate
from sfumato.series.realtime import Realtime
from sfumato.series.realtime_run import SeriesCertificate, series_certificate
from sfumato.series.risk import Risk, measured_risk
from sfumato.series.series_audit import audit_series, read_rules
from sfumato.series.series_methods import AnyMethod
from sfumato.series.series_spec import SeriesSpec
from sfumato.store.attestation import ENVELOPE, attested
from sfumato.tables.closed_file import check_file
from sfumato.tables.columns import read_columns
from sfumato.tables.moments import values_of
from sfumato.tables.readers import Table

JOB = "realtime"
ASKED = ("period", "time", "missing", "history", "parts")
"""What was asked for, beside the rules: how the filter was made, and whether there are parts."""
_MEASURED = ("cost", "silence", "gain")


def series_document(
    certificate: SeriesCertificate,
    *,
    column: str,
    kept: Sequence[str],
    notes: Sequence[str],
    asked: Mapping[str, Any],
    coins: Randomness | None,
    commitment: str | None,
) -> dict[str, Any]:
    """The certificate of a released series as a JSON object; `sfumato verify` checks it.

    Args:
        certificate: What it promises, and is worth.
        column: The column of the values.
        kept: Columns that left beside them.
        notes: What is said of those.
        asked: How the filter was made, and whether the series came in parts.
        coins: Where the noise came from.
        commitment: To the key of the coins.
    """
    told = certificate_document(certificate) | {"column": column, "kept": list(kept)}
    told |= {"remarks": [*notes, *certificate.remarks], "asked": dict(asked)}
    return attested(JOB, told, coins, commitment)


def verify_series(document: Mapping[str, Any], table: Table) -> Verification:
    """Compute the certificate of `realtime` again, from its rules and the released values.

    Args:
        document: The certificate, as `store.attestation.read_certificate` reads it.
        table: What was released.

    Raises:
        CorruptData: If it is no certificate of a series, with the rule that it breaks.
    """
    with reading_certificate("a series"):
        column, kept = str(document["column"]), [str(name) for name in document["kept"]]
        cells = read_columns(table, [*kept, column])
        values = values_of(cells[column], range(len(cells[column])), table.path)
        found = _figures(document, values)
        for row, (cell, value) in enumerate(zip(cells[column], values, strict=True), start=1):
            if isinstance(cell, str) and value is not None and repr(value) != cell:
                found.note("table", f"row {row} is not written in the one way that it has")
    check_file(found, table, cells)
    return found


def _figures(document: Mapping[str, Any], values: Sequence[float | None]) -> Verification:
    asked_of(document, ASKED)
    spec, method, purpose = read_rules(document["rules"], "the certificate")
    found = Verification(document["job"], purpose.value, len(values))
    risk = _risk(document, spec, method, values)
    certificate = series_certificate(method, spec, values, risk, purpose)
    due = certificate_document(certificate)
    if risk is None:
        due |= {name: document[name] for name in _MEASURED}
    stated = list(document["remarks"])
    own = stated if risk is None else list(certificate.remarks)
    due["remarks"] = [*stated[: len(stated) - len(own)], *own]
    due |= {name: document[name] for name in ("column", "kept", "asked")}
    held = {name: value for name, value in document.items() if name not in ENVELOPE}
    found.compare(held, due, "the noise of the rules")
    audit = audit_series(dict(document), values, None, simulation=True)
    for problem in audit.problems:
        found.note("rules", problem)
    computed = ["epsilon", "delta", "unit", "values", "fingerprint"]
    computed += [] if risk is None else list(_MEASURED)
    found.figures = {name: due[name] for name in computed if name != "fingerprint"}
    found.promise = {"epsilon": True, "delta": True}
    found.checked += [f"{', '.join(computed)}: computed from the rules", *audit.checked]
    found.unchecked += audit.unchecked
    if risk is None:
        found.unchecked.append(
            f"{', '.join(_MEASURED)}: not checkable from the certificate, for they follow from "
            "measurements that did not leave as they were"
        )
    return found


def _risk(
    document: Mapping[str, Any],
    spec: SeriesSpec,
    method: AnyMethod,
    values: Sequence[float | None],
) -> Risk | None:
    """What is expected of the error, where released values are all the measurements."""
    whole = not document["asked"]["parts"] and spec.interval is None
    plain = not isinstance(method, Realtime) or method.estimate.name == "plain"
    variances = method.error_variances
    if not (whole and plain) or variances is None:
        return None
    return measured_risk(values, variances)
