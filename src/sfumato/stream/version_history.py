"""What left so far, in its order, and the versions of the model that it led to.

The same outputs in the same order lead to the same versions: a release that goes on after a crash
makes them again from its ledger, and an audit from what it reads.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.guard import Guarded, guarded
from sfumato.core.progress import Progress
from sfumato.models.set_bets import left_set, set_gains
from sfumato.stream.block_history import BlockBets
from sfumato.stream.learning_rules import LearningRules
from sfumato.stream.model_versions import (
    ContextFree,
    ModelVersion,
    changed_version,
    next_version,
    since_restart,
)
from sfumato.stream.plan import Plan


class _Learnt(NamedTuple):
    """All that follows from outputs until the last look.

    Attributes:
        next: How many values have left when outputs are looked at again.
        versions: The versions so far.
        marks: Where streams stood each time that learning started anew.
        looked: Where they stood at the last look.
        gains: What bets against sets made at each look since learning started.
        bets: What blocks of outputs showed since learning started.
    """

    next: int
    versions: tuple[ModelVersion, ...] = ()
    marks: tuple[Mapping[str, int], ...] = ()
    looked: Mapping[str, int] = MappingProxyType({})
    gains: tuple[Floats, ...] = ()
    bets: BlockBets = BlockBets()


class VersionHistory(Guarded):
    """Outputs of all streams, and the versions of the model.

    Args:
        rules: The rules of the release.
        progress: Called with the number of a version before it is learnt.

    Attributes:
        rules: The rules of the release.

    Examples:
        >>> import sfumato as sf
        >>> bit = sf.Alphabet.of_size(2)
        >>> rules = LearningRules(bit, sf.PerStep(sf.SIP(1.0)), sf.loss.hamming(bit), first=4)
        >>> history = VersionHistory(rules)
        >>> for place in (0, 0, 1):
        ...     history.add("ann", place)
        >>> history.room, history.used("ann", 2)
        (1, 0)
    """

    def __init__(self, rules: LearningRules, progress: Progress | None = None) -> None:
        self.rules = rules
        self._progress = progress
        self._plans: dict[int, Plan] = {0: rules.start}
        self._outputs: dict[str, bytearray] = {}
        self._used: dict[str, tuple[list[int], list[int]]] = {}
        self._count = 0
        self._learnt = _Learnt(next=rules.look(0))

    @property
    def count(self) -> int:
        """How many values have left."""
        return self._count

    @property
    def room(self) -> int:
        """How many values may leave before outputs are looked at again; at least one."""
        with self._lock:
            self._make()
            return self._learnt.next - self._count

    @guarded
    def versions(self) -> tuple[ModelVersion, ...]:
        """The versions that are due, made now where they were not."""
        self._make()
        return self._learnt.versions

    @guarded
    def used(self, stream: str, sequence: int) -> int | None:
        """The version under which a moment of a stream left, or would now; None if never."""
        self._make()
        left = len(self._outputs.get(stream, b""))
        if sequence > left:
            return None
        if sequence == left:
            return self._current(stream)
        began, numbers = self._used[stream]
        return numbers[bisect_right(began, sequence) - 1]

    @guarded
    def plan(self, number: int) -> Plan:
        """The plan of a version that streams use."""
        return self._plan(number)

    @guarded
    def are_nested(self, before: int, number: int) -> bool:
        """Whether two versions have sets, one within the other: no restart lies between them."""
        between = self._learnt.versions[max(before - 1, 0) : number]
        return before > 0 and not any(version.restarts for version in between)

    @property
    def restarts(self) -> int:
        """How often learning has started anew."""
        with self._lock:
            self._make()
            return len(self._learnt.marks)

    @guarded
    def starts(self, stream: str) -> tuple[int, ...]:
        """The moment at which a stream stood each time that learning started; 0 the first time."""
        self._make()
        return 0, *(mark.get(stream, 0) for mark in self._learnt.marks)

    @guarded
    def context_free(self, stream: str, until: int) -> tuple[Sequence[int], bool]:
        """Places of what left of a stream since learning started, and whether it began with it.

        Args:
            stream: One that has not moved since then.
            until: The moment before which it left.
        """
        stood = [
            mark[stream] for mark in self._learnt.marks if mark.get(stream, until + 1) <= until
        ]
        start = max(stood, default=0)
        return bytes(self._outputs.get(stream, b"")[start:until]), not start

    @guarded
    def add(self, stream: str, place: int) -> None:
        """One more value has left; the moments of a stream come in order."""
        if place < 0:
            rule = "be a symbol: a learning release lets a value leave at every moment"
            raise InvalidParameter("released", None, rule)
        self._make()
        number = self._current(stream)
        left = self._outputs.setdefault(stream, bytearray())
        began, numbers = self._used.setdefault(stream, ([], []))
        if not numbers or numbers[-1] != number:
            began.append(len(left))
            numbers.append(number)
        left.append(place)
        self._count += 1

    def _plan(self, number: int) -> Plan:
        if number not in self._plans:
            chains = self._learnt.versions[number - 1].chains
            assert chains is not None  # streams use no other version
            self._plans[number] = self.rules.plan(chains)
        return self._plans[number]

    def _make(self) -> None:
        """Look at outputs where that is due, and learn; the lock is held."""
        while self._count >= self._learnt.next:
            self._learnt = self._looked()  # at once: an interrupt leaves all of it, or nothing

    def _looked(self) -> _Learnt:
        """What is known after a look at what left."""
        before = self._learnt
        own, since, restarts = since_restart(before.versions)
        made, gains = self._changed()
        bets = before.bets
        if made is None and self._count == since + self.rules.cut(len(own) + 1, restarts):
            if self._progress:
                self._progress(len(before.versions) + 1)
            mark = before.marks[-1] if before.marks else {}
            left = self._left_since(mark)
            if self.rules.edition == 2:
                made = next_version(self.rules, before.versions, left)
            else:
                guide = own[-1].chains.estimate if own and own[-1].chains else None
                bets = before.bets.after(self.rules, left, guide)
                moved = any(version.moves for version in own)
                made = next_version(self.rules, before.versions, left, bets.of(moved=moved))
        looked = {name: len(left) for name, left in self._outputs.items()}
        versions, marks = before.versions, before.marks
        if made is not None:
            versions = (*versions, made)
            if made.restarts:
                marks, gains, bets = (*marks, looked), (), BlockBets()
        _, since, restarts = since_restart(versions)
        following = since + self.rules.look(self._count - since, restarts)
        return _Learnt(following, versions, marks, looked, gains, bets)

    def _changed(self) -> tuple[ModelVersion | None, tuple[Floats, ...]]:
        """The version that says that streams have changed, if anything proves it; and the bets."""
        versions, gains = self._learnt.versions, self._learnt.gains
        chains = versions[-1].chains if versions else None
        block = self._left_since(self._learnt.looked)
        if chains is None or not block.outputs:
            return None, gains
        gains = (*gains, set_gains(block.fixed(self.rules.channel), chains))
        alpha = self.rules.alarm(len(self._learnt.marks))
        found = left_set(gains, self.rules.alphabet.labels, alpha)
        if found.alarm is None:
            return None, gains
        return changed_version(versions, self._count, found, block), gains

    def _current(self, stream: str) -> int:
        """The version of a stream's next value; those that are due are made."""
        if (
            not self._learnt.versions
            or not self._learnt.versions[-1].moves
            or self.rules.is_scout(stream)
        ):
            return 0
        return len(self._learnt.versions)

    def _left_since(self, mark: Mapping[str, int]) -> ContextFree:
        """What left since a mark: of all streams until one may have moved, of scouts after that."""
        own, _, _ = since_restart(self._learnt.versions)
        moved = any(version.moves for version in own)
        left = {
            name: bytes(outputs[mark.get(name, 0) :])
            for name, outputs in self._outputs.items()
            if len(outputs) > mark.get(name, 0) and (not moved or self.rules.is_scout(name))
        }
        return ContextFree(left, {name for name in left if mark.get(name, 0)})
