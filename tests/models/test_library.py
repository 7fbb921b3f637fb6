import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import SIP, Alphabet, BatchedRelease, MarkovChain, PatternLibrary, PerStep, Plan, loss
from sfumato.core.errors import InvalidParameter
from sfumato.solver.design_methods import Method
from sfumato.stream import StreamState
from sfumato.stream.partition.batch_loss import additive
from sfumato.stream.partition.batch_spaces import LastPattern
from tests.oracles.batches import Floats, Symbols, moved_by, summed, table
from tests.oracles.textbook_lp import textbook_optimum

BITS = Alphabet.of_size(2)
paths = st.lists(st.lists(st.integers(0, 2), max_size=9), min_size=1, max_size=12).filter(any)


def rows_of(library: PatternLibrary) -> list[Symbols]:
    return [tuple(value for value in row if value >= 0) for row in library.patterns.tolist()]


def plan_of(library: PatternLibrary, epsilon: float) -> Plan:
    each = additive(loss.hamming(library.alphabet))
    return Plan(library, PerStep(SIP(epsilon)), each, library.width)


# Learning ----------------------------------------------------------------------------------------


@given(paths, st.integers(1, 4), st.integers(0, 6))
def test_kept_patterns_are_the_commonest_and_one_of_every_length(
    told: list[list[int]], width: int, more: int
) -> None:
    alphabet = Alphabet.of_size(3)
    library = PatternLibrary.fit(told, width=width, most=width + more, alphabet=alphabet)
    kept = rows_of(library)
    cut = [tuple(path[i : i + width]) for path in told for i in range(0, len(path), width)]
    counts = Counter(cut)
    assert library.full_support
    assert len(set(kept)) == len(kept) <= width + more
    assert {len(pattern) for pattern in kept} == set(range(1, width + 1))
    missing = [pattern for pattern in counts if pattern not in kept]
    for pattern in missing:
        # Whatever is less common is kept only because its length needs one.
        for other in kept:
            alone = sum(len(one) == len(other) for one in kept) == 1
            alike = [counts[p] for p in counts if len(p) == len(other)]
            best = counts[other] == max(alike, default=0)
            assert counts[other] >= counts[pattern] or alone or best
    assert [counts[p] for p in kept] == sorted((counts[p] for p in kept), reverse=True)


@given(paths, st.integers(1, 4), st.integers(0, 4), st.data())
def test_every_batch_maps_to_a_kept_pattern_of_its_own_length_that_differs_least(
    told: list[list[int]], width: int, more: int, data: st.DataObject
) -> None:
    alphabet = Alphabet.of_size(3)
    library = PatternLibrary.fit(told, width=width, most=width + more, alphabet=alphabet)
    kept = rows_of(library)
    batch = tuple(data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=width)))
    found = kept[library.nearest(batch)]

    def wrong(pattern: Symbols) -> int:
        return sum(a != b for a, b in zip(pattern, batch, strict=True))

    assert len(found) == len(batch)
    assert wrong(found) == min(wrong(one) for one in kept if len(one) == len(batch))
    if batch in kept:
        assert found == batch
    parts = {library.nearest(b) for b in itertools.product(range(3), repeat=len(batch))}
    assert parts == set(library.of_length(len(batch)).tolist())


def test_followers_are_counted_on_the_kept_patterns() -> None:
    told = [[0, 0, 1, 1, 0, 0]] * 30 + [[1, 1, 0, 0]] * 10
    library = PatternLibrary.fit(told, width=2, most=3, alphabet=BITS, smoothing=0.0, floor=1e-9)
    kept = rows_of(library)
    zeros, ones = kept.index((0, 0)), kept.index((1, 1))
    moves = library.chain.transition()
    assert moves[zeros, ones] == pytest.approx(1.0, abs=1e-6)
    assert moves[ones, zeros] == pytest.approx(1.0, abs=1e-6)
    first, _ = library.ahead(library.first(), 2)
    place = library.of_length(2).tolist().index(zeros)
    assert first[place] == pytest.approx(0.75, abs=0.05)


def test_a_length_that_never_occurs_has_a_pattern_all_the_same() -> None:
    library = PatternLibrary.fit([[0, 1, 1, 0, 1, 0]] * 4, width=3, most=3, alphabet=BITS)
    assert sorted(map(len, rows_of(library))) == [1, 2, 3]
    release = BatchedRelease(library, width=3, budget=SIP(0.5), loss=loss.hamming(BITS))
    assert [len(release.add(value)) for value in (0, 1, 1, 0)] == [0, 0, 3, 0]
    assert [event.sequence for event in release.flush()] == [3]


