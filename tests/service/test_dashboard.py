"""The dashboard in a real browser: what a person does, and what is on the screen then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from sfumato.service.fleet_documents import OverviewDocument
from sfumato.service.readout_queries import ReleaseQuery
from sfumato.service.readouts import Readouts
from sfumato.store.live import Answered, Reason, Refused, Reply
from sfumato.store.live_columns import ReplyColumns
from sfumato.store.protocol import Answer
from sfumato.stream.release_spec import ReleaseSpec
from tests import servers
from tests.service.browsers import NAMED, Browser, browser
from tests.service.example_releases import (
    FixedReleases,
    answer_stream,
    series_release,
    sticky,
    stream_release,
    temporal_release,
    walked,
)
from tests.service.small_service import KEY, application, served

PLACES = ("home", "work", "shop")
PAGES = ("overview", "stream", "stream/ann", "planning", "ledger", "models")


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests; each begins in it signed out."""
    paths = servers.chromium_paths()
    assert paths is not None  # tests without a browser are left out, loudly
    with browser(paths, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@dataclass(frozen=True)
class World:
    """A service with some releases, and where it is."""

    address: str
    readouts: Readouts
    answers: dict[str, list[Answer]]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    model, folder = sticky(PLACES, 0.85), tmp_path_factory.mktemp("ledgers")
    spec = ReleaseSpec(budget=12.0, window=12, ldp=40.0)
    city = stream_release(spec, model, path=folder / "city.ledger")
    answers = {
        name: answer_stream(city, name, walked(model, length, length), seed=length)
        for name, length in (("ann", 60), ("bob", 9), ("o/dd & <name>", 4))
    }
    again = stream_release(ReleaseSpec(epsilon=0.5), model, "again", folder / "again.ledger")
    answer_stream(again, "bob", ["home", "work"])
    releases = FixedReleases([city, series_release(30, 12), temporal_release(12), again])
    readouts = Readouts(releases)
    told: list[Reply] = [*[Answered(())] * 30, Refused(Reason.BUDGET, "")]
    readouts.saw("city", ReplyColumns(len(told), others=dict(enumerate(told))))
    with served(application(readouts)) as address:
        yield World(address, readouts, answers)
    readouts.close()
    releases.close()


@pytest.fixture
def page(chromium: Browser, world: World) -> Iterator[Browser]:
    """The page, signed out, on a wide light screen; nothing may be complained of at the end."""
    chromium.resize(1400, 1000)
    chromium.prefer("light")
    chromium.driver.get(f"{world.address}/openapi.json")  # of the same origin, and without a page
    chromium.run("sessionStorage.clear()")
    chromium.complaints()
    chromium.driver.get(f"{world.address}/")
    yield chromium
    assert [one for one in chromium.complaints() if "openapi.json" not in one] == []


@pytest.fixture
def inside(page: Browser) -> Browser:
    """The same, signed in."""
    page.one("#key").send_keys(KEY + Keys.ENTER)
    page.sees("Streams", "Refusals")
    return page


def go(page: Browser, to: str) -> None:
    page.run("location.hash = arguments[0]", f"#/{to}")


def focus_is(page: Browser, words: str) -> bool:
    return page.focused() == words


def current_is(page: Browser, name: str) -> bool:
    return page.one("#nav a[aria-current]").text == name


def test_a_key_is_asked_for_and_kept_in_the_tab_alone(page: Browser) -> None:
    assert page.focused() == "key" and "sfk_" in page.text
    page.press("sfk_wrong", Keys.ENTER)
    page.sees("The access key was not accepted.")
    assert [one for one in page.complaints() if "401" not in one] == []
    assert page.focused() == "key"
    page.one("#key").clear()
    page.one("#key").send_keys(KEY + Keys.ENTER)
    page.sees("Overview", "Events a minute")
    assert page.run("return [localStorage.length, document.cookie]") == [0, ""]
    assert KEY not in page.driver.current_url and KEY not in page.driver.page_source
    page.one("#leave").click()
    page.sees("Access key")
    assert page.run("return sessionStorage.getItem('sfumato.key')") is None
    assert not page.one("#nav").is_displayed()


def test_overview_says_how_all_streams_stand(inside: Browser) -> None:
    inside.sees("12 nats in any 12 successive steps", "73 answers in the ledger")
    tiles = {text.split("\n")[0]: text for text in inside.texts(".tile")}
    assert tiles["Streams"].split("\n")[1] == "3" and "none" in tiles["Budget used up"]
    inside.sees("the budget leaves nothing")
    inside.until(lambda: inside.painted(".chart canvas"), "a painted chart")
    inside.click("summary", 1)
    inside.sees("90–100 %")  # the table that says the same
    rows = inside.texts("table tbody tr")
    assert any(row.startswith("ann 60") for row in rows)


def test_every_page_is_reached_by_keys_alone(inside: Browser) -> None:
    inside.run("document.body.focus(); document.activeElement.blur()")
    inside.press(Keys.TAB)
    inside.tab_to("Skip to the content")
    inside.press(Keys.ENTER)
    assert inside.run("return document.activeElement.id") == "main"
    for name, title in (
        ("Stream", "Streams"),
        ("Planning", "Planning"),
        ("Ledger", "Ledger"),
        ("Models", "Models"),
        ("Overview", "Overview"),
    ):
        inside.run("document.querySelector('.skip').focus()")
        inside.tab_to(name)
        inside.press(Keys.ENTER)
        # The link has the words of its page: the page is there when it is the current one.
        inside.until(partial(current_is, inside, name), f"the page {name}")
        inside.until(partial(focus_is, inside, title), f"focus on {title}")
    outline = inside.run(
        "document.querySelector('#nav a').focus({focusVisible: true});"
        "return getComputedStyle(document.activeElement).outlineStyle"
    )
    assert outline == "solid"


def test_a_stream_shows_what_left_what_is_known_and_what_leaked(
    inside: Browser, world: World
) -> None:
    inside.click("a[href='#/stream/ann']")
    inside.sees("Stream ann", "✓ recomputed, and as charged", "Leaked under the model")
    for canvas in ("figure.card .chart canvas", ".strip canvas"):
        inside.until(partial(inside.painted, canvas), f"a painted {canvas}")
    label = inside.told(".strip canvas", "aria-label")
    assert "Belief after each of 60 columns" in label
    inside.click("figure details summary")
    first = inside.texts("figure details[open] tbody tr")[0]
    last = world.answers["ann"][-1]
    assert first.startswith(f"59 {last.time} released {last.released}")
    assert inside.texts(".strip li") == list(PLACES)
    bars = inside.told("figure.half .chart", "aria-label", -1)
    assert "11 steps still count in the window" in bars


def test_a_stream_of_two_releases_shows_what_they_told_together(inside: Browser) -> None:
    inside.click("a[href='#/stream/bob']")
    inside.sees("Stream bob", "Other releases answered this stream, too", "These 2 together leaked")
    rows = inside.texts("table tbody tr")
    assert any(row.startswith("again 2 ") for row in rows)
    inside.run("location.hash = '#/stream/ann'")
    inside.sees("Stream ann", "in this release so far")
    assert "Other releases" not in inside.texts("#main")[0]


def test_a_stream_without_answers_is_said_plainly_and_has_no_mark(inside: Browser) -> None:
    go(inside, "stream/nobody")
    inside.sees("Stream nobody", "No answers: nothing released yet under this name.")
    assert not [one for one in inside.all(".badge") if one.is_displayed()]


def test_a_budget_of_steps_warns_of_the_total_and_long_streams_say_what_is_shown(
    page: Browser,
) -> None:
    model = sticky(PLACES, 0.85)
    release = stream_release(ReleaseSpec(epsilon=2.0), model)
    answer_stream(release, "ann", walked(model, 420, 1))
    readouts = Readouts(FixedReleases([release]))
    with served(application(readouts)) as address:
        page.driver.get(f"{address}/")
        page.one("#key").send_keys(KEY + Keys.ENTER)
        page.sees("A LARGE TOTAL", "Largest total of a stream", "no total limit: every step")
        assert "Over half of the budget left" not in page.text
        go(page, "stream/ann")
        page.sees("Leakage over time: the last 400 of 420 moments")
        go(page, "planning")
        page.sees("This release", "works so itself")
        page.driver.get("about:blank")
    readouts.close()


def test_names_are_text_whatever_stands_in_them(inside: Browser) -> None:
    go(inside, "stream")
    inside.sees("o/dd & <name>")
    names = inside.texts("td a")
    inside.click("td a", next(at for at, name in enumerate(names) if name.startswith("o/dd")))
    inside.sees("Stream o/dd & <name>", "✓ recomputed, and as charged")


def test_series_and_temporal_releases_are_shown_in_their_own_words(inside: Browser) -> None:
    for release, stream, words in (
        ("energy", "meter", "of all values together, at user level"),
        ("counts", "tram", "any one moment leaked"),
    ):
        Select(inside.one("#release")).select_by_value(release)
        inside.sees(f"Release {release} may leak")
        go(inside, f"stream/{stream}")
        inside.sees(f"Stream {stream}", words, "Released values")
        assert not inside.one(".strip").is_displayed()
        go(inside, "overview")
    assert inside.run("return sessionStorage.getItem('sfumato.release')") == "counts"


def test_a_budget_is_tried_by_a_slider(inside: Browser) -> None:
    go(inside, "planning")
    inside.sees("Try a budget", "of values are released wrongly", "No release within this budget")
    before = inside.one("#budget-words").text
    inside.one("#budget").send_keys(*[Keys.ARROW_RIGHT] * 4)
    assert inside.one("#budget-words").text != before
    inside.sees("of values are released wrongly")
    inside.until(lambda: inside.painted(".chart canvas"), "a painted chart")
    label = inside.told(".chart", "aria-label")
    assert "silence loses 0.667" in label


def test_the_ledger_is_searched_and_its_head_shown(inside: Browser, world: World) -> None:
    go(inside, "ledger")
    head = world.readouts.head(ReleaseQuery()).head
    inside.sees(head, "73 rows in all.")
    inside.one("input[name=stream]").send_keys("bob" + Keys.ENTER)
    inside.sees("9 rows of 73 on this page.")
    assert {row.split()[1] for row in inside.texts("tbody tr")} == {"bob"}
    Select(inside.one("select[name=order]")).select_by_value("oldest")
    inside.one("input[name=event]").send_keys("bob-3")
    inside.click("form button.main")
    inside.sees("1 row of 73 on this page.", "bob-3")
    inside.one("input[name=event]").send_keys("000" + Keys.ENTER)
    inside.sees("No row is like that.")
    inside.click("section.card button")
    inside.until(lambda: "opied" in inside.text or "Selected" in inside.text, "words of the copy")


def test_models_say_which_is_the_default_and_hint_at_drift(inside: Browser) -> None:
    go(inside, "models")
    inside.sees("city default", "Bets against the model made", "standard deviations")
    rows = inside.texts("section:nth-of-type(2) tbody tr")
    assert rows[0].startswith("city model 2") and rows[1].startswith("city model 1")


def test_light_and_dark_by_the_system_and_by_choice(inside: Browser) -> None:
    ground = "return getComputedStyle(document.documentElement).backgroundColor"
    light = inside.run(ground)
    inside.prefer("dark")
    dark = inside.until(lambda: (seen := inside.run(ground)) != light and seen, "dark colours")
    inside.one("#theme").click()
    assert inside.run(ground) == light and inside.one("#theme").text == "Dark"
    inside.one("#theme").click()
    inside.prefer("light")
    assert inside.run(ground) == dark
    assert inside.run("return sessionStorage.getItem('sfumato.theme')") == "dark"


def test_everything_has_a_name_and_nothing_sticks_out(inside: Browser, tmp_path: Path) -> None:
    for width in (360, 1400):
        inside.resize(width, 900)
        for name in PAGES:
            go(inside, name)
            inside.until(lambda: inside.one("#refreshed").text.startswith("As of"), "figures")
            inside.until(lambda: "…" not in inside.one("main").text[:400], "a filled page")
            wide = "return document.documentElement.scrollWidth - window.innerWidth"
            assert inside.run(wide) <= 0, (width, name)
            told = inside.accessible()
            unnamed = [role for role, label in told if role in NAMED and not label.strip()]
            assert unnamed == [], (name, unnamed)
            roles = {role for role, _ in told}
            assert {"banner", "navigation", "main", "contentinfo", "heading"} <= roles
            picture = tmp_path / f"{name.replace('/', '-')}-{width}.png"
            assert inside.driver.save_screenshot(str(picture))


def test_a_pause_is_said_and_a_fault_is_shown_until_it_is_over(
    inside: Browser, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside.one("#pause").click()
    assert inside.one("#pause").get_attribute("aria-pressed") == "true"
    inside.sees("Paused.")

    def lost(self: Readouts, query: ReleaseQuery) -> OverviewDocument:
        raise LookupError("there is no release of this name")

    with monkeypatch.context() as patched:
        patched.setattr(Readouts, "overview", lost)
        inside.one("#pause").click()
        inside.until(lambda: inside.all("[role=alert]"), "an alert")
        inside.sees("there is no release of this name")
    inside.one("#pause").click()
    inside.one("#pause").click()
    inside.until(lambda: not inside.all("[role=alert]"), "the end of the alert")
    assert all("404" in one for one in inside.complaints())


def test_a_key_that_ends_asks_for_another(inside: Browser) -> None:
    inside.run("sessionStorage.setItem('sfumato.key', 'sfk_ended'); location.reload()")
    inside.sees("The access key was not accepted, or has ended.")
    assert all("401" in one for one in inside.complaints())
