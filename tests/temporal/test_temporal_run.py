"""Tables of correlated streams: what leaves, what is certified, what goes on, what is refused."""

import csv
import json
import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.core.certificate import Certificate
from sfumato.core.errors import CorruptData, InsecureRandomness, InvalidParameter
from sfumato.core.randomness import Randomness, keyed, seeded
from sfumato.store.protocol import Again, LedgerMismatch
from sfumato.tables.input_groups import EventColumns
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Table
from sfumato.temporal.temporal_audit import audit_streams
from sfumato.temporal.temporal_run import TemporalReport, release_streams
from sfumato.temporal.temporal_spec import (
    OwnMatrices,
    TemporalSpec,
    beside,
    document,
    parse_spec,
    read_spec,
)
from tests.oracles.temporal import ExactLoss, exact_event

BACKWARD = [[0.8, 0.2], [0.2, 0.8]]
FORWARD = [[0.8, 0.2], [0.1, 0.9]]
STICKY = [[0.95, 0.05], [0.05, 0.95]]
LOOSE = [[0.6, 0.4], [0.4, 0.6]]
SECRET = b"a secret of sixteen bytes or more"
COUNTS = TemporalSpec(alpha=1.0, values=("home", "road"), backward=[BACKWARD], forward=[FORWARD])
ANSWERS = TemporalSpec(
    alpha=2.0,
    steps=8,
    mechanism="response",
    symbols=("home", "road"),
    backward=[BACKWARD],
    forward=[FORWARD],
)


def simulated(spec: TemporalSpec, **changes: Any) -> TemporalSpec:
    import msgspec

    return msgspec.structs.replace(spec, purpose="simulation", **changes)


