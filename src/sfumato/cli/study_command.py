"""`sfumato study`: an experiment of the papers, computed again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sfumato.cli import options
from sfumato.cli.console import print_json, print_line, progress, say, table
from sfumato.cli.options import argument, option

if TYPE_CHECKING:
    from sfumato.studies.book.study_results import Result
    from sfumato.studies.study import Setting, Study


class _StudyOptions(options.Options):
    name: str = argument("Which; `list` shows them.", "NAME|list")
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
    shown: options.Shown


def study(given: _StudyOptions) -> None:
    """Compute an experiment of the papers again: numbers, figure, and what is really leaked.

    Writes a folder NAME with results.csv, results.json, and pictures (PNG and SVG). Every leakage
    is that of the channels themselves, never a claim; where a published rule leaks more than it
    says, the figure says so. Needs no network. Real data are read from a folder that you name with
    --data or SFUMATO_DATA; `list` says which files a study wants. Without them it runs on made-up
    data, and says so.

    \b
    Examples:
      sfumato study list
      sfumato study sip-figure-5
      sfumato study lip-figures --output figures --json
      sfumato study mddp-figures --data cardio_train.csv.gz
      sfumato study stream-totals --data ~/data --quick
    """
    if given.name == "list":
        _list(given.shown)
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
        say(f"written: {', '.join(files)}")


def _setting(given: _StudyOptions, *studies: Study) -> Setting:
    """How the studies are run; refused where the data cannot be theirs."""
    from pathlib import Path

    from sfumato.core.errors import InvalidParameter
    from sfumato.studies.study import Setting

    if given.data is None:
        return Setting(None, given.quick, given.seed)
    folder = Path(given.data)
    single = all(len(study.data) == 1 for study in studies)
    if not (folder.is_dir() or (single and folder.is_file())):
        what = "a file or a folder" if single else "a folder"
        raise InvalidParameter("--data", given.data, f"name {what}; there is none")
    return Setting(folder, given.quick, given.seed)


def _run(study: Study, setting: Setting, given: _StudyOptions) -> Result:
    from importlib import metadata

    from sfumato.studies.book.study_results import Result

    work = study.prepare(setting)
    with progress(study.name, work.steps, given.shown.no_progress) as show:
        findings = work.run(show)
    command = f"sfumato study {study.name}"
    if setting.folder is not None and study.data:
        command += " --data " + ("FILE" if setting.folder.is_file() else "DIR")
    command += " --quick" if setting.quick else ""
    command += f" --seed {setting.seed}" if setting.seed != 1 else ""
    return Result(study, setting, findings, command, metadata.version("sfumato"))


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
