"""`sfumato attack`: what an adversary makes of a release who knows the model and the plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from sfumato.cli import options
from sfumato.cli.attack_text import AttackFindings, PeopleFound, draw, show_findings
from sfumato.cli.console import FAILED_AUDIT, print_json, progress
from sfumato.cli.options import argument, option

if TYPE_CHECKING:
    from sfumato.attacks.reidentification import Reidentification
    from sfumato.models.stream_model import StreamModel
    from sfumato.stream.plan import Plan
    from sfumato.stream.released_tracks import ReleasedTracks


class AttackOptions(options.Options):
    """What `attack` is asked for."""

    released: list[str] = argument(
        "What `release` wrote, a file or several in order; or an output of `realtime` or `publish` "
        "with its certificate beside it.",
        "RELEASED",
    )
    model: str | None = option(
        "The model that `sfumato fit` wrote; for a release of streams.", "--model", "-m"
    )
    rules: str | None = options.RULES
    policy: str | None = options.RELEASE_POLICY
    stream: str | None = options.STREAM_AS_FITTED
    lag: int | None = option(
        "The adversary decides when this many values more have left: 0 is at once; at the end if "
        "not given."
    )
    top: int = option("How many of the likeliest symbols, or people, count.", default=3)
    loss: str | None = options.LOSS
    against: list[str] | None = option(
        "The true values: how well the attack did. They stay on this machine."
    )
    known: str | None = option(
        "Re-identification: a table of true values of people from before, with the columns of the "
        "model. Each released stream is held against each person; its name says whose it is. Of "
        "a series or of published columns: other records of the same kind."
    )
    order: int = option("With --known: order of the chains of people.", default=1)
    network: str | None = option(
        "With --known: also ask a recurrent network that learns from the known values, released "
        "again and again: values (it sees what left) or chain (and what the model makes of it). "
        "Needs sfumato[attacks]."
    )
    seed: int = option(
        "With --network: of its coins; the same seed gives the same answer.", default=0
    )
    output: str | None = option("Table of guesses at all values.", "--output", "-o")
    plot: str | None = option("Picture of guesses, errors and gains (PNG, SVG, PDF).")
    separator: str | None = options.SEPARATOR
    shown: options.Shown


def attack(given: AttackOptions) -> None:
    """Attack a release with what everybody may know: the released file, the model, the rules.

    What is attacked follows from the file: with --model streams, else a series or published columns
    by the certificate beside them. Of a series every value is reconstructed from its measurements;
    of published columns every person is guessed at from other such records (--known), within their
    kept columns. What follows is about streams.

    A certificate says what is leaked at most; an attack shows what is leaked at least. The
    adversary follows the channels of the plan, which are public, and computes the distribution of
    every value given all that left (Bayes: no adversary who believes the model does better).
    Printed are how often his likeliest symbol is right, how often the truth is among his first
    --top, and his error: the loss of his best guess, which for distances is the usual measure of
    location privacy. Beside each stands what he could have guessed had nothing left: only what he
    gains over that was told by the release. All of it is what he expects, right if values move as
    the model says; --against holds it against the truth.

    Below stands how far his belief about a whole stream moved (the largest log ratio of posterior
    and prior over all tracks), beside what the rows certify. It can never be more: if it is, the
    certificate is refuted, and the command ends with code 1. Little of it proves nothing: other
    outputs might have told more.

    With --known a second attack asks whose each stream is: it learns a chain for each person, and
    computes how likely the outputs are through the channels if the stream is theirs. --network asks
    a recurrent network too, which needs no chains of people.

    \b
    Examples:
      sfumato attack private.csv --model city.model
      sfumato attack private.csv -m city.model --against live.csv --plot attack.png
      sfumato attack private.csv -m city.model --lag 0 --loss euclidean -o guesses.csv
      sfumato attack private.csv -m city.model --known history.csv --top 5 --against live.csv
      sfumato attack private.csv -m city.model --known history.csv --network chain --plot who.png
      sfumato attack counts-out.csv --known last-year.csv --against counts.csv
      sfumato attack noisy.csv --known others.csv --against people.csv
    """
    from sfumato.attacks.attack_report import read_certified, read_truths, stream_gains
    from sfumato.attacks.track_attack import attack_tracks
    from sfumato.cli.audit_rules import release_rules
    from sfumato.cli.rule_choice import policy_of
    from sfumato.cli.table_output import check_picture
    from sfumato.stream.model_loss import unit_of
    from sfumato.stream.released_tracks import read_tracks
    from sfumato.tables.cells import Missing
    from sfumato.tables.named_loss import named_loss
    from sfumato.tables.readers import Table

    _check(given)
    check_picture(given.plot)
    if given.model is None:
        from sfumato.cli.attack_certified import attack_certified

        attack_certified(given)
        return
    read = options.load_steady_model(
        given.model, "`audit --truth` says what other adversaries were told"
    )
    read = replace(read, stream=given.stream or read.stream)
    spec = release_rules(given.released, given.rules, None)
    policy, _ = policy_of(spec, given.policy, read, given.model)
    plan = spec.plan(read, policy)
    priced = None if given.loss is None else named_loss(given.loss, read.alphabet)
    sources = [Table.at(file, separator=given.separator) for file in given.released]
    tracks = read_tracks(sources, read, time=spec.time, period=plan.period)
    true = [Table.at(file, separator=given.separator) for file in given.against or []]
    truths = read_truths(true, tracks, read, Missing(spec.missing)) if true else None
    with progress("attacking", len(tracks.places), given.shown.no_progress) as show:
        found = attack_tracks(
            tracks, plan, lag=given.lag, loss=priced, top=given.top, progress=show
        )
    told = AttackFindings(
        attack=found,
        gains=stream_gains(found, read_certified(sources, read)) if found.gains else [],
        scores=None if truths is None else found.scored(truths),
        people=_people(given, read, plan, tracks, truths),
        top=given.top,
        unit=unit_of(given.loss or spec.loss_for(read), read) or "",
    )
    _write(given, told, read)
    if given.shown.as_json:
        print_json(told.document())
    else:
        show_findings(told, output=given.output, plot=given.plot, quiet=given.shown.quiet)
    if any(one.refuted for one in told.gains):
        raise typer.Exit(FAILED_AUDIT)


def _check(given: AttackOptions) -> None:
    """Refuse what is out of range, what would be ignored, and outputs that are inputs."""
    from sfumato.core import checks
    from sfumato.core.errors import InvalidParameter
    from sfumato.tables.readers import same_file

    checks.count("--top", given.top)
    checks.count("--order", given.order)
    if given.lag is not None:
        checks.count("--lag", given.lag, at_least=0)
    certificates = [f"{file}.certificate.json" for file in given.released]
    if given.known is None and given.order != 1:
        raise InvalidParameter("--order", given.order, "come with --known")
    if given.known is None and given.network is not None:
        raise InvalidParameter("--network", given.network, "come with --known")
    if given.network is None and given.seed != 0:
        raise InvalidParameter("--seed", given.seed, "come with --network")
    if given.network is not None:
        from sfumato.attacks.network_input import NetworkInput
        from sfumato.attacks.recurrent_network import load_torch

        checks.choice("--network", NetworkInput, given.network)
        load_torch()  # before hours of work
    if given.output == "-" and given.shown.as_json:
        raise InvalidParameter("--json", True, "not come with a table on standard output")
    others = (given.model, given.rules, given.policy, given.known, *(given.against or []))
    plans = [f"{file}.plan.json" for file in given.released]
    inputs = [*given.released, *plans, *certificates, *others]
    for name, file in (("--output", given.output), ("--plot", given.plot)):
        if file is not None and any(one is not None and same_file(file, one) for one in inputs):
            rule = "be a file of its own, not an input nor what lies beside one"
            raise InvalidParameter(name, file, rule)
    if given.output is not None and given.plot is not None and given.output == given.plot:
        raise InvalidParameter("--plot", given.plot, "be a file of its own, not that of --output")


def _people(
    given: AttackOptions, read: StreamModel, plan: Plan, tracks: ReleasedTracks, truths: Any
) -> PeopleFound | None:
    from sfumato.attacks.reidentification import reidentify, reidentify_raw
    from sfumato.stream.history_paths import named_paths
    from sfumato.tables.readers import Table

    if given.known is None:
        return None
    paths = named_paths(Table.at(given.known, separator=given.separator), read)
    known = {name: [place for place in path if place >= 0] for name, path in paths.items()}
    with progress("whose it is", len(known), given.shown.no_progress) as show:
        found = {"released": reidentify(known, tracks, plan, order=given.order, progress=show)}
    raw = None
    if truths is not None:
        bounds = zip(tracks.streams, tracks.starts[:-1], tracks.starts[1:], strict=True)
        raw = {name: truths[first:stop].tolist() for name, first, stop in bounds}
        found["true values"] = reidentify_raw(known, raw, plan, order=given.order)
    if given.network is not None:
        found |= _by_network(given, plan, known, tracks, raw)
    owners = list(tracks.streams) if set(tracks.streams) <= set(known) else None
    return PeopleFound(found, owners)


def _by_network(
    given: AttackOptions,
    plan: Plan,
    known: dict[str, list[int]],
    tracks: ReleasedTracks,
    raw: dict[str, list[int]] | None,
) -> dict[str, Reidentification]:
    from sfumato.attacks.network_attack import reidentify_by_network, reidentify_raw_by_network
    from sfumato.attacks.recurrent_network import NetworkSpec

    assert given.network is not None
    spec, found = NetworkSpec(seed=given.seed), {}
    with progress("a network learns", spec.steps, given.shown.no_progress) as show:
        found["released, by a network"] = reidentify_by_network(
            known, tracks, plan, shown=given.network, network=spec, progress=show
        )
    if raw is not None:
        with progress("a network learns", spec.steps, given.shown.no_progress) as show:
            found["true values, by a network"] = reidentify_raw_by_network(
                known, raw, plan, network=spec, progress=show
            )
    return found


def _write(given: AttackOptions, told: AttackFindings, read: StreamModel) -> None:
    """The table and the picture that were asked for."""
    from sfumato.attacks.attack_report import guess_columns, guess_rows
    from sfumato.tables.readers import Table
    from sfumato.tables.writers import Output

    if given.output is not None:
        columns = {read.stream: str, **guess_columns(told.attack.ranked.shape[1])}
        with Output(Table.at(given.output), columns) as sink:
            for block in guess_rows(told.attack):
                sink.write(block)
    if given.plot is not None:
        draw(told, given.plot)
