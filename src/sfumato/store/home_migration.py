"""What is stored in forms of earlier versions, brought to those of this one; never back."""

from __future__ import annotations

from pathlib import Path

from sfumato.core.progress import Progress
from sfumato.store.folder_home import FolderHome
from sfumato.store.ledger_connection import read_only
from sfumato.store.ledger_form import VERSION
from sfumato.store.ledger_reader import LedgerReader
from sfumato.store.sqlite import SqliteStore


def migrate_folder(path: str | Path, progress: Progress | None = None) -> list[str]:
    """Bring every ledger of a home to the form of this version; rows stay as they are.

    Returns:
        What was done, in words; nothing if everything was in that form.
    """
    said = []
    with FolderHome(path) as home:
        for done, name in enumerate(home.names(), start=1):
            ledger = home.ledger_path(name)
            before = _version(ledger)
            with LedgerReader(ledger) as reader:
                plan = reader.front.plan
            if before != VERSION:
                with SqliteStore(ledger, plan):  # opened for writing, it is brought forward
                    said.append(f"ledger {name!r}: version {before} to {_version(ledger)}")
            if progress is not None:
                progress(done)
    return said


def _version(ledger: Path) -> int:
    with read_only(ledger) as database:
        (version,) = database.execute("SELECT version FROM ledger").fetchone()
    return int(version)
