"""A ledger that several nodes share: the laws of every store, and what only it can suffer."""

import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from sfumato.core.errors import InvalidParameter, SfumatoError
from sfumato.store import postgres_connection
from sfumato.store.chain import first_head
from sfumato.store.keys import new_key
from sfumato.store.ledger_check import check_store, checked
from sfumato.store.postgres import PostgresStore
from sfumato.store.postgres_rows import postgres_ledgers
from sfumato.store.protocol import Identity, Job, LedgerMismatch, Store, StoreUnavailable
from sfumato.store.sqlite import SqliteStore
from tests.contracts.store_laws import JOB, PLAN, SharedStoreLaws, answers_of, moments
from tests.servers import PrivatePostgres
from tests.store.nodes import HAMMER, HOLDER, PATIENCE, Nodes


class TestPostgresStore(SharedStoreLaws):
    @pytest.fixture(autouse=True)
    def node(self, shared_database: str, tmp_path: Path) -> None:
        """What every node is told: where the database is, and the secret."""
        self.url, self.secret = shared_database, tmp_path / "values.key"
        new_key(self.secret)

    def opened(self, place: Path, plan: str, job: Job) -> Store:
        return PostgresStore(self.url, str(place), plan, job=job, rules=None, secret=self.secret)


@pytest.fixture
def nodes(shared_database: str, tmp_path: Path) -> Nodes:
    """Nodes of a ledger of their own, in a database that other tests use too."""
    return Nodes(shared_database, tmp_path, str(tmp_path))


# Several nodes ------------------------------------------------------------------------------------


