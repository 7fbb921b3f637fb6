"""`sfumato study`: an experiment of the papers, computed again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.console import print_json, progress, say, table

if TYPE_CHECKING:
    from pathlib import Path

    from sfumato.studies.sip_batches import BatchPoint, Comparison


@dataclass(frozen=True, slots=True)
class Findings:
    """What a study found.

    Attributes:
        title: Above the table.
        columns: Heads of the table.
        rows: The table that is printed.
        records: All numbers, one flat record each, for the CSV and JSON files.
        facts: Sentences that say what follows from them.
        draw: Draws the figure into a file.
    """

    title: str
    columns: list[str]
    rows: list[list[str]]
    records: list[dict[str, Any]]
    facts: list[str]
    draw: Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Study:
    """An experiment: how many steps it takes, and how to run it."""

    steps: int
    run: Callable[[Callable[[int], None]], Findings]


def study(
    name: Annotated[
        str, typer.Argument(help="Which: sip-figure-5.", metavar="NAME", show_default=False)
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", help="Folder for the numbers and the figure.")
    ] = "sfumato-study",
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Compute an experiment of the papers again: numbers, figure, and what is really leaked.

    Writes NAME.csv, NAME.json and NAME.png into a folder. Every leakage is that of the channels
    themselves, never a claim; where a published rule leaks more than it says, the figure says so.
    Needs no data and no network.

    \b
    Studies:
      sip-figure-5   Loss against leakage on a binary chain: value by value, in batches of
                     2, 3 and 5, randomised response, and the published rule. About a minute.

    \b
    Examples:
      sfumato study sip-figure-5
      sfumato study sip-figure-5 --output figures --json
    """
    from pathlib import Path

    from sfumato.errors import InvalidParameter

    if name not in STUDIES:
        raise InvalidParameter("NAME", name, f"be one of {', '.join(STUDIES)}")
    home = Path(output)
    home.mkdir(parents=True, exist_ok=True)
    chosen = STUDIES[name]()
    with progress(name, chosen.steps, quiet or as_json) as show:
        findings = chosen.run(show)
    files = _write(findings, name, home)
    if as_json:
        print_json(_document(name, findings) | {"files": files})
        return
    table(findings.title, findings.columns, findings.rows)
    if not quiet:
        for fact in findings.facts:
            print(fact)
        say(f"written: {', '.join(files)}")


def _document(name: str, findings: Findings) -> dict[str, Any]:
    return {"study": name, "facts": findings.facts, "records": findings.records}


def _write(findings: Findings, name: str, home: Path) -> list[str]:
    import csv
    import io
    import json

    from sfumato.files import write_whole

    files = [home / f"{name}.{suffix}" for suffix in ("csv", "json", "png")]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(findings.records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(findings.records)
    write_whole(files[0], text.getvalue().encode())
    document = json.dumps(_document(name, findings), indent=2, ensure_ascii=False)
    write_whole(files[1], f"{document}\n".encode())
    findings.draw(files[2])
    return [str(file) for file in files]


def sip_figure_5(epsilons: tuple[float, ...] | None = None, branches: int | None = None) -> Study:
    """Figure 5 of SIP.

    Args:
        epsilons: Budgets per value; those of the study if not given.
        branches: Most beliefs followed at once; as many as the study does if not given.
    """
    from dataclasses import asdict
    from functools import partial

    from sfumato.studies import sip_batches
    from sfumato.studies.figures import batch_losses

    budgets = epsilons or sip_batches.EPSILONS

    def run(show: Callable[[int], None]) -> Findings:
        points = sip_batches.batch_points(
            epsilons=budgets, branches=branches or sip_batches.BRANCHES, progress=show
        )
        compared = [
            pair
            for setting in sip_batches.SETTINGS
            for epsilon in budgets
            for pair in sip_batches.compare_widths(setting, epsilon)
        ]
        kink = sip_batches.compare_widths(
            sip_batches.SETTINGS[0], sip_batches.KINK, (5, 6), horizon=30
        )
        return Findings(
            title="expected share of wrong bits; (true leakage per value where it is over epsilon)",
            columns=["curve", *(f"{epsilon:g}" for epsilon in budgets)],
            rows=_rows(points),
            records=[asdict(point) for point in points],
            facts=_facts(points, compared, kink[0]),
            draw=partial(batch_losses, points),
        )

    return Study(len(sip_batches.SETTINGS) * len(budgets) * len(sip_batches.CURVES), run)


STUDIES: dict[str, Callable[[], Study]] = {"sip-figure-5": sip_figure_5}
"""Every study by name; what it imports waits until it is asked for."""


_SEEN = 1e-3
"""Differences of losses that thinning cannot make."""


def _rows(points: list[BatchPoint]) -> list[list[str]]:
    rows: dict[tuple[str, str], list[str]] = {}
    for point in points:
        over = f" ({point.leakage:.2f})" if point.leakage > point.epsilon else ""
        cells = rows.setdefault((point.setting, point.curve), [])
        cells.append(f"{point.loss:.4g}{over}")
        if point.curve == "calibrated":
            guess = rows.setdefault((point.setting, "calibrated, best guess"), [])
            guess.append(f"{point.guessed_loss:.4g}")
    return [[f"({setting}) {curve}", *cells] for (setting, curve), cells in rows.items()]


def _facts(points: list[BatchPoint], compared: list[Comparison], kink: Comparison) -> list[str]:
    from sfumato.studies.sip_batches import CERTIFIED

    kept = all(p.leakage <= p.epsilon for p in points if p.curve in CERTIFIED)
    worst = max(
        (p for p in points if p.curve == "published"),
        key=lambda point: point.leakage / point.epsilon,
    )
    dearer = [pair for pair in compared if pair.dearer]
    guessed = {(p.setting, p.epsilon): p.guessed_loss for p in points if p.curve == "calibrated"}
    beaten = [
        f"({p.setting}) {p.epsilon:g}"
        for p in points
        if p.curve == "instantaneous" and guessed[p.setting, p.epsilon] < p.loss - _SEEN
    ]
    return [
        f"certified curves leak at most epsilon per value: {'yes' if kept else 'NO'}",
        f"the published rule claims {worst.epsilon:g} and leaks up to {worst.leakage:.3f} "
        f"in setting ({worst.setting})",
        f"exactly, over 6 values: wider batches (1, 2, 3, 6) lose more in {len(dearer)} of "
        f"{len(compared)} comparisons",
        f"yet width is no promise: at epsilon {kink.epsilon:.4f} on independent bits, "
        f"batches of {kink.narrow} lose {kink.narrow_loss:.5f}, batches of {kink.wide} lose "
        f"{kink.wide_loss:.5f}",
        "calibrated randomised response and a best guess lose less than the step-by-step optimum "
        f"at: {', '.join(beaten) or 'no budget'}",
    ]
