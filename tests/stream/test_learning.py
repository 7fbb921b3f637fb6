"""A learner sees what left, and nothing else; and what it finds is worth what it says."""

from dataclasses import fields, replace
from inspect import signature

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Event
from sfumato.models.emissions import Emissions
from sfumato.models.encoding import Bins
from sfumato.models.online_learning import LearnerState
from sfumato.models.plausible import PlausibleChains
from sfumato.models.stream_model import StreamModel
from sfumato.store.codec import to_bytes
from sfumato.stream.evidence import evidence
from sfumato.stream.fit_model import AS_IT_IS, Cut, uniform_model
from sfumato.stream.learning import Learning, emissions_of, learn
from sfumato.stream.partition import batch_loss
from sfumato.stream.released_tracks import ReleasedTracks

STICKY = sf.MarkovChain.from_matrix([[0.92, 0.08], [0.2, 0.8]])
NOTHING = sf.MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]])
LOSS = sf.loss.hamming(NOTHING.alphabet)


def response(epsilon: float, model: sf.MarkovChain = NOTHING) -> sf.Plan:
    """Every value through one channel."""
    budget = sf.PerStep(sf.SIP(epsilon))
    method = sf.Method.RANDOMIZED_RESPONSE
    return sf.Plan(model, budget, LOSS, method=method, purpose=sf.Purpose.SIMULATION)


def stepwise(epsilon: float, width: int = 1) -> sf.Plan:
    """Every value or batch through the best channel of its step."""
    loss = LOSS if width == 1 else batch_loss.additive(LOSS)
    budget = sf.PerStep(sf.SIP(epsilon))
    return sf.Plan(STICKY, budget, loss, width=width, purpose=sf.Purpose.SIMULATION)


def released(plan: sf.Plan, chain: sf.MarkovChain, streams: int, length: int) -> ReleasedTracks:
    """What streams of a chain let out, from their first moment on."""
    left = {}
    for place in range(streams):
        values = chain.sample(length, sf.seeded(place)).tolist()
        state, coins, events = plan.begin(f"s{place}"), sf.seeded(1000 + place), list[Event]()
        for first in range(0, length, plan.width):
            batch = [chain.alphabet.labels[value] for value in values[first : first + plan.width]]
            more, state = plan.step(state, batch, coins)
            events.extend(more)
        left[f"s{place}"] = events
    return ReleasedTracks.of(left, chain.alphabet)


def the_same_from_others(plan: sf.Plan, truth: list[int]) -> tuple[list[Event], list[Event]]:
    """Outputs of some values, and of their opposites under coins that make them the same."""
    ours, theirs = plan.begin("s"), plan.begin("s")
    one, other, tries = list[Event](), list[Event](), 0
    for moment, value in enumerate(truth):
        (event,), ours = plan.step(ours, [value], sf.seeded(moment))
        while True:
            tries += 1
            (again,), following = plan.step(theirs, [1 - value], sf.seeded(10_000 + tries))
            if again.released == event.released:
                break
        theirs = following
        one.append(event)
        other.append(again)
    return one, other


@pytest.mark.parametrize(
    "plan",
    [response(1.0), replace(response(1.0, STICKY), method=sf.Method.CALIBRATED)],
    ids=["one channel", "channels that follow the belief"],
)
def test_other_values_with_the_same_outputs_end_in_the_same_state(plan: sf.Plan) -> None:
    truth = STICKY.sample(20, sf.seeded(3)).tolist()
    one, other = the_same_from_others(plan, truth)
    found = [learn({"s": events}, plan, order=1) for events in (one, other)]
    assert to_bytes(found[0].chain) == to_bytes(found[1].chain)
    for part in fields(Learning):
        if part.name not in ("chain", "plausible"):
            assert getattr(found[0], part.name) == getattr(found[1], part.name)
    states = [
        LearnerState.begin(NOTHING.alphabet).learnt(
            emissions_of(ReleasedTracks.of({"s": events}, NOTHING.alphabet), plan), ["s"]
        )
        for events in (one, other)
    ]
    assert to_bytes(states[0]) == to_bytes(states[1])


