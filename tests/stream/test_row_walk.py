"""The walk of a row is the one that is drawn, and it is short."""

import re
from pathlib import Path

from tests.stream.row_walk import walk_of_a_row

PAGE = Path(__file__).parents[2] / "docs" / "design" / "rows.md"


def test_a_row_passes_the_modules_that_are_drawn_and_no_others() -> None:
    picture = PAGE.read_text(encoding="utf-8").split("```text")[1].split("```")[0]
    drawn = {f"sfumato.{name}".replace("/", ".") for name in re.findall(r"\w+/\w+", picture)}
    modules, _ = walk_of_a_row()
    assert set(modules) == drawn
    assert len(modules) <= 22
