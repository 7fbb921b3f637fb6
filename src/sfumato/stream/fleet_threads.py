"""The threads of a fleet: the caller, and helpers that wait until they are given something to do.

What is handed over is begun by one helper or given up, never both, wherever an exception breaks in.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from queue import SimpleQueue

_HELPER, _NOBODY = "helper", "nobody"


class Errand:
    """Something that a helper does, unless it was given up before."""

    __slots__ = ("_do", "_over", "_whose", "problem")

    def __init__(self, do: Callable[[], None]) -> None:
        self._do = do
        self._whose: dict[str, str] = {}
        self._over = threading.Lock()
        self._over.acquire()
        self.problem: BaseException | None = None

    def run(self) -> None:
        """Do it, as a helper."""
        if self._belongs_to(_HELPER):
            try:
                self._do()
            except BaseException as problem:
                self.problem = problem
            finally:
                self._over.release()

    def give_up(self) -> bool:
        """Whether no helper has begun it; then none ever will."""
        return self._belongs_to(_NOBODY)

    def wait(self) -> None:
        """Until the helper that began it is done."""
        with self._over:
            return

    def _belongs_to(self, who: str) -> bool:
        # One step of the interpreter, and the same when it is asked again after an exception.
        return self._whose.setdefault("it", who) == who


def _help(errands: SimpleQueue[Errand | None]) -> None:
    """Do what comes, until there is nobody left to ask for anything."""
    while (errand := errands.get()) is not None:
        errand.run()
        del errand  # it holds the arrays of a step


class FleetThreads:
    """Threads that share the work of a step.

    Args:
        count: How many, with the one that calls.

    Examples:
        >>> done = []
        >>> threads = FleetThreads(2)
        >>> threads.share([0, 3, 8], lambda begin, end, thread: done.append((begin, end)))
        >>> sorted(done)
        [(0, 3), (3, 8)]
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._helpers: SimpleQueue[Errand | None] | None = None
        self._process = 0
        self._running: list[Errand] = []

    def settle(self) -> None:
        """End what an exception left behind: errands that run are waited for, none begins."""
        for errand in self._running:
            if not errand.give_up():
                errand.wait()

    def share(self, edges: Sequence[int], part: Callable[[int, int, int], None]) -> None:
        """Do the parts between successive edges, each by a thread of its own; the first by this."""
        (begin, end), *others = pairwise(edges)
        parts = [partial(part, *each, at) for at, each in enumerate(others, start=1)]
        self._begin(parts)
        part(begin, end, 0)
        self._end(self._running)

    def together(self, work: Callable[[int], None], done: Callable[[int], bool]) -> None:
        """Let all threads do what is left of some work, until nothing is left of it.

        Args:
            work: What each does, given its number; that of any alone would be enough.
            done: Whether so many threads have done with it for good: asked before they are waited
                for, so that nobody need be woken.
        """
        self._begin([partial(work, thread) for thread in range(1, self.count)])
        work(0)
        begun = [errand for errand in self._running if not errand.give_up()]
        ended = self.count > 1 and done(1 + len(begun))
        self._end([] if ended else begun)

    def _begin(self, parts: Sequence[Callable[[], None]]) -> None:
        # Helpers that an exception left behind must not write into what comes next.
        self.settle()
        # Known before a helper can take them: an exception while they are handed over loses none.
        self._running = [Errand(part) for part in parts]
        for errand in self._running:
            self._hand_over(errand)

    def _end(self, errands: Sequence[Errand]) -> None:
        for errand in errands:
            errand.wait()
        problems = [each.problem for each in errands if each.problem is not None]
        self._running = []
        if problems:
            raise problems[0]

    def _hand_over(self, errand: Errand) -> None:
        """Put something where a helper takes it; a forked child has none of its parent's."""
        if self._helpers is None or self._process != os.getpid():
            helpers: SimpleQueue[Errand | None] = SimpleQueue()
            for _ in range(1, self.count):
                threading.Thread(target=_help, args=(helpers,), daemon=True).start()
                weakref.finalize(self, helpers.put, None)
            self._helpers, self._process = helpers, os.getpid()
        self._helpers.put(errand)
