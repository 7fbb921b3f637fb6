"""Whether this machine computes as the machines do on which the program was tested.

An audit computes again what a release must have done. If it finds problems on a machine that rounds
otherwise, or with libraries that sum in another order, they may come from that: what was solved
differently is told apart from what was tampered with.
"""

from __future__ import annotations

import numpy as np

from sfumato.core import portable
from sfumato.core.digest import digest

EXPECTED = "c57563d3fde7ec4571c193507d50ed64f994f76de6d118ad51c97f2bd03b4bf5"
"""What `probe` gives where the program was tested."""


def probe() -> str:
    """A digest of functions, sums, products and a small system at numbers without a pattern.

    Examples:
        >>> probe() == EXPECTED
        True
    """
    # Golden steps around the unit interval: numbers that need no generator.
    shares = np.remainder(np.arange(1.0, 501.0) * 0.6180339887498949, 1.0)
    places = 8 * shares - 4
    table = shares[:144].reshape(12, 12)
    return digest(
        "arithmetic",
        portable.exp(places),
        portable.expm1(places),
        portable.log(shares),
        portable.log1p(shares),
        portable.normal_share(places),
        np.cumsum(places),
        np.array([places.sum(), shares.mean(), shares.std(), portable.dot(places, shares)]),
        portable.dot(table, table),
        portable.solved(table, shares[:12]),
        np.sqrt(shares),
        places**2,
    )


def as_tested() -> bool:
    """Whether this machine gives the bits that it should."""
    return probe() == EXPECTED
