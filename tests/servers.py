"""Servers that tests bring along: private PostgreSQL and Mosquitto, and where Chromium lies.

`python -m tests.servers --install postgresql chromium chromium-driver mosquitto` installs Debian's
packages if they are missing and it may. A server that Debian starts by itself is never used: tests
begin one of their own, in a temporary folder, on a free port, and stop it however the run ended.
"""

import argparse
import contextlib
import fcntl
import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psycopg

FOLDER = "SFUMATO_TEST_SERVERS"
"""Names the folder that the workers of one run share; whoever began the run removes it."""
MEMORY = Path("/dev/shm")
"""Where Linux keeps files in memory: nobody waits for a disk there."""
_ROOM = 4 << 30
"""Bytes that must be free there; a whole run takes a part of it."""
WITHOUT = "SFUMATO_TEST_WITHOUT"
"""Names packages that a run does without, as if they were missing."""
OWNER = "sfumato"
_PATIENCE = 60.0
_UNPRIVILEGED = ("postgres", "nobody")
_GIVEN = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "60",
    "shared_buffers": "16MB",
    "max_wal_size": "128MB",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
}
MOSQUITTO = Path("/usr/sbin/mosquitto")
PACKAGES: dict[str, Callable[[], bool]] = {
    "postgresql": lambda: postgres_binaries() is not None,
    "chromium": lambda: Path("/usr/bin/chromium").is_file(),
    "chromium-driver": lambda: Path("/usr/bin/chromedriver").is_file(),
    "mosquitto": lambda: MOSQUITTO.is_file(),
    "mosquitto-clients": lambda: shutil.which("mosquitto_sub") is not None,
    "openjdk-17-jre-headless": lambda: shutil.which("java") is not None,
}
NEEDED = {
    "postgres": ("postgresql",),
    "own_postgres": ("postgresql",),
    "chromium": ("chromium", "chromium-driver"),
    "mosquitto": ("mosquitto",),
    "spark": ("openjdk-17-jre-headless",),
    "cluster": ("openjdk-17-jre-headless",),
}
"""Fixtures, and the packages without which their tests are not run."""


def postgres_binaries() -> Path | None:
    """Debian's folder of the newest PostgreSQL; None if there is none."""
    found = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    newest = max(found, key=lambda path: int(path.parts[-3]), default=None)
    return None if newest is None else newest.parent


def chromium_paths() -> tuple[Path, Path] | None:
    """The browser and its driver; None if one of them is missing."""
    if not (PACKAGES["chromium"]() and PACKAGES["chromium-driver"]()):
        return None
    return Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")


def missing(fixture: str) -> list[str]:
    """The packages that the tests of a fixture lack, or are to do without (`WITHOUT`)."""
    without = os.environ.get(WITHOUT, "").split()
    return [name for name in NEEDED[fixture] if name in without or not PACKAGES[name]()]


