"""`sfumato verify`: compute the figures of a certificate again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sfumato.cli import coin_options, options
from sfumato.cli.console import FAILED_AUDIT, SIMULATED, print_json, print_line, shortened
from sfumato.cli.options import argument, flag, option
from sfumato.cli.report_page import REPORT, check_report_path, write_report
from sfumato.core.errors import CorruptData, InvalidParameter

if TYPE_CHECKING:
    from sfumato.cli.report_comparison import Held
    from sfumato.core.verification import Verification
    from sfumato.store.reports import Findings
    from sfumato.tables.readers import Table

_SUFFIX = ".certificate.json"
_LEVELS = {
    0: "anyone: from the certificate and the released table alone",
    1: "holder of the true rows",
    2: "holder of the true rows and the key",
}


class _VerifyOptions(options.Options):
    certificate: str = argument("OUTPUT.certificate.json, beside what was released.", "CERTIFICATE")
    table: str | None = option("What was released [CERTIFICATE without .certificate.json].")
    against: str | None = option(
        "The true rows: figures that came from them are computed again, and outputs are tested "
        "beside them, locally."
    )
    history: str | None = option("With --against: the public records of the release.")
    secret: coin_options.Secret
    commitment: str | None = option("With --key-file: what was published before the data.")
    simulation: bool = flag("--simulation", "A simulation is what was meant; else it fails.")
    require_promise: bool = flag(
        "--require-promise", "Fail unless every figure of the promise was computed again."
    )
    report: list[str] | None = REPORT
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
    private rows would tell about them. Such figures are named; with --against RAW they are
    computed again, and outputs are held against their channels. With --key-file every draw is
    repeated: a single coin that was turned round shows. Not repeated are series and streams
    that came in parts (--state, --ledger), and best noise for a density given in Python.

    What may be missing follows from what was asked, never from what is left out. The last line
    says "the certificate fits" only when every figure of the promise was computed again; else it
    names those that were not, or says NOT ONE. --require-promise makes that a failure.

    \b
    Examples:
      sfumato verify private.csv.certificate.json
      sfumato verify noisy.parquet.certificate.json --json
      sfumato verify private.csv.certificate.json --require-promise
      sfumato verify private.csv.certificate.json --against survey.csv
      sfumato verify private.csv.certificate.json --against survey.csv --key-file year.key
      sfumato verify private.csv.certificate.json --report checked.json --report checked.html
    """
    from sfumato.store.reports import ReadFile, report_document

    for path in given.report or []:
        check_report_path(path)
    found = verification(given.certificate, given.table, given.separator, given.simulation)
    _hold_against(given, found)
    _require(found, given.require_promise)
    level = 0 if given.against is None else 1 if given.secret.key_file is None else 2
    for path in given.report or []:
        files = [
            ReadFile("certificate", given.certificate),
            ReadFile("table", given.table or table_of(given.certificate)),
        ]
        files += [] if given.against is None else [ReadFile("true values", given.against, True)]
        files += [] if given.history is None else [ReadFile("history", given.history)]
        key = given.secret.key_file
        files += [] if key is None else [ReadFile("key", key, secret=True)]
        write_report(report_document(_findings(found, given, level), files), path)
    if given.shown.as_json:
        told = {"passed": found.passed, "promise_checked": found.promise_checked}
        print_json({**told, "certificate": given.certificate, **asdict(found)})
    else:
        _show(found, given.certificate)
    if not found.passed:
        raise typer.Exit(FAILED_AUDIT)


def table_of(certificate: str) -> str:
    """The table that a certificate lies beside."""
    return certificate.removesuffix(_SUFFIX)


def verification(
    path: str, table: str | None, separator: str | None, simulation: bool
) -> Verification:
    """What became of checking a certificate."""
    from sfumato.store.attestation import file_digest, read_certificate
    from sfumato.tables.readers import Table

    if path.endswith(".plan.json"):
        raise InvalidParameter("CERTIFICATE", path, "be a certificate; see `sfumato audit`")
    document, problems = read_certificate(path)
    table = table or table_of(path)
    if table == path or not Path(table).is_file():
        raise InvalidParameter("--table", table, "be the released table, which must be there")
    found = _verified(document, Table.at(table, separator=separator), path)
    if document["table"] != file_digest(table):
        changed = "the table is not the one that was certified: it was changed"
        problems.append(f"table.sha256: {changed}")
    else:
        found.checked.append("the table is the one that was certified (SHA-256)")
    if found.purpose != "release" and not simulation:
        problems.append("purpose: a simulation: its coins can be guessed (see --simulation)")
    found.problems[:0] = problems
    return found


