"""Releases that start from nothing: what they charge holds for every chain that is left."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.arrays import Floats
from sfumato.core.digest import digest
from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.core.purpose import Purpose
from sfumato.models.markov import MarkovChain
from sfumato.models.plausible import PlausibleChains
from sfumato.store.protocol import Answer
from sfumato.stream.chain_terms import LearningSpec
from sfumato.stream.learning_plan import LearningPlan
from sfumato.stream.learning_rules import EDITIONS, LearningRules
from sfumato.stream.learning_run import recall
from sfumato.stream.model_versions import ContextFree, ModelVersion, next_version
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.stream.version_history import VersionHistory, _Learnt
from tests.stream.test_other_truth import a_chain, a_chain_within

SEEDS = st.integers(0, 2**32 - 1)
STICKY = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forecasts are short, and few values are enough to move."""
    for name, value in {"_WALKS": 1, "_LENGTH": 4, "_NARROW": 1.0}.items():
        monkeypatch.setattr(f"sfumato.stream.model_versions.{name}", value)


def some_rules(size: int = 2, epsilon: float = 1.0, **changes: object) -> LearningRules:
    alphabet = sf.Alphabet.of_size(size)
    rules = LearningRules(alphabet, sf.PerStep(sf.SIP(epsilon)), sf.loss.hamming(alphabet))
    return replace(rules, purpose=Purpose.SIMULATION, **changes)  # type: ignore[arg-type]


def version(number: int, rules: LearningRules, chains: PlausibleChains) -> ModelVersion:
    return ModelVersion(number, rules.cut(number), 1, 1, chains, None, moves=True, remark="")


def given_versions(history: VersionHistory, *made: ModelVersion) -> None:
    """Versions that are given beforehand, each in use from its cut on; nothing is looked at."""

    def due() -> _Learnt:
        before = history._learnt
        now = [one for one in made if one.values <= history._count]
        following = [one.values for one in made if one.values > history._count]
        return before._replace(versions=tuple(now), next=min(following, default=1 << 60))

    history._looked = due  # type: ignore[method-assign]


def nested(rng: np.random.Generator, chain: MarkovChain) -> Iterator[PlausibleChains]:
    """Sets around one chain, each within the one before it, with estimates of their own."""
    for radius in (0.2, 0.1, 0.04):
        whole = PlausibleChains.from_radius(chain, radius)
        near = a_chain_within(whole, rng)
        estimate = MarkovChain.from_matrix(near.transition(), near.initial, floor=1e-6)
        bounds = (whole.low, whole.high, whole.first_low, whole.first_high)
        yield PlausibleChains(estimate, *bounds, confidence=0.9)


def followed(
    plan: LearningPlan, truth: MarkovChain, values: list[int], seed: int
) -> Iterator[tuple[float, sf.Event]]:
    """What every step told somebody who knows the true chain, by the plain rule of Bayes."""
    belief: Floats = truth.initial.ravel()
    state, moves = plan.begin("ann"), truth.transition()
    for value in values:
        found = plan.prepare(state, 1)
        assert found is not None
        rows = found.design.channel.probabilities
        (event,), state = plan.step(state, [value], sf.seeded(seed))
        mean = belief @ rows
        told = max(np.log(rows.max(axis=0) / mean).max(), np.log(mean / rows.min(axis=0)).max())
        yield told, event
        said = plan.rules.told_by(event.signal or 0)[1]
        output = found.output(np.array([event.released]), said)
        assert output is not None
        belief = belief * found.design.channel.likelihood(output)
        belief = (belief / belief.sum()) @ moves
        plan.history.add("ann", int(str(event.released)))


