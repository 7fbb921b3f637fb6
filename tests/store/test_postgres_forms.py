"""What somebody did to a database behind the back of all nodes, and databases of other versions."""

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from sfumato.core.errors import CorruptData
from sfumato.store.ledger_check import check_store, checked
from sfumato.store.postgres import migrate_postgres
from sfumato.store.postgres_rows import postgres_ledgers
from sfumato.store.postgres_schema import STEPS, migrate, version_of
from sfumato.store.protocol import Identity, LedgerMismatch
from tests.contracts.store_laws import answers_of, moments
from tests.contracts.threads import at_once
from tests.store.nodes import Nodes

OWN = "ledger = (SELECT number FROM sfumato.ledgers WHERE name = '{name}')"
COPIED = "entry, id, source, place, stream, sequence, outcome, released, leakage, model_free, tag"


def edited(what: str, table: str = "events") -> str:
    """A statement that changes rows of the ledger."""
    change, _, where = what.partition(" WHERE ")
    return f"UPDATE sfumato.{table} SET {change} WHERE {where} AND {OWN}"


def deleted(where: str, table: str = "events") -> str:
    return f"DELETE FROM sfumato.{table} WHERE {where} AND {OWN}"


def added(entry: int, stream: str, sequence: int, hash_: str = "''") -> str:
    return f"""INSERT INTO sfumato.events (ledger, {COPIED}, hash, head)
        SELECT ledger, {entry}, 'more', source, place, '{stream}', {sequence}, outcome, released,
            leakage, model_free, tag, {hash_}, '' FROM sfumato.events WHERE entry = 1 AND {OWN}"""


TAMPERINGS = {
    "an edited row": edited("leakage = .1 WHERE entry = 4"),
    "another released value": edited("released = '7' WHERE entry = 4"),
    "another kind of value": edited("released = '\"1\"' WHERE entry = 2"),
    "a forgotten value": edited("released = 'null' WHERE entry = 4"),
    "a lost signal": edited("signal = NULL WHERE entry = 3"),
    "an added signal": edited("signal = 0 WHERE entry = 1"),
    "an edited first row": edited("model_free = 9 WHERE entry = 1"),
    "an edited last row": edited("leakage = 0 WHERE entry = 12"),
    "another id": edited("id = 'new' WHERE entry = 4"),
    "another digest of a value": edited("tag = '\\x00' WHERE entry = 4"),
    "another time": edited("time = '07:00' WHERE entry = 4"),
    "a deleted row": deleted("entry = 4"),
    "a deleted last row": deleted("entry = 12"),
    "a cheaper state": edited("leakage = 0 WHERE stream = 'u1'", "streams"),
    "an older state": edited("sequence = 5 WHERE stream = 'u1'", "streams"),
    "a changed state": edited("state = '\\x00' WHERE stream = 'u1'", "streams"),
    "a lost state": deleted("stream = 'u1'", "streams"),
    "a lost hash": edited("hash = '' WHERE entry = 6"),
    "a lost head": edited("head = '' WHERE entry = 12"),
    "an added hash": edited("hash = decode(repeat('00', 32), 'hex') WHERE entry = 3"),
    "an added head": edited("head = decode(repeat('00', 32), 'hex') WHERE entry = 3"),
    "a row 0": added(0, "u3", 0),
    "a row below 0": added(-7, "u3", 0),
    "a row below 0 that ends a link": added(-7, "u3", 0, "decode(repeat('00', 32), 'hex')"),
    "a row below 0 of a known stream": added(-7, "u1", 6),
    "a moment below 0": added(-7, "u1", -1),
    "a row after the last": added(13, "u3", 0),
    "a row far after the last": added(99, "u3", 0),
    "fewer answers of an input": edited("answered = 3 WHERE label = 'live.csv'", "inputs"),
    "another front": "UPDATE sfumato.ledgers SET entries = 11 WHERE name = '{name}'",
    "another head": "UPDATE sfumato.ledgers SET head = '\\x00' WHERE name = '{name}'",
}


def filled(nodes: Nodes) -> None:
    """Two streams of six moments, committed together."""
    histories = [moments(stream, 6) for stream in ("u1", "u2")]
    with nodes.open() as store:
        store.begin("live.csv", Identity.EVENT)
        answers = [answer for history in histories for answer, _ in history]
        store.commit(answers, [history[-1][1] for history in histories])


