"""`sfumato temporal`: what a DP mechanism really leaks over time, and budgets that hold."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.console import print_json, print_line, progress, say, table
from sfumato.core.numerics import shown_down, shown_up

Backward = Annotated[
    str | None,
    typer.Option(help="Matrix from a value to the one before it: a CSV file, or a fitted model."),
]
Forward = Annotated[
    str | None, typer.Option(help="Matrix from a value to the next one: a CSV file, or a model.")
]
Epsilon = Annotated[
    str, typer.Option(help="Budget of every release by itself, or a file with one for each.")
]
Steps = Annotated[int | None, typer.Option(help="Number of releases.")]

HELP = """What releases of a DP mechanism really leak under correlation, and budgets that hold.

A mechanism that is epsilon-DP at each moment tells of a moment also through the releases before
and after it. Matrices are CSV files without a header: row = the value that is known.

\b
  sfumato temporal fit history.csv --stream user --value place -o town
  sfumato temporal leakage --backward town.backward.csv --forward town.forward.csv \\
      --epsilon 0.1 --steps 50
  sfumato temporal allocate --alpha 1 --backward town.backward.csv --forward town.forward.csv
  sfumato temporal plot --backward town.backward.csv --forward town.forward.csv \\
      --epsilon 0.1 --steps 50 -o town.png
  sfumato temporal release counts.csv --stream town --value home --value road --alpha 1 \\
      --backward town.backward.csv --forward town.forward.csv --ledger town.ledger -o private.csv
  sfumato temporal audit private.csv --ledger town.ledger
"""


def leakage(
    epsilon: Epsilon,
    backward: Backward = None,
    forward: Forward = None,
    model: Annotated[
        str | None,
        typer.Option(help="A fitted model of any order, for both directions, instead of matrices."),
    ] = None,
    steps: Steps = None,
    window: Annotated[
        int | None, typer.Option(help="Also the leakage of any so many moments together.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Leakage of every release: through the past (BPL), the future (FPL) and both (TPL).

    Without a matrix nothing is known of that direction. The suprema say what the leakage tends to
    if releases go on with the largest of the budgets; "inf" if it grows for ever.

    A model is followed from its own first values. If it looks back on two values or more, past and
    future are not independent given one value, so both together can be more than their sum.

    \b
    Examples:
      sfumato temporal leakage --backward back.csv --forward forth.csv --epsilon 0.1 --steps 10
      sfumato temporal leakage --backward city.model --epsilon budgets.csv --json
      sfumato temporal leakage --model order2.model --epsilon 0.1 --steps 10 --window 3
    """
    from sfumato.core.errors import InvalidParameter
    from sfumato.temporal.over_time import chain_leakage, temporal_leakage
    from sfumato.temporal.temporal_tables import read_chain, read_epsilons

    budgets = read_epsilons(epsilon, steps)
    most = float(budgets.max())
    suprema: list[float] = []
    if model is None:
        losses = _losses(backward, forward)
        told = temporal_leakage(budgets, *losses)
        suprema = [loss.supremum(most) for loss in losses]
    elif backward is not None or forward is not None:
        raise InvalidParameter("--model", model, "not come with --backward or --forward")
    else:
        told = chain_leakage(read_chain("--model", model), budgets)
    together = None if window is None else told.window(window).alpha
    if as_json:
        document: dict[str, Any] = {
            "epsilon": told.epsilons.tolist(),
            "bpl": told.backward.tolist(),
            "fpl": told.forward.tolist(),
            "tpl": told.total.tolist(),
            "event": told.event.alpha,
            "user": told.user.alpha,
        }
        for name, supremum in zip(("sup_backward", "sup_forward"), suprema, strict=False):
            document[name] = _or_null(supremum)
        if together is not None:
            document["window"] = together
        print_json(document)
        return
    table(
        "leakage of each release, in nats",
        ["release", "by itself", "past (BPL)", "future (FPL)", "both (TPL)"],
        [
            [str(place + 1), *(shown_up(float(value)) for value in row)]
            for place, row in enumerate(
                zip(told.epsilons, told.backward, told.forward, told.total, strict=True)
            )
        ],
    )
    print_line(
        f"any single moment: {shown_up(told.event.alpha)}; "
        f"a person's whole stream: {shown_up(told.user.alpha)}"
    )
    if window is not None:
        print_line(f"any {window} moments together: {shown_up(told.window(window).alpha)}")
    if suprema:
        _print_for_ever(most, *suprema)


