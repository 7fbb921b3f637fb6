"""What a release over time needs of a store, whatever its job and wherever the bytes lie.

A store holds, for one plan, every answer that was ever given and where each stream stands. It knows
no job: an answer is text and numbers, and a state is opaque bytes (`codec`). A job uses it so:

1. Open: `SqliteStore(path, fingerprint, job=JOB, rules=document)`. A store is held by one
   process from then until it is closed; one that was begun with another plan is refused.
2. `begin(name, identity, again)` says which input is answered now, and gives the secret of the
   digests of its values. What tells its events apart (`Identity`) never changes within a store.
3. For a group of rows: `answers(ids)` finds those that were answered before. A retry gets its old
   answer, if the digest of its value (`value_tag`) is the old one; nothing is drawn for it.
4. For each other row: take `state(stream)`, or begin one; step; collect the answers, and the state
   after the last of them for each stream, as a `Position`.
5. `commit(answers, positions)`: all or nothing, on disk when it returns. Only then may an answer
   leave. What was drawn is committed also if a later row of the group is refused.

Many rows at once: `known(ids)` says which were answered before, `value_tags` makes all digests,
`commit_columns(answers, positions)` stores arrays; the ledger is as if they had come one by one.

`ledgered_run.LedgeredRun` does 3 to 5 for any job. Two numbers of a stream are kept in the open,
`leakage` and `model_free`, each in a unit that adds up: they never fall, and a check of the ledger
compares them with the sums of the rows. A job without one of them says 0 everywhere.
A new kind of store inherits `tests/contracts/store_laws.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

from sfumato.core.arrays import Bools
from sfumato.core.errors import SfumatoError

if TYPE_CHECKING:
    from sfumato.store.answer_columns import AnswerColumns, PositionColumns

Released: TypeAlias = str | int | float | None
"""What may leave in one answer; a job that releases more than one number writes it as text."""


class LedgerMismatch(SfumatoError):
    """A ledger belongs to another plan, an event id to another event, or a history to another."""


class ReleaseClosed(LedgerMismatch):
    """A release was closed: its ledger takes no more answers, and tells those that it has."""

    def __init__(self) -> None:
        super().__init__("the release was closed: nothing is answered under it any more")


class StoreUnavailable(SfumatoError):
    """A store cannot be reached, or did not say whether it stored what it was given.

    Whoever asked treats its events as unstored and may ask again with the same ids: what was stored
    all the same is answered from the store.
    """


class Identity(StrEnum):
    """What tells an event from all others: through days, files and restarts."""

    EVENT = "event"
    TIME = "time"
    ROW = "row"


class Again(StrEnum):
    """What a source that was answered before holds now; it cannot be told from outside."""

    REFUSE = "refuse"
    RESUME = "resume"
    APPEND = "append"


@dataclass(frozen=True, slots=True)
class Job:
    """Who writes a ledger.

    Attributes:
        name: Of its command.
        rules: What makes two of its plans differ, in the words of its options.
    """

    name: str
    rules: str = "rules"


NO_JOB = Job("any")


@dataclass(frozen=True, slots=True)
class Head:
    """How many rows a ledger has, and the hash of all of them."""

    entries: int
    hash: bytes

    def __str__(self) -> str:
        return f"{self.entries}:{self.hash.hex()}"

    @classmethod
    def read(cls, text: str) -> Head:
        """A head as it was printed.

        Examples:
            >>> Head.read("3:" + 64 * "0").entries
            3
        """
        count, _, hash_ = text.partition(":")
        try:
            return cls(int(count), bytes.fromhex(hash_))
        except ValueError:
            raise LedgerMismatch("a head must be ROWS:HASH, as `ledger check` prints it") from None


@dataclass(frozen=True, slots=True)
class Answer:
    """What left at one moment of a stream, and what asked for it. Public, but for id and time.

    Attributes:
        id: What tells the event from all others.
        source: The input that asked first.
        place: Its row there.
        stream: Whose value it is.
        sequence: The moment of the stream, counted from 0.
        outcome: What happened: released, suppressed, ... in the words of the job.
        released: What left; None if nothing did.
        leakage: What it cost under the guarantee of the job.
        model_free: What it cost whatever the model.
        batch: Moment at which its batch began; None if it left alone.
        time: When the value was measured, if a time column was named.
        tag: Keyed digest of the true value: tells a retry from other data under an old id.
        signal: Which output of its channel left, where several release the same.
    """

    id: str
    source: str
    place: int
    stream: str
    sequence: int
    outcome: str
    released: Released
    leakage: float
    model_free: float
    batch: int | None = None
    time: str | None = None
    tag: bytes = b""
    signal: int | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """Where a stream stands after its last answer.

    Attributes:
        stream: Its name.
        sequence: The moment that comes next: how many answers it has.
        leakage: What it cost so far under the guarantee of the job: the sum of its answers'.
        model_free: What it cost so far whatever the model: the sum of its answers'.
        state: What the next step needs, as the bytes that `codec.to_bytes` makes.
    """

    stream: str
    sequence: int
    leakage: float
    model_free: float
    state: bytes


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a ledger.

    Attributes:
        label: Its name, with a number if there were others of that name.
        answered: How many of its rows were answered before.
        secret: The secret of the digests of its values.
    """

    label: str
    answered: int
    secret: bytes


