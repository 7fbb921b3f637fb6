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
from sfumato.solver.design_methods import Method
from sfumato.solver.value_function import ValueFunction

if TYPE_CHECKING:
    from sfumato.solver.value_iteration import Effort


def look_ahead(
    model: Model | PatternLibrary,
    loss: Loss,
    epsilon: float,
    *,
    price: float = 0.0,
    effort: Effort | None = None,
) -> ValueFunction:
    """What beliefs are worth to a stream that is released value by value, for ever.

    Args:
        model: A chain of order 1 and full support, with at most 24 symbols.
        loss: Of single values.
        epsilon: What a step may leak.
        price: What a nat of leakage costs, in units of the loss: with one, a step spends less of
            the cap where the rest would not help enough.
        effort: How much is done for more than two symbols; the default takes seconds.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.95, 0.05], [0.05, 0.95]])
        >>> sight = look_ahead(chain, sf.loss.hamming(chain.alphabet), 0.5)
        >>> round(sight.promised, 3)
        0.223
    """
    from sfumato.solver.value_iteration import Effort, value_function

    if not isinstance(model, MarkovChain) or model.order != 1:
        raise InvalidParameter("model", "another", "be a chain of order 1, to look ahead")
    names = (model.fingerprint, loss.fingerprint)
    cap = checks.epsilon("epsilon", epsilon)
    return value_function(
        model.transition(), loss.matrix, cap, price=price, names=names, effort=effort or Effort()
    )


def own_sight(
    method: Method, sight: ValueFunction | None, make: Callable[[], ValueFunction]
) -> ValueFunction | None:
    """The value function of a plan: given or made for the far-sighted method, none for others."""
    if method is Method.FAR_SIGHTED:
        return make() if sight is None else sight
    if sight is not None:
        raise InvalidParameter("sight", "one", f"not be given with method {method.value!r}")
    return None
