"""Many clients at once, on the same and on different streams, on two nodes: one budget each."""

import random
import threading
from pathlib import Path

import pytest

from sfumato.client import Client, LiveEvent
from tests.service.nodes import HORIZON, LIMIT, SYMBOLS, ServiceHome, served
from tests.service.shadow import Shadow


def asked_together(clients: list[Client], shared: int, each: int) -> Shadow:
    """Every client asks about the shared streams, and some events come from two clients."""
    shadow, ready = Shadow(), threading.Barrier(len(clients))
    failures: list[BaseException] = []

    def work(number: int, client: Client) -> None:
        try:
            draw = random.Random(number)
            ready.wait()
            for place in range(each):
                stream = f"s{draw.randrange(shared)}" if place % 2 else f"own{number}"
                # The same event from a neighbour too: the same id, stream and value.
                twin = f"twin{number // 2}-{place}"
                events = [
                    LiveEvent(stream, draw.choice(SYMBOLS), id=f"{number}-{place}"),
                    LiveEvent("twins", SYMBOLS[place % 3], id=twin),
                ]
                shadow.take(events, client.release_many(events))
        except BaseException as problem:  # raised where the test looks
            failures.append(problem)

    workers = [threading.Thread(target=work, args=each) for each in enumerate(clients)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []
    return shadow


def check_budgets(home: ServiceHome, shadow: Shadow, *, reached: bool) -> None:
    ledger = home.raw()
    assert ledger.problems(LIMIT) == []
    assert shadow.conflicts == [] and shadow.compared(ledger) == []
    assert set(ledger.answers()) == set(shadow.answers)
    assert set(shadow.refused) <= {"budget"}
    lengths = [count for count, _, _ in ledger.positions.values()]
    assert max(lengths) <= HORIZON
    if reached:  # the law is about something only where budgets run out
        assert max(lengths) == HORIZON and shadow.refused["budget"] > 0


def test_two_nodes_on_postgres_exceed_no_budget(model: Path, tmp_path: Path, database: str) -> None:
    home = ServiceHome.made(tmp_path, database)
    with served(home, model, nodes=2) as (nodes, key):
        clients = [nodes[number % 2].client(key) for number in range(64)]
        shadow = asked_together(clients, shared=4, each=6)
        for client in clients:
            client.close()
    check_budgets(home, shadow, reached=True)


@pytest.mark.slow
def test_one_node_on_sqlite_exceeds_no_budget(model: Path, tmp_path: Path) -> None:
    home = ServiceHome.made(tmp_path)
    with served(home, model) as ([node], key):
        clients = [node.client(key) for _ in range(64)]
        shadow = asked_together(clients, shared=4, each=6)
        for client in clients:
            client.close()
    check_budgets(home, shadow, reached=True)
