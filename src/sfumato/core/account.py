"""An account: what a stream may still leak, and what is left after a release.

One shape for every notion, with the same words. An account is a frozen value: a release that is
refused leaves it as it was, and what was charged is never given back. A Gaussian budget and the
budgets of correlated moments are accounts; `tests/contracts` holds the laws that each keeps.
"""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeVar

Cost = TypeVar("Cost", contravariant=True)


class Account(Protocol[Cost]):
    """What a stream may leak from now on; `Cost` is the price of one release.

    Examples:
        >>> from sfumato.temporal.temporal_account import PlannedAccount
        >>> import numpy as np
        >>> account = PlannedAccount(np.array([0.6, 0.3]))
        >>> account.allowance, account.covers(0.7), account.charged(0.5).allowance
        (0.6, False, 0.3)
    """

    @property
    def allowance(self) -> Any:
        """What the next release may cost, in the terms of the notion."""

    def covers(self, cost: Cost) -> bool:
        """Whether one more release of this cost is within the budget."""

    def charged(self, cost: Cost) -> Self:
        """The account after a release.

        Raises:
            BudgetExceeded: If it is not covered; this account is as it was.
        """
