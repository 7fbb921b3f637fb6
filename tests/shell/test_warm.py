"""Loops are compiled before they are needed, or while a person is told and a helper helps."""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from numba.core.registry import cpu_target

from sfumato.cli import first_use, warm_command, warm_jobs
from sfumato.cli.console import say, say_in_passing
from sfumato.core import carried_loops, loop_folders
from sfumato.core.compile_events import compiling
from sfumato.core.compiled import njit
from tests.shell.running import call


class Terminal(io.StringIO):
    """What a person sees as standard error."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Helpers that were started, none of which does anything."""
    helpers: list[Any] = []

    def start(words: list[str], **rest: Any) -> Any:
        helpers.append(mock.Mock(words=words, rest=rest))
        return helpers[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    return helpers


def test_a_terminal_is_told_which_loop_is_compiled_until_something_else_is_said(
    terminal: Terminal,
) -> None:
    with contextlib.redirect_stderr(terminal), first_use.first_use("fit", quiet=False):
        compiling("advance")
        compiling("product")
        say("done")
    assert terminal.getvalue() == (
        "\rcompiling loops, once, a minute or two in all: 1 (advance), 0 s\x1b[K"
        "\rcompiling loops, once, a minute or two in all: 2 (product), 0 s\x1b[K"
        "\r\x1b[Kdone\n"
    )


def test_nothing_is_told_to_machines(terminal: Terminal) -> None:
    with contextlib.redirect_stderr(terminal), first_use.first_use("fit", quiet=True):
        compiling("advance")
    pipe = io.StringIO()
    with contextlib.redirect_stderr(pipe), first_use.first_use("fit", quiet=False):
        compiling("advance")
        say_in_passing("compiling")
    assert terminal.getvalue() == pipe.getvalue() == ""


def test_a_helper_comes_when_many_loops_are_missing_and_goes_with_the_command(
    started: list[Any],
) -> None:
    with first_use.first_use("release", quiet=True):
        for _ in range(first_use._MANY - 1):
            compiling("advance")
        assert not started
        for _ in range(first_use._MANY):
            compiling("advance")
        [helper] = started
        # What lies in the folder of the data is never imported, and nothing of the data is told.
        assert helper.words[1:] == ["-P", "-m", "sfumato.cli.warm_jobs", "release"]
        assert set(helper.rest.values()) == {subprocess.DEVNULL}
        helper.terminate.assert_not_called()
    helper.terminate.assert_called_once_with()
    helper.wait.assert_called_once()


def test_no_helper_helps_a_helper_or_where_it_could_not(
    started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def compile_many(command: str = "release") -> None:
        with first_use.first_use(command, quiet=True):
            for _ in range(2 * first_use._MANY):
                compiling("advance")

    with first_use.alone():
        compile_many()
    compile_many("key")
    with monkeypatch.context() as patched:
        patched.setattr(os, "sched_getaffinity", lambda process: {0})
        compile_many()
    with monkeypatch.context() as patched:
        forgotten = loop_folders.Places((), "/", True, lasting=False)
        patched.setattr(loop_folders, "places", lambda source: forgotten)
        compile_many()
    assert not started
    compile_many()
    assert len(started) == 1


def test_every_helper_runs_a_job_that_exists() -> None:
    assert set(first_use._HELPERS.values()) <= set(warm_jobs.JOBS)


@njit(cache=True)
def a_loop_of_somebody_else(value: float) -> float:
    return value + 1.0


def test_a_job_runs_in_a_folder_that_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert a_loop_of_somebody_else(2.0) == 3.0
    found = warm_jobs.run_job("temporal")
    assert len(found.files) > 3
    assert all(Path(file).name.startswith("sfumato.") for file in found.files)
    assert list(tmp_path.iterdir()) == []
    assert Path.cwd() == tmp_path


def test_a_job_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(warm_jobs.JOBS, "temporal", ("fit nothing.csv --value x -o y",))
    with pytest.raises(RuntimeError, match=r"exit code 2: sfumato: nothing\.csv"):
        warm_jobs.run_job("temporal")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of loops, and jobs that find one loop each in no time."""
    monkeypatch.setenv(loop_folders.CHOSEN, str(tmp_path / "loops"))

    def run(name: str, settings: Mapping[str, str]) -> dict[str, Any]:
        index = tmp_path / "loops" / f"{name}.nbi"
        index.parent.mkdir(exist_ok=True)
        index.touch()
        return {"job": name, "compiled": 2, "seconds": 0.5, "files": [str(index)]}

    monkeypatch.setattr(warm_command, "_run", run)
    return tmp_path / "loops"


def test_check_names_what_is_missing_and_fails(kept: Path) -> None:
    assert (call("warm", "--check", "temporal").code, call("warm", "temporal").code) == (1, 0)
    found = call("warm", "--check", "temporal", "release", "--json")
    assert (found.code, found.document) == (1, {"ready": ["temporal"], "missing": ["release"]})
    assert call("warm", "release").code == call("warm", "--check", "release", "temporal").code == 0
    (kept / "release.nbi").unlink()
    again = call("warm", "--check", "release", "temporal")
    assert (again.code, again.out) == (1, "release: 1 gone\ntemporal: ready\n")


def test_what_was_warmed_for_another_version_is_missing(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("warm", "temporal").code == call("warm", "--check", "temporal").code == 0
    record = json.loads((kept / "warm.json").read_text())
    (kept / "warm.json").write_text(json.dumps({**record, "stamp": "another"}))
    assert call("warm", "--check", "temporal").out == "temporal: not warmed\n"


def test_jobs_that_the_package_brings_loops_for_are_ready_unless_they_are_wanted_for_here(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (kept / "brought").mkdir(parents=True)
    (kept / "brought" / "one.nbi").touch()
    for sources, files, code in (
        (carried_loops.source_digest(), ["one.nbi"], 0),
        (carried_loops.source_digest(), ["one.nbi", "two.nbi"], 1),
        ("of another version", ["one.nbi"], 1),
    ):
        folder, jobs = str(kept / "brought"), {"release": files}
        brought = carried_loops.Carried(folder, ("plain", ""), sources, jobs)
        monkeypatch.setattr(carried_loops, "carried", lambda told=brought: told)
        assert call("warm", "--check", "release").code == code
        assert call("warm", "--check", "--native", "release").code == 1


def test_native_names_this_processor_so_that_no_loop_for_many_is_used(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Mapping[str, str]] = []
    run = warm_command._run

    def noted(name: str, settings: Mapping[str, str]) -> dict[str, Any]:
        asked.append(settings)
        return run(name, settings)

    monkeypatch.setattr(warm_command, "_run", noted)
    call("warm", "temporal")
    call("warm", "temporal", "--native")
    _, name, features = cpu_target.target_context.codegen().magic_tuple()
    assert asked == [{}, {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features}]


def test_warm_tells_what_it_did(kept: Path) -> None:
    found = call("warm", "temporal", "release", "--json").document
    assert [job["job"] for job in found["jobs"]] == ["temporal", "release"]
    assert found["jobs"][0] == {"job": "temporal", "compiled": 2, "seconds": 0.5, "files": 1}
    assert found["folder"] == str(kept)
    assert (
        call("warm", "temporal").out == "Loops\njob\tcompiled\tused\tseconds\ntemporal\t2\t1\t0.5\n"
    )


def test_unknown_jobs_and_no_processes_are_refused(kept: Path) -> None:
    assert "JOB must be one of fleet, release" in call("warm", "everything").err
    assert "--processes must be at least 1" in call("warm", "--processes", "0").err


@pytest.mark.slow
@pytest.mark.parametrize("job", warm_jobs.JOBS)
def test_no_job_gives_a_loop_a_frozen_array_to_write_to(
    job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numba itself refuses that, if loops are compiled for frozen arrays as such."""
    program = (
        "from sfumato.core import compiled\n"
        "compiled.plain = lambda kind: kind\n"
        "from sfumato.cli.warm_jobs import run_job\n"
        f"run_job({job!r})\n"
    )
    monkeypatch.setenv(loop_folders.CHOSEN, str(tmp_path))
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.slow
def test_after_warm_a_release_compiles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(loop_folders.CHOSEN, str(tmp_path))
    first, second = (warm_command._run("release", {}) for _ in range(2))
    assert first["compiled"] > 20
    assert second["compiled"] == 0
