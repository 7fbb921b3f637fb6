import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from sfumato import LDP, SIP, Alphabet, Event, MarkovChain, Prior, load, save
from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.store import to_bytes
from sfumato.store.files import write_whole
from sfumato.stream import Outcome

ROWS = np.array([[0.9, 0.1], [0.2, 0.8]])
MODELS: dict[str, Prior | MarkovChain] = {
    "prior": Prior([0.7, 0.3], Alphabet("ab")),
    "dense": MarkovChain.from_matrix(ROWS),
    "sparse": MarkovChain.from_matrix(sparse.csr_array(ROWS), floor=0.01),
    "order two": MarkovChain.from_matrix(np.vstack([ROWS, ROWS]), floor=0.01),
}


@pytest.mark.parametrize("name", list(MODELS))
def test_a_model_survives_the_disk(name: str, tmp_path: Path) -> None:
    model = MODELS[name]
    save(model, tmp_path / "m")
    back = load(str(tmp_path / "m"))
    assert type(back) is type(model)
    assert isinstance(back, Prior | MarkovChain)
    assert back.fingerprint == model.fingerprint
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_file_is_replaced_by_the_next_one(tmp_path: Path) -> None:
    save(MODELS["prior"], tmp_path / "m")
    save(MODELS["dense"], tmp_path / "m")
    assert isinstance(load(tmp_path / "m"), MarkovChain)
    assert len(list(tmp_path.iterdir())) == 1


def refuse(*arguments: object, **options: object) -> None:
    raise OSError("no space left")


@pytest.mark.parametrize("broken", ["replace", "fsync"])
def test_a_failing_write_leaves_the_old_file_and_no_litter(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(MODELS["prior"], tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(os, broken, refuse)
        with pytest.raises(OSError, match="no space left"):
            save(MODELS["dense"], tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_failing_first_write_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="no space left"):
        save(MODELS["prior"], tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_the_old_file_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    write_whole(tmp_path / "m", b"old")
    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "m", b"new")
    assert (tmp_path / "m").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_content_is_on_disk_before_the_name_points_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(handle: int) -> None:
        order.append("on disk")
        fsync(handle)

    def noted_replace(source: str, target: Path) -> None:
        order.append("named")
        assert Path(source).read_bytes() == b"content"
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    write_whole(tmp_path / "m", b"content")
    assert order == ["on disk", "named", "on disk"]  # the folder too


@pytest.mark.parametrize(
    "content", [b"", b"sfumato\n", b"a,b\n1,2\n", to_bytes(MODELS["prior"])[:-1]]
)
def test_a_file_that_is_no_model_is_refused_by_name(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(CorruptData, match=r"m: stored data"):
        load(tmp_path / "m")


def test_an_event_is_no_model(tmp_path: Path) -> None:
    event = Event("u4", 0, Outcome.SKIPPED, None, SIP(0.0), LDP(0.0))
    (tmp_path / "e").write_bytes(to_bytes(event))
    with pytest.raises(
        CorruptData,
        match="StreamModel or Policy; got Event",
    ):
        load(tmp_path / "e")


def test_what_is_no_model_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="thing must be a dataclass"):
        save(ROWS, tmp_path / "m")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_called_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")
