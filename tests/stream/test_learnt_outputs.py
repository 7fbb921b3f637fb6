"""What is inferred from a release that learns: by the channels that were used, start by start."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.purpose import Purpose
from sfumato.models.expectation import Guess, expected, log_likelihoods
from sfumato.models.markov import MarkovChain
from sfumato.models.plausible import PlausibleChains
from sfumato.stream.audit_checks import CheckedBatch
from sfumato.stream.audit_report import AuditReport
from sfumato.stream.drift import OutputOrder, drift_test
from sfumato.stream.leakage_by_start import LeakageByStart
from sfumato.stream.learning import emissions_of, learn
from sfumato.stream.learning_plan import LearningPlan
from sfumato.stream.learning_rules import LearningRules
from sfumato.stream.model_versions import ModelVersion
from sfumato.stream.recovered_counts import BY_ESTIMATE, Population
from sfumato.stream.recovery import recover
from sfumato.stream.released_tracks import ReleasedTracks
from sfumato.stream.version_history import VersionHistory, _Learnt
from sfumato.tables.problems import BadTable
from tests.oracles.hidden_sequences import counts, switching
from tests.stream.test_other_truth import a_chain_within

NAMES = ("ann", "bob")
STICKY = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]], [0.6, 0.4])
LOOSE = MarkovChain.from_matrix([[0.3, 0.7], [0.6, 0.4]], [0.5, 0.5])


def rules_of(size: int = 2) -> LearningRules:
    alphabet = sf.Alphabet.of_size(size)
    return LearningRules(
        alphabet,
        sf.PerStep(sf.SIP(1.5)),
        sf.loss.hamming(alphabet),
        first=3,
        scouts=0,
        purpose=Purpose.SIMULATION,
    )


def moving(number: int, values: int, chain: MarkovChain, radius: float = 0.05) -> ModelVersion:
    chains = PlausibleChains.from_radius(chain, radius, 0.95)
    return ModelVersion(number, values, 1, 1, chains, None, moves=True, remark="")


def alarm(number: int, values: int) -> ModelVersion:
    told = (number, values, 1, 1, None, None)
    return ModelVersion(*told, moves=False, remark="changed", restarts=True)


class Scripted(VersionHistory):
    """A history whose versions are given beforehand, each from its count of values on."""

    def __init__(self, rules: LearningRules, made: Sequence[ModelVersion]) -> None:
        super().__init__(rules)
        self._made = tuple(made)
        self._learnt = self._looked()

    def _looked(self) -> _Learnt:
        now = tuple(one for one in self._made if one.values <= self._count)
        marks, known = self._learnt.marks, len(self._learnt.versions)
        if any(version.restarts for version in now[known:]):
            marks = (*marks, {name: len(left) for name, left in self._outputs.items()})
        following = min((one.values for one in self._made[len(now) :]), default=1 << 60)
        return _Learnt(following, now, marks)


MOVES = (moving(1, 3, STICKY, 0.2), moving(2, 7, STICKY))
LEARNT = (STICKY, LOOSE)
CHANGES = (*MOVES, alarm(3, 9), moving(4, 12, LOOSE))


class Left:
    """A release, what left, and the rows of the channels that were used, as they were drawn."""

    def __init__(self, versions: Sequence[ModelVersion], moments: int, seed: int = 1) -> None:
        self.plan = LearningPlan.under(Scripted(rules_of(), versions))
        self.events: dict[str, list[sf.Event]] = {name: [] for name in NAMES}
        self.told: dict[str, list[list[float]]] = {name: [] for name in NAMES}
        self.rows: dict[str, list[Floats]] = {name: [] for name in NAMES}
        states = {name: self.plan.begin(name) for name in NAMES}
        truth, coins = np.random.default_rng(seed), sf.seeded(seed)
        for _ in range(moments):
            for name in NAMES:
                found = self.plan.prepare(states[name], 1)
                assert found is not None
                value = int(truth.integers(2))
                (event,), states[name] = self.plan.step(states[name], [value], coins)
                said = self.plan.rules.told_by(event.signal or 0)[1]
                output = found.output(np.array([event.released]), said)
                assert output is not None
                self.told[name].append(found.design.channel.likelihood(output).tolist())
                self.rows[name].append(found.design.channel.probabilities)
                self.events[name].append(event)
                self.plan.history.add(name, int(str(event.released)))

    @property
    def parts(self) -> list[int]:
        """The start of each moment, of either stream: the alarm comes after 9 values of both."""
        restarts = [one.values for one in self.plan.history.versions() if one.restarts]
        return [
            sum(2 * moment + (name == "bob") >= restart for restart in restarts)
            for name in NAMES
            for moment in range(len(self.told[name]))
        ]


@pytest.mark.parametrize(
    ("versions", "chains"),
    [((), [None]), (MOVES, [STICKY]), (CHANGES, [STICKY, LOOSE])],
    ids=["context-free", "two versions", "a change"],
)
def test_what_is_recovered_is_what_all_sequences_say_through_the_channels_used(
    versions: Sequence[ModelVersion], chains: list[MarkovChain | None]
) -> None:
    left = Left(versions, 8)
    even = left.plan.model
    assert isinstance(even, MarkovChain)
    known = [even if chain is None else chain for chain in chains]
    initials = [chain.initial.ravel().tolist() for chain in known]
    rows = [chain.transition().tolist() for chain in known]
    found, parts, flows = recover(left.events, left.plan), left.parts, np.zeros((2, 2))
    signals = {event.signal or 0 for events in left.events.values() for event in events}
    numbers = {left.plan.rules.told_by(signal)[0] for signal in signals}
    assert numbers == {0, *(one.number for one in versions if one.moves)}
    for place, name in enumerate(NAMES):
        joint = switching(initials, rows, parts[8 * place :][:8], left.told[name])
        total, posterior = sum(joint.values()), np.zeros((8, 2))
        for path, weight in joint.items():
            for moment, value in enumerate(path):
                posterior[moment, value] += weight / total
            for one, other in pairwise(path):
                flows[one, other] += weight / total
        np.testing.assert_allclose(found.posterior(name), posterior, atol=1e-12)
        best = max(joint, key=lambda path: joint[path])
        assert tuple(found.likeliest()[found.of(name)].tolist()) == best
    crowd = Population(found)
    np.testing.assert_allclose(crowd.flows().values, flows, atol=1e-12)
    assert crowd.counts().assumes == BY_ESTIMATE


def test_drawn_tracks_are_as_probable_as_the_outputs_make_them_over_a_change() -> None:
    left = Left(CHANGES, 8)
    found = recover(left.events, left.plan)
    for (first, stop, tracks), name in zip(found.draws(4_000, 3), NAMES, strict=True):
        assert tracks.max() == 1
        mean = np.stack([(tracks == value).mean(axis=0) for value in range(2)], axis=1)
        assert stop - first == 8
        np.testing.assert_allclose(mean, found.posterior(name), atol=0.035)


@pytest.mark.parametrize("versions", [MOVES, CHANGES], ids=["two versions", "a change"])
def test_expected_counts_are_those_of_all_sequences_through_the_channels_used(
    versions: Sequence[ModelVersion],
) -> None:
    """After a change nothing is learnt from what left before it."""
    left = Left(versions, 8)
    tracks = ReleasedTracks.of(left.events, left.plan.model.alphabet)
    emissions, parts = emissions_of(tracks, left.plan), np.array(left.parts).reshape(2, 8)
    told: list[list[dict[tuple[int, ...], float] | None]] = [
        [
            {(0,): one[0], (1,): one[1]}
            for one, part in zip(left.told[name], parts[place], strict=True)
            if part == parts.max()
        ]
        for place, name in enumerate(NAMES)
    ]
    guess = Guess(np.array([0.7, 0.3]), np.array([[0.8, 0.2], [0.4, 0.6]]))
    initial = {(value,): float(guess.initial[value]) for value in range(2)}
    rows = {(value,): guess.moves[value].tolist() for value in range(2)}
    starts, moves, score = counts(initial, rows, told, 2)
    found = expected(guess, emissions)
    np.testing.assert_allclose(found.starts, [starts[(0,)], starts[(1,)]], atol=1e-12)
    due = [[moves[(one,), other] for other in range(2)] for one in range(2)]
    np.testing.assert_allclose(found.moves, due, atol=1e-12)
    chain = MarkovChain.from_matrix(guess.moves, guess.initial)
    assert log_likelihoods(emissions, chain).sum() == pytest.approx(score)


def test_what_was_learnt_says_what_it_left_out() -> None:
    left = Left(CHANGES, 40)
    found = learn(left.events, left.plan, order=1)
    assert (found.values, found.left_out) == (80 - 9, 9)
    assert found.plausible is None and "versions" in found.remark
    assert learn(Left(MOVES, 40).events, Left(MOVES, 40).plan, order=1).left_out == 0


def capitals(versions: Sequence[ModelVersion], length: int) -> Iterator[tuple[list[Floats], float]]:
    """For every sequence of outputs, how likely values made them, and what bets have at the end."""
    rules = rules_of()
    for outputs in product(range(2), repeat=length):
        plan = LearningPlan.under(Scripted(rules, versions))
        state, events, told = plan.begin("ann"), list[sf.Event](), list[Floats]()
        for output in outputs:
            found = plan.prepare(state, 1)
            assert found is not None
            if output >= len(found.design.channel.outputs):  # the channel never says it
                break
            place = int(found.design.channel.outputs[output])
            symbol = int(found.patterns[place, 0])
            told.append(found.design.channel.likelihood(place))
            number = plan.history.used("ann", state.sequence) or 0
            named = rules.signal(number, place if number else None)
            (event,), state = plan.observe(state, [symbol], signal=named)
            events.append(event)
            plan.history.add("ann", symbol)
        if len(told) == length:
            report = drift_test({"ann": events}, plan, block=2, along=OutputOrder.MOMENTS)
            yield told, math.exp(report.log_capital[-1])


def likelihood(truth: MarkovChain, told: list[Floats]) -> float:
    """How probable outputs are under a chain."""
    forward = truth.initial.ravel() * told[0]
    for one in told[1:]:
        forward = (forward @ truth.transition()) * one
    return float(forward.sum())


def test_bets_against_the_last_set_make_nothing_on_average_whichever_chain_of_it_is_true() -> None:
    versions = (moving(1, 2, STICKY, 0.2), moving(2, 4, STICKY, 0.02))
    near, made = versions[-1].chains, list(capitals(versions, 6))
    assert near is not None

    def mean(stay: float, other: float) -> tuple[float, float]:
        rows = [[stay, 1 - stay], [1 - other, other]]
        truth = MarkovChain.from_matrix(rows, STICKY.initial)
        assert near.contains(truth) == (stay > 0.5)
        weights = np.array([likelihood(truth, told) for told, _ in made])
        return float(weights.sum()), float(weights @ [have for _, have in made])

    for stay, other in ((0.9, 0.8), (0.89, 0.82), (0.91, 0.79)):
        whole, have = mean(stay, other)
        assert whole == pytest.approx(1.0) and 0.5 < have <= 1 + 1e-9
    # Another chain is what they win by: the law above is no matter of course.
    assert mean(0.02, 0.02)[1] > 1.02


def test_the_set_of_a_release_is_tested_and_what_it_lacks_is_told() -> None:
    left = Left(CHANGES, 60)
    found = drift_test(left.events, left.plan, along=OutputOrder.MOMENTS, block=50)
    assert (found.version, found.values) == (4, 120 - 9)
    assert found.missed == pytest.approx(0.05) and found.tested > 0.5  # any first value
    given = PlausibleChains.from_radius(LOOSE, 0.01)
    asked = drift_test(left.events, left.plan, plausible=given, along=OutputOrder.MOMENTS)
    assert asked.version is None and asked.missed == 0.0
    nothing = Left((), 4)
    with pytest.raises(InvalidParameter, match="nothing to test yet"):
        drift_test(nothing.events, nothing.plan)


def test_a_row_under_another_version_and_a_history_that_lacks_outputs_are_refused() -> None:
    left = Left(CHANGES, 8)
    forged = {**left.events, "bob": [replace(one, signal=2_000) for one in left.events["bob"]]}
    with pytest.raises(BadTable, match="signal must be the one that outputs before it lead to"):
        recover(forged, left.plan)
    unnamed = {**left.events, "bob": [replace(one, signal=None) for one in left.events["bob"]]}
    with pytest.raises(BadTable, match="signal must be the one"):
        learn(unnamed, left.plan)
    empty = LearningPlan.under(Scripted(rules_of(), CHANGES))
    with pytest.raises(BadTable, match="what left before is not known"):
        recover(left.events, empty)


def told_to(
    truths: Sequence[MarkovChain], begins: Sequence[Floats], left: Left, place: int
) -> list[float]:
    """What each step told who follows one chain in each start, by the plain rule of Bayes."""
    name, parts, found = NAMES[place], left.parts[8 * place :][:8], list[float]()
    belief = begins[0]
    for moment, (rows, told) in enumerate(zip(left.rows[name], left.told[name], strict=True)):
        if moment and parts[moment] != parts[moment - 1]:
            belief = begins[parts[moment]]
        mean = belief @ rows
        found.append(float(np.log(np.maximum(rows.max(0) / mean, mean / rows.min(0))).max()))
        belief = belief * np.array(told)
        belief = (belief / belief.sum()) @ truths[parts[moment]].transition()
    return found


def long_run(chain: MarkovChain) -> Floats:
    belief = np.full(2, 0.5)
    for _ in range(400):
        belief = belief @ chain.transition()
    return np.asarray(belief)


def test_the_three_numbers_of_each_start_are_those_of_who_knows_what_was_learnt_in_it() -> None:
    left = Left(CHANGES, 8)
    check, report = LeakageByStart(left.plan), AuditReport()
    for name in NAMES:
        state = left.plan.begin(name)
        for event in left.events[name]:
            seen = left.plan.observed(state, [event.released], signal=event.signal)
            check.see(CheckedBatch.of(state, seen))
            state = seen.following
    check.finish(report)
    assert report.truth is not None and len(report.starts) == 2
    rng = np.random.default_rng(2)
    for place, name in enumerate(NAMES):
        begins = [STICKY.initial.ravel(), long_run(LOOSE)]
        under = np.array(told_to([STICKY, LOOSE], begins, left, place))
        parts, whole = np.array(left.parts[8 * place :][:8]), report.truth.streams[name]
        own = [part.streams[name] for part in report.starts]
        for start in range(2):
            assert own[start].truth == pytest.approx(under[parts == start].sum(), abs=1e-9)
            assert own[start].steps == (parts == start).sum()
        assert whole.truth == pytest.approx(under.sum(), abs=1e-9)
        assert under[whole.worst_at] == pytest.approx(under.max())
        worst = np.array([own[start].over_set or 0.0 for start in range(2)])
        free = [event.ldp.epsilon for event in left.events[name]]
        assert whole.ldp == pytest.approx(sum(free))
        for _ in range(40):  # any chain of each set, and after the change any belief
            chains = [a_chain_within(PlausibleChains.from_radius(one, 0.05), rng) for one in LEARNT]
            begun = [chains[0].initial.ravel(), rng.dirichlet([0.3, 0.3])]
            exact = np.array(told_to(chains, begun, left, place))
            assert np.all([exact[parts == k].sum() for k in range(2)] <= worst + 1e-9)


def test_a_start_in_which_nothing_was_learnt_leaks_what_holds_whatever_is_true() -> None:
    left = Left((*MOVES, alarm(3, 9)), 8)
    check, report = LeakageByStart(left.plan), AuditReport()
    state = left.plan.begin("ann")
    for event in left.events["ann"]:
        seen = left.plan.observed(state, [event.released], signal=event.signal)
        check.see(CheckedBatch.of(state, seen))
        state = seen.following
    check.finish(report)
    last = report.starts[-1].streams["ann"]
    assert last.truth == last.over_set == last.ldp == pytest.approx(last.steps * 1.5)
