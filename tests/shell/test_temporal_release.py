"""`sfumato temporal release` and `audit`: three ways that agree, and what is refused."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from sfumato import temporal
from sfumato.core.certificate import certificate_document
from sfumato.core.randomness import seeded
from sfumato.tables.readers import Table
from sfumato.temporal.temporal_run import release_streams
from sfumato.temporal.temporal_spec import TemporalSpec, read_spec
from tests.oracles.temporal import ExactLoss, exact_event
from tests.shell.running import TOKEN, call, done, litter, piped, refused, rows

# A shell that starts the tests in the background lets them ignore SIGINT; nobody else does.
signal.signal(signal.SIGINT, signal.default_int_handler)

BACK, FORTH = [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]]
STICKY = [[0.95, 0.05], [0.05, 0.95]]


def matrix(path: Path, table: list[list[float]]) -> Path:
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in table))
    return path


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    path = tmp_path / "counts.csv"
    moments = [f"{town},{100 + 9 * t},{300 - 9 * t}" for t in range(10) for town in "ab"]
    path.write_text("\n".join(["town,home,road", *moments]) + "\n")
    return path


@pytest.fixture
def rule(tmp_path: Path) -> tuple[object, ...]:
    back, forth = matrix(tmp_path / "back.csv", BACK), matrix(tmp_path / "forth.csv", FORTH)
    shape = ("--stream", "town", "--value", "home", "--value", "road", "--alpha", 1)
    return (*shape, "--backward", back, "--forward", forth)


def test_the_call_the_command_and_its_json_agree(
    counts: Path, rule: tuple[object, ...], tmp_path: Path
) -> None:
    one, other, third = (tmp_path / name for name in ("1.csv", "2.csv", "3.csv"))
    said = done("temporal", "release", counts, *rule, "--seed", 7, "-o", one).err
    told = done("temporal", "release", counts, *rule, "--seed", 7, "-o", other, "--json").document
    spec = TemporalSpec(
        alpha=1.0,
        stream="town",
        values=("home", "road"),
        backward=[BACK],
        forward=[FORTH],
        purpose="simulation",
    )
    assert temporal.release_streams is release_streams
    assert "release_streams" in dir(temporal)
    report = release_streams(
        Table.at(str(counts)), Table.at(str(third)), spec, randomness=seeded(7)
    )
    assert one.read_text() == other.read_text() == third.read_text()
    assert read_spec(f"{one}.plan.json") == spec
    plain = json.loads(json.dumps(certificate_document(report.certificate), default=str))
    assert told["certificate"] == plain
    for one_guarantee in report.certificate.guarantees:
        assert str(one_guarantee) in said
    spent = [float(row["epsilon"]) for row in rows(one) if row["town"] == "a"]
    exact = float(exact_event(spent, ExactLoss(BACK), ExactLoss(FORTH)))
    assert told["certificate"]["guarantees"][0]["alpha"] == pytest.approx(exact, rel=1e-9)
    audited = done("temporal", "audit", one, "--simulation", "--json").document
    assert audited["certificate"] == plain


def test_days_go_on_in_a_ledger_and_the_audit_reads_it(
    counts: Path, rule: tuple[object, ...], tmp_path: Path
) -> None:
    ledger, first, again = (tmp_path / name for name in ("t.ledger", "1.csv", "2.csv"))
    run = ("temporal", "release", counts, *rule, "--ledger", ledger)
    done(*run, "-o", first)
    refused(call(*run, "-o", again), "add --resume")
    assert done(*run, "-o", again, "--resume", "--json").document["repeated"] == 20
    assert first.read_text() == again.read_text()
    assert done(*run, "-o", tmp_path / "3.csv", "--append", "--json").document["repeated"] == 0
    told = done("temporal", "audit", "--ledger", ledger, "--json").document
    assert (told["passed"], told["rows"]) == (True, 40)
    refused(
        call(
            "temporal",
            "release",
            counts,
            *rule[:-1],
            rule[-3],
            "--ledger",
            ledger,
            "-o",
            again,
            "--append",
        ),
        "need a ledger of their own",
    )
    changed = first.read_text().replace("released,0.4998", "released,0.4999", 1)
    first.write_text(changed)
    failed = call("temporal", "audit", first, "--ledger", ledger)
    assert failed.code == 1
    assert "PROBLEM" in failed.out
    assert failed.out.endswith("the audit FAILED\n")


def test_streams_have_matrices_of_their_own(tmp_path: Path) -> None:
    matrix(tmp_path / "quick.csv", FORTH)
    matrix(tmp_path / "sticky.csv", STICKY)
    people, live = tmp_path / "people.csv", tmp_path / "live.csv"
    people.write_text("stream,backward,forward\na,quick.csv,quick.csv\nb,sticky.csv,\n")
    live.write_text("user,place\n" + "a,home\nb,road\n" * 6)
    asked: tuple[object, ...] = ("--stream", "user", "--value", "place", "--mechanism", "response")
    asked = (*asked, "--own", people, "--alpha", 1, "--steps", 6, "--values", "home,road")
    private = tmp_path / "private.csv"
    told = done("temporal", "release", live, *asked, "-o", private, "--json").document
    scopes = [one["scope"] for one in told["certificate"]["guarantees"]]
    assert "strongest" in scopes[1]
    assert {row["released"] for row in rows(private)} <= {"home", "road"}
    done("temporal", "audit", private)
    live.write_text("user,place\nc,home\n")
    refused(call("temporal", "release", live, *asked, "-o", tmp_path / "c.csv"), "row 1", "'c'")
    people.write_text("stream,backward,forward\na,quick.csv,\na,quick.csv,\n")
    refused(call("temporal", "release", live, *asked, "-o", tmp_path / "c.csv"), "row 2")


def test_a_pipe_answers_line_by_line_and_stops_at_once(
    rule: tuple[object, ...], tmp_path: Path
) -> None:
    ledger = tmp_path / "t.ledger"
    with piped("temporal", "release", "-", *rule, "--ledger", ledger, "-o", "-") as pipe:
        pipe.send("town,home,road")
        pipe.send("a,100,300")
        assert pipe.receive() == "town,sequence,home,road,outcome,epsilon"
        assert pipe.receive().startswith("a,0,")
        pipe.process.send_signal(signal.SIGINT)
        code, _, said = pipe.ended()
    assert code == 130
    assert "interrupted; what was answered is complete; add --resume to go on" in said
    assert done("temporal", "audit", "--ledger", ledger, "--json").document["rows"] == 1


REFUSALS: dict[str, tuple[tuple[object, ...], str]] = {
    "no matrix": (("--stream", "town", "--value", "home", "--alpha", 1), "matrices must be given"),
    "alpha": (("--alpha", 0), "alpha"),
    "mechanism": (("--mechanism", "laplace"), "mechanism"),
    "allocation": (("--allocation", "even", "--steps", 3), "allocation"),
    "symbols": (("--mechanism", "response"), "--values must be given"),
    "both": (("--resume", "--append", "--ledger", "x"), "--append"),
    "nothing to resume": (("--resume",), "be the ledger of the interrupted run"),
    "key and seed": (("--key-file", "x", "--seed", 1), "--seed"),
    "steps": (("--steps", 3), "row 7"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_kept_is_refused_before_anything_leaves(
    name: str, counts: Path, rule: tuple[object, ...], tmp_path: Path
) -> None:
    more, word = REFUSALS[name]
    asked = more if name == "no matrix" else (*rule, *more)
    result = call("temporal", "release", counts, *asked, "-o", tmp_path / "private.csv")
    refused(result if result.err.startswith("sfumato") else _last(result), word)
    assert not (tmp_path / "private.csv").exists()
    assert litter(tmp_path) == []


def _last(result: Any) -> Any:
    """Without the warning of a seed."""
    from dataclasses import replace

    return replace(result, err=result.err.splitlines()[-1] + "\n")


def test_a_value_is_never_quoted(rule: tuple[object, ...], tmp_path: Path) -> None:
    live = tmp_path / "live.csv"
    live.write_text(f"town,home,road\na,{TOKEN},3\n")
    refused(call("temporal", "release", live, *rule, "-o", tmp_path / "p.csv"), "whole number")
