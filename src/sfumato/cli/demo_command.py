"""`sfumato demo`: the whole story on made-up data."""

from __future__ import annotations

from typing import Annotated

import typer

from sfumato.cli import options
from sfumato.cli.console import print_json, print_line, progress


def demo(
    output: Annotated[
        str, typer.Option("--output", "-o", help="Folder for the data, figures and report.")
    ] = "sfumato-demo",
    seed: Annotated[int, typer.Option(help="Of the made-up town.")] = 7,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Fit, plan, release and audit the days of some made-up people in a small made-up town.

    Writes the data, the model, the private streams, figures and a one-page report into a folder.
    It needs no network and no data of yours.

    \b
    Examples:
      sfumato demo
      sfumato demo --output /tmp/town --json
    """
    from sfumato.studies.demo import STEPS, run_demo

    with progress("demo", STEPS, quiet or as_json) as show:
        summary = run_demo(output, seed=seed, progress=show)
    if as_json:
        print_json(summary)
        return
    if not quiet:
        for line in summary["story"]:
            print_line(line)
        print_line(f"report: {summary['report']}")
