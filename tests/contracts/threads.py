"""Threads that start together and are switched as often as Python can."""

import sys
import threading
from collections.abc import Callable


def at_once(threads: int, work: Callable[[int], None]) -> None:
    """Do some work in each of some threads, all of them begun at one moment; wait for the last."""
    begin = threading.Barrier(threads)

    def worker(thread: int) -> None:
        begin.wait()
        work(thread)

    workers = [threading.Thread(target=worker, args=(thread,)) for thread in range(threads)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for each in workers:
            each.start()
        for each in workers:
            each.join()
    finally:
        sys.setswitchinterval(before)
