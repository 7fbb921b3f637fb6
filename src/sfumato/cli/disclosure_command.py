"""`sfumato disclosure` and `sfumato publish`: several columns of a person, at once."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from sfumato.cli import coin_options, options, table_output
from sfumato.cli.console import print_json, progress
from sfumato.cli.disclosure_text import tell, tell_published
from sfumato.cli.options import option, required

if TYPE_CHECKING:
    from sfumato.record.publish import Published
    from sfumato.record.record_spec import RecordSpec

_COLUMNS = required("The columns to publish: a,b,c.", "--columns", "-c")
_TABLE = required("One row per person.", "--table", "-t")
_ACCURACY = required("How near an attacker must come: one number, or one a column: 2,5.")


class _NoiseOptions(options.Options):
    """What both commands ask: which noise, against whom, and what attackers know."""

    sigma: str | None = option("Standard deviation of the noise: one number, or one a column.")
    noise: str = option("uniform, ball, gaussian, laplace or best.", default="ball")
    coupling: str = option(
        "What the attacker knows: the joint density of the columns, learnt from --history or the "
        "table as a mixture of normals, one normal (gaussian) or a kernel density; an equation "
        '"b = 2*a", or "b ~ a" for a polynomial that is fitted, several with ; between; or none: '
        "an attacker who has never seen such a table, whom a blind guess may beat.",
        default="mixture",
    )
    target_delta: float | None = option(
        "Find the least noise with which the attacker succeeds at most so often."
    )
    attacker: float | None = option(
        "With --noise best: an attacker who knows the coupling succeeds at most so often, and one "
        "who knows nothing as rarely as can be.",
        "--attacker-bound",
    )
    correlation: float | None = option("Of any two columns of the noise; with --noise gaussian.")
    domain: list[str] | None = option(
        "COLUMN=LOW:HIGH, known to everybody; repeat for several.", "--domain"
    )
    degree: int = option("Of polynomials that are fitted.", default=2)
    history: str | None = option("Public records to learn the coupling from.")
    keep: str | None = option(
        "Columns that leave as they are: town,school. Attackers know them, so delta is that of the "
        "group of equal values of them in which attackers do best."
    )
    independent: str | None = options.INDEPENDENT
    missing: str = options.MISSING


class _DisclosureOptions(options.Options):
    source: str = _TABLE
    columns: str = _COLUMNS
    accuracy: str = _ACCURACY
    noise: _NoiseOptions
    plot: str | None = option("Picture of delta against the noise (PNG, SVG, PDF).")
    separator: str | None = options.SEPARATOR
    shown: options.Shown


class _PublishOptions(options.Options):
    source: str = _TABLE
    columns: str = _COLUMNS
    accuracy: str = _ACCURACY
    output: str = required("The published columns; - for stdout.", "--output", "-o")
    noise: _NoiseOptions
    order: str = option(
        "How rows leave: checked (as they came, refused if that order tells of a column), kept "
        "(you declare that it tells nothing) or shuffled.",
        default="checked",
    )
    secret: coin_options.Secret
    identity: str | None = options.ROW_NAMES
    seed: int | None = coin_options.SEED
    separator: str | None = options.SEPARATOR
    shown: options.Shown


_SAME = ("columns", "accuracy", "sigma", "noise", "coupling", "correlation", "degree", "keep")
_OPTIONS = {
    **{name: f"--{name}" for name in (*_SAME, "independent", "missing", "order")},
    "target_delta": "--target-delta",
    "attacker": "--attacker-bound",
    "domains": "--domain",
    "identity": "--id",
}


def disclosure(given: _DisclosureOptions) -> None:
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

    table_output.check_picture(given.plot)
    with _named(given):
        spec = _spec(given)
    rows, past = _read(given, spec)
    with _named(given), progress("attacking", None, given.shown.no_progress) as show:
        report = assess(rows, spec, history=past, progress=show)
        if given.plot is not None:
            from sfumato.plots.figures import disclosure_curves

            drawn = partial(disclosure_curves, curves(rows, spec, report.sigma, history=past))
            with table_output.written_together({given.plot: partial(drawn, report)}):
                pass  # there is nothing but the picture
    if given.shown.as_json:
        print_json(asdict(report))
        return
    tell(report, quiet=given.shown.quiet)


def publish(given: _PublishOptions) -> None:
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
    from sfumato.record.publish import publish as publish_columns
    from sfumato.record.record_attest import publish_document
    from sfumato.tables.readers import Table

    source, output, history = given.source, given.output, given.noise.history
    sink, key_file = Table.at(output), given.secret.key_file
    table_output.check_files(output, None, [source, history, key_file], keyed=key_file is not None)
    with _named(given):
        randomness = given.secret.coins(given.seed, [source, history, output])
        spec = _spec(given, randomness=randomness, purpose=coin_options.purpose_of(given.seed))
    rows, past = _read(given, spec)
    coin_options.warn_of_seed(given.seed)
    with _named(given), progress("publishing", None, given.shown.no_progress) as show:
        done = publish_columns(rows, spec, history=past, progress=show)
    document = publish_document(done, given.secret.commitment(quiet=given.shown.quiet))
    table_output.write_released(sink, done.frame, document, {}, keyed=key_file is not None)
    if given.shown.as_json and not sink.is_standard:
        figures = table_output.told(document)
        print_json({"output": output, **figures, "operator": _for_operator(done)})
    elif not given.shown.quiet:
        tell_published(done, to_error=sink.is_standard)


def _spec(given: _DisclosureOptions | _PublishOptions, **more: Any) -> RecordSpec:
    from sfumato.record.record_spec import RecordSpec

    noise = given.noise
    return options.spec_from(
        RecordSpec,
        given,
        columns=table_output.split_names(given.columns),
        accuracy=_numbers("--accuracy", given.accuracy),
        sigma=None if noise.sigma is None else _numbers("--sigma", noise.sigma),
        domains=_domains(noise.domain),
        keep=table_output.split_names(noise.keep),
        independent=table_output.split_names(noise.independent),
        **more,
    )


def _read(given: _DisclosureOptions | _PublishOptions, spec: RecordSpec) -> tuple[Any, Any]:
    """The columns that are needed of the table, and of public records."""
    from sfumato.tables.columns import read_columns
    from sfumato.tables.readers import Table

    history, separator = given.noise.history, given.separator
    rows = read_columns(Table.at(given.source, separator=separator), spec.table_columns)
    if history is None:
        return rows, None
    return rows, read_columns(Table.at(history, separator=separator), spec.history_columns)


def _named(given: _DisclosureOptions | _PublishOptions) -> AbstractContextManager[None]:
    """Problems with the names of files and options of these commands."""
    learnt = given.noise.history or given.source
    return table_output.named_options(
        {"frame": given.source, "history": learnt}, {**_OPTIONS, "records": learnt}
    )


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
        found[name] = table_output.read_interval(interval, "--domain")
    return found


def _for_operator(done: Published) -> dict[str, Any]:
    """What is told to whoever publishes and stays out of the certificate: it tells of the table."""
    from dataclasses import asdict

    return {"silence": asdict(done.silence), "dropped": done.dropped}
