"""Outputs as text that a person can read and a program can compare.

A transcript has sections; each begins with a line `--- name`. Words are compared exactly. Numbers
may differ by one part in ten million, and numbers next to 0 by 1e-12: sums of floats may be added
up in another order. In a section whose name ends in ` (exact)`, what was released, everything is
compared exactly but numbers that have `~` in front: leakages, and sums of floats; reals are
written with 12 digits. Long lists and tables are cut; a
summary of all of it (rows, symbols and how often, sums and ends of numbers) stands below.
"""

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

RELATIVE, ABSOLUTE = 1e-7, 1e-12
LINES = 30
"""Lines that are kept of a text, and entries of a list of words."""
ROWS = 8
"""Rows that are kept of a table; the summary counts all of them."""
ITEMS = 8
"""Numbers that are kept of a list."""
LEAKAGES = ("sip", "ldp")
INFERRED = ("probability", "loss", "count", "error", "low", "high", "unbiased", "unbiased_error")
"""Columns of a released table that hold leakages, not released values."""
WORDS = 60
"""Letters that are kept of a text in a list."""
NOTES = 100
"""Letters that are kept of a note, which many commands print."""
TIMED = frozenset({"ms a batch", "seconds", "slowest"})
"""Columns and entries that hold durations."""
SHORT = 24
"""Lines of a difference that are shown."""

_NUMBER = r"[-+]?(?:\d[\d,]*\d|\d)(?:\.\d+)?(?:[eE][-+]?\d+)?|[-+]?\.\d+(?:[eE][-+]?\d+)?"
_LOOSE = re.compile(rf"(?<![\w.])({_NUMBER})(?![\w])")
_STRICT = re.compile(rf"(?<=~)({_NUMBER})")
_HASH = re.compile(r"(?<![\w.])(?=\d*[a-f])[0-9a-f]{16,}\b")
# Rows of priors and channels in a certificate: `verify` reads them, people do not.
_NUMBERS = re.compile(r"(?<![\w.])-?\d[\d.e+-]*(?: -?\d[\d.e+-]*){2,}(?![\w.])")
_VERSION = re.compile(r"(?<=sfumato )\d+\.\d+\S*")
_STORED = b"sfumato\n"


# Comparing ---------------------------------------------------------------------------------------


def differences(expected: str, got: str) -> list[str]:
    """Lines in which two transcripts differ, as `- expected` and `+ got`; none if they agree."""
    old, new = expected.splitlines(), got.splitlines()
    found: list[str] = []
    place, exact = "", False
    for number in range(max(len(old), len(new))):
        here = old[number] if number < len(old) else None
        there = new[number] if number < len(new) else None
        if here is not None and here.startswith("--- "):
            place, exact = here, here.endswith("(exact)")
        if here is not None and there is not None and same(here, there, exact):
            continue
        found.append(f"line {number + 1}, {place or 'top'}")
        found += [f"  - {here}"] * (here is not None) + [f"  + {there}"] * (there is not None)
    if len(found) > SHORT:
        found = [*found[:SHORT], f"... and {len(found) - SHORT} lines more"]
    return found


def same(one: str, other: str, exact: bool = False) -> bool:
    """Whether two lines have the same words, and numbers that are near enough."""
    if one == other:
        return True
    pattern = _STRICT if exact else _LOOSE
    here, there = pattern.split(one), pattern.split(other)
    return len(here) == len(there) and all(
        a == b if place % 2 == 0 else _near(a, b)
        for place, (a, b) in enumerate(zip(here, there, strict=True))
    )


def _near(one: str, other: str) -> bool:
    a, b = (float(text.replace(",", "")) for text in (one, other))
    return math.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


# Writing -----------------------------------------------------------------------------------------


def plain(text: str, folder: Path | None = None) -> str:
    """A text without what changes from run to run: folders, hashes, the version."""
    if folder is not None:
        text = text.replace(str(folder), "<folder>")
    text = _NUMBERS.sub(lambda row: f"<{row[0].count(' ') + 1} numbers>", text)
    return _VERSION.sub("<version>", _HASH.sub("<hash>", text))


def cut(lines: Sequence[str], most: int = LINES) -> Iterator[str]:
    """The first lines, and how many there are."""
    yield from lines[:most]
    if len(lines) > most:
        yield f"... {len(lines)} lines in all"


def printed(text: str, folder: Path | None = None) -> Iterator[str]:
    """What a command printed: a JSON object entry by entry, anything else line by line."""
    try:
        whole = json.loads(text) if text.startswith("{") else None
    except ValueError:
        whole = None  # JSON lines
    if whole is not None:
        yield from entries(whole, folder)
        return
    timed: int | None = None
    for line in text.splitlines():
        cells = plain(line, folder).rstrip().split("\t")
        if TIMED.intersection(cells):
            timed = next(place for place, cell in enumerate(cells) if cell in TIMED)
        elif timed is not None and len(cells) > timed:
            cells[timed] = "<time>"
        told = "\t".join(cells)
        yield _short(told, NOTES) if told.startswith("note: ") else told


