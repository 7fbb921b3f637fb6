"""The service is killed under load, again and again: what was acknowledged stays, once."""

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.oracles.ledger_sums import RawLedger
from tests.servers import PrivatePostgres
from tests.service.nodes import LIMIT, PATIENCE, Node, ServiceHome, served
from tests.service.shadow import Load, Shadow

CLIENTS = 6
ROUNDS = [pytest.param(2, id="few"), pytest.param(50, id="many", marks=pytest.mark.slow)]


def crash_rounds(
    home: ServiceHome,
    model: Path,
    rounds: int,
    crash: Callable[[Node], None],
    seed: int = 20261117,
) -> None:
    """Kill under load at drawn moments; afterwards the ledger and the shadow must agree."""
    draw, shadow = random.Random(seed), Shadow()
    before = RawLedger([], {}, 0)
    with served(home, model) as ([node], key):
        # Whoever is unlucky asks in vain in several rounds, each as long as a start may take.
        clients = [node.client(key, PATIENCE * (rounds + 1)) for _ in range(CLIENTS)]
        with Load(clients, shadow, seed) as load:
            for _ in range(rounds):
                told = len(shadow.answers)
                while len(shadow.answers) == told:  # killed at work, not while it starts
                    assert not load.failures
                    time.sleep(0.01)
                time.sleep(draw.random() * 0.3)
                crash(node)
                now = home.raw()
                check_grown(before, now)
                before = now
        every = {event.id: event for event in load.sent}
        # Whatever was ever sent can be asked for: the old answer, a new one, or no budget.
        events = list(every.values())
        shadow.take(events, clients[0].release_many(events))
        for client in clients:
            client.close()
        assert node.stop() == 0
    ledger = home.raw()
    check_grown(before, ledger)
    assert ledger.problems(LIMIT) == []
    assert shadow.conflicts == [] and shadow.compared(ledger) == []
    assert set(ledger.answers()) == set(shadow.answers)
    assert set(shadow.refused) <= {"budget"}


def check_grown(before: RawLedger, now: RawLedger) -> None:
    """Nothing that was in the ledger has changed or gone, and no spend has fallen."""
    assert now.problems(LIMIT) == []
    answers = now.answers()
    assert all(answers.get(name) == row for name, row in before.answers().items())
    spent = now.spent()
    assert all(spent[stream] >= total for stream, total in before.spent().items())


def kill_server(node: Node) -> None:
    node.kill()
    node.start()


@pytest.mark.parametrize("rounds", ROUNDS)
def test_a_killed_server_has_lost_and_doubled_nothing(
    rounds: int, model: Path, tmp_path: Path
) -> None:
    crash_rounds(ServiceHome.made(tmp_path), model, rounds, kill_server)


@pytest.mark.parametrize("rounds", ROUNDS)
def test_a_killed_server_on_postgres_has_lost_and_doubled_nothing(
    rounds: int, model: Path, tmp_path: Path, database: str
) -> None:
    crash_rounds(ServiceHome.made(tmp_path, database), model, rounds, kill_server)


@pytest.mark.parametrize("rounds", ROUNDS)
def test_a_killed_database_has_lost_and_doubled_nothing(
    rounds: int, model: Path, tmp_path: Path, own_postgres: PrivatePostgres
) -> None:
    def kill_database(node: Node) -> None:
        own_postgres.kill()
        own_postgres.start()

    home = ServiceHome.made(tmp_path, own_postgres.url())
    crash_rounds(home, model, rounds, kill_database)
