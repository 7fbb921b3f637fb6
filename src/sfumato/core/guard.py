"""One rule for everything that remembers: one thread at a time, one process, and no copies.

What spends a budget must not be used by two threads in one step, not by a forked child beside its
parent, and not as a copy beside the original: each would release twice what is charged once. Who
needs to go on elsewhere stores the state, and begins there from it.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, Concatenate, NoReturn, ParamSpec, Self, SupportsIndex, TypeVar

from sfumato.core.errors import ForkedUse

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Owner = TypeVar("Owner", bound="Guarded")


class Guarded:
    """What remembers. Its methods hold `_lock` while they read or change it.

    A lock of the standard library, and not an object around one: `with` then cannot be broken into
    between taking it and being sure to give it back, and costs as little as can be.
    """

    __slots__ = ("__weakref__", "_lock")
    _lock: AbstractContextManager[Any]

    def __new__(cls, *_: object, **__: object) -> Self:
        """Made with a lock, whatever the subclass does in its own `__init__`."""
        instance = super().__new__(cls)
        instance._lock = threading.Lock()
        _ALIVE.add(instance)
        return instance

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} cannot be copied or stored: a copy could spend the same "
            "budget again; store its state, and begin from that"
        )

    def _abandoned(self) -> None:
        """What a forked child must do with the parent's object so that it does no harm."""


def guarded(
    method: Callable[Concatenate[Owner, Parameters], Result],
) -> Callable[Concatenate[Owner, Parameters], Result]:
    """A method that holds the lock of its object from beginning to end.

    Examples:
        >>> class Counter(Guarded):
        ...     count = 0
        ...     @guarded
        ...     def step(self) -> int:
        ...         self.count += 1
        ...         return self.count
        >>> Counter().step()
        1
    """

    @wraps(method)
    def held(self: Owner, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with self._lock:
            return method(self, *args, **kwargs)

    return held  # type: ignore[return-value]


class _Refused:
    """Stands for the lock of an object of another process."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __enter__(self) -> NoReturn:
        raise ForkedUse(self._kind)

    def __exit__(self, *_: object) -> None:
        """Never entered, so never left."""


_ALIVE: weakref.WeakSet[Guarded] = weakref.WeakSet()


def _after_fork() -> None:
    inherited = list(_ALIVE)
    for each in inherited:
        each._lock = _Refused(type(each).__name__)
    for each in inherited:
        each._abandoned()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
