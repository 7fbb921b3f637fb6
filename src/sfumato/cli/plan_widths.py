"""`sfumato plan --batch`: values that leave together, compared with values that leave at once."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.cli.console import print_json, print_legend, print_line, progress, say, table
from sfumato.cli.loss_words import cost, error
from sfumato.cli.plan_text import columns_in_words, loss_and_leakage
from sfumato.core.printed import shown_up

if TYPE_CHECKING:
    from sfumato.cli.plan_command import PlanOptions
    from sfumato.models.stream_model import StreamModel
    from sfumato.stream.release_spec import ReleaseSpec

_FEW = 4
_COLUMNS = {
    "gap": "how much less a better channel for the same batches could lose at most; 0 is below a "
    "billionth, empty if nothing is known",
    "waits for, at most": "how many later values a value waits for, on average and at most",
    "ms a batch": "thousandths of a second to find and draw a batch, here and now",
    "parts": "how many kinds of batches the channel tells apart; boxes hold several batches each",
}


def loss_name(spec: ReleaseSpec, model: StreamModel) -> str:
    """What a table calls the loss."""
    asked = spec.loss_for(model)
    return Path(asked).name if isinstance(asked, str) else "matrix"


def compare_widths(spec: ReleaseSpec, model: StreamModel, given: PlanOptions, length: int) -> None:
    """Compare batches of several lengths.

    Args:
        spec: The rules but for the length of batches.
        model: The model.
        given: What else was typed.
        length: Values of a stream.
    """
    import msgspec

    from sfumato.core.errors import InvalidParameter
    from sfumato.plots.figures import loss_of_widths
    from sfumato.stream.batch_widths import forecast_widths, silent_loss
    from sfumato.stream.lifetime import one_value_bound
    from sfumato.stream.model_loss import unit_of
    from sfumato.stream.remarks import factor_text

    if given.history is not None:
        raise InvalidParameter("--history", given.history, "not come with --batch")
    words = str(given.batch).split(",")
    if not all(word.strip().isdecimal() and word.isascii() for word in words):
        raise InvalidParameter("--batch", given.batch, "be whole numbers, as 1,2,3,5,10")
    widths = [int(word) for word in words]
    rule = msgspec.structs.replace(spec, batch=max(widths)).batched(model)
    streams = given.streams or _FEW
    values = length * streams
    with progress("simulating", values * len(widths), given.shown.no_progress) as show:
        rows = forecast_widths(
            rule, widths, steps=length, streams=streams, seed=given.seed, progress=show
        )
    name = loss_name(spec, model)
    if given.plot:
        loss_of_widths(rows, name, given.plot)
    single, budget = model.single_values, rule.budget
    bounds = [one_value_bound(single, budget, length, width) for width in widths]
    bound = max(bounds, key=lambda one: one.sip.epsilon)
    total = one_value_bound(None, budget, length).sip.epsilon
    silent = silent_loss(rule, length)
    if given.shown.as_json:
        document = {"total": total, "one_value": bound.sip.epsilon, "silent_loss": silent}
        print_json({"batches": [asdict(row) for row in rows], **document})
        return
    unit = unit_of(spec.loss_for(model), model)
    table(
        "values that leave together, so many at a time: what a value loses and tells, on average "
        f"over {values:,} values drawn from the model",
        ["batch", "loss", "+-", "gap", "SIP", "LDP", "waits for", "at most", "ms a batch", "parts"],
        [
            [
                str(row.width),
                *loss_and_leakage(row, ["" if row.gap is None else error(row.gap, row.loss)]),
                f"{row.mean_delay:g}",
                f"{row.longest_delay:g}",
                f"{1e3 * row.seconds:.3g}",
                f"{row.parts:,}" + ("" if row.exact else " boxes"),
            ]
            for row in rows
        ],
    )
    if not given.shown.quiet:
        told = columns_in_words(name, unit)
        print_legend({column: told[column] for column in ("loss", "+-")})
        print_legend(_COLUMNS | {column: told[column] for column in ("SIP", "LDP")})
    if silent is not None:
        print_line(f"a constant would {cost(silent, unit)}")
    print_line(
        f"a whole stream of {length} values may leak SIP({shown_up(total)}): the probability of "
        f"what is true may change by {factor_text(total)}"
    )
    print_line(
        f"about any one value all outputs together may tell SIP({shown_up(bound.sip.epsilon)}) "
        f"({bound.rule})"
    )
    best = min(rows, key=lambda row: row.loss)
    if not given.shown.quiet and silent is not None and best.loss >= silent:
        say("warning: NO BETTER THAN SILENCE: no length of batch loses less than a constant")
    if given.plot:
        say(f"{given.plot}: loss against the length of batches")
