import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.models.stream_model import StreamModel
from sfumato.store.files import load
from tests.shell.releasing import EVEN, FAST, STEP, Rows, another, audited, rewritten, write_rules
from tests.shell.running import call, done, rows
from tests.shell.tables import FORMATS, PLACES, by_stream, table, walk, write

LIVE = walk(11, rows=48)


def early(records: Rows) -> int:
    """A row that others of its stream follow."""
    return next(
        i
        for i, row in enumerate(records)
        if sum(other["person"] == row["person"] for other in records[i:]) > 4
    )


@pytest.fixture
def released(model: Path, tmp_path: Path) -> Path:
    """A table as `release` wrote it, its input and its ledger beside it."""
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    rule = ("--epsilon", 0.8, *FAST, "--ledger", tmp_path / "city.ledger")
    done("release", live, "-m", model, *rule, "-o", private)
    return private


# An honest release passes ------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("name", ["places", "levels", "bins", "grid"])
def test_what_release_wrote_passes(models: Path, tmp_path: Path, name: str, suffix: str) -> None:
    columns = ["person", *(["lon", "lat"] if name == "grid" else ["place"])]
    with (models / f"{name}.csv").open() as file:
        records = [tuple(row.values()) for row in csv.DictReader(file)][:12]
    live = write(tmp_path / "live.csv", columns, records)
    private, ledger = tmp_path / f"private.{suffix}", tmp_path / "city.ledger"
    common = ("-m", models / f"{name}.model", "--ledger", ledger)
    done("release", live, *common, "--epsilon", 1, *STEP, "-o", private)
    report = done("audit", private, *common, "--against", live, "--json").document
    assert (report["passed"], report["rows"], report["problem_count"]) == (True, 12, 0)
    for stream in report["streams"].values():
        assert abs(stream["gain"]) <= stream["sip"] + 1e-9


@pytest.mark.parametrize(
    "rule",
    [
        ("--epsilon", 1, "--loss", "hamming", *STEP),
        ("--budget", 9, "--horizon", 30, *EVEN),
        ("--budget", 2, "--window", 3, "--ldp", 3, *EVEN),
        ("--budget", 4, "--horizon", 6, "--when-exhausted", "suppress", *FAST, *EVEN),
        ("--budget", 4, "--horizon", 6, "--when-exhausted", "repeat", *FAST, *EVEN),
        ("--epsilon", 1, "--method", "calibrated"),
        ("--epsilon", 1, "--method", "context-free"),
    ],
)
def test_every_rule_passes_its_own_audit(
    model: Path, tmp_path: Path, rule: tuple[object, ...]
) -> None:
    released, report = audited(tmp_path, model, LIVE[:25], *rule)
    for name, stream in by_stream(released).items():
        entry = report["streams"][name]
        assert entry["steps"] == len(stream)
        assert entry["sip"] == pytest.approx(sum(float(row["sip"]) for row in stream))
        assert entry["ldp"] == pytest.approx(sum(float(row["ldp"]) for row in stream))
        assert entry["worst_step"] == pytest.approx(max(float(row["sip"]) for row in stream))
        assert entry["composed"] <= entry["sip"] * (1 + 1e-9)


def test_withheld_values_are_counted(model: Path, tmp_path: Path) -> None:
    values = [PLACES[0], "nowhere", PLACES[1], "nowhere", PLACES[2]]
    live = table(tmp_path / "live.csv", [("a", value) for value in values])
    private = tmp_path / "private.csv"
    rule = ("--epsilon", 1, *FAST, "--when-unknown", "suppress")
    done("release", live, "-m", model, *rule, "-o", private)
    report = done("audit", private, "-m", model, "--against", live, "--json").document
    assert (report["passed"], report["withheld"], report["rows"]) == (True, 2, 5)
    assert (
        "2 rows withheld although the budget was not gone"
        in done("audit", private, "-m", model, "--allow", "withheld").out
    )


def test_the_worst_window_is_the_largest_sum_of_successive_steps(
    model: Path, released: Path
) -> None:
    report = done("audit", released, "-m", model, "--window", 3, "--json").document
    for name, stream in by_stream(rows(released)).items():
        sips = [float(row["sip"]) for row in stream]
        worst = max(sum(sips[max(0, i - 2) : i + 1]) for i in range(len(sips)))
        assert report["streams"][name]["worst_window"] == pytest.approx(worst)