@pytest.fixture
def nodes(shared_database: str, tmp_path: Path) -> Nodes:
    """A ledger of twelve rows, beside another one that nothing happens to."""
    other = Nodes(shared_database, tmp_path, f"{tmp_path} other")
    own = Nodes(shared_database, tmp_path, str(tmp_path))
    for each in (other, own):
        filled(each)
    return own


@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampering_is_found_by_a_check_and_in_its_own_ledger_alone(nodes: Nodes, name: str) -> None:
    with nodes.read() as ledger:
        assert checked(ledger).problems == []
    nodes.run(TAMPERINGS[name].replace("{name}", nodes.name))
    with nodes.read() as ledger:
        assert not checked(ledger).passed
    with Nodes(nodes.url, nodes.secret.parent, f"{nodes.name} other").open() as store:
        assert check_store(store).problems == []


READ = {
    "an edited row": {"position", "answers", "rest", "moment"},
    "another released value": {"position", "answers", "rest", "moment"},
    "a forgotten value": {"position", "answers", "rest", "moment"},
    "a deleted row": {"position", "answers", "rest"},
    "a cheaper state": {"position"},
    "a changed state": {"position"},
    "a lost state": {"position"},
}


@pytest.mark.parametrize("name", READ)
def test_nothing_that_was_changed_is_used(nodes: Nodes, name: str) -> None:
    nodes.run(TAMPERINGS[name].replace("{name}", nodes.name))
    with nodes.open() as store:
        looks: dict[str, Callable[[], object]] = {
            "position": lambda: store.position("u1"),
            "answers": lambda: store.answers([f"u1:{place}" for place in range(6)]),
            "rest": lambda: list(store.rest("u1", 0)),
            "moment": lambda: store.moment("u1", 3),
        }
        for look in READ[name]:
            with pytest.raises(CorruptData, match="tampered with or damaged"):
                looks[look]()
        assert store.position("u2") is not None


def test_a_front_or_an_end_that_was_changed_is_not_opened(nodes: Nodes) -> None:
    for name in ("another front", "another head", "a lost head", "a deleted last row"):
        with nodes.read() as ledger:
            head = ledger.front.head
        with psycopg.connect(nodes.url) as connection:
            statement = TAMPERINGS[name].replace("{name}", nodes.name)
            connection.execute(statement.encode())
            connection.commit()
        with pytest.raises(CorruptData, match="its last row is not the one it ended with"):
            nodes.open()
        if "front" in name or "another head" in name:
            nodes.run(
                f"UPDATE sfumato.ledgers SET entries = 12, head = '\\x{head.hash.hex()}' "
                f"WHERE name = '{nodes.name}'"
            )


RULES = {
    "another rule": "rules = '{}'",
    "no rules": "rules = NULL",
    "another job": "job = 'realtime'",
    "another identity": "identity = 'name'",
    "another version": "version = 7",
}


@pytest.mark.parametrize("name", RULES)
def test_a_changed_front_is_refused_by_all_who_open_it(nodes: Nodes, name: str) -> None:
    nodes.run(f"UPDATE sfumato.ledgers SET {RULES[name]} WHERE name = '{nodes.name}'")
    with pytest.raises(CorruptData):
        nodes.open()
    with pytest.raises(CorruptData):
        nodes.read()


FORMS = {
    "a trigger": """CREATE FUNCTION more() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN NEW.released = ''7''; RETURN NEW; END';
        CREATE TRIGGER more BEFORE INSERT ON sfumato.events FOR EACH ROW EXECUTE FUNCTION more()""",
    "a rule": "CREATE RULE more AS ON DELETE TO sfumato.events DO INSTEAD NOTHING",
    "a view in the place of a table": """ALTER TABLE sfumato.streams RENAME TO more;
        CREATE VIEW sfumato.streams AS SELECT * FROM sfumato.more""",
    "a table that a crash empties": "ALTER TABLE sfumato.events SET UNLOGGED",
    "a table that inherits": "CREATE TABLE sfumato.more () INHERITS (sfumato.events)",
    "rows that are hidden": "ALTER TABLE sfumato.events ENABLE ROW LEVEL SECURITY",
    "a further index": "CREATE INDEX more ON sfumato.events (leakage)",
    "a lost index": "DROP INDEX sfumato.events_id",
    "a further column": "ALTER TABLE sfumato.streams ADD COLUMN more text",
    "another column": "ALTER TABLE sfumato.events ALTER COLUMN place TYPE integer",
}


