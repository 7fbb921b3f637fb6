"""`sfumato serve` as a process: what it says, how it starts again, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from sfumato.models.encoding import Symbols
from sfumato.models.markov import MarkovChain
from sfumato.models.stream_model import StreamModel
from sfumato.store.files import save
from tests.shell.running import COMMAND, call

STEPWISE = ("--epsilon", "0.5", "--method", "step-wise")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    chain = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
    path = tmp_path / "town.model"
    save(StreamModel(chain, Symbols(chain.alphabet)), path)
    return path


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A service that listens, and its first line."""
    called = [*COMMAND, "serve", "--home", "home", "--port", "0", "--json", "--log", "log", *words]
    process = subprocess.Popen(called, cwd=folder, stdout=subprocess.PIPE, text=True)
    watchdog = threading.Timer(100.0, process.kill)
    watchdog.start()
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        process.stdout.close()


def refused(folder: Path, *words: str) -> str:
    called = [*COMMAND, "serve", "--home", "home", "--port", "0", *words]
    done = subprocess.run(called, cwd=folder, capture_output=True, text=True, timeout=100)
    assert done.returncode == 2
    return done.stderr


def test_a_database_without_the_secret_of_its_nodes_is_refused_at_the_start(tmp_path: Path) -> None:
    told = refused(tmp_path, "--home", "postgresql://nobody@127.0.0.1:1/none")
    assert "--secret-file must be given for PostgreSQL" in told


def test_a_service_starts_ends_in_order_and_goes_on(tmp_path: Path, model: Path) -> None:
    rules = ("--model", str(model), *STEPWISE)
    asked = {"id": "e1", "value": "0"}
    with serving(tmp_path, *rules) as (process, line):
        assert line["default"] == "default" and line["releases"] == {"default": "ready"}
        key = {"authorization": f"Bearer {line['admin_key']}"}
        url = f"{line['listening']}/v1/streams/ann/events"
        first = httpx.post(url, json=asked, headers=key).json()
        assert "in use" in refused(tmp_path, *rules)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert "other rules" in refused(tmp_path, "--model", str(model), "--epsilon", "0.6")
    with serving(tmp_path) as (process, line):
        assert "admin_key" not in line
        again = httpx.post(
            f"{line['listening']}/v1/streams/ann/events", json=asked, headers=key
        ).json()
        assert again == {**first, "repeated": True}
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert not [each for each in (tmp_path / "log").read_text().splitlines() if '"error"' in each]
    assert (tmp_path / "home" / "ledgers" / "default.ledger").stat().st_mode & 0o077 == 0


def test_heads_are_told_at_the_start_and_the_end_and_show_a_home_that_was_put_back(
    tmp_path: Path, model: Path
) -> None:
    with serving(tmp_path, "--model", str(model), *STEPWISE) as (process, line):
        key = {"authorization": f"Bearer {line['admin_key']}"}
        assert line["heads"]["ledgers"]["default"].startswith("0:")
        url = f"{line['listening']}/v1/streams/ann/events"
        httpx.post(url, json={"id": "e1", "value": "0"}, headers=key).raise_for_status()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stdout is not None
        end = json.loads(process.stdout.readline())
    assert end["ended"] and end["heads"]["ledgers"]["default"].startswith("1:")
    logged = [json.loads(each) for each in (tmp_path / "log").read_text().splitlines()]
    heads = [(one["reason"], one.get("release"), one["head"]) for one in logged if "head" in one]
    assert heads[-2:] == [
        ("end", None, end["heads"]["registry"]),
        ("end", "default", end["heads"]["ledgers"]["default"]),
    ]
    with serving(tmp_path) as (process, line):
        assert line["heads"] == end["heads"]
    # What a log elsewhere has kept is an anchor.
    anchor = {"format": "sfumato anchor 1", "time": "2026-05-01T12:00:00Z", **end["heads"]}
    kept = tmp_path / "anchor.json"
    for rows, code in (("1", 0), ("2", 1)):
        anchor["ledgers"] = {"default": rows + end["heads"]["ledgers"]["default"][1:]}
        kept.write_text(json.dumps(anchor))
        checked = call("store", "check", str(tmp_path / "home"), "--expect-anchor", str(kept))
        assert checked.code == code, checked.err


def test_a_reader_that_went_away_does_not_spoil_the_end(tmp_path: Path, model: Path) -> None:
    with serving(tmp_path, "--model", str(model), *STEPWISE) as (process, _):
        assert process.stdout is not None
        process.stdout.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_what_is_missing_or_wrong_is_said_before_anything_is_opened(
    tmp_path: Path, model: Path
) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text("[limits]\nbody_bytes = 0\n")
    for words, said in (
        (("--epsilon", "0.5"), "--model"),
        (("--model", str(model), "--budget", "3"), "--horizon"),
        (("--config", str(settings)), "body_bytes"),
        (("--config", str(tmp_path / "none.toml")), "--config"),
    ):
        done = call("serve", "--home", str(tmp_path / "home"), *words)
        assert done.code == 2 and said in done.err
    assert not (tmp_path / "home").exists()


def test_the_help_of_the_program_loads_no_server() -> None:
    code = "import sys; from sfumato.cli.app import app; print(sorted(set(sys.modules) & {names}))"
    names = {"starlette", "uvicorn", "prometheus_client", "websockets", "httpx", "psycopg"}
    done = subprocess.run(
        [sys.executable, "-c", code.replace("{names}", repr(names))],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    assert done.stdout.strip() == "[]"
