"""Draws that are repeated with a key: counted, and none that the true values at hand do not fix."""

import pytest

import sfumato as sf
from sfumato.core.randomness import keyed
from sfumato.stream.audit_checks import CheckedBatch
from sfumato.stream.audit_report import AuditReport
from sfumato.stream.plan import Plan
from sfumato.stream.replayed_coins import ReplayedCoins
from sfumato.stream.true_values import Truth

CHAIN = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
COINS = keyed(bytes(range(100, 132)))
VALUES = [1, 1, 0, 1, 0, 0, 1, 1]


@pytest.mark.parametrize(("memory", "past"), [(1, 0), (2, 2), (3, 4)])
def test_a_channel_that_looks_back_at_what_is_in_the_ledger_alone_accuses_nobody(
    memory: int, past: int
) -> None:
    plan = Plan(CHAIN, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(CHAIN.alphabet), 2, memory)
    state, known, check = plan.begin("a"), list[object](), ReplayedCoins(plan, COINS)
    for place in range(0, len(VALUES), 2):
        batch = VALUES[place : place + 2]
        before = known[len(known) - plan.recalled(state) :]
        due, following = plan.step(state, batch, COINS, before)
        truths = [Truth(value) for value in batch] if place else None
        rows = range(place - 1, place + 1) if place else ()
        check.see(CheckedBatch(state, due, following, None, None, truths or [None] * 2, rows))
        state, known = following, [*known, *batch]
    report = AuditReport(rows=6, only_in_ledger=2)
    check.finish(report)
    assert report.passed
    assert report.replayed is not None and not report.replayed.whole
    assert (report.replayed.repeated, report.replayed.due) == (6 - past, 8)
    lines = ["2 draws with the key: they stand in the ledger alone, without their true values"]
    if past:
        lines.append(
            f"{past} draws with the key: they come from channels that look back at values not given"
        )
    assert report.unchecked == lines


def test_rows_that_nobody_could_read_and_unsound_ledgers_leave_no_claim() -> None:
    plan = Plan(CHAIN, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(CHAIN.alphabet))
    report = AuditReport(rows=3, repeated=1)
    ReplayedCoins(plan, COINS).finish(report)
    assert str(report.replayed) == "0 of 2 draws were repeated"
    assert report.unchecked == ["2 draws with the key: they are of rows that cannot be verified"]
    report = AuditReport()
    report.note_ledger("a row was edited")
    ReplayedCoins(plan, COINS).finish(report)
    assert report.replayed is not None and not report.replayed.whole
    assert "it is not sound" in report.unchecked[0]
