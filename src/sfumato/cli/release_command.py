"""`sfumato release`: from true values to private ones."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import options
from sfumato.cli.console import INTERRUPTED, print_json, progress, say

if TYPE_CHECKING:
    from sfumato.models.encoding import StreamModel


def release(
    source: Annotated[str, typer.Argument(metavar="INPUT", help="The true values; - for stdin.")],
    model: options.Model,
    output: Annotated[str, typer.Option("--output", "-o", help="Private values; - for stdout.")],
    epsilon: options.Epsilon = None,
    budget: options.Budget = None,
    horizon: options.Horizon = None,
    window: options.Window = None,
    ldp: options.Ldp = None,
    loss: options.Loss = None,
    method: options.Method = "optimal",
    policy: options.Policy = None,
    batch: Annotated[
        int | None,
        typer.Option(help="Release so many values of a stream together: later, but nearer."),
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option(help="Release a batch this many seconds after its first value at the latest."),
    ] = None,
    stream: Annotated[str | None, typer.Option(help="Column of streams; as at `fit`.")] = None,
    value: Annotated[
        str | None, typer.Option(help="Column of values (x,y for a grid); as at `fit`.")
    ] = None,
    event: options.Event = None,
    time: Annotated[
        str | None,
        typer.Option(
            help="Column of times (numbers, or 2024-05-01T08:00): without --event, stream and time "
            "tell events apart; rows of a stream must not go back in time."
        ),
    ] = None,
    late: Annotated[
        str,
        typer.Option(help="A row goes back in time: refuse, or accept (released as it comes)."),
    ] = "refuse",
    keep: Annotated[
        str | None,
        typer.Option(
            help="Columns that leave as they are, as text: the time column, and those that "
            "--independent names. Whoever receives them knows them, so they must not tell of "
            "the values: when, but never what."
        ),
    ] = None,
    independent: options.Independent = None,
    missing: options.Missing = "refuse",
    source_name: Annotated[
        str | None, typer.Option("--source", help="Name of the source in the ledger [file name].")
    ] = None,
    ledger: options.Ledger = None,
    resume: options.Resume = False,
    append: options.Append = False,
    when_exhausted: Annotated[
        str, typer.Option(help="Budget gone: refuse, suppress or repeat the last release.")
    ] = "refuse",
    when_unknown: Annotated[
        str, typer.Option(help="Unknown value: refuse, suppress, repeat or substitute.")
    ] = "refuse",
    format: Annotated[
        str | None, typer.Option(help="Format of stdin and stdout: csv (default) or jsonl.")
    ] = None,
    key_file: options.StreamKeyFile = None,
    shared_key: options.SharedKey = False,
    seed: options.Seed = None,
    separator: options.Separator = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Release a table value by value, or in batches; each output row carries its exact leakage.

    Output columns: stream, sequence, released, outcome, sip, ldp: never the true value. The rules
    are written beside a file output as OUTPUT.plan.json, for `sfumato audit`.

    With a ledger a stream goes on from file to file and from day to day, and an event that comes
    again gets its old answer. Name what tells events apart: --time or --event. Without either,
    rows are known by source and number; a source of the same name is then refused, unless you say
    that it is the same input once more (--resume, which is checked) or new data (--append).

    With --batch W the values of a stream leave W at a time, at the same budget per value and as a
    rule with less loss (see `sfumato plan --batch`). A column `batch` tells where a batch
    began; its leakage stands at its last value. At the end of the input, or after --wait
    seconds, what there is of a batch leaves.

    \b
    Examples:
      sfumato release live.csv -m city.model --budget 10 --horizon 50 -o private.csv
      sfumato release live.csv -m city.model --epsilon 0.3 --ledger city.ledger -o private.parquet
      sfumato release tuesday.csv -m city.model --epsilon 0.3 --time when --keep when \
        --ledger city.ledger -o private-tuesday.csv
      sfumato release live.csv -m city.model --epsilon 0.3 --policy city.policy -o private.csv
      sfumato release live.csv -m city.model --epsilon 0.3 --batch 5 -o private.csv
      tail -f live.csv | sfumato release - -m city.model --epsilon 0.3 -o - | consumer
      tail -f live.csv | sfumato release - -m city.model --epsilon 0.3 --batch 5 --wait 60 -o -
    """
    from sfumato.core.checks import choice
    from sfumato.core.errors import InvalidParameter
    from sfumato.core.guarantees import LDP, SIP
    from sfumato.store.protocol import Again
    from sfumato.stream.input_rows import Reading
    from sfumato.stream.policy_files import load_policy
    from sfumato.stream.release_run import release_table
    from sfumato.stream.release_spec import ReleaseSpec, beside, document
    from sfumato.stream.remarks import large_total
    from sfumato.tables.cells import Late, Missing
    from sfumato.tables.readers import Table, same_file

    read = _renamed(options.load_model(model), stream, value)
    kept = None if policy is None else load_policy(policy)
    spec = ReleaseSpec(
        epsilon=epsilon,
        budget=budget,
        horizon=horizon,
        window=window,
        ldp=ldp,
        loss=loss,
        batch=batch,
        method=method,
        when_exhausted=when_exhausted,
        when_unknown=when_unknown,
        missing=choice("missing", Missing, missing),
        late=choice("late", Late, late),
        keep=_names(keep),
        independent=_names(independent),
        purpose="release" if seed is None else "simulation",
        policy=None if kept is None else kept.fingerprint,
    )
    rule = spec.plan(read, kept)
    if wait is not None and spec.width(read) is None:
        raise InvalidParameter("--wait", wait, "come with --batch")
    for name, file in (("--model", model), ("--policy", policy)):
        written = (output, str(beside(output)), ledger or output)
        if file is not None and any(same_file(file, other) for other in written):
            raise InvalidParameter(name, file, "be a file of its own")
    reading = Reading(
        event, time, spec.keep, spec.independent, Missing(spec.missing), Late(spec.late)
    )
    if resume and append:
        raise InvalidParameter("--append", append, "not come with --resume")
    if resume and (ledger is None or not Path(ledger).is_file()):
        raise InvalidParameter("--ledger", ledger, "be the ledger of the interrupted run")
    if format not in (None, "csv", "jsonl"):
        raise InvalidParameter("--format", format, "be csv or jsonl")
    table = Table.at(source, format if source == "-" else None, separator)
    sink = Table.at(output, format if output == "-" else None)
    if seed is not None:
        say("warning: --seed makes guessable coins; treat the output as a simulation")
    with progress("releasing", table.count(), quiet or as_json) as show:
        report = release_table(
            table,
            sink,
            read,
            rule,
            document=document(spec, read),
            wait=wait,
            ledger=ledger,
            reading=reading,
            again=Again.RESUME if resume else Again.APPEND if append else Again.REFUSE,
            source_name=source_name,
            randomness=options.coins(
                key_file,
                seed,
                [source, model, policy, loss, ledger, output, str(beside(output))],
                shared=shared_key,
            ),
            progress=show,
            remark=None if quiet else say,
        )
    if not quiet and (much := large_total(report.largest_sip)) is not None:
        say(much)
    if as_json and not sink.is_standard:
        print_json({"output": output, **asdict(report)})
    elif not quiet:
        say(
            f"{report.rows:,} rows, {report.repeated:,} of them answered before; "
            f"{_gone(report.missing, spec.missing)}"
            f"{_beyond(report.clipped)}"
            f"{report.streams:,} streams, at most {SIP(report.largest_sip)} and "
            f"{LDP(report.largest_ldp)} each, in all"
        )
    if report.interrupted:
        held = f", {report.waiting:,} rows waited for their batch" if report.waiting else ""
        say(f"sfumato: interrupted; what was answered is complete{held}" + _hint(ledger))
        raise typer.Exit(INTERRUPTED)


def _names(columns: str | None) -> tuple[str, ...]:
    return () if columns is None else tuple(columns.split(","))


def _gone(count: int, missing: str) -> str:
    """How many values were missing, and what became of them."""
    became = {"drop": "left out", "skip": "passed over", "symbol": "released as a symbol"}
    return f"{count:,} values were missing and {became[missing]}; " if count else ""


def _beyond(clipped: int) -> str:
    return f"{clipped:,} values beyond the range were clipped to it; " if clipped else ""


def _hint(ledger: str | None) -> str:
    return "; add --resume to go on" if ledger else " (use --ledger to be able to go on)"


def _renamed(model: StreamModel, stream: str | None, value: str | None) -> StreamModel:
    from dataclasses import replace

    names = model.values if value is None else tuple(value.split(","))
    return replace(model, stream=stream or model.stream, values=names)
