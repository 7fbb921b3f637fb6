"""`sfumato drift`: whether what left lately still fits the model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from sfumato.cli import options
from sfumato.cli.console import FAILED_AUDIT, print_json, print_line, progress, say
from sfumato.cli.options import option

if TYPE_CHECKING:
    from sfumato.models.plausible import PlausibleChains
    from sfumato.stream.drift import DriftReport, OutputOrder
    from sfumato.stream.plan import Plan
    from sfumato.stream.release_spec import ReleaseSpec


class DriftOptions(options.Options):
    """What `drift` is asked for."""

    released: list[str] | None = options.RELEASED_OR_LEDGER
    model: str = options.MODEL
    rules: str | None = options.RULES
    ledger: str | None = options.RELEASE_LEDGER
    policy: str | None = options.RELEASE_POLICY
    stream: str | None = options.STREAM_AS_FITTED
    plausible: str | None = option(
        "Raise the alarm only if no chain of this set fits: a file of `learn --plausible`."
    )
    radius: float | None = option(
        "The same for all chains whose probabilities are each off by at most so much, as those of "
        "`release --robust`, and may change from step to step: only large changes are found."
    )
    alpha: float = option(
        "Probability that a right model is ever accused, however often you look.", default=0.01
    )
    block: int = option(
        "Values of all streams after which it is counted again. Leave it as it is from look to "
        "look.",
        default=100,
    )
    along: str = option(
        "The order in which a change would be seen: rows (as written), or moments (all streams "
        "side by side: for a table that is sorted by stream).",
        default="rows",
    )
    plot: str | None = option("Picture of the evidence over time (PNG, SVG, PDF).")
    separator: str | None = options.SEPARATOR
    shown: options.Shown


def drift(given: DriftOptions) -> None:
    """Test whether what left lately still fits the model, as often as you like.

    A release is certified under its model; the world changes. Only what left is read, so looking
    costs no privacy. Others bet against the model on each block of outputs; a right model lets them
    win 100 times what they began with (for --alpha 0.01) with probability at most 0.01, over the
    whole life of the release, at any number of looks. Exit code 1 if the alarm was raised.

    Of a release with --learn the set of its last version is tested, on what left since it noticed a
    change itself: with the channels of all versions, not with context-free values alone.

    After an alarm the report says since when, in which way streams move differently, how far the
    probabilities are off that were learnt since then, and what to do next.

    \b
    Examples:
      sfumato drift private.csv -m city.model
      sfumato drift monday.csv tuesday.csv -m city.model --alpha 0.001 --plot drift.png
      sfumato drift private.csv -m city.model --radius 0.05 --json
    """
    from sfumato.cli.released_input import read_release
    from sfumato.cli.table_output import check_picture
    from sfumato.stream.drift import drift_test

    along = _along(given.along)
    check_picture(given.plot)
    read = options.load_model(given.model)
    read = replace(read, stream=given.stream or read.stream)
    spec, plan, tracks = read_release(given, read, given.model)
    chains = _chains(given, plan)
    with progress("betting", len(tracks.places), given.shown.no_progress) as show:
        found = drift_test(
            tracks,
            plan,
            plausible=chains,
            alpha=given.alpha,
            block=given.block,
            along=along,
            progress=show,
        )
    if given.plot is not None:
        from sfumato.plots.drift_figures import capital_over_time

        capital_over_time(found, given.plot)
    _show(found, given, spec)
    if found.alarm is not None:
        raise typer.Exit(FAILED_AUDIT)


def _along(word: str) -> OutputOrder:
    from sfumato.core.errors import InvalidParameter
    from sfumato.stream.drift import OutputOrder

    if word not in [each.value for each in OutputOrder]:
        raise InvalidParameter("--along", word, "be rows or moments")
    return OutputOrder(word)


def _chains(given: DriftOptions, plan: Plan) -> PlausibleChains | None:
    """The set that is tested, if one was given; that of the plan else."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.models.markov import MarkovChain
    from sfumato.models.plausible import PlausibleChains
    from sfumato.store.files import load_plausible
    from sfumato.stream.learning_plan import LearningPlan

    if given.plausible is not None:
        if given.radius is not None:
            raise InvalidParameter("--plausible", given.plausible, "not come with --radius")
        return load_plausible(given.plausible)
    if given.radius is None:
        return None
    if not isinstance(plan.model, MarkovChain):
        raise InvalidParameter("--radius", given.radius, "come with a plain chain")
    if isinstance(plan, LearningPlan):
        rule = "not come with a release that learns, whose model knows nothing: its set is tested"
        raise InvalidParameter("--radius", given.radius, rule)
    return PlausibleChains.from_radius(plan.model, given.radius)


def _show(found: DriftReport, given: DriftOptions, spec: ReleaseSpec) -> None:
    from sfumato.cli.drift_text import document, lines, rule_options

    if given.shown.as_json:
        print_json(document(found))
        return
    files = " ".join(given.released or [f"--ledger {given.ledger}"])
    for line in lines(found, files, given.model, rule_options(spec)):
        print_line(line)
    if given.plot is not None and not given.shown.quiet:
        say(f"{given.plot}: written")
