"""The laws of a home: what memory, a folder, PostgreSQL and every other kind must keep."""

from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import pytest

from sfumato.core.errors import InvalidParameter
from sfumato.store.catalogue import Catalogue, record
from sfumato.store.catalogue_contents import ClosedContent, ReleaseContent
from sfumato.store.home import Home, HomeAnchor, check_anchor
from sfumato.store.protocol import LedgerMismatch, ReleaseClosed, Store
from sfumato.store.registry import CLOSED
from sfumato.store.release_end import close_release
from tests.contracts.store_laws import JOB, PLAN, moments


def release_some(store: Store, stream: str, count: int) -> None:
    """So many more answers of a stream, each a commit."""
    there = store.position(stream)
    begun = 0 if there is None else there.sequence
    for answer, after in moments(stream, begun + count)[begun:]:
        store.commit([answer], [after])


def made_release(home: Home, name: str) -> None:
    """Register a release."""
    rule = ReleaseContent("release", "{}")
    record(home.registry, Catalogue(), "ann", "release.created", name, rule)


class HomeLaws(ABC):
    """What every home keeps."""

    @abstractmethod
    def opened(self, place: Path) -> Home:
        """A new home."""

    def test_each_release_has_a_ledger_of_its_own(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as home:
            assert home.ledgers() == []
            with (
                home.open_ledger("town", PLAN, JOB, None) as town,
                home.open_ledger("city", "another", JOB, "rules") as city,
            ):
                release_some(city, "u1", 2)
                release_some(town, "u1", 1)
                release_some(city, "u1", 1)
                found = home.ledgers()
            assert [each[:3] for each in found] == [
                ("city", "release", "another"),
                ("town", "release", PLAN),
            ]
            assert [each.head.entries for each in found] == [3, 1]
            assert home.open_ledger("city", "another", JOB, "rules").front.head == found[0].head

    def test_a_ledger_takes_nothing_after_its_release_was_closed(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as home, home.open_ledger("city", PLAN, JOB, None) as store:
            made_release(home, "city")
            release_some(store, "u1", 2)
            assert not store.ended
            ended = close_release(home, "ann", "city")
            assert ended.closed is not None and ended.last_head == str(store.front.head)
            with store.turn():
                assert store.ended
            with pytest.raises(ReleaseClosed):
                release_some(store, "u1", 1)
            assert store.front.head.entries == 2 and len(list(store.rest("u1", 0))) == 2
            assert close_release(home, "bob", "city") == ended
            assert [one.action for one in home.registry.entries()][1:] == [CLOSED]

    def test_a_ledger_that_is_opened_while_its_release_is_closed_takes_nothing(
        self, tmp_path: Path
    ) -> None:
        with self.opened(tmp_path) as home, home.open_ledger("town", PLAN, JOB, None):
            made_release(home, "city")
            opened: list[Store] = []

            def begin() -> None:
                store = home.open_ledger("city", PLAN, JOB, None)
                with store.turn():
                    opened.append(store)

            beginning = Thread(target=begin)
            with home.ending("city") as head:
                assert head is None
                beginning.start()
                beginning.join(0.2)
                assert not opened  # it waits for whoever closes the release
                record(home.registry, Catalogue(), "ann", CLOSED, "city", ClosedContent())
            beginning.join()
            with opened[0] as store:
                with pytest.raises(ReleaseClosed):
                    release_some(store, "u1", 1)
                assert store.front.head.entries == 0

    def test_a_ledger_of_another_plan_is_refused(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as home:
            with home.open_ledger("city", PLAN, JOB, None) as store:
                release_some(store, "u1", 1)
            with pytest.raises(LedgerMismatch, match="begun with another"):
                home.open_ledger("city", "another", JOB, None)

    @pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "-x", "x" * 65, "é", "a\n"])
    def test_a_name_that_could_leave_its_place_is_refused(self, tmp_path: Path, name: str) -> None:
        with (
            self.opened(tmp_path) as home,
            pytest.raises(InvalidParameter, match="name of a release"),
        ):
            home.open_ledger(name, PLAN, JOB, None)

    def test_where_a_stream_belongs_is_written_once_and_only_where_that_is_asked(
        self, tmp_path: Path
    ) -> None:
        with self.opened(tmp_path) as home:
            assert home.settled(["ann", "bob"]) == {}
            assert home.settle(["ann"], "v1") == {"ann": "v1"}
            assert home.settled(["bob", "ann"]) == {"ann": "v1"}
            found = home.settle(["bob", "ann", "bob"], "v2")
            assert found == home.settled(["ann", "bob"]) == {"ann": "v1", "bob": "v2"}
            assert home.settle([], "v2") == {}
            with pytest.raises(InvalidParameter, match="name of a release"):
                home.settle(["cid"], "../v1")

    def test_of_many_who_write_at_once_the_first_wins_for_all(self, tmp_path: Path) -> None:
        streams = [f"s{number}" for number in range(40)]
        with self.opened(tmp_path) as home:
            turned = [streams[start:] + streams[:start] for start in range(0, 40, 5)]
            with ThreadPoolExecutor(len(turned)) as threads:
                releases = [f"v{number}" for number in range(len(turned))]
                found = list(threads.map(home.settle, turned, releases))
            assert all(each == home.settled(streams) for each in found)

    def test_a_home_grows_from_its_anchors_and_from_no_others(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as home:
            anchors = [home.heads()]
            with home.open_ledger("city", PLAN, JOB, None) as store:
                for _ in range(3):
                    release_some(store, "u1", 2)
                    home.registry.append("ann", "do", "it", b"")
                    anchors.append(home.heads())
            for anchor in anchors:
                check_anchor(home, HomeAnchor.read(anchor.document()))
            last = anchors[-1]
            other = f"2:{64 * '0'}"
            for ledgers in ({"city": other}, {"town": other}, {"city": f"1{last.ledgers['city']}"}):
                with pytest.raises(LedgerMismatch, match="did not grow from the anchored head"):
                    check_anchor(home, HomeAnchor(last.registry, ledgers, last.time))
            with pytest.raises(LedgerMismatch, match="the registry did not grow"):
                check_anchor(home, HomeAnchor(other, last.ledgers, last.time))
