"""What every command shares: errors as exit codes, JSON for machines, progress for people."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

OK, FAILED_AUDIT, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

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


def hold(path: str) -> None:
    """Keep a file from every other run until this command ends; refused if another has it.

    Two runs that ask whether an output exists, before they write it, would both find none.
    """
    from sfumato.errors import InvalidParameter
    from sfumato.outputs import locked

    stack = _held.get()
    if stack is None or path == "-":
        return
    try:
        stack.enter_context(locked(path))
    except InvalidParameter as problem:
        raise InvalidParameter("--output", problem.value, problem.rule) from None


def say(message: str) -> None:
    """Tell a person something, on standard error, so that standard output stays clean."""
    print(message, file=sys.stderr)


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON object; infinite numbers become the text "inf", which JSON lacks."""
    print(json.dumps(finite(document), indent=2, ensure_ascii=False))


def finite(value: Any) -> Any:
    """The same with texts for infinite numbers, which JSON lacks."""
    match value:
        case dict():
            return {str(key): finite(item) for key, item in value.items()}
        case list() | tuple():
            return [finite(item) for item in value]
        case float() if not math.isfinite(value):
            return str(value)
        case _:
            return value


@contextmanager
def progress(what: str, total: int | None, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A bar with rate and time left, on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeLeft(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, rate="")

        def show(done: int) -> None:
            speed = bar.tasks[0].speed
            bar.update(task, completed=done, rate=f"{speed:,.0f}/s" if speed else "")

        yield show


def mention_compiling() -> None:
    """Say why the very first command takes long: on a terminal, while no loop is kept on disk."""
    from sfumato import kernels

    kept = Path(kernels.__path__[0]) / "__pycache__"
    if sys.stderr.isatty() and "NUMBA_CACHE_DIR" not in os.environ and not any(kept.glob("*.nbi")):
        say("first use on this machine: compiling loops, once, for up to a minute")


def table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Print a table on standard output: drawn on a terminal, plain when piped."""
    if not sys.stdout.isatty():
        print(title)
        for row in (columns, *rows):
            print("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table

    drawn = Table(title=title, title_justify="left", header_style="bold")
    for place, name in enumerate(columns):
        drawn.add_column(name, justify="left" if place == 0 else "right")
    for row in rows:
        drawn.add_row(*row)
    Console().print(drawn)