def test_there_is_no_way_for_a_true_value_into_a_learner() -> None:
    public = {"released", "plan", "order", "smoothing", "floor", "confidence", "progress"}
    assert set(signature(learn).parameters) == public
    assert {part.name for part in fields(ReleasedTracks)} == {
        *("streams", "starts", "places", "outcomes", "began", "signals", "rows", "source"),
        *("phases", "periods"),  # of times, which left beside the values
    }
    told = {"symbols", "starts", "begins", "reaches", "told"}
    assert {part.name for part in fields(Emissions)} == told


def test_a_cold_start_finds_the_chain_and_says_what_it_is_worth() -> None:
    plan, seen = response(2.0), list[int]()
    found = learn(released(plan, STICKY, 60, 40), plan, progress=seen.append)
    assert (found.streams, found.values, found.telling, found.order) == (60, 2400, 2400, 1)
    np.testing.assert_allclose(found.chain.transition(), STICKY.transition(), atol=0.08)
    assert found.beats_model
    assert found.log_likelihood > found.independent_log_likelihood > found.model_log_likelihood
    assert 0 < found.effective < 60 * 39
    assert found.plausible is not None
    assert found.plausible.contains(sf.MarkovChain.from_matrix(STICKY.transition(), STICKY.initial))
    assert found.remark == ""
    assert seen == sorted(seen)


def test_the_model_of_the_release_is_not_beaten_where_it_is_right() -> None:
    plan = response(2.0, STICKY)
    found = learn(released(plan, STICKY, 30, 20), plan, order=1)
    assert not found.beats_model
    assert found.gain < 0.02


def test_one_channel_is_read_as_it_is_value_by_value() -> None:
    plan = response(1.0, STICKY)
    tracks = released(plan, STICKY, 4, 15)
    quick, slow = emissions_of(tracks, plan), evidence(tracks, plan)
    for value in range(len(quick)):
        own = slow.told[slow.begins[value] : slow.begins[value] + 2]
        np.testing.assert_allclose(quick.told[quick.begins[value] :][:2], own, rtol=1e-12)


@pytest.mark.parametrize("width", [1, 2])
def test_channels_that_follow_the_belief_are_learnt_from_too(width: int) -> None:
    plan = stepwise(1.5 * width, width)
    found = learn(released(plan, STICKY, 20, 20), plan, order=1)
    assert found.chain.full_support
    assert found.plausible is None
    assert "channels change" in found.remark
    assert found.log_likelihood > found.independent_log_likelihood


def test_a_release_for_many_chains_has_no_one_channel() -> None:
    """It mixes, or says nothing, by what left before: a proof from one channel would be wrong."""
    chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
    near = PlausibleChains.from_radius(chain, 0.01)
    plan = replace(response(1.0, chain), robust=near)
    found = learn(released(plan, chain, 6, 10), plan, order=1)
    assert found.plausible is None and "channels change" in found.remark


def test_what_tells_nothing_is_refused() -> None:
    plan = stepwise(1e-9)
    with pytest.raises(InvalidParameter, match="tell something"):
        learn(released(plan, NOTHING, 2, 5), plan)


def test_a_model_without_a_history_knows_its_values_only() -> None:
    start = uniform_model(AS_IT_IS, ["b", "a"], stream="user", values=("place",))
    assert start.alphabet.labels == ("a", "b")
    assert np.ptp(start.single_values.transition()) == 0
    bins = uniform_model(Cut(bins=4, ranges=((0.0, 8.0),), unit="W"))
    assert bins.alphabet.labels == ("1", "3", "5", "7")
    assert isinstance(bins.encoding, Bins)
    assert bins.encoding.encode("99") == "7"
    grid = Cut(columns=2, rows=3, ranges=((0.0, 1.0), (0.0, 1.0)))
    assert isinstance(uniform_model(grid, values=("x", "y")), StreamModel)
    for cut, symbols in ((AS_IT_IS, None), (Cut(bins=4), None), (Cut(bins=4), ["a"])):
        with pytest.raises(InvalidParameter):
            uniform_model(cut, symbols)


def test_what_was_learnt_is_released_with() -> None:
    plan = response(2.0)
    found = learn(released(plan, STICKY, 20, 20), plan, order=1)
    following = sf.Plan(found.chain, sf.PerStep(sf.SIP(0.5)), LOSS)
    (event,), _ = following.step(following.begin("new"), [1], sf.secure())
    assert event.sip.epsilon <= 0.5
