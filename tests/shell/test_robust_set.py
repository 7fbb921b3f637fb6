"""`release --robust` with the file of a set: its budget holds for all chains in it."""

import json
from pathlib import Path

import numpy as np
import pytest

from sfumato.core.alphabet import Alphabet
from sfumato.models.encoding import Symbols
from sfumato.models.markov import MarkovChain
from sfumato.models.plausible import PlausibleChains
from sfumato.models.stream_model import StreamModel
from sfumato.store.files import save, save_plausible
from sfumato.stream.chain_terms import ChainBounds
from sfumato.stream.release_document import read_spec
from sfumato.stream.release_spec import ReleaseSpec
from tests.shell.running import call, done, rows
from tests.shell.tables import csv_bytes

PLACES = Alphabet(["home", "work"])
CHAIN = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]], alphabet=PLACES)
CHAINS = PlausibleChains(
    CHAIN,
    np.array([[0.85, 0.05], [0.1, 0.7]]),
    np.array([[0.95, 0.15], [0.3, 0.9]]),
    np.array([0.4, 0.1]),
    np.array([0.9, 0.6]),
    0.9,
)


@pytest.fixture
def house(tmp_path: Path) -> Path:
    save(StreamModel(CHAIN, Symbols(PLACES)), tmp_path / "learnt.model")
    save_plausible(CHAINS, tmp_path / "learnt.set")
    values = [("ann", ("home", "work")[moment // 3 % 2]) for moment in range(8)]
    (tmp_path / "live.csv").write_bytes(csv_bytes(["stream", "value"], values))
    return tmp_path


def released(house: Path, *more: object) -> tuple[object, ...]:
    given = ("release", house / "live.csv", "-m", house / "learnt.model", "--epsilon", 1.5)
    return *given, "--robust", house / "learnt.set", *more


def test_a_release_for_a_set_of_a_file_is_that_of_the_same_plan_in_python(house: Path) -> None:
    done(*released(house, "--seed", 3, "-o", house / "private.csv"))
    spec = ReleaseSpec(
        epsilon=1.5, robust=ChainBounds.of(CHAINS), purpose="simulation", method="far-sighted"
    )
    plan = spec.plan(StreamModel(CHAIN, Symbols(PLACES)))
    assert plan.robust is not None and plan.robust.fingerprint == CHAINS.fingerprint
    state = plan.begin("ann")
    for row in rows(house / "private.csv"):
        (event,), state = plan.observe(state, [row["released"]], signal=int(row["signal"]))
        assert row["sip"] == str(event.sip.epsilon)


def test_the_rules_beside_the_table_hold_the_set_and_are_enough_for_an_audit(house: Path) -> None:
    done(*released(house, "--seed", 3, "-o", house / "private.csv"))
    kept = read_spec(house / "private.csv.plan.json").robust
    assert isinstance(kept, ChainBounds)
    assert kept.around(CHAIN).fingerprint == CHAINS.fingerprint
    asked = ("audit", house / "private.csv", "-m", house / "learnt.model", "--simulation")
    assert "every chain of a set of confidence 0.9" in done(*asked).out
    # Bounds that were narrowed afterwards are no longer those of the rows.
    rules = json.loads((house / "private.csv.plan.json").read_text())
    rules["robust"] |= {"low": [[0.9, 0.1], [0.2, 0.8]], "high": [[0.9, 0.1], [0.2, 0.8]]}
    (house / "private.csv.plan.json").write_text(json.dumps(rules, indent=2))
    assert call(*asked).code == 1


def test_the_report_says_three_numbers_and_how_much_better_than_silence(house: Path) -> None:
    found = done(*released(house, "--seed", 3, "--json", "-o", house / "private.csv"))
    told = json.loads(found.out)
    left = rows(house / "private.csv")
    assert told["largest_sip"] == pytest.approx(sum(float(row["sip"]) for row in left))
    assert told["largest_estimate"] < told["largest_sip"] <= told["largest_ldp"] + 1e-9
    assert told["confidence"] == 0.9
    assert 0 < told["expected_loss"] < told["silent_loss"]
    said = done(*released(house, "--seed", 3, "-o", house / "again.csv")).err
    assert "under the estimate" in said and "better than silence" in said


def test_a_release_that_is_as_good_as_silent_is_called_so(house: Path) -> None:
    asked = ("release", house / "live.csv", "-m", house / "learnt.model", "--epsilon", 0.01)
    said = done(*asked, "--robust", 0.5, "--seed", 3, "-o", house / "private.csv").err
    assert "AS GOOD AS SILENT, OR WORSE" in said and "better than silence" not in said


def test_a_set_around_another_model_is_refused(house: Path) -> None:
    other = MarkovChain.from_matrix([[0.8, 0.2], [0.2, 0.8]], alphabet=PLACES)
    save(StreamModel(other, Symbols(PLACES)), house / "learnt.model")
    found = call(*released(house, "-o", house / "private.csv"))
    assert found.code == 2 and "together with this model" in found.err
    assert not (house / "private.csv").exists()
