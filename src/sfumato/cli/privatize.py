"""`sfumato privatize`: one column of a table, released once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.console import print_json, progress, say, table

if TYPE_CHECKING:
    from sfumato.formats.readers import Table
    from sfumato.jobs.privatize import Certificate, Privatized


def privatize(
    source: Annotated[str, typer.Argument(metavar="TABLE", help="One row per person.")],
    column: Annotated[str, typer.Option("--column", "-c", help="The column to release.")],
    epsilon: Annotated[float, typer.Option(help="Leakage allowed under the prior.")],
    output: Annotated[
        str, typer.Option("--output", "-o", help="The released column; - for stdout.")
    ],
    delta: Annotated[
        float, typer.Option(help="Probability with which it may be more; for numbers.")
    ] = 0.0,
    prior: Annotated[
        str,
        typer.Option(
            help="What the adversary knows: estimate, mixture, features:COL,COL or a file."
        ),
    ] = "estimate",
    mechanism: Annotated[str, typer.Option(help="How to release; see below.")] = "optimal",
    history: Annotated[
        str | None, typer.Option(help="Public records to learn the prior from.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--as", help="Read the column as symbols or as numbers.")
    ] = None,
    values: Annotated[
        str | None, typer.Option(help="All possible symbols: a,b,c; those that occur if not given.")
    ] = None,
    interval: Annotated[
        str | None, typer.Option("--range", help="LOW:HIGH; numbers outside are clamped to it.")
    ] = None,
    points: Annotated[int, typer.Option(help="Points that stand for the numbers.")] = 200,
    radius: Annotated[
        float | None, typer.Option(help="The prior is known up to this total variation only.")
    ] = None,
    ratio: Annotated[
        float | None, typer.Option(help="The prior is known up to this factor only.")
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(help="What a wrong symbol costs: hamming, absolute, squared or a CSV file."),
    ] = None,
    ldp: Annotated[
        float | None, typer.Option(help="Cap on the leakage whatever the prior; optimal only.")
    ] = None,
    keep: Annotated[
        str | None, typer.Option(help="Columns that leave as they are: id,school.")
    ] = None,
    key_file: options.KeyFile = None,
    identity: Annotated[
        str | None, typer.Option("--id", help="Column that names the rows, with --key-file.")
    ] = None,
    seed: options.Seed = None,
    plot: Annotated[
        str | None, typer.Option(help="Picture of the prior and of what was released (PNG, SVG).")
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Release one column of a table once, with a certificate.

    Every value leaves through a mechanism whose exact leakage is computed from the integers that
    are sampled: under the prior (LIP), and whatever the prior (LDP), the backstop if the prior is
    wrong. Only the released column leaves, and what --keep names. The certificate is written
    beside a file output as OUTPUT.certificate.json.

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
      sampling             the truth, rarely, and else a draw from the prior
      laplace-local, gaussian-local
                           the textbook scale, without a prior

    \b
    Examples:
      sfumato privatize survey.csv -c answer --epsilon 1 -o private.csv
      sfumato privatize grades.csv -c final --epsilon 1 --loss absolute \\
          --prior features:first,second --history last-year.csv -o private.csv
      sfumato privatize salaries.csv -c gross --epsilon 2 --range 0:200000 \\
          --prior mixture --plot salaries.png -o private.csv
      sfumato privatize salaries.csv -c gross --epsilon 2 --delta 1e-4 --mechanism gaussian-each \\
          --range 0:200000 -o private.csv
    """
    from sfumato.formats.readers import Table
    from sfumato.jobs.columns import read_columns
    from sfumato.jobs.known import feature_names
    from sfumato.jobs.privatize import privatize as release_column
    from sfumato.jobs.release import same_file
    from sfumato.streaming.instant import Purpose

    kept = _names(keep)
    sink = Table.at(output)
    _check_files(output, plot, [source, history, prior, key_file, loss], keyed=key_file is not None)
    ends = None if interval is None else read_interval(interval)
    learnt = [column, *feature_names(prior)]
    read = Table.at(source)
    with progress("reading", read.count(), quiet or as_json) as show:
        named = [] if identity is None else [identity]
        rows = read_columns(read, [*learnt, *kept, *named], show)
    records: Any = None if history is None else read_columns(Table.at(history), learnt)
    if history is not None and same_file(source, history):
        records = rows
    if seed is not None:
        say("warning: --seed makes guessable coins; treat the output as a simulation")
    files = {"frame": source, "history": history or source}
    with _named_options(files), progress("designing", None, quiet or as_json) as show:
        done = release_column(
            rows,
            column,
            epsilon=epsilon,
            delta=delta,
            prior=prior,
            mechanism=mechanism,
            loss=loss,
            ldp=ldp,
            kind=kind,
            values=None if values is None else _names(values),
            interval=ends,
            points=points,
            radius=radius,
            ratio=ratio,
            history=records,
            keep=kept,
            identity=identity,
            randomness=options.coins(key_file, seed),
            purpose=Purpose.RELEASE if seed is None else Purpose.SIMULATION,
            progress=show,
        )
    document = _document(done.certificate)
    _write(done, sink, document, plot, keyed=key_file is not None)
    if as_json and not sink.is_standard:
        print_json({"output": output, **document})
    elif not quiet:
        _tell(done, to_error=sink.is_standard)