@dataclass(frozen=True, slots=True)
class Front:
    """What the first page of a ledger says.

    Attributes:
        id: Tells ledgers apart.
        job: The job that writes it.
        plan: Fingerprint of the plan that it was begun with.
        identity: What its events are known by; None until a run has begun.
        rules: The document of that plan, for an audit.
        head: How many rows there are, and the hash of all.
        closed: Whether whoever wrote last closed it: then nothing is missing from the file.
    """

    id: bytes
    job: str
    plan: str
    identity: str | None
    rules: str | None
    head: Head
    closed: bool


class Store(Protocol):
    """The ledger of one plan, held by one process; safe in threads, refused in a forked child.

    Attributes:
        front: Identity of the ledger: job, plan, rules, and the head of the chain of all rows.
        lasting: Whether it is there after its process has ended.
        shared: Whether others may commit between two turns: what was read in one is read again.
        ended: Whether its release was closed, on whatever node, before the turn that is held: then
            answers are told, and none is committed (`ReleaseClosed`).
    """

    front: Front
    lasting: bool
    shared: bool
    ended: bool

    def turn(self) -> AbstractContextManager[None]:
        """Nobody else commits while it is held, in this process or another.

        What is committed in a turn is durable when it ends, all of it or, if it ends by an error of
        the store, perhaps none of it; without a turn, when `commit` returns.
        """
        ...

    def begin(self, name: str, identity: Identity, again: Again = Again.REFUSE) -> Input:
        """Begin an input, or go on with one.

        Args:
            name: The name of the source.
            identity: What its events are known by; one thing for a whole ledger.
            again: What this source holds, if some of it was answered before.

        Raises:
            LedgerMismatch: If events of this ledger are known by something else, or nothing tells
                these rows from those that were answered before, or there is nothing to resume.
        """
        ...

    def compared(self, source: str, secret: bytes) -> bool:
        """Whether values of an input can be compared: the secret of its digests is this one."""
        ...

    def answers(self, ids: Sequence[str]) -> dict[str, Answer]:
        """The answers already given, by event id."""
        ...

    def known(self, ids: Sequence[str]) -> Bools:
        """Which of these events were answered before; quicker than their answers."""
        ...

    def moment(self, stream: str, sequence: int) -> Answer | None:
        """The answer given at one moment of a stream."""
        ...

    def rest(self, stream: str, sequence: int) -> Iterator[Answer]:
        """The answers of a stream from one moment on, in order."""
        ...

    def streams(self) -> Iterator[tuple[str, int]]:
        """The streams, and how many answers each has."""
        ...

    def inputs(self) -> dict[str, int]:
        """The inputs, and how many answers each has."""
        ...

    def position(self, stream: str) -> Position | None:
        """Where a stream stands; None if it never released anything.

        Raises:
            CorruptData: If it is not the position after the last row, or a row was changed.
        """
        ...

    def ends(self, streams: Sequence[str]) -> list[tuple[Position, Answer] | None]:
        """The same for some different streams at once, each with its last answer."""
        ...

    def begun(self, streams: Sequence[str]) -> set[str]:
        """Which of some streams have answers, unchecked."""
        ...

    def commit(self, answers: Iterable[Answer], positions: Iterable[Position]) -> None:
        """Store answers and the positions after them, all or nothing; durable when this returns.

        Raises:
            LedgerMismatch: If an event id or a moment of a stream was answered before, a moment is
                left out, or a position would go back; nothing is stored then.
        """
        ...

    def commit_columns(self, answers: AnswerColumns, positions: PositionColumns) -> None:
        """The same for a batch by columns: as if its rows had been committed together."""
        ...

    def close(self) -> None:
        """Let others hold it; everything committed stays."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...
