"""A registry of lists: what access control asks of one, and no more."""

from collections.abc import Iterable
from dataclasses import dataclass

from sfumato.store.protocol import LedgerMismatch


@dataclass(frozen=True)
class Line:
    number: int
    actor: str
    action: str
    name: str
    content: bytes


class EntryList:
    """Entries in a list; `meanwhile` is what another node appends just before the next append."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.meanwhile: list[tuple[str, str, str, bytes]] = []
        self.closed = False

    def append(
        self, actor: str, action: str, name: str, content: bytes, *, after: int | None = None
    ) -> Line:
        quicker, self.meanwhile = self.meanwhile, []
        for told in quicker:
            self.lines.append(Line(len(self.lines) + 1, *told))
        if self.closed or (after is not None and after != len(self.lines)):
            raise LedgerMismatch("moved, or closed")
        self.lines.append(Line(len(self.lines) + 1, actor, action, name, content))
        return self.lines[-1]

    def entries(self, after: int = 0) -> Iterable[Line]:
        return list(self.lines[after:])

    def actions(self) -> list[tuple[str, str, str]]:
        return [(line.actor, line.action, line.name) for line in self.lines]
