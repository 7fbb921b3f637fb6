"""What every account keeps, whatever it counts; a test of one inherits these laws."""

from abc import ABC, abstractmethod
from typing import Any

import pytest

from sfumato.core.account import Account
from sfumato.core.errors import BudgetExceeded

STEPS = 12


class AccountLaws(ABC):
    """The laws. A subclass says how to begin, what costs what, and what may be spent in all."""

    @abstractmethod
    def begin(self) -> Account[Any]:
        """An account of which nothing was spent."""

    @abstractmethod
    def cost(self, account: Account[Any], part: float) -> Any:
        """A cost of that part of what is allowed next; more than 1 is too much."""

    @abstractmethod
    def within(self, costs: list[Any]) -> bool:
        """Whether costs so far are within the whole budget, by other means."""

    def spend(self, parts: list[float]) -> list[Any]:
        """Costs of releases that use these parts of what is allowed, all of them accepted."""
        account, costs = self.begin(), list[Any]()
        for part in parts:
            costs.append(self.cost(account, part))
            assert account.covers(costs[-1])
            account = account.charged(costs[-1])
        return costs

    @pytest.mark.parametrize("part", [0.0, 0.3, 1.0])
    def test_what_is_allowed_is_covered_and_all_together_is_within_the_budget(
        self, part: float
    ) -> None:
        assert self.within(self.spend([part] * STEPS))
        assert self.within(self.spend([1.0 - part, part] * (STEPS // 2)))

    @pytest.mark.parametrize("spent", [0, 3])
    def test_more_than_allowed_is_refused_and_changes_nothing(self, spent: int) -> None:
        account = self.begin()
        for _ in range(spent):
            account = account.charged(self.cost(account, 0.5))
        before, allowed = account, account.allowance
        cost = self.cost(account, 1.25)
        assert not account.covers(cost)
        with pytest.raises(BudgetExceeded, match="not released"):
            account.charged(cost)
        assert account is before
        assert account.allowance == allowed

    def test_charging_returns_another_account(self) -> None:
        account = self.begin()
        allowed, cost = account.allowance, self.cost(account, 0.5)
        assert account.charged(cost) is not account
        assert account.allowance == allowed
        assert account.charged(cost).allowance == account.charged(cost).allowance
