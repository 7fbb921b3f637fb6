"""Whose stream it is: the exact likelihood, against every track written down, and in numbers."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.attacks import Reidentification, reidentify, reidentify_raw
from sfumato.attacks.personal_chains import personal_chains
from sfumato.attacks.reidentification import halves
from sfumato.core.events import Event
from tests.attacks.scenes import plan_of, released, sticky, walk
from tests.oracles.tracks import chances

PEOPLE, SIZE, LENGTH = 12, 4, 60


def crowd(seed: int) -> dict[str, list[int]]:
    """People who each move in a way of their own."""
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet(np.full(SIZE, 0.4), size=(PEOPLE, SIZE)) * 0.9 + 0.1 / SIZE
    return {f"s{n}": walk(own, 2 * LENGTH, rng) for n, own in enumerate(moves)}


def attacked(
    tracks: dict[str, list[int]], epsilon: float
) -> tuple[Reidentification, Reidentification]:
    known, rest = halves(tracks)
    plan = plan_of(sticky(SIZE, 0.4), epsilon)
    left = released(plan, list(rest.values()), seed=5)
    return reidentify(known, left.events, plan), reidentify_raw(known, rest, plan)


@settings(max_examples=20)
@given(st.integers(2, 3), st.integers(1, 4), st.integers(1, 2), st.integers(0, 10_000))
def test_scores_are_sums_over_all_tracks(size: int, length: int, order: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    plan = plan_of(sticky(size, 0.6), 0.8)
    known = {name: rng.integers(0, size, 12).tolist() for name in ("ann", "bob", "eve")}
    left = released(plan, [rng.integers(0, size, length).tolist()], seed)
    found = reidentify(known, left.events, plan, order=order)
    state, factors = plan.begin("s0"), []
    for event in left.events["s0"]:
        design = plan.prepare(state)
        assert design is not None and event.released is not None
        channel = design.design.channel
        # A constant tells nothing, and is not counted.
        one = np.ones(size) if channel.is_constant else channel.likelihood(int(event.released))
        factors.append(one)
        _, state = plan.observe(state, [event.released])
    for place, chain in enumerate(personal_chains(known, plan.model.alphabet, order).values()):
        prior = chances(chain.initial, chain.transition(), length)
        total = sum(
            chance * math.prod(one[value] for one, value in zip(factors, track, strict=True))
            for track, chance in prior.items()
        )
        assert found.scores[0, place] == pytest.approx(math.log(total), abs=1e-9)


@pytest.mark.statistical
def test_people_are_found_among_true_values_and_hide_behind_noise() -> None:
    tracks = crowd(3)
    owners, accuracies = list(tracks), {}
    for epsilon in (0.05, 1.0):
        blurred, raw = attacked(tracks, epsilon)
        accuracies[epsilon] = blurred.accuracy(owners)
    plain = raw.accuracy(owners)
    assert plain.share > 0.8
    assert accuracies[1.0].share > 2.5 * plain.chance
    assert accuracies[0.05].share < accuracies[1.0].share <= plain.share
    assert accuracies[0.05].low <= plain.chance
    assert plain.chance == 1 / PEOPLE
    assert plain.low < plain.share <= plain.high
    assert raw.accuracy(owners, top=3).share >= plain.share
    assert raw.accuracy(owners, top=PEOPLE).share == 1


def test_who_is_told_nothing_guesses_by_chance() -> None:
    known = {"ann": [0, 0, 1, 0], "bob": [1, 1, 0, 1], "eve": [0, 1, 0, 1]}
    plan = plan_of(sticky(2, 0.9), 1.0)
    silent = {name: list(plan.skip(plan.begin(name))[0]) for name in ("x", "y")}
    found = reidentify(known, silent, plan)
    assert found.accuracy(["ann", "eve"]).share == pytest.approx(1 / 3)
    assert found.accuracy(["ann", "eve"], top=2).share == pytest.approx(2 / 3)


@pytest.mark.parametrize("fallback", [None, sf.Fallback.SUPPRESS, sf.Fallback.REPEAT])
def test_who_is_told_by_when_nothing_left_is_no_leak(fallback: sf.Fallback | None) -> None:
    asked = {} if fallback is None else {"on_unknown": fallback}
    plan, coins = plan_of(sticky(2, 0.5), 0.01, **asked), sf.seeded(1)

    def stream(name: str, silent: int) -> list[Event]:
        left: list[Event] = []
        state = plan.begin(name)
        for moment in range(4):
            if moment == silent and fallback is None:
                events, state = plan.skip(state)
            else:
                events, state = plan.step(state, ["?" if moment == silent else 1], coins)
            left.extend(events)
        return left

    names = [f"x{n}" for n in range(8)]
    known, owners = {"ann": [0, 0, 1, 0], "bob": [1, 1, 0, 1]}, ["ann", "bob"] * 4
    alike = {name: stream(name, 2) for name in names}
    apart = {name: stream(name, 2 + n % 2) for n, name in enumerate(names)}
    assert reidentify(known, alike, plan).accuracy(owners).leaked is not None
    assert reidentify(known, apart, plan).accuracy(owners).leaked is None
    raw = {name: [1, 1, -1, 1] if n % 2 else [1, -1, 1, 1] for n, name in enumerate(names)}
    assert reidentify_raw(known, raw, plan).accuracy(owners).leaked is None
    same = {name: [1, -1, 0, 1] for name in names}
    assert reidentify_raw(known, same, plan).accuracy(owners).leaked is not None


def test_batches_are_attacked_too() -> None:
    plan = plan_of(sticky(2, 0.7), 1.5, width=2)
    left = released(plan, [[1, 1, 1, 1, 1, 1, 1, 0] * 4], seed=1)
    found = reidentify({"ann": [0, 0, 0, 1] * 9, "bob": [1, 1, 1, 0] * 9}, left.events, plan)
    assert found.guesses(2) == [("bob", "ann")]


@pytest.mark.parametrize(
    ("owners", "message"),
    [(["ann"], "name a known person"), (["ann", "zoe"], "name a known person")],
)
def test_owners_are_known_people(owners: list[str], message: str) -> None:
    found = Reidentification(("x", "y"), ("ann", "bob"), np.zeros((2, 2)))
    with pytest.raises(sf.SfumatoError, match=message):
        found.accuracy(owners)


def test_one_person_alone_is_not_told_from_anybody() -> None:
    with pytest.raises(sf.SfumatoError, match="hold two people at least"):
        personal_chains({"ann": [0, 1]}, sf.Alphabet([0, 1]))
    with pytest.raises(sf.SfumatoError, match="leave at most 4,096 contexts"):
        personal_chains({"ann": [0, 1], "bob": [1, 0]}, sf.Alphabet([0, 1]), order=13)
