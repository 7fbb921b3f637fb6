"""The commands of a ledger, and the files beside it."""

import struct
from pathlib import Path

from sfumato.store.chain import head_file, value_tag
from sfumato.store.keys import key_file
from sfumato.store.ledger_reader import LedgerReader
from tests.shell.releasing import RULE
from tests.shell.running import call, done, piped, refused, rows
from tests.shell.tables import PLACES, table


def test_a_head_that_is_gone_is_remarked_on(model: Path, tmp_path: Path) -> None:
    live, ledger = table(tmp_path / "live.csv", [("a", PLACES[0])]), tmp_path / "l.ledger"
    run = ("release", live, "-m", model, *RULE, "--ledger", ledger, "-o", tmp_path / "p.csv")
    assert "whether this is an older copy" not in done(*run).err
    head_file(ledger).unlink()
    assert "whether this is an older copy" in done(*run, "--append").err
    assert "whether this is an older copy" not in done(*run, "--append").err


# The commands ------------------------------------------------------------------------------------


def test_the_commands_check_export_and_copy(model: Path, tmp_path: Path) -> None:
    live, ledger = table(tmp_path / "live.csv", [("a", p) for p in PLACES]), tmp_path / "l.ledger"
    run = ("release", "-", "-m", model, *RULE, "--source", "live.csv", "--ledger", ledger)
    with piped(*run, "-o", "-") as pipe:
        for line in live.read_text().splitlines():
            pipe.send(line)
        told = [pipe.receive() for _ in range(5)]
        backed = done("ledger", "backup", ledger, tmp_path / "copy", "--json").document
        assert pipe.ended()[0] == 0
    found = done("ledger", "check", ledger, "--json").document
    assert (found["passed"], found["rows"], found["inputs"]) == (True, 4, {"live.csv": 4})
    assert backed == {"copy": str(tmp_path / "copy"), "rows": 4, "head": found["head"]}
    assert f"head: {found['head']}" in done("ledger", "check", ledger).out
    done("ledger", "export", tmp_path / "copy", "-o", tmp_path / "all.csv")
    kept = [(row["stream"], row["sequence"], row["released"]) for row in rows(tmp_path / "all.csv")]
    assert kept == [tuple(line.split(",")[:3]) for line in told[1:]]
    refused(call("ledger", "export", ledger, "-o", ledger), "file of its own")
    refused(call("ledger", "check", tmp_path / "none"), "the ledger must exist")
    refused(call("ledger", "check", ledger, "--expect-head", "?"), "a head must be ROWS:HASH")


# The key of the digests --------------------------------------------------------------------------


def test_the_ledger_alone_cannot_test_a_guess(model: Path, tmp_path: Path) -> None:
    """Digests need the key file, and never repeat for equal values."""
    live, ledger = table(tmp_path / "live.csv", [("a", PLACES[0])] * 20), tmp_path / "l.ledger"
    done("release", live, "-m", model, *RULE, "--ledger", ledger, "-o", tmp_path / "p.csv")
    with LedgerReader(ledger) as reader:
        answers = list(reader.history())
    assert len({answer.tag for answer in answers}) == 20
    secret = key_file(ledger).read_bytes()
    assert secret not in ledger.read_bytes()
    assert key_file(ledger).stat().st_mode & 0o777 == 0o600
    guesses = [value_tag(secret, answers[0].id, "a", place) for place in PLACES]
    assert guesses[0] == answers[0].tag and answers[0].tag not in guesses[1:]


def test_a_key_that_others_can_read_is_refused(model: Path, tmp_path: Path) -> None:
    live, ledger = table(tmp_path / "live.csv", [("a", PLACES[0])]), tmp_path / "l.ledger"
    run = ("release", live, "-m", model, *RULE, "--ledger", ledger, "-o", tmp_path / "p.csv")
    done(*run)
    key_file(ledger).chmod(0o644)
    refused(call(*run, "--append"), "nobody but its owner may read it")


def test_a_ledger_holds_no_value_that_was_never_released(models: Path, tmp_path: Path) -> None:
    raws = [f"{11 + i / 3:.6f}" for i in range(30)]
    live = table(tmp_path / "live.csv", [("person-1", raw) for raw in (*raws, "99.123456")])
    rule = ("--epsilon", 1, "--when-unknown", "suppress", "--method", "randomized-response")
    private, path = tmp_path / "private.csv", tmp_path / "city.ledger"
    done("release", live, "-m", models / "bins.model", *rule, "--ledger", path, "-o", private)
    kept = path.read_bytes()
    assert all(row["released"].encode() in kept for row in rows(private))
    assert b"suppressed" in kept
    assert not any(raw.encode() in kept for raw in (*raws, "99.123456"))
    assert not any(struct.pack(order, float(raw)) in kept for raw in raws for order in ("<d", ">d"))
