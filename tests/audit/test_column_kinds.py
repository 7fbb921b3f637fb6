"""Audits by array of releases of every kind, honest and not, against those row by row."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import sfumato as sf
from sfumato.models.encoding import Symbols
from sfumato.models.stream_model import StreamModel
from sfumato.solver.design_methods import Method
from sfumato.stream import audit_ledger
from sfumato.stream.audit import audit_table
from sfumato.stream.audit_loops import pairwise_sum, worst_window
from sfumato.stream.audit_report import AuditReport
from sfumato.stream.compile import compile_policy
from sfumato.stream.input_rows import Reading
from sfumato.stream.plan import Plan
from sfumato.stream.release_run import RunSpec, release_table
from sfumato.stream.replayed_coins import ReplayedCoins
from sfumato.tables.cells import Missing
from sfumato.tables.readers import Table
from tests.audit.test_columns import by_rows, rows_alone, small_pieces

__all__ = ["small_pieces"]

SLOW = pytest.mark.slow
KEY = sf.keyed(bytes(range(32)))
MOVES = [[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]]
CHAIN = sf.MarkovChain.from_matrix(MOVES, alphabet=sf.Alphabet(["a", "b", "c"]))
LOSS = sf.loss.hamming(CHAIN.alphabet)
STEP = sf.PerStep(sf.SIP(0.7))
SUPPRESS, REPEAT, SUBSTITUTE = (sf.Fallback(word) for word in ("suppress", "repeat", "substitute"))


def stepwise(budget: Any, **more: Any) -> Plan:
    policy = compile_policy(CHAIN, LOSS, budget.most_at_once(), steps=300)
    return Plan(CHAIN, budget, LOSS, policy=policy, **more)


def far_sighted() -> Plan:
    policy = compile_policy(CHAIN, LOSS, 0.7, steps=300, method=Method.FAR_SIGHTED)
    return Plan(CHAIN, STEP, LOSS, method=Method.FAR_SIGHTED, policy=policy)


def solved() -> Plan:
    policy = compile_policy(CHAIN, LOSS, 0.7, steps=300, kind="solved")
    return Plan(CHAIN, STEP, LOSS, policy=policy, on_unknown=SUBSTITUTE)


def of_order_two() -> Plan:
    chain = CHAIN.lifted(2)
    policy = compile_policy(chain, LOSS, 0.7, steps=300)
    return Plan(chain, STEP, LOSS, policy=policy)


PLANS: dict[str, Callable[[], Plan]] = {
    "step by step": lambda: stepwise(STEP),
    "far-sighted": far_sighted,
    "two values back": of_order_two,
    "solved, unknown values substituted": solved,
    "bursts": lambda: stepwise(sf.stream.Bursts(sf.SIP(6.0), steps=40, every=4)),
    "a window": lambda: stepwise(sf.Window(sf.SIP(2.0), width=5)),
    "a budget that ends": lambda: stepwise(sf.Horizon(sf.SIP(4.0), steps=9), on_exhausted=REPEAT),
    "unknown values suppressed": lambda: stepwise(STEP, on_unknown=SUPPRESS),
    "unknown values repeated": lambda: stepwise(STEP, on_unknown=REPEAT),
    "unknown values substituted": lambda: stepwise(STEP, on_unknown=SUBSTITUTE),
}


class Stage:
    """Live values, a release of them, and audits of it."""

    def __init__(self, folder: Path, plan: Plan, *, unknown: bool) -> None:
        self.plan, self.folder = plan, folder
        assert isinstance(plan.model, sf.MarkovChain)
        self.model = StreamModel(plan.model, Symbols(CHAIN.alphabet))
        rng = np.random.default_rng(5)
        words = ["a", "b", "c", "", *(["z"] if unknown else [])]
        cells = rng.choice(words, 100, p=None if unknown else [0.4, 0.3, 0.25, 0.05])
        lines = [f"u{i % 4},{cell}" for i, cell in enumerate(cells.tolist())]
        self.live, self.private = folder / "live.csv", folder / "private.csv"
        self.live.write_text("\n".join(["stream,value", *lines, ""]))
        spec = RunSpec(reading=Reading(missing=Missing.SKIP), randomness=KEY)
        there = Table.at(str(self.private))
        release_table(Table.at(str(self.live)), there, self.model, plan, spec)

    def audited(self, **more: Any) -> dict[str, Any]:
        """What an audit finds."""
        also = [ReplayedCoins(self.plan, KEY)] if "against" in more else []
        report: AuditReport = audit_table(
            Table.at(str(self.private)),
            self.model,
            self.plan,
            missing=Missing.SKIP,
            also=also,
            **more,
        )
        return report.document()

    def both(self, **more: Any) -> tuple[dict[str, Any], int]:
        """The same by array and row by row; how many rows the former looked at by themselves."""
        with rows_alone() as row:
            together = self.audited(**more)
        with by_rows():
            assert self.audited(**more) == together
        return together, row.call_count


KINDS = [pytest.param(name, marks=SLOW if name == "far-sighted" else ()) for name in PLANS]


@pytest.fixture(scope="module", params=KINDS)
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    name = request.param
    return Stage(tmp_path_factory.mktemp("stage"), PLANS[name](), unknown="unknown" in name)


def test_an_honest_release_of_any_kind_is_verified_alike(stage: Stage) -> None:
    against = Table.at(str(stage.live))
    for more in ({}, {"window": 3}, {"only": ["u1"]}, {"against": against}):
        found, alone = stage.both(**more)
        assert found["problem_count"] == 0, found["problems"]
        # Substitutes have further coins: who draws them again looks at them one by one.
        drawn = "against" in more and stage.plan.on_unknown is SUBSTITUTE
        assert (alone > 0) == drawn


@pytest.mark.parametrize("row", [50, 100])
def test_a_forged_row_is_found_alike(stage: Stage, tmp_path: Path, row: int) -> None:
    """No later certificate depends on the last row: only its coins tell."""
    lines = stage.private.read_text().splitlines(keepends=True)
    forged = replace_cell(lines[row], 2, {"a": "b", "b": "c", "c": "a", "": "a"})
    other = Stage.__new__(Stage)
    other.plan, other.model, other.live = stage.plan, stage.model, stage.live
    other.private = tmp_path / "forged.csv"
    other.private.write_text("".join([*lines[:row], forged, *lines[row + 1 :]]))
    other.both()
    found, alone = other.both(against=Table.at(str(stage.live)))
    assert found["problem_count"] > 0
    assert alone > 0


def replace_cell(line: str, place: int, words: dict[str, str]) -> str:
    cells = line.split(",")
    cells[place] = words[cells[place]]
    return ",".join(cells)


def test_retries_in_later_files_are_told_alike(tmp_path: Path) -> None:
    plan = stepwise(STEP)
    stage = Stage(tmp_path, plan, unknown=False)
    head, *rows = stage.private.read_text().splitlines(keepends=True)
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("".join([head, *rows[:70]]))
    second.write_text("".join([head, *rows[50:]]))
    false = tmp_path / "false.csv"
    cheaper = ",".join([*rows[60].split(",")[:4], "0.5", rows[60].split(",")[5]])
    false.write_text("".join([head, *rows[50:60], cheaper, *rows[61:]]))

    def told(later: Path) -> tuple[AuditReport, int]:
        files = [Table.at(str(first)), Table.at(str(later))]
        with rows_alone() as row:
            return audit_table(files, stage.model, plan, missing=Missing.SKIP), row.call_count

    for later, fits in ((second, True), (false, False)):
        together, alone = told(later)
        with by_rows():
            assert told(later)[0] == together
        assert together.passed == fits
        assert (alone == 0) == fits
        assert (together.repeated == 20) == fits


@pytest.fixture(scope="module")
def ledgered(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """Two days under one ledger."""
    stage = Stage(tmp_path_factory.mktemp("ledgered"), stepwise(STEP), unknown=False)
    folder = stage.live.parent
    head, *rows = stage.live.read_text().splitlines(keepends=True)
    for day, own in (("monday", rows[:45]), ("tuesday", rows[45:])):
        live = folder / f"{day}.csv"
        live.write_text("".join([head, *own]))
        reading = Reading(missing=Missing.SKIP)
        ledger = folder / "city.ledger"
        spec = RunSpec(reading=reading, randomness=KEY, ledger=ledger)
        private = Table.at(str(folder / f"private-{day}.csv"))
        release_table(Table.at(str(live)), private, stage.model, stage.plan, spec)
    return stage


@pytest.mark.parametrize("days", [["monday", "tuesday"], ["tuesday"], ["monday"], []])
@pytest.mark.parametrize("forged", [False, True])
def test_a_ledger_is_compared_alike(
    ledgered: Stage, tmp_path: Path, days: list[str], forged: bool
) -> None:
    folder, files = ledgered.live.parent, []
    for day in days:
        text = (folder / f"private-{day}.csv").read_text()
        if forged:
            head, *rows = text.splitlines(keepends=True)
            cells = rows[20].split(",")
            cells[2] = {"a": "b", "b": "c", "c": "a", "": "a"}[cells[2]]
            text = "".join([head, *rows[:20], ",".join(cells), *rows[21:]])
        (tmp_path / f"{day}.csv").write_text(text)
        files.append(Table.at(str(tmp_path / f"{day}.csv")))

    def told() -> tuple[AuditReport, int]:
        more: dict[str, Any] = {"ledger": folder / "city.ledger", "missing": Missing.SKIP}
        if days:
            more["against"] = [Table.at(str(folder / f"{day}.csv")) for day in days]
            more["also"] = [ReplayedCoins(ledgered.plan, KEY)]
        with rows_alone() as row, events_alone() as event:
            report = audit_table(files, ledgered.model, ledgered.plan, **more)
        return report, row.call_count + event.call_count

    together, alone = told()
    with by_rows():
        assert told()[0] == together
    assert together.passed == (not forged or not days), together.problems
    assert (alone > 0) == (forged and bool(days))


def events_alone() -> Any:
    """Count the events of a ledger that are looked at one by one."""
    return mock.patch.object(audit_ledger, "event_of", side_effect=audit_ledger.event_of)


def test_sums_are_those_of_the_row_by_row_audit() -> None:
    from sfumato.core.numerics import sum_up

    rng = np.random.default_rng(1)
    for size in (1, 7, 8, 9, 127, 128, 129, 500, 2000):
        values = rng.random(size) ** 5
        assert pairwise_sum(values) == values.sum()
        for width in (1, 3, 20):
            windows = [values[max(0, end - width) : end].tolist() for end in range(1, size + 1)]
            assert worst_window(values, 0, width, 0.0) == max(map(sum_up, windows))
    assert worst_window(np.full(5, 0.1), 0, 5, 0.0) == sum_up([0.1] * 5) > 0.5
