"""What the rules of a release promise, what its file was, and what several releases tell."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from sfumato.core.errors import InvalidParameter
from sfumato.models.stream_model import StreamModel
from sfumato.store.files import load
from sfumato.stream.audit_promise import Required, broken_promises
from sfumato.stream.audit_total import total
from sfumato.stream.release_spec import ReleaseSpec
from tests.audit.scene import Scene
from tests.shell.running import call, done
from tests.shell.tables import read

STEP = ReleaseSpec(epsilon=0.5, ldp=1.0)
HORIZON = ReleaseSpec(budget=10.0, horizon=50)
WINDOW = ReleaseSpec(budget=3.0, window=10)


@pytest.mark.parametrize(
    ("spec", "limit", "kept"),
    [
        (STEP, "0.5/value", True),
        (STEP, "0.49/value", False),
        (STEP, "0.5", True),
        (STEP, "25/50", True),
        (STEP, "24/50", False),
        (STEP, "1000/stream", False),
        (HORIZON, "10/50", True),
        (HORIZON, "10/1", True),  # all of it may be spent on one value
        (HORIZON, "9.9/value", False),
        (HORIZON, "10/stream", True),
        (WINDOW, "3/10", True),
        (WINDOW, "3/value", True),
        (WINDOW, "3/11", False),
        (WINDOW, "6/11", True),
        (WINDOW, "3/stream", False),
    ],
)
def test_a_required_budget_is_for_so_many_values(
    scenes: dict[str, Scene], spec: ReleaseSpec, limit: str, kept: bool
) -> None:
    model = load(scenes["csv"].model)
    assert isinstance(model, StreamModel)
    found = [rule for rule in broken_promises(spec, model, Required(budget=limit)) if "SIP" in rule]
    assert found == [] if kept else len(found) == 1


@pytest.mark.parametrize("limit", ["much", "1/decade", "1/Day", "day", "1/0", "-1", "nan", "1/2.5"])
def test_a_limit_that_means_nothing_is_refused(scenes: dict[str, Scene], limit: str) -> None:
    model = load(scenes["csv"].model)
    assert isinstance(model, StreamModel)
    with pytest.raises(InvalidParameter):
        list(broken_promises(STEP, model, Required(ldp=limit)))


@pytest.mark.parametrize("name", ["csv", "jsonl", "packed", "parquet", "batch", "grid"])
def test_the_rules_say_how_the_file_was_written(scenes: dict[str, Scene], name: str) -> None:
    scene = scenes[name]
    seal = json.loads(scene.rules.read_text())["sealed"]
    records = read(scene.private)
    assert seal["rows"] == len(records)
    assert seal["streams"] == len({record["person"] for record in records})
    assert seal["sha256"] == hashlib.sha256(scene.private.read_bytes()).hexdigest()
    assert seal["complete"] is True
    assert seal["program"].startswith("sfumato ")


def test_the_promise_stands_in_the_report(scenes: dict[str, Scene]) -> None:
    scene = scenes["csv"]
    told = scene.audit().out
    assert "promise: SIP(0.8) for each value, no cap whatever the model" in told
    model = load(scene.model)
    assert isinstance(model, StreamModel)
    assert f"made with: model {model.chain.fingerprint}, policy none, sfumato " in told
    promise = scene.audit("--json").document["promise"]
    assert (promise["epsilon"], promise["unit"], promise["ldp"]) == (0.8, "for each value", None)
    assert (promise["purpose"], promise["method"]) == ("release", "randomized-response")
    for required in (model.chain.fingerprint, scene.model):
        assert scene.audit("--require-model", required, "--require-budget", "0.8/value").code == 0


def test_an_interrupted_release_says_so(scenes: dict[str, Scene], tmp_path: Path) -> None:
    scene = scenes["csv"].copied(tmp_path / "scene")
    scene.plan(lambda rules: rules["sealed"].update(complete=False))
    result = scene.audit()
    assert result.code == 0
    assert "INTERRUPTED: the file ends where the release was stopped" in result.out


def test_some_streams_are_looked_at_alone(scenes: dict[str, Scene]) -> None:
    scene = scenes["csv"]
    whole = scene.audit("--json").document["streams"]
    some = scene.audit("--only", "person-1", "--only", "person-2", "--json").document
    assert some["passed"]
    assert some["streams"] == {name: whole[name] for name in some["streams"]}
    assert set(some["streams"]) == {"person-1", "person-2"}
    assert some["rows"] == sum(entry["steps"] for entry in some["streams"].values())
    assert scene.audit("--only", "nobody").code == 2


def test_rows_after_a_bad_one_are_told_once(scenes: dict[str, Scene], tmp_path: Path) -> None:
    scene = scenes["csv"].copied(tmp_path / "scene")
    records = read(scene.private)
    row = next(i for i, record in enumerate(records) if record["sequence"] == "5")
    person = records[row]["person"]
    after = sum(record["person"] == person for record in records[row + 1 :])
    scene.cell(row + 1, "outcome", lambda text: "guessed")
    report = scene.audit("--json").document
    assert report["problem_kinds"] == {"rows": 1, "unverifiable": 1}
    assert report["unverifiable"] == after
    assert f"{after} rows of stream {person!r} cannot be verified after row {row + 1}" in str(
        report
    )
    others = {name for name in report["streams"] if name != person}
    whole = scenes["csv"].audit("--json").document["streams"]
    assert all(report["streams"][name] == whole[name] for name in others)


# Several releases of the same people -------------------------------------------------------------


def leakages(prior: np.ndarray, channel: np.ndarray) -> tuple[float, float]:
    """Leakage under a prior, and whatever the prior, of one channel, by looking at every pair."""
    marginal = prior @ channel
    sip = np.abs(np.log(channel / marginal)).max()
    ldp = np.log(channel.max(axis=0) / channel.min(axis=0)).max()
    return float(sip), float(ldp)


def test_releases_together_tell_no_more_than_stated_and_more_than_the_sum() -> None:
    """Every output of two or three channels on one value, by brute force."""
    rng = np.random.default_rng(12)
    beyond = 0
    for _ in range(300):
        size, count = int(rng.integers(2, 5)), int(rng.integers(2, 4))
        prior = rng.dirichlet(np.ones(size))
        channels = [rng.dirichlet(np.ones(3), size) * 0.9 + 0.1 / 3 for _ in range(count)]
        parts = [leakages(prior, channel) for channel in channels]
        joint = channels[0]
        for channel in channels[1:]:
            joint = (joint[:, :, None] * channel[:, None, :]).reshape(size, -1)
        sip, ldp = leakages(prior, joint)
        told = total(parts)
        assert sip <= told[0] * (1 + 1e-12)
        assert ldp <= told[1] * (1 + 1e-12)
        assert told[0] <= told[1]
        beyond += sip > sum(part[0] for part in parts) * (1 + 1e-9)
    assert beyond > 30, "leakages under a model do not add up: a plain sum would be too small"


def test_several_releases_of_the_same_people_are_added_up(
    scenes: dict[str, Scene], tmp_path: Path
) -> None:
    scene = scenes["csv"].copied(tmp_path / "scene")
    other = scene.folder / "other.csv"
    rule = ("--epsilon", 0.4, "--method", "randomized-response")
    done("release", scene.live, "-m", scene.model, *rule, "-o", other)
    files = ("audit", scene.private, other, "-m", scene.model)
    report = done(*files, "--against", scene.live, "--against", scene.live, "--json").document
    assert report["passed"]
    assert len(report["releases"]) == 2
    for stream, entry in report["together"].items():
        parts = [one["streams"][stream] for one in report["releases"]]
        assert entry["releases"] == 2
        assert entry["ldp"] == pytest.approx(sum(part["ldp"] for part in parts))
        expected = total([(part["sip"], part["ldp"]) for part in parts])
        assert entry["sip"] == pytest.approx(expected[0])
    told = done(*files).out
    assert "all releases together, 3 streams" in told
    other.write_text(other.read_text()[:-1])
    assert call(*files).code == 1
