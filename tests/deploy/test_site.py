"""The site, page by page, as it is seen: wide and narrow, light and dark, without a network."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import servers
from tests.deploy.conftest import ROOT
from tests.service.browsers import Browser, browser

LOOK = Path(__file__).with_name("site_reader.js").read_text("utf-8")
WIDTHS = (1280, 390)
SCHEMES = {"light": "default", "dark": "slate"}
"""What a system may prefer, and what the theme calls it."""
PARTS = 7
"""Pages are looked at in so many tests: it is seen how far they are, and workers share them."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with warnings as errors (`make docs` installs what builds it)."""
    folder = tmp_path_factory.mktemp("site")
    source = os.pathsep.join((str(ROOT / "src"), os.environ.get("PYTHONPATH", "")))
    around = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": source}
    build = (sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", folder)
    subprocess.run(build, cwd=ROOT, env=around, check=True)
    return folder


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    paths = servers.chromium_paths()
    assert paths is not None
    with browser(paths, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def looked_at(chromium: Browser, page: Path) -> list[str]:
    """What is wrong with a page, in all ways to look at it."""
    found = []
    for width in WIDTHS:
        chromium.resize(width, 900)
        for scheme in SCHEMES:
            chromium.prefer(scheme)
            chromium.driver.get(page.as_uri())  # anew: nothing slides or fades any more
            found += [f"{width} {scheme}: {each}" for each in chromium.run(LOOK)]
    return found + chromium.complaints()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_can_be_read(part: int, site: Path, chromium: Browser) -> None:
    pages = sorted(page for page in site.rglob("*.html") if page.name != "404.html")
    assert len(pages) > 60
    own = pages[part::PARTS]
    wrong = {str(page.relative_to(site)): looked_at(chromium, page) for page in own}
    assert {page: found for page, found in wrong.items() if found} == {}


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_it_is_dark_where_the_system_is(scheme: str, site: Path, chromium: Browser) -> None:
    chromium.prefer(scheme)
    chromium.driver.get((site / "index.html").as_uri())
    assert chromium.told("body", "data-md-color-scheme") == SCHEMES[scheme]


@pytest.mark.slow
def test_it_is_searched_without_a_network(site: Path, chromium: Browser) -> None:
    chromium.resize(1280, 900)
    chromium.driver.get((site / "guides" / "column.html").as_uri())
    box = chromium.one("input.md-search__input")
    box.click()
    box.send_keys("randomised response")
    chromium.until(lambda: chromium.all(".md-search-result__item"), "something that was found")
    assert chromium.complaints() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<pre style='overflow: visible'>" + 200 * "wide " + "</pre>", "the window"),
        ("<p>a</p><img src='none.png' alt='a picture'>", "not shown"),
        ("<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>", "no words"),
        ("<p>one</p><p style='margin-top: -2.2em'>two</p>", "one upon the other"),
        ("<p style='color: #ccc'>pale</p>", "hardly seen"),
        ("<script src='http://127.0.0.1:1/x.js'></script>", "asks the network"),
        ("<span class='arithmatex'>x</span>", "as it was typed"),
    ],
)
def test_what_is_wrong_is_seen(body: str, said: str, chromium: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><article>{body}</article>")
    assert said in " ".join(looked_at(chromium, page))
    page.write_text("<!doctype html><meta charset=utf-8><article><p>Fine.</p></article>")
    assert looked_at(chromium, page) == []
