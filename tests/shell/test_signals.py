"""Rows of a far-sighted release name the output of their channel: written, kept, audited, used."""

import csv
import itertools
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

from sfumato.cli.rule_choice import policy_of
from sfumato.core.errors import InvalidParameter
from sfumato.models.markov import MarkovChain
from sfumato.models.stream_model import StreamModel
from sfumato.store.files import load
from sfumato.stream.policy_files import policy_named
from sfumato.stream.release_document import read_spec
from sfumato.tables.readers import Table
from tests.shell.releasing import COLUMNS
from tests.shell.running import call, done, rows
from tests.shell.tables import FORMATS, table, walk

RULE = ("--epsilon", 0.6, "--method", "far-sighted")
SIGNALLED = [*COLUMNS[:3], "signal", *COLUMNS[3:]]
LIVE = walk(5, rows=40, symbols=("in", "out"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two places where people stay."""
    folder = tmp_path_factory.mktemp("two")
    steady = [("a", "in" if place % 13 < 10 else "out") for place in range(390)]
    table(folder / "history.csv", steady)
    columns = ("--stream", "person", "--value", "place", "--quiet")
    done("fit", folder / "history.csv", *columns, "-o", folder / "two.model")
    return folder / "two.model"


@pytest.fixture
def private(model: Path, tmp_path: Path, key: Path) -> Path:
    """A release with its ledger."""
    live = table(tmp_path / "live.csv", LIVE)
    keeping = ("--ledger", tmp_path / "two.ledger", "--key-file", key)
    done("release", live, "-m", model, *RULE, *keeping, "-o", tmp_path / "private.csv")
    return tmp_path / "private.csv"


def audited(private: Path, model: Path, *more: object) -> tuple[bool, str]:
    result = call("audit", private, "-m", model, *more, "--json")
    return result.code == 0, result.out + result.err


def test_signals_leave_beside_what_was_released_and_no_other_release_has_any(
    private: Path, model: Path, tmp_path: Path
) -> None:
    told = rows(private)
    assert list(told[0]) == SIGNALLED
    assert {row["signal"] for row in told} >= {"0", "1"}
    passed, _ = audited(private, model, "--against", tmp_path / "live.csv")
    assert passed
    other = ("--epsilon", 0.6, "--method", "step-wise", "-o", tmp_path / "other.csv")
    done("release", tmp_path / "live.csv", "-m", model, *other)
    assert list(rows(tmp_path / "other.csv")[0]) == COLUMNS


def test_a_retry_has_its_old_signal(private: Path, model: Path, tmp_path: Path, key: Path) -> None:
    again, keeping = tmp_path / "again.csv", ("--ledger", tmp_path / "two.ledger", "--resume")
    # Other coins: what is the same was kept, not drawn alike.
    done("release", tmp_path / "live.csv", "-m", model, *RULE, *keeping, "-o", again)
    assert again.read_bytes() == private.read_bytes()
    passed, said = audited(private, model, "--ledger", tmp_path / "two.ledger")
    assert passed, said
    done("ledger", "export", tmp_path / "two.ledger", "-o", tmp_path / "all.csv")
    exported = {
        (row["stream"], row["sequence"]): row["signal"] for row in rows(tmp_path / "all.csv")
    }
    assert exported == {(row["person"], row["sequence"]): row["signal"] for row in rows(private)}


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_carries_signals(
    private: Path, model: Path, tmp_path: Path, key: Path, format: str
) -> None:
    other = tmp_path / f"other.{format}"
    secret = ("--key-file", key)
    done("release", tmp_path / "live.csv", "-m", model, *RULE, *secret, "-o", other)
    chunks = Table.at(str(other)).chunks(["signal"])
    told = [signal for chunk in chunks for signal in chunk.columns["signal"]]
    due = [row["signal"] for row in rows(private)]
    kind = str if format == "csv" else int
    assert told == [kind(signal) for signal in due]
    passed, said = audited(other, model)
    assert passed, said
    piped = call(
        *("release", "-", "-m", model, *RULE, *secret, "-o", "-"),
        stdin=(tmp_path / "live.csv").read_bytes(),
    )
    assert piped.out == private.read_text()


def edited(private: Path, change: dict[str, str]) -> Path:
    """The table with another cell in its fifth row."""
    told = rows(private)
    told[4] |= change
    other = private.with_name("edited.csv")
    shutil.copy(f"{private}.plan.json", f"{other}.plan.json")
    with other.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(told[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(told)
    return other


@pytest.mark.parametrize(
    ("signal", "rule"),
    [
        ("", "stand at each release of a far-sighted plan"),
        ("97", "be one that the channel can release"),
        ("-1", "the number of an output"),
        ("0.0", "the number of an output"),
        ("00", "the number of an output"),
        ("one", "the number of an output"),
    ],
)
def test_a_signal_that_is_missing_forged_or_out_of_range_fails(
    private: Path, model: Path, signal: str, rule: str
) -> None:
    other = edited(private, {"signal": signal})
    passed, said = audited(other, model)
    assert not passed and rule in said
    assert call("recover", other, "-m", model).code == 2


def test_another_output_of_the_channel_fails(private: Path, model: Path) -> None:
    (own,) = {row["signal"] for row in rows(private)[4:5]}
    passed, _ = audited(edited(private, {"signal": "1" if own == "0" else "0"}), model)
    assert not passed  # it releases another symbol, or what was leaked later does not fit


def test_a_table_without_its_signals_fails(private: Path, model: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.csv"
    shutil.copy(f"{private}.plan.json", f"{bare}.plan.json")
    with bare.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows(private))
    passed, said = audited(bare, model)
    assert not passed and "signal" in said
    refused = call("recover", bare, "-m", model)
    assert refused.code == 2 and "signal" in refused.err


def test_moments_without_a_release_have_no_signal(model: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", [*LIVE[:5], (LIVE[0][0], ""), *LIVE[5:9]])
    private = tmp_path / "private.csv"
    done("release", live, "-m", model, *RULE, "--missing", "skip", "-o", private)
    assert [row["signal"] == "" for row in rows(private)].count(True) == 1
    passed, said = audited(private, model)
    assert passed, said


def test_recovery_is_brute_force_over_all_tracks_given_values_and_signals(
    model: Path, tmp_path: Path, key: Path
) -> None:
    truth = ("in", "in", "in", "out", "out", "in", "in", "in")
    live = table(tmp_path / "live.csv", [("a", place) for place in truth])
    private, guesses = tmp_path / "private.csv", tmp_path / "guesses.csv"
    done("release", live, "-m", model, *RULE, "--key-file", key, "-o", private)
    done("recover", private, "-m", model, "-o", guesses)
    read = load(model)
    assert isinstance(read, StreamModel) and isinstance(read.chain, MarkovChain)
    spec = read_spec(f"{private}.plan.json")
    assert spec.policy is not None
    found = policy_named(spec.policy, model)
    assert found is not None and found[1].name.startswith("two.")
    plan = spec.plan(read, found[0])
    state, likelihoods, not_first = plan.begin("a"), [], 0
    for row in rows(private):
        ready = plan.prepare(state)
        assert ready is not None
        not_first += ready.output(read.alphabet.indices([row["released"]])) != int(row["signal"])
        likelihoods.append(ready.design.channel.likelihood(int(row["signal"])))
        _, state = plan.observe(state, [row["released"]], signal=int(row["signal"]))
    assert not_first > 0  # the symbol alone would mislead
    first, move = read.chain.first().joint, read.chain.transition()
    posterior = np.zeros((8, 2))
    for track in itertools.product(range(2), repeat=8):
        weight = first[track[0]]
        for here, (before, now) in enumerate(itertools.pairwise(track), 1):
            weight *= move[before, now] * likelihoods[here][now]
        weight *= likelihoods[0][track[0]]
        for moment, place in enumerate(track):
            posterior[moment, place] += weight
    posterior /= posterior.sum(axis=1, keepdims=True)
    labels = read.alphabet.labels
    for row, due in zip(rows(guesses), posterior, strict=True):
        assert row["recovered"] == labels[int(due.argmax())]
        assert float(row["probability"]) == pytest.approx(due.max(), abs=1e-12)


def test_a_policy_that_model_and_rules_do_not_make_is_told(
    model: Path, private: Path, tmp_path: Path
) -> None:
    """Without the file of the release, whoever has model and rules compiles the policy again."""
    read, spec = load(model), read_spec(f"{private}.plan.json")
    assert isinstance(read, StreamModel)
    clean = tmp_path / "clean" / "two.model"
    policy, where = policy_of(spec, None, read, str(clean))
    assert policy is not None and (policy.fingerprint, where) == (spec.policy, None)
    swapped = msgspec.structs.replace(spec, policy=64 * "0")
    with pytest.raises(InvalidParameter, match="another policy than model and rules make"):
        policy_of(swapped, None, read, str(clean))
