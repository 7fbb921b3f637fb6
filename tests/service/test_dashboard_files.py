"""The dashboard's files: all of them, as they must be, from this service alone."""

from __future__ import annotations

import asyncio
import re
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest
from hatchling.builders.wheel import WheelBuilder
from starlette.applications import Starlette

from sfumato.service.dashboard_files import HEADERS, MEDIA, dashboard_files, dashboard_routes

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "src" / "sfumato" / "service" / "dashboard"


class Client:
    """Asks the routes, without a network."""

    def __init__(self) -> None:
        self._app = Starlette(routes=dashboard_routes())

    def ask(self, method: str, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.request(method, path, headers=headers)

        return asyncio.run(asked())

    def get(self, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
        return self.ask("GET", path, headers)


@pytest.fixture(scope="module")
def client() -> Client:
    return Client()


def own_files() -> list[str]:
    """Those that are not somebody else's."""
    return [path for path in dashboard_files() if not path.startswith("vendor/")]


def test_every_file_of_the_folder_is_served_as_what_it_is(client: Client) -> None:
    there = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file()}
    assert there == set(dashboard_files())
    for path in there:
        reply = client.get(f"/{path}")
        assert reply.status_code == 200 and reply.content == (FOLDER / path).read_bytes()
        assert reply.headers["content-type"] == MEDIA[Path(path).suffix]
        assert all(reply.headers[name.lower()] == value for name, value in HEADERS.items())


def test_the_page_stands_at_the_root_and_nothing_else_is_found(client: Client) -> None:
    assert client.get("/").content == (FOLDER / "index.html").read_bytes()
    assert client.ask("HEAD", "/").content == b""
    for path in ("/../readouts.py", "/%2e%2e/readouts.py", "/vendor", "/app.py", "/vendor/"):
        assert client.get(path).status_code == 404
    assert client.ask("POST", "/").status_code == 405


def test_a_file_that_a_browser_has_is_not_sent_again(client: Client) -> None:
    tag = client.get("/app.js").headers["etag"]
    again = client.get("/app.js", headers={"If-None-Match": f'"other", W/{tag}'})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get("/app.js", headers={"If-None-Match": '"other"'}).status_code == 200
    assert len({file.etag for file in dashboard_files().values()}) == len(dashboard_files())


class _Elements(HTMLParser):
    """Everything that would be inline or from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.inside = tag if tag in ("script", "style") else ""
        if tag == "style" or (tag == "script" and "src" not in given):
            self.found.append(tag)
        self.found += [name for name in given if name.startswith("on") or name == "style"]
        addresses = [given.get(name) or "" for name in ("src", "href")]
        self.found += [one for one in addresses if ":" in one or one.startswith("//")]

    def handle_data(self, data: str) -> None:
        if self.inside == "script" and data.strip():
            self.found.append(data)


def test_nothing_is_inline_and_nothing_comes_from_elsewhere() -> None:
    page = _Elements()
    page.feed(dashboard_files()["index.html"].body.decode())
    assert page.found == []
    for path in own_files():
        text = dashboard_files()[path].body.decode().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|//[a-z0-9.-]+\.[a-z]{2,}/", text), path
        assert not re.search(r"\beval\(|new Function|innerHTML|outerHTML|insertAdjacent", text), (
            path
        )
        assert not re.search(r"setAttribute\(\s*[\"']style", text), path
        assert "localStorage" not in text and "document.cookie" not in text, path


def test_scripts_ask_for_files_that_are_there() -> None:
    for path in own_files():
        if path.endswith(".js"):
            text = dashboard_files()[path].body.decode()
            for name in re.findall(r"from \"\./([^\"]+)\"", text):
                assert name in dashboard_files(), (path, name)


def test_the_wheel_holds_every_file_and_the_licence_of_what_is_not_ours() -> None:
    builder = WheelBuilder(str(ROOT))
    packed = {Path(one.path).resolve() for one in builder.recurse_included_files()}
    for path in dashboard_files():
        assert (FOLDER / path).resolve() in packed, path
    assert b"MIT" in dashboard_files()["vendor/uPlot.LICENSE.txt"].body
    assert b"uPlot" in dashboard_files()["vendor/uPlot.iife.min.js"].body[:200]


def test_colours_can_be_told_from_their_ground() -> None:
    """AA: 4.5 to 1 for words, in both themes, on each of the grounds that they stand on."""
    css = dashboard_files()["style.css"].body.decode()
    themes = re.findall(r"--ground: (?:.|\n)*?--focus: #[0-9a-f]{6}", css)
    assert len(themes) == 3  # light, dark by the system, dark by choice
    for theme in themes:
        colours = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", theme))
        for ground in ("ground", "surface", "sunk"):
            for name in (
                "ink",
                "quiet",
                "model",
                "free",
                "bound",
                "silence",
                "good",
                "bad",
                "warn",
            ):
                assert _contrast(colours[name], colours[ground]) >= 4.5, (name, ground, theme[:40])
        assert _contrast(colours["surface"], colours["model"]) >= 4.5


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
