"""Servers that are killed, and databases that are older than what was spent."""

from pathlib import Path

import pytest

from sfumato.core.errors import CorruptData
from sfumato.store.ledger_check import check_store, checked
from sfumato.store.protocol import LedgerMismatch, StoreUnavailable
from tests.contracts.store_laws import answers_of, moments
from tests.servers import PrivatePostgres, wait_until
from tests.store.nodes import HAMMER, PATIENCE, Nodes

# Older copies -------------------------------------------------------------------------------------


def test_an_older_copy_is_refused_by_whoever_wrote_down_the_head(
    postgres: PrivatePostgres, database: str, tmp_path: Path
) -> None:
    history, name = moments("u1", 5), database.rpartition("/")[2]
    anchor, nodes = tmp_path / "anchor", Nodes(database, tmp_path)
    with nodes.open(anchor) as store:
        store.commit([answer for answer, _ in history[:3]], [history[2][1]])
    Nodes(postgres.url(), tmp_path).run(f"CREATE DATABASE {name}_old TEMPLATE {name}")
    with nodes.open(anchor) as store:
        store.commit([answer for answer, _ in history[3:]], [history[4][1]])
    old = Nodes(database.replace(name, f"{name}_old"), tmp_path)
    try:
        with pytest.raises(CorruptData, match="has 3 rows that did not grow from its head 5:"):
            old.open(anchor)
        with old.read(anchor) as ledger:
            assert not checked(ledger).passed
        with old.open() as store:  # another history, that is as long and longer
            for answer, after in moments("u2", 3):
                store.commit([answer], [after])
        with pytest.raises(CorruptData, match="has 6 rows that did not grow from its head 5:"):
            old.open(anchor)
        with nodes.open(anchor) as store:
            assert answers_of(store) == [answer for answer, _ in history]
    finally:
        Nodes(postgres.url(), tmp_path).run(f"DROP DATABASE {name}_old WITH (FORCE)")


def test_a_lost_ledger_is_not_begun_anew_where_its_head_was_written_down(
    database: str, tmp_path: Path
) -> None:
    nodes, anchor = Nodes(database, tmp_path), tmp_path / "anchor"
    ((answer, after),) = moments("u1", 1)
    with nodes.open(anchor) as store:
        store.commit([answer], [after])
        with nodes.open(anchor):  # nodes of one machine share what they saw
            pass
    nodes.run("DELETE FROM sfumato.ledgers")
    with pytest.raises(LedgerMismatch, match="there is no such ledger, but it had 1 rows"):
        nodes.open(anchor)


def test_a_store_that_is_open_notices_a_server_that_lost_rows(
    database: str, tmp_path: Path
) -> None:
    nodes, history = Nodes(database, tmp_path), moments("u1", 3)
    with nodes.open() as store:
        for answer, after in history[:2]:
            store.commit([answer], [after])
            if after.sequence == 1:
                head = store.front.head
        nodes.run(
            "DELETE FROM sfumato.events WHERE entry = 2",
            f"UPDATE sfumato.ledgers SET entries = 1, head = '\\x{head.hash.hex()}'",
        )
        with pytest.raises(CorruptData, match="restored from an older copy"):
            store.commit([history[2][0]], [history[2][1]])


# A server that fails ------------------------------------------------------------------------------


def killed(server: PrivatePostgres, folder: Path, rounds: int) -> None:
    """Kill a server under load, again and again; whatever was acknowledged is there."""
    nodes = Nodes(server.url(), folder)
    nodes.open().close()
    told: list[str] = []
    for round_ in range(rounds):
        worker = nodes.process(HAMMER.replace("{turn}", f"{{turn}}-{round_}"), "100000")
        assert worker.stdout is not None and worker.stdin is not None
        assert worker.stdout.readline() == b"open\n"
        worker.stdin.write(b"\n")
        worker.stdin.flush()
        for _ in range(5 + round_ % 7):
            told += worker.stdout.readline().decode().split()
        server.kill()
        rest, _ = worker.communicate(timeout=PATIENCE)
        *whole, _ = rest.decode().split("\n")
        told += [id_ for line in whole for id_ in line.split()]
        assert worker.returncode != 0
        server.start()
        with nodes.open() as store:
            assert check_store(store).problems == []
            assert store.known(told).all()
            assert store.front.head.entries >= len(told)
    assert len(set(told)) == len(told)


def test_what_was_acknowledged_survives_a_killed_server(
    own_postgres: PrivatePostgres, tmp_path: Path
) -> None:
    killed(own_postgres, tmp_path, 1)


@pytest.mark.slow
def test_what_was_acknowledged_survives_many_killed_servers(
    own_postgres: PrivatePostgres, tmp_path: Path
) -> None:
    killed(own_postgres, tmp_path, 20)


def test_a_store_goes_on_when_its_server_is_back(
    own_postgres: PrivatePostgres, tmp_path: Path
) -> None:
    (first, one), (second, two) = moments("u1", 2)
    with Nodes(own_postgres.url(), tmp_path).open(connect=1.0) as store:
        store.commit([first], [one])
        own_postgres.kill()
        with pytest.raises(StoreUnavailable, match="nothing was stored"):
            store.commit([second], [two])
        own_postgres.start()

        def stored() -> bool:
            """Asked again and again, as a client does."""
            try:
                store.commit([second], [two])
            except StoreUnavailable:
                return False
            return True

        wait_until(stored)
        assert answers_of(store) == [first, second]
