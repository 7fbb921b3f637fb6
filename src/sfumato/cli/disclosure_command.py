"""`sfumato disclosure` and `sfumato publish`: several columns of a person, at once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.console import print_json, progress, say
from sfumato.cli.disclosure_text import tell, tell_published
from sfumato.cli.shared_options import taking
from sfumato.cli.table_output import (
    check_files,
    check_picture,
    named_options,
    read_interval,
    split_names,
    write_released,
    written_together,
)

if TYPE_CHECKING:
    from sfumato.record.publish import PublishCertificate, Published
    from sfumato.record.record_spec import RecordSpec


def _asked(
    columns: Annotated[str, typer.Option("--columns", "-c", help="The columns to publish: a,b,c.")],
    accuracy: Annotated[
        str, typer.Option(help="How near an attacker must come: one number, or one a column: 2,5.")
    ],
    sigma: Annotated[
        str | None,
        typer.Option(help="Standard deviation of the noise: one number, or one a column."),
    ] = None,
    noise: Annotated[str, typer.Option(help="uniform, ball, gaussian, laplace or best.")] = "ball",
    coupling: Annotated[
        str,
        typer.Option(
            help="What the attacker knows: the joint density of the columns, learnt from --history "
            "or the table as a mixture of normals, one normal (gaussian) or a kernel density; an "
            'equation "b = 2*a", or "b ~ a" for a polynomial that is fitted, several with ; '
            "between; or none: an attacker who has never seen such a table, whom a blind guess may "
            "beat."
        ),
    ] = "mixture",
    target_delta: Annotated[
        float | None,
        typer.Option(
            help="Find the least noise with which the attacker succeeds at most so often."
        ),
    ] = None,
    attacker: Annotated[
        float | None,
        typer.Option(
            "--attacker-bound",
            help="With --noise best: an attacker who knows the coupling succeeds at most so often, "
            "and one who knows nothing as rarely as can be.",
        ),
    ] = None,
    correlation: Annotated[
        float | None,
        typer.Option(help="Of any two columns of the noise; with --noise gaussian."),
    ] = None,
    domain: Annotated[
        list[str] | None,
        typer.Option("--domain", help="COLUMN=LOW:HIGH, known to everybody; repeat for several."),
    ] = None,
    degree: Annotated[int, typer.Option(help="Of polynomials that are fitted.")] = 2,
    history: Annotated[
        str | None, typer.Option(help="Public records to learn the coupling from.")
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            help="Columns that leave as they are: town,school. Attackers know them, so delta is "
            "that of the group of equal values of them in which attackers do best."
        ),
    ] = None,
    independent: options.Independent = None,
    missing: options.Missing = "refuse",
) -> None:
    """What both commands ask for."""


_SAME = ("columns", "accuracy", "sigma", "noise", "coupling", "correlation", "degree", "keep")
_OPTIONS = {
    **{name: f"--{name}" for name in (*_SAME, "independent", "missing", "order")},
    "target_delta": "--target-delta",
    "attacker": "--attacker-bound",
    "domains": "--domain",
    "identity": "--id",
}


@taking(_asked)
def disclosure(
    source: Annotated[str, typer.Option("--table", "-t", help="One row per person.")],
    *,
    plot: Annotated[
        str | None, typer.Option(help="Picture of delta against the noise (PNG, SVG, PDF).")
    ] = None,
    separator: options.Separator = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    **asked: Any,
) -> None:
    """How likely an attacker pins all columns of a person down, after noise is added.

    delta is the probability that the best attacker who knows the coupling comes within --accuracy
    on every column: the mean posterior mass of the best box, in closed form for one normal and
    normal noise, with a confidence interval else. Beside it: the best blind guess before anything
    is published, an attacker who sees the published values alone, the paper's successful disclosure
    rate gamma and its bounds, which are marked where they are none, and how much better than a
    constant the noisy columns are. Nothing is published.

    \b
    Noise of standard deviation sigma on each column:
      uniform    independent; the paper's choice for equations
      ball       uniform on a ball; the paper's choice for densities, the least delta of an
                 attacker who knows nothing, if the accuracy is small against sigma
      gaussian   often better than both against an attacker who knows the joint density;
                 with --correlation its columns are correlated
      laplace    for comparison
      best       the best round noise against that attacker, by a certified search; 1 or 2 columns

    \b
    Examples:
      sfumato disclosure --table people.csv --columns height,weight --accuracy 2 --sigma 6
      sfumato disclosure --table people.csv --columns weight,pressure --accuracy 3,5 --sigma 8 \\
          --noise gaussian --coupling gaussian --plot delta.png
      sfumato disclosure --table people.csv --columns height,weight --accuracy 2 --sigma 6 \\
          --noise uniform --coupling "weight = 261.88 - 7.35*height + 0.083*height**2"
      sfumato disclosure --table people.csv --columns height,weight --accuracy 2 \\
          --coupling "weight ~ height" --target-delta 0.05 --json
    """
    from dataclasses import asdict

    from sfumato.record.disclosure import curves
    from sfumato.record.disclosure import disclosure as assess

    check_picture(plot)
    history = asked["history"]
    with _named(source, history):
        spec = _spec(asked)
    rows, past = _read(source, history, spec, separator)
    with _named(source, history), progress("attacking", None, quiet or as_json) as show:
        report = assess(rows, spec, history=past, progress=show)
        if plot is not None:
            from sfumato.plots.figures import disclosure_curves

            found = curves(rows, spec, report.sigma, history=past)
            with written_together({plot: partial(disclosure_curves, found, report)}):
                pass  # there is nothing but the picture
    if as_json:
        print_json(asdict(report))
        return
    tell(report, quiet=quiet)


@taking(_asked)
def publish(
    source: Annotated[str, typer.Option("--table", "-t", help="One row per person.")],
    *,
    output: Annotated[
        str, typer.Option("--output", "-o", help="The published columns; - for stdout.")
    ],
    order: Annotated[
        str,
        typer.Option(
            help="How rows leave: checked (as they came, refused if that order tells of a column), "
            "kept (you declare that it tells nothing) or shuffled."
        ),
    ] = "checked",
    key_file: options.KeyFile = None,
    shared_key: options.SharedKey = False,
    identity: Annotated[
        str | None, typer.Option("--id", help="Column that names the rows, with --key-file.")
    ] = None,
    seed: options.Seed = None,
    separator: options.Separator = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    **asked: Any,
) -> None:
    """Publish several columns with noise, and a certificate of what an attacker may learn.

    The noise is that of `sfumato disclosure`. Values and noise lie on a fine lattice, so that no
    digit tells what was added, and the certificate is for what was added. Only the published
    columns leave, and what --keep names: attackers know that, so the certificate is for the group
    of equal values of these columns in which they do best. A blind guess and a constant are shown
    beside it. The certificate is written beside a file output as OUTPUT.certificate.json.

    Running this again draws fresh noise and tells more about everyone: an output that exists is not
    overwritten, unless --key-file makes the noise the same. With --id a key is for one
    record of each person; use another key for a later wave.

    \b
    Examples:
      sfumato publish --table people.csv --columns height,weight --accuracy 2 --sigma 6 \\
          -o noisy.csv
      sfumato publish --table people.csv --columns weight,pressure --accuracy 3,5 \\
          --noise gaussian --coupling gaussian --target-delta 0.05 -o noisy.csv
      sfumato publish --table people.csv --columns weight,pressure --accuracy 3,5 --sigma 8 \\
          --keep id,town --independent id --missing drop -o noisy.csv
    """
    from sfumato.core.purpose import Purpose
    from sfumato.record.publish import publish as publish_columns
    from sfumato.tables.readers import Table

    sink, history = Table.at(output), asked["history"]
    check_files(output, None, [source, history, key_file], keyed=key_file is not None)
    with _named(source, history):
        spec = _spec(
            asked,
            order=order,
            identity=identity,
            randomness=options.coins(key_file, seed, [source, history, output], shared=shared_key),
            purpose=Purpose.RELEASE if seed is None else Purpose.SIMULATION,
        )
    rows, past = _read(source, history, spec, separator)
    if seed is not None:
        say("warning: --seed makes guessable coins; treat the output as a simulation")
    with _named(source, history), progress("publishing", None, quiet or as_json) as show:
        done = publish_columns(rows, spec, history=past, progress=show)
    document = _document(done.certificate)
    write_released(sink, done.frame, document, {}, keyed=key_file is not None)
    if as_json and not sink.is_standard:
        print_json({"output": output, **document, "operator": _for_operator(done)})
    elif not quiet:
        tell_published(done, to_error=sink.is_standard)


def _spec(given: Mapping[str, Any], **more: Any) -> RecordSpec:
    """What both commands ask for, by the names of their parameters; and what one of them does."""
    from sfumato.record.record_spec import RecordSpec

    same = ("noise", "coupling", "target_delta", "attacker", "correlation", "degree", "missing")
    return RecordSpec(
        split_names(given["columns"]),
        accuracy=_numbers("--accuracy", given["accuracy"]),
        sigma=None if given["sigma"] is None else _numbers("--sigma", given["sigma"]),
        domains=_domains(given["domain"]),
        keep=split_names(given["keep"]),
        independent=split_names(given["independent"]),
        **{name: given[name] for name in same},
        **more,
    )


def _read(
    source: str, history: str | None, spec: RecordSpec, separator: str | None
) -> tuple[Any, Any]:
    """The columns that are needed of the table, and of public records."""
    from sfumato.tables.columns import read_columns
    from sfumato.tables.readers import Table

    rows = read_columns(Table.at(source, separator=separator), spec.table_columns)
    if history is None:
        return rows, None
    return rows, read_columns(Table.at(history, separator=separator), spec.history_columns)


def _named(source: str, history: str | None) -> AbstractContextManager[None]:
    """Problems with the names of files and options of these commands."""
    learnt = history or source
    return named_options({"frame": source, "history": learnt}, {**_OPTIONS, "records": learnt})


def _numbers(option: str, text: str) -> list[float]:
    from sfumato.core.errors import InvalidParameter

    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidParameter(option, text, "be a number, or several: 2,5") from None


def _domains(given: list[str] | None) -> dict[str, tuple[float, float]]:
    from sfumato.core.errors import InvalidParameter

    found = {}
    for text in given or []:
        name, equals, interval = text.rpartition("=")
        if not (equals and name):
            raise InvalidParameter("--domain", text, "be COLUMN=LOW:HIGH")
        found[name] = read_interval(interval, "--domain")
    return found


def _document(certificate: PublishCertificate) -> dict[str, Any]:
    from sfumato.core.certificate import certificate_document

    return {
        "delta": certificate.guarantee.delta,
        "delta_without_correlation": certificate.guarantee_without_correlation.delta,
        **certificate_document(certificate),
    }


def _for_operator(done: Published) -> dict[str, Any]:
    """What is told to whoever publishes and stays out of the certificate: it tells of the table."""
    from dataclasses import asdict

    return {"silence": asdict(done.silence), "dropped": done.dropped}
