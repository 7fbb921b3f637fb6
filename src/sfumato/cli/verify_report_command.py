"""`sfumato verify-report`: whether a report fits the files, and what is found there again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sfumato.cli import options
from sfumato.cli.audit_findings import audit_again
from sfumato.cli.console import FAILED_AUDIT, print_json, print_line
from sfumato.cli.options import argument
from sfumato.cli.verify_command import verify_findings

if TYPE_CHECKING:
    from sfumato.store.reports import Findings

_COMPARED = ("level", "passed", "promise", "totals", "streams", "problems")


class _VerifyReportOptions(options.Options):
    report: str = argument("What `audit --report` or `verify --report` wrote (.json).", "REPORT")
    files: list[str] | None = argument(
        "The files that it is about; those in its folder are found by their names.",
        "[FILE]...",
        default=None,
    )
    shown: options.Shown


def verify_report(given: _VerifyReportOptions) -> None:
    """Check a report: its text, the digests of the files it names, and its figures, once more.

    Files are known by their SHA-256, wherever they lie. If all that are public are there, the
    command of the report is run again and must find the same; what needed true values or a key
    cannot be found again without them, and is said. Exit code 1 when something does not fit.

    \b
    Examples:
      sfumato verify-report audit.json
      sfumato verify-report audit.json private.csv private.csv.plan.json city.model
    """
    from sfumato.store.reports import read_report

    document, problems = read_report(given.report)
    found, missing, wrong = _files(document["files"], given.files or [], Path(given.report).parent)
    problems += wrong
    checked = [f"{sum(map(len, found.values())):,} files have the digests of the report"]
    unchecked = [f"{name}: not at hand" for name in missing]
    if not missing and not wrong:
        differences = _again(document, found)
        if differences is None:
            unchecked.append("the figures: the command needs true values or a key to find them")
        else:
            problems += differences
            checked.append(f"`sfumato {document['command']}` finds the same again")
    elif missing:
        unchecked.append("the figures: not all files are at hand")
    passed = not problems
    if given.shown.as_json:
        told = {"checked": checked, "unchecked": unchecked, "problems": problems}
        print_json({"passed": passed, "verdict": document["passed"], **told})
    else:
        verdict = "nothing wrong" if document["passed"] else "FAILED"
        print_line(f"{given.report}: {document['command']} of {document['time']}, {verdict}")
        for line in checked if passed else checked[:1]:
            print_line(f"checked: {line}")
        for line in unchecked:
            print_line(f"NOT checked: {line}")
        for line in problems:
            print_line(f"PROBLEM {line}")
        print_line("the report fits" if passed else "the report does NOT fit")
    if not passed:
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


def _again(document: dict[str, Any], paths: dict[str, list[str]]) -> list[str] | None:
    """How the findings differ when the command is run again; None if it needs what is secret."""
    from sfumato.core.verification import differences

    if any(each["sha256"] is None for each in document["files"]):
        return None
    commands: dict[str, Callable[[dict[str, Any], dict[str, list[str]]], Findings]]
    commands = {"verify": verify_findings, "audit": audit_again}
    if document["command"] not in commands:
        return [f"command: {str(document['command'])[:40]!r} is none that writes reports"]
    found = commands[document["command"]](document["asked"], paths).document()
    stated = {name: document[name] for name in _COMPARED}
    due = {name: found[name] for name in _COMPARED}
    found_again = differences(stated, due, "the files", what="report")
    return [f"{name}: {how}" for name, how in found_again]
