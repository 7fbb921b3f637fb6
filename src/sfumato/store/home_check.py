"""All of a home, checked: the registry, every ledger, and what was written down of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from sfumato.core.errors import CorruptData, SfumatoError
from sfumato.core.progress import Progress
from sfumato.store.catalogue import Catalogue
from sfumato.store.folder_home import ANCHOR, HomeFiles
from sfumato.store.home import HeldLedger, anchor_of
from sfumato.store.home_anchor import HomeAnchor, anchor_problems
from sfumato.store.ledger_check import LedgerReport, checked
from sfumato.store.protocol import Head
from sfumato.store.stream_homes import reading_homes


@dataclass(slots=True)
class HomeReport:
    """What was found in a home.

    Attributes:
        anchor: How far all of it has come: write it down elsewhere, and compare later.
        entries: How many entries the registry has.
        releases: The releases that the registry knows, and how many rows each has.
        ledgers: What was found in each ledger.
        closed: Since when releases take no more events, of those that do not.
        unused: Releases without a ledger: nothing was released under them, or it was lost.
        problems: What is wrong.
    """

    anchor: HomeAnchor
    entries: int
    releases: dict[str, int] = field(default_factory=dict)
    ledgers: dict[str, LedgerReport] = field(default_factory=dict)
    closed: dict[str, str] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether everything fits."""
        return not self.problems


def check_home(
    home: HomeFiles, anchor: HomeAnchor | None = None, progress: Progress | None = None
) -> HomeReport:
    """Check every entry, row, state and sum of a home; it is only read.

    Args:
        home: The home, or a backup of one.
        anchor: What was written down earlier: the home must have grown from it.
        progress: Called with the number of ledgers that were checked.

    Examples:
        >>> from sfumato.store.folder_home import FolderHome
        >>> path = getfixture("tmp_path") / "town"
        >>> FolderHome(path).close()
        >>> with HomeFiles(path) as home:
        ...     check_home(home).problems
        []
    """
    head, problems = home.registry.head, list[str]()
    catalogue = Catalogue()
    try:
        catalogue = catalogue.after(home.registry.entries())
    except CorruptData as problem:
        problems.append(str(problem))
    held, reports = list[HeldLedger](), dict[str, LedgerReport]()
    for done, name in enumerate(home.names(), start=1):
        try:
            with home.ledger(name) as ledger:
                found = reports[name] = checked(ledger)
                front = ledger.front
        except SfumatoError as problem:
            problems.append(f"ledger {name!r}: {problem}")
            continue
        held.append(HeldLedger(name, front.job, front.plan, front.head))
        problems += [f"ledger {name!r}: {problem}" for problem in found.problems]
        problems += _other_release(catalogue, held[-1])
        problems += grown_after_end(catalogue, held[-1])
        if progress is not None:
            progress(done)
    report = HomeReport(anchor_of(head, held), head.entries, ledgers=reports, problems=problems)
    rows = {name: found.rows for name, found in reports.items()}
    report.releases = {name: rows.get(name, 0) for name in catalogue.releases}
    ended = {name: found.closed for name, found in catalogue.releases.items()}
    report.closed = {name: time for name, time in ended.items() if time is not None}
    report.unused = [name for name in catalogue.releases if name not in rows]
    problems += _lost_homes(home, {*catalogue.releases, *home.names()})
    for due in (anchor, _own_anchor(home)):
        if due is not None:
            problems += anchor_problems(home, due)
    return report


def _other_release(catalogue: Catalogue, ledger: HeldLedger) -> list[str]:
    """What shows that a ledger is not the one of its release."""
    release = catalogue.releases.get(ledger.name)
    if release is None or release.content.job == ledger.job:
        return []
    told = f"must be of `{release.content.job}`, as its release is"
    return [f"ledger {ledger.name!r} {told}; it is of `{ledger.job}`"]


def grown_after_end(catalogue: Catalogue, ledger: HeldLedger) -> list[str]:
    """What shows that something was answered under a release after it was closed."""
    release = catalogue.releases.get(ledger.name)
    if release is None or release.closed is None:
        return []
    rows = 0 if release.last_head is None else Head.read(release.last_head).entries
    if ledger.head.entries == rows and (not rows or str(ledger.head) == release.last_head):
        return []
    told = f"must have the {rows:,} rows with which its release was closed"
    return [f"ledger {ledger.name!r} {told}; it has {ledger.head.entries:,}, or others"]


def _lost_homes(home: HomeFiles, known: set[str]) -> list[str]:
    """What is wrong with where streams belong."""
    try:
        with reading_homes(home.streams_path) as homes:
            lost = sum(release not in known for _, release in homes)
    except SfumatoError as problem:
        return [str(problem)]
    told = "belong to a release that neither the registry nor a ledger knows"
    return [f"{lost} streams {told}"] if lost else []


def _own_anchor(home: HomeFiles) -> HomeAnchor | None:
    """What a backup says of itself."""
    path = home.path / ANCHOR
    return HomeAnchor.load(path) if path.exists() else None
