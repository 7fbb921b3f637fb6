"""Options that a family of commands shares, listed once."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, TypeVar

Command = TypeVar("Command", bound=Callable[..., None])


def taking(shared: Callable[..., Any]) -> Callable[[Command], Command]:
    """Let a command take the parameters of a function, which come as its `**asked`.

    In its help they stand between the positional parameters of the command and the others, and
    what is required before what is not.
    """

    def listed(command: Command) -> Command:
        own = list(signature(command, eval_str=True).parameters.values())
        first = [one for one in own if one.kind is Parameter.POSITIONAL_OR_KEYWORD]
        last = [one for one in own if one.kind is Parameter.KEYWORD_ONLY]
        every = [*first, *signature(shared, eval_str=True).parameters.values(), *last]
        every.sort(key=lambda one: one.default is not Parameter.empty)
        whole = signature(command).replace(
            parameters=[one.replace(kind=Parameter.KEYWORD_ONLY) for one in every]
        )
        command.__signature__ = whole  # type: ignore[attr-defined]
        return command

    return listed
