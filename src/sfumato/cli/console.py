"""What every command shares: errors as exit codes, JSON for machines, progress for people."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

from sfumato.cli.colours import Role, painted, role_of
from sfumato.cli.folding import columns, folded, folded_command
from sfumato.core.printed import finite

OK, FAILED_AUDIT, BAD_INPUT, DEFECT, INTERRUPTED, UNREAD = 0, 1, 2, 70, 130, 141

PAPERS = "SFUMATO_PAPERS"
"""In the environment: the same as --papers."""

_USUAL = 80
"""Columns of a terminal that does not tell."""

SIMULATED = "A SIMULATION: its coins can be guessed; it protects nobody's values"
"""Said of whatever came from coins that can be guessed."""

_papers: ContextVar[bool] = ContextVar("papers", default=False)
_held: ContextVar[ExitStack | None] = ContextVar("held", default=None)


@contextmanager
def holding() -> Iterator[None]:
    """The time of one command: what it holds is let go at the end."""
    with ExitStack() as stack:
        before = _held.set(stack)
        try:
            yield
        finally:
            _held.reset(before)


def hold(path: str, option: str = "--output") -> None:
    """Keep a file from every other run until this command ends; refused if another has it.

    Two runs that ask whether an output exists, before they write it, would both find none.
    """
    from sfumato.core.errors import InvalidParameter
    from sfumato.store.outputs import locked

    stack = _held.get()
    if stack is None or path == "-":
        return
    try:
        stack.enter_context(locked(path))
    except InvalidParameter as problem:
        raise InvalidParameter(option, problem.value, problem.rule) from None


def interruption(problem: BaseException) -> KeyboardInterrupt | None:
    """What broke in on a compiled loop, which comes out as an error of the loop; None if nothing.

    Loops that call loops wrap it more than once.

    Examples:
        >>> try:
        ...     raise SystemError from KeyboardInterrupt()
        ... except SystemError as problem:
        ...     interruption(problem)
        KeyboardInterrupt()
    """
    link: BaseException | None = problem
    while link is not None and not isinstance(link, KeyboardInterrupt):
        link = link.__cause__ or link.__context__
    return link


@contextmanager
def with_papers(wanted: bool) -> Iterator[None]:
    """References to papers are printed inside, if they are wanted here or in the environment."""
    before = _papers.set(wanted or os.environ.get(PAPERS, "0") not in ("", "0"))
    try:
        yield
    finally:
        _papers.reset(before)


def papers_wanted() -> bool:
    """Whether what stands in a paper only is printed: numbers of theorems, bounds of theirs."""
    return _papers.get()


def cited(place: str) -> str:
    """A place in a paper, in brackets after a blank; nothing unless papers are wanted.

    Examples:
        >>> with with_papers(True):
        ...     cited("SIP Theorem 1")
        ' (SIP Theorem 1)'
    """
    return f" ({place})" if papers_wanted() else ""


def escaped(text: str) -> str:
    r"""A text that is safe on a terminal: what moves the cursor or hides letters is spelled out.

    Names of streams and columns come from data, and data may be hostile.

    Examples:
        >>> escaped("u\x1b[2J")
        'u\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def say(message: str, command: str = "") -> None:
    """Tell a person something, on standard error, so that standard output stays clean.

    Args:
        message: The line.
        command: What to type, at its end; a terminal shows it below, to be pasted.
    """
    unsay()
    role = role_of(message)
    lines = _fitted(message, sys.stderr)
    if command and sys.stderr.isatty():
        lines += folded_command(f"  {escaped(command)}", _columns(sys.stderr))
    elif command:
        lines = [f"{lines[0]} {escaped(command)}"]
    for line in lines:
        print(painted(line, role, sys.stderr), file=sys.stderr)


def _fitted(message: str, stream: TextIO, hanging: int | None = None) -> list[str]:
    """A message as lines of a terminal, broken between words; whole for anything else."""
    safe = escaped(message)
    return folded(safe, _columns(stream), hanging) if stream.isatty() else [safe]


def _columns(stream: TextIO) -> int:
    """How wide a terminal is."""
    if (asked := os.environ.get("COLUMNS", "")).isdecimal() and int(asked):
        return int(asked)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL
    except (OSError, ValueError):
        return _USUAL  # one that does not tell


_remarks: list[Callable[[str], None]] = []
"""How to add a remark to the bar that is shown, if one is."""


def say_in_passing(message: str) -> None:
    """Show a line on a terminal until something else is said; a bar shows it as its own."""
    if not sys.stderr.isatty():
        return
    if _remarks:
        _remarks[-1](escaped(message))
        return
    # One line, cut: what goes on below could not be taken back.
    sys.stderr.write(f"\r{escaped(message)[: _columns(sys.stderr) - 1]}\x1b[K")
    sys.stderr.flush()
    _said_in_passing.set()


_said_in_passing = threading.Event()


