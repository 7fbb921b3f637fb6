r"""The paper's bound for attributes with a joint density: a chain of estimates.

One attribute is estimated from its own noise, and what it tells of another one makes that one's
noise smaller: of the same shape, with its entropy lowered by the mutual information, so its
deviation is $\sigma e^{-I}$. It looks at the correlation alone. An attacker who knows the joint
density knows the marginals as well, so this is no upper bound where they are narrow against the
noise: `bayes_disclosure` is exact, and `ChainBound.holds` says which one it is.

References:
    [MDDP, Thm. 4 and Eq. 33]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.record.attack.bayes_attack import Found
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.vector_noise import VectorNoise, half_widths


@dataclass(frozen=True, slots=True)
class ChainBound:
    """The bound of the chain of estimates.

    Attributes:
        delta: The bound.
        last: The attribute at the end of the chain, whose noise is made smaller.
        information: What the others tell of it, in nats.
    """

    delta: float
    last: int
    information: float

    def holds(self, found: Found) -> bool:
        """Whether it is an upper bound of what the best attacker reaches."""
        return self.delta >= found.low


def chain_bound(prior: JointMixture, noise: VectorNoise, accuracy: ArrayLike) -> ChainBound:
    r"""The paper's upper bound, for the order of estimates that is best for the attacker.

    $$\max_i \; P(|\theta_i| \le \varepsilon_i e^{I(X_i; X_{-i})})
        \prod_{j \ne i} P(|\theta_j| \le \varepsilon_j)$$

    where $I(X_i; X_{-i})$ is what all other attributes tell of attribute $i$.

    Examples:
        >>> from sfumato.record.published_noise import noise_of
        >>> body = JointMixture.normal([170.0, 70.0], [[64.0, 57.6], [57.6, 144.0]])  # rho = .6
        >>> chain_bound(body, noise_of("uniform", 5.0, 2), 1.0).delta  # 1 / (3 * 25 * .8)
        0.0166667
    """
    half = half_widths(noise, accuracy, prior.dimension)
    alone = [float(noise.axis_mass(i, -width, width)) for i, width in enumerate(half)]
    bounds = []
    for last, width in enumerate(half):
        information = prior.mutual_information(last)
        # Noise that is smaller by a factor, in a box: the noise itself, in a box wider by it.
        wide = width * portable.exp(min(information, 700.0))
        others = math.prod(mass for axis, mass in enumerate(alone) if axis != last)
        bounds.append(
            ChainBound(float(noise.axis_mass(last, -wide, wide)) * others, last, information)
        )
    return max(bounds, key=lambda bound: bound.delta)


def sampled_information(records: ArrayLike) -> Floats:
    """What every two attributes tell of each other, in nats, estimated from records.

    By nearest neighbours (scikit-learn's estimator, with its usual three): no shape of the joint
    density is assumed.

    Examples:
        >>> rng = np.random.default_rng(1)
        >>> records = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 4_000)
        >>> float(sampled_information(records)[0, 1].round(1))  # -log(1 - .64) / 2 = .51
        0.5
    """
    from sklearn.feature_selection import mutual_info_regression  # takes a second to load

    table = checks.numbers("records", records)
    if table.ndim != 2 or len(table) < 8:
        raise InvalidParameter("records", table.shape, "be at least eight rows of numbers")
    size = table.shape[1]
    found = np.zeros((size, size))
    for place in range(size):
        told = mutual_info_regression(table, table[:, place], random_state=0)
        found[place] = [portable.settled(each) for each in told]
        found[place, place] = np.inf
    return np.asarray(0.5 * (found + found.T))
