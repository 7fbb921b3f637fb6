"""Releases under a mixture of chains: tables in, tables out, audited, recovered, learnt."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.errors import InvalidParameter
from sfumato.models.clustered_chain import ClusteredChain
from sfumato.models.markov import MarkovChain
from sfumato.models.stream_model import StreamModel
from sfumato.service.job_rules import made_rules
from sfumato.store.live import Answered, Asked
from sfumato.store.memory import MemoryStore
from sfumato.store.protocol import Job
from sfumato.stream.cluster_report import ClusteredFitReport, cluster_words
from sfumato.stream.fit_model import fit_table
from sfumato.stream.fleet import Fleet
from sfumato.stream.hidden_chain import HiddenChain
from sfumato.stream.live_release import open_release
from sfumato.stream.mixture_learning import learn_mixture
from sfumato.stream.recovered_loss import smoothed
from sfumato.stream.release_document import parse_spec
from sfumato.tables.cells import Missing
from sfumato.tables.readers import Table
from tests.models.test_cluster_fitting import people
from tests.models.test_clustered_chain import joint_of_paths, joint_of_values, mixture
from tests.oracles.phased_sequences import told_step_by_step
from tests.shell.running import call
from tests.stream.test_periodic_plan import BUDGETS

NAMES = ("home", "work", "park")


def history(tmp_path: Path, streams: int = 60, length: int = 20, seed: int = 1) -> Table:
    """Streams of people who stay and of people who go round, as a table."""
    _, paths = people(seed, streams, length)
    rows = [f"u{k},{NAMES[x]}" for k, path in enumerate(paths) for x in path.tolist()]
    file = tmp_path / f"history{seed}.csv"
    file.write_text("\n".join(["stream,value", *rows]) + "\n")
    return Table.at(str(file))


def test_a_table_makes_a_mixture_and_says_what_it_is_worth(tmp_path: Path) -> None:
    model, report = fit_table(history(tmp_path), clusters="auto")
    assert isinstance(model.chain, ClusteredChain)
    assert isinstance(report, ClusteredFitReport)
    assert len(report.clusters) == len(model.chain.chains) == 2
    assert report.gain > 4 * report.gain_error > 0
    assert sum(cluster.streams for cluster in report.clusters) == pytest.approx(60)
    assert report.clusters[0].stays > 0.6 > 0.3 > report.clusters[1].stays
    words = cluster_words(report)
    assert "predicted better" in words[-1]
    assert len(words) == 3


def test_few_streams_are_warned_about_for_their_own_sake(tmp_path: Path) -> None:
    _, report = fit_table(history(tmp_path, streams=15), clusters=3)
    assert any("learns much about them" in warning for warning in report.warnings)


def test_people_who_do_not_differ_are_told_so(tmp_path: Path) -> None:
    chain, coins = MarkovChain.from_matrix(0.1 + 0.7 * np.eye(3)), sf.seeded(3)
    rows = [f"u{k},{NAMES[x]}" for k in range(30) for x in chain.sample(20, coins).tolist()]
    file = tmp_path / "same.csv"
    file.write_text("\n".join(["stream,value", *rows]) + "\n")
    _, report = fit_table(Table.at(str(file)), clusters=2)
    assert any("no better than one chain" in warning for warning in report.warnings)
    with pytest.raises(InvalidParameter, match="no mixture predicts streams held out better"):
        fit_table(Table.at(str(file)), clusters="auto")


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        ({"clusters": 1}, "--clusters must be"),
        ({"clusters": "many"}, "--clusters must be a number from 2 on, or auto"),
        ({"clusters": 2, "order": 2}, "--order must not come with --clusters"),
        ({"clusters": 2, "batch": 2}, "--batch must not come with --clusters"),
        ({"clusters": 2, "missing": Missing.SKIP}, "--missing must not come with --clusters"),
    ],
)
def test_what_no_mixture_is_fitted_to_is_refused(
    tmp_path: Path, asked: dict[str, Any], rule: str
) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        fit_table(history(tmp_path, streams=12), **asked)


def test_a_private_fit_makes_no_mixture(tmp_path: Path) -> None:
    table = history(tmp_path, streams=12)
    places, model = ",".join(NAMES), tmp_path / "private.model"
    asked = ("--private", 5, "--values", places, "--clusters", 2, "-o", model)
    result = call("fit", table.path, *asked)
    assert result.code == 2
    assert "--clusters must not come with --private" in result.err
    assert not model.exists()


def test_a_release_with_a_mixture_says_whether_it_beats_silence(tmp_path: Path) -> None:
    model, live = tmp_path / "kinds.model", history(tmp_path, 4, 6, seed=2)
    assert call("fit", history(tmp_path, streams=20).path, "--clusters", 2, "-o", model).code == 0
    given = ("release", live.path, "-m", model, "--epsilon")
    told = call(*given, 2, "--json", "-o", tmp_path / "much.csv").document
    assert told["expected_loss"] < told["silent_loss"]
    kept = sf.load(model)
    assert isinstance(kept, StreamModel) and isinstance(kept.chain, ClusteredChain)
    marginals = np.zeros((6, 3))
    for share, own in zip(kept.chain.shares, kept.chain.chains, strict=True):
        belief = share * own.initial
        for moment in range(6):  # clusters hardly ever change
            marginals[moment] += belief
            belief = belief @ own.transition()
    silent = (1 - marginals.max(axis=1)).mean()
    assert told["silent_loss"] == pytest.approx(silent, rel=1e-4)
    said = call(*given, 1e-6, "-o", tmp_path / "little.csv").err
    assert "AS GOOD AS SILENT, OR WORSE: under the model" in said


def plan_of(model: ClusteredChain, **asked: Any) -> sf.Plan:
    return sf.Plan(
        model,
        sf.PerStep(sf.SIP(0.7)),
        sf.loss.hamming(model.alphabet),
        purpose=sf.Purpose.SIMULATION,
        **asked,
    )


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("seed", range(3))
def test_totals_windows_and_bursts_are_kept_in_the_joint_table(
    budget: sf.Horizon | sf.Window, seed: int
) -> None:
    """Clusters are summed out of the oracle's table: channels look at values alone."""
    model, rng = mixture(seed, size=2), np.random.default_rng(seed)
    plan = sf.Plan(model, budget, sf.loss.hamming(model.alphabet))
    state, left, steps = plan.begin("ann"), list[sf.Event](), list[Any]()
    for _ in range(4):
        design = plan.prepare(state)
        assert design is not None
        channel = design.design.channel
        column = int(rng.integers(len(channel.outputs)))
        label = model.alphabet.labels[int(channel.outputs[column])]
        (event,), state = plan.observe(state, [label])
        left.append(event)
        steps.append((channel.weights.tolist(), column))
    joint = {path: Fraction(mass) for path, mass in joint_of_values(model, 4).items()}
    exact, width = told_step_by_step(joint, steps), getattr(budget, "width", 4)
    for event, told in zip(left, exact, strict=True):
        assert -1e-12 <= event.sip.epsilon - told <= 1e-11
    for first in range(5 - width):
        assert sum(exact[first : first + width]) <= budget.sip.epsilon + 1e-12


