"""What left, as a ledger holds it: all answers of all streams, in the order of their commits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sfumato.core.errors import CorruptData
from sfumato.store.ledger_check import checked
from sfumato.store.ledger_reader import LedgerReader
from sfumato.stream.audit_ledger import event_of
from sfumato.stream.plan import Plan
from sfumato.stream.release_spec import JOB
from sfumato.stream.released_tracks import ReleasedTracks


def ledger_tracks(path: str | Path, plan: Plan) -> ReleasedTracks:
    """All that left, from the ledger of a release. It is only read.

    Args:
        path: The ledger.
        plan: The rule of the release; a ledger of another is refused.

    Raises:
        CorruptData: If something is wrong with the ledger.
    """
    with LedgerReader(path, plan.fingerprint, JOB) as reader:
        problems = checked(reader).problems
        if problems:
            raise CorruptData(f"{path}: {problems[0]}")
        events = [event_of(answer) for answer in reader.history()]
    return replace(ReleasedTracks.of(events, plan.model.alphabet), source=str(path))