def test_the_window_of_the_rules_is_reported_unasked(model: Path, tmp_path: Path) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    done("release", live, "-m", model, "--budget", 2, "--window", 4, *FAST, *EVEN, "-o", private)
    report = done("audit", private, "-m", model, "--json").document
    worst = [stream["worst_window"] for stream in report["streams"].values()]
    assert all(0 < value <= 2 + 1e-9 for value in worst)


def test_an_interrupted_part_passes_as_far_as_it_goes(model: Path, released: Path) -> None:
    part = rewritten(released, rows(released)[:20])
    assert done("audit", part, "-m", model, "--json").document["rows"] == 20


# Realised error and gain -------------------------------------------------------------------------


def forward(model: StreamModel, epsilon: float, truth: list[str], told: list[str]) -> float:
    """Realised gain of randomised response, by the forward algorithm on the joint chain."""
    labels = list(model.chain.alphabet.labels)
    size = len(labels)
    right = math.exp(epsilon) / (size - 1 + math.exp(epsilon))
    channel = np.where(np.eye(size) > 0, right, (1 - right) / (size - 1))
    chain = model.single_values
    transition, weight, gain = chain.transition(), chain.initial, 0.0
    for true, output in zip(truth, told, strict=True):
        likelihood = channel[:, labels.index(output)]
        share = float(weight @ likelihood)
        gain += math.log(channel[labels.index(true), labels.index(output)] / share)
        weight = (weight * likelihood / share) @ transition
    return gain


def test_realised_loss_and_gain_are_those_of_a_direct_computation(
    model: Path, released: Path
) -> None:
    live = released.with_name("live.csv")
    report = done("audit", released, "-m", model, "--against", live, "--json").document
    read = load(model)
    assert isinstance(read, StreamModel)
    truths, answers = by_stream(rows(live)), by_stream(rows(released))
    wrong = 0
    for name, stream in answers.items():
        truth = [row["place"] for row in truths[name]]
        told = [row["released"] for row in stream]
        errors = sum(a != b for a, b in zip(truth, told, strict=True))
        wrong += errors
        entry = report["streams"][name]
        assert entry["loss"] == errors
        assert entry["gain"] == pytest.approx(forward(read, 0.8, truth, told), rel=1e-6)
        assert abs(entry["gain"]) <= entry["sip"]
    assert 0 < wrong < len(LIVE)
    assert report["mean_loss"] == pytest.approx(wrong / len(LIVE))


def test_no_stream_gains_more_than_its_certificate(models: Path, tmp_path: Path) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    levels = [(person, 1 + PLACES.index(place) % 3) for person, place in LIVE]
    table(live, levels)
    rule = ("--epsilon", 0.5, "--loss", "absolute", *STEP)
    done("release", live, "-m", models / "levels.model", *rule, "-o", private)
    report = done(
        "audit", private, "-m", models / "levels.model", "--against", live, "--json"
    ).document
    pairs = zip((level for _, level in levels), rows(private), strict=True)
    error = sum(abs(level - int(row["released"])) for level, row in pairs)
    assert report["mean_loss"] == pytest.approx(error / len(levels))
    for stream in report["streams"].values():
        assert abs(stream["gain"]) <= stream["sip"]


def test_the_true_table_must_be_the_one_that_was_released(
    model: Path, released: Path, tmp_path: Path
) -> None:
    shorter = table(tmp_path / "shorter.csv", LIVE[:-1])
    other = table(tmp_path / "other.csv", list(reversed(LIVE)))
    for true in (shorter, other):
        assert call("audit", released, "-m", model, "--against", true).code == 2
    longer = table(tmp_path / "longer.csv", [*LIVE, LIVE[0]])
    result = call("audit", released, "-m", model, "--against", longer)
    assert result.code == 2
    assert f"{longer}: the true table must not have more rows" in result.err


def test_without_the_true_values_nothing_is_said_about_them(model: Path, released: Path) -> None:
    report = done("audit", released, "-m", model, "--json").document
    assert report["mean_loss"] is None
    assert all(stream["gain"] is None for stream in report["streams"].values())


# A planted bug is found --------------------------------------------------------------------------


def edited_value(records: Rows) -> Rows:
    place = early(records)
    records[place]["released"] = another(records[place]["released"])
    return records


def edited_sip(records: Rows) -> Rows:
    records[-1]["sip"] = str(float(records[-1]["sip"]) * (1 - 1e-6))
    return records


