"""All of a ledger, checked: every row, every state, every sum; and copies that are whole."""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import reduce
from itertools import count, islice, repeat
from operator import itemgetter
from pathlib import Path
from typing import Protocol

from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.core.numerics import add_up
from sfumato.store.chain import (
    DIGEST,
    HASH,
    HEAD,
    LEAKAGE,
    MODEL_FREE,
    SEQUENCE,
    SOURCE,
    STREAM,
    Row,
    first_hash,
    first_head,
    intact,
    next_head,
    state_digest,
)
from sfumato.store.ledger_head import missing_rows
from sfumato.store.ledger_reader import LedgerReader
from sfumato.store.ledger_rows import LedgerRows
from sfumato.store.protocol import Head

_SHOWN = 20
_place, _source = itemgetter(0, STREAM, SEQUENCE), itemgetter(SOURCE)


@dataclass(slots=True)
class LedgerReport:
    """What was found in a ledger.

    Attributes:
        rows: How many answers it holds.
        streams: Of how many streams.
        head: Stands for all rows: write it down elsewhere, and compare later.
        largest_leakage: Largest leakage under the model that a stream has in all.
        largest_model_free: The same whatever the model.
        inputs: What was answered, and how many rows of each.
        identity: What its events are known by.
        job: The job that writes it.
        anchored: Whether the head kept beside the ledger was there to compare with.
        problems: What is wrong, the first few.
        problem_count: How many things are wrong in all.
    """

    rows: int
    streams: int
    head: str
    largest_leakage: float = 0.0
    largest_model_free: float = 0.0
    inputs: dict[str, int] = field(default_factory=dict)
    identity: str | None = None
    job: str = "release"
    anchored: bool = False
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0

    @property
    def passed(self) -> bool:
        """Whether everything fits."""
        return self.problem_count == 0

    def note(self, problem: str) -> None:
        """Remember a problem."""
        self.problem_count += 1
        if len(self.problems) < _SHOWN:
            self.problems.append(problem)


@dataclass(slots=True)
class _Stream:
    """What the rows of one stream add up to."""

    hash: bytes
    moments: int = 0
    leakage: float = 0.0
    model_free: float = 0.0
    digest: bytes | None = None

    def add(self, link: Sequence[Row]) -> None:
        """One more link."""
        *_, last = link
        self.hash, self.moments, self.digest = last[HASH], last[SEQUENCE] + 1, last[DIGEST]
        self.leakage = reduce(add_up, [row[LEAKAGE] for row in link], self.leakage)
        self.model_free = reduce(add_up, [row[MODEL_FREE] for row in link], self.model_free)


def check_ledger(path: str | Path, expect: Head | None = None) -> LedgerReport:
    """Check every row of a ledger against the chain, the states and what was written beside it.

    Args:
        path: The ledger; it is only read.
        expect: A head that was written down earlier: the ledger must have grown from it.
    """
    with LedgerReader(path) as ledger:
        return checked(ledger, expect)


class Snapshots(Protocol):
    """A store that can be read in full while it is in use."""

    def snapshot(self) -> AbstractContextManager[LedgerRows]:
        """The ledger as it is now."""
        ...


def check_store(store: Snapshots, expect: Head | None = None) -> LedgerReport:
    """Check every row of a ledger that is open, beside whatever goes on in it.

    Args:
        store: Holds the ledger: a `SqliteStore` with a name, or a `PostgresStore`.
        expect: A head that was written down earlier: the ledger must have grown from it.
    """
    with store.snapshot() as ledger:
        return checked(ledger, expect)


def checked(ledger: LedgerRows, expect: Head | None = None) -> LedgerReport:
    """The same for a ledger that is being read."""
    front = ledger.front
    report = LedgerReport(front.head.entries, 0, str(front.head), identity=front.identity)
    report.job = front.job
    report.inputs = ledger.inputs()
    report.anchored = ledger.anchored is not None
    streams: dict[str, _Stream] = {}
    with _noting(report):
        streams = _walk(ledger, report)
        report.streams = len(streams)
        _check_states(ledger, streams, report)
        for stray in ledger.stray():
            report.note(stray)
    with _noting(report):
        if (missing := missing_rows(ledger)) is not None:
            report.note(missing)
    if expect is not None:
        with _noting(report):
            if ledger.head_at(expect.entries) != expect:
                report.note(f"the ledger did not grow from the expected head {expect}")
    if report.passed:
        ledger.walked = {name: stream.moments for name, stream in streams.items()}
    report.largest_leakage = max((one.leakage for one in streams.values()), default=0.0)
    report.largest_model_free = max((one.model_free for one in streams.values()), default=0.0)
    return report


