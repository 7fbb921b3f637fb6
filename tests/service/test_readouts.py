"""Readouts of streams: every figure is what brute force, or the ledger itself, says."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import asdict

from sfumato.core.errors import InvalidParameter
from sfumato.models.markov import MarkovChain
from sfumato.service.readable_release import ReadableRelease, SeriesRules, StreamRules
from sfumato.service.readout_queries import (
    BeliefQuery,
    LastQuery,
    RecoveredQuery,
    ReleaseQuery,
    SearchQuery,
    StreamsQuery,
)
from sfumato.service.readout_routes import READOUT_ROUTES
from sfumato.service.readouts import NoAnswers, Readouts
from sfumato.store.postgres import PostgresStore
from sfumato.store.protocol import Answer, Identity, Job
from sfumato.stream.audit_total import total
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.temporal.over_time import temporal_leakage
from tests.oracles.paths import Floats, marginal, path_weights
from tests.service.example_releases import (
    BITS,
    PLACES,
    FixedReleases,
    answer_stream,
    series_release,
    sticky,
    stream_release,
    temporal_release,
    walked,
)

ASKED = ReleaseQuery()
LENGTH = 7


def told_by(release: ReadableRelease, answers: list[Answer]) -> list[Floats | None]:
    """How likely every value made each output, from the channels that the plan makes."""
    rules = release.rules
    assert isinstance(rules, StreamRules)
    plan, state, found = rules.plan, rules.plan.begin("ann"), list[Floats | None]()
    for answer in answers:
        design = plan.prepare(state)
        assert design is not None and isinstance(answer.released, str)
        place = plan.model.alphabet.index(answer.released)
        found.append(design.design.channel.likelihood(place))
        _, state = plan.observe(state, [answer.released])
    return found


@pytest.fixture(scope="module")
def followed() -> tuple[ReadableRelease, list[Answer], Readouts]:
    model = sticky(BITS, 0.9)
    release = stream_release(ReleaseSpec(epsilon=0.7), model)
    answers = answer_stream(release, "ann", walked(model, LENGTH, 3))
    return release, answers, Readouts(FixedReleases([release]))


def chain_of(release: ReadableRelease) -> MarkovChain:
    assert release.model is not None and isinstance(release.model.chain, MarkovChain)
    return release.model.chain


def test_belief_is_that_of_all_paths_given_outputs_so_far(
    followed: tuple[ReadableRelease, list[Answer], Readouts],
) -> None:
    release, answers, readouts = followed
    found = readouts.belief("ann", BeliefQuery())
    told, chain = told_by(release, answers), chain_of(release)
    assert found.steps == list(range(LENGTH)) and found.symbols == list(BITS)
    for moment, shown in enumerate(found.probabilities):
        so_far = [*told[: moment + 1]]
        weights = path_weights(chain.initial, chain.transition(), so_far)
        assert np.allclose(np.array(shown) / 10_000, marginal(weights, moment, 2), atol=1e-4)


def test_columns_are_means_of_moments(
    followed: tuple[ReadableRelease, list[Answer], Readouts],
) -> None:
    readouts = followed[2]
    fine = np.array(readouts.belief("ann", BeliefQuery()).probabilities)
    coarse = readouts.belief("ann", BeliefQuery(last=6, columns=3))
    assert coarse.width == 2 and coarse.steps == [1, 3, 5]
    means = fine[1:].reshape(3, 2, 2).mean(axis=1)
    assert np.allclose(coarse.probabilities, means, atol=1.0)


def test_recovered_values_are_those_of_all_paths_given_all_outputs(
    followed: tuple[ReadableRelease, list[Answer], Readouts],
) -> None:
    release, answers, readouts = followed
    found = readouts.recovered("ann", RecoveredQuery(cover=0.8))
    chain = chain_of(release)
    weights = path_weights(chain.initial, chain.transition(), told_by(release, answers))
    for value in found.values:
        law = marginal(weights, value.sequence, 2)
        assert value.guess == BITS[int(law.argmax())]
        assert math.isclose(value.probability, law.max(), rel_tol=1e-9)
        assert math.isclose(value.loss, law.min(), rel_tol=1e-9)
        assert len(value.credible) == (1 if law.max() >= 0.8 else 2)


def test_certificate_is_the_sum_of_the_ledger_and_the_most_that_one_value_told(
    followed: tuple[ReadableRelease, list[Answer], Readouts],
) -> None:
    release, answers, readouts = followed
    found = readouts.certificate("ann", ASKED)
    assert found.passed and found.checked == found.answers == LENGTH
    exact = math.fsum(answer.leakage for answer in answers)
    assert found.sip is not None and exact <= found.sip <= exact * (1 + 1e-12)
    assert found.worst_step == max(answer.leakage for answer in answers)
    chain = chain_of(release)
    nothing = path_weights(chain.initial, chain.transition(), [None] * LENGTH)
    weights = path_weights(chain.initial, chain.transition(), told_by(release, answers))
    worst = max(
        float(np.abs(np.log(marginal(weights, t, 2) / marginal(nothing, t, 2))).max())
        for t in range(LENGTH)
    )
    assert found.one_value is not None and worst <= found.one_value <= worst + 1e-9


def test_releases_of_one_stream_are_told_together_by_the_rule_of_audits() -> None:
    model, other = sticky(BITS, 0.9), sticky(BITS, 0.8)
    specs = (("first", 0.3, model), ("second", 0.4, model), ("third", 0.7, other))
    made = [stream_release(ReleaseSpec(epsilon=each), one, name) for name, each, one in specs]
    for place, release in enumerate(made):
        answer_stream(release, "ann", walked(model, 3 + place, 3))
    answer_stream(made[1], "bob", ["no"])
    readouts = Readouts(FixedReleases(made))
    charged = [release.store.position("ann") for release in made]
    parts = [(one.leakage, one.model_free) for one in charged if one is not None]
    # Of a release under another model only what holds whatever the model is known.
    due = total([*parts[:2], (parts[2][1], parts[2][1])])
    for found in (readouts.budget("ann", ASKED), readouts.certificate("ann", ASKED)):
        assert [(each.release, each.answers) for each in found.others] == [
            ("second", 4),
            ("third", 5),
        ]
        assert [(each.sip, each.ldp) for each in found.others] == parts[1:]
        assert found.together is not None and found.together.releases == 3
        assert (found.together.sip, found.together.ldp) == pytest.approx(due)
        assert found.together.ldp >= math.fsum(ldp for _, ldp in parts)
    words = readouts.certificate("ann", ASKED).guarantees
    assert words[0].startswith("in this release") and "all 3 releases" in words[3]
    bob = readouts.certificate("bob", ReleaseQuery(release="second"))
    assert bob.others == [] and bob.together is None and len(bob.guarantees) == 3


def test_no_sum_is_told_of_releases_whose_charges_are_not_in_the_same_unit() -> None:
    model = sticky(BITS, 0.9)
    city = stream_release(ReleaseSpec(epsilon=0.7), model)
    answer_stream(city, "meter", ["no"])
    found = Readouts(FixedReleases([city, series_release(9, 4)])).certificate("meter", ASKED)
    assert [each.release for each in found.others] == ["energy"] and found.together is None
    assert "no sum" in found.guarantees[-1]


def test_a_charge_that_is_not_the_channels_fails_the_certificate() -> None:
    model = sticky(BITS, 0.9)
    honest = stream_release(ReleaseSpec(epsilon=0.7), model)
    answers = answer_stream(honest, "ann", walked(model, 4, 3))
    position = honest.store.position("ann")
    assert position is not None
    forged = stream_release(ReleaseSpec(epsilon=0.7), model)
    cheaper = [replace(answer, leakage=answer.leakage / 2) for answer in answers]
    forged.store.commit(cheaper, [position])
    found = Readouts(FixedReleases([forged])).certificate("ann", ASKED)
    assert not found.passed and found.checked == 0 and "cost" in found.problems[0]


def test_following_goes_on_where_it_stopped() -> None:
    model = sticky(BITS, 0.9)
    release = stream_release(ReleaseSpec(epsilon=0.5), model)
    readouts = Readouts(FixedReleases([release]))
    with pytest.raises(NoAnswers):
        readouts.certificate("ann", ASKED)
    answer_stream(release, "ann", walked(model, 3, 1))
    assert readouts.certificate("ann", ASKED).checked == 3
    answer_stream(release, "ann", walked(model, 2, 2), seed=2)
    fresh = Readouts(FixedReleases([release])).certificate("ann", ASKED)
    assert readouts.certificate("ann", ASKED) == fresh and fresh.checked == 5


def test_a_total_leaves_what_was_not_spent_until_its_steps_are_over() -> None:
    model = sticky(BITS, 0.9)
    spec = ReleaseSpec(budget=4.0, horizon=6, ldp=9.0, when_exhausted="suppress")
    release = stream_release(spec, model)
    readouts = Readouts(FixedReleases([release]))
    new = readouts.budget("ann", ASKED)
    assert (new.model.left, new.model.limit, new.steps_left) == (4.0, 4.0, 6)
    assert new.model.next is not None and 0.6 < new.model.next <= 4.0 / 6
    answers = answer_stream(release, "ann", walked(model, 4, 1))
    spent = math.fsum(answer.leakage for answer in answers)
    found = readouts.budget("ann", ASKED)
    assert found.model.left is not None and found.model_free.left is not None
    assert found.model.left <= 4.0 - spent < found.model.left + 1e-9
    assert found.model_free.left <= 9.0 - sum(answer.model_free for answer in answers)
    assert found.one_value == 4.0 and found.rule.startswith("4 nats over 6 steps")
    answer_stream(release, "ann", walked(model, 2, 2), seed=2)
    over = readouts.budget("ann", ASKED)
    assert over.exhausted and over.steps_left == 0 and over.model.left == 0.0


def test_a_window_leaves_what_its_other_steps_did_not_spend() -> None:
    model = sticky(BITS, 0.9)
    release = stream_release(ReleaseSpec(budget=2.0, window=4), model)
    answers = answer_stream(release, "ann", walked(model, 9, 1))
    found = Readouts(FixedReleases([release])).budget("ann", ASKED)
    assert [step.sequence for step in found.in_window] == [6, 7, 8]
    assert [step.sip for step in found.in_window] == [answer.leakage for answer in answers[6:]]
    spent = math.fsum(answer.leakage for answer in answers[6:])
    assert found.model.left is not None and found.model.next is not None
    assert found.model.left <= 2.0 - spent < found.model.left + 1e-9
    assert found.model.next <= found.model.left and found.one_value is not None
    told = Readouts(FixedReleases([release])).certificate("ann", ASKED)
    worst = max(math.fsum(a.leakage for a in answers[first : first + 4]) for first in range(6))
    assert told.worst_window is not None and worst <= told.worst_window <= 2.0


def test_a_bound_at_every_step_is_never_used_up() -> None:
    release = stream_release(ReleaseSpec(epsilon=0.3), sticky(BITS, 0.9))
    found = Readouts(FixedReleases([release])).budget("nobody", ASKED)
    assert (found.answers, found.exhausted, found.model.left) == (0, False, None)
    assert found.model.next == 0.3 and found.model.limit is None


def test_batches_have_a_belief_of_each_value() -> None:
    model = sticky(BITS, 0.9)
    release = stream_release(ReleaseSpec(epsilon=0.5, batch=2), model)
    answer_stream(release, "ann", walked(model, 6, 1))
    readouts = Readouts(FixedReleases([release]))
    rows = np.array(readouts.belief("ann", BeliefQuery()).probabilities)
    assert rows.shape == (6, 2) and np.allclose(rows.sum(axis=1), 10_000, atol=2)
    assert readouts.certificate("ann", ASKED).passed


def test_sums_of_leakage_are_those_of_the_ledger() -> None:
    model = sticky(PLACES, 0.8)
    release = stream_release(ReleaseSpec(epsilon=0.4), model)
    answers = answer_stream(release, "ann", walked(model, 12, 1))
    found = Readouts(FixedReleases([release])).leakage("ann", LastQuery(last=5))
    assert [point.sequence for point in found.points] == [7, 8, 9, 10, 11]
    for point in found.points:
        so_far = answers[: point.sequence + 1]
        exact = math.fsum(answer.leakage for answer in so_far)
        assert point.total_sip is not None
        assert exact <= point.total_sip <= exact * (1 + 1e-12)
        assert (point.released, point.time) == (so_far[-1].released, so_far[-1].time)


def test_temporal_leakage_is_that_of_its_charges_in_both_directions() -> None:
    release = temporal_release(9)
    readouts = Readouts(FixedReleases([release]))
    points = readouts.leakage("tram", LastQuery()).points
    rules = release.rules
    losses = rules.spec.losses("tram")  # type: ignore[union-attr]
    due = temporal_leakage([float(point.sip or 0.0) for point in points], *losses)
    assert [point.total for point in points] == due.total.tolist()
    assert [point.backward for point in points] == due.backward.tolist()
    assert [point.forward for point in points] == due.forward.tolist()
    told = readouts.certificate("tram", ASKED)
    assert told.passed and told.one_value == due.event.alpha <= 2.0
    budget = readouts.budget("tram", ASKED)
    assert budget.model.next is not None and budget.model.next > 0 and not budget.exhausted


def test_a_series_runs_out_of_values() -> None:
    readouts = Readouts(FixedReleases([series_release(length=5, values=5)]))
    found = readouts.budget("meter", ASKED)
    assert found.exhausted and found.steps_left == 0 and found.unit == "nats"
    assert found.one_value is not None and 1.9 < found.one_value <= 2.0
    assert found.model_free.limit == found.one_value and found.model_free.spent is None
    told = readouts.certificate("meter", ASKED)
    assert told.passed and "differential privacy" in told.guarantees[0]
    assert readouts.belief("meter", BeliefQuery()).unavailable


def test_a_series_has_its_promise_and_no_charge_in_another_unit() -> None:
    release = series_release(length=9, values=4)
    readouts, rules = Readouts(FixedReleases([release])), release.rules
    assert isinstance(rules, SeriesRules)
    promised = rules.method.guarantee
    certified = readouts.certificate("meter", ASKED)
    documents: list[Any] = [
        readouts.budget("meter", ASKED),
        certified,
        readouts.leakage("meter", LastQuery()),
        readouts.streams(StreamsQuery()),
        readouts.search(SearchQuery()),
        readouts.overview(ASKED),
    ]
    for found in documents:
        assert found.promise is not None and found.promise.level == "user level"
        assert (found.promise.epsilon, found.promise.delta) == (promised.epsilon, promised.delta)
        told = msgspec.json.encode(found)
        assert b'"sip":0' not in told and b'"ldp":0' not in told and b"noise" not in told
    assert (certified.sip, certified.ldp, certified.worst_step) == (None, None, None)


def test_the_sum_of_a_temporal_stream_is_what_holds_whatever_the_matrices() -> None:
    readouts = Readouts(FixedReleases([temporal_release(5)]))
    (line,) = readouts.streams(StreamsQuery()).streams
    assert line.sip is None and line.ldp == pytest.approx(readouts.certificate("tram", ASKED).ldp)
    assert readouts.streams(StreamsQuery()).promise is None


def test_a_series_that_a_constant_may_be_as_near_to_says_so() -> None:
    # Nine values that rise by one each, within noise of many times that.
    readouts = Readouts(FixedReleases([series_release(length=9, values=9)]))
    (remark,) = readouts.certificate("meter", ASKED).remarks
    assert remark.startswith("a constant may be as near to the series: the expected error is")


def test_a_stream_without_answers_has_nothing_to_certify() -> None:
    for release in (
        stream_release(ReleaseSpec(epsilon=0.4), sticky(BITS, 0.9)),
        series_release(9, 2),
        temporal_release(2),
    ):
        readouts = Readouts(FixedReleases([release]))
        for route in READOUT_ROUTES:
            if route.method in ("certificate", "leakage", "belief", "recovered"):
                with pytest.raises(NoAnswers, match="no answers of this stream in this release"):
                    route.answer(readouts, {"stream": "nobody"}, {})
        found = readouts.budget("nobody", ASKED)
        assert (found.answers, found.remark) == (0, "nothing released yet under this name")


def test_streams_are_listed_by_pages() -> None:
    model = sticky(BITS, 0.9)
    release = stream_release(ReleaseSpec(epsilon=0.3), model)
    for name in ("b", "a", "c"):
        answer_stream(release, name, ["no"])
    readouts = Readouts(FixedReleases([release]))
    first = readouts.streams(StreamsQuery(limit=2))
    assert [line.stream for line in first.streams] == ["a", "b"] and first.next == "b"
    assert readouts.streams(StreamsQuery(after="b", limit=2)).next is None


def test_every_route_answers_with_its_document_for_every_job(tmp_path: Path) -> None:
    model = sticky(BITS, 0.9)
    city = stream_release(ReleaseSpec(epsilon=0.4), model, path=tmp_path / "city.ledger")
    answer_stream(city, "ann", walked(model, 5, 1))
    releases = FixedReleases([city, series_release(9, 4), temporal_release(4)])
    readouts = Readouts(releases)
    for name, stream in (("city", "ann"), ("energy", "meter"), ("counts", "tram")):
        for route in READOUT_ROUTES:
            path = {"stream": stream} if "{stream}" in route.path else {}
            found = route.answer(readouts, path, {"release": name})
            assert msgspec.json.decode(msgspec.json.encode(found), type=route.reply) == found
    readouts.close()
    releases.close()


def test_a_ledger_that_nodes_share_is_read_as_one_in_memory(
    shared_database: str, tmp_path: Path
) -> None:
    model, spec = sticky(BITS, 0.9), ReleaseSpec(budget=2.0, window=4)
    alone = stream_release(spec, model)
    front = alone.store.front
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(range(32)))
    secret.chmod(0o600)
    with PostgresStore(
        shared_database, "city", front.plan, job=Job(front.job), rules=front.rules, secret=secret
    ) as store:
        store.begin("test", Identity.EVENT)
        shared = ReadableRelease("city", store, model)
        found = []
        for release in (alone, shared):
            readouts = Readouts(FixedReleases([release]))
            for name in ("ann", "bob"):
                answer_stream(release, name, walked(model, 5, 1))
            documents = [
                readouts.budget("ann", ASKED),
                readouts.certificate("ann", ASKED),
                readouts.belief("bob", BeliefQuery()),
                readouts.overview(ASKED),
                readouts.search(SearchQuery(stream="bob", limit=3)),
            ]
            # A head is that of its own ledger; all else is the same.
            found.append([asdict(one) | {"head": None} for one in documents])
    assert found[0] == found[1]


def test_what_is_asked_is_read_strictly() -> None:
    release = stream_release(ReleaseSpec(epsilon=0.4), sticky(BITS, 0.9))
    readouts = Readouts(FixedReleases([release]))
    for method, query in (
        ("leakage", {"last": "0"}),
        ("leakage", {"last": "many"}),
        ("leakage", {"lats": "5"}),
        ("recovered", {"cover": "1.5"}),
        ("belief", {"columns": "100000"}),
        ("search", {"order": "sideways"}),
        ("search", {"limit": "1000000"}),
        ("plan", {"epsilon": "1,x"}),
        ("plan", {"epsilon": "-1"}),
        ("plan", {"epsilon": ",".join(str(k) for k in range(1, 30))}),
    ):
        (route,) = [one for one in READOUT_ROUTES if one.method == method]
        path = {"stream": "ann"} if "{stream}" in route.path else {}
        with pytest.raises(InvalidParameter):
            route.answer(readouts, path, query)
    with pytest.raises(LookupError):
        readouts.head(ReleaseQuery(release="other"))
    readouts.close()
