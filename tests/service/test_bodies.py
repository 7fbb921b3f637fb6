"""Bodies as they are read: a key that comes twice is refused, whatever else is in the body."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.service.bodies import decode
from sfumato.service.problems import HttpProblem

_anything: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_texts = st.text(st.sampled_from('a":,{}\\\n\u00e9'), max_size=6)
_trees = st.recursive(
    st.none() | st.integers(-9, 9) | _texts,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda some: ("list", some))
        | st.lists(st.tuples(_texts, inner), max_size=4).map(lambda some: ("object", some))
    ),
    max_leaves=12,
)


def written(tree: Any, spaces: str, *, ascii_only: bool) -> str:
    """JSON of a tree, in which keys may come twice."""
    match tree:
        case ("list", some):
            inside = [written(one, spaces, ascii_only=ascii_only) for one in some]
            return f"[{','.join(inside)}]"
        case ("object", some):
            pairs = [
                f"{json.dumps(key, ensure_ascii=ascii_only)}{spaces}:"
                f"{written(one, spaces, ascii_only=ascii_only)}"
                for key, one in some
            ]
            return f"{{{','.join(pairs)}}}"
        case _:
            return json.dumps(tree, ensure_ascii=ascii_only)


def twice(tree: Any) -> bool:
    """Whether an object of a tree has a key twice."""
    match tree:
        case ("list", some):
            return any(map(twice, some))
        case ("object", some):
            keys = [key for key, _ in some]
            return len(set(keys)) < len(keys) or any(twice(one) for _, one in some)
        case _:
            return False


@given(_trees, st.sampled_from(["", " "]), st.booleans())
def test_a_key_that_comes_twice_is_found_wherever_it_stands(
    tree: Any, spaces: str, ascii_only: bool
) -> None:
    body = written(tree, spaces, ascii_only=ascii_only).encode()
    if twice(tree):
        with pytest.raises(HttpProblem) as refused:
            decode(_anything, body)
        assert refused.value.problem.rule == "say each key once"
    else:
        assert decode(_anything, body) == json.loads(body)
