"""A shard answers each event once, in one order, whatever comes twice, late or again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import CorruptData
from sfumato.core.events import OUTCOMES
from sfumato.engines.spark.shard_release import REFUSALS, REFUSED, Shard, ShardAnswers
from sfumato.engines.spark.shard_state import OtherRelease, ShardState
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.tables.cells import Late
from tests.engines.shards import (
    KEY,
    LETTERS,
    Answer,
    Asked,
    Oracle,
    asked_rows,
    letter_policy,
    letters,
)

DIGEST = "ab" * 32


def plan(*, compiled: bool, **rules: object) -> sf.Plan:
    named = letter_policy().fingerprint if compiled else None
    given = rules or {"epsilon": 0.5}
    spec = ReleaseSpec(**given, policy=named)  # type: ignore[arg-type]
    return spec.instant(letters(), letter_policy() if compiled else None)


def told(left: ShardAnswers) -> list[tuple[tuple[str, str], object]]:
    """What left for each event, as the oracle tells it."""
    answers = left.answers
    found: list[tuple[tuple[str, str], object]] = []
    ids = answers.ids.to_pylist()
    for row, id_ in enumerate(ids):
        name = (left.streams[answers.places[row]], id_)
        if answers.outcomes[row] == REFUSED:
            found.append((name, REFUSALS[left.refusals[row]].value))
            continue
        place = int(answers.released[row])
        released = LETTERS.labels[place] if place >= 0 else None
        outcome = OUTCOMES[answers.outcomes[row]].value
        sums = answers.charges[row].tolist()
        found.append((name, Answer(int(answers.sequences[row]), outcome, released, *sums)))
    return found


EVENTS = st.builds(
    Asked,
    stream=st.sampled_from(["ann", "bob", "eve"]),
    id=st.sampled_from([f"e{number}" for number in range(12)]),
    time=st.integers(0, 20),
    value=st.sampled_from(["a", "b", "c"]),
)
BATCHES = st.lists(
    st.tuples(st.lists(EVENTS, min_size=1, max_size=12), st.integers(0, 6)), max_size=6
)
RULES: list[dict[str, object]] = [
    {"epsilon": 0.5},
    {"budget": 1.0, "horizon": 3},
    {"budget": 1.0, "window": 2, "when_exhausted": "repeat"},
]


@pytest.mark.parametrize("rules", RULES, ids=["step", "horizon", "window"])
@pytest.mark.parametrize("late", list(Late))
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "solved"])
@settings(max_examples=8, deadline=None)
@given(batches=BATCHES)
def test_a_shard_answers_as_the_plan_does_one_by_one(
    rules: dict[str, object], late: Late, compiled: bool, batches: list[tuple[list[Asked], int]]
) -> None:
    rule = plan(compiled=compiled, **rules)
    shard = Shard(rule, sf.keyed(KEY), DIGEST, late)
    oracle = Oracle(rule, KEY, late=late is Late.ACCEPT)
    stored: bytes | None = None
    watermark = 0
    for events, passed in batches:
        before = None if stored is None else ShardState.of_bytes(stored, DIGEST)
        left, after = shard.answered(before, asked_rows(events), 1_000_000 * watermark)
        # Done again, in another order, it is the same, bit for bit.
        again, same = shard.answered(before, asked_rows(events[::-1]), 1_000_000 * watermark)
        assert (told(again), same.encoded) == (told(left), after.encoded)
        due = oracle.answers(events, watermark)
        assert len(left.answers) == len(events)
        assert all(due[name] == answer for name, answer in told(left))
        stored, watermark = after.encoded, watermark + passed


def test_the_bytes_of_a_shard_do_not_depend_on_values_that_left_alike() -> None:
    rule = plan(compiled=True)
    states: dict[object, set[bytes]] = {}
    for value in "abc":
        for number in range(40):
            shard = Shard(rule, sf.keyed(KEY + bytes([number])), DIGEST, Late.REFUSE)
            left, after = shard.answered(None, asked_rows([Asked("ann", "e", 1, value)]), 0)
            states.setdefault(told(left)[0][1], set()).add(after.encoded)
    assert len(states) > 1
    assert all(len(found) == 1 for found in states.values())


def test_two_values_under_one_id_have_one_answer_whichever_comes_first() -> None:
    shard = Shard(plan(compiled=True), sf.keyed(KEY), DIGEST, Late.REFUSE)
    pair = [Asked("ann", "e", 1, "a"), Asked("ann", "e", 1, "c")]
    one, _ = shard.answered(None, asked_rows(pair), 0)
    other, _ = shard.answered(None, asked_rows(pair[::-1]), 0)
    assert told(one) == told(other)
    assert told(one)[0] == told(one)[1]


def test_hashes_that_agree_join_no_events() -> None:
    rule = plan(compiled=True)
    shard, oracle = Shard(rule, sf.keyed(KEY), DIGEST, Late.REFUSE), Oracle(rule, KEY)
    state: ShardState | None = None
    for turn in range(2):
        events = [Asked("ann", f"e{turn}{number}", turn, "a") for number in range(4)]
        rows = asked_rows(events)
        rows.hashes[:] = 7
        left, state = shard.answered(state, rows, 0)
        assert dict(told(left)) == oracle.answers(events, 0)


def test_ids_are_forgotten_with_the_watermark() -> None:
    shard = Shard(plan(compiled=True), sf.keyed(KEY), DIGEST, Late.REFUSE)
    state: ShardState | None = None
    sizes = []
    for turn in range(30):
        events = [Asked("ann", f"e{turn}-{number}", turn, "a") for number in range(20)]
        _, state = shard.answered(state, asked_rows(events), 1_000_000 * max(turn - 3, 0))
        sizes.append(len(state.encoded))
    assert max(sizes[10:]) <= max(sizes[:10]) * 1.1


def test_the_state_of_another_release_is_refused() -> None:
    shard = Shard(plan(compiled=True), sf.keyed(KEY), DIGEST, Late.REFUSE)
    _, state = shard.answered(None, asked_rows([Asked("ann", "e", 1, "a")]), 0)
    with pytest.raises(OtherRelease, match="another model, policy, rules, key"):
        ShardState.of_bytes(state.encoded, "cd" * 32)


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "solved"])
def test_damaged_states_are_refused(compiled: bool) -> None:
    shard = Shard(plan(compiled=compiled), sf.keyed(KEY), DIGEST, Late.REFUSE)
    rows = asked_rows([Asked("ann", "e", 1, "a")])
    _, state = shard.answered(None, rows, 0)
    stored = state.encoded
    with pytest.raises(CorruptData):
        ShardState.of_bytes(stored[:-1] + bytes([stored[-1] ^ 1]), DIGEST)
    for wrong in ([], [row + row for row in state.rows]):
        torn = ShardState(DIGEST, state.names, state.times, wrong, state.kept)
        with pytest.raises(CorruptData):
            shard.answered(torn, rows, 0)
    infinite = [np.full(len(row) // 8, np.nan).tobytes() for row in state.rows]
    torn = ShardState(DIGEST, state.names, state.times, infinite, state.kept)
    with pytest.raises(CorruptData):
        shard.answered(torn, rows, 0)
