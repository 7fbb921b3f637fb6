"""Every command stands on a page with what it says, and the page is walked."""

from collections.abc import Iterator
from typing import Any

from sfumato.cli.app import app
from tests.shell.walked_pages import ENGINES, GUIDES, README, TUTORIALS, steps


def leaves(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command of the program, by its words."""
    for inner in group.registered_groups:
        yield from leaves(inner.typer_instance, (*path, inner.name))
    for command in group.registered_commands:
        yield (*path, command.name)


def test_every_command_has_an_example_whose_output_is_compared() -> None:
    commands = set(leaves(app))
    assert len(commands) > 50
    shown = {
        words
        for page in (README, *TUTORIALS, *GUIDES, *ENGINES)
        for step in steps(page)
        for words in step.commands
    }
    seen = shown | {words[:1] for words in shown}
    assert sorted(" ".join(words) for words in commands - seen) == []
    groups = {words[0] for words in commands if len(words) > 1}
    known = commands | {words for words in shown if words[0] not in groups}
    assert {words for words in shown if words[0] in groups} <= known
