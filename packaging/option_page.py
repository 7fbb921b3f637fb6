"""The page of all options, from the commands themselves: `python packaging/option_page.py`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

from typer.models import OptionInfo

PAGE = Path(__file__).parents[1] / "docs" / "options.md"
TOP = """# All options

Made from the commands (`python packaging/option_page.py`); a test fails if it is out of date, and
if an option takes another thing in another command, but for six whose reasons stand in the test
(`tests/shell/test_options.py`). Where the words differ by command, each is listed. What was
renamed, and until when the old name is accepted: [versions](versioning.md#deprecation). Examples:
`sfumato COMMAND --help`.
"""


@dataclass(frozen=True)
class Option:
    """An option of a command.

    Attributes:
        name: The long one.
        others: Its other names.
        kind: What it takes: text, a number, nothing.
        meaning: What its help says.
        command: Of which command.
    """

    name: str
    others: tuple[str, ...]
    kind: str
    meaning: str
    command: str


def options() -> list[Option]:
    """Every option of every command that is shown."""
    from sfumato.cli.app import app

    return sorted(_options(app, ()), key=lambda option: option.command)


def _options(group: Any, path: tuple[str, ...]) -> Iterator[Option]:
    for inner in group.registered_groups:
        yield from _options(inner.typer_instance, (*path, inner.name))
    for command in group.registered_commands:
        words = " ".join((*path, command.name))
        for given in inspect.signature(command.callback).parameters.values():
            if isinstance(given.default, OptionInfo) and not given.default.hidden:
                yield _option(given, words)


def _option(given: inspect.Parameter, command: str) -> Option:
    names = given.default.param_decls or (f"--{given.name.replace('_', '-')}",)
    first, *others = sorted(names, key=lambda name: not name.startswith("--"))
    words = " ".join((given.default.help or "").split())
    return Option(first, tuple(others), _kind(given.annotation), words, command)


def _kind(hint: Any) -> str:
    """What an option takes, in a word: nothing for a flag."""
    parts = [part for part in get_args(hint) or (hint,) if part is not type(None)]
    if (hint if get_origin(hint) is list else parts[0]) == list[str]:
        return "text..."
    return {bool: "", str: "text", int: "number", float: "number"}[parts[0]]


def by_name(found: list[Option]) -> Mapping[str, list[Option]]:
    """Options of one name together, names in order."""
    names = sorted({option.name for option in found})
    return {name: [option for option in found if option.name == name] for name in names}


def page() -> str:
    """The page."""
    lines = [TOP, "| option | takes | meaning | commands |", "|---|---|---|---|"]
    for name, alike in by_name(options()).items():
        shown = ", ".join(f"`{other}`" for other in (name, *alike[0].others))
        for meaning in dict.fromkeys(option.meaning for option in alike):
            these = [option for option in alike if option.meaning == meaning]
            commands = ", ".join(f"`{option.command}`" for option in these)
            cells = (shown, these[0].kind, _cell(meaning), commands)
            lines.append(f"| {' | '.join(cells)} |")
            shown = ""
    return "\n".join(lines) + "\n"


def _cell(words: str) -> str:
    """Words that markdown leaves alone; what stands in braces or stars would not be."""
    for sign in "|*_<>{":
        words = words.replace(sign, f"\\{sign}")
    return words


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