def entries(value: Any, folder: Path | None = None, name: str = "") -> Iterator[str]:
    """One line for each entry of a document; long lists are cut and summed up."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    match value:
        case dict() if value:
            empty = [str(key) for key, item in value.items() if item is None or _empty(item)]
            if len(empty) > 1:
                yield f"{name}{'.' if name else ''}({', '.join(empty)}) = nothing"
            for key, item in value.items():
                if len(empty) > 1 and str(key) in empty:
                    continue
                told = "<time>" if key in TIMED else item
                yield from entries(told, folder, f"{name}.{key}" if name else str(key))
        case list() | tuple() if any(isinstance(item, dict | list | tuple) for item in value):
            for place, item in enumerate(value[:LINES]):
                yield from entries(item, folder, f"{name}[{place}]")
            if len(value) > LINES:
                yield f"{name}: {len(value)} in all"
        case list() | tuple():
            yield f"{name} = [{_listed(value, folder)}]"
        case _:
            yield f"{name} = {_scalar(value, folder)}"


def _empty(item: Any) -> bool:
    return isinstance(item, list | tuple) and not item


def _scalar(value: Any, folder: Path | None) -> str:
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, float):
        return f"{value:.12g}"
    return plain(str(value), folder)


def _listed(values: Sequence[Any], folder: Path | None) -> str:
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    most = ITEMS if len(numbers) == len(values) else LINES
    shown = ", ".join(_short(_scalar(value, folder), WORDS) for value in values[:most])
    if len(values) <= most:
        return shown
    return f"{shown}, ... {len(values)} in all, {_spread(numbers)}"


def _short(text: str, most: int) -> str:
    """The beginning of a remark, and how long it is."""
    return text if len(text) <= most else f"{text[:most]}... {len(text)} letters"


def _spread(numbers: Sequence[float]) -> str:
    if not numbers:
        return "no numbers"
    ends = min(numbers), max(numbers), math.fsum(numbers)
    return "least {:.12g}, most {:.12g}, sum {:.12g}".format(*ends)


def table(text: str, folder: Path | None = None) -> Iterator[str]:
    """A table: its first rows exactly, leakages and inferences marked by `~`, a summary of all."""
    header, *rows = list(csv.reader(io.StringIO(text, newline=""))) or [[]]
    loose = [place for place, name in enumerate(header) if name in LEAKAGES + INFERRED]
    yield ",".join(header)
    for row in rows[:ROWS]:
        told = [_cell(cell, place in loose) for place, cell in enumerate(row)]
        yield plain(",".join(told), folder)
    yield f"{len(rows)} rows"
    for place, name in enumerate(header):
        yield f"{name}: {_summary([row[place] for row in rows], place in loose)}"


def _cell(text: str, loose: bool, digits: int = 12) -> str:
    """A cell of a table; numbers that are not whole to some digits."""
    if "." not in text or not _LOOSE.fullmatch(text):
        return text
    return f"{'~' if loose else ''}{float(text):.{digits}g}"


def _summary(cells: Sequence[str], loose: bool) -> str:
    counts = Counter(_cell(cell, loose) for cell in cells)
    if len(counts) <= 12 and not loose:
        return ", ".join(f"{name or '(empty)'} {counts[name]}" for name in sorted(counts))
    try:
        numbers = [float(cell) for cell in cells if cell]
    except ValueError:
        return f"{len(counts)} different"
    # Nine digits: what is equal but for the last bits here need not be so on another machine.
    apart = "some" if loose else f"{len({_cell(cell, loose, 9) for cell in cells})}"
    # Sums of what was released are sums of floats: they may be added up in another order.
    return f"{apart} different, " + re.sub(r"(least|most|sum) ", r"\1 ~", _spread(numbers))


def lines_table(text: str) -> str:
    """JSON lines as a table of CSV."""
    rows = [json.loads(line) for line in text.splitlines()]
    names = list(dict.fromkeys(name for row in rows for name in row))
    told = io.StringIO(newline="")
    writer = csv.DictWriter(told, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return told.getvalue()


def stored(data: bytes) -> Iterator[str]:
    """What a stored model, policy or state holds, entry by entry, whatever wrote it."""
    if not data.startswith(_STORED):
        yield f"{len(data)} bytes"
        return
    envelope = msgspec.msgpack.decode(data[len(_STORED) :])
    envelope["body"] = _arrays(msgspec.msgpack.decode(envelope["body"]))
    yield from entries(envelope)


def _arrays(value: Any) -> Any:
    """Arrays as their numbers, in one line."""
    match value:
        case {"dtype": dtype, "shape": shape, "data": data}:
            numbers = np.frombuffer(data, dtype=dtype).tolist()
            return f"{dtype} {'x'.join(map(str, shape))} [{_listed(numbers, None)}]"
        case dict():
            return {key: _arrays(item) for key, item in value.items()}
        case list():
            return [_arrays(item) for item in value]
        case _:
            return value


def shown(path: Path, folder: Path) -> Iterator[str]:
    """A file that a command left: its name, and what is in it if that is text of ours."""
    name, data = path.relative_to(folder).as_posix(), path.read_bytes()
    match path.suffix:
        case ".csv" if not data[:1].isalpha():  # a matrix of numbers, without a header
            yield f"--- {name}"
            yield from cut(data.decode().splitlines())
        case ".csv":
            yield f"--- {name} (exact)"
            yield from table(data.decode(), folder)
        case ".jsonl":
            yield f"--- {name} (exact)"
            yield from table(lines_table(data.decode()), folder)
        case ".json":
            yield f"--- {name}"
            yield from cut(list(printed(data.decode(), folder)), 4 * LINES)
        case ".model" | ".policy" | ".state":
            yield f"--- {name}"
            yield from cut(list(stored(data)), 2 * LINES)
        case _:
            yield f"--- {name} is there"


def document(sections: Mapping[str, Any]) -> str:
    """A transcript of values: each section is a document, or a list of lines."""
    lines: list[str] = []
    for name, value in sections.items():
        lines.append(f"--- {name}")
        ready = isinstance(value, list) and all(isinstance(line, str) for line in value)
        lines += value if ready else list(entries(value))
    return "\n".join(lines) + "\n"
