"""The laws of a registry: what memory, SQLite, PostgreSQL and every other kind must keep.

A new kind inherits `RegistryLaws` and says in `opened` how it is opened (`tests/store/`).
"""

import os
import threading
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sfumato.core.errors import ForkedUse, InvalidParameter, SfumatoError
from sfumato.store.registry import Entry, Registry, RegistryMoved

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def noon() -> datetime:
    """A clock that stands."""
    return NOON


class RegistryLaws(ABC):
    """What every registry keeps."""

    @abstractmethod
    def opened(self, place: Path) -> Registry:
        """A new registry at a place, with the clock `noon`."""

    def test_what_was_appended_is_there_in_order(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as registry:
            begun = registry.head
            assert (begun.entries, registry.entries()) == (0, [])
            made = [registry.append("ann", "do", f"thing {n}", bytes([n])) for n in range(4)]
            assert registry.entries() == made
            assert registry.entries(after=3) == made[3:]
            assert registry.entries(after=4) == registry.entries(after=99) == []
            assert [entry.number for entry in made] == [1, 2, 3, 4]
            assert {entry.time for entry in made} == {"2026-05-01T12:00:00.000000Z"}
            assert (registry.head.entries, registry.head.hash) == (4, made[3].hash)
            assert registry.head_at(0) == begun

    def test_the_head_stands_for_every_entry_before_it(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as registry:
            heads = [registry.head]
            for _ in range(3):
                registry.append("ann", "do", "same", b"same")
                heads.append(registry.head)
            assert len({head.hash for head in heads}) == 4
            assert [registry.head_at(n) for n in range(4)] == heads
            assert registry.head_at(4) is None and registry.head_at(-1) is None

    def test_who_read_less_than_there_is_appends_nothing(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as registry:
            registry.append("ann", "do", "first", b"", after=0)
            for stale in (0, 2):
                with pytest.raises(RegistryMoved, match="nothing was appended"):
                    registry.append("eve", "do", "second", b"", after=stale)
            assert registry.head.entries == 1
            registry.append("eve", "do", "second", b"", after=1)
            assert [entry.name for entry in registry.entries()] == ["first", "second"]

    def test_of_many_who_read_the_same_one_appends(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as registry:
            won: list[Entry] = []

            def work(actor: str) -> None:
                for after in range(5):
                    try:
                        won.append(registry.append(actor, "do", "it", b"", after=after))
                    except RegistryMoved:
                        continue

            threads = [threading.Thread(target=work, args=(f"node {i}",)) for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            entries = registry.entries()
            assert sorted(won, key=lambda entry: entry.number) == entries
            assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))

    def test_contents_of_megabytes_and_any_bytes_come_back(self, tmp_path: Path) -> None:
        contents = [b"", b"\0\xff'; --", os.urandom(3 << 20)]
        with self.opened(tmp_path) as registry:
            for content in contents:
                registry.append("ann", "do", "é ✓'%s", content)
            assert [entry.content for entry in registry.entries()] == contents

    @pytest.mark.parametrize("text", ["", "two\nlines", "x" * 201])
    def test_a_text_that_nobody_can_read_is_refused(self, tmp_path: Path, text: str) -> None:
        with self.opened(tmp_path) as registry:
            for given in ((text, "do", "it"), ("ann", text, "it"), ("ann", "do", text)):
                with pytest.raises(InvalidParameter, match="of an entry must have 1 to 200"):
                    registry.append(*given, b"")
            assert registry.head.entries == 0

    def test_a_closed_registry_takes_nothing(self, tmp_path: Path) -> None:
        registry = self.opened(tmp_path)
        registry.close()
        with pytest.raises(SfumatoError):
            registry.append("ann", "do", "it", b"")

    def test_a_forked_child_is_refused(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as registry:
            child = os.fork()
            if child == 0:
                try:
                    registry.append("ann", "do", "it", b"")
                except ForkedUse:
                    os._exit(17)
                os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
            registry.append("ann", "do", "it", b"")
            assert registry.head.entries == 1


class LastingRegistryLaws(RegistryLaws):
    """What every registry keeps that outlives its process: the same place is the same registry."""

    def test_it_goes_on_where_it_ended(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as registry:
            first = registry.append("ann", "do", "first", b"one")
        with self.opened(tmp_path) as registry:
            second = registry.append("bob", "do", "second", b"two", after=1)
            assert registry.entries() == [first, second]

    @abstractmethod
    def change(self, place: Path, statement: str) -> None:
        """Change the stored entries behind the back of the registry."""

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE {} SET actor = 'eve' WHERE number = 2",
            "UPDATE {} SET content = hash WHERE number = 2",
            "UPDATE {} SET time = '' WHERE number = 2",
            "DELETE FROM {} WHERE number = 2",
            "UPDATE {} SET hash = content WHERE number = 1",
        ],
    )
    def test_an_entry_that_was_changed_or_taken_out_shows(
        self, tmp_path: Path, statement: str
    ) -> None:
        with self.opened(tmp_path) as registry:
            for name in ("one", "two", "three"):
                registry.append("ann", "do", name, b"content")
        self.change(tmp_path, statement)
        with (
            pytest.raises(SfumatoError, match=r"changed|missing|must have"),
            self.opened(tmp_path) as registry,
        ):
            registry.entries()
