"""Audits with the key of the coins: every draw once more; reports of audits, and ways to cheat."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from sfumato.core.randomness import Address, Domain, Randomness, _Keyed, keyed
from sfumato.models.stream_model import StreamModel
from sfumato.store.attestation import canonical
from sfumato.store.files import load
from sfumato.store.live import Answered, Asked
from sfumato.store.sqlite import SqliteStore
from sfumato.stream.live_release import open_release
from sfumato.stream.release_document import document
from sfumato.stream.release_spec import JOB, ReleaseSpec
from tests.shell.running import call, done, refused
from tests.shell.tables import table, walk, write

PLANS: dict[str, tuple[object, ...]] = {
    "values": ("--epsilon", 0.8, "--method", "optimal"),
    "total": (
        *("--budget", 4, "--horizon", 12, "--when-exhausted", "repeat"),
        *("--method", "optimal", "--every", 1),
    ),
    "bursts": ("--budget", 4, "--horizon", 60, "--every", 3, "--method", "optimal"),
    "sight": ("--epsilon", 0.8, "--method", "far-sighted"),
    "batches": ("--epsilon", 0.5, "--batch", 2, "--method", "optimal"),
    "response": ("--epsilon", 0.8, "--method", "randomized-response"),
    "suppress": ("--epsilon", 0.8, "--method", "optimal", "--when-unknown", "suppress"),
    "substitute": ("--epsilon", 0.8, "--method", "optimal", "--when-unknown", "substitute"),
}


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    key = tmp_path / "year.key"
    # Known: with some keys no coin makes a difference, of the few that a burst has.
    key.write_bytes(hashlib.sha256(b"a year").digest())
    key.chmod(0o600)
    return key


def live(folder: Path, plan: str) -> Path:
    rows = walk(11, rows=60)
    if plan in ("suppress", "substitute"):
        rows[5] = (rows[5][0], "nowhere")
        rows[31] = (rows[31][0], "elsewhere")
    return table(folder / "live.csv", rows)


@contextlib.contextmanager
def one_coin_turned(sequence: int) -> Iterator[None]:
    """A releaser that tosses again where it does not like a coin: one moment of each stream."""
    honest, together = _Keyed.at, _Keyed.words_at

    def at(self: _Keyed, address: Address) -> Randomness:
        if address.domain is Domain.STREAM and address.sequence == sequence:
            address = Address(address.domain, address.plan, address.stream, sequence + 10**6)
        return honest(self, address)

    def words_at(
        self: _Keyed, plan: bytes, streams: Any, which: Any, moments: Any, helpers: Any
    ) -> Any:
        turned = np.where(moments == sequence, sequence + 10**6, moments)
        return together(self, plan, streams, which, turned, helpers)

    with mock.patch.object(_Keyed, "at", at), mock.patch.object(_Keyed, "words_at", words_at):
        yield


@pytest.mark.parametrize(
    "plan", [pytest.param(name, marks=[pytest.mark.slow] * (name == "sight")) for name in PLANS]
)
def test_every_draw_is_repeated_and_one_turned_coin_is_found(
    plan: str, model: Path, secret: Path, tmp_path: Path
) -> None:
    source, options = live(tmp_path, plan), (*PLANS[plan], "--key-file", secret, "--quiet")
    honest = tmp_path / "honest.csv"
    done("release", source, "-m", model, *options, "-o", honest)
    asked = ("-m", model, "--against", source, "--key-file", secret, "--json")
    assert done("audit", honest, *asked).document["problems"] == []
    for sequence in range(0, 12, 2 if plan == "batches" else 1):
        biased = tmp_path / f"biased-{sequence}.csv"
        with one_coin_turned(sequence):
            done("release", source, "-m", model, *options, "-o", biased)
        if biased.read_bytes() != honest.read_bytes():
            break
    else:
        pytest.fail("no coin made a difference")
    # Certificates of the biased rows are right: without a key nothing shows.
    assert done("audit", biased, "-m", model, "--against", source, "--json").document["passed"]
    result = call("audit", biased, *asked)
    assert result.code == 1
    told = "what left is not what the key draws for the true value"
    assert any(told in problem for problem in result.document["problems"])
    assert set(result.document["problem_kinds"]) == {"coins"}


def test_the_key_must_be_the_one_that_was_committed_to(
    model: Path, secret: Path, tmp_path: Path
) -> None:
    source, output = live(tmp_path, "values"), tmp_path / "private.csv"
    ledger = ("--ledger", tmp_path / "town.ledger", "--append")
    options = ("--epsilon", 0.8, "--method", "optimal", "--key-file", secret, *ledger, "--quiet")
    done("release", source, "-m", model, *options, "-o", output)
    commitment = done("key", "commit", secret).out.strip()
    seal = json.loads(Path(f"{output}.plan.json").read_text())["sealed"]
    assert seal["commitment"] == commitment
    own = done("key", "commit", tmp_path / "town.ledger.key").out.strip()
    assert seal["ledger_commitment"] == own != commitment
    asked = ("audit", output, "-m", model, "--against", source, "--key-file")
    assert "every draw was repeated" in done(*asked, secret, "--commitment", commitment).out
    result = call(*asked, secret, "--commitment", 64 * "0")
    assert result.code == 1
    assert "PROBLEM the key must be the one that was committed to" in result.out
    done("key", "new", tmp_path / "other.key")
    assert "the key must be the one that the plan names" in call(*asked, tmp_path / "other.key").out
    refused(call("audit", output, "-m", model, "--key-file", secret), "--against")
    refused(call("audit", output, "-m", model, "--commitment", commitment), "--key-file")


def test_draws_of_a_live_ledger_are_repeated_with_the_key_of_that_ledger(
    model: Path, secret: Path, tmp_path: Path
) -> None:
    rows, path = walk(11, rows=60), tmp_path / "city.ledger"
    source, own = table(tmp_path / "true.csv", rows), tmp_path / "own.key"
    fitted = load(model)
    assert isinstance(fitted, StreamModel)
    rules = document(ReleaseSpec(epsilon=0.8, loss="hamming"), fitted)
    run, store = open_release(
        *(rules, fitted, None, lambda *given: SqliteStore(path, given[0], job=JOB, rules=given[2])),
        *(keyed(secret.read_bytes()), "http key=year"),
    )
    replies = run.answer([Asked(str(n), *row) for n, row in enumerate(rows)])
    told = [one.answers[0] for one in replies if isinstance(one, Answered)]
    store.close()
    done("key", "derive", secret, "--ledger", path, "-o", own)
    assert own.stat().st_mode & 0o777 == 0o600 and own.read_bytes() != secret.read_bytes()
    refused(call("key", "derive", secret, "--ledger", path, "-o", own), "not exist")
    # What left, as `push` writes it, beside the rules that the ledger has.
    columns = ("person", "sequence", "released", "outcome", "sip", "ldp")
    cells = [(a.stream, a.sequence, a.released, a.outcome, a.leakage, a.model_free) for a in told]
    left = write(tmp_path / "left.csv", columns, cells)
    Path(f"{left}.plan.json").write_bytes(rules)
    asked = ("audit", left, "-m", model, "--ledger", path, "--against", source, "--key-file")
    assert "every draw was repeated" in done(*asked, own).out
    assert "what left is not what the key draws" in call(*asked, secret).out


def test_the_key_of_a_checkpoint_is_derived_from_the_id_of_its_query(
    secret: Path, tmp_path: Path
) -> None:
    folder, own = tmp_path / "checkpoint", tmp_path / "own.key"
    folder.mkdir()
    (folder / "metadata").write_text('{"id":"6f0a4cbe-6a3e-4c43-9f7c-1b1e1f0f2a11"}')
    done("key", "derive", secret, "--checkpoint", folder, "-o", own)
    message = b"ledger 6f0a4cbe-6a3e-4c43-9f7c-1b1e1f0f2a11"
    assert own.read_bytes() == hmac.digest(secret.read_bytes(), message, "sha256")
    both = ("--checkpoint", folder, "--ledger", tmp_path / "no.ledger")
    for wrong in ((), both):
        refused(call("key", "derive", secret, *wrong, "-o", tmp_path / "x"), "not both")
    for text in ("{", "{}", "[1]", '{"id": 7}'):
        (folder / "metadata").write_text(text)
        asked = ("key", "derive", secret, "--checkpoint", folder, "-o", tmp_path / "x")
        refused(call(*asked), "streaming query of Spark")


@pytest.fixture
def two_days(model: Path, tmp_path: Path) -> Path:
    """Two days in one ledger, each drawn with a key of its own."""
    people = walk(11, rows=80)
    for number, day in enumerate((people[:50], people[50:]), start=1):
        source = table(tmp_path / f"day{number}.csv", day)
        done("key", "new", tmp_path / f"k{number}.key")
        options = (*PLANS["values"], "--ledger", tmp_path / "town.ledger", "--append", "--quiet")
        keyed = ("--key-file", tmp_path / f"k{number}.key", "-o", tmp_path / f"d{number}.csv")
        done("release", source, "-m", model, *options, *keyed)
    return tmp_path


def test_what_stands_in_the_ledger_alone_is_not_said_to_be_repeated(
    two_days: Path, model: Path
) -> None:
    known = ("--against", two_days / "day2.csv", "--key-file", two_days / "k2.key")
    ledger = ("--ledger", two_days / "town.ledger")
    asked = ("audit", two_days / "d2.csv", "-m", model, *ledger, *known)
    report = two_days / "report.json"
    said = done(*asked, "--report", report).out
    assert "30 of 80 draws were repeated with the key" in said and "every draw" not in said
    left = "50 draws with the key: they stand in the ledger alone, without their true values"
    assert f"not checked: {left}" in said
    document = done(*asked, "--json").document
    assert document["replayed"] == {"repeated": 30, "due": 80, "whole": False}
    assert left in document["unchecked"]
    written = json.loads(report.read_text())
    assert "every" not in written["level"]
    assert "draws: 30 of 80 draws were repeated with the key" in written["checked"]
    assert left in written["not_checked"]


def test_streams_that_were_left_out_are_not_said_to_be_repeated(
    two_days: Path, model: Path
) -> None:
    source = two_days / "day1.csv"
    rows = [line.split(",")[0] for line in source.read_text().splitlines()[1:]]
    own, report = rows.count(rows[0]), two_days / "report.json"
    assert 0 < own < len(rows) == 50
    known = ("--against", source, "--key-file", two_days / "k1.key")
    asked = ("audit", two_days / "d1.csv", "-m", model, *known)
    assert "every draw was repeated with the key" in done(*asked).out
    said = done(*asked, "--only", rows[0], "--report", report).out
    assert f"{own} of 50 draws were repeated with the key" in said
    left = f"{50 - own} rows of streams that --only leaves out"
    assert f"not checked: {left}" in said
    document = done(*asked, "--only", rows[0], "--json").document
    assert document["replayed"] == {"repeated": own, "due": 50, "whole": False}
    written = json.loads(report.read_text())
    assert f"draws: {own} of 50 draws were repeated with the key" in written["checked"]
    assert left in written["not_checked"]
    # The ledger holds both days: what --only leaves out of it counts once.
    ledger = ("--ledger", two_days / "town.ledger", "--only", rows[0], "--json")
    document = done("audit", two_days / "d1.csv", "-m", model, *ledger).document
    later = (two_days / "day2.csv").read_text().splitlines()[1:]
    others = 50 - own + sum(line.split(",")[0] != rows[0] for line in later)
    assert f"{others} rows of streams that --only leaves out" in document["unchecked"]


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_a_key_of_words_is_not_committed_to_and_that_is_told(
    model: Path, key: Path, secret: Path, tmp_path: Path, quiet: tuple[str, ...]
) -> None:
    source, output = live(tmp_path, "values"), tmp_path / "private.csv"
    options = ("--epsilon", 0.8, "--method", "optimal", *quiet, "-o", output)
    told = (
        "no commitment to the key leaves with this"
        in done("release", source, "-m", model, "--key-file", key, *options).err
    )
    assert told is not bool(quiet)
    assert json.loads(Path(f"{output}.plan.json").read_text())["sealed"].get("commitment") is None
    said = done("release", source, "-m", model, "--key-file", secret, *options).err
    assert "no commitment" not in said


@pytest.fixture
def reported(model: Path, secret: Path, tmp_path: Path) -> Path:
    """A folder with a release, and the report of its audit in three forms."""
    source, output = live(tmp_path, "values"), tmp_path / "private.csv"
    options = (
        "--epsilon",
        0.8,
        "--method",
        "optimal",
        "--key-file",
        secret,
        "--quiet",
        "-o",
        output,
    )
    done("release", source, "-m", model, *options)
    (tmp_path / "city.model").write_bytes(model.read_bytes())
    pages = [("--report", tmp_path / f"audit.{form}") for form in ("json", "html", "md")]
    done("audit", output, "-m", tmp_path / "city.model", *(part for page in pages for part in page))
    return tmp_path


def test_a_report_of_an_audit_says_what_was_read_and_what_was_not_checked(reported: Path) -> None:
    document = json.loads((reported / "audit.json").read_text())
    assert [file["role"] for file in document["files"]] == ["output", "plan", "model"]
    assert document["passed"] and document["level"].startswith("anyone")
    assert document["totals"]["rows"] == 60
    assert any("the coins were fair" in line for line in document["not_checked"])
    assert any("SIP(0.8) for each value" in line for line in document["promise"])
    assert document["time"].endswith("+00:00")
    page = (reported / "audit.html").read_text()
    for text in (document["written"], document["files"][0]["sha256"], "NOT checked", "SIP(0.8)"):
        assert text in page


def test_a_report_names_the_policy_that_was_read_and_not_another_beside_the_model(
    model: Path, tmp_path: Path
) -> None:
    """The one of the release has a name of its own; `city.policy` is of another budget."""
    city, output = tmp_path / "city.model", tmp_path / "private.csv"
    city.write_bytes(model.read_bytes())
    step = ("--method", "step-wise", "--steps", 64, "--quiet")
    kept = tmp_path / "city.kept.policy"
    done("compile", "-m", city, "--epsilon", 0.8, *step, "-o", kept)
    done("compile", "-m", city, "--epsilon", 0.5, *step, "-o", tmp_path / "city.policy")
    rule = ("--epsilon", 0.8, "--method", "step-wise", "--policy", kept, "--quiet", "-o", output)
    done("release", live(tmp_path, "values"), "-m", city, *rule)
    report = tmp_path / "audit.json"
    done("audit", output, "-m", city, "--report", report)
    named = json.loads(report.read_text())["files"]
    assert [each["name"] for each in named if each["role"] == "policy"] == [kept.name]
    assert "finds the same again" in done("verify-report", report).out
    # Elsewhere, under another name, it is known by its digest, and by its fingerprint.
    moved = tmp_path / "elsewhere.bin"
    kept.rename(moved)
    assert "finds the same again" in done("verify-report", report, moved).out
    refused(call("audit", output, "-m", city), "policy of this release does not lie beside")


def test_a_report_of_an_audit_is_found_again(reported: Path) -> None:
    assert "finds the same again" in done("verify-report", reported / "audit.json").out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.__setitem__("passed", False), "passed: the report says false"),
        (lambda d: d["totals"].__setitem__("largest_sip", 0.1), "totals.largest_sip: the report"),
        (lambda d: d["streams"].pop(next(iter(d["streams"]))), ": missing"),
        (lambda d: d["promise"].clear(), "promise: the report says []"),
    ],
)
def test_an_edited_report_of_an_audit_shows(
    reported: Path,
    change: object,
    message: str,
) -> None:
    from sfumato.store.attestation import written_digest

    report = reported / "audit.json"
    document = json.loads(report.read_text())
    change(document)  # type: ignore[operator]
    document["written"] = written_digest("report", document)
    report.write_text(canonical(document))
    result = call("verify-report", report)
    assert result.code == 1
    assert message in result.out


def test_a_report_beside_true_values_tells_none_of_them(reported: Path) -> None:
    asked = ("-m", reported / "city.model", "--against", reported / "live.csv")
    key = ("--key-file", reported / "year.key", "--report", reported / "more.json")
    done("audit", reported / "private.csv", *asked, *key)
    document = json.loads((reported / "more.json").read_text())
    assert document["level"].startswith("holder of the key")
    assert [each["sha256"] for each in document["files"]][-2:] == [None, None]
    told = json.dumps(document)
    for name in ('"loss"', '"gain"', "_loss", "live.csv", "year.key", "e-value"):
        assert name not in told
    assert "not contradicted" in done("verify-report", reported / "more.json").out


def test_a_report_is_for_releases_and_written_where_it_can_be(reported: Path) -> None:
    asked = ("audit", reported / "private.csv", "-m", reported / "city.model", "--report")
    refused(call(*asked, reported / "x.txt"), ".json, .html, .md")
    write(reported / "counts.csv", ["cnt"], [(100 + row,) for row in range(20)])
    series = ("--value", "cnt", "--sensitivity", 1, "--epsilon", 1, "--quiet")
    done("realtime", reported / "counts.csv", *series, "-o", reported / "out.csv")
    refused(call("audit", reported / "out.csv", "--report", reported / "x.json"), "sfumato verify")
