"""The first use of a command: loops are compiled, once. A person is told; a second process helps.

Both processes keep what they compile in the same folder, and neither compiles what the other is
at. The helper runs small jobs on made-up tables (`warm_jobs`): it sees nothing of the data.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar

from sfumato.cli.console import say_in_passing, unsay
from sfumato.core.compile_events import told

_HELPERS = dict.fromkeys(("release", "audit", "plan", "demo"), "release")
"""The job that compiles what a command needs last."""

_MANY = 5
"""A loop or two are quicker compiled than a helper is started."""

_alone: ContextVar[bool] = ContextVar("alone", default=False)


@contextmanager
def alone() -> Iterator[None]:
    """Run commands that start no helpers: a helper's own."""
    before = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(before)


@contextmanager
def first_use(command: str, quiet: bool) -> Iterator[None]:
    """The time of one command in which loops may have to be compiled."""
    names: list[str] = []
    begun = time.monotonic()
    with ExitStack() as stack:

        def compiling(name: str) -> None:
            names.append(name)
            if not quiet:
                taken = time.monotonic() - begun
                done = f"{len(names)} ({name}), {taken:.0f} s"
                say_in_passing(f"compiling loops, once, a minute or two in all: {done}")
            if len(names) == _MANY and command in _HELPERS and not _alone.get():
                _start(_HELPERS[command], stack)

        stack.enter_context(told(compiling))
        stack.callback(unsay)
        yield


def _start(job: str, stack: ExitStack) -> None:
    """Let another process run a job until this command ends; without one it takes longer."""
    from sfumato.core.loop_folders import places

    if len(os.sched_getaffinity(0)) < 2 or not places(__file__).lasting:
        return
    # -P: what lies in the folder of the data is no part of the program.
    words = [sys.executable, "-P", "-m", "sfumato.cli.warm_jobs", job]
    nothing = subprocess.DEVNULL
    try:
        helper = subprocess.Popen(words, stdin=nothing, stdout=nothing, stderr=nothing)
    except OSError:
        return
    stack.callback(_stop, helper)


def _stop(helper: subprocess.Popen[bytes]) -> None:
    helper.terminate()
    try:
        helper.wait(timeout=5)
    except subprocess.TimeoutExpired:
        helper.kill()
        helper.wait()