def write(path: Path, header: str, rows: Sequence[Sequence[object]]) -> Table:
    lines = [header, *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return Table.at(str(path))


def counts(path: Path, moments: int = 8, streams: str = "ab") -> Table:
    rows = [(one, 100 + 10 * t, 300 - 10 * t) for t, one in product(range(moments), streams)]
    return write(path, "stream,home,road", rows)


def answers(path: Path, moments: int = 8, streams: str = "ab") -> Table:
    rows = [(one, ("home", "road")[t % 2]) for t, one in product(range(moments), streams)]
    return write(path, "stream,value", rows)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def epsilons_of(path: Path, stream: str) -> list[float]:
    return [float(row["epsilon"]) for row in rows_of(path) if row["stream"] == stream]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "private.csv"


def ran(
    source: Table, out: Path, spec: TemporalSpec, coins: Randomness | None = None, **how: Any
) -> TemporalReport:
    return release_streams(source, Table.at(str(out)), spec, randomness=coins, **how)


def amounts(certificate: Certificate) -> list[float]:
    return [one.alpha for one in certificate.guarantees]  # type: ignore[union-attr]


# What leaves --------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [COUNTS, ANSWERS], ids=["counts", "response"])
def test_the_certificate_is_the_exact_leakage_of_what_was_spent(
    spec: TemporalSpec, tmp_path: Path, out: Path
) -> None:
    source = (counts if spec is COUNTS else answers)(tmp_path / "in.csv")
    report = ran(source, out, spec)
    assert (report.rows, report.repeated, report.streams) == (16, 0, 2)
    losses = ExactLoss(BACKWARD), ExactLoss(FORWARD)
    worst = max(exact_event(epsilons_of(out, one), *losses) for one in "ab")
    event, user = amounts(report.certificate)
    assert worst <= event <= float(worst) * (1 + 1e-9)
    assert event <= spec.alpha
    assert user == pytest.approx(sum(epsilons_of(out, "a")), rel=1e-9)


def test_several_counts_of_a_row_share_its_budget(tmp_path: Path, out: Path) -> None:
    ran(counts(tmp_path / "in.csv"), out, COUNTS)
    for row in rows_of(out):
        assert float(row["epsilon"]) > 0
        assert int(row["home"]) != int(row["road"])
    # A person who moves changes both: the noise of each is that of half the budget.
    assert COUNTS.apart == 2
    made = COUNTS.plan("a").make
    assert made is not None
    ratio = math.exp(-0.5 * made(1.0).epsilon)
    assert made(1.0).noise.variance == pytest.approx(2 * ratio / (1 - ratio) ** 2)  # type: ignore


@pytest.mark.statistical
def test_noisy_counts_are_unbiased_with_the_noise_that_is_certified(
    tmp_path: Path, out: Path
) -> None:
    rows = [(f"u{place}", 100, 300) for place in range(1500)]
    spec = simulated(COUNTS)
    report = ran(write(tmp_path / "in.csv", "stream,home,road", rows), out, spec, seeded(3))
    noise = np.array([[int(row["home"]) - 100, int(row["road"]) - 300] for row in rows_of(out)])
    cost = report.certificate.cost
    assert cost is not None
    assert np.abs(noise.mean(axis=0)).max() < 5 * cost / math.sqrt(1500)
    assert noise.std() == pytest.approx(cost, rel=0.08)
    assert noise.std() != pytest.approx(1.3 * cost, rel=0.08)


@pytest.mark.statistical
def test_silence_is_found_from_what_was_released(tmp_path: Path, out: Path) -> None:
    """Counts of which one in two swings by 40 around its mean."""
    swinging = [("a", 200 + 40 * (-1) ** t, 200) for t in range(1500)]
    spec = simulated(COUNTS, alpha=20.0)
    told = ran(write(tmp_path / "in.csv", "stream,home,road", swinging), out, spec, seeded(3))
    assert told.certificate.silence == pytest.approx(math.sqrt(0.5 * 40**2), rel=0.1)


def test_silence_of_answers_is_what_the_matrices_say(tmp_path: Path, out: Path) -> None:
    report = ran(answers(tmp_path / "in.csv"), out, ANSWERS)
    # In the long run a third of the time at home: by the forward matrix, which is the worse rival.
    assert report.certificate.silence == pytest.approx(1 / 3)
    once = TemporalSpec(**{**_fields(ANSWERS), "steps": 1})
    single = ran(answers(tmp_path / "one.csv", 1), tmp_path / "one.out.csv", once)
    assert single.certificate.cost == pytest.approx(1 / (math.exp(2.0) + 1), rel=1e-6)


def test_missing_values_pass_their_moment_and_leave_more_for_later(
    tmp_path: Path, out: Path
) -> None:
    rows = [("a", 5), *[("a", "")] * 6, ("a", 7)]
    spec = TemporalSpec(alpha=1.0, backward=[BACKWARD], forward=[FORWARD])
    source = write(tmp_path / "in.csv", "stream,value", rows)
    with pytest.raises(BadTable, match=r"row 2: a value is missing; .*--missing skip"):
        ran(source, out, spec)
    assert not out.exists()
    report = ran(source, out, TemporalSpec(**{**_fields(spec), "missing": "skip"}))
    spent = epsilons_of(out, "a")
    assert (report.skipped, spent[1:7]) == (6, [0.0] * 6)
    assert spent[7] > 0.9 * spent[0]
    assert [row["outcome"] for row in rows_of(out)].count("skipped") == 6


def _fields(spec: TemporalSpec) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in spec.__struct_fields__}


# Matrices -----------------------------------------------------------------------------------------


def test_streams_have_their_own_matrices_and_the_strongest_is_certified_too(
    tmp_path: Path, out: Path
) -> None:
    own = {"a": OwnMatrices(LOOSE, LOOSE), "b": OwnMatrices(STICKY, STICKY)}
    spec = TemporalSpec(alpha=1.0, steps=8, own=own)
    source = write(tmp_path / "in.csv", "stream,value", [(s, 5) for _ in range(8) for s in "ab"])
    report = ran(source, out, spec)
    loose, sticky = epsilons_of(out, "a"), epsilons_of(out, "b")
    assert loose[3] > 1.5 * sticky[3]
    own_worst, strongest, _ = amounts(report.certificate)
    assert own_worst <= 1.0 < strongest
    exact = exact_event(loose, ExactLoss(STICKY), ExactLoss(STICKY))
    assert exact <= strongest <= float(exact) * (1 + 1e-9)
    assert any("strongest" in remark for remark in report.certificate.remarks)
    with pytest.raises(BadTable, match="'c'"):
        ran(write(tmp_path / "c.csv", "stream,value", [("c", 5)]), tmp_path / "c.out.csv", spec)