def edited_ldp(records: Rows) -> Rows:
    records[-1]["ldp"] = str(float(records[-1]["ldp"]) + 1e-6)
    return records


def unknown_value(records: Rows) -> Rows:
    records[early(records)]["released"] = "palace"
    return records


def dropped_row(records: Rows) -> Rows:
    del records[early(records)]
    return records


def renumbered_row(records: Rows) -> Rows:
    records[-1]["sequence"] = str(int(records[-1]["sequence"]) + 1)
    return records


def doubled_row(records: Rows) -> Rows:
    place = early(records)
    return [*records[: place + 1], *records[place:]]


def swapped_rows(records: Rows) -> Rows:
    place = early(records)
    other = next(
        i
        for i in range(place + 1, len(records))
        if records[i]["person"] == records[place]["person"]
    )
    records[place], records[other] = records[other], records[place]
    return records


def renamed_stream(records: Rows) -> Rows:
    records[-1]["person"] = "somebody else"
    return records


def hidden_release(records: Rows) -> Rows:
    place = early(records)
    records[place] |= {"outcome": "suppressed", "sip": "0.0", "ldp": "0.0", "released": ""}
    return records


@pytest.mark.parametrize(
    "bug",
    [
        edited_value,
        edited_sip,
        edited_ldp,
        unknown_value,
        dropped_row,
        renumbered_row,
        doubled_row,
        swapped_rows,
        renamed_stream,
        hidden_release,
    ],
)
def test_a_planted_bug_is_found(model: Path, released: Path, bug: Callable[[Rows], Rows]) -> None:
    changed = rewritten(released, bug(rows(released)))
    result = call("audit", changed, "-m", model)
    assert result.code == 1
    assert "the audit FAILED" in result.out
    assert f"PROBLEM {changed}, row " in result.out
    report = call("audit", changed, "-m", model, "--json").document
    assert not report["passed"]
    assert report["problem_count"] >= 1


def test_a_table_that_was_not_changed_passes(model: Path, released: Path) -> None:
    copy = rewritten(released, rows(released))
    assert done("audit", copy, "-m", model).out.endswith("the audit found nothing wrong\n")


def test_the_row_of_an_edited_certificate_is_named(model: Path, released: Path) -> None:
    changed = rewritten(released, edited_sip(rows(released)))
    (problem,) = call("audit", changed, "-m", model, "--json").document["problems"]
    assert problem.startswith(f"row {len(LIVE)}: sip must be 0.")


@pytest.mark.parametrize(
    "fields", [{"outcome": "guessed"}, {"sequence": "first"}, {"sip": "little"}, {"ldp": ""}]
)
def test_a_row_that_cannot_be_read_is_a_problem(
    model: Path, released: Path, fields: dict[str, str]
) -> None:
    records = rows(released)
    records[6] |= fields
    changed = rewritten(released, records)
    result = call("audit", changed, "-m", model)
    assert result.code == 1
    assert f"{changed}, row 7: outcome, sequence, sip and ldp must be" in result.out


def test_only_the_first_few_problems_are_told_and_all_are_counted(
    model: Path, released: Path
) -> None:
    records = rows(released)
    for row in records:
        row["ldp"] = "7.0"
    report = call("audit", rewritten(released, records), "-m", model, "--json").document
    assert (len(report["problems"]), report["problem_count"]) == (8, len(LIVE))
    assert report["problem_kinds"] == {"rows": len(LIVE)}


def test_another_model_is_refused(models: Path, released: Path) -> None:
    for name in ("levels", "bins"):
        result = call("audit", released, "-m", models / f"{name}.model")
        assert result.code == 2
        assert "model must be the one the release was made with" in result.err


def test_the_same_places_with_other_habits_are_another_model(
    released: Path, tmp_path: Path
) -> None:
    history = table(tmp_path / "history.csv", walk(99, rows=300))
    fit = ("--stream", "person", "--value", "place", "-o", tmp_path / "other.model")
    done("fit", history, *fit)
    assert call("audit", released, "-m", tmp_path / "other.model").code == 2


