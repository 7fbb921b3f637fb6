from collections.abc import Sequence
from pathlib import Path

import pytest

from sfumato.stream.release_document import read_spec
from sfumato.stream.release_spec import ReleaseSpec
from tests.shell.releasing import COLUMNS, FAST, LIVE, RULE, grouped, ledger_of, refused
from tests.shell.running import call, done, rows
from tests.shell.tables import PLACES, by_stream, table, write

# Twice with one ledger ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["optimal", "randomized-response"])
def test_a_resumed_run_draws_nothing(model: Path, tmp_path: Path, method: str) -> None:
    live, ledger = table(tmp_path / "live.csv", LIVE), tmp_path / "city.ledger"
    spec = ReleaseSpec(epsilon=1.0, method=method)
    run = ("release", live, "-m", model, "--epsilon", 1, "--method", method, "--ledger", ledger)
    done(*run, "-o", tmp_path / "first.csv")
    before = ledger_of(ledger, model, spec)
    report = done(*run, "--resume", "-o", tmp_path / "second.csv", "--json").document
    assert (report["rows"], report["repeated"], report["streams"]) == (len(LIVE), len(LIVE), 3)
    assert (tmp_path / "second.csv").read_bytes() == (tmp_path / "first.csv").read_bytes()
    assert ledger_of(ledger, model, spec) == before


