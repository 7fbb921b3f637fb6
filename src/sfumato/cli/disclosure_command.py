"""`sfumato disclosure` and `sfumato publish`: several columns of a person, at once."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.console import print_json, progress, say
from sfumato.cli.disclosure_text import tell, tell_published
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

Columns = Annotated[str, typer.Option("--columns", "-c", help="The columns to publish: a,b,c.")]
Accuracy = Annotated[
    str, typer.Option(help="How near an attacker must come: one number, or one a column: 2,5.")
]
Sigma = Annotated[
    str | None,
    typer.Option(help="Standard deviation of the noise: one number, or one a column."),
]
Noise = Annotated[str, typer.Option(help="uniform, ball, gaussian, laplace or best.")]
Coupling = Annotated[
    str,
    typer.Option(
        help="What the attacker knows: the joint density of the columns, learnt from --history or "
        "the table as a mixture of normals, one normal (gaussian) or a kernel density; an equation "
        '"b = 2*a", or "b ~ a" for a polynomial that is fitted, several with ; between; or none: '
        "an attacker who has never seen such a table, whom a blind guess may beat."
    ),
]
Degree = Annotated[int, typer.Option(help="Of polynomials that are fitted.")]
Domain = Annotated[
    list[str] | None,
    typer.Option("--domain", help="COLUMN=LOW:HIGH, known to everybody; repeat for several."),
]
Target = Annotated[
    float | None,
    typer.Option(help="Find the least noise with which the attacker succeeds at most so often."),
]
Attacker = Annotated[
    float | None,
    typer.Option(
        "--attacker-bound",
        help="With --noise best: an attacker who knows the coupling succeeds at most so often, and "
        "one who knows nothing as rarely as can be.",
    ),
]
Correlation = Annotated[
    float | None,
    typer.Option(help="Of any two columns of the noise; with --noise gaussian."),
]
History = Annotated[str | None, typer.Option(help="Public records to learn the coupling from.")]

Keep = Annotated[
    str | None,
    typer.Option(
        help="Columns that leave as they are: town,school. Attackers know them, so delta is that "
        "of the group of equal values of them in which attackers do best."
    ),
]

Order = Annotated[
    str,
    typer.Option(
        help="How rows leave: checked (as they came, refused if that order tells of a column), "
        "kept (you declare that it tells nothing) or shuffled."
    ),
]

_OPTIONS = {
    "columns": "--columns",
    "accuracy": "--accuracy",
    "sigma": "--sigma",
    "noise": "--noise",
    "coupling": "--coupling",
    "target_delta": "--target-delta",
    "attacker": "--attacker-bound",
    "correlation": "--correlation",
    "domains": "--domain",
    "degree": "--degree",
    "identity": "--id",
    "keep": "--keep",
    "independent": "--independent",
    "missing": "--missing",
    "order": "--order",
}


def disclosure(
    source: Annotated[str, typer.Option("--table", "-t", help="One row per person.")],
    columns: Columns,
    accuracy: Accuracy,
    sigma: Sigma = None,
    noise: Noise = "ball",
    coupling: Coupling = "mixture",
    target_delta: Target = None,
    attacker: Attacker = None,
    correlation: Correlation = None,
    domain: Domain = None,
    degree: Degree = 2,
    history: History = None,
    keep: Keep = None,
    independent: options.Independent = None,
    missing: options.Missing = "refuse",
    plot: Annotated[
        str | None, typer.Option(help="Picture of delta against the noise (PNG, SVG, PDF).")
    ] = None,
    separator: options.Separator = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """How likely an attacker pins all columns of a person down, after noise is added.

    delta is the probability that the best attacker who knows the coupling comes within --accuracy
    on every column: the mean posterior mass of the best box, by quadrature for densities of up to
    three columns, with a confidence interval beyond and for equations. Beside it: the best blind
    guess before anything is published, an attacker who sees the published values alone, the paper's
    successful disclosure rate gamma and its bounds, which are marked where they are none, and how
    much better than a constant the noisy columns are. Nothing is published.

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
    names = split_names(columns)
    asked = _asked(accuracy, sigma, coupling, domain, degree, keep, independent, missing)
    rows, asked["history"] = _read(source, history, names, asked, None, separator)
    with _named(source, history), progress("attacking", None, quiet or as_json) as show:
        report = assess(
            rows,
            names,
            noise=noise,
            target_delta=target_delta,
            attacker=attacker,
            correlation=correlation,
            progress=show,
            **asked,
        )
        if plot is not None:
            from sfumato.plots.figures import disclosure_curves

            found = curves(rows, names, **(asked | {"sigma": report.sigma}))
            with written_together({plot: partial(disclosure_curves, found, report)}):
                pass  # there is nothing but the picture
    if as_json:
        print_json(asdict(report))
        return
    tell(report, quiet=quiet)