def test_fleets_and_policies_are_refused_by_name() -> None:
    model = mixture(2)
    with pytest.raises(InvalidParameter, match="plan must have a policy"):
        Fleet(plan_of(model), ["a", "b"])
    with pytest.raises(InvalidParameter, match="chain must be one chain for all streams"):
        sf.compile_policy(model, sf.loss.hamming(model.alphabet), 0.5)  # type: ignore[arg-type]


def test_posteriors_are_those_of_the_list_of_all_hidden_paths() -> None:
    model, rng = mixture(7, clusters=2), np.random.default_rng(1)
    rows = rng.uniform(0.1, 1.0, (3, 3))
    found = smoothed(model, [(1, row) for row in rows])
    exact = np.zeros((3, 3))
    for path, mass in joint_of_paths(model, 3).items():
        told = mass * math.prod(rows[t, x] for t, (_, x) in enumerate(path))
        for moment, (_, value) in enumerate(path):
            exact[moment, value] += told
    assert found == pytest.approx(exact / exact.sum(axis=1, keepdims=True), rel=1e-9)


def test_recovery_of_batches_and_of_vast_mixtures_is_refused_by_name() -> None:
    with pytest.raises(InvalidParameter, match="leave value by value"):
        HiddenChain.of(mixture(1), span=2)
    vast = MarkovChain.from_matrix(np.full((700, 700), 1 / 700))
    with pytest.raises(InvalidParameter, match="at most 2,000 pairs of value and cluster"):
        HiddenChain.of(ClusteredChain(np.full(3, 1 / 3), (vast,) * 3))


def test_jobs_that_need_one_chain_refuse_a_mixture(tmp_path: Path) -> None:
    model, _ = fit_table(history(tmp_path, streams=15), clusters=2)
    with pytest.raises(InvalidParameter, match="fit it without --clusters"):
        _ = model.single_values
    spec = sf.stream.ReleaseSpec(epsilon=0.5, batch=2)
    with pytest.raises(InvalidParameter, match="fit it without --clusters"):
        spec.plan(model)
    with pytest.raises(InvalidParameter, match="come with a chain of order 1"):
        sf.stream.ReleaseSpec(epsilon=0.5, robust=0.1, method="step-wise").plan(model)


