"""The mechanisms for one column, by name: a new one is a file with its rule, and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from sfumato.column import number_mechanisms as numbers
from sfumato.column import scaled_noise
from sfumato.column.number_mechanisms import NumberDesign
from sfumato.column.quantile_response import quantile_response
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LIP
from sfumato.core.loss import Loss
from sfumato.models.prior_sets import PriorSet
from sfumato.noise.frequency import KaryResponse, Reporting, SubsetSelection, UnaryEncoding
from sfumato.noise.lattice import Lattice, Noise
from sfumato.solver.bounded_prior_channel import bounded_prior
from sfumato.solver.closed_form import calibrated_randomized_response, paper_response
from sfumato.solver.context_free_channel import context_free
from sfumato.solver.design_result import Design
from sfumato.solver.optimal_channel import optimal

SymbolRule: TypeAlias = Callable[[Floats | PriorSet, Loss, LIP, float | None], Design]
NumberRule: TypeAlias = Callable[[Lattice, Floats, LIP, float | None], NumberDesign]
ReportRule: TypeAlias = Callable[[int, float], Reporting]

# Points up to which the optimum is found exactly.
_SOLVED = 64


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A way to release a column.

    Attributes:
        name: What users call it.
        symbols: Makes a channel for a prior, a loss, a budget and a cap on the model-free leakage.
        numbers: The same for the points of a lattice and their prior.
        reports: Makes reports of sets of symbols, for a number of symbols and a level.
        robust: Whether it honours a cap on the model-free leakage, and sets of priors.
        prior_free: Whether what is sampled depends on nothing but the possible values, so that it
            may be told however the prior was learnt.
    """

    name: str
    symbols: SymbolRule | None = None
    numbers: NumberRule | None = None
    reports: ReportRule | None = None
    robust: bool = False
    prior_free: bool = False

    @property
    def fingerprint(self) -> str:
        """Stands for the mechanism in the addresses of coins: a name never changes its meaning."""
        return self.name.upper().replace("-", "_")


def mechanism_named(name: str) -> Mechanism:
    """A mechanism by its name.

    Examples:
        >>> mechanism_named("laplace-each").symbols is None
        True
    """
    if name not in MECHANISMS:
        raise InvalidParameter("mechanism", name, f"be one of {', '.join(MECHANISMS)}")
    return MECHANISMS[name]


def _optimal_symbols(
    prior: Floats | PriorSet, loss: Loss, budget: LIP, ldp: float | None
) -> Design:
    if isinstance(prior, PriorSet):
        return bounded_prior(prior, loss, budget.epsilon, ldp=ldp)
    return optimal(prior, loss, budget.epsilon, ldp=ldp)


def _optimal_numbers(
    lattice: Lattice, prior: Floats, budget: LIP, ldp: float | None
) -> NumberDesign:
    best = numbers.optimal_number(lattice, prior, budget.epsilon, ldp=ldp)
    if ldp is not None or lattice.count <= _SOLVED:
        return best
    # On many points the search ends within 2 % of the optimum: a rival may be nearer.
    rival = _quantiles(lattice, prior, budget, ldp)
    return min(best, rival, key=lambda design: design.cost)


def _quantiles(lattice: Lattice, prior: Floats, budget: LIP, ldp: float | None) -> NumberDesign:
    return quantile_response(lattice, prior, budget.epsilon)


def _symbols(rule: Callable[[Floats, Loss, float], Design]) -> SymbolRule:
    def by_prior(prior: Floats | PriorSet, loss: Loss, budget: LIP, ldp: float | None) -> Design:
        if isinstance(prior, PriorSet):
            raise InvalidParameter("prior", "a set", "be one prior for this mechanism")
        return rule(prior, loss, budget.epsilon)

    return by_prior


def _numbers(rule: Callable[..., NumberDesign], *noise: Noise) -> NumberRule:
    return lambda lattice, prior, budget, ldp: rule(
        *noise, lattice, prior, budget.epsilon, budget.delta
    )


_ALL = (
    Mechanism("optimal", _optimal_symbols, _optimal_numbers, robust=True),
    Mechanism("calibrated", _symbols(calibrated_randomized_response)),
    Mechanism("context-free", _symbols(context_free)),
    Mechanism("published", _symbols(paper_response)),
    Mechanism("randomized-response", reports=KaryResponse.at, prior_free=True),
    Mechanism("unary-encoding", reports=UnaryEncoding.at, prior_free=True),
    Mechanism("subset-selection", reports=SubsetSelection.at, prior_free=True),
    Mechanism("gaussian", numbers=_numbers(scaled_noise.least_noise, Noise.GAUSSIAN)),
    Mechanism("gaussian-each", numbers=_numbers(scaled_noise.least_noise_each, Noise.GAUSSIAN)),
    Mechanism(
        "gaussian-local",
        numbers=_numbers(scaled_noise.local_noise, Noise.GAUSSIAN),
        prior_free=True,
    ),
    Mechanism("laplace", numbers=_numbers(scaled_noise.least_noise, Noise.LAPLACE)),
    Mechanism("laplace-each", numbers=_numbers(scaled_noise.least_noise_each, Noise.LAPLACE)),
    Mechanism(
        "laplace-local",
        numbers=_numbers(scaled_noise.local_noise, Noise.LAPLACE),
        prior_free=True,
    ),
    Mechanism("sampling", numbers=_numbers(numbers.sampling)),
    Mechanism("quantile-response", numbers=_quantiles),
)
MECHANISMS = {mechanism.name: mechanism for mechanism in _ALL}
