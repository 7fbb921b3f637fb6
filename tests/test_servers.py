"""Servers that tests bring along: private, gone afterwards, and never missed in silence."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests import servers
from tests.servers import PrivatePostgres

TREE = Path(__file__).parents[1]
KILLED = """
import os, signal
from tests import servers
folder = servers.begin_run()
print(folder, servers.shared_postgres().url(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_without_a_server_its_tests_are_named_and_the_others_are_run() -> None:
    """In runs of one process and of workers, as `make test` has them."""
    chosen = ["tests/store/test_postgres_failures.py", "tests/store/test_files.py"]
    quiet = ["-p", "no:cacheprovider", "-m", "not slow", *chosen]
    without = {**os.environ, servers.WITHOUT: "postgresql"}
    for ways in ([], ["-n", "1"]):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *quiet, *ways],
            cwd=TREE,
            env=without,
            capture_output=True,
            text=True,
            check=False,
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("NOT RUN: ")]
        assert done.returncode == 0, done.stdout
        (line,) = lines
        assert "tests for want of postgresql: tests/store/test_postgres_failures.py (" in line
        assert "test_files" not in line and " passed" in done.stdout


def test_an_installation_that_is_not_allowed_says_what_is_not_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(servers.PACKAGES, "postgresql", lambda: False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    servers.install(["postgresql"])
    told = capsys.readouterr().err
    assert told.startswith("NOT RUN: tests that need postgresql: it is missing and could not be")


def test_files_lie_in_memory_unless_there_is_no_room_or_somebody_names_a_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(servers, "MEMORY", tmp_path)
    monkeypatch.setattr(servers, "_ROOM", 1)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert servers._memory() is None
    monkeypatch.delenv("TMPDIR")
    assert servers._memory() == tmp_path
    monkeypatch.setattr(servers, "_ROOM", 1 << 62)
    assert servers._memory() is None
    monkeypatch.setattr(servers, "MEMORY", tmp_path / "none")
    assert servers._memory() is None


def test_a_server_is_private_and_keeps_what_it_says(postgres: PrivatePostgres) -> None:
    with postgres.database() as url, psycopg.connect(url) as connection:
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            assert connection.execute(f"SHOW {setting}".encode()).fetchone() == ("on",)
        assert connection.execute("SHOW listen_addresses").fetchone() == ("127.0.0.1",)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(postgres.url().replace(postgres.password, "another"))


def test_a_run_that_is_killed_leaves_no_server_behind(postgres: PrivatePostgres) -> None:
    """`postgres` is asked for so that this is left out where there is none."""
    command = [sys.executable, "-c", KILLED]
    told = subprocess.run(command, cwd=TREE, capture_output=True, text=True, check=False).stdout
    folder, url = told.split()
    assert url != postgres.url()
    servers.wait_until(lambda: not Path(folder).exists())
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
