"""The `sfumato` command: thin over the jobs; heavy imports wait until a command runs."""

from __future__ import annotations


def main() -> None:
    """Run the command line and exit with its code."""
    from sfumato.cli.app import run

    raise SystemExit(run())
