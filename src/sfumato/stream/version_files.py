"""The versions of a learning release as a file: for readers, and held against what outputs teach.

The file decides nothing. Rules and outputs do, and both are in the ledger, in its chain: a release
that goes on, and an audit, learn every version again and refuse a file that says another.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sfumato.store.codec import to_bytes
from sfumato.store.files import load_stored
from sfumato.store.outputs import write_whole
from sfumato.store.protocol import LedgerMismatch
from sfumato.stream.model_versions import ModelVersion
from sfumato.stream.version_history import VersionHistory


@dataclass(frozen=True, slots=True, eq=False)
class LearntVersions:
    """All versions of a release, as a file holds them.

    Attributes:
        rules: Fingerprint of the rules that they were learnt under.
        versions: The versions, from number 1 on.
    """

    rules: str
    versions: tuple[ModelVersion, ...]

    @property
    def fingerprints(self) -> list[str]:
        """What tells the versions from others."""
        return [version.fingerprint for version in self.versions]


def versions_beside(path: str | Path) -> Path:
    """Where the versions of a ledger, or of a released table, lie."""
    return Path(f"{path}.versions")


def versions_bytes(history: VersionHistory) -> bytes:
    """The versions that outputs have led to, as the bytes of a file."""
    return to_bytes(LearntVersions(history.rules.fingerprint, history.versions()))


def save_versions(history: VersionHistory, path: str | Path) -> None:
    """Write the versions to a file, which appears whole; durable when this returns."""
    write_whole(path, versions_bytes(history))


def load_versions(path: str | Path) -> LearntVersions:
    """Read what `save_versions` wrote.

    Raises:
        CorruptData: If the file is none, is damaged or comes from another version.
    """
    learnt: LearntVersions = load_stored(path, LearntVersions)
    return learnt


def check_versions(history: VersionHistory, path: Path) -> None:
    """Hold a file of versions against what the outputs of a ledger teach.

    Raises:
        LedgerMismatch: If it is not there although values left under a version, or says another
            than outputs led to: it was forged, or learnt by another program.
    """
    versions = history.versions()
    made = [version.fingerprint for version in versions]
    # A run may end, or crash, between the last value before a version and the file with it.
    under = [one for one in versions if one.values < history.count]
    there = load_versions(path) if path.exists() else None
    if there is None and not any(version.moves for version in under):
        return
    told = [] if there is None else there.fingerprints
    right = len(under) <= len(told) <= len(made) and told == made[: len(told)]
    if there is None or there.rules != history.rules.fingerprint or not right:
        raise LedgerMismatch(
            f"{path}: the versions must be those that the outputs of the ledger lead to; they were "
            "changed, or learnt by another program"
        )
