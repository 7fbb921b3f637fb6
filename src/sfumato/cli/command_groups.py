"""The list of commands in `sfumato --help`, by what somebody wants to do."""

from __future__ import annotations

from typing import Any

import typer

GROUPS: dict[str, tuple[str, ...]] = {
    "First steps": ("start", "sample", "demo", "explain", "doctor"),
    "Values of people over time": (
        *("fit", "plan", "compile", "release", "learn", "audit", "recover", "attack"),
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


class GroupedCommands(typer.core.TyperGroup):
    """Commands listed under what they are for."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the groups; a command that is in none stands in the last one."""
        left = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        limit = formatter.width - 6 - max(map(len, left))
        for title, names in GROUPS.items():
            found = [(name, left.pop(name)) for name in names if name in left]
            self._write(formatter, title, found, limit)
        self._write(formatter, "Others", list(left.items()), limit)

    def _write(self, formatter: Any, title: str, commands: list[Any], limit: int) -> None:
        rows = [(name, command.get_short_help_str(limit)) for name, command in commands]
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)
