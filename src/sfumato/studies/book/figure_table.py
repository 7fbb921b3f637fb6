"""Every figure and table of the papers, the command that computes it, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sfumato.studies.book.blocks import (
    Badge,
    Block,
    Cell,
    Code,
    Heading,
    Link,
    Listing,
    Paragraph,
    Stack,
    Table,
)
from sfumato.studies.book.result import Result
from sfumato.studies.catalogue import STUDIES
from sfumato.studies.figure_list import BY_KEY, FIGURES, PAPERS, PaperFigure, figure_keys
from sfumato.studies.study import Claim, Study, Verdict

NOTHING, COMPUTED, FAILED, ABSENT = "nothing to compute", "no claim", "failed", "not computed"
"""Beside the verdicts: a drawing; a study without a claim; one that did not run; none at all."""

_HEADS = ("figure", "what it shows", "study", "verdict", "claimed, and measured")
_OUTSIDE = "What stands in no figure"


def figure_blocks(results: Mapping[str, Result], *, pages: bool = False) -> list[Block]:
    """A table for each paper, and below it what was claimed and measured, figure by figure.

    Args:
        results: Studies that ran, by name.
        pages: Whether a study is named by a link to its page, not by its command. What was
            measured stands there, and claims, which are short, in the table.
    """
    blocks: list[Block] = []
    for paper, title in PAPERS.items():
        figures = [each for each in FIGURES if each.paper == paper]
        rows = [_row(each, results, pages) for each in figures]
        heads = _HEADS if pages else _HEADS[:-1]
        blocks += [Heading(f"{paper}: {title}"), Table(heads, rows)]
        if not pages:
            lines = {each.key: _lines(each, results) for each in figures}
            blocks += _lists(lines)
    others = other_claims(results)
    if not others:
        return blocks
    blocks.append(Heading(_OUTSIDE))
    if pages:
        rows = [[claim.figure, "", "", Badge(claim.verdict), _words(claim)] for claim in others]
        return [*blocks, Table(_HEADS, rows)]
    outside: dict[str, list[str]] = {}
    for claim in others:
        outside.setdefault(claim.figure, []).append(_words(claim))
    return [*blocks, *_lists(outside)]


def _lists(lines: Mapping[str, Sequence[str]]) -> list[Block]:
    """Claims under their figures; of figures that share all of them, once."""
    keys: dict[tuple[str, ...], list[str]] = {}
    for key, claimed in lines.items():
        if claimed:
            keys.setdefault(tuple(claimed), []).append(key)
    blocks: list[Block] = []
    for claimed, sharing in keys.items():
        blocks += [Heading(", ".join(sharing), 3), Listing(claimed)]
    return blocks


def claims_of(key: str, results: Mapping[str, Result]) -> list[Claim]:
    """What was claimed of a figure, whichever study judged it."""
    claims = (claim for result in results.values() for claim in result.findings.claims)
    return [claim for claim in claims if key in figure_keys(claim.figure)[0]]


def other_claims(results: Mapping[str, Result]) -> list[Claim]:
    """Claims of theorems, sections and sentences."""
    claims = (claim for result in results.values() for claim in result.findings.claims)
    return [claim for claim in claims if not BY_KEY.keys() & set(figure_keys(claim.figure)[0])]


def status(figure: PaperFigure, results: Mapping[str, Result]) -> str:
    """One verdict for a figure: that of its claims, or why there is none."""
    studies = studies_of(figure.key)
    claims = claims_of(figure.key, results)
    if claims:
        verdicts = {claim.verdict for claim in claims}
        return (verdicts.pop() if len(verdicts) == 1 else Verdict.PARTLY).value
    if any(study.name in results for study in studies):
        return COMPUTED
    if studies:
        return FAILED
    return NOTHING if figure.illustration else ABSENT


def studies_of(key: str) -> list[Study]:
    """Studies that answer a figure."""
    return [study for study in STUDIES.values() if key in study.figures]


def counted(results: Mapping[str, Result]) -> Paragraph:
    """How many figures have which verdict."""
    found = [status(figure, results) for figure in FIGURES]
    order: Sequence[str] = (*Verdict, COMPUTED, FAILED, ABSENT, NOTHING)
    told = [f"{one} {found.count(one)}" for one in order if one in found]
    return Paragraph(f"{len(FIGURES)} figures and tables: {'; '.join(told)}.")


def _row(figure: PaperFigure, results: Mapping[str, Result], pages: bool) -> list[Cell]:
    named = Stack([_named(study, results, pages) for study in studies_of(figure.key)])
    verdict = Badge(status(figure, results))
    lines = _lines(figure, results, brief=pages)
    if pages:
        return [figure.key, figure.shows, named, verdict, "\n".join(lines) or figure.illustration]
    shown = figure.shows
    if figure.illustration and not lines:
        shown = f"{shown} ({figure.illustration})"
    return [figure.key, shown, named, verdict]


def _lines(figure: PaperFigure, results: Mapping[str, Result], *, brief: bool = False) -> list[str]:
    claims = claims_of(figure.key, results)
    return list(dict.fromkeys(_words(claim, brief=brief) for claim in claims))


def _named(study: Study, results: Mapping[str, Result], pages: bool) -> Link | Code:
    if pages:
        return Link(study.name, f"{study.name}/index.html")
    ran = results.get(study.name)
    return Code(ran.command if ran else f"sfumato study {study.name}")


def _words(claim: Claim, *, brief: bool = False) -> str:
    """A claim in one line; in brief, what was measured stands on the page of the study."""
    keys, panel = figure_keys(claim.figure)
    place = f"({panel}) " if keys and panel else ""
    why = f" [{claim.reason}]" if claim.reason else ""
    seen = "" if brief else f"; {claim.seen}"
    return f"{place}{claim.claimed}: {claim.verdict}{seen}{why}"