@dataclass(frozen=True)
class PrivatePostgres:
    """A cluster of its own.

    Attributes:
        folder: Where everything of it lies.
        port: Where it listens.
        password: Of its owner.
    """

    folder: Path
    port: int
    password: str

    @classmethod
    def made(cls, folder: Path) -> "PrivatePostgres":
        """A new cluster; not yet running."""
        server = cls(folder, free_port(), secrets.token_hex(16))
        word = folder / "password"
        word.write_text(server.password)
        if os.geteuid() == 0:
            owner = _unprivileged()
            for path in (folder, word):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        server._run(
            "initdb",
            *("-D", str(server.data), "-U", OWNER, "-A", "scram-sha-256", f"--pwfile={word}"),
            *("--encoding=UTF8", "--locale=C", "--no-sync"),
        )
        return server

    @property
    def data(self) -> Path:
        """The folder of the cluster itself."""
        return self.folder / "data"

    def url(self, database: str = "postgres") -> str:
        """How a database of it is opened, password included."""
        return f"postgresql://{OWNER}:{self.password}@127.0.0.1:{self.port}/{database}"

    def start(self, **settings: str) -> None:
        """Start it, and wait until it answers."""
        given = {**_GIVEN, **settings, "port": str(self.port)}
        given["unix_socket_directories"] = str(self.folder)
        options = " ".join(f"-c {name}={value}" for name, value in given.items())
        log = str(self.folder / "log")
        self._run("pg_ctl", "start", "-w", "-D", str(self.data), "-l", log, "-o", options)

    def stop(self, mode: str = "fast") -> None:
        """Stop it if it runs: `fast`, or `immediate`, as if it had crashed."""
        if (self.data / "postmaster.pid").exists():
            self._run("pg_ctl", "stop", "-w", "-D", str(self.data), "-m", mode)

    def kill(self) -> None:
        """End all of its processes at once, as a machine that fails does."""
        main = int((self.data / "postmaster.pid").read_text().split()[0])
        children = _children(main)
        for process in (main, *children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        wait_until(lambda: all(map(_ended, (main, *children))))
        # Where nobody waits for orphans, one that ended still looks alive to the next server.
        for lock in (self.data / "postmaster.pid", self.folder / f".s.PGSQL.{self.port}.lock"):
            lock.unlink()

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a new database, which is gone afterwards."""
        name = f"t{secrets.token_hex(8)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
            yield self.url(name)
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())

    def _run(self, program: str, *arguments: str) -> None:
        binaries = postgres_binaries()
        assert binaries is not None, "PostgreSQL is not installed"
        command = [str(binaries / program), *arguments]
        if os.geteuid() == 0:
            command = ["runuser", "-u", _unprivileged().pw_name, "--", *command]
        # A server inherits what it prints to: a file, for a pipe would never end.
        with tempfile.TemporaryFile("w+") as said:
            done = subprocess.run(
                command, cwd="/", stdin=subprocess.DEVNULL, stdout=said, stderr=said, check=False
            )
            said.seek(0)
            assert done.returncode == 0, f"{program}: {said.read()}"


@contextlib.contextmanager
def private_postgres() -> Iterator[PrivatePostgres]:
    """A running cluster that nobody else uses; gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="sfumato-postgres-"))
    try:
        server = PrivatePostgres.made(folder)
        guard = _guarded(folder, os.getpid())
        try:
            server.start()
            yield server
        finally:
            server.stop("immediate")
            os.kill(guard, signal.SIGKILL)
            os.waitpid(guard, 0)
    finally:
        shutil.rmtree(folder)


@dataclass
class PrivateMosquitto:
    """A broker of its own, which keeps sessions on disk.

    Attributes:
        folder: Where everything of it lies.
        port: Where it listens.
        settings: Further lines of its configuration.
    """

    folder: Path
    port: int
    settings: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """How it is reached."""
        return f"mqtt://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        lines = [
            *(f"listener {self.port} 127.0.0.1", "persistence true", "max_queued_messages 0"),
            *(f"persistence_location {self.folder}/", "log_dest stderr", "log_type error"),
            *("log_type warning", *self.settings),
        ]
        if not any(line.startswith("password_file") for line in self.settings):
            lines.append("allow_anonymous true")
        # It ends with whoever began it, also if that is killed.
        command = ["setpriv", "--pdeathsig", "KILL"]
        if os.geteuid() == 0:
            owner = _unprivileged()
            command += [f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
        configuration = self.folder / "mosquitto.conf"
        configuration.write_text("\n".join(lines) + "\n")
        configuration.chmod(0o644)  # whatever mask of rights a test left behind
        nothing = subprocess.DEVNULL
        command += ["--", str(MOSQUITTO), "-c", str(configuration)]
        with self.said.open("wb") as said:
            self.process = subprocess.Popen(command, stdin=nothing, stdout=said, stderr=said)
        end = time.monotonic() + _PATIENCE
        while True:
            alive = self.process.poll() is None and time.monotonic() < end
            assert alive, f"Mosquitto did not start; it said last:\n{self.last_lines()}"
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.01)

    @property
    def said(self) -> Path:
        """Where errors and warnings of it go."""
        return self.folder / "mosquitto.out"

    def last_lines(self, number: int = 20) -> str:
        """What it said last, for whoever looks for why it does not run."""
        lines = self.said.read_text(errors="replace").splitlines()[-number:]
        return "\n".join(lines) or "nothing"

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it; on SIGTERM it saves its sessions, on SIGKILL it has what it saved before."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(_PATIENCE)
            self.process = None


