"""A command in a process of its own, forked from this one: what it needs is loaded already.

It has its own standard streams, signals, environment and exit code, like one from a shell; only the
seconds that an interpreter takes to begin are saved.
"""

import gc
import os
import select
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import BinaryIO, NoReturn
from unittest import mock

MAIN = "from sfumato.cli import main; main()"
"""What the installed command does."""


class ForkedProcess:
    """What `subprocess.Popen` of the command would be, as far as tests ask for it.

    Args:
        arguments: Of the command.
        script: What it does instead of the plain command.
        environment: All of its environment; else that of this process.
        terminal: What it writes both outputs to; else a pipe each, of which nothing comes then.

    Attributes:
        returncode: The exit code; None while it runs.
        stdin: Where it reads.
        stdout: What it prints.
        stderr: What it complains about.
    """

    def __init__(
        self,
        arguments: Sequence[object],
        script: str = MAIN,
        environment: Mapping[str, str] | None = None,
        terminal: int | None = None,
    ) -> None:
        pipes = [os.pipe() for _ in range(3)]
        surroundings = dict(os.environ if environment is None else environment)
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _run([str(each) for each in arguments], script, pipes, surroundings, terminal)
        (reads, writes), out, err = pipes
        for handle in (reads, out[1], err[1]):
            os.close(handle)
        self.returncode: int | None = None
        self.stdin: BinaryIO = os.fdopen(writes, "wb", buffering=0)
        self.stdout: BinaryIO = os.fdopen(out[0], "rb", buffering=0)
        self.stderr: BinaryIO = os.fdopen(err[0], "rb", buffering=0)

    def poll(self) -> int | None:
        """The exit code, if it has ended."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float = 120.0) -> int:
        """Wait for its end."""
        until = time.monotonic() + timeout
        while self.poll() is None:
            assert time.monotonic() < until, "the command did not end"
            time.sleep(0.005)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, kind: int) -> None:
        """Send a signal."""
        if self.poll() is None:
            os.kill(self.pid, kind)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, data: bytes = b"", timeout: float = 120.0) -> tuple[bytes, bytes]:
        """Send what is left to send, read both outputs to their ends, and wait."""
        told = {self.stdout.fileno(): b"", self.stderr.fileno(): b""} if self._readable() else {}
        left, until = dict.fromkeys(told), time.monotonic() + timeout
        if not data and not self.stdin.closed:
            self.stdin.close()
        while left:
            writes = [] if self.stdin.closed else [self.stdin]
            ready, open_, _ = select.select([*left], writes, [], until - time.monotonic())
            assert ready or open_, "the command did not end"
            if open_:
                data = self._sent(data)
            for handle in ready:
                part = os.read(handle, 1 << 16)
                told[handle] += part
                if not part:
                    del left[handle]
        self.wait(timeout)
        out, err = [told.get(handle, b"") for handle in (*told, -1, -1)][:2]
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()
        return out, err

    def _readable(self) -> bool:
        return not self.stdout.closed and not self.stderr.closed

    def _sent(self, data: bytes) -> bytes:
        try:
            data = data[os.write(self.stdin.fileno(), data[: 1 << 16]) :]
        except BrokenPipeError:
            data = b""
        if not data:
            self.stdin.close()
        return data


def _run(
    arguments: list[str],
    script: str,
    pipes: list[tuple[int, int]],
    environment: dict[str, str],
    terminal: int | None,
) -> NoReturn:
    """In the child: the script on standard streams of its own, and nothing of pytest after it."""
    code = 70
    try:
        gc.freeze()  # objects of the parent are not the child's to finish
        outputs = (pipes[1][1], pipes[2][1]) if terminal is None else (terminal, terminal)
        for number, handle in enumerate((pipes[0][0], *outputs)):
            os.dup2(handle, number)
        for pair in pipes:
            for handle in pair:
                os.close(handle)
        if terminal is not None:
            os.close(terminal)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w", encoding="utf-8")
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", buffering=1)
        os.environ.clear()
        os.environ.update(environment)
        with mock.patch.object(sys, "argv", ["sfumato", *arguments]):
            exec(script, {"__name__": "__main__"})
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            code = code or 120
        os._exit(code)
