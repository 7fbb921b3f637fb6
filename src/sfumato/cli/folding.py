"""Lines that are too wide for a terminal, broken between words; commands can still be pasted."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ROUND = 2
"""Blanks by which a line that goes on is set in."""
_CONTINUED = 4
"""The same of a command."""
_DEEP = 10
"""Blanks before a line from which on it belongs to what stands above."""
_NARROW = 20
"""Columns below which nothing is gained: what is narrower is left to the terminal."""
_WORD = r"(?:\"[^\"]*\"|'[^']*'|\S+)"
_COMMAND = re.compile(r"\s*(?:\d+\. )?(?:[A-Z_]+=\S+ )*(?:.*\| )?(?:sfumato|spark-submit) ")


def columns(text: str) -> int:
    """Columns that a text takes on a terminal.

    Examples:
        >>> columns("loss"), columns("損失")
        (4, 4)
    """
    if text.isascii():
        return len(text)  # help is: it needs nothing else loaded
    from rich.cells import cell_len

    return cell_len(text)


def folded(text: str, width: int, hanging: int | None = None) -> list[str]:
    """A line as lines of at most so many columns; a word that is longer stands alone, whole.

    Args:
        text: The line; blanks before it, and those between words that stay together, are kept.
        width: Columns of the terminal.
        hanging: Blanks before all lines but the first; two more than before the first if None.

    Examples:
        >>> folded("  loss: what a value loses on average", 24)
        ['  loss: what a value', '    loses on average']
        >>> folded("short", 24)
        ['short']
    """
    if width < _NARROW or columns(text) <= width:
        return [text]
    if hanging is None:
        hanging = len(text) - len(text.lstrip(" ")) + _ROUND
    made, line = [], ""
    for blanks, word in re.findall(r"(\s*)(\S+)", text):
        if line.strip() and columns(line) + len(blanks) + columns(word) > width:
            made.append(line)
            line = " " * hanging + word
        else:
            line += blanks + word
    return [*made, line]


def folded_command(text: str, width: int) -> list[str]:
    r"""A command that is too wide, with a backslash where it goes on in the next line.

    Examples:
        >>> folded_command("  sfumato plan --model a.model --epsilon 0.5", 34)
        ['  sfumato plan --model a.model \\', '      --epsilon 0.5']
    """
    indent = len(text) - len(text.lstrip(" "))
    lines = list(_with_values(text, width - 2, indent + _CONTINUED))
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def _with_values(text: str, width: int, hanging: int) -> Iterator[str]:
    """Lines in which no option is parted from its value."""
    if len(text) <= width + 2 or width < _NARROW:
        yield text
        return
    parts = re.findall(rf"\s*(?:-{{1,2}}[a-zA-Z]\S* (?!-){_WORD}|#.*|{_WORD})", text)
    line = ""
    for part in parts:
        if line.strip() and len(line) + len(part) > width:
            yield line
            line = " " * hanging + part.strip()
        else:
            line += part
    yield line


def folded_help(text: str, width: int) -> str:
    r"""The text of a command's help: what stands as it was written (`\b`) fits the width, too.

    Examples:
        >>> print(folded_help("\b\n  sfumato plan --model a.model --epsilon 1", 32)[2:])
          sfumato plan --model a.model \
              --epsilon 1
    """
    blocks = text.split("\n\n")
    return "\n\n".join(_as_written(block, width) if "\b" in block else block for block in blocks)


def _as_written(block: str, width: int) -> str:
    lines: list[str] = []
    for line in _whole_lines(block):
        columns = re.match(r"(\s*\S.*?\s{2,})(?!#)\S", line)
        if columns and len(columns[1]) <= width - _NARROW:
            # A list of names and what they mean goes on below the meaning.
            lines += folded(line, width, len(columns[1]))
        elif _COMMAND.match(line):
            lines += _with_comment(line, width)
        else:
            deep = _indent(line) if _indent(line) >= _DEEP else None
            lines += folded(line, width, deep)
    return "\n".join(lines)


def _whole_lines(block: str) -> list[str]:
    """Lines of a text, those that go on in the next one joined with it."""
    made: list[str] = []
    for line in re.sub(r"\s*\\+\n\s*", " ", block).splitlines():
        before = made[-1] if made else ""
        columns = re.match(r"(\s*\S.*?\s{2,})\S", before)
        begins = len(columns[1]) if columns else _indent(before)
        if _indent(line) >= _DEEP and _indent(line) == begins:
            made[-1] += f" {line.strip()}"
        else:
            made.append(line)
    return made


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _with_comment(line: str, width: int) -> list[str]:
    """A command; what it is for stands above it if both are too wide."""
    if len(line) <= width:
        return [line]
    command, mark, comment = line.partition(" # ")
    blanks = " " * _indent(line)
    lines = folded_command(blanks + " ".join(command.split()), width)
    return [f"{blanks}# {comment}", *lines] if mark else lines
