"""`sfumato demo`: the whole story on made-up data."""

from __future__ import annotations

from sfumato.cli import options
from sfumato.cli.console import print_json, print_line, progress
from sfumato.cli.options import option


class _DemoOptions(options.Options):
    output: str = option(
        "Folder for the data, figures and report.", "--output", "-o", default="sfumato-demo"
    )
    seed: int = option("Of the made-up town.", default=7)
    shown: options.Shown


def demo(given: _DemoOptions) -> None:
    """Fit, plan, release, audit and recover the days of made-up people in a made-up town.

    Writes the data, the model, the private streams, figures and a one-page report into a folder.
    It needs no network and no data of yours.

    \b
    Examples:
      sfumato demo
      sfumato demo --output /tmp/town --json
    """
    from sfumato.studies.demo import STEPS, run_demo

    with progress("demo", STEPS, given.shown.no_progress) as show:
        summary = run_demo(given.output, seed=given.seed, progress=show)
    if given.shown.as_json:
        print_json(summary)
        return
    if not given.shown.quiet:
        for line in summary["story"]:
            print_line(line)
        print_line(f"report: {summary['report']}")
