"""Outputs: whole, alone, together; whoever is in the way, and whenever the run is killed."""

import os
import secrets
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sfumato.core.errors import FileInUse, InvalidParameter
from sfumato.store.outputs import locked, together, whole, write_whole

CERTIFICATE, TABLE = "out.csv.certificate.json", "out.csv"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def child(code: str, *arguments: object) -> subprocess.Popen[str]:
    """A process that says one line when it is where the test wants it."""
    program = f"import os, sys, time\nfrom sfumato.store.outputs import *\n{code}"
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


WRITING = """
with whole(sys.argv[1]) as aside:
    aside.write_bytes(b"half")
    print("ready", flush=True)
    sys.stdin.read()
    aside.write_bytes(b"whole")
"""


def test_a_writer_killed_in_the_middle_leaves_the_old_file_and_the_next_one_cleans_up(
    tmp_path: Path,
) -> None:
    target = tmp_path / "m"
    target.write_bytes(b"old")
    with child(WRITING, target) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        (aside,) = (path for path in tmp_path.iterdir() if "partial" in path.name)
        assert stat.S_IMODE(aside.stat().st_mode) == 0o600
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert target.read_bytes() == b"old"
    assert aside.exists()
    write_whole(target, b"new")
    assert target.read_bytes() == b"new"
    assert names(tmp_path) == {"m"}


def test_a_second_process_is_refused_until_the_first_one_ends(tmp_path: Path) -> None:
    target = tmp_path / "m"
    with child(WRITING, target) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with pytest.raises(FileInUse, match="m: must not be in use"):
            write_whole(target, b"other")
        with pytest.raises(FileInUse), locked(target):
            pass
        process.communicate()
        assert process.returncode == 0
    assert target.read_bytes() == b"whole"
    write_whole(target, b"other")
    assert target.read_bytes() == b"other"
    assert names(tmp_path) == {"m"}


def test_a_second_thread_is_refused(tmp_path: Path) -> None:
    problems: list[BaseException] = []

    def intrude() -> None:
        try:
            write_whole(tmp_path / "m", b"other")
        except FileInUse as problem:
            problems.append(problem)

    with locked(tmp_path / "m"):
        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
        write_whole(tmp_path / "m", b"own")  # who holds it may write it
    assert len(problems) == 1
    assert (tmp_path / "m").read_bytes() == b"own"


def test_a_child_of_a_fork_does_not_inherit_the_lock(tmp_path: Path) -> None:
    forking = """
with locked(sys.argv[1]):
    if os.fork() == 0:
        try:
            write_whole(sys.argv[1], b"child")
        except Exception as problem:
            os.write(1, type(problem).__name__.encode())
        os._exit(0)
    os.wait()
    assert os.path.exists(os.path.join(os.path.dirname(sys.argv[1]), ".m.lock"))
    write_whole(sys.argv[1], b"parent")
"""
    with child(forking, tmp_path / "m") as process:
        told, _ = process.communicate()
    assert (process.returncode, told) == (0, "FileInUse")
    assert (tmp_path / "m").read_bytes() == b"parent"
    assert names(tmp_path) == {"m"}


def test_a_refused_writer_leaves_the_files_of_the_other_alone(tmp_path: Path) -> None:
    with together([tmp_path / "a", tmp_path / "b"]) as asides:
        before = names(tmp_path)
        done = threading.Event()

        def intrude() -> None:
            with pytest.raises(FileInUse), together([tmp_path / "c", tmp_path / "b"]):
                pass
            done.set()

        threading.Thread(target=intrude).start()
        assert done.wait(10)
        assert names(tmp_path) == before
        for aside in asides:
            aside.write_bytes(b"x")
    assert names(tmp_path) == {"a", "b"}


def test_a_link_planted_at_the_name_of_a_partial_is_never_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    monkeypatch.setattr(secrets, "token_hex", lambda count: "0" * 2 * count)
    planted = tmp_path / f".partial.{'0' * 16}.m"
    real_open = os.open

    def plant(path: str | Path, *arguments: int) -> int:
        if Path(path) == planted and not planted.is_symlink():
            planted.symlink_to(victim)  # after the sweep: the last moment there is
        return real_open(path, *arguments)

    monkeypatch.setattr(os, "open", plant)
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "m", b"content")
    assert victim.read_bytes() == b"precious"
    assert not (tmp_path / "m").exists()


def test_names_of_partials_differ_every_time(tmp_path: Path) -> None:
    seen = set()
    for _ in range(50):
        with whole(tmp_path / "m") as aside:
            seen.add(aside.name)
    assert len(seen) == 50


def test_a_link_planted_at_the_name_of_the_lock_is_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    (tmp_path / ".m.lock").symlink_to(victim)
    with pytest.raises(InvalidParameter, match="not be a link"):
        write_whole(tmp_path / "m", b"content")
    assert not victim.exists()


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_is_readable_as_the_user_wants_once_it_is_complete(
    tmp_path: Path, mask: int, mode: int
) -> None:
    before = os.umask(mask)
    try:
        with whole(tmp_path / "m") as aside:
            assert stat.S_IMODE(aside.stat().st_mode) == 0o600
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == mode


def test_a_file_that_was_private_stays_so(tmp_path: Path) -> None:
    write_whole(tmp_path / "m", b"old")
    (tmp_path / "m").chmod(0o640)
    write_whole(tmp_path / "m", b"new")
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o640


@pytest.mark.parametrize("there", [True, False])
def test_a_kill_between_two_moves_leaves_no_table_without_its_own_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    certificate, table = tmp_path / CERTIFICATE, tmp_path / TABLE
    if there:
        certificate.write_text("old")
        table.write_text("old")
    seen: list[tuple[str | None, str | None]] = []
    replace, unlink = os.replace, os.unlink

    def look() -> None:
        found = [p.read_text() if p.exists() else None for p in (certificate, table)]
        seen.append((found[0], found[1]))

    def move(source: Path, target: Path) -> None:
        look()
        replace(source, target)
        look()

    def remove(path: str | Path) -> None:
        look()
        unlink(path)

    monkeypatch.setattr(os, "replace", move)
    monkeypatch.setattr(os, "unlink", remove)
    with together([certificate, table]) as asides:
        for aside in asides:
            aside.write_text("new")
    assert len(seen) >= 4
    for document, rows in seen:
        assert rows is None or rows == document
    assert seen[-1] == ("new", "new")


def test_the_folder_is_on_disk_after_every_move_that_another_relies_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def sync(handle: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "content")
        fsync(handle)

    def move(source: Path, target: Path) -> None:
        steps.append(Path(target).name)
        replace(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", move)
    with together([tmp_path / CERTIFICATE, tmp_path / TABLE]) as asides:
        for aside in asides:
            aside.write_text("new")
    assert steps == ["content", "content", CERTIFICATE, "folder", TABLE, "folder"]


def test_a_pipe_or_a_device_is_never_replaced_by_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidParameter, match="no device and no pipe"):
        write_whole(tmp_path / "pipe", b"content")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    twice = [tmp_path / "m", tmp_path / "." / "m"]
    with pytest.raises(InvalidParameter, match="files of their own"), together(twice):
        pass


def test_only_leftovers_of_the_same_output_are_removed(tmp_path: Path) -> None:
    others = [f".partial.{'a' * 16}.other", ".partial.m", f".partial.{'A' * 16}.m", "m.partial"]
    for name in others:
        (tmp_path / name).write_bytes(b"not ours")
    (tmp_path / f".partial.{'a' * 16}.m").write_bytes(b"left by a killed run")
    write_whole(tmp_path / "m", b"content")
    assert names(tmp_path) == {"m", *others}