@settings(max_examples=6, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 3), late=st.booleans(), edition=st.sampled_from(EDITIONS))
def test_no_chain_that_is_left_is_told_more_than_was_charged_over_all_versions(
    seed: int, size: int, late: bool, edition: int
) -> None:
    rng = np.random.default_rng(seed)
    middle = a_chain(rng, size)
    rules = some_rules(size, first=3, scouts=0, edition=edition)
    sets = list(nested(rng, middle))
    for truth in (middle, a_chain_within(sets[-1], rng)):
        history = VersionHistory(rules)
        given_versions(history, *(version(n, rules, one) for n, one in enumerate(sets, start=1)))
        if late:  # others have left before: the stream begins under a version
            for _ in range(4):
                history.add("bob", 0)
        values = rng.integers(0, size, size=14).tolist()
        steps = list(followed(LearningPlan.under(history), truth, values, seed))
        assert {rules.told_by(event.signal or 0)[0] for _, event in steps} >= {1, 2, 3}
        for told, event in steps:
            assert told <= event.sip.epsilon + 1e-12
            assert event.sip <= sf.SIP(1.0) and event.sip.epsilon <= event.ldp.epsilon + 1e-12


def test_a_stream_that_has_left_more_than_is_read_again_is_charged_soundly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sfumato.stream.version_moves._TAIL", 2)
    rules, rng = some_rules(first=6, scouts=0), np.random.default_rng(5)
    chains = PlausibleChains.from_radius(STICKY, 0.02)
    history = VersionHistory(rules)
    given_versions(history, version(1, rules, chains))
    plan = LearningPlan.under(history)
    steps = list(followed(plan, a_chain_within(chains, rng), [1] * 11, 3))
    assert all(told <= event.sip.epsilon + 1e-12 for told, event in steps)
    numbers = [rules.told_by(event.signal or 0)[0] for _, event in steps]
    assert numbers == [0] * 6 + [1] * 5


def test_context_free_values_are_charged_what_holds_whatever_is_true() -> None:
    rules = some_rules(3, 0.7)
    plan = LearningPlan.under(VersionHistory(rules))
    (event,), state = plan.step(plan.begin("ann"), [2], sf.seeded(1))
    rows = rules.channel
    assert event.sip.epsilon == event.ldp.epsilon <= 0.7
    assert event.ldp.epsilon == pytest.approx(np.log(rows.max() / rows.min()))
    assert state.ledger.sip == state.ledger.ldp == event.ldp.epsilon


def left(rules: LearningRules, streams: int, length: int, seed: int) -> ContextFree:
    """Context-free outputs of sticky streams."""
    rng = np.random.default_rng(seed)
    values, found = rng.integers(0, 2, streams), np.empty((length, streams), dtype=np.uint8)
    for moment in range(length):
        found[moment] = rng.random(streams) < rules.channel[values, 1]
        values = np.where(rng.random(streams) < 0.9, values, 1 - values)
    return ContextFree({f"u{place}": found[:, place].tobytes() for place in range(streams)})


def test_the_same_outputs_lead_to_the_same_versions_and_others_to_others() -> None:
    rules = some_rules(first=400)
    outputs = left(rules, 40, 10, 1)
    backwards = ContextFree(dict(reversed(list(outputs.outputs.items()))))
    one, same = (next_version(rules, (), told) for told in (outputs, backwards))
    assert one.fingerprint == same.fingerprint
    own = outputs.outputs["u7"]
    changed = {**outputs.outputs, "u7": bytes([1 - own[0], *own[1:]])}
    assert next_version(rules, (), ContextFree(changed)).fingerprint != one.fingerprint


def test_sets_are_nested_and_all_versions_share_the_failure() -> None:
    rules = some_rules(epsilon=3.0, first=600)
    first = next_version(rules, (), left(rules, 60, 10, 1))
    second = next_version(rules, (first,), left(rules, 60, 20, 1))
    assert first.chains is not None and second.chains is not None
    assert np.all(second.chains.low >= first.chains.low - 1e-12)
    assert np.all(second.chains.high <= first.chains.high + 1e-12)
    assert second.chains.widest < first.chains.widest
    around = second.chains.estimate.transition()
    assert np.all((second.chains.low - 1e-5 <= around) & (around <= second.chains.high + 1e-5))
    assert 2 * sum(rules.failure(number) for number in range(1, 10_000)) <= 1 - rules.confidence
    assert rules.failure(1) == pytest.approx((1 - rules.confidence) / 4)


