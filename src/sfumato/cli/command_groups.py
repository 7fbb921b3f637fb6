"""The list of commands in `sfumato --help`, by what somebody wants to do."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
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


_UsageError: Any = typer.BadParameter.__base__
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
    """A command; called with less than it needs it says all that is missing, with an example."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what was typed."""
        typed = list(args)
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as problem:
            # Typer shows this class of its own, and of click, by its base alone.
            if type(problem).__name__ != "MissingParameter":
                raise
            missing = self._missing(ctx, typed)
            raise _UsageError(needed(missing, self.help or ""), ctx) from None

    def _missing(self, ctx: Any, args: list[str]) -> list[str]:
        """What must be given and was not, as it is typed."""
        given, _, _ = self.make_parser(ctx).parse_args(args=args)
        return [
            max(param.opts, key=len) if param.param_type_name == "option" else str(param.metavar)
            for param in self.get_params(ctx)
            if param.required and not given.get(param.name)
        ]


def needed(missing: Sequence[str], text: str) -> str:
    """What is missing, and the first example of a command's help.

    Examples:
        >>> print(needed(["INPUT", "--output"], "Examples:\\n  sfumato fit a.csv -o a.model"))
        INPUT and --output must be given. For example:
          sfumato fit a.csv -o a.model
    """
    *most, last = missing
    named = f"{', '.join(most)} and {last}" if most else last
    told = f"{named} must be given."
    whole = re.sub(r"\s*\\+\n\s*", " ", text)
    found = re.search(r"^\s*(sfumato .*)$", whole[max(whole.find("Example"), 0) :], re.M)
    return f"{told} For example:\n  {found[1]}" if found else told


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