def test_without_a_ledger_the_coins_are_fresh(model: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", LIVE)
    for name in ("first.csv", "second.csv"):
        done("release", live, "-m", model, *RULE, "-o", tmp_path / name)
    assert (tmp_path / "first.csv").read_bytes() != (tmp_path / "second.csv").read_bytes()


def test_a_table_that_grew_is_answered_from_where_it_grew(model: Path, tmp_path: Path) -> None:
    run = ("-m", model, *RULE, "--ledger", tmp_path / "city.ledger")
    live = table(tmp_path / "live.csv", LIVE[:25])
    done("release", live, *run, "-o", tmp_path / "first.csv")
    table(live, LIVE)
    more = ("--resume", "-o", tmp_path / "second.csv", "--json")
    report = done("release", live, *run, *more).document
    assert (report["rows"], report["repeated"]) == (len(LIVE), 25)
    assert rows(tmp_path / "second.csv")[:25] == rows(tmp_path / "first.csv")


def test_the_name_of_the_source_tells_events_apart(model: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", LIVE[:10])
    run = ("-m", model, *RULE, "--ledger", tmp_path / "city.ledger", "--json")
    done("release", live, *run, "-o", tmp_path / "first.csv")
    same = ("--source", "live.csv", "--resume", "-o", tmp_path / "second.csv")
    again = done("release", live, *run, *same)
    other = done("release", live, *run, "--source", "tuesday", "-o", tmp_path / "third.csv")
    assert (again.document["repeated"], other.document["repeated"]) == (10, 0)
    first = {row["sequence"] for row in rows(tmp_path / "first.csv")}
    third = by_stream(rows(tmp_path / "third.csv"))
    assert first == {"0", "1", "2", "3", "4"}
    assert all(int(s[0]["sequence"]) == len(s) for s in third.values())


def test_a_ledger_of_another_rule_is_refused(model: Path, tmp_path: Path) -> None:
    live, ledger = table(tmp_path / "live.csv", LIVE[:5]), tmp_path / "city.ledger"
    done("release", live, "-m", model, *RULE, "--ledger", ledger, "-o", tmp_path / "a.csv")
    kept = ledger_of(ledger, model)
    for other in (("--epsilon", 2, *FAST), ("--epsilon", 1, "--method", "calibrated")):
        said = refused(live, "-m", model, *other, "--ledger", ledger, output=tmp_path / "b.csv")
        assert said.startswith(f"sfumato: {ledger}: this ledger was begun with another")
    assert ledger_of(ledger, model) == kept


def test_a_seed_never_mixes_with_a_real_ledger(model: Path, tmp_path: Path, key: Path) -> None:
    live = table(tmp_path / "live.csv", LIVE[:5])
    run = (live, "-m", model, *RULE)
    for first, second in ((("--seed", 1), ()), ((), ("--seed", 1)), (("--seed", 1), ("-q",))):
        ledger = tmp_path / f"{len(first)}{len(second)}.ledger"
        done("release", *run, *first, "--ledger", ledger, "-o", tmp_path / "first.csv")
        said = refused(*run, *second, "--ledger", ledger, output=tmp_path / "second.csv")
        assert "need a ledger of their own" in said
    said = refused(*run, "--seed", 1, "--key-file", key, output=tmp_path / "second.csv")
    assert "--seed must not come with --key-file" in said


def test_a_seed_gives_the_same_simulation_again_and_says_so(model: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", LIVE)
    for name in ("first.csv", "second.csv"):
        result = done("release", live, "-m", model, *RULE, "--seed", 5, "-o", tmp_path / name)
        assert "guessable coins; treat the output as a simulation" in result.err
    assert (tmp_path / "first.csv").read_bytes() == (tmp_path / "second.csv").read_bytes()
    assert read_spec(tmp_path / "first.csv.plan.json").purpose == "simulation"


def test_a_key_gives_the_same_coins_again(model: Path, tmp_path: Path, key: Path) -> None:
    live = table(tmp_path / "live.csv", LIVE)
    other = tmp_path / "other.key"
    other.write_bytes(b"another secret of enough bytes")
    other.chmod(0o600)
    for name, secret in (("first.csv", key), ("second.csv", key), ("third.csv", other)):
        done("release", live, "-m", model, *RULE, "--key-file", secret, "-o", tmp_path / name)
    assert (tmp_path / "first.csv").read_bytes() == (tmp_path / "second.csv").read_bytes()
    assert (tmp_path / "first.csv").read_bytes() != (tmp_path / "third.csv").read_bytes()


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_a_key_that_others_can_reach_is_refused_unless_told(
    model: Path, tmp_path: Path, key: Path, mode: int
) -> None:
    live = table(tmp_path / "live.csv", LIVE[:2])
    run = (live, "-m", model, *RULE, "--key-file", key)
    key.chmod(mode)
    said = refused(*run, output=tmp_path / "a.csv")
    assert "--key-file must be readable by its owner alone" in said and "--shared-key" in said
    done("release", *run, "--shared-key", "-o", tmp_path / "a.csv")


def test_a_key_with_the_content_of_a_public_file_is_refused(
    model: Path, tmp_path: Path, key: Path
) -> None:
    live = table(tmp_path / "live.csv", LIVE)
    for public in (live, model):
        key.write_bytes(public.read_bytes())
        for secret in (key, public):
            public.chmod(0o600)
            said = refused(
                live, "-m", model, *RULE, "--key-file", secret, output=tmp_path / "a.csv"
            )
            assert "not be a public file of the same call" in said


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (bytes(64), "8 different bytes"),
        (b"\xff" * 16, "8 different bytes"),
        (b"aaaabbbbccccdddd" * 4, "8 different bytes"),
        (b"abcdefghij" * 4, "16 bytes that do not repeat"),
    ],
)
def test_a_key_that_is_too_plain_is_refused(
    model: Path, tmp_path: Path, key: Path, content: bytes, rule: str
) -> None:
    live = table(tmp_path / "live.csv", LIVE[:2])
    key.write_bytes(content)
    said = refused(live, "-m", model, *RULE, "--key-file", key, output=tmp_path / "a.csv")
    assert rule in said and "abcdef" not in said and "aaaa" not in said


@pytest.mark.parametrize("content", [b"", b"short"])
def test_a_key_that_is_too_short_is_refused(model: Path, tmp_path: Path, content: bytes) -> None:
    secret = tmp_path / "secret.key"
    secret.write_bytes(content)
    secret.chmod(0o600)
    live = table(tmp_path / "live.csv", LIVE[:2])
    said = refused(live, "-m", model, *RULE, "--key-file", secret, output=tmp_path / "private.csv")
    assert "at least 16 bytes" in said


# Event ids ---------------------------------------------------------------------------------------


def events(path: Path, records: Sequence[tuple[str, str, str]]) -> Path:
    return write(path, ["id", "person", "place"], records)


def test_an_event_gets_the_same_answer_from_any_source(model: Path, tmp_path: Path) -> None:
    records = [(f"e{i}", person, place) for i, (person, place) in enumerate(LIVE[:12])]
    run = ("-m", model, *RULE, "--event", "id", "--ledger", tmp_path / "city.ledger")
    monday = events(tmp_path / "monday.csv", records[:9])
    tuesday = events(tmp_path / "tuesday.csv", records[6:])
    done("release", monday, *run, "-o", tmp_path / "first.csv")
    report = done("release", tuesday, *run, "-o", tmp_path / "second.csv", "--json").document
    first, second = rows(tmp_path / "first.csv"), rows(tmp_path / "second.csv")
    assert list(first[0]) == ["event", *COLUMNS]
    assert [row["event"] for row in second] == [f"e{i}" for i in range(6, 12)]
    assert second[:3] == first[6:]
    assert (report["rows"], report["repeated"]) == (6, 3)


@pytest.mark.parametrize("group", [1, 2, 3])
@pytest.mark.parametrize("ledger", ["in memory", "on disk"])
def test_an_event_id_at_another_position_is_refused(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ledger: str, group: int
) -> None:
    grouped(monkeypatch, group)
    live = events(
        tmp_path / "live.csv",
        [("e1", "a", PLACES[0]), ("e2", "a", PLACES[1]), ("e1", "a", PLACES[2])],
    )
    kept = ("--ledger", tmp_path / "city.ledger") if ledger == "on disk" else ()
    said = refused(
        live, "-m", model, *RULE, "--event", "id", *kept, output=tmp_path / "private.csv"
    )
    rule = "an event id must occur once; it stands in row 1 too"
    assert said == f"sfumato: {live}, row 3: {rule}"


def test_an_event_at_another_row_of_a_later_run_gets_its_old_answer(
    model: Path, tmp_path: Path
) -> None:
    run = ("-m", model, *RULE, "--event", "id", "--ledger", tmp_path / "city.ledger")
    live = events(tmp_path / "live.csv", [("e1", "a", PLACES[0])])
    done("release", live, *run, "-o", tmp_path / "first.csv")
    events(live, [("e0", "a", PLACES[1]), ("e1", "a", PLACES[0])])
    done("release", live, *run, "-o", tmp_path / "second.csv")
    assert rows(tmp_path / "second.csv")[1] == rows(tmp_path / "first.csv")[0]


def test_an_event_id_in_two_streams_is_refused(model: Path, tmp_path: Path) -> None:
    run = ("-m", model, *RULE, "--event", "id", "--ledger", tmp_path / "city.ledger")
    live = events(tmp_path / "live.csv", [("e1", "a", PLACES[0]), ("e1", "b", PLACES[1])])
    said = refused(live, *run, output=tmp_path / "private.csv")
    assert said == f"sfumato: {live}, row 2: an event id must not occur in two streams"
    other = events(tmp_path / "other.csv", [("e1", "b", PLACES[0])])
    said = refused(other, *run, output=tmp_path / "private.csv")
    assert said == f"sfumato: {other}, row 1: an event id must not occur in two streams"


@pytest.mark.parametrize("column", ["id", "person", "place"])
def test_an_empty_field_is_refused(model: Path, tmp_path: Path, column: str) -> None:
    record = {"id": "e2", "person": "a", "place": PLACES[0]} | {column: ""}
    live = events(
        tmp_path / "live.csv",
        [("e1", "a", PLACES[0]), (record["id"], record["person"], record["place"])],
    )
    said = refused(live, "-m", model, *RULE, "--event", "id", output=tmp_path / "private.csv")
    assert said.startswith(f"sfumato: {live}, row 2: ")
    assert "must not be empty" in said


def test_an_audit_of_a_simulation_fails_unless_it_was_meant(model: Path, tmp_path: Path) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    done("release", live, "-m", model, *RULE, "--seed", 3, "-o", private)
    failed = call("audit", private, "-m", model)
    assert failed.code == 1
    assert "A SIMULATION: its coins can be guessed" in failed.out
    assert failed.out.endswith("the audit FAILED\n")
    assert call("audit", private, "-m", model, "--json").document["passed"] is False
    meant = done("audit", private, "-m", model, "--simulation", "--json").document
    assert (meant["passed"], meant["purpose"]) == (True, "simulation")


def test_a_release_says_that_its_total_is_large(model: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", LIVE)
    run = ("release", live, "-m", model, "--epsilon", 100, *FAST)
    assert "A LARGE TOTAL" in done(*run, "-o", tmp_path / "private.csv").err
