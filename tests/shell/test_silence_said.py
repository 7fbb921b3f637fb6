"""A release says how it fares beside silence, and what would help: also who planned nothing."""

import math
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.models.markov import MarkovChain
from sfumato.models.stream_model import StreamModel
from sfumato.solver.design_methods import Method
from sfumato.stream.expected_worth import expected_worth
from tests.shell.releasing import LIVE, STEP
from tests.shell.running import call, done, rows
from tests.shell.tables import table


@pytest.fixture
def live(tmp_path: Path) -> Path:
    return table(tmp_path / "live.csv", LIVE)


def silently(model: Path, private: Path) -> float:
    """What the likeliest value of each moment loses, by plain powers of the matrix."""
    kept = sf.load(model)
    assert isinstance(kept, StreamModel) and isinstance(kept.chain, MarkovChain)
    chain, lost = kept.chain, []
    for row in rows(private):
        power = np.linalg.matrix_power(chain.transition(), int(row["sequence"]))
        lost.append(1 - (chain.first().marginal @ power).max())
    return float(np.mean(lost))


def test_randomised_response_is_held_against_silence(
    model: Path, live: Path, tmp_path: Path
) -> None:
    given = ("release", live, "-m", model, "--method", "randomized-response", "--json")
    kept = sf.load(model)
    assert isinstance(kept, StreamModel)
    others = len(kept.alphabet) - 1
    for epsilon, name in ((2.0, "much.csv"), (0.01, "little.csv")):
        told = done(*given, "--epsilon", epsilon, "-o", tmp_path / name).document
        expected = others / (math.exp(epsilon) + others)
        assert told["expected_loss"] == pytest.approx(expected, rel=1e-6)
        assert told["silent_loss"] == pytest.approx(silently(model, tmp_path / name), rel=1e-9)


def test_a_release_that_is_worse_than_silence_is_called_so_with_its_unit(
    model: Path, live: Path, tmp_path: Path
) -> None:
    given = ("release", live, "-m", model, "--method", "randomized-response")
    said = done(*given, "--epsilon", 0.01, "-o", tmp_path / "little.csv").err
    assert "AS GOOD AS SILENT, OR WORSE: under the model what left is " in said
    assert " % of the values; a larger --epsilon may help" in said
    said = done(*given, "--epsilon", 3, "-o", tmp_path / "much.csv").err
    assert "better than silence" in said and "AS GOOD AS SILENT" not in said


def test_a_model_that_knows_nothing_judges_no_release(live: Path, tmp_path: Path) -> None:
    names = ",".join(sorted({row["place"] for row in rows(live)}))
    columns = ("--stream", "person", "--value", "place")
    done("fit", "--uniform", "--values", names, *columns, "-o", tmp_path / "start.model")
    given = ("-m", tmp_path / "start.model", "--epsilon", 1, "--method", "randomized-response")
    said = done("release", live, *given, "-o", tmp_path / "first.csv").err
    assert "silence" not in said and "SILENT" not in said


def test_a_total_for_which_no_bursts_are_sought_says_that_they_can_be(
    model: Path, live: Path, tmp_path: Path
) -> None:
    total = ("-m", model, "--budget", 0.5, "--horizon", 200)
    said = done("release", live, *total, "-o", tmp_path / "even.csv").err
    assert "the total is spent evenly" in said and "--every auto" in said
    assert "bursts (--every auto) or a larger --budget may help" in said
    assert "--every auto" in done("plan", *total, "--streams", 2, "--length", 5).err
    asked = done("release", live, *total, "--every", 1, "-o", tmp_path / "asked.csv").err
    assert "the total is spent evenly" not in asked


def test_who_keeps_no_ledger_is_told_that_a_second_release_tells_more(
    model: Path, live: Path, tmp_path: Path
) -> None:
    given, said = ("release", live, "-m", model, "--epsilon", 1, *STEP), "nothing remembers"
    assert said in done(*given, "-o", tmp_path / "one.csv").err
    assert said not in done(*given, "-o", tmp_path / "two.csv", "--seed", 1).err
    kept = (*given, "-o", tmp_path / "three.csv", "--ledger", tmp_path / "kept.ledger")
    assert said not in done(*kept).err


def test_a_released_table_is_explained_by_what_lies_beside_it(
    model: Path, live: Path, tmp_path: Path
) -> None:
    for name in ("private.csv", "private.jsonl", "private.parquet"):
        private = tmp_path / name
        done("release", live, "-m", model, "--epsilon", 1, *STEP, "--seed", 1, "-o", private)
        told = done("explain", private).out.splitlines()
        assert told[0] == f"{private}: a table with its plan beside it"
        assert told[1:] == done("explain", f"{private}.plan.json").out.splitlines()[1:]
    assert call("explain", live).code == 2


def test_a_mistaken_file_is_named_and_what_it_should_be(
    model: Path, live: Path, tmp_path: Path
) -> None:
    told = call("plan", "-m", live, "--epsilon", 1)
    assert told.code == 2 and "A model is a file that `sfumato fit` writes" in told.err
    for command in ("audit", "recover", "attack", "learn", "drift"):
        output = ("-o", tmp_path / "out") if command == "learn" else ()
        told = call(command, tmp_path / "gone.csv", "-m", model, *output)
        assert told.code == 2 and "gone.csv: the file must exist; it does not" in told.err


def test_what_is_predicted_of_a_rule_is_what_its_channels_lose(model: Path) -> None:
    kept = sf.load(model)
    assert isinstance(kept, StreamModel) and isinstance(kept.chain, MarkovChain)
    others = len(kept.alphabet) - 1
    measure = sf.loss.hamming(kept.alphabet)
    for epsilon in (0.01, 2.0):
        budget = sf.PerStep(sf.SIP(epsilon))
        plan = sf.Plan(kept.chain, budget, measure, method=Method.RANDOMIZED_RESPONSE)
        predicted = expected_worth(plan)
        assert predicted is not None
        assert predicted[0] == pytest.approx(others / (math.exp(epsilon) + others), rel=1e-6)
        powers = [np.linalg.matrix_power(kept.chain.transition(), step) for step in range(20)]
        silent = [1 - (kept.chain.first().marginal @ power).max() for power in powers]
        assert predicted[1] == pytest.approx(np.mean(silent), rel=1e-9)


def test_a_far_sighted_release_that_gains_too_little_says_so(
    model: Path, live: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ("release", live, "-m", model, "--epsilon", 1)
    assert "SILENT" not in done(*given, "-o", tmp_path / "one.csv").err
    monkeypatch.setattr("sfumato.cli.release_text._WORTH", 1.0)
    said = done(*given, "-o", tmp_path / "two.csv").err
    assert "AS GOOD AS SILENT, OR WORSE: under the model the release is expected to" in said
