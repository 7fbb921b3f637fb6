"""Ledgers under every budget are accounts."""

from typing import Any

import pytest

from sfumato.core.account import Account, BudgetAccount
from sfumato.core.budgets import Budget, Geometric, Horizon, PerStep, Window
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.ledger import Charge
from tests.contracts.accounts import STEPS, AccountLaws

BUDGETS: dict[str, tuple[Budget, int]] = {
    "each step": (PerStep(SIP(0.2), LDP(0.5)), 1),
    "a horizon": (Horizon(SIP(1.0), STEPS, LDP(2.0)), STEPS),
    "a window": (Window(SIP(1.0), 4), 4),
    "for ever": (Geometric(SIP(1.0), 0.8), STEPS),
}


class TestBudgetAccount(AccountLaws):
    """Any so many successive steps of it are within the total, which is summed exactly here."""

    @pytest.fixture(autouse=True, params=BUDGETS)
    def budget(self, request: pytest.FixtureRequest) -> None:
        self.rule, self.width = BUDGETS[request.param]

    def begin(self) -> Account[Any]:
        return BudgetAccount(self.rule)

    def cost(self, account: Account[Any], part: float) -> Charge:
        allowed = account.allowance
        return Charge(
            part * allowed.sip, part * (allowed.sip if allowed.ldp is None else allowed.ldp)
        )

    def within(self, costs: list[Any]) -> bool:
        ends = range(len(costs) - self.width + 1)
        sums = [sum(cost.sip for cost in costs[start : start + self.width]) for start in ends]
        return bool(max(sums) <= self.rule.sip.epsilon * (1 + 1e-12))
