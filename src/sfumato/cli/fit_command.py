"""`sfumato fit`: from recorded streams to a model."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import options
from sfumato.cli.console import hold, print_json, print_line, progress, say

if TYPE_CHECKING:
    from sfumato.stream.fit_model import Cut


_PATTERNS = 1000


def fit(
    history: Annotated[str, typer.Argument(help="CSV, JSON lines, Parquet or Arrow; - for stdin.")],
    output: Annotated[str, typer.Option("--output", "-o", help="Where the model goes.")],
    stream: Annotated[str, typer.Option(help="Column that tells streams apart.")] = "stream",
    value: Annotated[str, typer.Option(help="Column of the value.")] = "value",
    order: Annotated[int, typer.Option(help="How many past values the next depends on.")] = 1,
    smoothing: Annotated[float, typer.Option(help="Pseudo-counts per follower seen.")] = 0.5,
    floor: Annotated[
        float, typer.Option(help="Least probability of any transition; rare things happen.")
    ] = 1e-6,
    bins: Annotated[int | None, typer.Option(help="Cut a numeric value into this many.")] = None,
    grid: Annotated[
        str | None, typer.Option(help="Cut points into cells, as 32x32; needs --x and --y.")
    ] = None,
    x: Annotated[str | None, typer.Option(help="Column of the first coordinate.")] = None,
    y: Annotated[str | None, typer.Option(help="Column of the second coordinate.")] = None,
    batch: Annotated[
        int | None,
        typer.Option(help="Learn patterns of so many successive values and their followers."),
    ] = None,
    patterns: Annotated[
        int | None, typer.Option(help="Patterns to keep, with --batch; 1,000 if not given.")
    ] = None,
    separator: options.Separator = None,
    range_: Annotated[
        str | None,
        typer.Option(
            "--range",
            help="LOW:HIGH that bins are cut from (LOW:HIGH,LOW:HIGH for a grid); values beyond it "
            "are clipped to it, here and in `release`. Else the range of the history.",
        ),
    ] = None,
    units: Annotated[
        str,
        typer.Option(
            help="What distances are in. `degrees`: --x is longitude and --y latitude, losses are "
            "kilometres along the earth. Any other word is repeated in reports."
        ),
    ] = "",
    missing: options.Missing = "refuse",
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Learn what an adversary may know: how the values of a stream follow each other.

    The history is one row per value, in order of time within each stream; rows of different
    streams may be mixed. It is best not the data you are going to release.

    With --batch W the model is a library: which patterns of W values occur, and which pattern
    follows which. That suits click streams, whose alphabet is too large for a chain of batches;
    `sfumato release` then releases W values at a time.

    \b
    Examples:
      sfumato fit history.csv --stream user --value place -o city.model
      sfumato fit meter.parquet --stream home --value watts --bins 16 -o meter.model
      sfumato fit meter.csv --stream home --value watts --bins 16 --range 0:4000 --units W \\
          --missing skip -o meter.model
      sfumato fit gps.csv --stream phone --grid 32x32 --x lon --y lat --units degrees -o town.model
      sfumato fit clicks.csv --stream session --value page --batch 3 -o clicks.model
    """
    from sfumato.cli.table_output import read_interval
    from sfumato.core.checks import choice
    from sfumato.core.errors import InvalidParameter
    from sfumato.store.files import save
    from sfumato.stream.fit_model import fit_table
    from sfumato.tables.cells import Missing
    from sfumato.tables.readers import Table, same_file

    table = Table.at(history, separator=separator)
    if same_file(history, output):
        raise InvalidParameter("--output", output, "not be the history")
    hold(output)
    values, cut = _values(value, grid, x, y, bins)
    ranges = tuple(read_interval(part) for part in range_.split(",")) if range_ else ()
    cut = replace(cut, ranges=ranges, unit=units.strip())
    if patterns is not None and batch is None:
        raise InvalidParameter("--patterns", patterns, "come with --batch")
    with progress("fitting", table.count(), quiet or as_json) as show:
        model, report = fit_table(
            table,
            stream=stream,
            values=values,
            order=order,
            smoothing=smoothing,
            floor=floor,
            cut=cut,
            batch=batch,
            patterns=_PATTERNS if patterns is None else patterns,
            missing=choice("--missing", Missing, missing),
            progress=show,
        )
    save(model, output)
    if as_json:
        print_json({"model": output, **asdict(report)})
        return
    if quiet:
        return
    print_line(
        f"{output}: {report.streams:,} streams, {report.rows:,} values, "
        f"{report.symbols:,} symbols, {report.transitions:,} transitions"
    )
    if report.patterns is not None and report.kept is not None:
        print_line(f"{report.patterns:,} patterns, which are {report.kept:.0%} of the batches")
    if report.rounding is not None:
        unit = f" {report.unit}" if report.unit else ""
        print_line(f"a value is {report.rounding:.4g}{unit} from the middle of its cell on average")
    if report.missing:
        print_line(f"{report.missing:,} values were missing ({missing})")
    if report.clipped:
        print_line(f"{report.clipped:,} values beyond the range were clipped to it")
    print_line(f"the past takes away {report.predictability:.0%} of the uncertainty about a value")
    if report.rare:
        some = ", ".join(str(label) for label in report.rare[:8])
        more = f" and {len(report.rare) - 8} more" if len(report.rare) > 8 else ""
        print_line(f"rare symbols (hardly any in the history): {some}{more}")
    for warning in report.warnings:
        say(f"warning: {warning}")


def _values(
    value: str, grid: str | None, x: str | None, y: str | None, bins: int | None
) -> tuple[tuple[str, ...], Cut]:
    from sfumato.core.errors import InvalidParameter
    from sfumato.stream.fit_model import Cut

    if grid is None:
        if x is not None or y is not None:
            raise InvalidParameter("--x and --y", (x, y), "come with --grid")
        return (value,), Cut(bins=bins)
    columns, _, rows = grid.lower().partition("x")
    if not (columns.isdigit() and rows.isdigit() and x and y) or bins is not None:
        raise InvalidParameter("--grid", grid, "be like 32x32, with --x and --y and no --bins")
    return (x, y), Cut(columns=int(columns), rows=int(rows))
