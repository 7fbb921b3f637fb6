"""Rules that every store follows, in the same words: whose it is, and which input goes on."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.store.protocol import NO_JOB, Again, Front, Identity, Job, LedgerMismatch

_KNOWN_BY = {
    Identity.EVENT: "the event column (--event)",
    Identity.TIME: "stream and time (--time)",
    Identity.ROW: "source and row (neither --event nor --time)",
}


def other_plan(front: Front, plan: str | None, job: Job | None) -> str | None:
    """What is wrong with a ledger for a plan and a job; None for any; None if nothing is."""
    if job not in (None, NO_JOB) and front.job != job.name:
        return f"this is a ledger of `{front.job}`, not of `{job.name}`; use a ledger of its own"
    if plan is not None and front.plan != plan:
        return other_rules(job)
    return None


def other_rules(job: Job | None) -> str:
    """What is said of a ledger with other rules than those that were given."""
    differing = "rules" if job is None else job.rules
    return (
        f"this ledger was begun with another {differing}, or one of the two is a simulation; "
        "other rules need a ledger of their own"
    )


def chosen_label(
    front: Front,
    name: str,
    earlier: Sequence[tuple[str, int]],
    identity: Identity,
    again: Again,
) -> str | None:
    """The label of an input that goes on; None for a new one.

    Args:
        front: The ledger.
        name: The name of the source.
        earlier: Labels of inputs of that name, oldest first, and how many rows each has.
        identity: What its events are known by.
        again: What the source holds.

    Raises:
        LedgerMismatch: If events of this ledger are known by something else, nothing tells these
            rows from those that were answered before, or there is nothing to resume.
    """
    if front.identity not in (None, identity.value):
        raise LedgerMismatch(
            f"events of this ledger are known by {_KNOWN_BY[Identity(front.identity)]}, not by "
            f"{_KNOWN_BY[identity]}: go on as it was begun, or use a ledger of its own"
        )
    answered = sum(rows for _, rows in earlier)
    if answered and identity is Identity.ROW and again is Again.REFUSE:
        raise LedgerMismatch(
            f"{answered} rows of {name!r} were answered before, and nothing tells them from these. "
            "If this is the same input, add --resume; if it is new data, add --append. Better, "
            "name a column that tells events apart: --time or --event"
        )
    if again is Again.RESUME and not earlier:
        raise LedgerMismatch(f"there is nothing of {name!r} to resume")
    label, rows = earlier[-1] if earlier else ("", 0)
    # An input of which nothing was answered left no trace: its label is used again.
    return label if earlier and (again is Again.RESUME or not rows) else None
