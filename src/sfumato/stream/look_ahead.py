"""The value function of a stream: made once for a chain, a loss and a cap on each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sfumato.core import checks
from sfumato.core.belief import Model
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.models.periodic import PeriodicChain
from sfumato.solver.design_methods import Method
from sfumato.solver.value_function import BATCHES, ValueFunction
from sfumato.stream.partition.batch_loss import BatchLoss, as_batch_loss, listed

if TYPE_CHECKING:
    from sfumato.solver.value_iteration import Effort


def look_ahead(
    model: Model | PatternLibrary | PeriodicChain,
    loss: Loss | BatchLoss,
    epsilon: float,
    *,
    price: float = 0.0,
    width: int = 1,
    effort: Effort | None = None,
) -> ValueFunction:
    """What beliefs are worth to a stream that is released for ever, by value or in batches.

    Args:
        model: A chain of full support: of order 1 with at most 2,048 symbols (4,096 batches), or of
            a higher order with at most 64 contexts, value by value.
        loss: Of single values, which adds up in batches, or of batches.
        epsilon: What a step may leak: a value, or a whole batch.
        price: What a nat of leakage costs, in units of the loss: with one, a step spends less of
            the cap where the rest would not help enough.
        width: Values of a batch.
        effort: How much is done for more than two symbols; the default takes a second or two for
            ten symbols, ten for a hundred.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.95, 0.05], [0.05, 0.95]])
        >>> sight = look_ahead(chain, sf.loss.hamming(chain.alphabet), 0.5)
        >>> round(sight.promised, 3)
        0.223
    """
    from sfumato.solver.value_iteration import value_function

    if not isinstance(model, MarkovChain):
        rule = "be one chain of all its contexts, the same for all streams and times, to look ahead"
        raise InvalidParameter("model", type(model).__name__, rule)
    cap = checks.epsilon("epsilon", epsilon)
    seen = step_loss(loss, model.size, width)
    return value_function(
        model.transition(),
        seen.matrix,
        cap,
        price=price,
        width=width,
        names=(model.fingerprint, seen.fingerprint),
        effort=effort,
    )


def step_loss(loss: Loss | BatchLoss, size: int, width: int) -> Loss:
    """The loss of what leaves in a step, a value or one of all batches."""
    if width == 1 and isinstance(loss, Loss):
        return loss
    if size**width > BATCHES:
        raise InvalidParameter("width", width, f"leave at most {BATCHES} batches, to look ahead")
    return as_batch_loss(loss, size).between(listed(size, width))


def own_sight(
    method: Method, sight: ValueFunction | None, make: Callable[[], ValueFunction]
) -> ValueFunction | None:
    """The value function of a plan: given or made for the far-sighted method, none for others."""
    if method is Method.FAR_SIGHTED:
        return make() if sight is None else sight
    if sight is not None:
        raise InvalidParameter("sight", "one", f"not be given with method {method.value!r}")
    return None
