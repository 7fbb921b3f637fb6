"""`sfumato sample`: made-up data to try the product on."""

from __future__ import annotations

from sfumato.cli import options
from sfumato.cli.console import print_command, print_json, print_line
from sfumato.cli.options import argument, option


class _SampleOptions(options.Options):
    name: str = argument(
        "cells, activities, meter, clicks, counts, people or existing; list tells them.",
        "NAME",
        default="list",
    )
    output: str = option("Folder for the tables.", "--output", "-o", default=".")
    shown: options.Shown


def sample(given: _SampleOptions) -> None:
    """Write made-up data to try the product on, and say what to do with it.

    The tables are the same whenever and wherever they are written, and tell of nobody. Nothing that
    is there is overwritten.

    \b
      cells       where phones are, every half hour, on a map
      activities  what people do, as watches see it
      meter       what homes draw from the grid
      clicks      the pages that visits to a shop pass
      counts      how many people pass a gate, hour by hour
      people      a table of attributes, a row for each person
      existing    counts that already leave with noise: what do they really tell?

    \b
    Examples:
      sfumato sample
      sfumato sample activities -o try
      sfumato sample counts --json
    """
    from pathlib import Path

    from sfumato.explanations.first_steps import purpose
    from sfumato.studies.samples.catalogue import SAMPLES
    from sfumato.studies.samples.catalogue import sample as write_sample

    if given.name == "list":
        found = {name: made.about for name, made in SAMPLES.items()}
        if given.shown.as_json:
            print_json({"samples": found})
        else:
            for name, about in found.items():
                print_line(f"{name:<11} {about}", hanging=12)
            print_line("")
            print_line("sfumato sample NAME -o FOLDER writes one, and says what to try on it.")
        return
    paths = write_sample(given.name, given.output)
    commands = SAMPLES[given.name].commands
    if given.shown.as_json:
        print_json({"files": [str(path) for path in paths], "commands": list(commands)})
        return
    print_line(SAMPLES[given.name].about)
    print_line(f"wrote {', '.join(str(path) for path in paths)}; to try it:")
    if (folder := str(Path(given.output))) != ".":
        print_line(f"  cd {folder}")
    for command in commands:
        print_command(f"  {command}", purpose(command))