@pytest.mark.parametrize(
    "change",
    [{"epsilon": 0.7}, {"method": "calibrated"}, {"epsilon": None, "budget": 8.0, "horizon": 10}],
)
def test_another_plan_is_found_out(
    model: Path, released: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    rules = json.loads(Path(f"{released}.plan.json").read_text())
    other = tmp_path / "other.plan.json"
    write_rules(other, rules | change)
    result = call("audit", released, "-m", model, "--plan", other)
    assert result.code == 1
    assert "must be" in result.out
    ledger = released.with_name("city.ledger")
    kept = call("audit", released, "-m", model, "--plan", other, "--ledger", ledger)
    assert kept.code == 2
    assert "another model, budget, loss, method or length of batch" in kept.err


def test_an_audit_needs_the_rules_of_the_release(model: Path, released: Path) -> None:
    Path(f"{released}.plan.json").unlink()
    result = call("audit", released, "-m", model)
    assert result.code == 2
    assert "be the file that `release` wrote" in result.err


# The ledger --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answered", "words"),
    [
        (LIVE[:-6], "the ledger "),
        ([row for row in LIVE if row[0] != "person-1"], "the ledger must hold this event"),
    ],
    ids=["fewer rows", "a stream less"],
)
def test_a_table_that_says_more_than_the_ledger_is_found(
    model: Path, released: Path, tmp_path: Path, answered: list[tuple[str, str]], words: str
) -> None:
    live = table(tmp_path / "live.csv", answered)
    short = tmp_path / "short.ledger"
    rule = ("--epsilon", 0.8, *FAST, "--ledger", short)
    done("release", live, "-m", model, *rule, "-o", tmp_path / "short.csv")
    result = call("audit", released, "-m", model, "--ledger", short)
    assert result.code == 1
    assert words in result.out


def test_a_missing_ledger_is_named_and_not_made(
    model: Path, released: Path, tmp_path: Path
) -> None:
    missing = tmp_path / "missing.ledger"
    result = call("audit", released, "-m", model, "--ledger", missing)
    assert (result.code, missing.exists()) == (2, False)
    assert result.err == f"sfumato: {missing}: the ledger must exist; it does not\n"


def test_an_audit_changes_nothing(model: Path, released: Path) -> None:
    folder = released.parent
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done("audit", released, "-m", model, "--ledger", folder / "city.ledger")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("table_", ["missing.csv", "empty.csv", "live.csv"])
def test_a_table_that_release_did_not_write_is_refused(
    model: Path, released: Path, table_: str
) -> None:
    folder = released.parent
    (folder / "empty.csv").touch()
    rules = ("--plan", f"{released}.plan.json")
    result = call("audit", folder / table_, "-m", model, *rules)
    assert result.code == 2
    assert result.err.startswith(f"sfumato: {folder / table_}: ")


# What all outputs tell about one value ------------------------------------------------------------


def test_an_audit_says_what_all_outputs_told_about_one_value(released: Path, model: Path) -> None:
    document = done("audit", released, "-m", model, "--json").document
    read = load(model)
    assert isinstance(read, StreamModel)
    chain = read.single_values
    records = by_stream(rows(released))
    for person, entry in document["streams"].items():
        # By hand: randomised response has a likelihood of e^eps for what it says, and 1 else.
        told = [
            np.exp(0.8 * (np.array(chain.alphabet.labels) == row["released"]))
            for row in records[person]
        ]
        assert entry["one_value"] == pytest.approx(
            _smoothed(chain.transition(), chain.initial, told)
        )
        assert 0 < entry["one_value"] <= entry["sip"]


def _smoothed(
    move: np.ndarray[Any, Any], first: np.ndarray[Any, Any], told: list[np.ndarray[Any, Any]]
) -> float:
    """Forward and back, in plain matrices."""
    worst = 0.0
    for moment in range(len(told)):
        ahead = np.ones(len(first))
        for one in reversed(told[moment + 1 :]):
            ahead = move @ (one * ahead)
        past, prior = first * told[0], first
        for one in told[1 : moment + 1]:
            past, prior = (past @ move) * one, prior @ move
        posterior = past * ahead / (past @ ahead)
        worst = max(worst, float(np.abs(np.log(posterior / prior)).max()))
    return worst


def test_an_audit_of_batches_says_it_too_and_never_more_than_the_sum(
    model: Path, tmp_path: Path
) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    done("release", live, "-m", model, "--epsilon", 0.6, "--batch", 2, "-o", private)
    document = done("audit", private, "-m", model, "--json").document
    assert document["passed"]
    for entry in document["streams"].values():
        assert 0 < entry["one_value"] < entry["sip"]
