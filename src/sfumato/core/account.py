"""An account: what a stream may still leak, and what is left after a release.

One shape for every notion, with the same words. An account is a frozen value: a release that is
refused leaves it as it was, and what was charged is never given back. The ledger of a stream under
a budget (`BudgetAccount`), a Gaussian budget and the budgets of correlated moments are accounts;
`tests/contracts` holds the laws that each of them keeps.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, TypeVar

from sfumato.core.budgets import Allowance, Budget
from sfumato.core.errors import BudgetExceeded
from sfumato.core.ledger import Charge, Ledger

Cost = TypeVar("Cost", contravariant=True)


class Account(Protocol[Cost]):
    """What a stream may leak from now on; `Cost` is the price of one release."""

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


@dataclass(frozen=True, slots=True)
class BudgetAccount:
    """The ledger of a stream under a budget.

    Attributes:
        budget: The rule.
        ledger: What was charged so far.
        stream: Whose it is, for messages.

    Examples:
        >>> from sfumato.core.budgets import Horizon
        >>> from sfumato.core.guarantees import SIP
        >>> account = BudgetAccount(Horizon(SIP(1.0), steps=4))
        >>> account.allowance.sip, account.covers(Charge(0.3, 0.5))
        (0.25, False)
        >>> account.charged(Charge(0.1, 0.2)).allowance.sip
        0.3
    """

    budget: Budget
    ledger: Ledger = field(default_factory=Ledger)
    stream: str = ""

    @property
    def allowance(self) -> Allowance:
        """What the next step may leak."""
        return self.budget.allowance(self.ledger)

    def covers(self, cost: Charge) -> bool:
        """Whether a step with these leakages is within bounds; a free one always is."""
        return cost.sip == cost.ldp == 0.0 or self.allowance.covers(cost.sip, cost.ldp)

    def charged(self, cost: Charge) -> BudgetAccount:
        """The account after a step.

        Raises:
            BudgetExceeded: If it is not covered.
        """
        if not self.covers(cost):
            raise BudgetExceeded(self.stream, self.ledger.count, cost, self.allowance)
        return replace(self, ledger=self.ledger.charged(cost, self.budget.memory))
