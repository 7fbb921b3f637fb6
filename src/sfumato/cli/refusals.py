"""What was wrong with a call, by the names that were typed, and what to type instead."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from sfumato.cli.options import signature_of
from sfumato.core.errors import InvalidParameter, SfumatoError

if TYPE_CHECKING:
    from sfumato.tables.problems import NoColumn

typed_words: ContextVar[Sequence[str]] = ContextVar("typed_words", default=())
"""The command line without `sfumato`."""

_OF_CELLS = frozenset({"value", "values", "stream", "event", "time", "name"})
"""Parameters that mean what stands in a row, where an option of that name means a column."""
_COLUMNS = ("stream", "value", "column", "time", "event")
"""Options that name one column each."""
_LONGEST = 60
"""Letters of a column's name that is suggested."""


def refusal(problem: SfumatoError, kind: type, typed: Mapping[str, Any]) -> tuple[str, str]:
    """One line for a person, and a command that ends it; no command as a rule.

    Args:
        problem: What was refused.
        kind: The class of the command's options.
        typed: What they were, by their fields.
    """
    from sfumato.tables.problems import NoColumn

    names = _option_names(kind)
    match problem:
        case InvalidParameter():
            return _by_option(problem, names), ""
        case NoColumn():
            option, line = _to_type(problem, names, typed)
            asked = f". Name the right one with {option}, for example:" if option else ""
            return f"{problem}{asked}", line
        case _:
            return str(problem), ""


def _by_option(problem: InvalidParameter, names: Mapping[str, tuple[str, ...]]) -> str:
    """The rule of an option by its name; what was not given is not said to be None."""
    found = re.match(r"\w+", problem.name)
    name = problem.name
    if found and found[0] in names and found[0] not in _OF_CELLS:
        name = names[found[0]][0] + name[found.end() :]
    if problem.value is None:
        return f"{name} must {problem.rule}"
    return str(InvalidParameter(name, problem.value, problem.rule))


def _option_names(kind: type) -> dict[str, tuple[str, ...]]:
    """Field of an option -> its names, the long one first; arguments have none."""
    found = {}
    for field, parameter in signature_of(kind).parameters.items():
        told = getattr(parameter.default, "param_decls", None)
        if told is not None and type(parameter.default).__name__ == "OptionInfo":
            usual = (f"--{field.replace('_', '-')}",)
            found[field] = tuple(sorted(told, key=lambda name: not name.startswith("--"))) or usual
    return found


def _to_type(
    problem: NoColumn, names: Mapping[str, tuple[str, ...]], typed: Mapping[str, Any]
) -> tuple[str, str]:
    """Which option names the column, and the call with columns that are there."""
    there = [name for name in problem.there if len(name) <= _LONGEST and name.isprintable()]
    fields = [field for field in _COLUMNS if field in names]
    asked = [field for field in fields if typed.get(field) == problem.name]
    if not asked:
        return "", ""
    words, free = list(typed_words.get()), [name for name in there if name not in typed.values()]
    for field in fields:
        if free and typed.get(field) is not None and typed[field] not in problem.there:
            # A slip of the fingers; else who comes first in a table, and what is measured last.
            near = get_close_matches(str(typed[field]), free, n=1)
            place = 0 if field in ("stream", "time", "event") else -1
            chosen = free.pop(free.index(near[0]) if near else place)
            words = _with_option(words, names[field], chosen)
    return names[asked[0]][0], shlex.join(["sfumato", *words])


def _with_option(words: list[str], names: Sequence[str], value: str) -> list[str]:
    """A command line with an option: in its place if it is there, else at the end.

    Examples:
        >>> _with_option(["fit", "a.csv", "--stream", "who"], ["--stream"], "person")
        ['fit', 'a.csv', '--stream', 'person']
    """
    for place, word in enumerate(words):
        if word in names:
            return [*words[: place + 1], value, *words[place + 2 :]]
        if word.startswith(tuple(f"{name}=" for name in names)):
            return [*words[:place], f"{names[0]}={value}", *words[place + 1 :]]
    return [*words, names[0], value]
