"""Pictures of every page of the dashboard, of a real `sfumato serve`, to be looked at.

`python -m tests.service.dashboard_pictures FOLDER` writes them wide and narrow, light and dark;
with `--docs` the two of the documentation are written anew as well.
"""

from __future__ import annotations

import argparse
import base64
import tempfile
import time
from pathlib import Path

import httpx
from selenium.webdriver.common.keys import Keys

from sfumato.store.codec import to_bytes
from tests import servers
from tests.service.browsers import PATIENCE, Browser, browser
from tests.service.example_releases import PLACES, sticky, walked
from tests.service.nodes import Node, ServiceHome

MODEL = sticky(PLACES, 0.85)
RULES = ("--budget", "12", "--window", "20", "--every", "1")
IMAGES = Path(__file__).parents[2] / "docs" / "images"
PAGES = {"overview": "", "stream": "stream/ann", "planning": "planning", "ledger": "ledger"}
PAGES |= {"models": "models"}
SCREENS = {"wide": (1280, 900), "narrow": (390, 800)}
DOCS = {"dashboard-light": ("stream", "light"), "dashboard-dark": ("planning", "dark")}


def fill(node: Node, key: str) -> None:
    """Streams of different lengths, some of which want more than their budget, and refusals."""
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=node.url, headers=headers, timeout=PATIENCE) as client:
        for place in range(12):
            name = ("ann", "bob", "cho", "dee", "eli", "fay")[place % 6] + "2" * (place // 6)
            events = [
                {"stream": name, "id": f"{name}-{n}", "value": value}
                for n, value in enumerate(walked(MODEL, 90 - 6 * place, place))
            ]
            client.post("/v1/events", json={"events": events}).raise_for_status()
        for value in ("moon", 7, None):
            client.post("/v1/streams/ann/events", json={"id": f"x{value}", "value": value})


def settled(page: Browser) -> None:
    """Wait until all figures of a page are there, and what is tried aside has been."""
    page.until(lambda: page.one("#refreshed").text.startswith("As of"), "figures")
    end = time.monotonic() + PATIENCE
    while "still being tried" in page.text and time.monotonic() < end:
        time.sleep(0.2)
    time.sleep(0.5)


def picture(page: Browser, path: Path) -> None:
    """The whole page, however long it is."""
    how = {"captureBeyondViewport": True, "format": "png"}
    told = page.driver.execute_cdp_cmd("Page.captureScreenshot", how)
    path.write_bytes(base64.b64decode(told["data"]))


def take(page: Browser, folder: Path, *, docs: bool) -> None:
    """All pages, on all screens, in both schemes."""
    for screen, size in SCREENS.items():
        for scheme in ("light", "dark"):
            page.prefer(scheme)
            for name, place in PAGES.items():
                page.resize(*size)
                page.run("location.hash = arguments[0]", f"#/{place}")
                settled(page)
                height = page.run("return document.documentElement.scrollHeight")
                page.resize(size[0], max(size[1], min(int(height), 6_000)))
                settled(page)
                picture(page, folder / f"{name}-{screen}-{scheme}.png")
                if docs and screen == "wide":
                    for target, of in DOCS.items():
                        if of == (name, scheme):
                            picture(page, IMAGES / f"{target}.png")
    assert page.complaints() == []


def main() -> None:
    """Start a service, fill it, and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--docs", action="store_true", help="also those of the documentation")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    paths = servers.chromium_paths()
    assert paths is not None, "chromium and chromium-driver must be installed"
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        model = place / "city.model"
        model.write_bytes(to_bytes(MODEL))
        node = Node(ServiceHome.made(place))
        try:
            key = node.start("--model", str(model), *RULES)
            assert key is not None
            fill(node, key)
            with browser(paths, place / "profile") as page:
                page.driver.get(f"{node.url}/")
                page.one("#key").send_keys(key + Keys.ENTER)
                page.sees("answers in the ledger")
                take(page, given.folder, docs=given.docs)
        finally:
            node.kill()


if __name__ == "__main__":
    main()
