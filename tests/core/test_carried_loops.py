"""Loops that the package brings along are used where they fit and nobody else put them."""

import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from sfumato.core import carried_loops, loop_cache, loop_folders
from sfumato.core.carried_loops import BASELINES, FOLDER, RECORD, Baseline, Carried, conditions
from tests.core.test_loop_cache import CALLED, compiled_anew, written

PLAIN = Baseline("plain", ())
"""What every processor is."""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that brings loops along, for processors of every kind."""
    monkeypatch.setattr(carried_loops, "BASELINES", {platform.machine(): PLAIN})
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / FOLDER).mkdir(mode=0o755)
    record(tmp_path, conditions(PLAIN))
    yield tmp_path
    carried_loops._carried.cache_clear()


def record(package: Path, made_for: dict[str, str]) -> None:
    told = {"conditions": made_for, "sources": "digest", "jobs": {"release": ["one.nbi"]}}
    (package / FOLDER / RECORD).write_text(json.dumps(told))


def found(package: Path) -> Carried | None:
    carried_loops._carried.cache_clear()
    return carried_loops._carried(str(package))


def test_loops_that_fit_are_used(package: Path) -> None:
    folder = str(package / FOLDER)
    assert found(package) == Carried(folder, ("plain", ""), "digest", {"release": ["one.nbi"]})


@pytest.mark.parametrize("condition", conditions(PLAIN))
def test_loops_made_for_anything_else_are_passed_over(package: Path, condition: str) -> None:
    record(package, conditions(PLAIN) | {condition: "another"})
    assert found(package) is None


def test_loops_for_features_that_this_processor_lacks_are_passed_over(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = Baseline("plain", ("a-feature",))
    monkeypatch.setattr(carried_loops, "BASELINES", {platform.machine(): more})
    record(package, conditions(more))
    for features, used in (("+another", False), ("-a-feature", False), ("+x,+a-feature", True)):
        monkeypatch.setattr(carried_loops, "get_host_cpu_features", lambda told=features: told)
        assert (found(package) is not None) == used


def test_loops_that_others_can_change_or_own_are_passed_over(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for mode, used in ((0o777, False), (0o1777, False), (0o775, True)):
        (package / FOLDER).chmod(mode)
        assert (found(package) is not None) == used
    really = os.lstat

    def of_another(path: Any) -> os.stat_result:
        told = list(really(path))
        told[4] += str(path).endswith(FOLDER)  # the number of the owner
        return os.stat_result(told)

    with monkeypatch.context() as patched:
        patched.setattr(os, "lstat", of_another)
        assert found(package) is None
    (package / FOLDER).rename(package / "elsewhere")
    assert found(package) is None
    (package / FOLDER).symlink_to(package / "elsewhere")
    assert found(package) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"conditions": {}}'])
def test_a_record_that_says_nothing_is_no_record(package: Path, text: str) -> None:
    (package / FOLDER / RECORD).write_text(text)
    assert found(package) is None


def test_whoever_names_a_processor_gets_loops_for_that_one(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Carried("folder", ("plain", ""), "digest", {})
    monkeypatch.setattr(carried_loops, "_carried", lambda package: here)
    assert carried_loops.carried() == here
    for name in ("CPU_NAME", "CPU_FEATURES"):
        with monkeypatch.context() as patched:
            patched.setattr(numba.config, name, "")
            assert carried_loops.carried() is None
    monkeypatch.undo()


def test_every_baseline_is_a_processor_that_numba_can_compile_for() -> None:
    assert set(BASELINES) == {"x86_64"}
    for baseline in BASELINES.values():
        assert list(baseline.features) == sorted(set(baseline.features))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Loops compiled into a folder of one's own that is then brought along by the package."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(loop_folders.CHOSEN, str(tmp_path / "brought"))
    loop: Any = written(tmp_path, "carrier").total
    loop(np.array([1.0]))
    machine = loop.targetctx.codegen().magic_tuple()
    brought = Carried(str(tmp_path / "brought"), machine[1:], "digest", {})
    monkeypatch.setattr(loop_cache, "carried", lambda: brought)
    monkeypatch.setenv(loop_folders.CHOSEN, str(tmp_path / "own"))
    yield tmp_path
    loop_cache._digest.cache_clear()
    loop_folders._places.cache_clear()


def forms(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*.nb[ic]")}


def test_a_loop_that_was_brought_along_is_not_compiled_and_nothing_is_written(folder: Path) -> None:
    before = forms(folder / "brought")
    loop: Any = written(folder, "carrier").total
    assert loop.at_hand(np.array([1.0]))
    assert (loop(np.array([1.0])), compiled_anew(loop)) == (4.0, 0)
    assert loop.kept.indexes() == [str(path) for path in (folder / "brought").glob("*.total-*.nbi")]
    loop(np.array([1], dtype=np.int32))
    assert compiled_anew(loop) == 1
    assert forms(folder / "brought") == before
    assert len(forms(folder / "own")) >= 2


def test_a_loop_of_other_sources_is_compiled(folder: Path) -> None:
    loop: Any = written(folder, "carrier", CALLED.replace("+ 1.0", "+ 3.0")).total
    assert not loop.at_hand(np.array([1.0]))
    assert (loop(np.array([1.0])), compiled_anew(loop)) == (8.0, 1)


def test_a_damaged_loop_that_was_brought_along_is_compiled(folder: Path) -> None:
    for file in (folder / "brought").glob("*.nbc"):
        file.write_bytes(b"")
    for anew in (1, 0):
        loop: Any = written(folder, "carrier").total
        assert (loop(np.array([1.0])), compiled_anew(loop)) == (4.0, anew)


def test_a_loop_for_this_processor_comes_before_one_for_many(folder: Path) -> None:
    loop: Any = written(folder, "carrier").total
    found = list(loop.kept._forms((), loop.targetctx))
    assert [Path(file._index_path).parent.name for file, _ in found] == ["own", "brought"]
