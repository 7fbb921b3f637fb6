r"""A mechanism made for one prior, used under another: how far its leakage can move.

The output marginals under two priors differ by at most the largest ratio of the priors, so
leakages do too: $|L(P_1) - L(P_2)| \le \max_x |\ln P_1(x)/P_2(x)| \le \ln(1 + \Delta/c)$ with
$\Delta$ the total variation and $c$ the least probability in either.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, portable
from sfumato.core.numerics import UNIT, up

# Beyond this e**epsilon leaves the floats; twice epsilon is good enough there.
_LARGEST = 700.0


def total_variation(prior: ArrayLike, other: ArrayLike) -> float:
    """The most that the probability of any event differs.

    Examples:
        >>> total_variation([0.5, 0.5], [0.7, 0.3])
        0.2

    References:
        [LIP, Def. 7]
    """
    first = checks.probabilities("prior", prior)
    return 0.5 * float(np.abs(first - checks.probabilities("other", other, first.size)).sum())


def transfer_gap(prior: ArrayLike, *others: ArrayLike) -> float:
    r"""The most by which the leakage of any mechanism differs under other priors.

    $$\eta = \ln\left(1 + \frac{\max_i D_{TV}(P, P_i)}{\min\{P_{\min}, \min_i P_{i,\min}\}}\right)$$

    Examples:
        >>> transfer_gap([0.5, 0.5], [0.6, 0.4])
        0.2231436

    References:
        [LIP, Lem. 3 and Cor. 8]
    """
    first = checks.belief("prior", prior)
    rest = [checks.belief("others", other, first.size) for other in others]
    apart = max((total_variation(first, other) for other in rest), default=0.0)
    least = min(float(one.min()) for one in (first, *rest))
    return up(portable.log1p(apart / least) + 8 * UNIT) if apart else 0.0


def transfer_bound(epsilon: float, prior: ArrayLike, other: ArrayLike) -> float:
    r"""What a leakage of `epsilon` under one prior can be under another, whatever the channel.

    $$\min\left\{\epsilon + \eta, 2\epsilon, \ln\frac{e^\epsilon - 1 + P_{\min}}{P_{\min}}\right\}$$

    where $\eta$ is `transfer_gap`. The other two bound the model-free leakage of any channel that
    leaks `epsilon` under the prior, and so its leakage under every other one.

    Examples:
        >>> transfer_bound(1.0, [0.5, 0.5], [0.52, 0.48])
        1.0408220
        >>> transfer_bound(1.0, [0.5, 0.5], [0.99, 0.01])
        1.4898801

    References:
        [LIP, Eq. 12]
    """
    if epsilon == 0.0:
        return 0.0
    bounds = [epsilon + transfer_gap(prior, other), 2 * epsilon]
    if epsilon <= _LARGEST:
        least = float(checks.belief("prior", prior).min())
        bounds.append(portable.log1p(portable.expm1(epsilon) / least) * (1 + 16 * UNIT))
    return up(min(bounds))
