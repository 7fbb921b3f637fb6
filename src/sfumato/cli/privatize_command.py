"""`sfumato privatize`: one column of a table, released once."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from sfumato.cli import coin_options, options, table_output
from sfumato.cli.console import print_json, print_line, progress, say, table
from sfumato.cli.options import argument, flag, option, required
from sfumato.core.printed import shown_up
from sfumato.explanations.note_words import in_options

if TYPE_CHECKING:
    from sfumato.column.column_certificate import ColumnCertificate, Privatized
    from sfumato.column.column_rivals import Rival


class _PrivatizeOptions(options.Options):
    source: str = argument("One row per person.", "TABLE")
    column: str = required("The column to release.", "--column", "-c")
    epsilon: float = required("Leakage allowed under the prior.")
    output: str = required("The released column; - for stdout.", "--output", "-o")
    delta: float = option("Probability with which it may be more; for numbers.", default=0.0)
    prior: str = option(
        "What the adversary knows: estimate, mixture, features:COL,COL or a file.",
        default="estimate",
    )
    mechanism: str = option("How to release; see below.", default="optimal")
    history: str | None = option("Public records to learn the prior from.")
    kind: str | None = option("Read the column as symbols or as numbers.", "--as")
    values: str | None = option("All possible symbols: a,b,c; those that occur if not given.")
    interval: str | None = option("LOW:HIGH; numbers outside are clamped to it.", "--range")
    points: int = option("Points that stand for the numbers.", default=200)
    radius: float | None = option("The prior is known up to this total variation only.")
    ratio: float | None = option("The prior is known up to this factor only.")
    loss: str | None = option(
        "What a wrong symbol costs: hamming, absolute, squared or a CSV file."
    )
    ldp: float | None = option("Cap on the leakage whatever the prior; optimal only.")
    missing: str = options.MISSING
    keep: str | None = option("Columns that leave as they are: id,school.")
    independent: str | None = options.INDEPENDENT
    order: str = option(
        "How rows leave: checked (as they came, refused if that order tells of the column), kept "
        "(you declare that it tells nothing) or shuffled.",
        default="checked",
    )
    secret: coin_options.Secret
    identity: str | None = options.ROW_NAMES
    seed: int | None = coin_options.SEED
    plot: str | None = option("Picture of the prior and of what was released (PNG, SVG).")
    compare: bool = flag("--compare", "Also what other mechanisms would lose.")
    separator: str | None = options.SEPARATOR
    shown: options.Shown


def privatize(given: _PrivatizeOptions) -> None:
    """Release one column of a table once, with a certificate.

    Every value leaves through a mechanism whose exact leakage is computed from the integers that
    are sampled: under the prior (LIP), and whatever the prior (LDP), the backstop if the prior is
    wrong. Only the released column leaves, and what --keep names. The certificate is written
    beside a file output as OUTPUT.certificate.json.

    What --keep names is knowledge: every group of equal values of those columns gets a prior and a
    mechanism of its own, and the certificate holds within each of them. Columns that tell nothing
    of the released one, names for instance, are declared by --independent.

    A prior that is given is used as it is. One that is learnt from the table itself needs 20
    rows (of each group), and symbols are only read off a table where they recur: else name
    them by --values, or learn from public records (--history). Text such as $1,200.50 is read as
    a number, and so are more than 30 different whole numbers (--as changes it).

    Numbers are clamped to an interval and stand on evenly spaced points of it; so do the
    outputs. Running this again draws fresh noise and tells more about everyone: an output that
    exists is not overwritten, unless --key-file makes the answers the same. With --id a key is
    for one value of each person; use another key for a later wave.

    \b
    Mechanisms for symbols:
      optimal              least expected loss within the budget (default)
      calibrated           randomised response that leaks epsilon under the prior
      context-free         least loss without a prior
      published            the paper's closed form; refused where it does not keep its budget
      randomized-response  k-ary randomised response, without a prior; estimates frequencies
      unary-encoding       sets of symbols, as JSON lists, without a prior; estimates frequencies
      subset-selection     the same with sets of one size

    \b
    Mechanisms for numbers:
      optimal              least expected absolute error within the budget (default; pure)
      laplace, gaussian    the least noise, one scale for all values
      laplace-each, gaussian-each
                           a scale for each value, less where the prior is dense
      quantile-response    randomised response on quantiles of the prior, and the best guess
      sampling             the truth, rarely, and else a draw from the prior
      laplace-local, gaussian-local
                           the textbook scale, without a prior

    \b
    Examples:
      sfumato privatize survey.csv -c answer --epsilon 1 -o private.csv
      sfumato privatize grades.csv -c final --epsilon 1 --loss absolute \\
          --prior features:first,second --history last-year.csv --values 0,1,2,3,4,5 -o private.csv
      sfumato privatize salaries.csv -c gross --epsilon 2 --range 0:200000 \\
          --prior mixture --plot salaries.png -o private.csv
      sfumato privatize iris.csv -c width --epsilon 1 --keep species --order shuffled --compare \\
          -o private.csv
      sfumato privatize salaries.csv -c gross --epsilon 2 --delta 1e-4 --mechanism gaussian-each \\
          --range 0:200000 -o private.csv
    """
    from sfumato.column.column_attest import column_document
    from sfumato.column.column_rivals import rivals
    from sfumato.column.column_spec import ColumnSpec
    from sfumato.column.privatize import privatize as release_column
    from sfumato.tables.columns import read_columns
    from sfumato.tables.readers import Table, same_file

    source, output, history = given.source, given.output, given.history
    sink, keyed = Table.at(output), given.secret.key_file is not None
    inputs = [source, history, given.prior, given.secret.key_file, given.loss]
    table_output.check_files(output, given.plot, inputs, keyed=keyed)
    files = {"frame": source, "history": history or source}
    with table_output.named_options(files, _OPTIONS):
        public = [source, history, given.prior, given.loss, output]
        spec = options.spec_from(
            ColumnSpec,
            given,
            values=None if given.values is None else table_output.split_names(given.values),
            interval=None if given.interval is None else table_output.read_interval(given.interval),
            keep=table_output.split_names(given.keep),
            independent=table_output.split_names(given.independent),
            randomness=given.secret.coins(given.seed, public),
            purpose=coin_options.purpose_of(given.seed),
        )
    read = Table.at(source, separator=given.separator)
    with progress("reading", read.count(), given.shown.no_progress) as show:
        rows = read_columns(read, spec.released_columns, show)
    past = None if history is None else Table.at(history, separator=given.separator)
    records: Any = None if past is None else read_columns(past, spec.learnt_columns)
    if history is not None and same_file(source, history):
        records = rows
    coin_options.warn_of_seed(given.seed)
    designing = progress("designing", None, given.shown.no_progress)
    with table_output.named_options(files, _OPTIONS), designing as show:
        done = release_column(rows, spec, history=records, progress=show)
    others = rivals(spec, done.knowledge) if given.compare else ()
    document = column_document(done, given.secret.commitment(quiet=given.shown.quiet))
    pictures = {} if given.plot is None else {given.plot: partial(_draw, done)}
    table_output.write_released(sink, done.frame, document, pictures, keyed=keyed)
    if given.shown.as_json and not sink.is_standard:
        beside = {} if not given.compare else {"rivals": [asdict(rival) for rival in others]}
        figures = table_output.told(document)
        print_json({"output": output, **figures, **beside, "operator": _for_operator(done)})
    elif not given.shown.quiet:
        _tell(done, others, to_error=sink.is_standard)


_OPTIONS = {
    "kind": "--as",
    "identity": "--id",
    "interval": "--range",
    "count": "--points",
    **{name: f"--{name}" for name in ("values", "history", "missing", "independent", "order")},
}


def _draw(done: Privatized, path: str) -> None:
    from sfumato.plots.figures import prior_and_released

    prior_and_released(done.spread, done.certificate.column, path)


def _for_operator(done: Privatized) -> dict[str, Any]:
    """What is for whoever runs this alone."""
    return {
        "clamped": done.clamped,
        "missing": done.missing,
        "realised": done.realised,
        "constant": done.constant,
        "notes": list(done.notes),
    }


def _tell(done: Privatized, others: tuple[Rival, ...], *, to_error: bool) -> None:
    for line in _lines(done.certificate):
        say(line) if to_error else print_line(line)
    if not to_error:
        _tables(done.certificate, others)
    if done.clamped:
        say(f"note: {done.clamped:,} values were clamped (told to you, not in the certificate)")
    if done.missing:
        say(f"note: {done.missing:,} values were missing (told to you, not in the certificate)")
    if done.realised is not None:
        say(
            f"note: on these rows it lost {done.realised:.3g}, and the best constant would have "
            f"lost {done.constant:.3g} (told to you, not in the certificate)"
        )
    for note in done.notes:
        say(f"note: {note} (told to you, not in the certificate)")
    for remark in done.certificate.remarks:
        say(f"note: {in_options(remark)}")


def _lines(certificate: ColumnCertificate) -> list[str]:
    from sfumato.core.certificate import certificate_lines

    lines = [
        f"{certificate.rows:,} values of {certificate.column!r} through {certificate.mechanism}",
        *certificate_lines(certificate),
    ]
    if certificate.interval is not None:
        low, high = certificate.interval
        possible = (
            "" if certificate.outputs is None else f", of which {certificate.outputs} can be told"
        )
        lines.append(f"{certificate.size} points from {low:g} to {high:g}{possible}")
    return lines


def _tables(certificate: ColumnCertificate, others: tuple[Rival, ...]) -> None:
    if others:
        table(
            "expected loss of other mechanisms within the same leakage (both leakages in nats)",
            ["mechanism", "loss", "under the prior", "whatever the prior"],
            [
                [rival.name, f"{rival.cost:.6g}", shown_up(rival.lip), shown_up(rival.ldp)]
                for rival in others
            ],
        )
    if certificate.frequencies is not None:
        table(
            "estimated share of each symbol among the true values",
            ["symbol", "share", "standard error"],
            [
                [name, f"{share:.4f}", f"{error:.4f}"]
                for name, (share, error) in certificate.frequencies.items()
            ],
        )
