"""`sfumato recover`: what a receiver can make of a release, free of privacy cost."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.cli import options
from sfumato.cli.console import print_json, print_line, progress, say, table
from sfumato.cli.loss_words import amount
from sfumato.cli.options import flag, option

if TYPE_CHECKING:
    from sfumato.stream.recovered_counts import Population
    from sfumato.stream.recovered_rows import RecoverySummary
    from sfumato.stream.recovery import RecoveredValues

_SHOWN = 12
_COVER = 0.9


class RecoverOptions(options.Options):
    """What `recover` is asked for."""

    model: str | None = option(
        "The model that `sfumato fit` wrote; none for `realtime` and `privatize`.",
        "--model",
        "-m",
    )
    released: list[str] | None = options.RELEASED_OR_LEDGER
    rules: str | None = options.RULES
    ledger: str | None = options.RELEASE_LEDGER
    policy: str | None = options.RELEASE_POLICY
    stream: str | None = options.STREAM_AS_FITTED
    lag: int | None = option(
        "Infer each value from what left until this many values later: 0 is at once; all that left "
        "if not given."
    )
    loss: str | None = options.LOSS
    cover: float | None = option("Probability that the credible set of a value has at least [0.9].")
    output: str | None = option(
        "Table of all values: best guess, likeliest track (of a chain over pairs, the likeliest "
        "path of its states), credible set; of shares for a column.",
        "--output",
        "-o",
    )
    counts: str | None = option(
        "Table of how many were where at each moment, with standard errors."
    )
    every: int | None = option("For --counts: so many successive moments are one [1].")
    model_free: bool = flag(
        "--model-free",
        "For --counts: also the estimates that need no model, where channels have an inverse; of "
        "single moments, unless every step has the same channel.",
    )
    flows: str | None = option("Table of how many moved from where to where, with errors.")
    separator: str | None = options.SEPARATOR
    shown: options.Shown


def recover(given: RecoverOptions) -> None:
    """Infer what is behind released values, from them, the public model and the rules alone.

    An output also tells about values before and after its own. `recover` computes the distribution
    of every value given all that left, and from it the best guess for a loss, the likeliest track
    and the symbols that hold the truth with probability --cover. It costs no privacy: everybody
    can do it.

    Counts add up probabilities, not guesses, so they have no bias of guesses, and say how far off
    they may be. They are right on average if values move as the model says. With --model-free
    there are estimates beside them that are so whatever the model, where the channels allow any;
    not over several moments (--every), where a selection would bias them, unless all steps have
    the same channel: randomized-response with --epsilon.

    Of a release with --learn the channels are those of the version of each value, and values are
    taken to move as what was learnt last says, before and after each change that it noticed.

    Without a model: of an output of `realtime` that are measurements, every value from all of them
    (a smoother), beside the columns that were kept; of one of `privatize` that is made for
    counting, shares, mean and variance.

    \b
    Examples:
      sfumato recover private.csv --model city.model -o guesses.csv
      sfumato recover private.csv -m city.model --lag 2 --loss euclidean -o soon.csv
      sfumato recover private.csv -m city.model --counts hours.csv --every 2 --flows moves.csv
      sfumato recover counts-private.csv -o smooth.csv    # what `realtime --method gaussian` wrote
    """
    from sfumato.cli.recover_certified import recover_certified
    from sfumato.cli.released_input import read_release
    from sfumato.stream.model_loss import unit_of
    from sfumato.stream.recovered_counts import Population, check_unselected
    from sfumato.stream.recovered_rows import summary
    from sfumato.stream.recovery import recover as recovered
    from sfumato.tables.named_loss import named_loss

    _check_options(given)
    files = _Files(given.output, given.counts, given.flows)
    files.check(_inputs(given), given.shown)
    if given.model is None:
        recover_certified(given)
        return
    every, cover = given.every or 1, _COVER if given.cover is None else given.cover
    read = options.load_model(given.model)
    read = replace(read, stream=given.stream or read.stream)
    spec, plan, tracks = read_release(given, read, given.model)
    if given.model_free and every > 1:
        check_unselected("--every", every, plan)
    priced = None if given.loss is None else named_loss(given.loss, read.alphabet)
    with progress("recovering", len(tracks.places), given.shown.no_progress) as show:
        found = recovered(tracks, plan, unbiased=given.model_free, progress=show)
    values = found.values(lag=given.lag, loss=priced, cover=cover)
    told = summary(found, values, priced)
    crowd = Population(found, tracks.moments // every, given.lag)
    files.write(crowd, values, read.stream, free=given.model_free)
    name = given.loss or spec.loss_for(read)
    unit = unit_of(name, read)
    if given.shown.as_json:
        print_json({**asdict(told), "lag": given.lag, "loss": name, "unit": unit})
        return
    line = _expected(told, unit, given.lag)
    if not files.standard:
        _show(told)
        print_line(line)
    if given.shown.quiet:
        return
    if files.standard:
        say(line)
    say("+-: twice the standard error of the recovered count")
    say(f"right on average if {told.assumes}")
    for file in (given.output, given.counts, given.flows):
        if file not in (None, "-"):
            say(f"{file}: written")


def _check_options(given: RecoverOptions) -> None:
    """Refuse what is out of range, and what would be ignored."""
    from sfumato.core import checks
    from sfumato.core.errors import InvalidParameter

    if given.model is None:
        names = ("ledger", "policy", "stream", "lag", "loss", "cover", "counts", "every", "flows")
        typed = {f"--{name}": getattr(given, name) for name in names}
        typed |= {"--plan": given.rules, "--model-free": given.model_free or None}
        for name, value in typed.items():
            if value is not None:
                rule = "come with --model: it has no meaning for outputs of `realtime`, `privatize`"
                raise InvalidParameter(name, value, rule)
    if given.cover is not None:
        checks.proper_fraction("--cover", given.cover)
    if given.every is not None:
        checks.count("--every", given.every)
    if given.counts is None and given.every is not None:
        raise InvalidParameter("--every", given.every, "come with --counts")
    if given.counts is None and given.model_free:
        raise InvalidParameter("--model-free", True, "come with --counts")
    if given.lag is None:
        return
    checks.count("--lag", given.lag, at_least=0)
    # Both hold a stream several times, and what its values do together is told by all outputs.
    for name, joined in (("--every", (given.every or 1) > 1), ("--flows", given.flows is not None)):
        if joined:
            rule = f"not come with {name}, which needs all that left"
            raise InvalidParameter("--lag", given.lag, rule)


def _inputs(given: RecoverOptions) -> list[str]:
    """All files that may be read, and what `release` and others wrote beside them."""
    from sfumato.stream.policy_files import beside_model
    from sfumato.tables.named_loss import NAMED_LOSSES

    files = given.released or []
    beside = [f"{file}.{kind}.json" for file in files for kind in ("plan", "certificate")]
    loss = None if given.loss in NAMED_LOSSES else given.loss
    named = given.model is not None and Path(given.model).name != ""
    policy = str(beside_model(str(given.model))) if named else None
    others = (given.model, given.rules, given.ledger, given.policy, policy, loss)
    return [*files, *beside, *(file for file in others if file is not None)]


def _show(told: RecoverySummary) -> None:
    """How many had each symbol, for a person."""
    largest = sorted(told.counts.items(), key=lambda item: -item[1][1])
    table(
        f"{told.rows:,} values of {told.streams:,} streams; how many had each symbol",
        ["symbol", "released", "recovered", "+-"],
        [
            [name, f"{left:,}", f"{count:,.1f}", f"{2 * error:,.1f}"]
            for name, (left, count, error) in largest[:_SHOWN]
        ],
    )
    if len(largest) > _SHOWN:
        print_line(f"and {len(largest) - _SHOWN:,} symbols more")


def _expected(told: RecoverySummary, unit: str, lag: int | None) -> str:
    """What the values lose, before and after."""
    until = "" if lag is None else f" at a lag of {lag}"
    saved = 1 - told.expected_recovered / told.expected_released if told.expected_released else 0.0
    return (
        f"expected loss of a value: {amount(told.expected_released, unit, 6)} as released, "
        f"{amount(told.expected_recovered, unit, 6)} after recovery{until} ({saved:.0%} less)"
    )


@dataclass(frozen=True, slots=True)
class _Files:
    """Where tables go; None for one that was not asked for."""

    output: str | None
    counts: str | None
    flows: str | None

    @property
    def standard(self) -> bool:
        """Whether one of them is standard output."""
        return "-" in (self.output, self.counts, self.flows)

    def check(self, inputs: list[str], shown: options.Shown) -> None:
        """Refuse an output that is an input, another output, or where the summary goes."""
        from sfumato.core.errors import InvalidParameter
        from sfumato.tables.readers import same_file

        given = [(f"--{name}", file) for name, file in asdict(self).items() if file is not None]
        for place, (name, file) in enumerate(given):
            rule = "be a file of its own, not an input nor what lies beside one"
            if any(other == file or same_file(file, other) for other in inputs):
                raise InvalidParameter(name, file, rule)
            for before, other in given[:place]:
                if other == file or same_file(file, other):
                    raise InvalidParameter(
                        name, file, f"be a file of its own, not that of {before}"
                    )
        if shown.as_json and self.standard:
            raise InvalidParameter("--json", True, "not come with a table on standard output")

    def write(self, crowd: Population, values: RecoveredValues, column: str, *, free: bool) -> None:
        """All tables that were asked for: all of them, or none."""
        from sfumato.stream import recovered_rows as rows
        from sfumato.tables.readers import Table
        from sfumato.tables.writers import Output

        with ExitStack() as files:
            if self.output is not None:
                columns = {column: str, **rows.value_columns(crowd.recovery)}
                sink = files.enter_context(Output(Table.at(self.output), columns))
                for block in rows.value_rows(crowd.recovery, values):
                    sink.write(block)
            if self.counts is not None:
                extra = crowd.unbiased_counts() if free else None
                columns = {**rows.COUNT_COLUMNS, **(rows.FREE_COLUMNS if free else {})}
                sink = files.enter_context(Output(Table.at(self.counts), columns))
                sink.write(rows.count_rows(crowd, extra))
            if self.flows is not None:
                sink = files.enter_context(Output(Table.at(self.flows), rows.FLOW_COLUMNS))
                sink.write(rows.flow_rows(crowd))
