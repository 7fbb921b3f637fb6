"""What went wrong, as documents of RFC 9457; they name the field and the rule, never a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, assert_never

import msgspec

from sfumato.core.errors import BudgetExceeded, InvalidParameter, SfumatoError
from sfumato.store.live import Reason, Refused
from sfumato.store.protocol import LedgerMismatch

PROBLEM_MEDIA = b"application/problem+json"
_KIND = "urn:sfumato:problem:"


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem as it leaves.

    Attributes:
        type: Names the kind of problem, for programs.
        title: The kind, for people.
        status: The HTTP status.
        detail: What must hold, and what became of the request.
        field: The part of the request that broke a rule.
        rule: The rule that it broke.
        event: The id of the event that it is about.
    """

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    rule: str | None = None
    event: str | None = None


class HttpProblem(Exception):
    """Ends a request with a problem.

    Attributes:
        problem: The document.
        headers: Headers that go with it.
    """

    def __init__(self, problem: Problem, headers: Mapping[str, str] | None = None) -> None:
        self.problem = problem
        self.headers = dict(headers or {})
        super().__init__(problem.title)


_TITLES = {
    "malformed": (400, "The request is not well formed"),
    "query": (400, "A query parameter is unknown or out of its range"),
    "unauthorized": (401, "An access key is needed"),
    "forbidden": (403, "The access key does not allow this"),
    "budget": (403, "The budget of the stream leaves nothing"),
    "not-found": (404, "There is no such thing here"),
    "method": (405, "This method is not allowed here"),
    "accept": (406, "The reply is JSON"),
    "timeout": (408, "The request did not come in time"),
    "conflict": (409, "It contradicts what was done before"),
    "order": (409, "The event does not follow the last one of its stream"),
    "closed": (410, "The release is closed"),
    "too-large": (413, "The request is too large"),
    "media-type": (415, "The body must be application/json"),
    "value": (422, "The event is not one that this release can answer"),
    "rules": (422, "The rules do not fit together"),
    "busy": (429, "Too much is waiting"),
    "rate": (429, "The access key asks too often"),
    "headers": (431, "The headers are too large"),
    "defect": (500, "A defect of the program"),
    "unstored": (503, "The answer could not be stored"),
    "preparing": (503, "The release is not ready"),
    "unavailable": (503, "The service takes nothing now"),
}
SLUGS = tuple(_TITLES)


def problem(slug: str, detail: str, **parts: str | None) -> Problem:
    """A problem of a known kind.

    Examples:
        >>> problem("query", "limit must be at most 1000", field="limit").status
        400
    """
    status, title = _TITLES[slug]
    return Problem(type=_KIND + slug, title=title, status=status, detail=detail, **parts)


def refusal(refused: Refused, event: str | None = None) -> Problem:
    """Why an event got no answer."""
    match refused.reason:
        case Reason.VALUE:
            return problem("value", refused.detail, field=_part(refused.detail), event=event)
        case Reason.BUDGET:
            return problem("budget", refused.detail, event=event)
        case Reason.ORDER:
            return problem("order", refused.detail, field="time", event=event)
        case Reason.CLOSED:
            return problem("closed", refused.detail, event=event)
        case Reason.UNSTORED:
            return problem("unstored", refused.detail, event=event)
        case _:
            assert_never(refused.reason)


def _part(detail: str) -> str:
    """The part of an event that a refusal is about: the second word of it, or the value.

    Examples:
        >>> _part("the time must have a day"), _part("with several nodes a batch must come whole")
        ('time', 'value')
    """
    named = detail.removeprefix("the ").partition(" ")[0]
    return named if named in ("time", "id", "stream") else "value"


def busy(seconds: int, detail: str) -> HttpProblem:
    """Too much waits: come again after so many seconds."""
    return HttpProblem(problem("busy", detail), {"retry-after": str(seconds)})


def of_query(error: SfumatoError) -> Problem:
    """An error of the library that a query led to: what was asked is out of its range.

    Examples:
        >>> of_query(InvalidParameter("limit", -1, "be at least 1")).status
        400
    """
    if isinstance(error, InvalidParameter):
        text = f"{error.name} must {error.rule}"
        return problem("query", text, field=error.name, rule=error.rule)
    return of_error(error)


def of_error(error: SfumatoError) -> Problem:
    """An error of the library that an administrator's document led to.

    Documents hold rules and models, no person's value; what was given is left out all the same.

    Examples:
        >>> of_error(InvalidParameter("epsilon", -1.0, "be greater than 0")).detail
        'epsilon must be greater than 0'
    """
    match error:
        case InvalidParameter():
            text = f"{error.name} must {error.rule}"
            return problem("rules", text, field=error.name, rule=error.rule)
        case LedgerMismatch():
            return problem("conflict", "the ledger of this release was begun with other rules")
        case BudgetExceeded():
            return problem("budget", "the budget leaves nothing for this")
        case _:
            return problem("rules", f"the document was refused ({type(error).__name__})")


# Types and lengths that a message of msgspec expects are those of our own schema; names of unknown
# fields and values of enumerations are the asker's, and are left out.
_EXPECTED = re.compile(r"^(Expected [^\n]*?)(?: - at `([^`]*)`)?$")
_MISSING = re.compile(r"^Object missing required field `(\w+)`(?: - at `([^`]*)`)?$")
_UNKNOWN = re.compile(r"^Object contains unknown field `.*`(?: - at `([^`]*)`)?$", re.DOTALL)
_PLACE = re.compile(r" - at `(\$[^`]*)`$")


def of_body(error: Exception) -> Problem:
    """Why a body could not be read, from what the decoder said of it.

    Examples:
        >>> of_body(msgspec.ValidationError("Expected `str`, got `int` - at `$.id`")).detail
        '$.id: expected `str`, got `int`'
        >>> of_body(msgspec.ValidationError("Object contains unknown field `ill` - at `$`")).detail
        '$: an object has a field that is not known here'
    """
    text = str(error)
    if not isinstance(error, msgspec.ValidationError):
        return problem("malformed", "the body must be JSON, in UTF-8", rule="be JSON")
    if found := _EXPECTED.match(text):
        rule = found[1][0].lower() + found[1][1:]
        return _at(found[2], rule)
    if found := _MISSING.match(text):
        return _at(found[2], f"an object lacks the field `{found[1]}`")
    if found := _UNKNOWN.match(text):
        return _at(found[1], "an object has a field that is not known here")
    place = _PLACE.search(text)
    return _at(None if place is None else place[1], "not what the documentation allows here")


def _at(place: str | None, rule: str) -> Problem:
    where = place or "$"
    return problem("malformed", f"{where}: {rule}", field=where, rule=rule)


def defect() -> Problem:
    """Something that no one foresaw; what it says may quote data, so it is not said."""
    return problem("defect", "a defect of the program; the log of the service says where it is")


def of_status(status: int) -> Problem:
    """A problem for a status that the framework found."""
    for slug, (known, _) in _TITLES.items():
        if known == status and slug not in ("budget", "order"):
            return problem(slug, f"{HTTPStatus(status).phrase.lower()}")
    return defect()


def as_dict(one: Problem) -> dict[str, Any]:
    """A problem as part of another document."""
    return {name: value for name, value in msgspec.structs.asdict(one).items() if value is not None}
