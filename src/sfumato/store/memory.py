"""A ledger in memory: for tests, simulations, and services that keep their history elsewhere.

It follows the same rules and the same chain of hashes as a ledger file, and is gone with its
process. Two stores never share a `MemoryLedger` at one time, as two processes never share a file.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Self

import numpy as np

from sfumato.core.arrays import Bools
from sfumato.core.guard import Guarded, guarded
from sfumato.store.answer_columns import AnswerColumns, PositionColumns, committed
from sfumato.store.chain import Commit, by_stream, first_hash, first_head, new_id
from sfumato.store.keys import secret_of
from sfumato.store.ledger_search import Entry, LedgerQuery, Order, Page
from sfumato.store.plan_rules import chosen_label, other_plan
from sfumato.store.protocol import (
    NO_JOB,
    Again,
    Answer,
    Front,
    Head,
    Identity,
    Input,
    Job,
    LedgerMismatch,
    Position,
    ReleaseClosed,
)


@dataclass(slots=True)
class MemoryLedger:
    """What outlives a `MemoryStore`: the place that one store after another may hold."""

    front: Front | None = None
    held: bool = False
    secret: bytes = field(default_factory=lambda: secret_of(None))
    inputs: dict[str, tuple[str, int]] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    moments: dict[str, list[Answer]] = field(default_factory=dict)
    positions: dict[str, Position] = field(default_factory=dict)
    hashes: dict[str, bytes] = field(default_factory=dict)


class MemoryStore(Guarded):
    """The ledger of one plan, in memory.

    Args:
        ledger: What an earlier store left; a new one if not given.
        plan: Fingerprint of the plan; a ledger of another plan is refused.
        job: The job that writes it; a ledger of another job is refused.
        rules: The document of the plan, kept in a new ledger for an audit.

    Examples:
        >>> with MemoryStore(plan="fingerprint") as store:
        ...     store.answers(["e1"])
        {}
    """

    lasting = shared = ended = False

    def __init__(
        self,
        ledger: MemoryLedger | None = None,
        *,
        plan: str,
        job: Job = NO_JOB,
        rules: str | None = None,
    ) -> None:
        self._lock = threading.RLock()  # a turn holds it while methods take it
        self._ledger = MemoryLedger() if ledger is None else ledger
        if self._ledger.held:
            raise LedgerMismatch("the ledger is in use by another release")
        if self._ledger.front is None:
            id_ = new_id(job.name, rules)
            begun = Head(0, first_head(id_, plan))
            self._ledger.front = Front(id_, job.name, plan, None, rules, begun, closed=True)
        self.front = self._ledger.front
        if problem := other_plan(self.front, plan, job):
            raise LedgerMismatch(problem)
        self._ledger.held = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Other threads wait until it is over."""
        with self._lock:
            yield

    def close(self) -> None:
        """Let others hold it."""
        self._ledger.held = False

    @guarded
    def begin(self, name: str, identity: Identity, again: Again = Again.REFUSE) -> Input:
        """Begin an input, or go on with one."""
        inputs = self._ledger.inputs
        earlier = [(label, rows) for label, (own, rows) in inputs.items() if own == name]
        label = chosen_label(self.front, name, earlier, identity, again)
        self._set_front(replace(self.front, identity=identity.value))
        if label is None:
            label, number = name, 1
            while label in inputs:
                number += 1
                label = f"{name}#{number}"
            inputs[label] = (name, 0)
        return Input(label, inputs[label][1], self._ledger.secret)

    def compared(self, source: str, secret: bytes) -> bool:
        """Whether values of an input can be compared: the secret of its digests is this one."""
        return source in self._ledger.inputs and secret == self._ledger.secret

    @guarded
    def answers(self, ids: Sequence[str]) -> dict[str, Answer]:
        """The answers already given, by event id."""
        there = self._ledger.answers
        return {id_: there[id_] for id_ in ids if id_ in there}

    @guarded
    def known(self, ids: Sequence[str]) -> Bools:
        """Which of these events were answered before."""
        there = self._ledger.answers
        return np.array([id_ in there for id_ in ids], dtype=bool)

    @guarded
    def moment(self, stream: str, sequence: int) -> Answer | None:
        """The answer given at one moment of a stream."""
        moments = self._ledger.moments.get(stream, [])
        return moments[sequence] if 0 <= sequence < len(moments) else None

    @guarded
    def rest(self, stream: str, sequence: int) -> Iterator[Answer]:
        """The answers of a stream from one moment on, in order."""
        return iter(self._ledger.moments.get(stream, [])[sequence:])

    @guarded
    def streams(self) -> Iterator[tuple[str, int]]:
        """The streams, and how many answers each has."""
        return iter(sorted((name, one.sequence) for name, one in self._ledger.positions.items()))

    @guarded
    def inputs(self) -> dict[str, int]:
        """The inputs of which rows were answered, and how many of each."""
        return {label: rows for label, (_, rows) in self._ledger.inputs.items() if rows}

    @guarded
    def position(self, stream: str) -> Position | None:
        """Where a stream stands; None if it never released anything."""
        return self._ledger.positions.get(stream)

    @guarded
    def ends(self, streams: Sequence[str]) -> list[tuple[Position, Answer] | None]:
        """Where streams stand, and their last answers; None for those without any."""
        there, moments = self._ledger.positions, self._ledger.moments
        return [(there[one], moments[one][-1]) if one in there else None for one in streams]

    @guarded
    def begun(self, streams: Sequence[str]) -> set[str]:
        """Which of some streams have answers."""
        return {one for one in streams if one in self._ledger.positions}

    @guarded
    def standing(self, after: str, limit: int) -> list[Position]:
        """Streams by name, those after one, and where each stands."""
        there = self._ledger.positions
        return [there[name] for name in sorted(there) if name > after][:limit]

    @guarded
    def standing_of(self, streams: Sequence[str]) -> list[Position]:
        """The same of some streams; those without answers are left out."""
        return [self._ledger.positions[one] for one in streams if one in self._ledger.positions]

    @guarded
    def moved(self, first: int, last: int) -> list[str]:
        """The streams of some rows, each once."""
        rows = islice(self._ledger.answers.values(), max(0, first - 1), last)
        return list({answer.stream for answer in rows})

    @guarded
    def search(self, query: LedgerQuery) -> Page:
        """A page of the rows that are asked for."""
        rows = [Entry(*row) for row in enumerate(self._ledger.answers.values(), start=1)]
        found = [row for row in rows if query.matches(*row, len(rows))]
        if query.order is Order.NEWEST:
            found.reverse()
        return query.page(found, len(rows))

    @guarded
    def commit(self, answers: Iterable[Answer], positions: Iterable[Position]) -> None:
        """Store answers and the positions after them, all or nothing."""
        self._commit(by_stream(answers, positions))

    @guarded
    def commit_columns(self, answers: AnswerColumns, positions: PositionColumns) -> None:
        """The same for a batch by columns."""
        self._commit(committed(answers, positions))

    def _commit(self, commit: Commit) -> None:
        ledger = self._ledger
        if not ledger.held:
            raise LedgerMismatch("the ledger must be open; it was closed")
        if not commit.after:
            return
        if self.ended:
            raise ReleaseClosed
        given = [Answer(*row) for row in zip(*commit.columns, strict=True)]
        after = [Position(*row) for row in commit.after]
        ids = {answer.id for answer in given}
        if len(ids) < len(given) or ids & ledger.answers.keys():
            raise LedgerMismatch("an event was answered before: its id is taken")
        now = [ledger.positions.get(position.stream) for position in after]
        commit.check_moments([0 if there is None else there.sequence for there in now])
        for there, position in zip(now, after, strict=True):
            if there is not None and (
                position.leakage < there.leakage or position.model_free < there.model_free
            ):
                raise LedgerMismatch("a state may only move forward and never lower its spend")
        before = [self._last_hash(position.stream) for position in after]
        _, hashes, head = commit.chained(before, self.front.head)
        # Everything was checked: from here on nothing can be refused.
        for answer in given:
            name, count = ledger.inputs.get(answer.source, (answer.source, 0))
            ledger.inputs[answer.source] = (name, count + 1)
            ledger.answers[answer.id] = answer
            ledger.moments.setdefault(answer.stream, []).append(answer)
        for position, own in zip(after, hashes, strict=True):
            ledger.positions[position.stream] = position
            ledger.hashes[position.stream] = own
        self._set_front(replace(self.front, head=head))

    def _last_hash(self, stream: str) -> bytes:
        own = self._ledger.hashes.get(stream)
        return first_hash(self.front.id, self.front.plan, stream) if own is None else own

    def _set_front(self, front: Front) -> None:
        self.front = self._ledger.front = front