def publish(
    source: Annotated[str, typer.Option("--table", "-t", help="One row per person.")],
    columns: Columns,
    accuracy: Accuracy,
    output: Annotated[
        str, typer.Option("--output", "-o", help="The published columns; - for stdout.")
    ],
    sigma: Sigma = None,
    noise: Noise = "ball",
    coupling: Coupling = "mixture",
    target_delta: Target = None,
    attacker: Attacker = None,
    correlation: Correlation = None,
    domain: Domain = None,
    degree: Degree = 2,
    history: History = None,
    keep: Keep = None,
    independent: options.Independent = None,
    missing: options.Missing = "refuse",
    order: Order = "checked",
    key_file: options.KeyFile = None,
    shared_key: options.SharedKey = False,
    identity: Annotated[
        str | None, typer.Option("--id", help="Column that names the rows, with --key-file.")
    ] = None,
    seed: options.Seed = None,
    separator: options.Separator = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
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

    sink = Table.at(output)
    check_files(output, None, [source, history, key_file], keyed=key_file is not None)
    names = split_names(columns)
    asked = _asked(accuracy, sigma, coupling, domain, degree, keep, independent, missing)
    rows, asked["history"] = _read(source, history, names, asked, identity, separator)
    if seed is not None:
        say("warning: --seed makes guessable coins; treat the output as a simulation")
    with _named(source, history), progress("publishing", None, quiet or as_json) as show:
        done = publish_columns(
            rows,
            names,
            noise=noise,
            target_delta=target_delta,
            attacker=attacker,
            correlation=correlation,
            order=order,
            identity=identity,
            randomness=options.coins(key_file, seed, [source, history, output], shared=shared_key),
            purpose=Purpose.RELEASE if seed is None else Purpose.SIMULATION,
            progress=show,
            **asked,
        )
    document = _document(done.certificate)
    write_released(sink, done.frame, document, {}, keyed=key_file is not None)
    if as_json and not sink.is_standard:
        print_json({"output": output, **document, **_for_you(done)})
    elif not quiet:
        tell_published(done, to_error=sink.is_standard)


def _asked(
    accuracy: str,
    sigma: str | None,
    coupling: str,
    domain: list[str] | None,
    degree: int,
    keep: str | None,
    independent: str | None,
    missing: str,
) -> dict[str, Any]:
    """What both commands ask for, as arguments of the Python calls."""
    return {
        "accuracy": _numbers("--accuracy", accuracy),
        "sigma": None if sigma is None else _numbers("--sigma", sigma),
        "coupling": coupling,
        "domains": _domains(domain),
        "degree": degree,
        "keep": split_names(keep),
        "independent": split_names(independent),
        "missing": missing,
    }


def _read(
    source: str,
    history: str | None,
    names: list[str],
    asked: dict[str, Any],
    identity: str | None,
    separator: str | None,
) -> tuple[Any, Any]:
    """The columns that are needed of the table, and of public records."""
    from sfumato.tables.columns import read_columns
    from sfumato.tables.readers import Table

    named = [] if identity is None else [identity]
    rows = read_columns(Table.at(source, separator=separator), [*names, *asked["keep"], *named])
    if history is None:
        return rows, None
    linked = [name for name in asked["keep"] if name not in asked["independent"]]
    return rows, read_columns(Table.at(history, separator=separator), [*names, *linked])


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
    from dataclasses import asdict

    document = asdict(certificate)
    alone = document.pop("guarantee_without_correlation")
    return {
        "delta": document.pop("guarantee")["delta"],
        "delta_without_correlation": alone["delta"],
        **document,
    }


def _for_you(done: Published) -> dict[str, Any]:
    """What is told to whoever publishes and stays out of the certificate: it tells of the table."""
    from dataclasses import asdict

    return {"silence": asdict(done.silence), "dropped": done.dropped}