def test_any_matrix_of_a_set_is_protected_against(tmp_path: Path, out: Path) -> None:
    spec = TemporalSpec(alpha=1.0, backward=[LOOSE, STICKY], forward=[LOOSE, STICKY])
    source = write(tmp_path / "in.csv", "stream,value", [("a", 5)] * 12)
    ran(source, out, spec)
    for one, other in product((LOOSE, STICKY), repeat=2):
        assert exact_event(epsilons_of(out, "a"), ExactLoss(one), ExactLoss(other)) <= 1.0


# Coins, ledgers and retries -----------------------------------------------------------------------


def test_the_same_secret_gives_the_same_answers_and_other_rules_others(
    tmp_path: Path, out: Path
) -> None:
    source = counts(tmp_path / "in.csv")
    others = [COUNTS, TemporalSpec(**{**_fields(COUNTS), "sensitivity": 3})]
    renamed = write(tmp_path / "re.csv", "stream,one,two", [("a", 100, 300)])
    others.append(TemporalSpec(**{**_fields(COUNTS), "values": ("one", "two")}))
    texts = []
    for place, spec in enumerate((COUNTS, *others)):
        path = tmp_path / f"{place}.csv"
        ran(renamed if place == 3 else source, path, spec, keyed(SECRET))
        texts.append(list(rows_of(path)[0].values())[2:4])
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]
    # Other columns under the same names of streams: equal noise would tell their difference.
    assert texts[0] != texts[3]


def test_guessable_coins_are_for_simulations_only(tmp_path: Path, out: Path) -> None:
    with pytest.raises(InsecureRandomness):
        ran(counts(tmp_path / "in.csv"), out, COUNTS, seeded(1))


def test_without_a_ledger_nothing_is_released_twice(tmp_path: Path, out: Path) -> None:
    source = counts(tmp_path / "in.csv")
    ran(source, out, COUNTS)
    with pytest.raises(InvalidParameter, match="a second release tells more"):
        ran(source, out, COUNTS)


def test_a_stream_goes_on_over_days_and_a_retry_draws_nothing(tmp_path: Path) -> None:
    ledger, first, second = (tmp_path / name for name in ("l.ledger", "1.csv", "2.csv"))
    days = EventColumns(time="day")
    monday = write(tmp_path / "mon.csv", "stream,day,home,road", [("a", d, 5, 6) for d in range(4)])
    tuesday = write(
        tmp_path / "tue.csv", "stream,day,home,road", [("a", d, 5, 6) for d in range(2, 8)]
    )
    ran(monday, first, COUNTS, ledger=ledger, columns=days)
    report = ran(tuesday, second, COUNTS, ledger=ledger, columns=days)
    assert report.repeated == 2
    before, after = rows_of(first), rows_of(second)
    assert after[:2] == before[2:]
    whole = epsilons_of(first, "a") + epsilons_of(second, "a")[2:]
    assert exact_event(whole, ExactLoss(BACKWARD), ExactLoss(FORWARD)) <= 1.0
    assert [int(row["sequence"]) for row in after] == list(range(2, 8))
    assert amounts(report.certificate)[1] == pytest.approx(sum(whole), rel=1e-9)
    changed = write(tmp_path / "mon.csv", "stream,day,home,road", [("a", 1, 7, 6)])
    with pytest.raises(BadTable, match="answered before, for another value"):
        ran(changed, tmp_path / "3.csv", COUNTS, ledger=ledger, columns=days)
    late = write(tmp_path / "late.csv", "stream,day,home,road", [("a", 0.5, 7, 6)])
    with pytest.raises(BadTable, match="its time lies before"):
        ran(late, tmp_path / "3.csv", COUNTS, ledger=ledger, columns=days)
    with pytest.raises(LedgerMismatch):
        other = TemporalSpec(**{**_fields(COUNTS), "alpha": 2.0})
        ran(tuesday, tmp_path / "3.csv", other, ledger=ledger, columns=days)


def test_an_input_is_resumed_where_it_was_refused(tmp_path: Path, out: Path) -> None:
    ledger = tmp_path / "l.ledger"
    good = [("a", 5, 6), ("b", 5, 6), ("a", 7, 8)]
    source = write(tmp_path / "in.csv", "stream,home,road", [*good, ("a", "much", 8)])
    with pytest.raises(BadTable, match="row 4: a count must be a whole number"):
        ran(source, out, COUNTS, ledger=ledger)
    assert not out.exists()
    source = write(tmp_path / "in.csv", "stream,home,road", [*good, ("a", 9, 8)])
    with pytest.raises(LedgerMismatch, match="--resume"):
        ran(source, out, COUNTS, ledger=ledger)
    report = ran(source, out, COUNTS, ledger=ledger, again=Again.RESUME)
    assert (report.rows, report.repeated) == (4, 3)
    assert audit_streams([Table.at(str(out))], COUNTS, ledger=ledger).passed


