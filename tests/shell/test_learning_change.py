"""A release that learnt, and noticed a change: read by `recover`, `learn`, `drift` and `audit`."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.stream.version_files import load_versions
from tests.shell.running import call, done, rows
from tests.shell.tables import csv_bytes

STREAMS, MOMENTS, CHANGED = 20, 60, 20
RULES = ("--epsilon", 4, "--learn", "--learn-after", 100, "--scouts", 2, "--ready", 0.0001)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Bits that stay with .95, and from their 20th moment on with .05; few values are enough."""
    home = tmp_path_factory.mktemp("changed")
    coins, values, told = random.Random(7), [who % 2 for who in range(STREAMS)], []
    for moment in range(MOMENTS):
        told += [(f"u{who}", moment, "ab"[value]) for who, value in enumerate(values)]
        stay = 0.95 if moment < CHANGED else 0.05
        values = [value if coins.random() < stay else 1 - value for value in values]
    (home / "live.csv").write_bytes(csv_bytes(["user", "when", "value"], told))
    done("fit", "--uniform", "--values", "a,b", "--stream", "user", "-o", home / "start.model")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfumato.stream.model_versions._NARROW", 1.0)
        patch.setattr("sfumato.stream.model_versions._WALKS", 1)
        patch.setattr("sfumato.stream.model_versions._LENGTH", 4)
        given = ("release", home / "live.csv", "-m", home / "start.model", "--seed", 6, *RULES)
        kept = ("--time", "when", "--ledger", home / "l.ledger", "-o", home / "p.csv")
        said = done(*given, *kept)
        assert "under the estimates of its versions, step by step" in said.err
        yield home


def both(house: Path, command: str, *more: object) -> list[str]:
    """What a command says of the table, and of the ledger alone."""
    given = ("-m", house / "start.model", *more)
    return [
        done(command, house / "p.csv", *given).out,
        done(command, "--ledger", house / "l.ledger", *given).out,
    ]


def alarm(house: Path) -> int:
    """How many values had left when the release noticed the change."""
    (found,) = (one for one in load_versions(house / "p.csv.versions").versions if one.restarts)
    assert 400 < found.values < 1_100
    return found.values


def test_values_are_recovered_before_and_after_the_change(house: Path) -> None:
    counted = ("-o", house / "g.csv", "--flows", house / "f.csv", "--json")
    table, ledger = map(json.loads, both(house, "recover", *counted))
    assert table == ledger and table["rows"] == STREAMS * MOMENTS
    assert "those before a change that the release noticed" in table["assumes"]
    truth = {(one["user"], one["when"]): one["value"] for one in rows(house / "live.csv")}
    # A ledger orders the values of a stream, not those of different streams.
    guessed = {(one["user"], one["sequence"]): one for one in rows(house / "g.csv")}
    assert guessed.keys() == truth.keys()
    # Until the change is noticed values are taken to move as before it.
    sure = [
        (one, truth[where])
        for where, one in guessed.items()
        if int(where[1]) < CHANGED or int(where[1]) * STREAMS >= alarm(house)
    ]
    wrong = sum(one["recovered"] != value for one, value in sure)
    assert wrong < sum(one["released"] != value for one, value in sure)
    free = call("recover", house / "p.csv", "-m", house / "start.model", "--ledger", house / "no")
    assert free.code == 2 and "must exist" in free.err


def test_what_is_learnt_is_how_values_move_since_the_change(house: Path, tmp_path: Path) -> None:
    out = tmp_path / "learnt.model"
    table, ledger = map(json.loads, both(house, "learn", "-o", out, "--order", 1, "--json"))
    assert table == ledger
    assert table["left_out"] == alarm(house)
    assert table["values"] == STREAMS * MOMENTS - alarm(house)
    assert table["beats_model"] and "versions" in table["unproven"]
    said = done("learn", house / "p.csv", "-m", house / "start.model", "-o", out, "--order", 1)
    assert f"{alarm(house):,} values that left before the release noticed a change" in said.out


def test_the_last_set_is_tested_for_a_further_change(house: Path) -> None:
    table, ledger = both(house, "drift", "--block", 50)
    assert table == ledger
    last = load_versions(house / "p.csv.versions").versions[-1].number
    assert f"any chain of version {last}" in table and "confidence 0.95" in table
    assert "no drift was found" in table
    given = ("drift", house / "p.csv", "-m", house / "start.model", "--radius", 0.1)
    refused = call(*given)
    assert refused.code == 2 and "its set is tested" in refused.err


def test_an_audit_says_three_numbers_of_each_start_and_of_both(house: Path) -> None:
    given = ("audit", house / "p.csv", "-m", house / "start.model", "--simulation")
    said = done(*given).out
    assert "added up over 2 starts of learning" in said and "nothing wrong" in said
    assert "the leakage under no single chain" in said
    found = json.loads(done(*given, "--json").out)
    assert len(found["starts"]) == 2
    for name, whole in found["truth"]["streams"].items():
        parts = [part["streams"][name] for part in found["starts"]]
        assert [part["steps"] for part in parts] == [
            alarm(house) // STREAMS,
            MOMENTS - alarm(house) // STREAMS,
        ]
        for number in ("truth", "over_set", "ldp"):
            assert whole[number] == pytest.approx(sum(part[number] for part in parts))
        assert whole["truth"] <= whole["over_set"] + 1e-9 <= whole["ldp"] + 2e-9
        assert whole["sip"] == pytest.approx(found["streams"][name]["sip"])
        assert whole["ldp"] == pytest.approx(found["streams"][name]["ldp"])


def test_nothing_is_read_where_nothing_is_given(house: Path) -> None:
    found = call("recover", "-m", house / "start.model")
    assert found.code == 2 and "or come with --ledger" in found.err
    asked = call("attack", house / "p.csv", "-m", house / "start.model")
    assert asked.code == 2 and "a release with --learn is read by" in asked.err
