"""What a learning release must have learnt: from what left, and from nothing else.

An audit goes along the outputs twice: once in the order in which they left, to learn every version
again, and once stream by stream, as ever, under the versions that were found.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from sfumato.core.errors import CorruptData, UnknownSymbol
from sfumato.models.encoding import Unreadable
from sfumato.models.stream_model import StreamModel
from sfumato.store.chain import written_head
from sfumato.store.ledger_reader import LedgerReader
from sfumato.stream.audit_report import AuditReport, Kind
from sfumato.stream.audit_rows import released_symbol
from sfumato.stream.leakage_by_start import LeakageByStart
from sfumato.stream.learning_plan import LearningPlan
from sfumato.stream.learning_rules import LearningRules
from sfumato.stream.learnt_outputs import last_set
from sfumato.stream.other_truth import OtherTruth
from sfumato.stream.version_files import load_versions, versions_beside
from sfumato.stream.version_history import VersionHistory
from sfumato.tables.readers import Table


def learnt_plan(
    rules: LearningRules,
    model: StreamModel,
    released: Sequence[Table],
    ledger: LedgerReader | None = None,
) -> LearningPlan:
    r"""The rule of a release with the versions that its outputs led to.

    Args:
        rules: The rules of the release.
        model: The model that knows nothing, and how the tables are read.
        released: The files in the order in which they were written, from the first on; not looked
            at where there is
        ledger: a ledger, which knows the order of all answers. The audit must see it as it is here:
            what a release that is under way adds to it would belong to no version.

    Examples:
        >>> import sfumato as sf
        >>> from sfumato.stream.fit_model import Cut, uniform_model
        >>> from sfumato.tables.readers import Table
        >>> folder = getfixture("tmp_path")
        >>> live, private = (Table.at(str(folder / name)) for name in ("live.csv", "private.csv"))
        >>> _ = (folder / "live.csv").write_text("stream,value\n" + 20 * "ann,home\nann,work\n")
        >>> start, loss = uniform_model(Cut(), ("home", "work")), sf.loss.hamming
        >>> rules = LearningRules(
        ...     start.alphabet, sf.PerStep(sf.SIP(1.0)), loss(start.alphabet), first=30
        ... )
        >>> plan = LearningPlan.under(VersionHistory(rules))
        >>> _ = sf.stream.release_table(live, private, start, plan)
        >>> [version.values for version in learnt_plan(rules, start, [private]).history.versions()]
        [30]
    """
    history = VersionHistory(rules)
    left = _in_ledger(ledger) if ledger is not None else _in_files(released, model)
    taken: dict[str, int] = {}
    for stream, sequence, symbol in left:
        place = rules.alphabet.place(symbol)
        # What is said again, or cannot be, teaches nothing; the walk has a word for it.
        if sequence == taken.get(stream, 0) and place >= 0:
            history.add(stream, place)
            taken[stream] = sequence + 1
    return LearningPlan.under(history)


def _in_ledger(ledger: LedgerReader) -> Iterator[tuple[str, int, object]]:
    for answer in ledger.history():
        yield answer.stream, answer.sequence, answer.released


def _in_files(released: Sequence[Table], model: StreamModel) -> Iterator[tuple[str, int, object]]:
    for table in released:
        for chunk in table.chunks([model.stream, "sequence", "released"]):
            for offset in range(len(chunk)):
                row = {name: column[offset] for name, column in chunk.columns.items()}
                with contextlib.suppress(Unreadable, UnknownSymbol, ValueError, TypeError):
                    symbol = released_symbol(row["released"], model)
                    yield str(row[model.stream]), int(row["sequence"]), symbol


def three_numbers(plan: LearningPlan) -> OtherTruth | LeakageByStart | None:
    """What was leaked under the last estimate, and under all chains that are left; None if none.

    Where learning started anew: of each start under its own, and the sum.
    """
    if plan.history.restarts:
        return LeakageByStart(plan)
    found = last_set(plan)
    return None if found is None else OtherTruth(plan, found[1].estimate, found[1])


def check_kept(
    report: AuditReport,
    plan: LearningPlan,
    tables: Sequence[str | Path],
    ledger: LedgerReader | None = None,
) -> None:
    """Note every file of versions, beside a table or a ledger, that outputs did not lead to.

    The one that was written last must have all versions under which anything left: one that ends
    early would say nothing of a change.
    """
    versions, count = plan.history.versions(), plan.history.count
    made = [version.fingerprint for version in versions]
    due = sum(version.values < count for version in versions)
    own = None if ledger is None else ledger.path
    paths = [*tables, *([] if own is None else [own])]
    for place, path in enumerate(map(versions_beside, paths), start=1):
        if not path.exists():
            report.unchecked.append(f"{path}: it is not there; versions were learnt again")
            continue
        try:
            there = load_versions(path)
        except CorruptData as problem:
            report.note_all(str(problem), Kind.FILE)
            continue
        told, least = there.fingerprints, due if place == len(paths) else 0
        if ledger is not None and _grown(ledger):
            told = told[: len(made)]  # a release under way has learnt more since it was opened
        wrong = told != made[: len(told)] or len(told) < least
        if there.rules != plan.rules.fingerprint or wrong:
            rule = "the versions must be those that the released values lead to"
            report.note_all(f"{path}: {rule}; another model was put in their place", Kind.FILE)


def _grown(ledger: LedgerReader) -> bool:
    """Whether rows were committed to a ledger since it was opened."""
    head = None if ledger.path is None else written_head(ledger.path)
    return head is not None and head.entries > ledger.front.head.entries
