"""The page of concepts shows what the formulas give."""

import re
from pathlib import Path

import sfumato as sf
from sfumato.core.printed import shown_down, shown_up
from sfumato.explanations.belief_words import belief_range

PAGE = Path(__file__).parents[2] / "docs" / "concepts.md"


def test_beliefs_on_the_page_are_those_of_the_formulas() -> None:
    rows = re.findall(r"^\| ([0-9.]+) \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert len(rows) == 5
    for epsilon, cells in rows:
        expected = [
            f"{shown_down(100 * low, 3)} to {shown_up(100 * high, 3)}"
            for kind in (sf.SIP, sf.LDP)
            for low, high in (belief_range(kind(float(epsilon)), b) for b in (0.01, 0.1, 0.5))
        ]
        assert [cell.strip() for cell in cells.split("|")] == expected