@pytest.mark.parametrize("told", [[], [[]], [[], []]])
def test_nothing_to_learn_from_is_refused(told: list[list[int]]) -> None:
    with pytest.raises(InvalidParameter, match="sequences must hold at least one value"):
        PatternLibrary.fit(told, width=2, alphabet=BITS)


@pytest.mark.parametrize(
    "patterns",
    [
        [[0, 1], [1, 0], [1, 1]],
        [[0, -1], [-1, 0], [1, 1]],
        [[0, -1], [2, 0], [1, 1]],
        [[0, -1], [1, 1], [1, 1]],
        [[0, -1], [1, 1]],
        [[0, -1], [-1, -1], [1, 1]],
    ],
)
def test_patterns_that_make_no_library_are_refused(patterns: list[list[int]]) -> None:
    chain = MarkovChain.from_matrix(np.full((3, 3), 1 / 3))
    with pytest.raises(InvalidParameter, match="patterns must"):
        PatternLibrary(BITS, np.array(patterns), chain)


@pytest.mark.parametrize("options", [{"width": 3}, {"width": 2, "memory": 2}])
def test_a_plan_that_does_not_fit_the_library_is_refused(options: dict[str, int]) -> None:
    library = PatternLibrary.fit([[0, 1, 1, 0]], width=2, alphabet=BITS)
    with pytest.raises(InvalidParameter, match=r"(width|memory) must"):
        Plan(
            library,
            PerStep(SIP(1.0)),
            additive(loss.hamming(BITS)),
            **options,  # type: ignore[arg-type]
        )


# Certificates ------------------------------------------------------------------------------------

Law = list[tuple[tuple[int, ...], float]]


def of_lengths(library: PatternLibrary, lengths: Sequence[int]) -> list[tuple[int, ...]]:
    kept = rows_of(library)
    fitting = [[p for p, one in enumerate(kept) if len(one) == length] for length in lengths]
    return list(itertools.product(*fitting))


def given_all_lengths(library: PatternLibrary, lengths: Sequence[int]) -> Law:
    """Sequences of patterns under the chain, given how long every one of them is."""
    start, moves = library.chain.initial, library.chain.transition()
    law = []
    for path in of_lengths(library, lengths):
        chance = start[path[0]]
        for before, after in itertools.pairwise(path):
            chance *= moves[before, after]
        law.append((path, float(chance)))
    return law


def lengths_from_outside(library: PatternLibrary, lengths: Sequence[int]) -> Law:
    """Somebody else decides on lengths; the chain says which pattern of that length comes next."""
    start, moves = library.chain.initial, library.chain.transition()
    fitting = [library.of_length(length) for length in lengths]
    law = []
    for path in of_lengths(library, lengths):
        chance = start[path[0]] / start[fitting[0]].sum()
        for t, (before, after) in enumerate(itertools.pairwise(path), start=1):
            chance *= moves[before, after] / moves[before, fitting[t]].sum()
        law.append((path, float(chance)))
    return law


def excess(library: PatternLibrary, epsilon: float, law: Law, lengths: Sequence[int]) -> float:
    """By how much the worst outputs tell more about true batches than was charged."""
    plan = plan_of(library, epsilon)
    prior = np.array([chance for _, chance in law])
    prior = prior / prior.sum()
    worst = -np.inf

    def extend(state: StreamState, likelihood: Floats, step: int) -> None:
        nonlocal worst
        if step == len(lengths):
            worst = max(worst, moved_by(prior, likelihood) - state.ledger.sip)
            return
        prepared = plan.prepare(state, lengths[step])
        assert prepared is not None
        kept = library.of_length(lengths[step]).tolist()
        rows = [kept.index(path[step]) for path, _ in law]
        channel = prepared.design.channel
        for column, output in enumerate(channel.outputs.tolist()):
            labels = [library.alphabet.labels[place] for place in prepared.patterns[output]]
            _, after = plan.observe(state, labels)
            extend(after, likelihood * channel.probabilities[rows, column], step + 1)

    extend(plan.begin("s"), np.ones(len(law)), 0)
    return float(worst)