@pytest.mark.parametrize("name", FORMS)
def test_tables_of_another_form_are_refused_by_all_who_open_them(
    database: str, tmp_path: Path, name: str
) -> None:
    nodes = Nodes(database, tmp_path)
    migrate_postgres(database)
    nodes.run(*FORMS[name].split(";\n"))
    for use in (nodes.open, nodes.read, lambda: postgres_ledgers(database)):
        with pytest.raises(CorruptData, match="tables in the database are not those of a ledger"):
            use()


# Versions -----------------------------------------------------------------------------------------

NEXT = """ALTER TABLE sfumato.ledgers ADD COLUMN remark text;
    UPDATE sfumato.ledgers SET remark = 'from ' || name"""


def test_a_database_of_an_earlier_version_goes_on_with_its_ledgers_intact(
    database: str, tmp_path: Path
) -> None:
    nodes = Nodes(database, tmp_path)
    filled(nodes)
    with psycopg.connect(database, autocommit=True) as connection:
        for _ in range(2):  # the second time there is nothing to do
            migrate(connection, (*STEPS, NEXT))
            assert version_of(connection) == len(STEPS) + 1
        told = connection.execute("SELECT remark FROM sfumato.ledgers").fetchall()
        assert told == [("from city",)]
        # As it was before, but for the number: the rows are those that were there.
        connection.execute("ALTER TABLE sfumato.ledgers DROP COLUMN remark")
        connection.execute("DELETE FROM sfumato.versions WHERE number > %s", (len(STEPS),))
    with nodes.open() as store:
        assert check_store(store).problems == [] and len(answers_of(store)) == 12


@pytest.mark.parametrize("done", range(len(STEPS)))
def test_a_database_that_has_not_come_this_far_is_brought_here_by_who_opens_it(
    database: str, tmp_path: Path, done: int
) -> None:
    nodes = Nodes(database, tmp_path)
    with psycopg.connect(database, autocommit=True) as connection:
        migrate(connection, STEPS[:done])
        assert version_of(connection) == done
    told = rf"must have version {len(STEPS)}; it has {done}: .*store migrate"
    with pytest.raises(LedgerMismatch, match=told):
        nodes.read()
    filled(nodes)
    with nodes.read() as ledger:
        assert checked(ledger).passed


def test_a_newer_database_is_refused_and_left_alone(database: str, tmp_path: Path) -> None:
    nodes = Nodes(database, tmp_path)
    filled(nodes)
    with psycopg.connect(database, autocommit=True) as connection:
        migrate(connection, (*STEPS, NEXT))
        for use in (
            nodes.open,
            nodes.read,
            lambda: postgres_ledgers(database),
            lambda: migrate_postgres(database),
        ):
            told = f"must have version {len(STEPS)} or an earlier one; it has {len(STEPS) + 1}"
            with pytest.raises(CorruptData, match=told):
                use()
        assert version_of(connection) == len(STEPS) + 1


def test_a_step_that_fails_leaves_the_database_as_it_was(database: str, tmp_path: Path) -> None:
    nodes = Nodes(database, tmp_path)
    filled(nodes)
    with psycopg.connect(database, autocommit=True) as connection:
        with pytest.raises(psycopg.Error):
            migrate(connection, (*STEPS, NEXT, "SELECT 1 / 0"))
        assert version_of(connection) == len(STEPS)
    with nodes.open() as store:
        assert len(answers_of(store)) == 12


def test_steps_are_taken_once_however_many_nodes_take_them(database: str) -> None:
    def work(_: int) -> None:
        migrate_postgres(database)

    at_once(4, work)
    with psycopg.connect(database) as connection:
        taken = connection.execute("SELECT number FROM sfumato.versions ORDER BY 1").fetchall()
        assert taken == [(number,) for number in range(1, len(STEPS) + 1)]


def test_a_database_without_ledgers_has_none(database: str) -> None:
    assert postgres_ledgers(database) == []
    with psycopg.connect(database) as connection:
        assert version_of(connection) == 0  # to look changes nothing
