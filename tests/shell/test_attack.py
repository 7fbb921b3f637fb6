"""`sfumato attack`: what it says is what the library finds; a false certificate is refuted."""

import csv
import json
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.attacks import attack_tracks
from sfumato.stream import read_tracks
from sfumato.tables.readers import Table
from tests.shell.running import call, done, litter
from tests.shell.running import rows as rows_of


def attack(home: Path, *more: object) -> tuple[object, ...]:
    return "attack", home / "private.csv", "-m", home / "city.model", *more


def test_the_command_says_what_the_library_finds(town: Path) -> None:
    against = ("--against", town / "live.csv", "-o", town / "guesses.csv", "--json")
    told = json.loads(done(*attack(town, *against)).out)
    read = sf.load(town / "city.model")
    assert isinstance(read, sf.stream.StreamModel)
    loss = sf.loss.hamming(read.alphabet)
    plan = sf.Plan(read.chain, sf.PerStep(sf.SIP(1.0)), loss, purpose=sf.Purpose.SIMULATION)
    tracks = read_tracks(Table.at(str(town / "private.csv")), read)
    found = attack_tracks(tracks, plan)
    assert told["expected"]["first"] == found.expected_first
    assert told["expected"]["error"] == found.expected_error
    gains = dict(zip(tracks.streams, found.gains, strict=True))
    for one in told["gains"]:
        assert one["at_least"] == gains[one["stream"]].epsilon
        assert 0.9 * one["certified"] < one["at_least"] <= one["certified"]
    # By hand: the first guess beside the true place, row by row.
    truths: dict[str, list[str]] = {}
    for row in rows_of(town / "live.csv"):
        truths.setdefault(row["person"], []).append(row["place"])
    guesses = rows_of(town / "guesses.csv")
    right = [g["likeliest_1"] == truths[g["person"]][int(g["sequence"])] for g in guesses]
    assert told["measured"]["values"] == len(right) == 40
    assert told["measured"]["first"]["mean"] == pytest.approx(sum(right) / 40)


def test_rows_that_certify_less_than_was_seen_to_leak_are_refuted(town: Path) -> None:
    honest = town / "private.csv"
    rows = rows_of(honest)
    with honest.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows({**row, "sip": "0.7"} for row in rows)
    result = call(*attack(town, "-q"))
    assert result.code == 1
    assert "REFUTED stream person-0: SIP leakage at least" in result.out
    assert json.loads(call(*attack(town, "--json")).out)["gains"][0]["refuted"] is True


def test_people_are_named_where_streams_have_other_names(town: Path) -> None:
    text = (town / "history.csv").read_text().replace("person-", "known-")
    (town / "others.csv").write_text(text)
    out = done(*attack(town, "--known", town / "others.csv", "--top", "1", "-q")).out
    assert "stream person-0 is likeliest known-" in out
    assert "by chance" not in out


def test_the_picture_is_drawn_and_nothing_else_is_left(town: Path) -> None:
    done(*attack(town, "--plot", town / "attack.svg", "--against", town / "live.csv"))
    assert (town / "attack.svg").read_bytes().startswith(b"<?xml")
    assert litter(town) == []


def test_a_row_without_a_leakage_is_named(town: Path) -> None:
    released = town / "private.csv"
    lines = released.read_text().splitlines()
    lines[2] = lines[2].replace(lines[2].split(",")[4], "much")
    released.write_text("\n".join(lines) + "\n")
    result = call(*attack(town))
    assert result.code == 2
    assert "row 2: sip must be a leakage" in result.err


def test_a_network_is_asked_whose_it_is(town: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sfumato.attacks.recurrent_network as network

    small = network.NetworkSpec(hidden=4, window=20, steps=5, seed=3)
    monkeypatch.setattr(network, "NetworkSpec", lambda seed: small)
    known = ("--known", town / "history.csv", "--network", "chain", "--seed", "3")
    shown = ("--against", town / "live.csv", "--plot", town / "who.svg", "--json")
    told = json.loads(done(*attack(town, *known, *shown)).out)["people"]["accuracy"]
    assert {one["of"] for one in told} == {
        *("released", "true values", "released, by a network", "true values, by a network")
    }
    assert all(one["low"] <= one["share"] <= one["high"] for one in told)
    assert (town / "who.svg").exists()
    out = done(*attack(town, *known, "-q")).out
    assert "from released, by a network: owner among the first 1 of" in out


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("--network", "chain"), "--network must come with --known"),
        (("--known", "history.csv", "--network", "all"), "--network must be one of values, chain"),
        (("--seed", "3"), "--seed must come with --network"),
    ],
)
def test_what_a_network_needs_is_said(town: Path, asked: tuple[str, ...], message: str) -> None:
    result = call(*attack(town, *(town / one if one.endswith("csv") else one for one in asked)))
    assert result.code == 2
    assert message in result.err
