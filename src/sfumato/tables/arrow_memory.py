"""Memory of Arrow's arrays, while a table goes through in batches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_users: list[Any] = []
"""One entry for each table on its way; the first holds the pool of before."""


@contextmanager
def returned_memory() -> Iterator[None]:
    """Let Arrow take its memory from the system, and give it back there, in the meantime.

    Its own allocator keeps what was once used, in each thread: with batch after batch that adds up
    to more than all other arrays of a release. The pool is one for the whole process: the last of
    several tables sets it back.

    Examples:
        >>> import pyarrow as pa
        >>> with returned_memory():
        ...     pa.default_memory_pool().backend_name
        'system'
    """
    import pyarrow as pa

    with _lock:
        _users.append(_users[0] if _users else pa.default_memory_pool())
        pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        with _lock:
            before = _users.pop()
            if not _users:
                pa.set_memory_pool(before)
