"""The page of one study: what the paper claims, what we measure, what differs and why."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sfumato.studies.book.blocks import (
    Badge,
    Block,
    Cell,
    Code,
    Heading,
    Listing,
    Notice,
    Paragraph,
    Picture,
    Table,
)
from sfumato.studies.book.result import Result
from sfumato.studies.figure_list import PAPERS
from sfumato.studies.study import Claim


def study_blocks(result: Result, pictures: Mapping[str, Path]) -> list[Block]:
    """The page.

    Args:
        result: The study.
        pictures: Where the pixels of each picture are, by its name.
    """
    study, found = result.study, result.findings
    blocks: list[Block] = [Heading(study.name, 1), Paragraph(study.about)]
    if found.stand_ins:
        simulated = "; ".join(found.stand_ins)
        blocks.append(
            Notice(f"Simulated data stand in for: {simulated}. Real ones are read with --data.")
        )
    if result.setting.quick:
        blocks.append(Notice("A quick run: few points and repetitions. A look, not a result."))
    if found.claims:
        rows = [claim_row(claim) for claim in found.claims]
        blocks += [Heading("What is claimed, and what is measured"), Table(CLAIM_HEADS, rows)]
    if found.pictures:
        blocks.append(Heading("Pictures"))
    blocks += [
        Picture(pictures[name], f"{name}.png", caption) for name, caption in result.captions.items()
    ]
    if found.facts:
        blocks += [Heading("What follows"), Listing(found.facts)]
    blocks += [
        Heading("Numbers"),
        Paragraph(found.title),
        Table(found.columns, found.rows, numeric=True),
        Heading("How it was computed"),
        Table(["", ""], _origins(result)),
    ]
    return blocks


CLAIM_HEADS = ("figure", "claimed", "measured", "verdict", "why")


def claim_row(claim: Claim) -> list[Cell]:
    """A claim as a row under `CLAIM_HEADS`."""
    return [claim.figure, claim.claimed, claim.seen, Badge(claim.verdict.value), claim.reason]


def _origins(result: Result) -> list[list[Cell]]:
    study = result.study
    papers = {key.split()[0]: None for key in study.figures}
    files = [f"{file.name}: {file.source}" for file in study.data]
    read = "\n".join(files) if result.read else "none"
    rows: list[list[Cell]] = [["command", Code(result.command)]]
    if papers:
        rows.append(["paper", "\n".join(f"{key}: {PAPERS[key]}" for key in papers)])
        rows.append(["figures", ", ".join(study.figures)])
    return [
        *rows,
        ["real data", read],
        ["seed", str(result.setting.seed)],
        ["version", result.version],
        ["all numbers", "results.csv, results.json"],
    ]
