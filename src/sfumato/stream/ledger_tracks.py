"""What left, as a ledger holds it: all answers of all streams, in the order of their commits."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

from sfumato.core.errors import CorruptData
from sfumato.models.periodic import PeriodicChain
from sfumato.store.ledger_check import checked
from sfumato.store.ledger_reader import LedgerReader
from sfumato.stream.audit_ledger import When, event_of
from sfumato.stream.plan import Plan
from sfumato.stream.release_spec import JOB
from sfumato.stream.released_tracks import ReleasedTracks


def ledger_tracks(ledger: str | Path | LedgerReader, plan: Plan) -> ReleasedTracks:
    r"""All that left, from the ledger of a release. It is only read.

    Args:
        ledger: The ledger; a reader shows it as it was when opened.
        plan: The rule of the release; a ledger of another is refused.

    Raises:
        CorruptData: If something is wrong with the ledger.

    Examples:
        >>> import sfumato as sf
        >>> from sfumato.tables.readers import Table
        >>> folder = getfixture("tmp_path")
        >>> live, private = (Table.at(str(folder / name)) for name in ("live.csv", "private.csv"))
        >>> _ = (folder / "live.csv").write_text("stream,value\n" + 20 * "ann,home\nann,work\n")
        >>> model, _ = sf.stream.fit_table(live)
        >>> plan = sf.Plan(model.chain, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(model.alphabet))
        >>> spec = sf.stream.RunSpec(ledger=folder / "l.ledger")
        >>> _ = sf.stream.release_table(live, private, model, plan, spec)
        >>> len(ledger_tracks(folder / "l.ledger", plan).places)
        40
    """
    with contextlib.ExitStack() as closing:
        if not isinstance(ledger, LedgerReader):
            ledger = closing.enter_context(LedgerReader(ledger, plan.fingerprint, JOB))
        problems = checked(ledger).problems
        if problems:
            raise CorruptData(f"{ledger.path}: {problems[0]}")
        cycle = plan.model.cycle if isinstance(plan.model, PeriodicChain) else None
        when = When.under(cycle, plan.period)
        events = [event_of(answer, when) for answer in ledger.history()]
    return replace(ReleasedTracks.of(events, plan.model.alphabet), source=str(ledger.path))
