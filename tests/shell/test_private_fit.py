"""`sfumato fit --private`: the promise is printed, stands in the file, and is not made twice."""

from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.models.stream_model import StreamModel
from tests.shell.running import done

PLACES = ("home", "work", "park")


@pytest.fixture
def history(tmp_path: Path) -> Path:
    rng, lines = np.random.default_rng(3), ["user,place"]
    for user in range(60):
        place = int(rng.integers(3))
        for _ in range(12):
            lines.append(f"u{user},{PLACES[place]}")
            if rng.random() < 0.2:
                place = int(rng.integers(3))
    path = tmp_path / "history.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_private_fit_says_what_it_promises_and_can_be_released_with(
    history: Path, tmp_path: Path
) -> None:
    listed, model = tmp_path / "places.txt", tmp_path / "city.model"
    listed.write_text("\n".join(PLACES))
    columns = ("--stream", "user", "--value", "place")
    asked = ("--private", 4, "--contribution", 11, "--values", listed)
    printed = done("fit", history, *columns, *asked, "-o", model).out
    assert "PureDP(4) for each user" in printed and "at most 11 transitions" in printed
    # Neither how many people, nor how many rows: both are private.
    assert "60" not in printed and "720" not in printed
    kept = sf.load(model)
    assert isinstance(kept, StreamModel) and kept.private is not None
    assert kept.private.guarantee <= sf.PureDP(4.0) and kept.chain.full_support
    private = tmp_path / "private.csv"
    done("release", history, "-m", model, "--epsilon", 1, "--method", "step-wise", "-o", private)
    done("audit", private, "-m", model)


def test_the_document_holds_nothing_that_is_not_in_the_model(history: Path, tmp_path: Path) -> None:
    columns = ("--stream", "user", "--value", "place")
    asked = ("--private", 1, "--values", ",".join(PLACES), "-o", tmp_path / "m", "--json")
    found = done("fit", history, *columns, *asked).document
    assert set(found) == {
        "model",
        "symbols",
        "transitions",
        "predictability",
        "private",
        "warnings",
    }
    assert found["symbols"] == 3 and found["private"]["contribution"] == 20
