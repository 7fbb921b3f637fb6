"""What the commands do with models and rules on disk; how they are stored is tested elsewhere."""

from dataclasses import replace
from pathlib import Path

import pytest

from sfumato import MarkovChain, Prior
from sfumato.core.errors import CorruptData
from sfumato.models.encoding import Bins, Grid
from sfumato.models.stream_model import StreamModel
from sfumato.store.codec import MAGIC
from sfumato.store.files import load, save
from sfumato.stream.release_document import read_spec
from sfumato.stream.release_spec import ReleaseSpec
from tests.shell.releasing import STEP
from tests.shell.running import call

CHAIN = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])


def stream_model(path: Path) -> StreamModel:
    model = load(path)
    assert isinstance(model, StreamModel)
    return model


def test_a_model_keeps_how_numbers_are_cut(models: Path) -> None:
    bins, grid = stream_model(models / "bins.model"), stream_model(models / "grid.model")
    assert isinstance(bins.encoding, Bins)
    assert bins.encoding.edges.tolist() == [10.0, 15.0, 20.0, 25.0, 30.0]
    assert isinstance(grid.encoding, Grid)
    assert (grid.encoding.x_edges.size, grid.encoding.y_edges.size) == (4, 3)
    assert grid.values == ("lon", "lat")


@pytest.mark.parametrize("data", [b"", b"person,place\n", MAGIC, MAGIC + b"\x00" * 50])
def test_a_file_that_is_no_model_ends_with_exit_code_2(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "city.model"
    path.write_bytes(data)
    result = call("plan", "--model", path, "--epsilon", 1)
    assert result.code == 2
    assert result.err.startswith(f"sfumato: {path}: ")
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize("command", ["plan", "release", "audit"])
def test_a_missing_model_is_named(tmp_path: Path, command: str) -> None:
    path = tmp_path / "city.model"
    more = {
        "plan": ("--epsilon", 1),
        "release": (tmp_path / "live.csv", "--epsilon", 1, *STEP, "-o", tmp_path / "private.csv"),
        "audit": (tmp_path / "private.csv",),
    }
    result = call(command, *more[command], "--model", path)
    rule = "the file must exist; it does not. A model is a file that `sfumato fit` writes"
    assert (result.code, result.err) == (2, f"sfumato: {path}: {rule}\n")


def test_a_prior_alone_is_no_model_of_a_stream(tmp_path: Path) -> None:
    path = tmp_path / "coin.model"
    save(Prior([0.7, 0.3]), path)
    result = call("plan", "--model", path, "--epsilon", 1)
    assert result.code == 2
    assert "must hold a chain" in result.err


def test_a_bare_chain_is_read_from_the_columns_stream_and_value(tmp_path: Path) -> None:
    save(CHAIN, tmp_path / "bare.model")
    (tmp_path / "live.csv").write_text("stream,value\na,0\na,1\n")
    release = (
        "release",
        tmp_path / "live.csv",
        "-m",
        tmp_path / "bare.model",
        "--epsilon",
        1,
        *STEP,
    )
    assert call(*release, "-o", tmp_path / "private.csv").code == 0
    assert len((tmp_path / "private.csv").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    "document", ["", "[]", '{"epsilon": "much"}', '{"epsilon": 1.0, "surprise": 1}']
)
def test_rules_that_release_did_not_write_are_refused(tmp_path: Path, document: str) -> None:
    path = tmp_path / "private.csv.plan.json"
    path.write_text(document)
    with pytest.raises(CorruptData, match="not the plan of a release"):
        read_spec(path)


def test_the_rules_of_a_release_are_for_one_chain_only(models: Path) -> None:
    places, levels = stream_model(models / "places.model"), stream_model(models / "levels.model")
    spec = ReleaseSpec(epsilon=1.0, model=places.chain.fingerprint)
    assert spec.plan(places).model.fingerprint == places.chain.fingerprint
    assert spec.plan(replace(places, stream="user")).model is places.chain
    with pytest.raises(ValueError, match="the one the release was made with"):
        spec.plan(levels)


@pytest.mark.parametrize(
    "matrix", ["", "0,1\n1,0,2\n", "0,1\n1,much\n", "0,1\n1,0\n", "0,nan,1,1\n" * 4, "\xff"]
)
def test_a_loss_that_is_no_matrix_of_the_alphabet_is_refused(
    models: Path, tmp_path: Path, matrix: str
) -> None:
    path = tmp_path / "loss.csv"
    path.write_bytes(matrix.encode("latin-1"))
    result = call("plan", "-m", models / "places.model", "--epsilon", 1, "--loss", path)
    assert result.code == 2
    assert result.err.startswith("sfumato: ")
    assert len(result.err.splitlines()) == 1
