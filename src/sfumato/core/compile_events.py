"""Who is told that a loop is being compiled, and whether a loop waits until it is worth that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_eager: ContextVar[bool] = ContextVar("eager", default=False)
_listeners: list[Callable[[str], None]] = []


def compiling(name: str) -> None:
    """Tell whoever listens that a loop is not on disk: it is compiled now, here or elsewhere."""
    for listener in tuple(_listeners):
        listener(name)


@contextmanager
def told(listener: Callable[[str], None]) -> Iterator[None]:
    """Be told the name of each loop that is compiled in the meantime.

    Examples:
        >>> names = []
        >>> with told(names.append):
        ...     compiling("product")
        >>> names
        ['product']
    """
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def eagerly() -> Iterator[None]:
    """Compile every loop at its first call, also for so few rows that they are done without it.

    Examples:
        >>> with eagerly():
        ...     is_eager()
        True
    """
    before = _eager.set(True)
    try:
        yield
    finally:
        _eager.reset(before)


def is_eager() -> bool:
    """Whether loops are compiled whatever the job."""
    return _eager.get()
