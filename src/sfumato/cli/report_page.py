"""A report as a page for people: HTML that needs nothing else, or Markdown."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.cli.console import escaped
from sfumato.cli.options import option
from sfumato.core.errors import InvalidParameter

SUFFIXES = (".json", ".html", ".md")
REPORT = option(
    "Write what was found to this file, to be cited: .json (verify-report checks it), .html or .md "
    "(for people); may be given several times. It holds nothing of the true values."
)
_STREAMS = 100
"""Streams that a page shows; the JSON file has all of them."""
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2430; max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .25rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.verdict { padding: .75rem 1rem; border-radius: 6px; font-weight: 600; }
.good { background: #e3f3e6; color: #14532d; } .bad { background: #fde5e3; color: #7f1d1d; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; }
th, td { border-bottom: 1px solid #d6dce4; padding: .3rem .6rem .3rem 0; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.facts td:first-child { width: 12rem; } th.number { text-align: right; }
code { font-size: .8rem; overflow-wrap: anywhere; }
footer { margin-top: 2rem; color: #5b6675; font-size: .85rem; }
"""


def check_report_path(path: str) -> None:
    """A report that could not be written is refused before anything is computed."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise InvalidParameter("--report", path, f"end in {', '.join(SUFFIXES)}")
    if Path(path).is_dir() or not Path(path).parent.is_dir():
        raise InvalidParameter("--report", path, "name a file in a folder that exists")


def write_report(document: Mapping[str, Any], path: str) -> None:
    """Write a report in the form that its suffix names."""
    from sfumato.store.attestation import canonical
    from sfumato.store.files import write_whole

    forms = {".json": canonical, ".html": html_page, ".md": markdown_page}
    write_whole(path, forms[Path(path).suffix.lower()](document).encode())


def _verdict(document: Mapping[str, Any]) -> str:
    if document["passed"]:
        return "Nothing wrong was found at this level"
    count = document["totals"].get("problems")
    return f"FAILED: {count:,} problems" if isinstance(count, int) and count else "FAILED"


def _facts(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "Level", document["level"]
    yield "Made by", f"{document['program']} ({document['command']})"
    yield "On", document["platform"]
    yield "At", document["time"]
    asked = [f"{name} {value}" for name, value in document["asked"].items()]
    if asked:
        yield "Asked", ", ".join(asked)


def _streams(document: Mapping[str, Any]) -> tuple[list[str], list[list[str]], int]:
    """The figures of streams as a table: those that leaked most."""
    streams = document["streams"]
    names = list(next(iter(streams.values()), {}))
    names = [name for name in names if any(each[name] is not None for each in streams.values())]
    order = sorted(streams, key=lambda name: -float(streams[name].get("sip", 0.0)))[:_STREAMS]
    rows = [[name, *(_figure(streams[name][part]) for part in names)] for name in order]
    return ["stream", *(_words(name) for name in names)], rows, len(streams)


def _totals(document: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in document["totals"].items() if value is not None]


def _words(name: str) -> str:
    """The name of a figure as people write it: `largest SIP`."""
    known = {"sip": "SIP", "ldp": "LDP", "lip": "LIP"}
    return " ".join(known.get(part, part) for part in name.split("_"))


def _figure(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "" if value is None else escaped(str(value))
    from sfumato.core.printed import shown_up

    return f"{value:,}" if isinstance(value, int) else shown_up(value, 5)


def _lists(document: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[str]]]:
    yield "Problems", document["problems"]
    yield "What was promised", document["promise"]
    yield "What was checked", document["checked"]
    yield "What was NOT checked", document["not_checked"]


def html_page(document: Mapping[str, Any]) -> str:
    """The report as a page that loads nothing; every text of it is data, and escaped."""
    columns, rows, count = _streams(document)
    good = "good" if document["passed"] else "bad"
    part = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Sfumato {_safe(document['command'])}</title><style>{_STYLE}</style></head><body>",
        f"<h1>Report of <code>sfumato {_safe(document['command'])}</code></h1>",
        f'<p class="verdict {good}">{_safe(_verdict(document))}</p>',
        *_html_table([], [[name, text] for name, text in _facts(document)]),
    ]
    for title, lines in _lists(document):
        if lines:
            items = "".join(f"<li>{_safe(line)}</li>" for line in lines)
            part.append(f"<h2>{title}</h2><ul>{items}</ul>")
    totals = [[_words(name), _figure(v)] for name, v in _totals(document)]
    part += ["<h2>In all</h2>", *_html_table([], totals)]
    if rows:
        part += [
            f"<h2>Streams ({len(rows):,} of {count:,})</h2>",
            *_html_table(columns, rows),
        ]
    files = [
        [each["role"], each["name"] or "not named", each["sha256"] or "not told: it is secret"]
        for each in document["files"]
    ]
    part += [
        "<h2>Files that were read</h2>",
        *_html_table(["file", "name", "SHA-256"], files),
    ]
    part.append(
        f"<footer>Check it: <code>sfumato verify-report REPORT.json FILES...</code>. Digest of "
        f"this report: <code>{_safe(document['written'])}</code></footer></body></html>\n"
    )
    return "\n".join(part)


def _safe(text: object) -> str:
    """A text that is no mark-up, and moves no cursor."""
    return html.escape(escaped(str(text)))


def _html_table(columns: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield "<table>" if columns else '<table class="facts">'
    if columns:
        wide = len(columns) > 3
        kinds = ["", *(' class="number"' if wide else "" for _ in columns[1:])]
        heads = zip(columns, kinds, strict=True)
        yield "<tr>" + "".join(f"<th{kind}>{_safe(name)}</th>" for name, kind in heads) + "</tr>"
    for row in rows:
        number = ' class="number"' if len(row) > 3 else ""
        cells = [f"<td>{_safe(row[0])}</td>", *(_cell(text, number) for text in row[1:])]
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</table>"


def _cell(text: str, number: str) -> str:
    shown = f"<code>{_safe(text)}</code>" if len(text) == 64 else _safe(text)
    return f"<td{number}>{shown}</td>"


def markdown_page(document: Mapping[str, Any]) -> str:
    """The same as Markdown; what would be a mark in it is spelled out."""
    columns, rows, count = _streams(document)
    part = [f"# Report of `sfumato {document['command']}`", "", f"**{_verdict(document)}**", ""]
    part += [f"- {name}: {_plain(text)}" for name, text in _facts(document)]
    for title, lines in _lists(document):
        if lines:
            part += ["", f"## {title}", "", *(f"- {_plain(line)}" for line in lines)]
    part += ["", "## In all", ""]
    part += [f"- {_words(name)}: {_figure(value)}" for name, value in _totals(document)]
    if rows:
        part += ["", f"## Streams ({len(rows):,} of {count:,})", "", *_rows(columns, rows)]
    files = [
        [each["role"], each["name"] or "not named", each["sha256"] or "not told: it is secret"]
        for each in document["files"]
    ]
    part += ["", "## Files that were read", "", *_rows(["file", "name", "SHA-256"], files)]
    part += ["", f"Digest of this report: {document['written']}", ""]
    return "\n".join(part)


def _rows(columns: list[str], rows: list[list[str]]) -> Iterator[str]:
    for row in (columns, ["---"] * len(columns), *rows):
        yield "| " + " | ".join(_plain(cell) for cell in row) + " |"


def _plain(text: object) -> str:
    shown = escaped(str(text))
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#" else c for c in shown)
