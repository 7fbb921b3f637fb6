"""`sfumato release`: from true values to private ones."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, NoReturn

import typer

from sfumato.cli import coin_options, options
from sfumato.cli.console import INTERRUPTED, print_json, progress, say
from sfumato.cli.options import option
from sfumato.cli.release_text import beyond, gone, many_chains, silent_forecast, told_report, worth

if TYPE_CHECKING:
    from sfumato.models.stream_model import StreamModel
    from sfumato.stream.chain_terms import ChainBounds, LearningSpec
    from sfumato.stream.learning_plan import LearningPlan
    from sfumato.stream.release_spec import ReleaseSpec


class _ReleaseOptions(options.Options):
    source: str = options.LIVE_INPUT
    model: str = options.MODEL
    output: str = options.PRIVATE_OUTPUT
    allowed: options.Budget
    spread: options.Spread
    periods: options.Periods
    loss: str | None = options.LOSS
    way: options.Way
    policy: str | None = option(
        "Channels that `sfumato compile` made for this model, loss and budget."
    )
    robust: str | None = options.ROBUST
    learn: bool = options.flag(
        "--learn", "Start from nothing: learn from what left, and move to what was learnt."
    )
    learn_after: int | None = option(
        "With --learn: values of all streams before the first version; then at each doubling "
        "[1000]."
    )
    scouts: int | None = option(
        "With --learn: one stream in so many stays context-free, to learn from; 0 for none [20]."
    )
    confidence: float | None = option(
        "With --learn: that the true chain is among those that the budget is kept for [0.95]."
    )
    ready: float | None = option(
        "With --learn: streams move once they save this part of what knowing the chain would [0.5]."
    )
    batch: int | None = option("Release so many values of a stream together: later, but nearer.")
    wait: float | None = option(
        "Release a batch this many seconds after its first value at the latest."
    )
    stream: str | None = options.STREAM_AS_FITTED
    value: str | None = options.VALUES_AS_FITTED
    event: str | None = options.EVENT
    time: str | None = option(
        "Column of times (numbers, or 2024-05-01T08:00): without --event, stream and time tell "
        "events apart; rows of a stream must not go back in time."
    )
    late: str = option(
        "A row goes back in time: refuse, or accept (released as it comes).", default="refuse"
    )
    keep: str | None = option(
        "Columns that leave as they are, as text: the time column, and those that --independent "
        "names. Whoever receives them knows them, so they must not tell of the values: when, but "
        "never what."
    )
    independent: str | None = options.INDEPENDENT
    missing: str = options.MISSING
    source_name: str | None = option("Name of the source in the ledger [file name].", "--source")
    ledger: str | None = options.LEDGER
    repetition: options.Repetition
    when_exhausted: str = options.WHEN_EXHAUSTED
    when_unknown: str = options.WHEN_UNKNOWN
    threads: int = option(
        "Threads that share the streams, where a policy is at hand; the answers are the same.",
        default=1,
    )
    format: str | None = option("Format of stdin and stdout: csv (default) or jsonl.")
    secret: coin_options.StreamSecret
    seed: int | None = coin_options.SEED
    separator: str | None = options.SEPARATOR
    shown: options.Shown


def release(given: _ReleaseOptions) -> None:
    """Release a table value by value, or in batches; each output row carries its exact leakage.

    Output columns: stream, sequence, released, outcome, sip, ldp: never the true value. The rules
    are written beside a file output as OUTPUT.plan.json, for `sfumato audit`.

    With --epsilon, a cap on each value, a stream is released far-sighted: what is told now also
    sharpens what is known of later values, so more of the cap is spent than a step alone has use
    for, and the stream loses less (see `sfumato plan`). Two outputs may then release one symbol and
    lead to different beliefs: a column `signal` says which it was. Whoever wants the value reads
    `released`, whoever follows the belief (`audit`, `recover`) reads both; the certificates are
    those of both together. Channels are compiled once and kept beside the model. --method
    step-wise gives each value the best channel of its step, and leaks less.

    With a ledger a stream goes on from file to file and from day to day, and an event that comes
    again gets its old answer. Name what tells events apart: --time or --event. Without either,
    rows are known by source and number; a source of the same name is then refused, unless you say
    that it is the same input once more (--resume, which is checked) or new data (--append).

    With --budget, a total, it is spent in bursts, one every N values: what is told about a value
    that stays is good for the values after it, so on sticky data a few bursts lose far less than an
    even split (--every 1) at the same total. `sfumato plan` compares; what is best on the model is
    sought, up to 100 values, and kept beside it, unless --every says how.

    With --budget B --per day a stream may leak B in each day of --time, and begins anew with the
    next; so around a midnight it may leak up to twice B. --cap C bounds each value, or --horizon N
    shares the budget among the values that a day is expected to have. When it is gone, what
    --when-exhausted says happens until the day is over. Times must be kept (--keep), rise within a
    stream, and be known to everybody: when a value was must not tell what it was.

    With --robust R the budget is kept not for the model alone but for every chain near it, also one
    that changes: `sip` of each row is then the leakage under the worst of them. R is how far each
    probability may be off, or the file of a set that `learn --plausible` wrote with the model.

    With --learn nothing need be known: the model is one of `fit --uniform`. Values leave by
    randomised response until outputs alone have told enough; then by channels whose budget is kept
    for every chain that they have not ruled out, far-sighted for up to 8 values. A column `signal`
    says which model a value left under (1,000 times its version, 0 for none, and which output of
    its channel it is); `version` does where channels look at one step. OUTPUT.versions holds the
    versions, and `audit` learns them again.

    Streams may change meanwhile. --learn tests, four times between a version and the next, whether
    context-free values still move as some chain of the set in use; if none does, a version says so,
    values are context-free again and learning starts anew. Until then `ldp` holds, `sip` need not.
    Without a change that happens with probability at most 1 - confidence + 0.01, ever. With
    --scouts 0 no change is noticed once streams have moved.

    With --batch W the values of a stream leave W at a time, at the same budget per value and as a
    rule with less loss (see `sfumato plan --batch`). A column `batch` tells where a batch
    began; its leakage stands at its last value. At the end of the input, or after --wait
    seconds, what there is of a batch leaves.

    \b
    Examples:
      sfumato release live.csv -m city.model --budget 10 --horizon 50 -o private.csv
      sfumato release live.csv -m city.model --budget 10 --horizon 50 --every 1 -o private.csv
      sfumato release live.csv -m city.model --epsilon 0.3 --ledger city.ledger -o private.parquet
      sfumato release tuesday.csv -m city.model --epsilon 0.3 --time when --keep when \
        --ledger city.ledger -o private-tuesday.csv
      sfumato release live.csv -m city.model --budget 10 --per day --cap 0.5 --time when \
        --keep when --when-exhausted suppress -o private.csv
      sfumato release live.csv -m city.model --epsilon 0.3 --policy city.policy -o private.csv
      sfumato release live.csv -m city.model --epsilon 0.3 --robust 0.02 -o private.csv
      sfumato release live.csv -m learnt.model --epsilon 0.3 --robust learnt.set -o private.csv
      sfumato release live.csv -m city.model --epsilon 0.3 --batch 5 -o private.csv
      sfumato release live.csv -m start.model --epsilon 1 --learn --ledger l.ledger -o private.csv
      tail -f live.csv | sfumato release - -m city.model --epsilon 0.3 -o - | consumer
      tail -f live.csv | sfumato release - -m city.model --epsilon 0.3 --batch 5 --wait 60 -o -
    """
    from msgspec import structs

    from sfumato.cli.rule_choice import RuleChoice, check_budget, rules_begun
    from sfumato.core.checks import choice
    from sfumato.core.errors import InvalidParameter
    from sfumato.core.guarantees import LDP, SIP
    from sfumato.core.periods import Period
    from sfumato.stream.input_rows import Reading
    from sfumato.stream.model_loss import unit_of
    from sfumato.stream.policy_files import load_policy
    from sfumato.stream.release_document import beside, document
    from sfumato.stream.release_run import RunSpec, release_table
    from sfumato.stream.release_spec import ReleaseSpec
    from sfumato.stream.remarks import large_total, nothing_told, phases_assumed
    from sfumato.stream.version_files import versions_beside
    from sfumato.tables.cells import Late, Missing
    from sfumato.tables.readers import Table, same_file

    source, output, ledger = given.source, given.output, given.ledger
    read = _renamed(options.load_model(given.model), given.stream, given.value)
    policy = None if given.policy is None else load_policy(given.policy)
    phased = read.cycle is not None and not read.cycle.in_turn
    spec = options.spec_from(
        ReleaseSpec,
        given,
        method="randomized-response" if given.learn else "",
        missing=choice("missing", Missing, given.missing),
        late=choice("late", Late, given.late),
        keep=column_names(given.keep),
        independent=column_names(given.independent),
        robust=_chains(given.robust, read),
        learn=_learning(given),
        purpose=coin_options.purpose_of(given.seed).value,
        policy=None,
        model=None,
        every=None,
        time=given.time if phased or given.periods.per is not None else None,
    )
    reading = Reading(
        given.event, given.time, spec.keep, spec.independent, Missing(spec.missing), Late(spec.late)
    )
    reading.check(read, None if spec.per is None else Period(spec.per))
    if given.wait is not None and spec.width(read) is None:
        raise InvalidParameter("--wait", given.wait, "come with --batch")
    for name, file in (
        ("--model", given.model),
        ("--policy", given.policy),
        ("--robust", given.robust),
    ):
        written = (output, str(beside(output)), str(versions_beside(output)), ledger or output)
        if file is not None and any(same_file(file, other) for other in written):
            raise InvalidParameter(name, file, "be a file of its own")
    again = given.repetition.checked(ledger)
    if given.format not in (None, "csv", "jsonl"):
        raise InvalidParameter("--format", given.format, "be csv or jsonl")
    table = Table.at(source, given.format if source == "-" else None, given.separator)
    sink = Table.at(output, given.format if output == "-" else None)
    coin_options.warn_of_seed(given.seed)
    public = [source, given.model, given.policy, given.loss, ledger, output, str(beside(output))]
    coins = given.secret.coins(given.seed, public)
    chosen, begun = (
        RuleChoice(given.model, read, given.way, given.spread, given.shown),
        rules_begun(ledger),
    )
    check_budget(spec, begun, ledger)
    if spec.learn is not None and begun is not None and begun.learn is not None:
        # A release goes on by the rules that it began with.
        own = structs.replace(spec.learn, edition=begun.learn.edition)
        spec = structs.replace(spec, learn=own)
    if spec.learn is None:
        spec = chosen.completed(spec, policy, begun)
    if policy is None and spec.learn is None:
        if spec.method == "far-sighted" and os.path.isfile(source):
            next(table.chunks(reading.columns(read)), None)
        # It may take long: what is wrong with the call or the table was said before.
        policy = chosen.policy(spec, begun)
    spec = structs.replace(spec, policy=None if policy is None else policy.fingerprint)
    rule = spec.plan(read, policy) if spec.learn is None else _learning_plan(spec, read)
    how = RunSpec(
        reading=reading,
        wait=given.wait,
        document=document(spec, read),
        ledger=ledger,
        source_name=given.source_name,
        again=again,
        randomness=coins,
        commitment=given.secret.commitment(quiet=given.shown.quiet),
        threads=given.threads,
    )
    with progress("releasing", table.count(), given.shown.no_progress) as show:
        remark = None if given.shown.quiet else say
        report = release_table(table, sink, read, rule, how, progress=show, remark=remark)
    remarkable = large_total(report.largest_sip) or nothing_told(report.largest_ldp)
    if not given.shown.quiet and report.rows and remarkable is not None:
        say(remarkable)
    if given.shown.as_json and not sink.is_standard:
        print_json({"output": output, **told_report(asdict(report))})
    elif not given.shown.quiet:
        say(
            f"{report.rows:,} rows, {report.repeated:,} of them answered before; "
            f"{gone(report.missing, spec.missing)}"
            f"{beyond(report.clipped)}"
            f"{report.streams:,} stream{'s' * (report.streams != 1)}, "
            f"at most {SIP(report.largest_sip)} and {LDP(report.largest_ldp)} each, in all"
        )
        if report.rows:
            say(
                "SIP: what a stream told an observer who knows the model; LDP: one who may know "
                "anything; both in nats. `sfumato audit` checks them, `sfumato explain` says what "
                "they mean"
            )
        if report.rows and ledger is None and (coins is None or not coins.addressed):
            say(
                "nothing remembers these answers: the same values released once more, into "
                "whatever file, tell more; --ledger keeps them"
            )
        under = "the estimates of its versions, step by step" if given.learn else "the estimate"
        unit = unit_of(spec.loss_for(read), read)
        for line in (*many_chains(report, under), *worth(report, spec, unit)):
            say(line)
        told = report.rows and nothing_told(report.largest_ldp) is None
        if told and report.expected_loss is None and not given.learn:
            for line in silent_forecast(rule, spec, unit):
                say(line)
    if spec.time is not None and not given.shown.quiet:
        say(f"not certified: {phases_assumed(spec.time)[0]}")
    for column in () if given.shown.quiet else spec.independent:
        say(f"not certified: what column {column!r} tells of the values: declared independent")
    if report.interrupted:
        held = f", {report.waiting:,} rows waited for their batch" if report.waiting else ""
        end_interrupted(ledger, held)


def end_interrupted(ledger: str | None, held: str = "") -> NoReturn:
    """Say what became of a run that was interrupted, and how to go on; end with its code."""
    hint = "; add --resume to go on" if ledger else " (use --ledger to be able to go on)"
    say(f"sfumato: interrupted; what was answered is complete{held}{hint}")
    raise typer.Exit(INTERRUPTED)


def column_names(columns: str | None) -> tuple[str, ...]:
    """The columns that an option lists; none if it was not given."""
    return () if columns is None else tuple(columns.split(","))


def _learning(given: _ReleaseOptions) -> LearningSpec | None:
    """When the release learns; None if it does not."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.stream.chain_terms import LearningSpec
    from sfumato.stream.learning_rules import EDITIONS

    asked = {
        "first": given.learn_after,
        "scouts": given.scouts,
        "confidence": given.confidence,
        "ready": given.ready,
    }
    typed = {name: value for name, value in asked.items() if value is not None}
    if given.learn:
        if given.way.method is not None or given.policy is not None:
            raise InvalidParameter("--learn", "given", "not come with --method or --policy")
        return LearningSpec(**typed, edition=EDITIONS[-1])  # type: ignore[arg-type]
    if typed:
        rule = "come with --learn"
        raise InvalidParameter(f"--{next(iter(typed))}", "given", rule)
    return None


def _learning_plan(spec: ReleaseSpec, model: StreamModel) -> LearningPlan:
    """The rule of a release that has learnt nothing yet."""
    from sfumato.stream.learning_plan import LearningPlan
    from sfumato.stream.version_history import VersionHistory

    return LearningPlan.under(VersionHistory(spec.learning(model)))


def _chains(robust: str | None, model: StreamModel) -> float | ChainBounds | None:
    """Which chains the budget is kept for: those near the model, or those of a file."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.store.files import load_plausible
    from sfumato.stream.chain_terms import ChainBounds

    if robust is None:
        return None
    try:
        return float(robust)
    except ValueError:
        chains = load_plausible(robust)
    if chains.estimate.fingerprint != model.chain.fingerprint:
        rule = "be the set that `learn --plausible` wrote together with this model"
        raise InvalidParameter("--robust", robust, rule)
    return ChainBounds.of(chains)


def _renamed(model: StreamModel, stream: str | None, value: str | None) -> StreamModel:
    from dataclasses import replace

    names = model.values if value is None else tuple(value.split(","))
    return replace(model, stream=stream or model.stream, values=names)