def test_an_event_stands_once_in_a_table(tmp_path: Path, out: Path) -> None:
    source = write(tmp_path / "in.csv", "stream,id,home,road", [("a", 1, 2, 3), ("a", 1, 2, 3)])
    with pytest.raises(BadTable, match="row 2: an event must occur once; it stands in row 1"):
        ran(source, out, COUNTS, columns=EventColumns(event="id"))


def test_more_rows_than_were_planned_are_refused_at_the_first(tmp_path: Path, out: Path) -> None:
    source = answers(tmp_path / "in.csv", moments=9, streams="a")
    with pytest.raises(BadTable, match=r"row 9: .*not released.*in the ledger"):
        ran(source, out, ANSWERS)
    assert not out.exists()


@pytest.mark.parametrize("cell", ["much", "1.5", "inf", "1e300", "-98765"])
def test_what_is_no_count_is_refused_and_not_quoted(cell: str, tmp_path: Path, out: Path) -> None:
    source = write(tmp_path / "in.csv", "stream,home,road", [("a", cell, 1)])
    with pytest.raises(BadTable, match="a count must be a whole number") as refused:
        ran(source, out, COUNTS)
    assert cell not in str(refused.value)


def test_a_value_outside_the_symbols_is_refused_and_not_quoted(tmp_path: Path, out: Path) -> None:
    source = write(tmp_path / "in.csv", "stream,value", [("a", "hideout")])
    with pytest.raises(BadTable, match="one of the 2 symbols") as refused:
        ran(source, out, ANSWERS)
    assert "hideout" not in str(refused.value)


# Rules --------------------------------------------------------------------------------------------


def test_rules_lie_beside_the_output_and_are_read_back(tmp_path: Path, out: Path) -> None:
    ran(counts(tmp_path / "in.csv"), out, COUNTS)
    assert read_spec(beside(str(out))) == COUNTS
    assert parse_spec(document(ANSWERS), "x").fingerprint == ANSWERS.fingerprint


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alpha": 0.0}, "alpha"),
        ({"mechanism": "noise"}, "mechanism"),
        ({"allocation": "even"}, "allocation"),
        ({"backward": [], "forward": []}, "matrices must be given"),
        ({"mechanism": "response"}, "symbols"),
        ({"symbols": ("a", "b")}, "symbols"),
        ({"missing": "drop"}, "missing"),
        ({"sensitivity": 0}, "sensitivity"),
        ({"backward": [[[1.0, 0.0], [0.0, 1.0]]]}, "rows 0 and 1"),
    ],
)
def test_rules_that_do_not_fit_together_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        TemporalSpec(**{**_fields(COUNTS), **changes}).check()


# Audits -------------------------------------------------------------------------------------------


def test_an_audit_computes_every_row_anew(tmp_path: Path, out: Path) -> None:
    ledger = tmp_path / "l.ledger"
    report = ran(counts(tmp_path / "in.csv"), out, COUNTS, ledger=ledger)
    for kept in (None, ledger):
        found = audit_streams([Table.at(str(out))], COUNTS, ledger=kept)
        assert found.passed, found.problems
        assert found.certificate == report.certificate
        assert found.rows == 16
    assert audit_streams([], COUNTS, ledger=ledger).certificate == report.certificate


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("epsilon", "0.0001", "leaks 0.2"),
        ("sequence", "7", "moment 7 of its stream, where 2 is due"),
        ("home", "1.5", "a cell is not"),
        ("home", "", "a cell is not"),
        ("outcome", "skipped", "if, and only if"),
        ("stream", "c", "moment 2 of its stream, where 0 is due"),
    ],
)
def test_an_audit_notices_a_row_that_was_changed(
    column: str, cell: str, message: str, tmp_path: Path, out: Path
) -> None:
    ledger = tmp_path / "l.ledger"
    ran(counts(tmp_path / "in.csv"), out, COUNTS, ledger=ledger)
    rows = rows_of(out)
    rows[4][column] = cell
    changed = write(tmp_path / "changed.csv", ",".join(rows[0]), [list(r.values()) for r in rows])
    found = audit_streams([changed], COUNTS)
    assert not found.passed
    assert message in "; ".join(found.problems)
    assert not audit_streams([changed], COUNTS, ledger=ledger).passed


