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


def test_a_series_is_attacked_by_its_certificate(tmp_path: Path) -> None:
    numbers = [20 + (7 * t % 11) + 5 * (t % 3) for t in range(40)]
    for name in ("counts.csv", "last.csv"):
        (tmp_path / name).write_text("cnt\n" + "\n".join(map(str, numbers)) + "\n")
    out = tmp_path / "out.csv"
    for method, by in (("realtime", "smoother"), ("laplace", "particles")):
        out = tmp_path / f"{method}.csv"
        asked = ("--value", "cnt", "--sensitivity", "1", "--epsilon", "40", "--method", method)
        done("realtime", tmp_path / "counts.csv", *asked, "--seed", "1", "-o", out)
        known = ("--known", tmp_path / "last.csv", "--against", tmp_path / "counts.csv")
        files = ("-o", tmp_path / f"{method}-guesses.csv", "--plot", tmp_path / f"{method}.svg")
        told = json.loads(done("attack", out, *known, *files, "--json").out)
        assert told["job"] == "realtime" and told["by"].startswith(by)
        assert 0 < told["expected_error"] <= told["noise"] * 1.01
        guesses = [float(row["guess"]) for row in rows_of(tmp_path / f"{method}-guesses.csv")]
        off = [guess - true for guess, true in zip(guesses, numbers, strict=True)]
        mean = (sum(one * one for one in off) / len(off)) ** 0.5
        assert told["measured"]["error"] == pytest.approx(mean)
        assert (tmp_path / f"{method}.svg").exists()
    text = done("attack", out, "--against", tmp_path / "counts.csv").out
    assert "many processes tried" in text and "the best constant" in text


def test_published_columns_are_attacked_by_their_certificate(tmp_path: Path) -> None:
    for name, count in (("people.csv", 60), ("others.csv", 200)):
        lines = [f"{'fm'[n % 2]},{150 + 20 * (n % 2) + n * 7 % 9}" for n in range(count)]
        (tmp_path / name).write_text("sex,height\n" + "\n".join(lines) + "\n")
    asked = ("--columns", "height", "--accuracy", "2", "--sigma", "3", "--noise", "uniform")
    more = ("--keep", "sex", "--history", tmp_path / "others.csv", "--order", "kept")
    out = tmp_path / "noisy.csv"
    done("publish", "--table", tmp_path / "people.csv", *asked, *more, "--seed", "2", "-o", out)
    known = ("--known", tmp_path / "others.csv", "--against", tmp_path / "people.csv")
    told = json.loads(done("attack", out, *known, "-o", tmp_path / "guess.csv", "--json").out)
    assert told["rows"] == 60 and told["refuted"] is False
    assert told["measured"]["blind"] < told["measured"]["share"] <= 1
    assert told["measured"]["low"] <= told["certified"]
    true, guesses = rows_of(tmp_path / "people.csv"), rows_of(tmp_path / "guess.csv")
    near = [
        abs(float(a["height"]) - float(b["height"])) <= 2 * (1 + 1e-9)
        for a, b in zip(true, guesses, strict=True)
    ]
    assert told["measured"]["share"] == pytest.approx(sum(near) / 60)
    # A certificate that promises less than is seen is refuted.
    certificate = Path(f"{out}.certificate.json")
    forged = json.loads(certificate.read_text()) | {"delta": 0.01}
    certificate.write_text(json.dumps(forged))
    result = call("attack", out, *known)
    assert result.code == 1 and "REFUTED" in result.out
    # Not by who knows the people themselves, in whatever order, nor without the truth.
    lines = (tmp_path / "people.csv").read_text().splitlines()
    (tmp_path / "same.csv").write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    for same in ("people.csv", "same.csv"):
        mine = ("--known", tmp_path / same, "--against", tmp_path / "people.csv")
        result = call("attack", out, *mine)
        assert result.code == 2 and "REFUTED" not in result.out
        assert "--known must be records of others: the people of --against are" in result.err
        assert call("attack", out, *mine[:2]).code == 0


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ((), "--model must be the model that `sfumato fit` wrote, for a release of streams"),
        (("private.csv",), "RELEASED must be one file, without --model"),
    ],
)
def test_what_a_file_needs_is_said(town: Path, asked: tuple[str, ...], message: str) -> None:
    result = call("attack", town / "private.csv", *(town / one for one in asked))
    assert result.code == 2
    assert message in result.err
