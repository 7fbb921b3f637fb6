"""`sfumato learn`: a model of what left, from what left."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sfumato.cli import options
from sfumato.cli.console import hold, print_json, print_line, progress, say
from sfumato.cli.options import option, required
from sfumato.core.printed import shown_up

if TYPE_CHECKING:
    from sfumato.models.stream_model import StreamModel
    from sfumato.stream.learning import Learning
    from sfumato.stream.mixture_learning import MixtureLearning
    from sfumato.stream.plan import Plan
    from sfumato.stream.released_tracks import ReleasedTracks


ORDER = option(
    "How many past values the next depends on: 0, 1, 2, or auto: what best predicts streams "
    "held out.",
    default="auto",
)
OUTPUT = required("Where the model that was learnt goes.", "--output", "-o")


class Learner(options.Options):
    """How a chain is learnt, and what is proven of it."""

    smoothing: float = option("Pseudo-counts of every value after every context.", default=0.1)
    floor: float = options.FLOOR
    confidence: float = option("That of the set of plausible chains.", default=0.95)
    plausible: str | None = option(
        "File for the set of plausible chains: bounds of every probability. Refused where nothing "
        "can be proven."
    )


class LearnOptions(options.Options):
    """What `learn` is asked for."""

    released: list[str] | None = options.RELEASED_OR_LEDGER
    model: str = required("The model of the release.", "--model", "-m")
    output: str = OUTPUT
    rules: str | None = options.RULES
    ledger: str | None = options.RELEASE_LEDGER
    policy: str | None = options.RELEASE_POLICY
    stream: str | None = options.STREAM_AS_FITTED
    order: str = ORDER
    clusters: str | None = option(
        "People differ: learn a mixture of so many chains, each stream following one of them; auto "
        "for as many as best predict streams that were held out."
    )
    learner: Learner
    separator: str | None = options.SEPARATOR
    shown: options.Shown


def learn(given: LearnOptions) -> None:
    """Learn how values follow each other from released values alone.

    Only what left is read, and the rules and the model that were public before: learning costs no
    privacy, and everybody can do it. The model that is written can be released with like one of
    `sfumato fit`; it is made as probable as possible that what left would leave (EM).

    The report says what that is worth: whether the new model predicts outputs of streams that were
    held out better than the old one, and, where all values left through one channel (`release
    --method randomized-response --epsilon E`), between which bounds every probability lies, with
    proof and not in the limit.

    Of a release with --learn the channels of each version are used, and what is learnt is how
    values move since it noticed a change itself; what it has proven stands in its versions.

    With --clusters K what is learnt is a mixture: each stream follows one of K chains. Values must
    have left one by one.

    Without any history: `fit --uniform`, release by randomized response, learn, release with what
    was learnt.

    \b
    Examples:
      sfumato fit --uniform --values home,work,elsewhere --stream user -o start.model
      sfumato release live.csv -m start.model --epsilon 2 --method randomized-response -o first.csv
      sfumato learn first.csv -m start.model -o learnt.model
      sfumato release later.csv -m learnt.model --epsilon 0.5 -o private.csv
    """
    from sfumato.cli.released_input import read_release
    from sfumato.stream.learning import learn as learnt
    from sfumato.stream.learning import learnt_model

    order = read_order(given.order)
    inputs = [given.model, *(given.released or []), *([given.ledger] if given.ledger else [])]
    check_apart(inputs, given.output, given.learner.plausible)
    hold(given.output)
    read = options.load_steady_model(
        given.model, "phases are learnt from a history, by `fit --period`"
    )
    read = replace(read, stream=given.stream or read.stream)
    _, plan, tracks = read_release(given, read, given.model)
    if given.clusters is not None:
        _learn_mixture(given, read, plan, tracks)
        return
    with progress("learning, passes", None, given.shown.no_progress) as show:
        found = learnt(
            tracks,
            plan,
            order=order,
            smoothing=given.learner.smoothing,
            floor=given.learner.floor,
            confidence=given.learner.confidence,
            progress=show,
        )
    model = learnt_model(found, read, plan)
    write_learnt(found, model, given.output, given.learner.plausible, given.shown)


def write_learnt(
    found: Learning,
    model: StreamModel,
    output: str,
    plausible: str | None,
    shown: options.Shown,
) -> None:
    """Write a model that was learnt, and its plausible set, and say what it is worth."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.store.files import save, save_plausible

    if plausible is not None:
        if found.plausible is None:
            rule = f"not be given: no bounds are proven; {found.remark}"
            raise InvalidParameter("--plausible", plausible, rule)
        save_plausible(found.plausible, plausible)
    save(model, output)
    if shown.as_json:
        print_json({"model": output, **_document(found)})
    elif not shown.quiet:
        _show(found, output)


