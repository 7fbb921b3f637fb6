"""`sfumato study`: an experiment of the papers, computed again."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from sfumato.cli import options
from sfumato.cli.console import (
    BAD_INPUT,
    DEFECT,
    OK,
    interruption,
    print_json,
    print_line,
    progress,
    say,
    say_in_passing,
    table,
)
from sfumato.cli.options import argument, option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sfumato.studies.book.result import Result
    from sfumato.studies.study import Findings, Setting, Study


class _StudyOptions(options.Options):
    name: str = argument("Which; `list` shows them, `all` runs them.", "NAME|list|all")
    output: str = option(
        "Folder for what is found; a study gets a folder in it.",
        "--output",
        "-o",
        default="sfumato-study",
    )
    data: str | None = typer.Option(
        None,
        help="Folder of real data; or the one file of a study that reads one. Without it, made-up "
        "data stand in.",
        metavar="DIR|FILE",
        envvar="SFUMATO_DATA",
    )
    quick: bool = option("Under a minute: a look, not a result.", "--quick", default=False)
    seed: int = option("Of everything that is drawn.", default=1)
    missing: bool = options.flag(
        "--missing", "With all: run only what the folder does not hold yet."
    )
    shown: options.Shown


def study(given: _StudyOptions) -> None:
    """Compute an experiment of the papers again: numbers, figure, and what is really leaked.

    Writes a folder NAME with a page (index.html, index.md: what the paper claims, what is measured,
    what differs and why), all numbers (results.csv, results.json) and pictures (PNG, SVG). Every
    leakage is that of the channels themselves, never a claim; where a published rule leaks more
    than it says, the page says so. Needs no network. Real data are read from a folder that you name
    with --data or SFUMATO_DATA; `list` says which files a study wants. Without them it runs on
    made-up data, and says so.

    `all` runs every study and makes a book of them: index.html, and figures.md with every figure
    and table of the five papers, its command and its verdict. A study that fails does not end it.

    \b
    Examples:
      sfumato study list
      sfumato study sip-figure-5
      sfumato study lip-figures --output figures --json
      sfumato study mddp-figures --data cardio_train.csv.gz
      sfumato study stream-totals --data ~/data --quick
      sfumato study all --data ~/data -o book
    """
    from sfumato.core.errors import InvalidParameter

    if given.missing and given.name != "all":
        raise InvalidParameter("--missing", True, "come with all")
    if given.seed < 0:
        raise InvalidParameter("--seed", given.seed, "be 0 or more")
    if given.name == "list":
        _list(given.shown)
        return
    if given.name == "all":
        _all(given)
        return
    from pathlib import Path

    from sfumato.studies.book.study_results import write_results
    from sfumato.studies.catalogue import study_named

    chosen = study_named(given.name)
    result = _run(chosen, _setting(given, chosen), given)
    files = [str(file) for file in write_results(result, Path(given.output))]
    if given.shown.as_json:
        print_json(result.document | {"files": files})
        return
    findings = result.findings
    table(findings.title, findings.columns, findings.rows)
    if not given.shown.quiet:
        for fact in findings.facts:
            print_line(fact)
        for claim in findings.claims:
            print_line(f"{claim.figure}: {claim.claimed}: {claim.verdict}; {claim.seen}")
        if findings.stand_ins:
            say(f"simulated, for want of --data: {'; '.join(findings.stand_ins)}")
        names = ", ".join(Path(file).name for file in files)
        say(f"written: {Path(given.output) / chosen.name}: {names}")


def _setting(given: _StudyOptions, *studies: Study) -> Setting:
    """How the studies are run; refused where the data cannot be theirs."""
    from pathlib import Path

    from sfumato.core.errors import InvalidParameter
    from sfumato.studies.study import Setting

    if given.data is None:
        return Setting(None, given.quick, given.seed)
    folder = Path(given.data)
    single = bool(studies) and all(len(study.data) == 1 for study in studies)
    if not (folder.is_dir() or (single and folder.is_file())):
        what = "a file or a folder" if single else "a folder"
        there = "this is a file" if folder.is_file() else "there is none"
        raise InvalidParameter("--data", given.data, f"name {what}; {there}")
    return Setting(folder, given.quick, given.seed)


def _run(study: Study, setting: Setting, given: _StudyOptions) -> Result:
    work = study.prepare(setting)
    with progress(study.name, work.steps, given.shown.no_progress) as show:
        return _result(study, setting, work.run(show))


def _result(study: Study, setting: Setting, findings: Findings) -> Result:
    from importlib import metadata

    from sfumato.studies.book.result import Result, command_of

    version = metadata.version("sfumato")
    return Result(study, setting, findings, command_of(study, setting), version)


def _all(given: _StudyOptions) -> None:
    from dataclasses import asdict
    from importlib import metadata
    from pathlib import Path

    from sfumato.studies.book.book import Run, ways_from, write_book
    from sfumato.studies.book.kept_results import kept_result
    from sfumato.studies.book.study_results import write_results
    from sfumato.studies.catalogue import STUDIES

    studies, home = list(STUDIES.values()), Path(given.output)
    setting = _setting(given)
    results: dict[str, Result] = {}
    failures: dict[str, str] = {}
    codes, version = [OK], metadata.version("sfumato")
    with (
        _told_when_stopped(failures),
        progress("all studies", 100 * len(studies), given.shown.no_progress) as show,
    ):
        for place, study in enumerate(studies):
            try:
                kept = kept_result(study, setting, home, version) if given.missing else None
                if kept is None:
                    work = study.prepare(setting)
                    findings = work.run(_part(show, place, study.name, work.steps))
                results[study.name] = kept or _result(study, setting, findings)
                write_results(results[study.name], home, ways_from(study.name, studies))
            except Exception as problem:
                results.pop(study.name, None)
                failures[study.name], code = _failure(problem)
                codes.append(code)
            show(100 * (place + 1))
    files = [str(file) for file in write_book(Run(studies, results, failures), home)]
    if given.shown.as_json:
        claims = {
            name: [asdict(claim) for claim in result.findings.claims]
            for name, result in results.items()
        }
        print_json({"claims": claims, "failures": failures, "files": files})
    else:
        _say_failures(failures)
        print_line(f"{len(results)} of {len(studies)} studies; {home / 'index.html'}")
    if failures:
        raise typer.Exit(max(codes))


@contextmanager
def _told_when_stopped(failures: dict[str, str]) -> Iterator[None]:
    """Say what failed before, if the book is not finished."""
    try:
        yield
    except KeyboardInterrupt:
        _say_failures(failures)
        raise


def _say_failures(failures: dict[str, str]) -> None:
    for name, why in failures.items():
        say(f"failed: {name}: {why}")


def _part(show: Callable[[int], None], place: int, name: str, steps: int) -> Callable[[int], None]:
    """What tells the one bar how far one of the studies is."""

    def told(done: int) -> None:
        show(100 * place + 100 * min(done, steps) // max(steps, 1))
        say_in_passing(name)

    say_in_passing(name)
    return told


def _failure(problem: Exception) -> tuple[str, int]:
    """What is said of a study that did not run, and the code of the command."""
    from sfumato.core.errors import SfumatoError

    if stopped := interruption(problem):
        raise stopped from None
    if isinstance(problem, SfumatoError | OSError):
        return str(problem), BAD_INPUT
    # What the error says may quote data.
    return f"internal error ({type(problem).__name__}), a defect of the program", DEFECT


def _list(shown: options.Shown) -> None:
    from sfumato.studies.catalogue import STUDIES

    if shown.as_json:
        fields = ("name", "about", "figures", "minutes")
        studies = [
            {name: getattr(study, name) for name in fields}
            | {"data": [{"name": file.name, "source": file.source} for file in study.data]}
            for study in STUDIES.values()
        ]
        print_json({"studies": studies})
        return
    rows = [
        [
            study.name,
            ", ".join(study.figures) or "our own",
            study.minutes,
            ", ".join(file.name for file in study.data) or "none",
            study.about,
        ]
        for study in STUDIES.values()
    ]
    table("studies", ["study", "figures", "minutes", "data", "what it computes"], rows)
