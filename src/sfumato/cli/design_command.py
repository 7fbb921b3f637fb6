"""`sfumato design`: one channel for one belief."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from sfumato.cli import options
from sfumato.cli.console import print_json, print_line, table
from sfumato.cli.options import option, required
from sfumato.core.printed import shown_down, shown_up

if TYPE_CHECKING:
    from sfumato.core.arrays import Floats
    from sfumato.core.channel import Channel

_PRINTED = 2_500
"""Probabilities that a person would look at; more are for machines."""
_TABULATED = 600
"""Symbols up to which a response is told as a matrix."""


class _DesignOptions(options.Options):
    belief: str = required("Probabilities of the symbols: 0.5,0.3,0.2 or a file of them.")
    epsilon: float = required("Leakage allowed under the belief.")
    loss: str | None = options.LOSS
    method: str = options.STEP_METHOD
    ldp: float | None = option("Cap on the model-free leakage.")
    shown: options.Shown


def design(given: _DesignOptions) -> None:
    """Design the channel for one belief, with its cost, a proven floor and both certificates.

    Symbols are numbered from 0, one apart, for losses that measure distance.

    \b
    Examples:
      sfumato design --belief 0.5,0.3,0.2 --epsilon 1
      sfumato design --belief 0.25,0.25,0.25,0.25 --epsilon 1 --loss absolute --method published
    """
    from sfumato.core.alphabet import Alphabet
    from sfumato.solver.design_methods import design as design_by
    from sfumato.solver.design_methods import step_method
    from sfumato.tables.named_loss import named_loss

    prior = read_belief("--belief", given.belief)
    method = step_method("--method", given.method)
    loss = named_loss(given.loss or "hamming", Alphabet.of_size(prior.size))
    found = design_by(method, prior, loss, given.epsilon, ldp=given.ldp)
    outputs = found.channel.outputs.tolist()
    if given.shown.as_json:
        print_json(
            {
                "method": method,
                "cost": found.cost,
                "lower_bound": found.lower_bound,
                "sip": found.sip.epsilon,
                "ldp": found.ldp.epsilon,
                "outputs": outputs,
                **_channel(found.channel),
            }
        )
        return
    name = given.loss or "hamming"
    what = "hamming: the share of wrong values" if name == "hamming" else name
    print_line(f"expected loss {shown_up(found.cost)} ({what})")
    if found.lower_bound is not None:
        print_line(f"no channel within the budget has less than {shown_down(found.lower_bound)}")
    print_line(f"leakage: {found.sip} under the belief, {found.ldp} whatever the belief")
    if found.sip.epsilon > given.epsilon:
        print_line(f"this rule does NOT keep the budget of {shown_up(given.epsilon)}")
    rows, columns = found.channel.size, len(outputs)
    if rows * columns > _PRINTED:
        print_line(f"a channel of {rows:,} symbols and {columns:,} outputs: --json tells all of it")
        return
    table(
        "probability of each output (column) for each true symbol (row)",
        ["true", *(str(output) for output in outputs)],
        [
            [str(symbol), *(f"{p:.4f}" for p in row)]
            for symbol, row in enumerate(found.channel.probabilities)
        ],
    )


def _channel(channel: Channel) -> dict[str, Any]:
    """All probabilities: a matrix, or what makes it up where it would be too large."""
    from sfumato.core.response_channel import ResponseChannel

    if not isinstance(channel, ResponseChannel) or channel.size <= _TABULATED:
        return {"channel": channel.probabilities.tolist()}
    shared, kept, target = channel.parts()
    return {"shared": shared.tolist(), "kept": kept, "target": target.tolist()}


def read_belief(option: str, text: str) -> Floats:
    """Numbers from an option, or from the file it names."""
    import numpy as np

    from sfumato.core.errors import InvalidParameter
    from sfumato.tables.documents import read_text

    source = read_text(option, text) if os.path.isfile(text) else text
    try:
        found = np.array([float(part) for part in source.replace(",", " ").split()])
    except ValueError:
        raise InvalidParameter(option, "other text", "be numbers or a file of them") from None
    if found.size == 0:
        raise InvalidParameter(option, "nothing", "hold at least one number")
    return found