def released(plan: sf.Plan, paths: list[Any], seed: int = 9) -> dict[str, list[Any]]:
    left: dict[str, list[Any]] = {}
    for number, path in enumerate(paths):
        state, events = plan.begin(f"u{number}"), list[Any]()
        for value in path.tolist():
            (event,), state = plan.step(state, [value], sf.seeded(seed))
            events.append(event)
        left[f"u{number}"] = events
    return left


def uniform_plan() -> sf.Plan:
    chain = MarkovChain.from_matrix(np.full((3, 3), 1 / 3))
    return sf.Plan(
        chain,
        sf.PerStep(sf.SIP(2.0)),
        sf.loss.hamming(chain.alphabet),
        method=sf.Method.RANDOMIZED_RESPONSE,
        purpose=sf.Purpose.SIMULATION,
    )


def test_kinds_of_people_are_learnt_from_what_left() -> None:
    plan = uniform_plan()
    _, paths = people(5, 150, 20)
    found = learn_mixture(released(plan, paths), plan, "auto")
    assert len(found.chain.chains) == 2
    assert found.people_differ
    assert found.streams == 150
    again = learn_mixture(released(plan, paths), plan, 2)
    assert again.chain.fingerprint == found.chain.fingerprint


def test_people_who_do_not_differ_are_one_kind_in_what_left() -> None:
    plan, coins = uniform_plan(), sf.seeded(6)
    chain = MarkovChain.from_matrix(0.1 + 0.7 * np.eye(3))
    left = released(plan, [chain.sample(15, coins) for _ in range(60)])
    with pytest.raises(InvalidParameter, match="no mixture predicts the outputs"):
        learn_mixture(left, plan, "auto")


def test_a_mixture_is_learnt_from_what_left_under_a_mixture() -> None:
    model, paths = people(8, 24, 12)
    plan = plan_of(model, method=sf.Method.RANDOMIZED_RESPONSE)
    found = learn_mixture(released(plan, paths), plan, 2)
    assert isinstance(found.chain, ClusteredChain)
    with pytest.raises(InvalidParameter, match="learn --clusters"):
        sf.stream.learn(released(plan, paths), plan)


def test_a_model_of_one_stream_table_is_stored_with_its_mixture(tmp_path: Path) -> None:
    model, _ = fit_table(history(tmp_path, streams=15), clusters=2)
    back = sf.store.from_bytes(sf.store.to_bytes(model), StreamModel)
    assert back.chain.fingerprint == model.chain.fingerprint


def test_live_events_leave_the_belief_that_everybody_computes(tmp_path: Path) -> None:
    """What a service answers with: states are those of whoever sees the outputs."""
    model, _ = fit_table(history(tmp_path), clusters=2)
    made = made_rules("release", {"epsilon": 0.7}, model, None)
    rules = made.document.encode()
    assert made.policy is None

    def opened(plan: str, job: Job, text: str) -> MemoryStore:
        return MemoryStore(plan=plan, job=job, rules=text)

    run, store = open_release(rules, model, None, opened, sf.secure(), "x")
    plan = parse_spec(rules, "rules").plan(model)
    seen = plan.begin("ann")
    for number in range(8):
        (reply,) = run.answer([Asked(f"e{number}", "ann", NAMES[number % 3])])
        assert isinstance(reply, Answered)
        (answer,) = reply.answers
        assert isinstance(answer.released, str)
        _, seen = plan.observe(seen, [answer.released])
    position = store.position("ann")
    assert position is not None and position.state is not None
    state = sf.store.from_bytes(position.state, sf.stream.StreamState)
    assert seen.belief.joint.tolist() == state.belief.joint.tolist()
    assert seen.ledger.sip == state.ledger.sip > 0


def test_clusters_of_streams_are_those_of_the_belief_after_their_last_output() -> None:
    model, paths = people(8, 6, 7)
    plan = plan_of(model)
    left = released(plan, paths)
    found = sf.stream.recover(left, plan).clusters()
    for row, events in zip(found, left.values(), strict=True):
        state = plan.begin(events[0].stream)
        for event in events[:-1]:
            _, state = plan.observe(state, [event.released])
        last = plan.observed(state, [events[-1].released])
        assert last.design is not None and last.output is not None
        likelihood = last.design.design.channel.likelihood(last.output)
        due = model.clusters(state.belief.update(likelihood))
        assert row == pytest.approx(due, rel=1e-9)
    with pytest.raises(InvalidParameter, match="be a mixture of chains, to have clusters"):
        sf.stream.recover(released(uniform_plan(), paths), uniform_plan()).clusters()
