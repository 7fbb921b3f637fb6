"""A page as HTML: readable by itself, offline, in a light room and in a dark one."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from typing import assert_never

from sfumato.studies.book.blocks import (
    Badge,
    Block,
    Cell,
    Code,
    Heading,
    Link,
    Listing,
    Notice,
    Paragraph,
    Picture,
    Stack,
    Table,
)

_LONG = 24
"""Rows from which a table is folded."""

_STYLE = """
:root { --ink: #24221f; --faint: #6b665e; --page: #fbfaf8; --card: #ffffff; --line: #e3dfd8;
  --link: #1f5f99; --agrees: #1d6b3a; --differs: #a3321f; --partly: #7d5a00; --notice: #fff3d6; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e4dd; --faint: #a39d93; --page: #191817;
  --card: #232120; --line: #3a3734; --link: #8bbdf0; --agrees: #7cc796; --differs: #f08a76;
  --partly: #e0bd62; --notice: #3b3216; } }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; color: var(--ink);
  background: var(--page); max-width: 68rem; margin: 0 auto; padding: 1.2rem 1.2rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: .8rem 0 .4rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: 1.02rem; margin: 1.5rem 0 .5rem; }
a { color: var(--link); }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; font-size: .92rem;
  border-bottom: 1px solid var(--line); padding-bottom: .6rem; }
nav .to-the-right { margin-left: auto; }
code { font: .88em ui-monospace, "SF Mono", Menlo, Consolas, monospace; background: var(--card);
  border: 1px solid var(--line); border-radius: 4px; padding: .05em .35em;
  overflow-wrap: anywhere; }
.notice { background: var(--notice); border-left: 4px solid var(--partly); border-radius: 4px;
  padding: .6rem .9rem; }
.wide { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px;
  background: var(--card); }
table { border-collapse: collapse; font-size: .9rem; width: 100%; }
th, td { padding: .38rem .7rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
tr:last-child td { border-bottom: 0; }
th { color: var(--faint); font-weight: 600; white-space: nowrap; }
.numeric td:not(:first-child), .numeric th:not(:first-child) { text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
td:first-child { min-width: 5.5rem; }
.words td { min-width: 7rem; }
.badge { display: inline-block; font-size: .82rem; font-weight: 600; white-space: nowrap;
  border: 1px solid currentColor; border-radius: 999px; padding: .02rem .55rem; }
.agrees { color: var(--agrees); } .differs, .failed { color: var(--differs); }
.agrees-in-part { color: var(--partly); }
.nothing-to-compute, .no-claim, .not-computed { color: var(--faint); }
summary { cursor: pointer; color: var(--link); margin: .4rem 0; }
figure { margin: 1rem 0; background: #fff; color: #555; border: 1px solid var(--line);
  border-radius: 8px; padding: .8rem; }
figure img { display: block; max-width: 100%; height: auto; margin: 0 auto; }
figcaption { font-size: .88rem; margin-top: .5rem; }
figcaption a { color: #1f5f99; }
@media (prefers-color-scheme: dark) { figure { background: #fff; } }
@media (max-width: 40rem) { body { padding: .8rem .8rem 3rem; } h1 { font-size: 1.4rem; }
  th, td { padding: .3rem .45rem; }
  .words thead { display: none; } .words tr { display: block; padding: .4rem 0;
    border-bottom: 1px solid var(--line); } .words tr:last-child { border-bottom: 0; }
  .words td { display: block; border: 0; padding: .1rem .6rem; }
  .words td:first-child { font-weight: 600; } .words td:empty { display: none; }
  .words td[data-head]:not([data-head=""]):not(:first-child)::before { content: attr(data-head);
    display: block; color: var(--faint); font-size: .78rem; margin-top: .2rem; } }
@media print { nav, summary { display: none; } }
"""


def html_page(title: str, blocks: Sequence[Block], ways: Sequence[Link] = ()) -> bytes:
    """A whole page, pictures inside.

    Args:
        title: Of the window.
        blocks: Under each other.
        ways: To other pages; the last one stands at the right.

    Examples:
        >>> b"<h1>A &amp; B</h1>" in html_page("A & B", [Heading("A & B", 1)])
        True
    """
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{html.escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        *_navigation(ways),
        "<main>",
        *(_block(block) for block in blocks),
        "</main>",
        "</html>",
    ]
    return ("\n".join(lines) + "\n").encode()


def _navigation(ways: Sequence[Link]) -> list[str]:
    if not ways:
        return []
    links = [_cell(way) for way in ways]
    if len(links) > 1:
        links[-1] = f'<span class="to-the-right">{links[-1]}</span>'
    return ["<nav>", *links, "</nav>"]


def _block(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{html.escape(text)}</h{level}>"
        case Paragraph(text):
            return f"<p>{html.escape(text)}</p>"
        case Notice(text):
            return f'<p class="notice">{html.escape(text)}</p>'
        case Table():
            return _table(block)
        case Listing(items):
            return "<ul>" + "".join(f"<li>{_cell(item)}</li>" for item in items) + "</ul>"
        case Picture():
            return _picture(block)
        case _:
            assert_never(block)


def _table(table: Table) -> str:
    heads = "".join(f"<th>{html.escape(head)}</th>" for head in table.columns)
    top = f"<thead><tr>{heads}</tr></thead>" if any(table.columns) else ""
    rows = "\n".join(f"<tr>{_row(table, row)}</tr>" for row in table.rows)
    kind = "numeric" if table.numeric else "words"
    drawn = f'<div class="wide"><table class="{kind}">{top}\n<tbody>{rows}</tbody></table></div>'
    if not table.numeric or len(table.rows) <= _LONG:
        return drawn
    return f"<details><summary>{len(table.rows)} rows</summary>{drawn}</details>"


def _row(table: Table, row: Sequence[Cell]) -> str:
    """Cells, with their heads beside them where a narrow screen stacks them."""
    if table.numeric:
        return "".join(f"<td>{_cell(cell)}</td>" for cell in row)
    return "".join(
        f'<td data-head="{html.escape(head)}">{_cell(cell)}</td>'
        for head, cell in zip(table.columns, row, strict=True)
    )


def _cell(cell: Cell) -> str:
    match cell:
        case Link(text, target):
            return f'<a href="{html.escape(target)}">{html.escape(text)}</a>'
        case Code(text):
            return f"<code>{html.escape(text)}</code>"
        case Badge(text):
            kind = text.split(",")[0].replace(" ", "-")
            return f'<span class="badge {html.escape(kind)}">{html.escape(text)}</span>'
        case Stack(parts):
            return "<br>".join(_cell(part) for part in parts)
        case str():
            return html.escape(cell).replace("\n", "<br>")
        case _:
            assert_never(cell)


def _picture(picture: Picture) -> str:
    data = base64.b64encode(picture.file.read_bytes()).decode()
    words = html.escape(picture.caption)
    sharp = html.escape(picture.name.removesuffix(".png") + ".svg")
    return (
        f'<figure><img alt="{words}" src="data:image/png;base64,{data}">'
        f'<figcaption>{words} (<a href="{sharp}">SVG</a>)</figcaption></figure>'
    )
