"""A PostgreSQL of its own for the tests of this room, on a socket in a temporary folder."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

PROGRAMS = Path("/usr/lib/postgresql/15/bin")


@contextlib.contextmanager
def private_postgres() -> Iterator[str]:
    """The address of a server that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="sfumato-pg-", dir="/tmp"))
    as_owner = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if as_owner:
        shutil.chown(folder, "postgres", "postgres")
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}
    data = folder / "data"
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    control = [*as_owner, PROGRAMS / "pg_ctl", "-D", data, "-w"]
    try:
        begin = [PROGRAMS / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8"]
        subprocess.run([*as_owner, *begin, "--no-sync"], **quiet)  # type: ignore[call-overload]
        subprocess.run([*control, "-o", options, "-l", folder / "log", "start"], **quiet)  # type: ignore[call-overload]
        try:
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **quiet)  # type: ignore[call-overload]
    finally:
        shutil.rmtree(folder)
