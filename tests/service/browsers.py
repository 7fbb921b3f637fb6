"""A real browser without a screen, and what a person would do in it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
PATIENCE = 60.0
"""Seconds after which something that must come has not; a busy machine is slow."""
# What must have a name for whoever cannot see it.
NAMED = ("button", "link", "textbox", "combobox", "slider", "image", "searchbox", "spinbutton")


class Browser:
    """One tab."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def until(self, met: Callable[[], Any], what: str) -> Any:
        """Wait for something to be so."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(Exception):  # elements come and go while a page is filled
                if found := met():
                    return found
            time.sleep(0.02)
        raise AssertionError(f"{what} was not seen; the page says: {self.text[:2000]}")

    @property
    def text(self) -> str:
        """What stands on the page."""
        return str(self.driver.find_element(By.TAG_NAME, "body").text)

    def sees(self, *words: str) -> None:
        """Wait until all of these words stand on the page."""
        for one in words:
            self.until(partial(self._says, one), repr(one))

    def _says(self, words: str) -> bool:
        return words in self.text

    def one(self, selector: str) -> WebElement:
        """The first element of a kind, once it is there."""
        found = self.until(
            lambda: self.driver.find_elements(By.CSS_SELECTOR, selector), f"element {selector}"
        )
        element: WebElement = found[0]
        return element

    def all(self, selector: str) -> list[WebElement]:
        """All elements of a kind."""
        return list(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def texts(self, selector: str) -> list[str]:
        """The words of all elements of a kind, in one go: a page that is filled anew loses them."""
        return list(self.until(lambda: [one.text for one in self.all(selector)], selector))

    def click(self, selector: str, place: int = 0) -> None:
        """Click an element of a kind, whichever stands there when the page holds still."""

        def clicked() -> bool:
            self.all(selector)[place].click()
            return True

        self.until(clicked, selector)

    def told(self, selector: str, attribute: str, place: int = 0) -> str:
        """An attribute of an element of a kind."""
        found = self.until(
            lambda: self.all(selector)[place].get_attribute(attribute), f"{attribute} of {selector}"
        )
        return str(found)

    def run(self, script: str, *given: object) -> Any:
        """What a script says."""
        return self.driver.execute_script(script, *given)

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def focused(self) -> str:
        """The words of what has the focus."""
        active = "document.activeElement"
        return str(self.run(f"return {active}.textContent.trim() || {active}.id")).strip()

    def tab_to(self, words: str) -> None:
        """Go to something by the tabulator alone."""
        for _ in range(40):
            if self.focused() == words:
                return
            self.press(Keys.TAB)
        raise AssertionError(f"{words!r} cannot be reached by the keyboard")

    def painted(self, selector: str) -> bool:
        """Whether some canvas has pixels of different colours."""
        return bool(
            self.run(
                """const found = document.querySelector(arguments[0]);
                if (!found || !found.width || !found.height) return false;
                const pixels = found.getContext('2d').getImageData(0, 0, found.width, found.height);
                const seen = new Set(new Uint32Array(pixels.data.buffer));
                return seen.size > 5;""",
                selector,
            )
        )

    def resize(self, width: int, height: int) -> None:
        """Another screen."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, scheme: str) -> None:
        """What the system of the person prefers: light or dark."""
        told = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", told)

    def accessible(self) -> list[tuple[str, str]]:
        """Role and name of everything that is told to a screen reader."""
        self.driver.execute_cdp_cmd("Accessibility.enable", {})
        nodes = self.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        return [
            (node.get("role", {}).get("value", ""), node.get("name", {}).get("value", ""))
            for node in nodes
            if not node.get("ignored")
        ]

    def _log(self) -> list[dict[str, Any]]:
        return list(self.driver.get_log("browser"))  # type: ignore[no-untyped-call]

    def complaints(self) -> list[str]:
        """What the console has got to say since this was asked last."""
        return [str(entry["message"]) for entry in self._log()]


@contextlib.contextmanager
def browser(paths: tuple[Path, Path], profile: Path) -> Iterator[Browser]:
    """A browser with a fresh profile."""
    options = webdriver.ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={profile}", "--window-size=1400,1000"):
        options.add_argument(flag)
    options.binary_location = str(paths[0])
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(paths[1])))
    driver.set_page_load_timeout(PATIENCE)  # by itself it waits for five minutes, page by page
    try:
        yield Browser(driver)
    finally:
        driver.quit()
