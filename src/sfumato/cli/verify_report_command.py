"""`sfumato verify-report`: whether a report fits the files, and what is found there again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sfumato.cli import coin_options, options
from sfumato.cli.audit_findings import audit_again
from sfumato.cli.console import FAILED_AUDIT, print_json, print_line
from sfumato.cli.options import argument, option
from sfumato.cli.verify_command import verify_findings

if TYPE_CHECKING:
    from sfumato.cli.report_comparison import Held
    from sfumato.store.reports import Findings


class _VerifyReportOptions(options.Options):
    report: str = argument("What `audit --report` or `verify --report` wrote (.json).", "REPORT")
    files: list[str] | None = argument(
        "The files that it is about; those in its folder are found by their names.",
        "FILE",
        default=None,
    )
    against: list[str] | None = option(
        "The true values that the report was made with: all of it is computed again, locally."
    )
    secret: coin_options.Secret
    commitment: str | None = option("With --key-file: what was published before the data.")
    shown: options.Shown


def verify_report(given: _VerifyReportOptions) -> None:
    """Check a report: its text, the digests of the files it names, and its figures, once more.

    Files are known by their SHA-256, wherever they lie. If all that are public are there, the
    command of the report is run again and must find the same. Of a report that was made with
    --against or --key-file all that follows from public files (promise, totals, streams, problems
    that anyone finds) is computed again, too; what needs the secret files is named as not checked,
    and such a report is "not contradicted". With the same --against and --key-file all of it is
    computed again. Exit code 1 when something does not fit.

    \b
    Examples:
      sfumato verify-report audit.json
      sfumato verify-report audit.json private.csv private.csv.plan.json city.model
      sfumato verify-report audit.json --against live.csv --key-file year.key
    """
    from sfumato.cli.report_comparison import Held, level_of, wrong_files
    from sfumato.store.reports import read_report

    document, problems = read_report(given.report)
    named, key = document["files"], given.secret
    problems += wrong_files(document["command"], named)
    sound = not problems
    found, missing, wrong = _files(named, given.files or [], Path(given.report).parent)
    problems += wrong
    against, commitment = given.against or [], given.commitment
    held = Held(level_of(named), against, key.key_file, key.shared_key, commitment)
    checked = [f"{sum(map(len, found.values())):,} files have the digests of the report"]
    unchecked = [f"{name}: not at hand" for name in missing]
    if missing:
        unchecked.append("the figures: not all files are at hand")
    elif sound and not wrong:
        differences, remaining = _again(document, found, held)
        problems += differences
        unchecked += remaining
        what = "of what is public the same" if held.is_partial else "the same"
        checked.append(f"`sfumato {document['command']}` finds {what} again")
    result = "does not fit" if problems else "not contradicted" if unchecked else "fits"
    if given.shown.as_json:
        told = {"checked": checked, "unchecked": unchecked, "problems": problems}
        print_json(
            {"passed": not problems, "result": result, "verdict": document["passed"], **told}
        )
    else:
        verdict = "nothing wrong" if document["passed"] else "FAILED"
        print_line(f"{given.report}: {document['command']} of {document['time']}, {verdict}")
        for line in checked[:1] if problems else checked:
            print_line(f"checked: {line}")
        for line in unchecked:
            print_line(f"NOT checked: {line}")
        for line in problems:
            print_line(f"PROBLEM {line}")
        needs = "files that are not at hand" if missing else held.needs
        print_line(
            {
                "fits": "the report fits",
                "not contradicted": f"the report is not contradicted: the rest needs {needs}",
                "does not fit": "the report does NOT fit",
            }[result]
        )
    if problems:
        raise typer.Exit(FAILED_AUDIT)


def _files(
    named: list[dict[str, Any]], given: list[str], folder: Path
) -> tuple[dict[str, list[str]], list[str], list[str]]:
    """Where the files of a report lie, by role; those that are not there, and those that differ."""
    from sfumato.store.attestation import file_digest

    by_digest = {file_digest(path)["sha256"]: path for path in given}
    found: dict[str, list[str]] = {}
    missing, wrong = [], []
    for each in named:
        if each["sha256"] is None:
            continue
        path = by_digest.get(each["sha256"])
        if path is None:
            beside = [file for file in given if Path(file).name == each["name"]]
            beside += [str(folder / Path(each["name"]).name)]
            there = next((file for file in beside if Path(file).is_file()), None)
            if there is None:
                missing.append(f"{each['role']} {each['name']}")
                continue
            if file_digest(there)["sha256"] != each["sha256"]:
                wrong.append(f"files: {each['name']} is not the file that was read")
                continue
            path = there
        found.setdefault(each["role"], []).append(path)
    return found, missing, wrong


def _again(
    document: dict[str, Any], paths: dict[str, list[str]], held: Held
) -> tuple[list[str], ...]:
    """How the findings differ when the command is run again, and what stays open."""
    from sfumato.cli.report_comparison import compare

    commands: dict[str, Callable[[dict[str, Any], dict[str, list[str]], Held], Findings]]
    commands = {"verify": verify_findings, "audit": audit_again}
    found = commands[document["command"]](document["asked"], paths, held)
    return compare(document, found.document(), held)