def hammered(nodes: Nodes, turns: int) -> None:
    """Two processes that are asked the same events at once, and what they leave."""
    workers = [nodes.process(HAMMER, str(turns)) for _ in range(2)]
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == b"open\n"
    said = [worker.communicate(b"\n", timeout=PATIENCE)[0].decode().split() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    told = Counter(id_ for ids in said for id_ in ids)
    assert set(told.values()) == {1} and len(told) == 5 * turns
    with nodes.read() as ledger:
        report = checked(ledger)
        assert (report.rows, report.streams, report.problems) == (5 * turns, 5, [])
        for stream, count in ledger.streams():
            answers = list(ledger.rest(stream, 0))
            position = ledger.position(stream)
            assert position is not None and count == turns == len(answers)
            assert position.leakage == sum(answer.leakage for answer in answers)
            assert position.model_free == sum(answer.model_free for answer in answers)
        assert {answer.id for answer in ledger.history()} == set(told)


def test_two_processes_lose_nothing_and_answer_nothing_twice(nodes: Nodes) -> None:
    hammered(nodes, 20)


@pytest.mark.slow
def test_two_processes_lose_nothing_in_many_turns(nodes: Nodes) -> None:
    hammered(nodes, 1_000)


def test_a_node_that_is_killed_in_its_turn_stores_nothing_and_frees_the_ledger(
    nodes: Nodes,
) -> None:
    holder = nodes.process(HOLDER)
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    with nodes.open(lock=0.2) as store:
        ((answer, after),) = moments("held", 1)
        with pytest.raises(StoreUnavailable, match=r"held the ledger for more than 0.2 s"):
            store.commit([answer], [after])
        assert store.position("held") is None  # readers do not wait
    holder.kill()
    holder.communicate(timeout=PATIENCE)
    with nodes.open() as store:
        assert store.position("held") is None
        store.commit([answer], [after])
        assert answers_of(store) == [answer]


def test_a_node_that_does_nothing_in_its_turn_is_cut_off(nodes: Nodes) -> None:
    ((answer, after),) = moments("u1", 1)
    with nodes.open(idle=0.2) as slow, nodes.open() as other:
        with pytest.raises(StoreUnavailable), slow.turn():
            slow.commit([answer], [after])
            other.commit([answer], [after])  # waits until the other one is cut off
        assert answers_of(other) == [answer] == answers_of(slow)
        with slow.turn():
            assert slow.front.head == other.front.head


def test_what_nobody_knows_to_be_stored_does_not_leave_and_can_be_asked_again(
    nodes: Nodes,
) -> None:
    ((answer, after),) = moments("u1", 1)
    with nodes.open() as store:
        head = store.front.head
        with pytest.raises(StoreUnavailable, match="did not say whether it stored"), store.turn():
            store.commit([answer], [after])
            (backend,) = store._one("SELECT pg_backend_pid()")
            nodes.run(f"SELECT pg_terminate_backend({backend}, 5000)")
        assert store.front.head == head
        assert store.answers([answer.id]) == {}
        store.commit([answer], [after])
        assert answers_of(store) == [answer]


def test_a_database_that_is_lost_within_a_turn_stores_nothing_of_it(nodes: Nodes) -> None:
    (first, one), (second, two) = moments("u1", 2)
    with nodes.open() as store:
        with pytest.raises(StoreUnavailable, match="nothing was stored"), store.turn():
            store.commit([first], [one])
            (backend,) = store._one("SELECT pg_backend_pid()")
            nodes.run(f"SELECT pg_terminate_backend({backend}, 5000)")
            store.commit([second], [two])
        assert answers_of(store) == []


def test_a_turn_in_which_a_statement_failed_stores_nothing_and_says_so(nodes: Nodes) -> None:
    ((answer, after),) = moments("u1", 1)
    with nodes.open() as store:
        with pytest.raises(StoreUnavailable, match="a statement of this turn failed"), store.turn():
            store.commit([answer], [after])
            with pytest.raises(SfumatoError):
                store._one("SELECT 1 / 0")
        assert answers_of(store) == [] and store.front.head.entries == 0
        store.commit([answer], [after])
        assert answers_of(store) == [answer]


def test_other_threads_see_only_what_is_durable(nodes: Nodes) -> None:
    ((answer, after),) = moments("u1", 1)
    with nodes.open() as store:
        seen: list[object] = []

        def look() -> None:
            seen.extend([store.front.head.entries, store.position("u1"), store.begun(["u1"])])

        with store.turn():
            store.commit([answer], [after])
            other = threading.Thread(target=look)
            other.start()
            other.join()
            assert store.front.head.entries == 1
        assert seen == [0, None, set()]
        assert store.front.head.entries == 1


def test_ledgers_of_one_database_are_apart(shared_database: str, tmp_path: Path) -> None:
    histories = {name: moments("u1", 2 + place) for place, name in enumerate(("a", "b"))}
    for name, history in histories.items():
        with Nodes(shared_database, tmp_path, f"{tmp_path} {name}").open() as store:
            store.begin("live", Identity.EVENT)
            store.commit([answer for answer, _ in history], [history[-1][1]])
            assert check_store(store).problems == []
    for name, history in histories.items():
        with Nodes(shared_database, tmp_path, f"{tmp_path} {name}").open() as store:
            assert answers_of(store) == [answer for answer, _ in history]
            assert store.answers(["u1:2"]).keys() == ({"u1:2"} if name == "b" else set())
            there = {one.name: one for one in postgres_ledgers(shared_database)}
            told = there[f"{tmp_path} {name}"]
            assert (told.job, told.plan, told.head) == (JOB.name, PLAN, store.front.head)


def test_a_check_reads_beside_a_turn_and_compares_an_older_head(nodes: Nodes) -> None:
    history = moments("u1", 4)
    with nodes.open() as store:
        store.commit([answer for answer, _ in history[:3]], [history[2][1]])
        head = store.front.head
        with store.turn():
            store.commit([history[3][0]], [history[3][1]])
            report = check_store(store, head)
            assert (report.rows, report.problems) == (3, [])
        report = check_store(store, head)
        assert (report.rows, report.streams, report.problems) == (4, 1, [])
        assert not check_store(store, replace(head, hash=bytes(32))).passed


def test_the_chain_is_that_of_a_ledger_file(nodes: Nodes, tmp_path: Path) -> None:
    """The rows of the database, written into a file with the same id, have the same head."""
    history = moments("u1", 70) + moments("u2", 3)
    with nodes.open() as store:
        answers = [answer for answer, _ in history]
        store.commit(answers, [history[69][1], history[72][1]])
        with store.snapshot() as ledger:
            rows = list(ledger.rows())
        front, head = store.front, store.front.head
    with SqliteStore(tmp_path / "city.ledger", PLAN, job=JOB) as file:
        id_, begun = front.id, first_head(front.id, PLAN)
        file._database.execute("UPDATE ledger SET id = ?, head = ?", (id_, begun))
        file.front = replace(front, head=replace(head, entries=0, hash=begun))
        file.commit(answers, [history[69][1], history[72][1]])
        assert file.front.head == head
        assert list(file.rows()) == rows


# What is refused ----------------------------------------------------------------------------------


def test_another_secret_is_refused_and_none_is_in_the_database(
    nodes: Nodes, tmp_path: Path
) -> None:
    with nodes.open() as store:
        begun = store.begin("live", Identity.EVENT)
        assert begun.secret == nodes.secret.read_bytes()
    with psycopg.connect(nodes.url) as connection:
        for table in ("ledgers", "inputs", "streams", "events"):
            rows = connection.execute(f"SELECT t::text FROM sfumato.{table} AS t".encode())
            assert begun.secret.hex() not in "".join(row for (row,) in rows)
    nodes.secret = tmp_path / "other.key"
    with pytest.raises(InvalidParameter, match="secret must exist"):
        nodes.open()
    new_key(nodes.secret)
    with pytest.raises(LedgerMismatch, match="begun with another secret"):
        nodes.open()
    nodes.secret.chmod(0o640)
    with pytest.raises(LedgerMismatch, match="nobody but its owner"):
        nodes.open()


def test_a_password_is_in_no_message(
    nodes: Nodes, postgres: PrivatePostgres, caplog: pytest.LogCaptureFixture
) -> None:
    word, port = postgres.password, f":{postgres.port}/"
    urls = [
        nodes.url.replace(word, "wrong-word"),
        nodes.url.replace(port, ":1/"),
        nodes.url.replace("postgresql:", "postgres-ql:"),
        nodes.url.replace("/t", "/nowhere-t"),
        f"host=127.0.0.1 port=1 password={word} nonsense",
    ]
    for url in urls:
        nodes.url = url
        with pytest.raises(SfumatoError) as caught:
            nodes.open(connect=1.0)
        told = str(caught.getrepr(style="short")) + caplog.text
        assert word not in told and "wrong-word" not in str(caught.value)


@pytest.mark.parametrize("bad", ["id", "stream", "released"])
def test_what_no_database_can_hold_is_refused_before_it_is_stored(nodes: Nodes, bad: str) -> None:
    ((answer, after),) = moments("u1", 1)
    with nodes.open() as store:
        wrong = {
            "id": replace(answer, id="a\0b"),
            "stream": replace(answer, stream="a\0b"),
            "released": replace(answer, released=float("inf")),
        }[bad]
        moved = replace(after, stream=wrong.stream)
        with pytest.raises(SfumatoError, match=r"without NUL|be finite"):
            store.commit([wrong], [moved])
        assert answers_of(store) == []
        with store.turn():  # to ask for it is no error, and does no harm to a turn
            odd = ["a\0b", "\ud800", answer.id]
            assert store.answers(odd) == {} and store.begun(odd) == set()
            store.commit([answer], [after])
            assert store.known(odd).tolist() == [False, False, True]


FORGETFUL = {
    "fsync": "off",
    "full_page_writes": "off",
}


@pytest.mark.slow
@pytest.mark.parametrize("setting", FORGETFUL)
def test_a_server_that_may_forget_is_refused(
    own_postgres: PrivatePostgres, tmp_path: Path, setting: str
) -> None:
    nodes = Nodes(own_postgres.url(), tmp_path)
    ((answer, after),) = moments("u1", 1)
    with nodes.open() as store:
        # Both are changed while the server runs.
        own_postgres.stop()
        own_postgres.start(**{setting: FORGETFUL[setting]})
        with pytest.raises(LedgerMismatch, match=f"must have {setting} = on; it has off"):
            store.commit([answer], [after])
    with pytest.raises(LedgerMismatch, match=f"must have {setting} = on; it has off"):
        nodes.open()


def test_a_database_that_acknowledges_early_is_made_to_wait(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes, name = Nodes(database, tmp_path), database.rpartition("/")[2]
    asked = "SELECT current_setting('synchronous_commit')"
    for setting, due in {"off": "on", "local": "on", "remote_apply": "remote_apply"}.items():
        nodes.run(f"ALTER DATABASE {name} SET synchronous_commit = {setting}")
        with nodes.open() as store, store.turn():
            assert store._one(asked) == (due,)
    nodes.run(f"ALTER DATABASE {name} SET synchronous_commit = off")
    monkeypatch.setattr(postgres_connection, "_SYNCHRONOUS", "SELECT 1")
    with pytest.raises(LedgerMismatch, match="must have synchronous_commit = on; it has off"):
        nodes.open()
