"""Compiled loops on disk: fresh, in safe folders, compiled by one process at a time."""

import errno
import importlib
import multiprocessing
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile

from sfumato.core import loop_cache, loop_folders
from sfumato.core.errors import InvalidParameter

CALLED = """
from sfumato.core.compiled import njit

STEP = 2.0

@njit(cache=True)
def called(value):
    return value + 1.0
"""
CALLER = """
from sfumato.core.compiled import njit
from {package}.called import STEP, called

@njit(cache=True)
def total(values):
    result = 0.0
    for value in values:
        result += STEP * called(value)
    return result
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(loop_folders.CHOSEN, str(tmp_path / "loops"))
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    loop_cache._digest.cache_clear()
    loop_folders._places.cache_clear()


def written(folder: Path, package: str, called: str = CALLED) -> ModuleType:
    """A package of two files, one of which calls a loop of the other."""
    (folder / package).mkdir(exist_ok=True)
    (folder / package / "__init__.py").write_text("")
    (folder / package / "called.py").write_text(called)
    (folder / package / "caller.py").write_text(CALLER.format(package=package))
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]
    importlib.invalidate_caches()
    loop_cache._digest.cache_clear()
    # Python takes kept bytecode for that of a file of the same length and second.
    with mock.patch.object(sys, "dont_write_bytecode", True):
        return importlib.import_module(f"{package}.caller")


def compiled_anew(loop: Any) -> int:
    return sum(loop.stats.cache_misses.values())


def test_a_loop_is_compiled_once_for_frozen_and_writable_arrays_alone_and_in_tuples(
    folder: Path,
) -> None:
    loop: Any = written(folder, "frozen_or_not").total
    values = np.array([1.0, 2.0])
    frozen = values.copy()
    frozen.flags.writeable = False
    assert loop(frozen) == loop(values) == loop(frozen) == 10.0
    assert compiled_anew(loop) == len(loop.signatures) == 1


def test_a_loop_is_read_from_disk_until_a_loop_or_a_constant_elsewhere_that_it_uses_changes(
    folder: Path,
) -> None:
    values = np.array([1.0, 2.0])
    sources = [
        (CALLED, 10.0, 1),
        (CALLED, 10.0, 0),
        (CALLED.replace("+ 1.0", "+ 3.0"), 18.0, 1),
        (CALLED.replace("STEP = 2.0", "STEP = 4.0"), 20.0, 1),
        (CALLED, 10.0, 0),
    ]
    for source, result, anew in sources:
        loop: Any = written(folder, "changing", source).total
        assert (loop(values), compiled_anew(loop)) == (result, anew)


def test_a_constant_is_part_of_a_loop_wherever_its_value_comes_from(folder: Path) -> None:
    caller: Any = written(folder, "constants")
    before = loop_cache.ingredients(caller.total.py_func)
    caller.STEP = 3.0
    after = loop_cache.ingredients(caller.total.py_func)
    assert {name for name in before if before[name] != after[name]} == {"total.STEP"}


def test_loops_beside_read_only_sources_are_used_and_new_ones_go_to_the_cache_of_the_user(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(loop_folders.CHOSEN)
    loop: Any = written(folder, "installed").total
    loop(np.array([1.0]))
    beside = folder / "installed" / "__pycache__"
    before = {path.name for path in beside.glob("*.nb[ic]")}
    assert len(before) == 4
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "home"))
    really = loop_folders._writable
    monkeypatch.setattr(loop_folders, "_writable", lambda at: at != str(beside) and really(at))
    loop_folders._places.cache_clear()
    loop_folders._of_user.cache_clear()
    again: Any = written(folder, "installed").total
    assert (again(np.array([1.0])), compiled_anew(again)) == (4.0, 0)
    again(np.array([1.0], dtype=np.float32))
    assert compiled_anew(again) == 1
    assert {path.name for path in beside.glob("*.nb[ic]")} == before
    home = folder / "home" / "sfumato"
    assert {path.suffix for path in home.iterdir()} == {".nbi", ".nbc", ".lock"}
    assert home.stat().st_mode & 0o777 == 0o700
    loop_folders._of_user.cache_clear()


def test_where_nothing_can_be_written_loops_are_kept_for_this_process_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(loop_folders.CHOSEN, raising=False)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(loop_folders, "_writable", lambda folder: False)
    loop_folders._of_user.cache_clear()
    loop_folders._of_process.cache_clear()
    (tmp_path / "__pycache__").mkdir()
    found = loop_folders.places(str(tmp_path / "source.py"))
    assert found.writes is not None
    assert found.reads == (str(tmp_path / "__pycache__"), found.writes)
    assert os.stat(found.writes).st_mode & 0o777 == 0o700
    loop_folders._of_user.cache_clear()
    loop_folders._of_process.cache_clear()
    loop_folders._places.cache_clear()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o757, 0o1777])
def test_a_folder_that_others_can_write_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    monkeypatch.setenv(loop_folders.CHOSEN, str(shared))
    with pytest.raises(InvalidParameter, match="SFUMATO_CACHE_DIR must name a folder"):
        loop_folders.places(__file__)
    shared.chmod(0o755)
    assert loop_folders.places(__file__) == loop_folders.Places((str(shared),), str(shared), True)


def test_a_folder_below_one_that_others_can_change_is_refused_unless_names_are_safe_there(
    tmp_path: Path,
) -> None:
    inner = tmp_path / "open" / "inner"
    inner.mkdir(parents=True, mode=0o700)
    assert loop_folders.only_ours(str(inner))
    (tmp_path / "open").chmod(0o777)
    assert not loop_folders.only_ours(str(inner))
    (tmp_path / "link").symlink_to(inner)
    assert not loop_folders.only_ours(str(tmp_path / "link"))
    (tmp_path / "open").chmod(0o1777)
    assert loop_folders.only_ours(str(inner))
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patched:
        patched.setattr(loop_folders, "_user", lambda: os.geteuid() + 1)
        assert loop_folders.only_ours(str(inner)) == (os.geteuid() == 0)


def test_a_folder_behind_a_link_is_used_by_the_path_that_was_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir(mode=0o700)
    (tmp_path / "anybody").mkdir()
    (tmp_path / "anybody").chmod(0o777)
    link = tmp_path / "anybody" / "loops"
    link.symlink_to(tmp_path / "mine")
    assert not loop_folders.only_ours(str(link))
    for name in (loop_folders.CHOSEN, "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(loop_folders.CHOSEN, raising=False)
        monkeypatch.setenv(name, str(link))
        mine = str(tmp_path / "mine")
        assert loop_folders.places(__file__) == loop_folders.Places((mine,), mine, True)
        loop_folders._places.cache_clear()


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_folder_of_numba_that_others_can_write_to_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.delenv(loop_folders.CHOSEN, raising=False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(shared))
    beside = str(tmp_path / "__pycache__")
    for rights, expected in ((0o700, str(shared)), (mode, beside)):
        shared.chmod(rights)
        loop_folders._places.cache_clear()
        assert loop_folders.places(str(tmp_path / "source.py")).reads == (expected,)
    loop_folders._places.cache_clear()


@pytest.mark.parametrize("opened", ["package/__pycache__", "package"])
def test_a_folder_beside_the_sources_is_passed_over_if_everybody_can_change_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: str
) -> None:
    monkeypatch.delenv(loop_folders.CHOSEN, raising=False)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    loop_folders._of_user.cache_clear()
    beside = tmp_path / "package" / "__pycache__"
    beside.mkdir(parents=True)
    home = str(tmp_path / "home" / "sfumato")
    for mode, expected in ((0o775, str(beside)), (0o777, home)):
        (tmp_path / opened).chmod(mode)
        loop_folders._places.cache_clear()
        found = loop_folders.places(str(tmp_path / "package" / "source.py"))
        assert (found.reads, found.writes) == ((expected,), expected)
    loop_folders._of_user.cache_clear()
    loop_folders._places.cache_clear()


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("kept", [0, 0.5])
def test_a_damaged_file_is_compiled_and_written_anew(
    folder: Path, suffix: str, kept: float
) -> None:
    package = f"damaged_{suffix}_{round(10 * kept)}"
    written(folder, package).total(np.array([1.0]))
    (file,) = (folder / "loops").glob(f"*.total-*.{suffix}")
    file.write_bytes(file.read_bytes()[: round(kept * file.stat().st_size)])
    for anew in (1, 0):
        loop: Any = written(folder, package).total
        assert (loop(np.array([1.0])), compiled_anew(loop)) == (4.0, anew)


def test_a_loop_that_cannot_be_written_is_used_all_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for anew, step in ((1, "_save_index"), (1, "_save_data"), (1, None), (0, None)):
        with monkeypatch.context() as patched:
            if step:
                patched.setattr(IndexDataCacheFile, step, full)
            loop: Any = written(folder, "full_disk").total
            assert (loop(np.array([1.0])), compiled_anew(loop)) == (4.0, anew)


def _claim(folder: str, hear: Any, tell: Any) -> None:
    claims = loop_cache._Claims(folder)
    claims.take(7)
    tell.send("taken")
    hear.recv()
    claims.drop(7)


def test_a_loop_that_another_process_compiles_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    other = context.Process(target=_claim, args=(str(tmp_path), there, there))
    other.start()
    assert here.recv() == "taken"
    claims = loop_cache._Claims(str(tmp_path))
    monkeypatch.setattr(loop_cache, "_PATIENCE", 0.05)
    assert not claims.take(7)
    assert claims.take(8)
    here.send("go on")
    monkeypatch.setattr(loop_cache, "_PATIENCE", 30.0)
    assert claims.take(7)
    other.join()


def test_a_loop_is_at_hand_in_memory_and_on_disk_for_what_it_was_compiled_for(folder: Path) -> None:
    values, others = np.array([1.0]), np.array([1])
    frozen = values.copy()
    frozen.flags.writeable = False
    loop: Any = written(folder, "at_hand").total
    assert not loop.at_hand(values)
    loop(values)
    assert loop.at_hand(values)
    assert loop.at_hand(frozen)
    again: Any = written(folder, "at_hand").total
    assert again.at_hand(frozen)
    assert not again.at_hand(others)
    for file in again.kept.indexes():
        Path(file).write_bytes(b"")
    assert not again.at_hand(values)
    assert again(values) == 4.0
