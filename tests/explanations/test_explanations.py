"""Words about artefacts say what the numbers say, and no more than is promised."""

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.explanations.artefacts import explain
from sfumato.explanations.belief_words import belief_range
from sfumato.models.encoding import Symbols
from sfumato.models.learnt_history import LearntHistory
from sfumato.models.plausible import PlausibleChains
from sfumato.models.stream_model import StreamModel
from sfumato.store.files import save_plausible
from tests.shell.running import call, done

LIKELIHOODS = st.lists(st.integers(1, 50), min_size=2, max_size=4)


@given(LIKELIHOODS, st.integers(1, 99))
def test_no_observer_believes_what_the_words_exclude(rows: list[int], percent: int) -> None:
    """The belief of someone who saw an output, in fractions, against what is said of any."""
    before = Fraction(percent, 100)
    rest = [(1 - before) / (len(rows) - 1)] * (len(rows) - 1)
    beliefs = [before, *rest]
    marginal = sum(b * row for b, row in zip(beliefs, rows, strict=True))
    after = beliefs[0] * rows[0] / marginal
    sip = max(abs(math.log(row / marginal)) for row in rows) + 1e-9
    ldp = math.log(max(rows) / min(rows)) + 1e-9
    for guarantee in (sf.SIP(sip), sf.LIP(sip), sf.LDP(ldp)):
        low, high = belief_range(guarantee, percent / 100)
        assert low <= after <= high


def test_a_range_is_reached() -> None:
    """Two values of 10 and 90 %: the output that tells most moves a belief to the very end."""
    low, high = belief_range(sf.LDP(math.log(4)))
    assert high == pytest.approx(0.1 * 4 / (0.1 * 4 + 0.9))
    assert low == pytest.approx(0.1 / (0.1 + 0.9 * 4))


def test_nothing_leaked_changes_nothing() -> None:
    assert belief_range(sf.SIP(0.0), 0.25) == (0.25, 0.25)


def test_much_leaked_excludes_nothing() -> None:
    low, high = belief_range(sf.SIP(1e6))
    assert low < 1e-300
    assert high == 1.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    history = "user,place\n" + "".join(
        f"u{user},{'ab'[(user + step // 3) % 2]}\n" for user in range(20) for step in range(12)
    )
    (tmp_path / "history.csv").write_text(history)
    done("fit", tmp_path / "history.csv", "--stream", "user", "--value", "place",
         "-o", tmp_path / "town.model")  # fmt: skip
    done("release", tmp_path / "history.csv", "-m", tmp_path / "town.model", "--budget", 3,
         "--horizon", 12, "--every", 1, "--ledger", tmp_path / "town.ledger",
         "-o", tmp_path / "private.csv")  # fmt: skip
    return tmp_path


def test_every_artefact_of_a_release_is_put_in_words(folder: Path) -> None:
    words = {name: explain(folder / name) for name in
             ("town.model", "town.ledger", "private.csv.plan.json")}  # fmt: skip
    assert [found.kind for found in words.values()] == ["model", "ledger", "plan"]
    model, ledger, plan = (" ".join(found.lines) for found in words.values())
    assert "a, b" in model
    assert "240 answers of 20 streams" in ledger
    assert "all 12 values" in plan
    assert "3 nats (SIP)" in plan
    told = done("explain", folder / "town.model")
    *lines, last = told.out.splitlines()[1:]
    assert lines == list(words["town.model"].lines)
    assert last == f"next: {words['town.model'].next}"


def test_a_certificate_says_what_it_means(tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    table.write_text("way\n" + "bus\ncar\ncar\nfoot\n" * 20)
    done("privatize", table, "-c", "way", "--epsilon", 1, "--order", "shuffled",
         "-o", tmp_path / "out.csv")  # fmt: skip
    found = done("explain", tmp_path / "out.csv.certificate.json", "--json").document
    assert found["kind"] == "certificate"
    assert any("At most 1 nat (LIP)" in line for line in found["lines"])
    assert any("10 % may give it" in line for line in found["lines"])


def test_published_columns_are_explained_with_how_near_is_found(tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    rows = [f"{150 + place % 40},{50 + place % 31}" for place in range(60)]
    table.write_text("\n".join(["height,weight", *rows]) + "\n")
    done("publish", "--table", table, "--columns", "height,weight", "--accuracy", 2, "--sigma", 8,
         "--noise", "gaussian", "--coupling", "gaussian", "--order", "shuffled",
         "-o", tmp_path / "out.csv")  # fmt: skip
    lines = explain(tmp_path / "out.csv.certificate.json").lines
    asked = "height within 2 (noise of 8, standard deviation), weight within 2 (noise of 8"
    assert asked in lines[1] and "a blind guess" in lines[2]
    assert any("(--history)" in line for line in lines)


def test_an_edited_certificate_is_not_put_in_words(tmp_path: Path) -> None:
    certificate = tmp_path / "out.csv.certificate.json"
    certificate.write_text(json.dumps({"format": "sfumato certificate 1", "job": "privatize"}))
    with pytest.raises(CorruptData):
        explain(certificate)


def test_a_table_is_not_an_artefact(folder: Path) -> None:
    with pytest.raises(InvalidParameter, match="a table with its plan or certificate beside it"):
        explain(folder / "history.csv")
    assert call("explain", folder / "nowhere").code == 2


def test_words_about_a_model_say_what_it_promises_to_its_people(folder: Path) -> None:
    private = folder / "private.model"
    done("fit", folder / "history.csv", "--stream", "user", "--value", "place", "--private", 1,
         "--values", "a,b", "-o", private)  # fmt: skip
    assert any("promises PureDP(1) for each user" in line for line in explain(private).lines)
    assert not any("PureDP" in line for line in explain(folder / "town.model").lines)


def test_a_set_of_plausible_models_is_put_in_words(tmp_path: Path) -> None:
    chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
    save_plausible(PlausibleChains.from_radius(chain, 0.05, 0.95), tmp_path / "near.set")
    found = explain(tmp_path / "near.set")
    assert found.kind == "set of plausible models"
    assert any("With confidence 0.95" in line for line in found.lines)
    save_plausible(PlausibleChains.from_radius(chain, 1.0), tmp_path / "all.set")
    assert any("may be anything" in line for line in explain(tmp_path / "all.set").lines)


def test_a_learnt_model_says_what_it_was_learnt_from(tmp_path: Path) -> None:
    chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
    told = LearntHistory("ab12", 20, 1_000)
    model = StreamModel(chain, Symbols(chain.alphabet), learnt=told)
    sf.save(model, tmp_path / "learnt.model")
    lines = explain(tmp_path / "learnt.model").lines
    assert any("1,000 released values of 20 streams" in line for line in lines)
    sf.save(StreamModel(chain, Symbols(chain.alphabet)), tmp_path / "plain.model")
    assert b"learnt" not in (tmp_path / "plain.model").read_bytes()
    assert any("If `fit` made it" in line for line in explain(tmp_path / "plain.model").lines)
