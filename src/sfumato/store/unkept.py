"""The place of a ledger where there is none: nothing is stored.

A run that holds its streams itself, and reads a file that can be read again, needs no store: what
it needs to know of an event that comes twice stands in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Self

import numpy as np

from sfumato.core.arrays import Bools
from sfumato.store.answer_columns import AnswerColumns, PositionColumns
from sfumato.store.keys import secret_of
from sfumato.store.protocol import Again, Answer, Front, Head, Identity, Input, Job, Position


class UnkeptStore:
    """A store that keeps nothing.

    Args:
        plan: Fingerprint of the plan.
        job: The job that would write a ledger.

    Attributes:
        earlier: Finds what stood in the same input before, by event id; nothing unless set.
        added: Told the ids of what was answered row by row.

    Examples:
        >>> from sfumato.store.protocol import NO_JOB
        >>> with UnkeptStore("fingerprint", NO_JOB) as store:
        ...     store.answers(["e1"])
        {}
    """

    lasting = shared = ended = False

    def __init__(self, plan: str, job: Job) -> None:
        self.front = Front(b"", job.name, plan, None, None, Head(0, b""), closed=True)
        self.earlier: Callable[[Sequence[str]], dict[str, Answer]] = lambda _: {}
        self.added: Callable[[Sequence[str]], None] = lambda _: None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def turn(self) -> AbstractContextManager[None]:
        """Nobody else can commit at any time."""
        return nullcontext()

    def close(self) -> None:
        """There is nothing to let go of."""

    def begin(self, name: str, identity: Identity, again: Again = Again.REFUSE) -> Input:
        """Begin an input."""
        self.front = replace(self.front, identity=identity.value)
        return Input(name, 0, secret_of(None))

    def compared(self, source: str, secret: bytes) -> bool:
        """There is one input, and it has one secret."""
        return True

    def answers(self, ids: Sequence[str]) -> dict[str, Answer]:
        """What stood in the same input before."""
        return self.earlier(ids)

    def known(self, ids: Sequence[str]) -> Bools:
        """Which of these events stood in the same input before."""
        found = self.earlier(ids)
        return np.array([id_ in found for id_ in ids], dtype=np.bool_)

    def moment(self, stream: str, sequence: int) -> Answer | None:
        """Nothing is kept."""
        return None

    def rest(self, stream: str, sequence: int) -> Iterator[Answer]:
        """Nothing is kept."""
        return iter(())

    def streams(self) -> Iterator[tuple[str, int]]:
        """Nothing is kept."""
        return iter(())

    def inputs(self) -> dict[str, int]:
        """Nothing is kept."""
        return {}

    def position(self, stream: str) -> Position | None:
        """Nothing is kept."""
        return None

    def ends(self, streams: Sequence[str]) -> list[tuple[Position, Answer] | None]:
        """Nothing is kept."""
        return [None] * len(streams)

    def begun(self, streams: Sequence[str]) -> set[str]:
        """Nothing is kept."""
        return set()

    def commit(self, answers: Iterable[Answer], positions: Iterable[Position]) -> None:
        """Nothing is kept; the ids of the answers are told."""
        self.added([answer.id for answer in answers])

    def commit_columns(self, answers: AnswerColumns, positions: PositionColumns) -> None:
        """Nothing is kept; the ids of the answers are told."""
        self.added(answers.ids)
