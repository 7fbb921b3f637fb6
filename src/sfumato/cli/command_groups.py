"""The list of commands in `sfumato --help`, by what somebody wants to do."""

from __future__ import annotations

import inspect
from typing import Any

import typer

from sfumato.cli.folding import folded_help

GROUPS: dict[str, tuple[str, ...]] = {
    "First steps": ("start", "sample", "demo", "explain", "doctor"),
    "Values of people over time": (
        *("fit", "plan", "compile", "release", "audit", "drift", "learn", "recover", "attack"),
    ),
    "The same, live and at scale": ("serve", "push", "bridge", "spark"),
    "A series of numbers": ("compare", "realtime"),
    "Columns of a table, once": ("privatize", "disclosure", "publish", "design", "implied"),
    "Releases with DP noise that are made already": ("temporal",),
    "Checking and keeping": (
        *("verify", "verify-report", "ledger", "store", "key", "access", "warm"),
    ),
    "The papers": ("study",),
}


_WHOLE = 1_000
"""Letters of a summary: it is wrapped, never cut."""


class _FoldedHelp:
    """Help whose examples and lists fit the terminal."""

    help: str | None

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what the command does."""
        text = inspect.cleandoc(self.help or "")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(folded_help(text, formatter.width - formatter.current_indent))


class FoldedCommand(_FoldedHelp, typer.core.TyperCommand):
    """A command."""


class WholeSummaries(_FoldedHelp, typer.core.TyperGroup):
    """Commands listed with the whole sentence that says what they do."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write all of them."""
        names = self.list_commands(ctx)
        self._write(formatter, "Commands", [(name, self.get_command(ctx, name)) for name in names])

    def _write(self, formatter: Any, title: str, commands: list[Any]) -> None:
        rows = [(name, command.get_short_help_str(_WHOLE)) for name, command in commands]
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)


class GroupedCommands(WholeSummaries):
    """Commands listed under what they are for."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the groups; a command that is in none stands in the last one."""
        left = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        for title, names in GROUPS.items():
            found = [(name, left.pop(name)) for name in names if name in left]
            self._write(formatter, title, found)
        self._write(formatter, "Others", list(left.items()))