@contextlib.contextmanager
def _noting(report: LedgerReport) -> Iterator[None]:
    try:
        yield
    except CorruptData as problem:
        report.note(str(problem))


def _walk(ledger: LedgerRows, report: LedgerReport) -> dict[str, _Stream]:
    """Recompute both chains, link by link."""
    front = ledger.front
    streams: dict[str, _Stream] = {}
    head, number = first_head(front.id, front.plan), 0
    hashes: list[bytes] = []
    sources: Counter[str] = Counter()
    for link in ledger.links():
        name = link[0][STREAM]
        stream = streams.get(name)
        if stream is None:
            stream = streams[name] = _Stream(first_hash(front.id, front.plan, name))
        due = zip(count(number + 1), repeat(name), count(stream.moments))
        if list(map(_place, link)) != list(islice(due, len(link))):
            report.note(f"{_where(link)}: a row before it is missing, or stands elsewhere")
        changed = not intact(link, stream.hash) or any(row[HEAD] for row in link[:-1])
        own, above = link[-1][HASH:]
        hashes.append(own)
        if above:
            changed = changed or next_head(head, hashes) != above
            head, hashes = above, []
        if changed:
            report.note(f"{_where(link)}: it was changed, or a row before it")
        number = link[-1][0]
        stream.add(link)
        sources.update(map(_source, link))
    for label, rows in ledger.input_rows().items():
        if rows != sources[label]:
            report.note(f"input {label!r} must have {rows} rows; it has {sources[label]}")
    end = Head(number, head)
    if hashes or end != front.head:
        report.note(f"the ledger must end with {front.head}; it ends with {end}")
    return streams


def _where(link: Sequence[Row]) -> str:
    """The place of a link, for a message."""
    first, last = link[0], link[-1]
    stream = f"of stream {first[STREAM]!r}"
    if len(link) == 1:
        return f"row {first[0]} (moment {first[SEQUENCE]} {stream})"
    moments = f"moments {first[SEQUENCE]} to {last[SEQUENCE]}"
    return f"one of the rows {first[0]} to {last[0]} ({moments} {stream})"


def _check_states(ledger: LedgerRows, found: dict[str, _Stream], report: LedgerReport) -> None:
    there = set()
    for name, moments, leakage, model_free, state, own in ledger.stream_rows():
        there.add(name)
        stream = found.get(name)
        if stream is None or (moments, own) != (stream.moments, stream.hash):
            report.note(f"stream {name!r}: its state is not the one after its last row")
        elif state_digest(leakage, model_free, state) != stream.digest:
            report.note(f"stream {name!r}: its state was changed")
        else:
            sums = [(leakage, stream.leakage), (model_free, stream.model_free)]
            if not all(math.isclose(*pair, rel_tol=1e-9, abs_tol=1e-300) for pair in sums):
                report.note(f"stream {name!r}: what it spent is not the sum of its rows")
    for name in found.keys() - there:
        report.note(f"stream {name!r}: its state is missing")


def backup_ledger(path: str | Path, copy: str | Path) -> LedgerReport:
    """Copy a ledger, also one in use: with all that is in its log, checked, and on disk.

    Args:
        path: The ledger.
        copy: The copy; must not exist.

    Raises:
        CorruptData: If the ledger is damaged; no copy is left then.
    """
    target = Path(copy)
    if target.exists() or target.is_symlink() or not target.parent.is_dir():
        raise InvalidParameter("copy", str(copy), "be a new file in a folder that exists")
    with LedgerReader(path) as ledger:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
        try:
            with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as database:
                ledger.copy_to(database)
                # One file that needs no other: the copy has no log and nobody writes it.
                database.execute("PRAGMA journal_mode=DELETE")
                database.execute("UPDATE ledger SET closed = 1")
            # The head beside the ledger shows one that was rolled back; its copy would not.
            report = check_ledger(target, ledger.anchored)
            if not report.passed:
                raise CorruptData(f"{path}: {report.problems[0]}")
            _on_disk(target)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
    return report


def _on_disk(path: Path) -> None:
    for name, kind in ((path, os.O_RDONLY), (path.parent, os.O_RDONLY | os.O_DIRECTORY)):
        handle = os.open(name, kind | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
