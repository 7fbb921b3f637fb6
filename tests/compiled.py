"""Small chains, policies for them and the exact law that every prepared channel must keep."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sfumato import SIP, Alphabet, Channel, MarkovChain, PerStep, Plan, Policy, compile_policy, loss
from sfumato.core.budgets import Budget
from sfumato.core.state import StreamState
from sfumato.solver.policy import PolicyChannel, PolicyReport, Tables, Tree, tabulated
from sfumato.store import to_bytes
from tests.oracles.joint import exact_leakage, exact_local_leakage

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WHOLE = 2**22
PART = 2**40
LANES = 4
MATRIX = [[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]]
REPORT = PolicyReport(1, 0.0, 0.0, 0.0)
NO_LIMIT = 1e300


def _sparse(contexts: int, size: int) -> sparse.csr_array:
    """Rows with one or two entries each."""
    rows = np.zeros((contexts, size))
    for context in range(contexts):
        rows[context, context % size] += 0.7
        rows[context, (context + 1 + context // size) % size] += 0.3
    return sparse.csr_array(rows)


def _dense(contexts: int, size: int) -> Floats:
    return np.random.default_rng(contexts).dirichlet(np.ones(size), contexts)


CHAINS = {
    "dense, order 1": MarkovChain.from_matrix(MATRIX),
    "sparse, order 1": MarkovChain.from_matrix(_sparse(4, 4), floor=0.01),
    "dense, order 2": MarkovChain.from_matrix(_dense(9, 3), floor=0.02),
    "sparse, order 2": MarkovChain.from_matrix(_sparse(9, 3), floor=0.02),
    "dense, order 3": MarkovChain.from_matrix(_dense(8, 2), floor=0.02),
    "sparse, order 3": MarkovChain.from_matrix(_sparse(8, 2), floor=0.02),
    "letters": MarkovChain.from_matrix(MATRIX, alphabet=Alphabet("abc")),
}


@cache
def policy_of(
    name: str,
    epsilon: float = 1.0,
    ldp: float | None = None,
    method: str = "optimal",
    repair_limit: float = 0.2,
) -> Policy:
    """A policy; a cap is put on one compiled without: quicker, and it leaves more to repair."""
    if ldp is not None:
        return replace(policy_of(name, epsilon, None, method, repair_limit), ldp=ldp)
    chain = CHAINS[name]
    return compile_policy(
        chain,
        loss.hamming(chain.alphabet),
        epsilon,
        method=method,
        repair_limit=repair_limit,
        steps=200,
        max_channels=24,
    )


@cache
def capped_policy(epsilon: float, ldp: float) -> Policy:
    """One that was compiled with its cap."""
    chain = CHAINS["dense, order 1"]
    return compile_policy(chain, loss.hamming(chain.alphabet), epsilon, ldp=ldp, steps=32)


def plan_of(name: str, budget: Budget | None = None, **options: Any) -> Plan:
    """A plan with a policy for a step of 1, capped at 1.5 if the budget is capped."""
    chosen = PerStep(SIP(1.0)) if budget is None else budget
    cap = None if chosen.ldp is None else 1.5
    options.setdefault("policy", policy_of(name, 1.0, cap))
    return Plan(CHAINS[name], chosen, loss.hamming(CHAINS[name].alphabet), **options)


def handmade(
    rows: Sequence[Floats], belief: Floats, outputs: Sequence[int] | None = None
) -> Tables:
    """Tables of given channels, all of them tried at every belief."""
    kept = []
    for table in rows:
        channel = Channel.from_probabilities(table, outputs)
        apart = (np.arange(len(table))[:, None] != channel.outputs[None, :]).astype(np.float64)
        kept.append(PolicyChannel.of(channel, belief, apart))
    tree = Tree(np.array([[-1, 0, len(kept)]]), np.zeros(1), np.arange(len(kept)))
    return tabulated(kept, tree)


def policy_with(tables: Tables, epsilon: float = 1.0, ldp: float | None = None) -> Policy:
    return Policy("chain", "loss", "optimal", epsilon, ldp, NO_LIMIT, tables, REPORT)


def kept_rows(tables: Tables, node: int) -> list[list[int]]:
    """Weights of a kept channel, one row per symbol, as the module describes their places."""
    first, rows, _, _, width = tables[0][node].tolist()
    kept = [
        [int(tables[4][first + y // LANES * rows + row, y % LANES]) for y in range(width)]
        for row in range(rows)
    ]
    return [kept[row] for row in tables[2][node].tolist()]


def mixed_weights(tables: Tables, node: int, parts: int, blend: Sequence[int]) -> list[list[int]]:
    """What the tables say the channel is: whole numbers, by the formula of the module."""
    kept = kept_rows(tables, node)
    width = len(kept[0])
    base = [parts * int(blend[y]) if parts else 0 for y in range(width)]
    mixed = [
        [(WHOLE - parts) * weight + more for weight, more in zip(row, base, strict=True)]
        for row in kept
    ]
    used = [y for y in range(width) if any(row[y] for row in mixed)]
    return [[row[y] for y in used] for row in mixed]


def exact_shares(joint: Floats, axis: int) -> list[Fraction]:
    """The marginal of a float joint as the rational numbers that it is."""
    shares = [Fraction(0)] * joint.shape[axis]
    for place in np.ndindex(*joint.shape):
        shares[place[axis]] += Fraction(float(joint[place]))
    return shares


def exact_leakages(weights: list[list[int]], shares: Sequence[Any]) -> tuple[Any, Any]:
    """Both leakages: ratios as the rational numbers that they are, their logarithms in 300 digits.

    Shares that are no rationals make ratios of 60 digits.
    """
    if not isinstance(shares[0], Fraction):
        return exact_leakage(weights, shares), exact_local_leakage(weights)
    whole, ratio, spread = sum(shares), Fraction(1), Fraction(1)
    for column in zip(*weights, strict=True):
        mean = sum(share * weight for share, weight in zip(shares, column, strict=True)) / whole
        ratio = max(ratio, max(column) / mean, mean / min(column))
        spread = max(spread, Fraction(max(column), min(column)))
    with mpmath.workdps(300):
        return tuple(mpmath.log(mpmath.mpf(r.numerator) / r.denominator) for r in (ratio, spread))


def broken_law(
    weights: list[list[int]],
    shares: Sequence[Any],
    charge: Sequence[float],
    allowed: Sequence[float],
) -> str | None:
    """Which part of the law a channel and its price break, if any."""
    if any(sum(row) != 2**62 or min(row) < 0 for row in weights):
        return "rows do not sum to 2**62"
    names = "leakage under the model", "leakage whatever the model"
    exact = exact_leakages(weights, shares)
    for name, amount, charged, allowance in zip(names, exact, charge, allowed, strict=True):
        if amount > charged:
            return f"{name} is {mpmath.nstr(amount, 20)}, over its charge {charged!r}"
        if charged > allowance:
            return f"{name} is charged {charged!r}, over its allowance {allowance!r}"
    return None


def overcharged(weights: list[list[int]], shares: Sequence[Any], charge: Sequence[float]) -> Any:
    """By how much the dearer price is above the exact leakage."""
    exact = exact_leakages(weights, shares)
    return max(mpmath.mpf(paid) - amount for paid, amount in zip(charge, exact, strict=True))


def stored(state: StreamState) -> bytes:
    return to_bytes(state)


def value_loss(plan: Plan) -> loss.Loss:
    """The loss of a plan that releases value by value."""
    assert isinstance(plan.loss, loss.Loss)
    return plan.loss
