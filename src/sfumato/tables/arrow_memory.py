"""Memory of Arrow's arrays, while a table goes through in batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def returned_memory() -> Iterator[None]:
    """Let Arrow take its memory from the system, and give it back there, in the meantime.

    Its own allocator keeps what was once used, in each thread: with batch after batch that adds up
    to more than all other arrays of a release.

    Examples:
        >>> import pyarrow as pa
        >>> with returned_memory():
        ...     pa.default_memory_pool().backend_name
        'system'
    """
    import pyarrow as pa

    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)
