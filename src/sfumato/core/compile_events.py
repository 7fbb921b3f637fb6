"""Who is told that a loop is being compiled: nobody, unless a command asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
