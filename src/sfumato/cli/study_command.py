"""`sfumato study`: an experiment of the papers, computed again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from sfumato.cli import options
from sfumato.cli.console import print_json, print_line, progress, say, table
from sfumato.cli.options import argument, option

if TYPE_CHECKING:
    from pathlib import Path

    from sfumato.studies.catalogue import Findings


class _StudyOptions(options.Options):
    name: str = argument("Which; see below.", "NAME")
    output: str = option(
        "Folder for the numbers and the figure.", "--output", "-o", default="sfumato-study"
    )
    data: str | None = typer.Option(
        None, help="Real data: a table of people, or a folder of sequences.", metavar="FILE|DIR"
    )
    quick: bool = option("Fewer streams: a look, not a result.", "--quick", default=False)
    shown: options.Shown


def study(given: _StudyOptions) -> None:
    """Compute an experiment of the papers again: numbers, figure, and what is really leaked.

    Writes NAME.csv, NAME.json and pictures, NAME.png, into a folder. Every leakage is that of the
    channels themselves, never a claim; where a published rule leaks more than it says, the figure
    says so. Needs no data and no network; some studies read real data, with --data.

    \b
    Studies:
      sip-figure-5   Loss against leakage on a binary chain: value by value, step-wise and
                     far-sighted, in batches of 2, 3 and 5, randomised response, the published
                     rule, and a proven bound. About a minute.
      lip-figures    What leakage under a prior implies, repeated use and estimated priors
                     (Figs 2, 4, 5, 6); noise for numbers (Figs 7 to 10). About a minute.
      mddp-figures   Noise on two tied columns (Fig 2): the paper's rates and bounds against the
                     best attacker. About two minutes. --data: cardio_train.csv, as it comes
                     from Kaggle ("Cardiovascular Disease dataset", ";"-separated), or gzipped.
      stream-totals  A total over a stream of real sequences: silence, evenly, bursts with N
                     sought on the model, and every rival at its best N in hindsight, with a
                     proven bound. --data: a folder of gzipped files (a missing one is named
                     with its source); without it, the demo's town. Some minutes; --quick: one.
      stream-caps    A cap per step: step-wise and far-sighted, with their mean charges, on
                     bits and real sequences. --data as above. Some minutes; --quick: one.
      greedy-release Why a greedy release wastes its budget: one sticky bit. Seconds.

    \b
    Examples:
      sfumato study sip-figure-5
      sfumato study lip-figures --output figures --json
      sfumato study mddp-figures
      sfumato study mddp-figures --data cardio_train.csv.gz
      sfumato study stream-totals --data ~/data --quick
      sfumato study stream-caps --data ~/data
      sfumato study greedy-release
    """
    from pathlib import Path

    from sfumato.core.errors import InvalidParameter
    from sfumato.studies.catalogue import FROM_DATA, QUICK, STUDIES

    name, data = given.name, given.data
    if name not in STUDIES:
        raise InvalidParameter("NAME", name, f"be one of {', '.join(STUDIES)}")
    if data is not None and name not in FROM_DATA:
        raise InvalidParameter("--data", data, f"come with {', '.join(FROM_DATA)}")
    if given.quick and name not in QUICK:
        raise InvalidParameter("--quick", "given", f"come with {', '.join(QUICK)}")
    if given.quick:
        chosen = QUICK[name](data, quick=True)
    else:
        chosen = STUDIES[name]() if data is None else FROM_DATA[name](data)
    home = Path(given.output)
    home.mkdir(parents=True, exist_ok=True)
    with progress(name, chosen.steps, given.shown.no_progress) as show:
        findings = chosen.run(show)
    files = _write(findings, name, home)
    if given.shown.as_json:
        print_json(_document(name, findings) | {"files": files})
        return
    table(findings.title, findings.columns, findings.rows)
    if not given.shown.quiet:
        for fact in findings.facts:
            print_line(fact)
        say(f"written: {', '.join(files)}")


def _document(name: str, findings: Findings) -> dict[str, Any]:
    return {"study": name, "facts": findings.facts, "records": findings.records}


def _write(findings: Findings, name: str, home: Path) -> list[str]:
    import csv
    import io
    import json

    from sfumato.store.files import together

    drawn = {home / f"{name}{suffix}.png": draw for suffix, draw in findings.pictures.items()}
    files = [home / f"{name}.csv", home / f"{name}.json", *drawn]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(findings.records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(findings.records)
    document = json.dumps(_document(name, findings), indent=2, ensure_ascii=False)
    with together(files) as [table, numbers, *pictures]:
        table.write_bytes(text.getvalue().encode())
        numbers.write_bytes(f"{document}\n".encode())
        for aside, draw in zip(pictures, drawn.values(), strict=True):
            draw(aside)
    return [str(file) for file in files]
