"""Batches by columns say what their rows say."""

from dataclasses import replace

import pytest

from sfumato.core.errors import InvalidParameter
from sfumato.store.chain import value_tag, value_tags
from sfumato.store.protocol import Position, Released
from tests.contracts.store_laws import by_columns, moments


def test_columns_are_their_answers_and_positions() -> None:
    history = [*moments("u1", 7), *moments("u2", 3)]
    odd: list[Released] = ["1", 1, 1.0, None, "", -7, 0.5, "é", 2**60, None]
    answers = [
        replace(answer, released=value, time=str(place), signal=None if place % 2 else place)
        for place, ((answer, _), value) in enumerate(zip(history, odd, strict=True))
    ]
    after = [history[6][1], history[9][1]]
    columns, positions = by_columns(answers, after)
    assert len(columns) == 10
    assert [*map(repr, columns.answers())] == [*map(repr, answers)]
    assert [Position(*row) for row in positions.rows()] == after


def test_columns_of_different_lengths_are_refused() -> None:
    columns, _ = by_columns([answer for answer, _ in moments("u1", 3)], [])
    with pytest.raises(InvalidParameter, match="one length"):
        replace(columns, tags=columns.tags[:2])


def test_digests_of_a_batch_are_those_of_its_values() -> None:
    values: list[Released] = ["a", 1, 1.0, None, "", "é" * 300]
    ids, streams = [f"e{place}" for place in range(6)], ["u", "v", "w" * 70, "", "u", "u"]
    for secret in (bytes(32), b"key" * 40):
        events = zip(ids, streams, values, strict=True)
        expected = [value_tag(secret, *event) for event in events]
        assert value_tags(secret, ids, streams, values) == expected
        assert len(set(expected)) == 6
