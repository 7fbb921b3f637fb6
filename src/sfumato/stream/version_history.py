"""What left so far, in its order, and the versions of the model that it led to.

The same outputs in the same order lead to the same versions: a release that goes on after a crash
makes them again from its ledger, and an audit from what it reads.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from sfumato.core.errors import InvalidParameter
from sfumato.core.guard import Guarded, guarded
from sfumato.core.progress import Progress
from sfumato.stream.learning_rules import LearningRules
from sfumato.stream.model_versions import ModelVersion, next_version
from sfumato.stream.plan import Plan


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
        self._versions: list[ModelVersion] = []
        self._plans: dict[int, Plan] = {0: rules.start}
        self._outputs: dict[str, bytearray] = {}
        self._used: dict[str, tuple[list[int], list[int]]] = {}
        self._count = 0

    @property
    def count(self) -> int:
        """How many values have left."""
        return self._count

    @property
    def room(self) -> int:
        """How many values may leave before the next version is made; at least one."""
        made = self.rules.due(self._count)
        return self.rules.cut(made + 1) - self._count

    @guarded
    def versions(self) -> tuple[ModelVersion, ...]:
        """The versions that are due, made now where they were not."""
        self._make()
        return tuple(self._versions)

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
    def outputs(self, stream: str, until: int) -> Sequence[int]:
        """Places of the symbols that left of a stream before a moment."""
        return bytes(self._outputs.get(stream, b"")[:until])

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
            chains = self._versions[number - 1].chains
            assert chains is not None  # streams use no other version
            self._plans[number] = self.rules.plan(chains)
        return self._plans[number]

    def _make(self) -> None:
        """Learn the version that is due; the lock is held."""
        while len(self._versions) < self.rules.due(self._count):
            if self._progress:
                self._progress(len(self._versions) + 1)
            made = next_version(self.rules, self._versions, self._learnt_from())
            self._versions.append(made)

    def _current(self, stream: str) -> int:
        """The version of a stream's next value; those that are due are made."""
        due = self.rules.due(self._count)
        if not due or not self._versions[due - 1].moves or self.rules.is_scout(stream):
            return 0
        return due

    def _learnt_from(self) -> dict[str, bytes]:
        """Context-free outputs: of all streams until one may have moved, of scouts after that."""
        moved = any(version.moves for version in self._versions)
        return {
            name: bytes(left)
            for name, left in self._outputs.items()
            if not moved or self.rules.is_scout(name)
        }