_PICTURES = (".png", ".svg", ".pdf")
_OPTIONS = {"kind": "--as", "identity": "--id", "interval": "--range", "count": "--points"}


def _check_files(output: str, plot: str | None, inputs: list[str | None], *, keyed: bool) -> None:
    """What would fail after the draw is refused before it."""
    from sfumato.errors import InvalidParameter
    from sfumato.jobs.release import same_file

    if output != "-" and not keyed and Path(output).exists():
        rule = "not exist: a second release tells more about everyone (or give --key-file)"
        raise InvalidParameter("--output", output, rule)
    for file in (output, plot, _beside(output)):
        if file is None or file == "-":
            continue
        if any(given is not None and same_file(given, file) for given in inputs):
            raise InvalidParameter("--output", file, "be a file of its own")
    if plot is not None and Path(plot).suffix.lower() not in _PICTURES:
        raise InvalidParameter("--plot", plot, f"end in {', '.join(_PICTURES)}")
    for option, file in (("--plot", plot), ("--output", _beside(output))):
        if file is not None and (Path(file).is_dir() or not Path(file).parent.is_dir()):
            raise InvalidParameter(option, file, "name a file in a folder that exists")


@contextmanager
def _named_options(files: dict[str, str]) -> Iterator[None]:
    """Problems with the names of files and options instead of those of the Python call."""
    from sfumato.errors import InvalidParameter
    from sfumato.formats.problems import BadTable

    try:
        yield
    except BadTable as problem:
        raise BadTable(
            files.get(problem.source, problem.source), problem.row, problem.rule
        ) from None
    except InvalidParameter as problem:
        name = _OPTIONS.get(problem.name, problem.name)
        raise InvalidParameter(name, problem.value, problem.rule) from None


def _beside(output: str) -> str:
    return f"{output}.certificate.json"


def _write(
    done: Privatized, sink: Table, document: dict[str, Any], plot: str | None, *, keyed: bool
) -> None:
    """Picture and certificate first, the column last: if anything fails, nothing was released."""
    import json

    from sfumato.cli.console import finite
    from sfumato.files import write_whole
    from sfumato.jobs.columns import write_columns

    if keyed and not sink.is_standard and Path(sink.path).exists():
        _check_same(sink.path, done.certificate.fingerprint)
    written: list[Path] = []
    try:
        if plot is not None:
            from sfumato.studies.figures import prior_and_released

            prior_and_released(done.spread, done.certificate.column, plot)
            written.append(Path(plot))
        if not sink.is_standard:
            text = json.dumps(finite(document), indent=2, ensure_ascii=False)
            write_whole(_beside(sink.path), f"{text}\n".encode())
            written.append(Path(_beside(sink.path)))
        write_columns(sink, done.frame)
    except BaseException:
        for file in written:
            file.unlink(missing_ok=True)
        raise


def _check_same(output: str, fingerprint: str) -> None:
    """An output may be written over by the mechanism that wrote it alone."""
    import json

    from sfumato.errors import InvalidParameter

    try:
        before = json.loads(Path(_beside(output)).read_text(encoding="utf-8")).get("fingerprint")
    except (OSError, ValueError, AttributeError):
        before = None
    if before != fingerprint:
        rule = "not exist, or come from the same mechanism: other answers tell more about everyone"
        raise InvalidParameter("--output", output, rule)


def _names(text: str | None) -> list[str]:
    return [] if text is None else [name.strip() for name in text.split(",") if name.strip()]


def read_interval(text: str) -> tuple[float, float]:
    """Two numbers from LOW:HIGH."""
    from sfumato.errors import InvalidParameter

    try:
        low, high = (float(end) for end in text.split(":"))
    except ValueError:
        raise InvalidParameter("--range", text, "be LOW:HIGH, two numbers") from None
    if not -float("inf") < low < high < float("inf"):
        raise InvalidParameter(
            "--range", text, "be finite numbers LOW:HIGH, the first less than the second"
        )
    return low, high


def _document(certificate: Certificate) -> dict[str, Any]:
    from dataclasses import asdict

    document = asdict(certificate)
    for name in ("lip", "ldp"):
        document[name] = document[name]["epsilon"]
    return document | {"delta": certificate.lip.delta}


def _tell(done: Privatized, *, to_error: bool) -> None:
    certificate = done.certificate
    lines = [
        f"{certificate.rows:,} values of {certificate.column!r} through {certificate.mechanism}",
        f"leakage: {certificate.lip} under the prior ({certificate.prior}), "
        f"{certificate.ldp} whatever the prior",
    ]
    told = f"expected {certificate.loss} loss"
    if certificate.cost is not None:
        lines.append(f"{told} {certificate.cost:.6g}; saying nothing {certificate.nothing:.6g}")
    if certificate.interval is not None:
        low, high = certificate.interval
        lines.append(f"{certificate.size} points from {low:g} to {high:g}")
    for line in lines:
        say(line) if to_error else print(line)
    if certificate.frequencies is not None and not to_error:
        table(
            "estimated share of each symbol among the true values",
            ["symbol", "share", "standard error"],
            [
                [name, f"{share:.4f}", f"{error:.4f}"]
                for name, (share, error) in certificate.frequencies.items()
            ],
        )
    if done.clamped:
        say(f"note: {done.clamped:,} values were clamped (told to you, not in the certificate)")
    for remark in certificate.remarks:
        say(f"note: {remark}")
