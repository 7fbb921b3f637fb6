"""The dashboard of `sfumato serve` itself: a first start, events over HTTP, and a browser."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from selenium.webdriver.common.keys import Keys

from sfumato.store.codec import to_bytes
from tests import servers
from tests.service.browsers import PATIENCE, Browser, browser
from tests.service.example_releases import PLACES, sticky, walked
from tests.service.gateways import gateway_served

MODEL = sticky(PLACES, 0.85)
_MAIN = "from sfumato.cli import main; main()"


@pytest.fixture
def chromium(tmp_path: Path) -> Iterator[Browser]:
    paths = servers.chromium_paths()
    assert paths is not None  # tests without a browser are left out, loudly
    with browser(paths, tmp_path / "profile") as opened:
        yield opened


@dataclass(frozen=True)
class Served:
    """A service that was just started for the first time, and its first key."""

    address: str
    key: str


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    model = tmp_path / "city.model"
    model.write_bytes(to_bytes(MODEL))
    port = servers.free_port()
    rules = ("--model", str(model), "--budget", "12", "--window", "20", "--every", "1")
    place = ("--home", str(tmp_path / "home"), "--port", str(port))
    said = tmp_path / "said"
    with said.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", _MAIN, "serve", *place, *rules],
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
    try:
        address = f"http://127.0.0.1:{port}"
        yield Served(address, _first_key(process, said, address))
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


def _first_key(process: subprocess.Popen[bytes], said: Path, address: str) -> str:
    end = time.monotonic() + 3 * PATIENCE
    while time.monotonic() < end and process.poll() is None:
        key = re.search(r"sfk_\S+", said.read_text())
        try:
            if key and httpx.get(f"{address}/readyz").status_code == 200:
                return key.group(0)
        except httpx.TransportError:
            pass  # it does not listen yet
        time.sleep(0.1)
    raise AssertionError(f"the service did not start: {said.read_text()[-2000:]}")


def test_what_was_answered_is_on_the_screen(chromium: Browser, service: Served) -> None:
    events = [
        {"stream": name, "id": f"{name}-{place}", "value": value}
        for name, length in (("ann", 50), ("bob", 12))
        for place, value in enumerate(walked(MODEL, length, length))
    ]
    with httpx.Client(
        base_url=service.address,
        headers={"Authorization": f"Bearer {service.key}"},
        timeout=PATIENCE,
    ) as client:
        replies = client.post("/v1/events", json={"events": events}).json()["replies"]
        refused = client.post("/v1/streams/ann/events", json={"id": "x", "value": "moon"})
        head = client.get("/v1/ledger/head").json()["head"]
    assert refused.status_code == 422 and {one["status"] for one in replies} == {"answered"}
    page = chromium
    page.driver.get(f"{service.address}/")
    page.one("#key").send_keys(service.key + Keys.ENTER)
    page.sees("62 answers in the ledger", "12 nats in any 20 successive steps")
    page.sees("the value is none that the release knows")
    page.click("a[href='#/stream/ann']")
    page.sees("Stream ann", "✓ recomputed, and as charged")
    page.until(lambda: page.painted(".strip canvas"), "a painted strip")
    for name, words in (("planning", "Try a budget"), ("ledger", head), ("models", "default")):
        page.run("location.hash = arguments[0]", f"#/{name}")
        page.sees(words)
        page.until(lambda: page.one("#refreshed").text.startswith("As of"), "figures")
    assert not page.all("[role=alert]") and page.complaints() == []
    last = replies[49]["answers"][0]
    assert last["stream"] == "ann" and last["sequence"] == 49


@pytest.mark.slow
def test_a_key_for_some_releases_sees_those_and_which_of_them_are_closed(
    chromium: Browser,
) -> None:
    with (
        gateway_served() as (url, key),
        httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=PATIENCE
        ) as client,
    ):
        for name in ("b", "hidden"):
            rules = {"epsilon": 0.2, "method": "optimal"}
            body = {"name": name, "rules": rules, "model": "town"}
            while client.post("/v1/releases", json=body).status_code != 200:
                time.sleep(0.1)
            event = {"id": "e1", "value": "home"}
            client.post(f"/v1/streams/ann/events?release={name}", json=event)
        client.post("/v1/releases/b/close")
        asked = {"streams": ["*"], "actions": ["read"], "releases": ["b", "a"]}
        limited = client.post("/v1/keys", json=asked).json()["key"]
        page = chromium
        page.driver.get(f"{url}/")
        page.one("#key").send_keys(limited + Keys.ENTER)
        page.sees("answers in the ledger")
        assert [one.text for one in page.all("#release option")] == ["a", "b"]
        page.run("location.hash = arguments[0]", "#/models")
        page.sees("closed since")
        assert "hidden" not in page.driver.page_source
        assert not page.all("[role=alert]") and page.complaints() == []
