"""A home at any place, opened to be read: by checks, exports and backups, beside a service."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sfumato.core.errors import InvalidParameter
from sfumato.core.progress import Progress
from sfumato.store.folder_home import HomeFiles
from sfumato.store.home import check_postgres, is_postgres
from sfumato.store.home_migration import migrate_folder


@contextlib.contextmanager
def reading(where: str) -> Iterator[HomeFiles]:
    """A home as files; of a database, as a copy of one moment that is gone afterwards.

    Args:
        where: A folder, a backup, or `postgresql://...`.
    """
    if not is_postgres(where):
        with HomeFiles(where) as files:
            yield files
        return
    check_postgres()
    from sfumato.store.postgres_copy import copy_postgres

    with tempfile.TemporaryDirectory(prefix="sfumato-home-") as folder:
        copy_postgres(where, Path(folder))
        with HomeFiles(folder) as files:
            yield files


def migrate_home(where: str, progress: Progress | None = None) -> list[str]:
    """Bring what is stored at a place to the forms of this version.

    Returns:
        What was done, in words; nothing if there was nothing to do.
    """
    if where == "memory:":
        raise InvalidParameter("home", where, "be a folder or postgresql://...")
    if not is_postgres(where):
        with HomeFiles(where):  # nothing is made where there is no home
            pass
        return migrate_folder(where, progress)
    check_postgres()
    from sfumato.store.postgres_copy import migrate_database

    return migrate_database(where)
