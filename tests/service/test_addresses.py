"""Addresses lead to one place each, the same as the patterns of Starlette would find."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.routing import compile_path
from starlette.types import Receive, Scope, Send

from sfumato.core.errors import InvalidParameter
from sfumato.service.addresses import Addresses

TEMPLATES = (
    "/healthz",
    "/v1/events",
    "/v1/streams",
    "/v1/streams/{stream}/events",
    "/v1/streams/{stream}/events/{event}",
    "/v1/keys/{key}",
    "/v1/keys/{key}/rotate",
)
_words = st.sampled_from(["", "v1", "streams", "events", "keys", "rotate", "ann", "%2F", "{key}"])


async def _app(scope: Scope, receive: Receive, send: Send) -> None:
    """Nothing is asked here."""


@given(st.lists(_words, max_size=7).map("/".join))
def test_an_address_leads_where_a_pattern_would(path: str) -> None:
    found = Addresses(dict.fromkeys(TEMPLATES, _app)).find(path)
    patterns = [(one, re.fullmatch(compile_path(one)[0], path)) for one in TEMPLATES]
    due = [(one, match.groupdict()) for one, match in patterns if match is not None]
    assert ([] if found is None else [(found.route.path, found.names)]) == due


@pytest.mark.parametrize(
    "templates", [("/a/{b}", "/a/c"), ("/a/c", "/a/{b}"), ("/a/{b}/c", "/a/{d}/e")]
)
def test_what_could_be_two_things_is_refused(templates: tuple[str, ...]) -> None:
    with pytest.raises(InvalidParameter, match="lead to one place"):
        Addresses(dict.fromkeys(templates, _app))
