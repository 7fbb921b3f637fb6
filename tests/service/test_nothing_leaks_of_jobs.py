"""Services of all jobs are sent values that may stand nowhere; then every store is searched.

The values are sound ones of each job, and ones that are refused. PostgreSQL logs every statement
with its parameters meanwhile, and its files are searched, the write-ahead log included.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from sfumato.store.folder_home import FolderHome
from sfumato.store.home import Home, open_home
from sfumato.store.keys import new_key
from tests.oracles.store_rows import Rows, as_bytes, changed, folder_rows, postgres_rows
from tests.servers import PrivatePostgres
from tests.service.gateways import begun_jobs, gateway_served
from tests.service.sentinels import NUMBER, OUTSIDE, files, forms, leaks, number_forms

MEASURED, COUNTED = 4183.0290527, 70_312_947
"""Sound values of a series and of a temporal release: neither may stand anywhere."""
SECRETS = number_forms(MEASURED) | forms(str(COUNTED)) | number_forms(float(COUNTED))
SOUND: dict[str, list[Any]] = {"a": ["home", "work"], "counts": [MEASURED], "wards": [COUNTED]}
REFUSED: dict[str, list[Any]] = {
    "a": [OUTSIDE, NUMBER, [OUTSIDE], {OUTSIDE: NUMBER}],
    "counts": [OUTSIDE, [NUMBER], {"value": OUTSIDE}, True],
    "wards": [OUTSIDE, NUMBER, [NUMBER, NUMBER], {OUTSIDE: 1}],
}


def secrets_in(content: bytes) -> list[bytes]:
    """Forms of values that stand in something, of those that are refused and of sound ones."""
    return [*leaks(content), *(form for form in SECRETS if form in content)]


class Sender:
    """Sends values of all jobs, and holds every reply to the rules."""

    def __init__(self, client: httpx.Client, rows: Callable[[], Rows]) -> None:
        self._client, self._rows = client, rows
        self._number = itertools.count()

    def send(self, release: str, value: Any, status: int) -> None:
        event = {"id": f"e{next(self._number)}", "value": value}
        path = f"/v1/streams/s-{release}/events?release={release}"
        for again in (False, True):
            reply = self._client.post(path, json=event)
            assert reply.status_code == status, (release, reply.text)
            assert secrets_in(reply.content) == [] == secrets_in(str(reply.headers).encode())
            assert status != 200 or reply.json()["repeated"] is again
        if status == 200:  # the same id with another value: a conflict that only metrics tell
            other = {**event, "value": SOUND[release][-1]}
            assert self._client.post(path, json=other).json()["repeated"] is True

    def send_all(self) -> None:
        for release, values in SOUND.items():
            for value in values * 3:
                self.send(release, value, 200)
        before = self._rows()
        for release, values in REFUSED.items():
            for value in values:
                self.send(release, value, 400 if value is True else 422)
        assert changed(before, self._rows()) == []

    def read_all(self) -> bytes:
        """What is told of streams, ledgers and the service afterwards."""
        told = b""
        for release in SOUND:
            stream = f"/v1/streams/s-{release}"
            kinds = ("budget", "certificate", "leakage", "ledger", "recovered", "belief")
            paths = [f"{stream}/{kind}?release={release}" for kind in kinds]
            for path in (*paths, f"/v1/ledger?release={release}", f"/v1/plan?release={release}"):
                reply = self._client.get(path)
                assert reply.status_code < 500, (path, reply.text)
                told += reply.content
        for path in ("/v1/overview", "/v1/drift", "/v1/admin/log", "/metrics", "/v1/catalogue"):
            told += self._client.get(path).content
        return told


def asked(home: Home, rows: Callable[[], Rows], said: list[bytes]) -> bytes:
    """Send everything to a service on a home; what it told of it."""
    with (
        gateway_served(home, begun_jobs, said) as (url, key),
        httpx.Client(base_url=url, timeout=60.0) as client,
    ):
        client.headers["authorization"] = f"Bearer {key}"
        sender = Sender(client, rows)
        sender.send_all()
        return sender.read_all()


def check_told(told: bytes, said: list[bytes], rows: Rows, capfd: Any) -> None:
    """Nothing stands in what was told, logged, printed or stored."""
    log = b"".join(said)
    assert b"/v1/streams/{stream}/events" in log and b"conflicting_retries_total" in told
    for where in (told, log, *(text.encode() for text in capfd.readouterr()), as_bytes(rows)):
        assert secrets_in(where) == []
    answers = [row for name, table in rows.items() if name.endswith("events") for row in table]
    assert len(answers) == 3 * sum(map(len, SOUND.values()))  # there was something to find


def test_a_folder_of_all_jobs_holds_no_value(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place, said = tmp_path / "home", list[bytes]()
    with FolderHome(place) as home:
        told = asked(home, lambda: folder_rows(place), said)
    check_told(told, said, folder_rows(place), capfd)
    found = files(place)
    assert {path.name for path in found} >= {"a.ledger", "counts.ledger", "wards.ledger"}
    assert {path.name for path in found if secrets_in(path.read_bytes())} == set()


def test_a_database_of_all_jobs_holds_and_logs_no_value(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], own_postgres: PrivatePostgres
) -> None:
    own_postgres.stop()
    own_postgres.start(log_statement="all", log_min_duration_statement="0", log_min_messages="info")
    url, secret, said = own_postgres.url(), tmp_path / "values.key", list[bytes]()
    new_key(secret)
    with open_home(url, secret) as home:
        told = asked(home, lambda: postgres_rows(url), said)
    check_told(told, said, postgres_rows(url), capfd)
    own_postgres.stop()
    log = (own_postgres.folder / "log").read_bytes()
    # It does log parameters: names of streams are among them, so values would be.
    assert b"parameters: $1 = " in log and b"s-wards" in log
    found = files(own_postgres.folder)
    assert any("pg_wal" in str(path) for path in found)
    assert {str(path) for path in found if secrets_in(path.read_bytes())} == set()