def verify_findings(asked: dict[str, Any], paths: dict[str, list[str]], held: Held) -> Findings:
    """The findings of `verify` once more, from files at hand; of a holder's, what is public."""
    from sfumato.cli.verify_against import still_open

    given = _VerifyOptions(
        certificate=paths["certificate"][0],
        table=paths["table"][0],
        against=next(iter(held.against), None),
        history=next(iter(paths.get("history", [])), None) if held.against else None,
        secret=coin_options.Secret(key_file=held.key_file, shared_key=held.shared_key),
        commitment=held.commitment,
        simulation=bool(asked.get("simulation")),
        require_promise=bool(asked.get("require promise")),
        report=None,
        separator=None,
        shown=options.Shown(as_json=True, quiet=True),
    )
    found = verification(given.certificate, given.table, None, given.simulation)
    _hold_against(given, found)
    if held.is_partial:
        found.unchecked = still_open(found.unchecked, computed=True, repeated=held.level > 1)
    else:
        _require(found, given.require_promise)
    return _findings(found, given, held.level)


def _require(found: Verification, promise: bool) -> None:
    """With `--require-promise` a figure of the promise that was not computed again is a problem."""
    for name in [name for name, known in found.promise.items() if promise and not known]:
        found.problems.append(f"{name}: promised, and not computed again (--require-promise)")


def _hold_against(given: _VerifyOptions, found: Verification) -> None:
    """Compare with true rows, and with the draws of a key."""
    from sfumato.cli.verify_against import hold_against
    from sfumato.store.attestation import read_certificate
    from sfumato.store.keys import is_committed
    from sfumato.tables.readers import Table

    key = given.secret
    if given.commitment is not None and key.key_file is None:
        raise InvalidParameter("--commitment", given.commitment, "come with --key-file")
    secret = key.read()
    if secret is not None and given.commitment is not None:
        if is_committed(secret, given.commitment):
            found.checked.append("the key is the one that was committed to")
        else:
            found.note("commitment", "the key is not the one that was committed to")
    if given.against is None:
        for name, value in (("--history", given.history), ("--key-file", key.key_file)):
            if value is not None:
                raise InvalidParameter(name, value, "come with --against")
        return
    document, _ = read_certificate(given.certificate)
    paths = (given.table or table_of(given.certificate), given.against, given.history)
    table, against, history = (
        None if path is None else Table.at(path, separator=given.separator) for path in paths
    )
    assert table is not None and against is not None  # both were named
    hold_against(found, document, table, against, history, secret)


def _findings(found: Verification, given: _VerifyOptions, level: int) -> Findings:
    """What may leave of what was found: beside true rows, how many problems, not which."""
    from sfumato.store.reports import Findings

    who, problems = _LEVELS[level], found.problems
    if level and problems:
        problems = [f"{len(problems):,} problems, told to the {who}"]
    # Of the promise a holder computes more than others: what, his report says as checked.
    promise = {} if level else found.promise
    again = {True: "computed again", False: "NOT computed again"}
    given_options = {"simulation": given.simulation, "require promise": given.require_promise}
    return Findings(
        command="verify",
        asked={name: True for name, on in given_options.items() if on},
        level=who,
        passed=found.passed,
        promise=[f"{name}: {again[known]}" for name, known in promise.items()],
        totals={"job": found.job, "purpose": found.purpose, "rows": found.rows, **found.figures},
        streams={},
        problems=problems,
        checked=found.checked,
        not_checked=found.unchecked,
    )


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


_FIGURES = {
    "lip": "what a row leaks to an observer who knows the prior, in nats",
    "ldp": "what it leaks whatever he knows, in nats",
    "epsilon": "odds of who is hidden change by a factor of at most e^epsilon",
    "unit": "who is hidden",
    "cost": "expected loss of a value",
    "silence": "loss of saying nothing, one fixed value for all",
    "gain": "the share of that which is saved",
    "delta_model": "chance that the best attacker who knows the coupling finds all columns",
    "delta_without_correlation": "chance of an attacker who sees the published values alone",
    "steps": "of the lattice on which values and noise lie",
}
_OF_JOBS = {
    ("publish", "delta"): "chance that the best attacker finds all columns of a person",
    ("privatize", "delta"): "chance that the bound above fails",
    ("realtime", "delta"): "chance that this fails",
}
"""What figures of certificates mean."""


def _show(found: Verification, path: str) -> None:
    print_line(f"{path}: {found.job}, {found.rows:,} rows")
    for name, figure in found.figures.items():
        meaning = _FIGURES.get(name) or _OF_JOBS.get((found.job, name))
        print_line(shortened(f"  {name} {figure}" + (f": {meaning}" if meaning else "")))
    for what in found.checked:
        print_line(f"checked: {what}")
    for what in found.private:
        print_line(f"for you alone: {what}")
    for what in found.unchecked:
        print_line(f"NOT checked: {what}")
    for problem in found.problems:
        print_line(f"PROBLEM {problem}")
    if found.purpose != "release":
        print_line(SIMULATED)
    print_line(found.verdict)
