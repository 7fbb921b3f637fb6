"""Options under their old names: accepted for two minor versions, hidden, and told of.

The policy is `docs/versioning.md`. A row here is all that a renamed option needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sfumato.cli.console import say

RENAMED: Mapping[tuple[str, ...], Mapping[str, str]] = {
    ("audit",): {"--out": "--output"},
    ("push",): {"--key-file": "--access-key-file"},
    ("spark", "release"): {"--id": "--event"},
    ("spark", "stream"): {"--id": "--event"},
    ("temporal", "release"): {"--symbols": "--values"},
}
"""Words of a command -> old name of an option -> its name."""


def renamed(arguments: Sequence[str]) -> list[str]:
    """A command line with options by their names; each old one is told of, unless --quiet.

    Examples:
        >>> renamed(["push", "live.csv", "--access-key-file=ann.key"])
        ['push', 'live.csv', '--access-key-file=ann.key']
    """
    names = next(
        (old for words, old in RENAMED.items() if tuple(arguments[: len(words)]) == words), {}
    )
    quiet = bool({"--quiet", "-q", "--json"} & set(arguments))
    made: list[str] = []
    for place, argument in enumerate(arguments):
        if argument == "--":
            return [*made, *arguments[place:]]
        name, equals, value = argument.partition("=")
        if name in names and not quiet:
            say(f"note: {name} is now {names[name]}; the old name goes in two minor versions")
        made.append(f"{names.get(name, name)}{equals}{value}")
    return made
