"""One name, one meaning: options are the same in all commands, and the page of them is true."""

import importlib.util
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from sfumato.cli.deprecated_options import RENAMED

ROOT = Path(__file__).parents[2]
DIFFERENT = {
    "--batch": "`plan` compares several widths: 1,2,3",
    "--epsilon": "`temporal leakage` takes a file with one budget for each release, too",
    "--every": "auto, too, where a total is spent",
    "--missing": "of `study`: run what is missing",
    "--order": "how many past values count; a column or a rule where rows have an order",
    "--robust": "`release` takes a file of bounds that `learn` wrote, too",
}
"""Options that take different things in different commands, and why."""
SAME = {
    "--values": ("--symbols", "--alphabet"),
    "--event": ("--event-id",),
    "--output": ("--outfile", "--destination"),
    "--separator": ("--delimiter", "--sep"),
    "--keep": ("--passthrough",),
    "--key-file": ("--key", "--secret"),
}
"""Names that are used, and what the same thing must not be called elsewhere."""


def page() -> Any:
    spec = importlib.util.spec_from_file_location("option_page", ROOT / "packaging/option_page.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["option_page"] = module  # its dataclass looks itself up
    spec.loader.exec_module(module)
    return module


PAGE = page()


def test_the_page_is_what_the_commands_say() -> None:
    found = PAGE.PAGE.read_text("utf-8")
    assert found == PAGE.page(), "python packaging/option_page.py writes it anew"


def test_an_option_takes_the_same_everywhere() -> None:
    kinds = {
        name: {option.kind.removesuffix("...") for option in alike}
        for name, alike in PAGE.by_name(PAGE.options()).items()
    }
    assert [name for name, found in kinds.items() if len(found) > 1] == sorted(DIFFERENT)


def test_one_letter_is_short_for_one_option() -> None:
    letters = defaultdict(set)
    for option in PAGE.options():
        for other in option.others:
            letters[other].add(option.name)
    # One column, or several: the letter is the same.
    assert letters.pop("-c") == {"--column", "--columns"}
    assert {letter: names for letter, names in letters.items() if len(names) > 1} == {}
    assert {"-o", "-m", "-q"} <= set(letters)


def test_one_thing_has_one_name() -> None:
    names = {name for option in PAGE.options() for name in (option.name, *option.others)}
    assert [bad for good, others in SAME.items() for bad in others if bad in names] == []
    assert set(SAME) <= names


def test_every_option_says_what_it_means() -> None:
    ends = (".", ")", "]")
    found = PAGE.options()
    assert len(found) > 500
    assert [one for one in found if not one.meaning.endswith(ends)] == []


def test_every_old_name_is_told_of_in_the_policy() -> None:
    told = (ROOT / "docs" / "versioning.md").read_text("utf-8")
    for words, names in RENAMED.items():
        shown = {option.name for option in PAGE.options() if option.command == " ".join(words)}
        for old, new in names.items():
            assert new in shown and old not in shown
            assert f"`{' '.join(words)} {old}`" in told