def unsay() -> None:
    """Take back what was said in passing."""
    if _said_in_passing.is_set():
        _said_in_passing.clear()
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def print_line(message: str, hanging: int | None = None, role: Role | None = None) -> None:
    """Print a line on standard output, safe on a terminal.

    Args:
        message: The line.
        hanging: Blanks before what does not fit the terminal's width, and goes on below.
        role: What it is, for its colour; by its words if not given.
    """
    shown = role_of(message) if role is None else role
    for line in _fitted(message, sys.stdout, hanging):
        print(painted(line, shown, sys.stdout))


def print_command(command: str, why: str) -> None:
    """Print a command that can be pasted, with what it does in a comment above."""
    safe = escaped(command)
    print_comment(why, len(safe) - len(safe.lstrip(" ")))
    lines = folded_command(safe, _columns(sys.stdout)) if sys.stdout.isatty() else [safe]
    for line in lines:
        print(line)


def print_next(command: str) -> None:
    """Print what to type next; a terminal shows it below, to be pasted."""
    safe, label = escaped(command), painted("next:", Role.HEADER, sys.stdout)
    if not sys.stdout.isatty():
        print(f"{label} {safe}")
        return
    print(label)
    for line in folded_command(f"  {safe}", _columns(sys.stdout)):
        print(line)


def print_comment(text: str, indent: int = 0) -> None:
    """Print what a shell passes over."""
    before = f"{' ' * indent}# "
    width = _columns(sys.stdout) - len(before)
    lines = folded(escaped(text), width, 0) if sys.stdout.isatty() else [escaped(text)]
    for line in lines:
        print(painted(f"{before}{line}", Role.LEGEND, sys.stdout))


def print_legend(meanings: Mapping[str, str]) -> None:
    """What the columns of a table mean, below it."""
    for name, meaning in meanings.items():
        print_line(f"  {name}: {meaning}", role=Role.LEGEND)


def shortened(text: str) -> str:
    """A text whose long digests are cut on a terminal; pipes and documents get them whole."""
    return _DIGEST.sub(r"\1...", text) if sys.stdout.isatty() else text


_DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{28,}\b")


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON object; infinite numbers become the text "inf", which JSON lacks."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    plain = encoding.lower().replace("-", "") != "utf8"
    print(json.dumps(finite(document), indent=2, ensure_ascii=plain))


@contextmanager
def progress(what: str, total: int | None, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A bar with rate and time left, on a terminal only; the time spent if there is no total."""
    if quiet or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeElapsedColumn as TimeSpent
    from rich.progress import TimeRemainingColumn as TimeLeft

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        TimeSpent() if total is None else TimeLeft(),
    )
    unsay()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, rate="")

        def show(done: int) -> None:
            speed = bar.tasks[0].speed
            rate = f"{speed:,.0f}/s" if speed else ""
            bar.update(task, description=what, completed=done, rate=rate)

        _remarks.append(lambda remark: bar.update(task, description=remark))
        try:
            yield show
        finally:
            _remarks.pop()


def table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Print a table on standard output: lined up on a terminal, tabs between cells when piped."""
    safe = [[escaped(cell) for cell in row] for row in (columns, *rows)]
    print_line(title, role=Role.HEADER)
    names, *cells = safe
    if not sys.stdout.isatty():
        print("\t".join(painted(name, Role.HEADER, sys.stdout) for name in names))
        for row in cells:
            print("\t".join(row))
        return
    ruled = re.compile(r"-+(?:  -+)*")
    before = ""
    for line in lined_up(safe, _columns(sys.stdout)):
        # A table that goes on below has its names again, after an empty line.
        role = Role.PLAIN if before else Role.HEADER
        role = Role.LEGEND if ruled.fullmatch(line) else role
        print(painted(line, role, sys.stdout))
        before = line


def lined_up(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """The lines of a table, its first row the names; no cell is ever cut.

    What is wider than the terminal goes on below, with its first column again.

    Examples:
        >>> print("\\n".join(lined_up([["who", "loss", "leaks"], ["ours", "0.25", "1"]], 11)))
        who   loss
        ----  ----
        ours  0.25
        <BLANKLINE>
        who   leaks
        ----  -----
        ours      1
    """
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]

    def padded(cell: str, place: int) -> str:
        blanks = " " * (widths[place] - columns(cell))
        return blanks + cell if place else cell + blanks

    start = 1
    while start < len(widths) or start == 1:
        end, used = start, widths[0]
        while end < len(widths) and (end == start or used + 2 + widths[end] <= width):
            used += 2 + widths[end]
            end += 1
        if start > 1:
            yield ""
        places = [0, *range(start, end)]
        ruled = ["-" * wide for wide in widths]
        for row in (rows[0], ruled, *rows[1:]):
            yield "  ".join(padded(row[place], place) for place in places).rstrip()
        start = max(end, start + 1)


def standard_streams() -> None:
    """Make the three standard streams safe to use, however the process was started.

    One that was closed by the caller must not be taken over by the next file that is opened, and
    whoever uses it must fail like on any closed file. Letters that the encoding lacks are spelled
    out instead of ending the command.
    """
    for number, way in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # The wrong way round, so that reading and writing fail; complaints go nowhere.
            os.dup2(os.open(os.devnull, way), number)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
