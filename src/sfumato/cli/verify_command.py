"""`sfumato verify`: compute the figures of a certificate again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sfumato.cli import options
from sfumato.cli.console import FAILED_AUDIT, print_json, print_line
from sfumato.cli.options import argument, flag, option
from sfumato.core.errors import CorruptData, InvalidParameter

if TYPE_CHECKING:
    from sfumato.core.verification import Verification
    from sfumato.tables.readers import Table

_SUFFIX = ".certificate.json"


class _VerifyOptions(options.Options):
    certificate: str = argument("OUTPUT.certificate.json, beside what was released.", "CERTIFICATE")
    table: str | None = option("What was released [CERTIFICATE without .certificate.json].")
    simulation: bool = flag("--simulation", "A simulation is what was meant; else it fails.")
    separator: str | None = options.SEPARATOR
    shown: options.Shown


def verify(given: _VerifyOptions) -> None:
    """Compute every figure of a certificate again, from what it holds and what was released.

    For what `privatize`, `publish`, `realtime` and `temporal release` write beside their output;
    `sfumato audit` checks what `release` wrote. A certificate holds what its figures follow from:
    priors where they are public, channels or noise as integers, what was asked for, and the SHA-256
    of the released table. All figures are compared to the last digit; a field that is missing,
    unknown or edited, a table that was changed, a row that no channel could release and a column
    that was not certified are problems. Exit code 1 when something does not fit.

    What a certificate must not hold cannot be checked from it: a prior that was learnt from the
    private rows would tell about them. Such figures are named.

    \b
    Examples:
      sfumato verify private.csv.certificate.json
      sfumato verify noisy.parquet.certificate.json --json
    """
    from sfumato.store.attestation import file_digest, read_certificate
    from sfumato.tables.readers import Table

    path = given.certificate
    if path.endswith(".plan.json"):
        raise InvalidParameter("CERTIFICATE", path, "be a certificate; see `sfumato audit`")
    document, problems = read_certificate(path)
    table = given.table or path.removesuffix(_SUFFIX)
    if table == path or not Path(table).is_file():
        raise InvalidParameter("--table", table, "be the released table, which must be there")
    found = _verified(document, Table.at(table, separator=given.separator), path)
    if document["table"] != file_digest(table):
        changed = "the table is not the one that was certified: it was changed"
        problems.append(f"table.sha256: {changed}")
    else:
        found.checked.append("the table is the one that was certified (SHA-256)")
    if found.purpose != "release" and not given.simulation:
        problems.append("purpose: a simulation: its coins can be guessed (see --simulation)")
    found.problems[:0] = problems
    if given.shown.as_json:
        print_json({"passed": found.passed, "certificate": path, **asdict(found)})
    else:
        _show(found, path)
    if not found.passed:
        raise typer.Exit(FAILED_AUDIT)


def _verified(document: dict[str, Any], table: Table, path: str) -> Verification:
    job = document["job"]
    if job == "privatize":
        from sfumato.column.column_verify import verify_column

        return verify_column(document, table)
    if job == "publish":
        from sfumato.record.record_verify import verify_publish

        return verify_publish(document, table)
    if job == "realtime":
        from sfumato.series.series_verify import verify_series

        return verify_series(document, table)
    if job == "temporal release":
        from sfumato.temporal.temporal_verify import verify_streams

        return verify_streams(document, table)
    raise CorruptData(f"{path}: job: {str(job)[:40]!r} is none whose certificates are known")


def _show(found: Verification, path: str) -> None:
    print_line(f"{path}: {found.job}, {found.rows:,} rows")
    for name, figure in found.figures.items():
        print_line(f"  {name} {figure}")
    for what in found.checked:
        print_line(f"checked: {what}")
    for what in found.unchecked:
        print_line(f"NOT checked: {what}")
    for problem in found.problems:
        print_line(f"PROBLEM {problem}")
    if found.purpose != "release":
        print_line("A SIMULATION: its coins can be guessed; it protects nobody's values")
    print_line("the certificate fits" if found.passed else "the certificate does NOT fit")
