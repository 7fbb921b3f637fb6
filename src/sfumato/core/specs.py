"""The spec of a job, from Python: the spec itself, or its fields by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from sfumato.core.errors import InvalidParameter

Spec = TypeVar("Spec")


def spec_of(kind: type[Spec], first: object, options: Mapping[str, Any]) -> Spec:
    """A spec that was given, or one from its first field and options by name.

    Args:
        kind: A frozen dataclass.
        first: The spec, or its first field.
        options: Its other fields; none beside a spec.

    Raises:
        InvalidParameter: An option is no field, or one that has no default is missing.
    """
    if isinstance(first, kind):
        if options:
            rule = "stand in the spec, not beside it"
            raise InvalidParameter("options", ", ".join(options), rule)
        return first
    build: Callable[..., Spec] = kind
    return build(**spec_fields(kind, first, options))


def spec_fields(kind: type[Any], first: object, options: Mapping[str, Any]) -> dict[str, Any]:
    """Every field of a spec by name, as given or by default; `spec_of` says what is refused."""
    parts = [part for part in fields(kind) if part.init]
    names = [part.name for part in parts]
    for name in options:
        if name not in names[1:]:
            raise InvalidParameter("option", name, f"be one of {', '.join(names[1:])}")
    given = {part.name: part.default for part in parts} | {names[0]: first} | dict(options)
    for name, value in given.items():
        if value is MISSING:
            raise InvalidParameter(name, None, "be given")
    return given
