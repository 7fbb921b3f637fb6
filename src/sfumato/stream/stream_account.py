"""What a stream has spent and has left, from what the store keeps of it."""

from __future__ import annotations

from sfumato.core.budgets import Horizon
from sfumato.store.live import StreamAccount
from sfumato.store.protocol import Store
from sfumato.stream.plan import Plan
from sfumato.stream.row_run import state_kind


def stream_account(store: Store, plan: Plan, stream: str) -> StreamAccount | None:
    """Where a stream stands under a plan; None if it never had an answer."""
    (end,) = store.ends([stream])
    if end is None:
        return None
    position, last = end
    ledger = state_kind(plan).read(position).ledger
    due, budget = plan.allowance(ledger, plan.width), plan.budget
    return StreamAccount(
        answers=position.sequence,
        leakage=position.leakage,
        model_free=position.model_free,
        left=due.sip,
        left_model_free=due.ldp,
        moments=max(budget.steps - ledger.count, 0) if isinstance(budget, Horizon) else None,
        time=last.time,
    )
