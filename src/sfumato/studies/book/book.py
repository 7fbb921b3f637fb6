"""All studies as a book: an index, a page for each, and the table of figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sfumato.store.files import together
from sfumato.studies.book.blocks import (
    Badge,
    Block,
    Cell,
    Heading,
    Link,
    Notice,
    Paragraph,
    Table,
)
from sfumato.studies.book.figure_table import FAILED, counted, figure_blocks
from sfumato.studies.book.html_page import html_page
from sfumato.studies.book.markdown_page import markdown_page
from sfumato.studies.book.result import Result
from sfumato.studies.book.study_results import new_folder
from sfumato.studies.study import Study, Verdict

TITLE = "Every figure of the five papers"
_HEADS = ("study", "what it computes", "figures", "verdicts")


@dataclass(frozen=True, slots=True)
class Run:
    """Studies that were run in one go.

    Attributes:
        studies: In their order.
        results: Of those that ran, by name.
        failures: Why others did not, by name.
    """

    studies: Sequence[Study]
    results: Mapping[str, Result]
    failures: Mapping[str, str]


def ways_from(name: str, studies: Sequence[Study]) -> list[Link]:
    """From the page of a study: to the index, to the one before, to the next."""
    names = [study.name for study in studies]
    place = names.index(name)
    ways = [Link("All studies", "../index.html")]
    if place > 0:
        ways.append(Link(f"← {names[place - 1]}", f"../{names[place - 1]}/index.html"))
    if place + 1 < len(names):
        ways.append(Link(f"{names[place + 1]} →", f"../{names[place + 1]}/index.html"))
    return ways


def write_book(run: Run, home: Path) -> list[Path]:
    """The index, the table of figures, and a page for each study that failed."""
    pages = {home / name / "index.html": name for name in run.failures}
    files = [home / "figures.md", home / "index.html", *pages]
    for page in pages:
        page.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(home), together(files) as [table, index, *failed]:
        table.write_bytes(markdown_page(figures_page(run)))
        index.write_bytes(html_page(TITLE, _index(run)))
        for aside, name in zip(failed, pages.values(), strict=True):
            blocks: list[Block] = [Heading(name, 1), Notice(f"It failed: {run.failures[name]}")]
            aside.write_bytes(html_page(name, blocks, ways_from(name, run.studies)))
    return files


def figures_page(run: Run) -> list[Block]:
    """The table of figures by commands, as `docs/figures.md` has it."""
    return [Heading(TITLE, 1), *_lead(run), *figure_blocks(run.results)]


def _index(run: Run) -> list[Block]:
    rows = [_study_row(study, run) for study in run.studies]
    return [
        Heading(TITLE, 1),
        *_lead(run),
        Heading("Studies"),
        Table(_HEADS, rows),
        *figure_blocks(run.results, pages=True),
    ]


def _lead(run: Run) -> list[Block]:
    blocks: list[Block] = [
        Paragraph(
            "Each is computed again by one command. Leakages are those of the channels that are "
            "sampled, never a claim; verdicts are computed from the numbers of the run."
        ),
        counted(run.results),
    ]
    simulated = [name for name, result in run.results.items() if result.findings.stand_ins]
    if simulated:
        blocks.append(Notice(f"Simulated data stood in, in whole or in part: {_few(simulated)}."))
    quick = [name for name, result in run.results.items() if result.setting.quick]
    if quick:
        which = "" if len(quick) == len(run.results) else f" ({_few(quick)})"
        blocks.append(Notice(f"Quick runs{which}: few points, a look, not a result."))
    if run.failures:
        blocks.append(Notice(f"Failed: {_few(list(run.failures))}."))
    return blocks


def _few(names: Sequence[str]) -> str:
    return ", ".join(names)


def _study_row(study: Study, run: Run) -> list[Cell]:
    verdicts: Cell = Badge(FAILED)
    if study.name in run.results:
        claims = run.results[study.name].findings.claims
        counts = {each: sum(claim.verdict is each for claim in claims) for each in Verdict}
        verdicts = "\n".join(f"{each}: {count}" for each, count in counts.items() if count)
    page = Link(study.name, f"{study.name}/index.html")
    return [page, study.about, ", ".join(study.figures) or "our own", verdicts]
