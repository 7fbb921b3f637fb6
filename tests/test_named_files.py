"""Files that a page names are there: a page that outlives a file misleads whoever looks for it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("src", "tests", "benchmarks", "examples", "packaging", "deploy")
# The changelog tells of what has gone, too.
FRONT = (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))
PAGES = sorted((*FRONT, *(ROOT / "docs").rglob("*.md")))
NAMED = re.compile(r"`([\w/]+\.py)`")


def stray(text: str) -> set[str]:
    """Names in a text that no file ends with."""
    there = [f"/{path.relative_to(ROOT)}" for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    found = NAMED.findall(text)
    return {name for name in found if not any(path.endswith(f"/{name}") for path in there)}


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    assert stray(page.read_text()) == set()


def test_a_file_that_is_gone_is_noticed() -> None:
    assert stray("`stream/plan.py`, `plan.py`, `an.py`, `gone.py`") == {"an.py", "gone.py"}
