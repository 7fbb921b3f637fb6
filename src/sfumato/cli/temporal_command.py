"""`sfumato temporal`: what a DP mechanism really leaks over time, and budgets that hold."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sfumato.cli import options
from sfumato.cli.console import print_json, print_legend, print_line, progress, say, table
from sfumato.cli.options import argument, flag, option, required
from sfumato.core.printed import shown_down, shown_up

if TYPE_CHECKING:
    from sfumato.temporal.loss_function import LossFunction


class Matrices(options.Options):
    """What is known of how values follow each other."""

    backward: str | None = option(
        "Matrix from a value to the one before it: a CSV file, or a fitted model."
    )
    forward: str | None = option("Matrix from a value to the next one: a CSV file, or a model.")

    def losses(self) -> tuple[LossFunction, LossFunction]:
        """What releases tell of the past, and of the future."""
        from sfumato.core.errors import InvalidParameter
        from sfumato.temporal.temporal_tables import read_loss

        if self.backward is None and self.forward is None:
            raise InvalidParameter("--backward", None, "be given, or --forward, or both")
        return (
            read_loss("--backward", self.backward, backward=True),
            read_loss("--forward", self.forward, backward=False),
        )


_EPSILON = required("Budget of every release by itself, or a file with one for each.")
_STEPS = option("Number of releases.")

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


class _LeakageOptions(options.Options):
    epsilon: str = _EPSILON
    matrices: Matrices
    model: str | None = option(
        "A fitted model of any order, for both directions, instead of matrices."
    )
    steps: int | None = _STEPS
    window: int | None = option("Also the leakage of any so many moments together.")
    shown: options.Shown


def leakage(given: _LeakageOptions) -> None:
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

    model, window = given.model, given.window
    budgets = read_epsilons(given.epsilon, given.steps)
    most = float(budgets.max())
    suprema: list[float] = []
    if model is None:
        losses = given.matrices.losses()
        told = temporal_leakage(budgets, *losses)
        suprema = [loss.supremum(most) for loss in losses]
    elif given.matrices.backward is not None or given.matrices.forward is not None:
        raise InvalidParameter("--model", model, "not come with --backward or --forward")
    else:
        told = chain_leakage(read_chain("--model", model), budgets)
    together = None if window is None else told.window(window).alpha
    if given.shown.as_json:
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
    if not given.shown.quiet:
        print_legend(_LEGEND)
    print_line(
        f"any single moment: {shown_up(told.event.alpha)} nats; "
        f"a person's whole stream: {shown_up(told.user.alpha)} nats"
    )
    if window is not None:
        print_line(f"any {window} moments together: {shown_up(told.window(window).alpha)} nats")
    if suprema:
        _print_for_ever(most, *suprema)


_LEGEND = {
    "by itself": "the epsilon of a release, as if it stood alone",
    "past (BPL)": "what it and all releases before it tell of its moment",
    "future (FPL)": "what it and all releases after it tell of its moment",
    "both (TPL)": "what all releases tell of its moment: what counts",
}


def _print_for_ever(most: float, past: float, future: float) -> None:
    print_line(
        f"if releases go on for ever at {shown_up(most)}, a moment leaks at most: past "
        f"{_shown(past)}, future {_shown(future)}, both {_shown(past + future - most)}"
    )


class _AllocateOptions(options.Options):
    alpha: float = required("The most that any one moment may leak, in nats.")
    matrices: Matrices
    steps: int | None = _STEPS
    least_noise: bool = flag("--least-noise", "Budgets of least total variance; with --steps.")
    paper: bool = typer.Option(
        False, "--paper", "--published", help="Budgets as in the paper; with --steps."
    )
    shown: options.Shown


def allocate(given: _AllocateOptions) -> None:
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
    from sfumato.temporal.least_noise import Allocation, least_noise_bound, noise_variance
    from sfumato.temporal.temporal_budgets import allocate as constant_budgets
    from sfumato.temporal.temporal_plan import TemporalPlan

    losses = given.matrices.losses()
    steps, alpha = given.steps, given.alpha
    for name, asked in (("--least-noise", given.least_noise), ("--paper", given.paper)):
        if asked and steps is None:
            raise InvalidParameter(name, True, "come with --steps")
    if given.least_noise and given.paper:
        raise InvalidParameter("--paper", True, "not come with --least-noise")
    document: dict[str, Any] = dict.fromkeys(("constant", "first", "middle", "last"))
    # Rows that exclude each other leave budgets for a known number only; without one it is said so.
    if steps is None or all(loss.disjoint is None for loss in losses):
        found = constant_budgets(*losses, alpha)
        document |= {"constant": found.constant, "first": found.first}
        document |= {"middle": found.middle, "last": found.last}
    if steps is not None:
        usual = Allocation.PAPER if given.paper else Allocation.PLAIN
        kind = Allocation.LEAST_NOISE if given.least_noise else usual
        each = TemporalPlan(*losses, alpha, steps, kind).budgets
        document |= {"first": each[0], "last": each[-1]}
        document["middle"] = each[steps // 2] if steps > 2 else document["middle"]
        document["budgets"] = each.tolist()
        document["variance"] = noise_variance(each) / steps
        document["variance_bound"] = least_noise_bound(*losses, alpha, steps) / steps
    if given.shown.as_json:
        print_json(document)
        return
    print_line(
        f"budgets (epsilon, nats) of releases, so that no moment leaks more than {shown_up(alpha)} "
        "nats in all:"
    )
    for name, meaning in _BUDGETS.items():
        told = document[name]
        print_line(f"{name} {'none' if told is None else shown_down(told)} ({meaning})")
    if steps is not None:
        print_line(f"mean variance of Laplace noise for a count: {shown_up(document['variance'])}")
        known = shown_down(document["variance_bound"])
        print_line(f"no budgets that keep alpha have less than: {known}")
        rows = [
            [str(place + 1), shown_down(each)] for place, each in enumerate(document["budgets"])
        ]
        table("budget of each release", ["release", "epsilon"], rows)


_BUDGETS = {
    "constant": "the same for every release, for ever",
    "first": "of the first release, where the number of releases is known",
    "middle": "of those in between",
    "last": "of the last one",
}


class _FitMatricesOptions(options.Options):
    history: str = argument("Recorded streams.", "TABLE")
    output: str = required("PREFIX of the two files that are written.", "--output", "-o")
    stream: str = options.STREAM
    value: str = options.VALUE
    smoothing: float = option(
        "Added to every count: the larger, the weaker the correlation.", default=0.5
    )
    separator: str | None = options.SEPARATOR
    shown: options.Shown


def fit(given: _FitMatricesOptions) -> None:
    """Backward and forward matrix from recorded streams, as PREFIX.backward.csv and .forward.csv.

    Without smoothing, values that never followed each other exclude each other, and no constant
    budget lasts.

    \b
    Examples:
      sfumato temporal fit history.csv --stream user --value place -o town
    """
    from sfumato.tables.readers import Table
    from sfumato.temporal.temporal_tables import fit_matrices, write_matrices

    source = Table.at(given.history, separator=given.separator)
    with progress("reading", source.count(), given.shown.no_progress) as show:
        alphabet, backward, forward = fit_matrices(
            source,
            stream=given.stream,
            value=given.value,
            smoothing=given.smoothing,
            progress=show,
        )
    files = [f"{given.output}.{way}.csv" for way in ("backward", "forward")]
    write_matrices({Path(files[0]): backward, Path(files[1]): forward})
    if given.shown.as_json:
        print_json({"files": files, "symbols": list(alphabet.labels)})
    elif not given.shown.quiet:
        say(f"{len(alphabet)} values; written: {', '.join(files)}")
        both = f"--backward {files[0]} --forward {files[1]}"
        say("next:", f"sfumato temporal leakage {both} --epsilon 0.1 --steps 50")


class _PlotOptions(options.Options):
    epsilon: str = _EPSILON
    output: str = required("The picture (PNG or SVG).", "--output", "-o")
    matrices: Matrices
    steps: int | None = _STEPS
    shown: options.Shown


def plot(given: _PlotOptions) -> None:
    """Picture of the leakage of every release, and of the loss functions behind it.

    \b
    Examples:
      sfumato temporal plot --backward back.csv --forward forth.csv --epsilon 0.1 \\
          --steps 50 -o leakage.png
    """
    from sfumato.plots.figures import leakage_of_moments
    from sfumato.temporal.over_time import temporal_leakage
    from sfumato.temporal.temporal_tables import read_epsilons

    losses = given.matrices.losses()
    told = temporal_leakage(read_epsilons(given.epsilon, given.steps), *losses)
    leakage_of_moments(told, losses, given.output)
    if given.shown.as_json:
        print_json({"output": given.output})
    elif not given.shown.quiet:
        say(
            f"{given.output}: leakage of every release, and how much of it each passes on; any "
            f"single moment: {shown_up(told.event.alpha)} nats (`temporal leakage` prints them all)"
        )


def _or_null(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _shown(value: float) -> str:
    return shown_up(value) if math.isfinite(value) else "grows for ever"