def even_lengths(seed: int) -> PatternLibrary:
    """A library in which no pattern tells how long the next one is."""
    rng = np.random.default_rng(seed)
    patterns = [[0, 0], [0, 1], [1, 1], [0, -1], [1, -1]]
    longs, shorts = rng.dirichlet(np.ones(3), 6), rng.dirichlet(np.ones(2), 6)
    rows = np.hstack([0.75 * longs, 0.25 * shorts])
    chain = MarkovChain.from_matrix(0.9 * rows[1:] + 0.1 * rows[0], rows[0])
    return PatternLibrary(BITS, np.array(patterns), chain)


CUTS = [(2, 2), (2, 1), (1, 2), (2, 2, 1), (2, 2, 2)]


@pytest.mark.parametrize("lengths", CUTS)
def test_summed_charges_bound_what_leaks_where_lengths_tell_nothing(
    lengths: tuple[int, ...],
) -> None:
    for seed in range(3):
        library = even_lengths(seed)
        for law in (given_all_lengths, lengths_from_outside):
            assert excess(library, 0.6, law(library, lengths), lengths) <= 1e-9


@pytest.mark.parametrize("lengths", CUTS)
def test_summed_charges_bound_what_leaks_given_public_lengths(lengths: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    told = [[int(v) for v in rng.integers(0, 2, int(n))] for n in rng.integers(1, 6, 40)]
    told += [[0] * 5] * 30 + [[1] * 2] * 30
    library = PatternLibrary.fit(told, width=2, alphabet=BITS)
    for epsilon in (0.2, 0.5, 1.0):
        over = [
            excess(library, epsilon, law(library, lengths), lengths)
            for law in (given_all_lengths, lengths_from_outside)
        ]
        # Either reading of "lengths are public" will do.
        assert min(over) <= 1e-9


def test_a_certificate_about_patterns_is_one_about_batches() -> None:
    library = even_lengths(4)
    plan = plan_of(library, 0.6)
    prepared = plan.prepare(plan.begin("s"))
    assert prepared is not None
    rng = np.random.default_rng(1)
    batches = list(itertools.product(range(2), repeat=2))
    near = [prepared.partition.cell(batch) for batch in batches]
    inside = rng.uniform(size=4)
    together = [sum(inside[j] for j in range(4) if near[j] == part) for part in near]
    shares = inside / np.array(together)
    chances = np.asarray(prepared.partition.masses)[near] * shares
    assert chances.sum() == pytest.approx(1.0)
    rows = prepared.design.channel.probabilities[near]
    for column in rows.T:
        assert moved_by(chances, column) <= prepared.design.sip.epsilon + 1e-12


def test_cost_is_that_of_the_textbook_program_on_kept_patterns() -> None:
    rng = np.random.default_rng(5)
    told = [[int(v) for v in rng.integers(0, 3, 14)] for _ in range(30)]
    library = PatternLibrary.fit(told, width=3, most=12, alphabet=Alphabet.of_size(3))
    each = additive(loss.hamming(library.alphabet))
    distance = summed(lambda x, y: float(x != y))
    space = LastPattern(library, each, 3, Method.OPTIMAL, most=4096)
    for length, epsilon in ((3, 0.9), (2, 0.4), (1, 1.5)):
        found = space.design(library.first(), length, 0, epsilon, None)
        kept = [one for one in rows_of(library) if len(one) == length]
        share: Any = library.chain.initial[library.of_length(length)]
        best = textbook_optimum(share / share.sum(), table(distance, kept, kept), epsilon)
        assert found.design.cost == pytest.approx(best, abs=1e-7)
        assert found.design.sip.epsilon <= epsilon


@settings(max_examples=20)
@given(paths, st.integers(1, 3))
def test_released_batches_are_kept_patterns(told: list[list[int]], width: int) -> None:
    library = PatternLibrary.fit(told, width=width, alphabet=Alphabet.of_size(3))
    kept = rows_of(library)
    release = BatchedRelease(
        library, width=width, budget=SIP(2.0), loss=loss.hamming(library.alphabet)
    )
    stream = [2, 0, 1, 2, 2, 1, 0]
    events = list(release.over(stream))
    assert [event.sequence for event in events] == list(range(len(stream)))
    for _, batch in itertools.groupby(events, key=lambda event: event.batch):
        assert tuple(int(str(event.released)) for event in batch) in kept