def _print_for_ever(most: float, past: float, future: float) -> None:
    print_line(
        f"for ever at {shown_up(most)}: past {_shown(past)}, future {_shown(future)}, "
        f"both {_shown(past + future - most)}"
    )


def allocate(
    alpha: Annotated[float, typer.Option(help="What no moment may leak more than.")],
    backward: Backward = None,
    forward: Forward = None,
    steps: Steps = None,
    least_noise: Annotated[
        bool, typer.Option("--least-noise", help="Budgets of least total variance; with --steps.")
    ] = False,
    paper: Annotated[
        bool,
        typer.Option("--paper", "--published", help="Budgets as in the paper; with --steps."),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Budgets with which no moment leaks more than alpha, for ever and for a known number.

    `constant` is for releases without end. In a sequence of known length the first and the last may
    have more: `first`, `middle`, `last`; where that has more noise than the largest constant for so
    many releases, as it has where values change rarely, all of them get that constant. Better ones
    are found with `--least-noise`, and a proven bound says how far from the least they are.

    \b
    Examples:
      sfumato temporal allocate --alpha 1 --backward back.csv --forward forth.csv --json
      sfumato temporal allocate --alpha 1 --backward back.csv --forward forth.csv --steps 10
      sfumato temporal allocate --alpha 1 --forward city.model --steps 10 --least-noise
    """
    from sfumato.core.errors import InvalidParameter
    from sfumato.temporal.least_noise import least_noise_bound, noise_variance
    from sfumato.temporal.temporal_budgets import allocate as constant_budgets
    from sfumato.temporal.temporal_plan import Allocation, TemporalPlan

    losses = _losses(backward, forward)
    for option, asked in (("--least-noise", least_noise), ("--paper", paper)):
        if asked and steps is None:
            raise InvalidParameter(option, True, "come with --steps")
    if least_noise and paper:
        raise InvalidParameter("--paper", True, "not come with --least-noise")
    document: dict[str, Any] = dict.fromkeys(("constant", "first", "middle", "last"))
    # Rows that exclude each other leave budgets for a known number only; without one it is said so.
    if steps is None or all(loss.disjoint is None for loss in losses):
        found = constant_budgets(*losses, alpha)
        document |= {"constant": found.constant, "first": found.first}
        document |= {"middle": found.middle, "last": found.last}
    if steps is not None:
        usual = Allocation.PAPER if paper else Allocation.PLAIN
        kind = Allocation.LEAST_NOISE if least_noise else usual
        each = TemporalPlan(*losses, alpha, steps, kind).budgets
        document |= {"first": each[0], "last": each[-1]}
        document["middle"] = each[steps // 2] if steps > 2 else document["middle"]
        document["budgets"] = each.tolist()
        document["variance"] = noise_variance(each) / steps
        document["variance_bound"] = least_noise_bound(*losses, alpha, steps) / steps
    if as_json:
        print_json(document)
        return
    for name in ("constant", "first", "middle", "last"):
        told = document[name]
        print_line(f"{name} {'none' if told is None else shown_down(told)}")
    if steps is not None:
        print_line(f"mean variance of Laplace noise for a count: {shown_up(document['variance'])}")
        known = shown_down(document["variance_bound"])
        print_line(f"no budgets that keep alpha have less than: {known}")
        rows = [
            [str(place + 1), shown_down(each)] for place, each in enumerate(document["budgets"])
        ]
        table("budget of each release", ["release", "epsilon"], rows)


def fit(
    history: Annotated[str, typer.Argument(metavar="TABLE", help="Recorded streams.")],
    output: Annotated[
        str, typer.Option("--output", "-o", help="PREFIX of the two files that are written.")
    ],
    stream: Annotated[str, typer.Option(help="Column that tells streams apart.")] = "stream",
    value: Annotated[str, typer.Option(help="Column of the value.")] = "value",
    smoothing: Annotated[
        float, typer.Option(help="Added to every count: the larger, the weaker the correlation.")
    ] = 0.5,
    separator: options.Separator = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Backward and forward matrix from recorded streams, as PREFIX.backward.csv and .forward.csv.

    Without smoothing, values that never followed each other exclude each other, and no constant
    budget lasts.

    \b
    Examples:
      sfumato temporal fit history.csv --stream user --value place -o town
    """
    from sfumato.tables.readers import Table
    from sfumato.temporal.temporal_tables import fit_matrices, write_matrices

    source = Table.at(history, separator=separator)
    with progress("reading", source.count(), quiet or as_json) as show:
        alphabet, backward, forward = fit_matrices(
            source, stream=stream, value=value, smoothing=smoothing, progress=show
        )
    files = [f"{output}.backward.csv", f"{output}.forward.csv"]
    write_matrices({Path(files[0]): backward, Path(files[1]): forward})
    if as_json:
        print_json({"files": files, "symbols": list(alphabet.labels)})
    elif not quiet:
        say(f"{len(alphabet)} values; written: {', '.join(files)}")


def release(
    source: Annotated[str, typer.Argument(metavar="INPUT", help="The true values; - for stdin.")],
    output: Annotated[str, typer.Option("--output", "-o", help="Private values; - for stdout.")],
    alpha: Annotated[float, typer.Option(help="What no moment may leak more than.")],
    backward: Annotated[
        list[str] | None,
        typer.Option(help="Matrix from a value to the one before it; several: any may hold."),
    ] = None,
    forward: Annotated[
        list[str] | None,
        typer.Option(help="Matrix from a value to the next one; several: any may hold."),
    ] = None,
    own: Annotated[
        str | None,
        typer.Option(
            help="Table of single streams' own matrices: columns stream, backward, forward, with "
            "file names; other streams have --backward and --forward."
        ),
    ] = None,
    mechanism: Annotated[
        str,
        typer.Option(
            help="counts (whole numbers of people, geometric noise) or response (a person's own "
            "value, randomised response)."
        ),
    ] = "counts",
    stream: Annotated[
        str, typer.Option(help="Column that tells streams apart; nobody is in two of them.")
    ] = "stream",
    value: Annotated[
        list[str] | None,
        typer.Option(help="Column of the value; several counts of one row leave together."),
    ] = None,
    symbols: Annotated[
        str | None,
        typer.Option(help="What a value may be, for a response: home,road,work [the model's]."),
    ] = None,
    sensitivity: Annotated[
        int | None,
        typer.Option(
            help="By how much one person's value changes all counts of a row together [1 for one "
            "count, 2 for several: who moves leaves one and enters another]."
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Releases of each stream; without it streams are endless.")
    ] = None,
    allocation: Annotated[
        str, typer.Option(help="Budgets of a known number: plain, least-noise or paper.")
    ] = "plain",
    missing: Annotated[
        str, typer.Option(help="A missing value: refuse, or skip (its moment passes).")
    ] = "refuse",
    event: options.Event = None,
    time: Annotated[
        str | None,
        typer.Option(help="Column of times: with the stream it tells events apart; it leaves."),
    ] = None,
    ledger: options.Ledger = None,
    resume: options.Resume = False,
    append: options.Append = False,
    key_file: options.StreamKeyFile = None,
    shared_key: options.SharedKey = False,
    seed: options.Seed = None,
    separator: options.Separator = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Release streams so that no moment leaks more than alpha, whatever came before and will come.

    INPUT has one row per moment of a stream. Each row gets a budget that leaves room for the past
    and the future of its moment; output columns are the stream, sequence, what was released,
    outcome, and epsilon, the exact leakage of the row by itself. The rules lie beside a file
    output as OUTPUT.plan.json, for `sfumato temporal audit`. At the end the certificate says what
    any moment, and a whole stream, leaks through all rows together, and what they cost.

    An adversary knows how a person's values follow each other: give the matrix (`temporal fit`),
    several if any of them may hold, or a table of matrices, one pair for each stream (--own).
    Alpha is then kept for every stream against its own, and the certificate also says what the
    strongest of all would tell.

    \b
    Examples:
      sfumato temporal release counts.csv --stream town --value home --value road --alpha 1 \\
          --backward town.backward.csv --forward town.forward.csv --ledger t.ledger -o private.csv
      sfumato temporal release tuesday.csv --stream user --value place --mechanism response \\
          --symbols home,road,work --own people.csv --alpha 2 --steps 24 -o private.csv
      sfumato temporal release counts.csv ... --ledger t.ledger --resume -o private.csv
    """
    from sfumato.cli.console import INTERRUPTED
    from sfumato.core.certificate import certificate_document, certificate_lines
    from sfumato.core.errors import InvalidParameter
    from sfumato.store.protocol import Again
    from sfumato.tables.readers import Table
    from sfumato.temporal.temporal_rows import EventColumns
    from sfumato.temporal.temporal_run import release_streams
    from sfumato.temporal.temporal_spec import TemporalSpec, beside
    from sfumato.temporal.temporal_tables import matrices_of, read_own, symbols_of

    if resume and append:
        raise InvalidParameter("--append", append, "not come with --resume")
    if resume and (ledger is None or not Path(ledger).is_file()):
        raise InvalidParameter("--ledger", ledger, "be the ledger of the interrupted run")
    files = [*(backward or []), *(forward or [])]
    spec = TemporalSpec(
        alpha=alpha,
        steps=steps,
        allocation=allocation,
        mechanism=mechanism,
        stream=stream,
        values=tuple(value or ["value"]),
        symbols=symbols_of(symbols, files) if mechanism == "response" or symbols else (),
        sensitivity=sensitivity,
        backward=matrices_of("--backward", backward or [], backward=True),
        forward=matrices_of("--forward", forward or [], backward=False),
        own={} if own is None else read_own(own),
        missing=missing,
        purpose="release" if seed is None else "simulation",
    ).check()
    table_in, sink = Table.at(source, separator=separator), Table.at(output)
    if seed is not None:
        say("warning: --seed makes guessable coins; treat the output as a simulation")
    public = [source, own, ledger, output, str(beside(output)), *files]
    with progress("releasing", table_in.count(), quiet or as_json) as show:
        report = release_streams(
            table_in,
            sink,
            spec,
            ledger=ledger,
            columns=EventColumns(event, time),
            again=Again.RESUME if resume else Again.APPEND if append else Again.REFUSE,
            randomness=options.coins(key_file, seed, public, shared=shared_key),
            progress=show,
        )
    certificate = report.certificate
    if as_json and not sink.is_standard:
        counts = {
            name: getattr(report, name) for name in ("rows", "repeated", "skipped", "streams")
        }
        told = certificate_document(certificate)
        document = {"output": output, **counts, "interrupted": report.interrupted}
        print_json({**document, "certificate": told})
    elif not quiet:
        say(
            f"{report.rows:,} rows, {report.repeated:,} of them answered before, "
            f"{report.skipped:,} without a value; {report.streams:,} streams in all"
        )
        for line in (*certificate_lines(certificate), *certificate.remarks):
            say(line)
    if report.interrupted:
        hint = "; add --resume to go on" if ledger else " (use --ledger to be able to go on)"
        say(f"sfumato: interrupted; what was answered is complete{hint}")
        raise typer.Exit(INTERRUPTED)


def audit(
    released: Annotated[
        list[str] | None,
        typer.Argument(metavar="[OUTPUT]...", help="What `temporal release` wrote, in order."),
    ] = None,
    rules: Annotated[
        str | None, typer.Option("--plan", help="Rules of the release [OUTPUT.plan.json].")
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(help="Check this ledger too, all of it; it is only read.")
    ] = None,
    simulation: Annotated[
        bool, typer.Option("--simulation", help="A simulation is what was meant; else it fails.")
    ] = False,
    separator: options.Separator = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Compute anew, from released rows and their rules alone, what every moment leaks.

    Each row's budget follows from the rows before it, and its leakage from the mechanism made for
    it: both must be what the row says. Exit code 1 when something does not fit.

    \b
    Examples:
      sfumato temporal audit private.csv
      sfumato temporal audit monday.csv tuesday.csv --ledger town.ledger
      sfumato temporal audit --ledger town.ledger --json
    """
    from sfumato.cli.console import FAILED_AUDIT
    from sfumato.core.certificate import certificate_document, certificate_lines
    from sfumato.tables.readers import Table
    from sfumato.temporal.temporal_audit import audit_streams

    files = released or []
    spec = _rules(files, rules, ledger)
    tables = [Table.at(file, separator=separator) for file in files]
    with progress("auditing", None, quiet or as_json) as show:
        found = audit_streams(tables, spec, ledger=ledger, simulation=simulation, progress=show)
    if as_json:
        print_json(
            {
                "passed": found.passed,
                "rows": found.rows,
                "leakages": found.leakages,
                "certificate": certificate_document(found.certificate),
                "ledger_head": found.ledger_head,
                "problems": found.problems,
            }
        )
    else:
        worst = sorted(found.leakages.items(), key=lambda one: -one[1])[:10]
        table(
            f"{found.rows:,} rows, {len(found.leakages):,} streams; those that leaked most",
            ["stream", "any moment (TPL)"],
            [[name, shown_up(most)] for name, most in worst],
        )
        for line in (*certificate_lines(found.certificate), *found.certificate.remarks):
            print_line(line)
        if found.ledger_head is not None:
            print_line(f"head of the ledger: {found.ledger_head}")
        for problem in found.problems:
            print_line(f"PROBLEM {problem}")
        print_line("the audit found nothing wrong" if found.passed else "the audit FAILED")
    if not found.passed:
        raise typer.Exit(FAILED_AUDIT)


def _rules(files: list[str], rules: str | None, ledger: str | None) -> Any:
    """The rules of a release: as given, beside the files, or in the ledger."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.store.ledger_reader import LedgerReader
    from sfumato.temporal.temporal_spec import beside, parse_spec, read_spec

    documents = [Path(rules)] if rules else [beside(file) for file in files]
    for document in documents:
        if not document.is_file():
            rule = "be the file that `temporal release` wrote"
            raise InvalidParameter("--plan", str(document), rule)
    if documents:
        specs = [read_spec(document) for document in documents]
        if len({spec.fingerprint for spec in specs}) > 1:
            raise InvalidParameter("--plan", "several", "be the same for all files")
        return specs[0]
    if ledger is None:
        rule = "be what `temporal release` wrote, or come with --ledger"
        raise InvalidParameter("OUTPUT", None, rule)
    with LedgerReader(ledger) as kept:
        content = kept.front.rules
    if content is None:
        raise InvalidParameter("--plan", None, "be given: this ledger does not hold its rules")
    return parse_spec(content.encode(), ledger)


def plot(
    epsilon: Epsilon,
    output: Annotated[str, typer.Option("--output", "-o", help="The picture (PNG or SVG).")],
    backward: Backward = None,
    forward: Forward = None,
    steps: Steps = None,
) -> None:
    """Picture of the leakage of every release, and of the loss functions behind it.

    \b
    Examples:
      sfumato temporal plot --backward back.csv --forward forth.csv --epsilon 0.1 \\
          --steps 50 -o leakage.png
    """
    from sfumato.plots.figures import leakage_of_moments
    from sfumato.temporal.over_time import temporal_leakage
    from sfumato.temporal.temporal_tables import read_epsilons

    losses = _losses(backward, forward)
    told = temporal_leakage(read_epsilons(epsilon, steps), *losses)
    leakage_of_moments(told, losses, output)


def _losses(backward: str | None, forward: str | None) -> tuple[Any, Any]:
    from sfumato.core.errors import InvalidParameter
    from sfumato.temporal.temporal_tables import read_loss

    if backward is None and forward is None:
        raise InvalidParameter("--backward", None, "be given, or --forward, or both")
    return (
        read_loss("--backward", backward, backward=True),
        read_loss("--forward", forward, backward=False),
    )


def _or_null(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _shown(value: float) -> str:
    return shown_up(value) if math.isfinite(value) else "grows for ever"