def test_outputs_that_no_chain_explains_make_learning_start_anew_with_twice_the_patience() -> None:
    rules = some_rules(epsilon=3.0, first=400, scouts=0)
    turning = {f"u{place}": bytes([0, 0, 1, 1] * 100) for place in range(20)}
    lost = next_version(rules, (), ContextFree(turning))
    assert lost.chains is None and not lost.moves and "no such chain" in lost.remark
    assert lost.restarts and lost.values == 400
    again = next_version(rules, (lost,), left(rules, 40, 20, 1))
    assert again.chains is not None and again.number == 2
    assert again.since == 400 and again.values == 400 + 800


def test_streams_wait_while_next_to_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = some_rules(first=200, ready=1e-6)
    outputs = left(rules, 40, 5, 1)
    monkeypatch.setattr("sfumato.stream.model_versions._NARROW", 0.5)
    found = next_version(rules, (), outputs)
    assert found.chains is not None and found.chains.widest > 0.5
    assert not found.moves and "is known to 0.5" in found.remark


def test_scouts_never_move_and_are_all_that_is_learnt_from_after_a_move() -> None:
    rules = some_rules(first=40, scouts=3, ready=1e-6)
    history = VersionHistory(rules)
    given_versions(history, version(1, rules, PlausibleChains.from_radius(STICKY, 0.1)))
    names = [f"u{place}" for place in range(12)]
    scouts = [name for name in names if rules.is_scout(name)]
    assert 0 < len(scouts) < 12
    assert set(history._left_since({}).outputs) == set()
    for moment in range(60):
        history.add(names[moment % 12], moment % 2)
    assert set(history._left_since({}).outputs) == set(scouts)
    assert {history.used(name, 4) for name in scouts} == {0}
    assert {history.used(name, 4) for name in names if name not in scouts} == {1}


def test_a_state_of_another_release_or_of_the_future_is_refused() -> None:
    plan = LearningPlan.under(VersionHistory(some_rules(first=3)))
    _, later = plan.step(plan.begin("ann"), [0], sf.seeded(1))
    with pytest.raises(InvalidParameter, match="what left before"):
        plan.step(later, [0], sf.seeded(1))
    other = LearningPlan.under(VersionHistory(some_rules(first=4)))
    assert other.fingerprint != plan.fingerprint
    with pytest.raises(InvalidParameter, match="from these rules"):
        other.step(plan.begin("ann"), [0], sf.seeded(1))
    with pytest.raises(InvalidParameter, match="every moment"):
        plan.skip(plan.begin("ann"))


def test_another_version_has_other_coins() -> None:
    rules = some_rules()
    chains = PlausibleChains.from_radius(STICKY, 0.1)
    narrow = PlausibleChains.from_radius(STICKY, 0.05)
    plans = [rules.start, rules.plan(chains), rules.plan(narrow)]
    plans.append(some_rules(first=7).plan(chains))
    assert len({plan.address("ann", 0) for plan in plans}) == 4


def test_a_release_says_three_numbers_and_moves_by_itself() -> None:
    bit = sf.Alphabet.of_size(2)
    release = sf.LearningRelease(
        bit,
        budget=sf.SIP(1.5),
        loss=sf.loss.hamming(bit),
        first=1600,
        scouts=0,
        ready=0.001,
        purpose=Purpose.SIMULATION,
        randomness=sf.seeded(4),
    )
    rng, values = np.random.default_rng(3), np.arange(160) % 2
    for _ in range(12):
        for place, value in enumerate(values.tolist()):
            release(f"u{place}", value)
        values = np.where(rng.random(160) < 0.9, values, 1 - values)
    assert release.versions[0].moves and release.versions[0].values == 1600
    told = release.spent("u3")
    assert told.estimate < told.over_set and told.over_set.epsilon <= told.ldp.epsilon + 1e-9
    assert told.confidence == 0.95
    with pytest.raises(InvalidParameter, match="each value"):
        sf.LearningRelease(bit, budget=sf.Horizon(sf.SIP(3.0), 5), loss=sf.loss.hamming(bit))