@contextlib.contextmanager
def private_mosquitto(*settings: str) -> Iterator[PrivateMosquitto]:
    """A running broker that nobody else uses; gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="sfumato-mosquitto-"))
    server = PrivateMosquitto(folder, free_port(), settings)
    try:
        server.start()
        yield server
    finally:
        server.stop(signal.SIGKILL)
        shutil.rmtree(folder)


def shared_postgres() -> PrivatePostgres:
    """The cluster that all workers of this run share; begun by the first who asks."""
    folder = Path(os.environ[FOLDER])
    with _locked(folder / "lock"):
        record = folder / "postgres.json"
        if not record.exists():
            place = folder / "postgres"
            place.mkdir()
            server = PrivatePostgres.made(place)
            server.start()
            record.write_text(json.dumps([server.port, server.password]))
        port, password = json.loads(record.read_text())
    return PrivatePostgres(folder / "postgres", port, password)


def begin_run() -> Path:
    """The folder of a run; its workers find it in the environment.

    It lies in memory, with all that tests write, if there is room and nobody named another place
    (TMPDIR): tests of stores wait for a disk half of their time, and none of them pulls its plug.
    """
    memory = _memory()
    folder = Path(tempfile.mkdtemp(prefix="sfumato-servers-", dir=memory))
    folder.chmod(0o711)  # the owner of a server passes through
    if memory is not None:
        temporary = folder / "tmp"
        temporary.mkdir()
        temporary.chmod(0o1777)
        os.environ["TMPDIR"], tempfile.tempdir = str(temporary), None
    os.environ[FOLDER] = str(folder)
    _guarded(folder, os.getpid())
    return folder


def _memory() -> Path | None:
    """Where files of a run are kept in memory; None if they are not."""
    if os.environ.get("TMPDIR") or not os.access(MEMORY, os.W_OK | os.X_OK):
        return None
    found = os.statvfs(MEMORY)
    roomy = found.f_bavail * found.f_frsize >= _ROOM
    return MEMORY if roomy and not found.f_flag & os.ST_NOEXEC else None


def end_run(folder: Path) -> None:
    """Stop what was begun in a run, and remove it."""
    place = folder / "postgres"
    if place.exists():
        PrivatePostgres(place, 0, "").stop("immediate")
    if tempfile.gettempdir().startswith(str(folder)):
        del os.environ["TMPDIR"]
        tempfile.tempdir = None
    shutil.rmtree(folder)
    os.environ.pop(FOLDER, None)


def _guarded(folder: Path, owner: int) -> int:
    """A process that stops the servers of a folder if whoever runs the tests was killed."""
    command = [sys.executable, __file__, "--guard", str(owner), str(folder)]
    # It outlives the worker that began it, so it is not one of its children to be waited for.
    # Nor does it hold on to a pipe, of which somebody may wait for the end.
    silent = [(os.POSIX_SPAWN_OPEN, handle, os.devnull, os.O_RDWR, 0) for handle in range(3)]
    return os.posix_spawn(sys.executable, command, os.environ, file_actions=silent, setsid=True)


def guard(process: int, folder: Path) -> None:
    """Wait until a process has ended; whatever is still in the folder then, is stopped."""
    while folder.exists() and not _ended(process):
        time.sleep(0.5)
    for data in (folder / "data", folder / "postgres" / "data"):
        if data.exists():
            PrivatePostgres(data.parent, 0, "").stop("immediate")
    shutil.rmtree(folder, ignore_errors=True)


def install(packages: list[str]) -> None:
    """Install what is missing, where that is allowed; say what tests are not run where not."""
    lacking = [name for name in packages if not PACKAGES[name]()]
    if lacking and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update"], ["install", "-y", "--no-install-recommends", *lacking]):
            subprocess.run(["apt-get", "-qq", *command], env=quiet, check=False)
    for name in packages:
        if not PACKAGES[name]():
            rule = f"it is missing and could not be installed (as root: apt-get install {name})"
            print(f"NOT RUN: tests that need {name}: {rule}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[IO[str]]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def _unprivileged() -> pwd.struct_passwd:
    """Whom a server runs as when tests are run by root, as whom it refuses to."""
    names = {user.pw_name: user for user in pwd.getpwall()}
    return next(names[name] for name in _UNPRIVILEGED if name in names)


def free_port() -> int:
    """A port for a server that is not there yet, or stops and comes back.

    The kernel gives connections those from 32,768 on: of these, one could be taken meanwhile.
    Workers of a run choose among different ones.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    choices = range(15_000 + worker % 16, 32_000, 16)
    while True:
        port = secrets.choice(choices)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def _children(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(child) for child in text.split()]


def _ended(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"  # ended; whoever is to be told is not there


def wait_until(done: Callable[[], bool]) -> None:
    """Wait until something is the case, and not for ever."""
    end = time.monotonic() + _PATIENCE
    while not done():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.01)


def main() -> None:
    """Install packages, or wait for a process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", nargs="+", choices=list(PACKAGES), default=[])
    parser.add_argument("--guard", nargs=2, metavar=("PROCESS", "FOLDER"))
    given = parser.parse_args()
    if given.guard:
        guard(int(given.guard[0]), Path(given.guard[1]))
    install(given.install)


if __name__ == "__main__":
    main()
