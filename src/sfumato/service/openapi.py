"""The OpenAPI document, made from the same table and types that answer requests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import metadata
from typing import Any

import msgspec

from sfumato.service.operations import Call, NoQuery, Operation, Result
from sfumato.service.problems import Problem, problem

_REFERENCE = "#/components/schemas/{name}"
_COMMON = ("malformed", "query", "accept", "defect")
_WITH_KEY = ("unauthorized", "forbidden", "rate")
_WITH_BODY = ("timeout", "too-large", "media-type", "busy")


def document_operation(operations: Sequence[Operation]) -> Operation:
    """The operation that shows the document of all others, and of itself."""
    made: list[bytes] = []

    async def shown(call: Call) -> Result:
        if not made:
            made.append(msgspec.json.encode(openapi([*operations, own])))
        return Result(made[0])

    own = Operation(
        name="get_openapi",
        method="GET",
        path="/openapi.json",
        summary="This document",
        handler=shown,
        replies={200: dict[str, Any]},
    )
    return own


def openapi(operations: Sequence[Operation]) -> dict[str, Any]:
    """The document of some operations, in OpenAPI 3.1.

    Examples:
        >>> openapi([])["openapi"]
        '3.1.0'
    """
    kinds = list(_kinds(operations))
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REFERENCE)
    known = _Known(dict(zip(map(id, kinds), schemas, strict=True)))
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Sfumato",
            "version": metadata.version("sfumato"),
            "description": "Live, correlated data, released with a guarantee that can be checked. "
            "An answer leaves after it is durable; the same event id always gets the same answer.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


class _Known:
    """The schemas of types, by the types themselves."""

    def __init__(self, schemas: dict[int, Any]) -> None:
        self._schemas = schemas

    def __getitem__(self, kind: Any) -> Any:
        found = [self._schemas[id(each)] for each in _each(kind)]
        return found[0] if len(found) == 1 else {"anyOf": found}


def _kinds(operations: Iterable[Operation]) -> Iterable[Any]:
    yield Problem
    for one in operations:
        for kind in (one.body, *one.replies.values()):
            yield from _each(kind)


def _each(kind: Any) -> tuple[Any, ...]:
    if kind is None:
        return ()
    return kind if isinstance(kind, tuple) else (kind,)


def _operation(one: Operation, known: _Known) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.summary,
        "parameters": [*_names_in(one.path), *_query(one.query)],
        "responses": _responses(one, known),
        "security": [] if one.action is None else [{"key": []}],
    }
    if one.action is not None:
        actions = " or ".join(f"`{each}`" for each in (one.action, one.instead) if each)
        made["description"] = f"Needs an access key with the action {actions}."
    if one.body is not None:
        content = {"application/json": {"schema": known[one.body]}}
        made["requestBody"] = {"required": True, "content": content}
    return made


def _names_in(path: str) -> list[dict[str, Any]]:
    schema = {"type": "string", "minLength": 1, "maxLength": 256}
    schema["pattern"] = "^[^\\u0000-\\u001f\\u007f]+$"
    names = re.findall(r"{(\w+)}", path)
    return [{"name": each, "in": "path", "required": True, "schema": schema} for each in names]


def _query(kind: type[msgspec.Struct]) -> list[dict[str, Any]]:
    if kind is NoQuery:
        return []
    (reference,), components = msgspec.json.schema_components([kind], ref_template="{name}")
    whole = components[reference["$ref"]]
    required = whole.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": _bare(schema)}
        for name, schema in whole["properties"].items()
    ]


def _bare(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of a query parameter: one that may be left out is never null."""
    kinds = [kind for kind in schema.get("anyOf", []) if kind != {"type": "null"}]
    return (
        dict(kinds[0]) if len(kinds) == 1 else {k: v for k, v in schema.items() if k != "default"}
    )


def _responses(one: Operation, known: _Known) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for status, kind in one.replies.items():
        made[str(status)] = {"description": "Done" if status < 300 else "Not now"}
        if kind is not None:
            made[str(status)]["content"] = {one.media: {"schema": known[kind]}}
    slugs = [*_COMMON, *one.problems]
    slugs += _WITH_KEY if one.action is not None else ()
    slugs += _WITH_BODY if one.body is not None else ()
    slugs += ("not-found",) if one.action is not None else ()
    for slug in dict.fromkeys(slugs):
        code = str(problem(slug, "").status)
        there = made.setdefault(code, {"description": ""})
        there["description"] = f"{there['description']} {slug}".strip()
        content = there.setdefault("content", {})
        content["application/problem+json"] = {"schema": known[Problem]}
    return dict(sorted(made.items()))