def test_a_release_that_cannot_go_on_has_no_key() -> None:
    bit = sf.Alphabet.of_size(2)
    with pytest.raises(InvalidParameter, match="not be keyed"):
        sf.LearningRelease(
            bit,
            budget=sf.SIP(1.0),
            loss=sf.loss.hamming(bit),
            randomness=sf.keyed(bytes(range(32))),
        )


def test_an_interrupt_before_the_end_of_a_step_ends_its_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bit = sf.Alphabet.of_size(2)
    release = sf.LearningRelease(bit, budget=sf.SIP(1.0), loss=sf.loss.hamming(bit))
    release("ann", 0)

    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(VersionHistory, "add", broken)
        release("ann", 1)
    with pytest.raises(InvalidParameter, match="stand where the stream stands"):
        release("ann", 1)
    assert release("bob", 1).sequence == 0


def test_releases_of_before_go_on_by_the_rules_they_began_with() -> None:
    """What outputs led to when there were no editions; computed by that program."""
    bit = sf.Alphabet.of_size(2)
    budget, loss = sf.PerStep(sf.SIP(2.0)), sf.loss.hamming(bit)
    rules = LearningRules(bit, budget, loss, first=400, ready=0.1, scouts=2, edition=2)
    known = "ac32c3341b9f1f2b89137aadc01614ac58c3c3323dac01d4ae4dfb87aaf864c6"
    assert rules.fingerprint == known and not rules.far_sighted and rules.signal(3, None) == 3
    assert replace(rules, edition=3).fingerprint != known
    assert ReleaseSpec(epsilon=2.0, learn=LearningSpec()).learn == LearningSpec(edition=2)


def test_releases_of_edition_3_keep_their_channels() -> None:
    """What they were before outputs were repaired one by one; computed by that program."""
    some = sf.Alphabet.of_size(3)
    budget, loss = sf.PerStep(sf.SIP(1.0)), sf.loss.hamming(some)
    rows = [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]]
    near = PlausibleChains.from_radius(sf.MarkovChain.from_matrix(rows), 0.03)
    found = {}
    for edition in (3, 4):
        plan = LearningRules(some, budget, loss, edition=edition).plan(near)
        state, weights = plan.begin("ann"), []
        for _ in range(4):
            due = plan.prepare(state)
            assert due is not None
            weights.append(due.design.channel.weights)
            _, state = plan.observe(state, [int(due.patterns[0, 0])], signal=0)
        found[edition] = (plan.fingerprint, digest("steps", *weights))
    assert found[3] == (
        "3f309944333a820758c10b784014929bba29079677e95fa24ef41047042c473b",
        "00097c553b9f3ebd402c78bc082374cfb3d32ea920c58d6a08cfdcd079f87276",
    )
    assert found[4][0] != found[3][0] and found[4][1] != found[3][1]


def test_all_versions_of_all_starts_share_the_failure() -> None:
    rules = some_rules()
    whole = sum(2 * rules.lasting_failure(restart) for restart in range(10_000))
    assert 0.999 * (1 - rules.confidence) < whole <= (1 - rules.confidence) * (1 + 1e-9)


@pytest.mark.parametrize("signal", [1, 999, 1000])
def test_a_context_free_value_names_no_output(signal: int) -> None:
    """What no channel drew could say anything: nobody who reads it may take it for a version."""
    rules = some_rules()
    history = VersionHistory(rules)
    plan = LearningPlan.under(history)
    state = plan.begin("ann")
    (event,), _ = plan.step(state, [1], sf.seeded(1))
    assert event.signal == 0
    assert plan.observed(state, [event.released], signal=0).events == (event,)
    with pytest.raises(InvalidParameter, match="outputs before it lead to"):
        plan.observed(state, [event.released], signal=signal)
    answer = Answer("1", "table", 1, "ann", 0, "released", event.released, 1.0, 1.0, signal=0)
    with pytest.raises(CorruptData, match="another version"):
        recall(history, [replace(answer, signal=signal)])
    assert history.count == 0
    recall(history, [answer])
    assert history.count == 1