def test_an_audit_notices_a_changed_count_by_the_ledger(tmp_path: Path, out: Path) -> None:
    ledger = tmp_path / "l.ledger"
    ran(counts(tmp_path / "in.csv"), out, COUNTS, ledger=ledger)
    rows = rows_of(out)
    rows[3]["home"] = str(int(rows[3]["home"]) + 1)
    changed = write(tmp_path / "changed.csv", ",".join(rows[0]), [list(r.values()) for r in rows])
    found = audit_streams([changed], COUNTS, ledger=ledger)
    assert found.problems == [f"{changed.path}, row 4: the ledger does not say the same"]


@pytest.mark.parametrize("wrong", ["gap", "twice", "out of turn"])
def test_an_audit_with_a_ledger_notices_rows_that_are_not_there_once(
    wrong: str, tmp_path: Path, out: Path
) -> None:
    ledger = tmp_path / "l.ledger"
    ran(counts(tmp_path / "in.csv"), out, COUNTS, ledger=ledger)
    rows = rows_of(out)
    whole = audit_streams([Table.at(str(out))], COUNTS, ledger=ledger)
    assert whole.passed and whole.covered == len(rows) == 16
    match wrong:
        case "gap":
            del rows[4]
        case "twice":
            rows.append(rows[4])
        case _:
            rows.insert(0, rows.pop(4))
    changed = write(tmp_path / "changed.csv", ",".join(rows[0]), [list(r.values()) for r in rows])
    found = audit_streams([changed], COUNTS, ledger=ledger)
    assert not found.passed
    assert "is due" in found.problems[0]


def test_files_of_some_days_are_said_to_be_a_part_of_the_ledger(tmp_path: Path, out: Path) -> None:
    ledger = tmp_path / "l.ledger"
    ran(counts(tmp_path / "in.csv"), out, COUNTS, ledger=ledger)
    rows = rows_of(out)[:10]
    part = write(tmp_path / "part.csv", ",".join(rows[0]), [list(r.values()) for r in rows])
    found = audit_streams([part], COUNTS, ledger=ledger)
    assert found.passed and (found.covered, found.rows) == (10, 16)


def test_rules_that_were_edited_are_refused(tmp_path: Path, out: Path) -> None:
    ran(counts(tmp_path / "in.csv"), out, simulated(COUNTS), seeded(4))
    path = beside(str(out))
    path.write_text(path.read_text().replace('"simulation"', '"release"'))
    with pytest.raises(CorruptData, match="were edited"):
        read_spec(path)


def test_an_audit_under_other_rules_fails(tmp_path: Path, out: Path) -> None:
    ran(counts(tmp_path / "in.csv"), out, COUNTS)
    for changes in ({"alpha": 0.9}, {"sensitivity": 1}, {"backward": [STICKY]}):
        other = TemporalSpec(**{**_fields(COUNTS), **changes})
        assert not audit_streams([Table.at(str(out))], other).passed


def test_an_audit_of_a_simulation_fails_unless_it_was_meant(tmp_path: Path, out: Path) -> None:
    spec = simulated(COUNTS)
    ran(counts(tmp_path / "in.csv"), out, spec, seeded(4))
    found = audit_streams([Table.at(str(out))], spec)
    assert not found.passed
    assert "can be guessed" in found.problems[0]
    assert audit_streams([Table.at(str(out))], spec, simulation=True).passed


def test_the_ledger_holds_no_true_value(tmp_path: Path, out: Path) -> None:
    ledger = tmp_path / "l.ledger"
    rows = [("a", 918273645, 300), ("a", 5, 564738291)]
    ran(write(tmp_path / "in.csv", "stream,home,road", rows), out, COUNTS, ledger=ledger)
    released = json.dumps(rows_of(out))
    content = b"".join(path.read_bytes() for path in tmp_path.glob("l.ledger*"))
    for value in ("918273645", "564738291"):
        assert (value.encode() in content) <= (value in released)