def _learn_mixture(
    given: LearnOptions, read: StreamModel, plan: Plan, tracks: ReleasedTracks
) -> None:
    """A mixture of chains, and what it is worth."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.store.files import save
    from sfumato.stream.mixture_learning import learn_mixture

    for name, typed, plain in (
        ("--order", given.order, ("auto", "1")),
        ("--plausible", given.learner.plausible, (None,)),
    ):
        if typed not in plain:
            rule = "not come with --clusters: chains are of order 1, and no bounds are proven"
            raise InvalidParameter(name, typed, rule)
    with progress("learning, passes", None, given.shown.no_progress) as show:
        found = learn_mixture(
            tracks,
            plan,
            given.clusters or "",
            smoothing=given.learner.smoothing,
            floor=given.learner.floor,
            progress=show,
        )
    moves = found.values - found.streams
    save(replace(read, chain=found.chain, transitions=moves, private=None), given.output)
    if given.shown.as_json:
        print_json({"model": given.output, **_mixture_document(found)})
    elif not given.shown.quiet:
        _show_mixture(found, given.output)


def _mixture_document(found: MixtureLearning) -> dict[str, Any]:
    return {
        "streams": found.streams,
        "values": found.values,
        "telling": found.telling,
        "clusters": found.chain.shares.tolist(),
        "log_likelihood": found.log_likelihood,
        "common_log_likelihood": found.common_log_likelihood,
        "held_out_gain": found.gain,
        "held_out_gain_error": found.gain_error,
        "people_differ": found.people_differ,
        "converged": found.converged,
    }


def _show_mixture(found: MixtureLearning, output: str) -> None:
    shares = ", ".join(f"{100 * share:.0f} %" for share in found.chain.shares.tolist())
    print_line(
        f"{output}: {found.streams:,} streams, {found.values:,} values, of which "
        f"{found.telling:,} have an output that tells anything"
    )
    print_line(f"{len(found.chain.chains)} clusters, as common as {shares}")
    verdict = "people differ" if found.people_differ else "people do not surely differ"
    print_line(
        f"{verdict}: outputs of streams held out are predicted better by {found.gain:+.4f} nats a "
        f"value than by one chain (standard error {found.gain_error:.4f})"
    )
    if not found.converged:
        say("warning: learning had not settled; more streams, or stronger outputs, would help")


def check_apart(taken: list[str], output: str, plausible: str | None) -> None:
    """Refuse to write over what is read, or one thing over another."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.tables.readers import same_file

    for name, path in (("--output", output), ("--plausible", plausible)):
        if path is not None and any(same_file(path, other) for other in taken):
            raise InvalidParameter(name, path, "be a file of its own, not an input")
        taken = [*taken, path or taken[0]]


def read_order(word: str) -> int | None:
    """What was asked for as an order; None for the one that predicts streams held out."""
    from sfumato.core.errors import InvalidParameter

    if word == "auto":
        return None
    if word not in ("0", "1", "2"):
        raise InvalidParameter("--order", word, "be 0, 1, 2 or auto")
    return int(word)


def _document(found: Learning) -> dict[str, Any]:
    """The report for a program."""
    box = found.plausible
    return {
        "streams": found.streams,
        "values": found.values,
        "telling": found.telling,
        "left_out": found.left_out,
        "effective": found.effective,
        "order": found.order,
        "log_likelihood": found.log_likelihood,
        "model_log_likelihood": found.model_log_likelihood,
        "independent_log_likelihood": found.independent_log_likelihood,
        "held_out_gain": found.gain,
        "held_out_gain_error": found.gain_error,
        "beats_model": found.beats_model,
        "converged": found.converged,
        "widest": None if box is None else box.widest,
        "radius": None if box is None else box.radius,
        "confidence": None if box is None else box.confidence,
        "low": None if box is None else box.low.tolist(),
        "high": None if box is None else box.high.tolist(),
        "unproven": found.remark,
    }


def _show(found: Learning, output: str) -> None:
    """The report for a person."""
    looks = (
        "values are independent",
        "the next value depends on the one before it",
        "the next value depends on the two before it",
    )
    print_line(
        f"{output}: {found.streams:,} streams, {found.values:,} values, of which "
        f"{found.telling:,} have an output that tells anything"
    )
    if found.left_out:
        print_line(
            f"{found.left_out:,} values that left before the release noticed a change are left out"
        )
    print_line(f"order {found.order}: {looks[found.order]}")
    print_line(
        f"as much is known of moves as if {found.effective:,.0f} of them had been seen as they are"
    )
    ahead = found.log_likelihood - found.model_log_likelihood
    alone = found.log_likelihood - found.independent_log_likelihood
    print_line(
        f"log probability of what left: {ahead:+,.1f} nats against the model of the release, "
        f"{alone:+,.1f} against independent values"
    )
    verdict = "it beats" if found.beats_model else "it does not surely beat"
    print_line(
        f"{verdict} the model of the release on streams held out: {found.gain:+.4f} nats a value "
        f"(standard error {found.gain_error:.4f})"
    )
    if found.plausible is not None and found.plausible.widest >= 1:
        print_line(
            f"at confidence {found.plausible.confidence:g} the probability of some move is not "
            "bounded at all yet: for all chains that are left no less may hold than the model-free "
            "leakage (LDP)"
        )
    elif found.plausible is not None:
        print_line(
            f"with confidence {found.plausible.confidence:g} every probability of a move lies in "
            f"an interval of at most {found.plausible.widest:.3f}, if all streams follow one chain "
            "of order 1 and none ended because of its last output"
        )
        radius = shown_up(found.plausible.radius, 3)
        print_line(
            "what a release leaks under any of these chains: `audit --plausible`, with the file of "
            "`learn --plausible`; `release --robust` with that file keeps a budget for all of "
            f"them, which, and more, are within {radius} of {output}, beginnings included"
        )
    else:
        print_line(f"no bounds are proven: {found.remark}")
    if not found.converged:
        say("warning: learning had not settled when it was ended")
