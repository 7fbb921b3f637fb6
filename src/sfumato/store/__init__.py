"""What is kept: bytes, files, the ledger of a release, the home of a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.core.lazy import lazily

if TYPE_CHECKING:
    from sfumato.store.catalogue import Catalogue as Catalogue
    from sfumato.store.codec import from_bytes as from_bytes
    from sfumato.store.codec import to_bytes as to_bytes
    from sfumato.store.folder_home import FolderHome as FolderHome
    from sfumato.store.folder_home import HomeFiles as HomeFiles
    from sfumato.store.home import Home as Home
    from sfumato.store.home import MemoryHome as MemoryHome
    from sfumato.store.home import open_home as open_home
    from sfumato.store.home_anchor import HomeAnchor as HomeAnchor
    from sfumato.store.home_anchor import check_anchor as check_anchor
    from sfumato.store.home_backup import backup_home as backup_home
    from sfumato.store.home_check import check_home as check_home
    from sfumato.store.home_restore import restore_home as restore_home
    from sfumato.store.registry import Registry as Registry

__getattr__, __dir__ = lazily(__name__)
