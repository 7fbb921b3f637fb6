"""The designs by name, for configurations and commands."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import assert_never

from numpy.typing import ArrayLike

from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss
from sfumato.solver.closed_form import (
    calibrated_randomized_response,
    paper_response,
    randomized_response,
)
from sfumato.solver.context_free_channel import context_free
from sfumato.solver.design_result import Design
from sfumato.solver.optimal_channel import optimal


class Method(StrEnum):
    """How the channel of a step is found.

    Examples:
        >>> Method("optimal")
        <Method.OPTIMAL: 'optimal'>
    """

    OPTIMAL = "optimal"
    RANDOMIZED_RESPONSE = "randomized-response"
    CALIBRATED = "calibrated"
    CONTEXT_FREE = "context-free"
    PAPER = "published"
    FAR_SIGHTED = "far-sighted"


STEP_WISE = tuple(method for method in Method if method is not Method.FAR_SIGHTED)
"""Methods that look at one step alone: for single values, batches and tables."""


UNCAPPED = (Method.CALIBRATED, Method.PAPER)
"""Methods that know the leakage under the model alone, and cannot keep a cap whatever the model."""


STEP_WISE_OPTIMUM = "step-wise"
"""What users call `Method.OPTIMAL`, which is the best channel of a step and not of a stream."""


def method_named(name: str, value: str, among: Sequence[Method] = tuple(Method)) -> Method:
    """A method by its name, or by the one that is taught.

    Examples:
        >>> method_named("--method", "step-wise")
        <Method.OPTIMAL: 'optimal'>
    """
    stored = Method.OPTIMAL.value if value == STEP_WISE_OPTIMUM else value
    if stored not in among:
        names = (method.value for method in among if method is not Method.OPTIMAL)
        raise InvalidParameter(name, value, f"be one of {', '.join((STEP_WISE_OPTIMUM, *names))}")
    return Method(stored)


def check_cap(method: Method, ldp: float | None) -> None:
    """Refuse a cap whatever the model for a method that cannot keep one.

    Examples:
        >>> check_cap(Method.OPTIMAL, 0.5)
    """
    if ldp is not None and method in UNCAPPED:
        raise InvalidParameter("ldp", ldp, f"not be given with method {method.value!r}")


def step_method(name: str, value: str) -> Method:
    """A method that looks at one step alone, by its name."""
    return method_named(name, value, STEP_WISE)


def design(
    method: Method,
    belief: ArrayLike,
    loss: Loss | ArrayLike,
    epsilon: float,
    *,
    ldp: float | None = None,
) -> Design:
    """Design a channel by the named method.

    A cap on the model-free leakage goes to the method that can honour it; for the rules that are
    themselves model-free it lowers epsilon; the others refuse it.

    Examples:
        >>> design(Method.CALIBRATED, [0.5, 0.5], [[0, 1], [1, 0]], 0.5).sip.epsilon
        0.5000000
    """
    check_cap(method, ldp)
    match method:
        case Method.OPTIMAL:
            return optimal(belief, loss, epsilon, ldp=ldp)
        case Method.RANDOMIZED_RESPONSE:
            return randomized_response(belief, loss, epsilon if ldp is None else min(epsilon, ldp))
        case Method.CONTEXT_FREE:
            return context_free(belief, loss, epsilon if ldp is None else min(epsilon, ldp))
        case Method.CALIBRATED:
            return calibrated_randomized_response(belief, loss, epsilon)
        case Method.PAPER:
            return paper_response(belief, loss, epsilon)
        case Method.FAR_SIGHTED:
            raise InvalidParameter("method", method.value, "be one for a single step, not a stream")
        case _:
            assert_never(method)
