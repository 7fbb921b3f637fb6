"""A connection to a database that a forked child holds, too, and must never close."""

from __future__ import annotations

import ctypes

from sfumato.core.guard import Guarded


class DatabaseGuard(Guarded):
    """What remembers in a database, as `_database`; that of the parent stays open in a child."""

    def _abandoned(self) -> None:
        # A child that closed the parent's connection, at its exit for instance, would end it for
        # the parent; of SQLite it would empty and remove the write-ahead log, and what was
        # committed later would be lost. None if it was being made just then.
        database = getattr(self, "_database", None)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(database))
