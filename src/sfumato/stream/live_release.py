"""Live events of a release of streams, from its rules: what a service opens."""

from __future__ import annotations

from collections.abc import Callable

from sfumato.core.checks import choice
from sfumato.core.errors import InvalidParameter
from sfumato.core.randomness import Randomness, of_ledger
from sfumato.models.stream_model import StreamModel
from sfumato.solver.policy import Policy
from sfumato.store.live_columns import ColumnarRun
from sfumato.store.live_intake import begun
from sfumato.store.live_run import SteppedRun
from sfumato.store.protocol import Job, Store
from sfumato.stream.input_rows import Reading
from sfumato.stream.live_batches import LiveBatches
from sfumato.stream.live_fleet import LiveFleet
from sfumato.stream.release_document import parse_spec
from sfumato.stream.release_spec import JOB
from sfumato.tables.cells import Late, Missing


def open_release(
    rules: bytes,
    model: StreamModel | None,
    policy: Policy | None,
    open_store: Callable[[str, Job, str], Store],
    coins: Randomness,
    source: str,
) -> tuple[ColumnarRun, Store]:
    """Open the ledger of a release of streams, and what answers its live events.

    Args:
        rules: The document of its rules, as `release_document.document` makes it.
        model: The model that they name.
        policy: The policy that they name, if they do.
        open_store: Opens a store for a plan, a job and the text of the rules.
        coins: Of the releases; of a key those of the ledger are drawn (`randomness.of_ledger`).
        source: What the input is called in the ledger; each node of a shared store has its own.

    Raises:
        InvalidParameter: If model or policy are not those of the rules.
        LedgerMismatch: If the store is that of another plan.
        InsecureRandomness: If the coins can be guessed and this is no simulation.
    """
    if model is None:
        raise InvalidParameter("model", None, "be given: a release of streams has one")
    spec = parse_spec(rules, "the rules")
    plan = spec.plan(model, policy)
    if plan.period is not None:
        rule = "be for values: live events need not have times, so none are told to the plan"
        raise InvalidParameter("budget", f"one for each {plan.period}", rule)
    plan.check_coins(coins)
    missing = choice("missing", Missing, spec.missing)
    late = choice("late", Late, spec.late)
    Reading(missing=missing, late=late).check(model)
    store = open_store(plan.fingerprint, JOB, rules.decode())
    try:
        asked = begun(store, source)
        coins = of_ledger(coins, store.front.id)
        if plan.policy is not None and not plan.in_batches:
            given = (store, asked, model, plan, coins)
            return LiveFleet(*given, missing=missing, late=late), store
        job = LiveBatches(model, plan, coins, missing=missing, late=late)
        return SteppedRun(store, asked, job), store
    except BaseException:
        store.close()
        raise
