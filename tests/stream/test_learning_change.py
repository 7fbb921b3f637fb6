"""Streams that change under a learning release: noticed from what left, and learnt anew."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.arrays import Floats, Ints
from sfumato.core.purpose import Purpose
from sfumato.core.state import StreamState
from sfumato.models.chain_bets import FixedOutputs
from sfumato.models.markov import MarkovChain
from sfumato.models.plausible import PlausibleChains
from sfumato.models.set_bets import left_set, set_gains
from sfumato.store.codec import to_bytes
from sfumato.store.protocol import LedgerMismatch
from sfumato.stream.audit_report import AuditReport
from sfumato.stream.learning_audit import check_kept
from sfumato.stream.learning_plan import LearningPlan
from sfumato.stream.learning_rules import ALARM, LearningRules
from sfumato.stream.version_files import LearntVersions, check_versions, versions_beside
from sfumato.stream.version_history import VersionHistory

BIT = sf.Alphabet.of_size(2)
NEAR = PlausibleChains.from_radius(MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]]), 0.05)


def rules_for(epsilon: float = 2.0, first: int = 1_000) -> LearningRules:
    return LearningRules(
        BIT,
        sf.PerStep(sf.SIP(epsilon)),
        sf.loss.hamming(BIT),
        first=first,
        scouts=2,
        ready=0.0001,
        purpose=Purpose.SIMULATION,
    )


def walked(stays: Floats, streams: int, channel: Floats, rng: np.random.Generator) -> Ints:
    """Context-free outputs of bits that stay with a chance that may change: a row per moment."""
    values, left = rng.integers(0, 2, streams), np.empty((stays.size, streams), dtype=np.int64)
    for moment, stay in enumerate(stays.tolist()):
        left[moment] = rng.random(streams) < channel[values, 1]
        values = np.where(rng.random(streams) < stay, values, 1 - values)
    return left


def capital(stay: float, seed: int) -> Floats:
    """Largest log capital of bets against the set, over 6 blocks of 40 streams of 20 values."""
    rng, channel = np.random.default_rng(seed), rules_for(1.5).channel
    left = walked(np.full(120, stay), 40, channel, rng).reshape(6, 20, 40)
    starts = np.arange(41) * 20
    gains = [set_gains(FixedOutputs(channel, starts, one.T.ravel()), NEAR) for one in left]
    return left_set(gains, BIT.labels, 0.05).log_capital


def test_bets_accuse_no_chain_of_the_set_too_often_and_find_one_a_third_off_on_either_side() -> (
    None
):
    # The ends of the set are the worst chains in it; further out, either way, is found.
    limit = -np.log(0.05)
    for stay in (0.85, 0.95):
        false = sum(capital(stay, seed).max() >= limit for seed in range(60))
        assert false <= 60 * 0.05 + 3 * np.sqrt(60 * 0.05 * 0.95)
    assert sum(capital(0.57, seed).max() >= limit for seed in range(10)) >= 9
    below = PlausibleChains.from_radius(MarkovChain.from_matrix([[0.6, 0.4], [0.4, 0.6]]), 0.05)
    rng, channel = np.random.default_rng(1), rules_for(1.5).channel
    left = walked(np.full(120, 0.9), 40, channel, rng)
    found = left_set(
        [set_gains(FixedOutputs(channel, np.arange(41) * 120, left.T.ravel()), below)],
        BIT.labels,
        0.05,
    )
    assert found.alarm == 0


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> VersionHistory:
    """Bits that stay with .95 until 8,000 values have left, and with .3 from then on."""
    for name, value in {"_WALKS": 1, "_LENGTH": 4, "_NARROW": 1.0}.items():
        monkeypatch.setattr(f"sfumato.stream.model_versions.{name}", value)
    rules = rules_for()
    history, stays = VersionHistory(rules), np.append(np.full(80, 0.95), np.full(120, 0.3))
    left = walked(stays, 100, rules.channel, np.random.default_rng(3))
    for row in left.tolist():
        for place, symbol in enumerate(row):
            history.add(f"u{place}", symbol)
    return history


def test_a_change_is_noticed_and_what_left_before_is_not_learnt_from(
    changed: VersionHistory,
) -> None:
    versions = changed.versions()
    (alarm,) = (version for version in versions if version.restarts)
    before = [version for version in versions if version.number < alarm.number]
    after = [version for version in versions if version.number > alarm.number]
    assert 8_000 < alarm.values <= 12_000  # at the first or second look after it
    assert any(version.moves for version in before) and not alarm.moves
    assert "no longer move" in alarm.remark and "never more than its ldp" in alarm.remark
    assert after and all(version.since == alarm.values for version in after)
    first = after[0]
    assert first.values == alarm.values + 2 * changed.rules.first
    # Of the time since the alarm alone, and of streams that had begun before it.
    assert first.telling == 2 * changed.rules.first
    truth, old = (
        MarkovChain.from_matrix([[stay, 1 - stay], [1 - stay, stay]]) for stay in (0.3, 0.95)
    )
    last = after[-1].chains
    assert last is not None and last.contains(truth) and not last.contains(old)
    assert last.first_low.max() == 0 and last.first_high.min() == 1
    assert before[-1].chains is not None and before[-1].chains.contains(old)


def test_rows_are_context_free_from_the_alarm_until_streams_move_again(
    changed: VersionHistory,
) -> None:
    (alarm,) = (version for version in changed.versions() if version.restarts)
    moving = next(
        name for name in map("u{}".format, range(100)) if not changed.rules.is_scout(name)
    )
    used = [changed.used(moving, moment) for moment in range(200)]
    assert used[alarm.values // 100 - 1] == alarm.number - 1 > 0
    free = used[alarm.values // 100 : alarm.values // 100 + 20]
    assert free == [0] * 20  # at least 2,000 values of 100 streams
    assert max(filter(None, used)) > alarm.number
    # What is believed after the alarm begins with anything, whatever was believed before it.
    place = used.index(max(filter(None, used)))
    _, begun = changed.context_free(moving, place)
    assert not begun


def test_after_the_alarm_no_step_tells_more_than_is_charged_to_who_knows_both_chains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"_WALKS": 1, "_LENGTH": 4, "_NARROW": 1.0}.items():
        monkeypatch.setattr(f"sfumato.stream.model_versions.{name}", value)
    release = sf.LearningRelease(
        BIT,
        budget=sf.SIP(2.0),
        loss=sf.loss.hamming(BIT),
        first=250,
        scouts=2,
        ready=0.0001,
        purpose=Purpose.SIMULATION,
        randomness=sf.seeded(3),
    )
    rng, values, beliefs = np.random.default_rng(3), np.arange(25) % 2, np.full((25, 2), 0.5)
    late, wrong = set[int](), set[int]()
    for moment in range(260):
        stay = 0.95 if moment < 59 else 0.3
        moves = np.array([[stay, 1 - stay], [1 - stay, stay]])
        for place, value in enumerate(values.tolist()):
            state = release.states.get(f"u{place}") or release.plan.begin(f"u{place}")
            found = release.plan.prepare(state, 1)
            assert found is not None
            rows = found.design.channel.probabilities
            mean = beliefs[place] @ rows
            told = max((rows.max(axis=0) / mean).max(), (mean / rows.min(axis=0)).max())
            event = release(f"u{place}", value)
            assert np.log(told) <= event.ldp.epsilon + 1e-9
            number, said = release.plan.rules.told_by(event.signal or 0)
            late.add(number)
            if np.log(told) > event.sip.epsilon + 1e-12:
                wrong.add(moment * 25 + place)
            output = found.output(np.array([event.released]), said)
            assert output is not None
            after = beliefs[place] * found.design.channel.likelihood(output)
            beliefs[place] = (after / after.sum()) @ moves
        values = np.where(rng.random(25) < stay, values, 1 - values)
    (alarm,) = (version for version in release.versions if version.restarts)
    assert max(late) > alarm.number > min(late - {0})
    # Between the change and its notice alone the sip may be too small.
    assert all(60 * 25 <= value < alarm.values for value in wrong)


def test_streams_that_never_change_do_not_start_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_WALKS": 1, "_LENGTH": 4, "_NARROW": 1.0}.items():
        monkeypatch.setattr(f"sfumato.stream.model_versions.{name}", value)
    rules = rules_for(first=500)
    for seed in range(4):
        history = VersionHistory(rules)
        rng = np.random.default_rng(seed)
        for row in walked(np.full(80, 0.9), 50, rules.channel, rng).tolist():
            for place, symbol in enumerate(row):
                history.add(f"u{place}", symbol)
        assert not any(version.restarts for version in history.versions())
    assert sum(rules.alarm(restart) for restart in range(10_000)) <= ALARM


def test_a_file_that_says_nothing_of_the_change_is_found(
    changed: VersionHistory, tmp_path: Path
) -> None:
    table, versions = tmp_path / "p.csv", changed.versions()
    path, rules = versions_beside(table), changed.rules.fingerprint
    (place,) = (place for place, version in enumerate(versions) if version.restarts)
    quiet = replace(versions[place - 1], number=place + 1, values=versions[place].values)
    told = {
        "honest": (versions, 0),
        "as before": ((*versions[:place], quiet, *versions[place + 1 :]), 1),
        "left out": ((*versions[:place], *versions[place + 1 :]), 1),
        "cut off": (versions[:place], 1),
        "no restart": ((*versions[:place], replace(versions[place], restarts=False)), 1),
    }
    for said, findings in told.values():
        path.write_bytes(to_bytes(LearntVersions(rules, said)))
        report = AuditReport()
        check_kept(report, LearningPlan.under(changed), [table])
        assert report.problem_count == findings
        if findings:
            with pytest.raises(LedgerMismatch):
                check_versions(changed, path)


def test_other_values_with_the_same_outputs_end_in_the_same_state_over_a_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever streams did: versions, the alarm, and every state follow from outputs alone."""
    for name, value in {"_WALKS": 1, "_LENGTH": 4, "_NARROW": 1.0}.items():
        monkeypatch.setattr(f"sfumato.stream.model_versions.{name}", value)
    rules = LearningRules(
        BIT,
        sf.PerStep(sf.SIP(3.0)),
        sf.loss.hamming(BIT),
        first=100,
        scouts=2,
        ready=0.0001,
        purpose=Purpose.SIMULATION,
    )
    ours, theirs = (LearningPlan.under(VersionHistory(rules)) for _ in range(2))
    names = [f"u{place}" for place in range(20)]
    states = [{name: plan.begin(name) for name in names} for plan in (ours, theirs)]
    rng, tries = np.random.default_rng(5), 0
    values = dict(zip(names, rng.integers(0, 2, 20).tolist(), strict=True))
    for moment in range(75):
        for name in names:
            states[0][name], event = stepped(ours, states[0][name], values[name], moment)
            after, again = states[1][name], None
            left = (event.released, event.signal)
            while (
                again is None or (again.released, again.signal) != left
            ):  # the opposite, other coins
                tries += 1
                after, again = stepped(theirs, states[1][name], 1 - values[name], 1_000 + tries)
            states[1][name] = after
            assert again == event
            for plan in (ours, theirs):
                plan.history.add(name, int(str(event.released)))
            stay = 0.95 if moment < 20 else 0.05
            values[name] ^= int(rng.random() > stay)
    versions = [[one.fingerprint for one in plan.history.versions()] for plan in (ours, theirs)]
    assert versions[0] == versions[1] and ours.history.restarts == 1
    assert tries > 20 * 75
    for name in names:
        assert to_bytes(states[0][name]) == to_bytes(states[1][name])
        told = [
            plan.prepare(own[name], 1) for plan, own in zip((ours, theirs), states, strict=True)
        ]
        assert told[0] is not None and told[1] is not None
        assert told[0].design.channel.fingerprint == told[1].design.channel.fingerprint


def stepped(
    plan: LearningPlan, state: StreamState, value: int, seed: int
) -> tuple[StreamState, sf.Event]:
    """A step that is not in the history yet."""
    (event,), following = plan.step(state, [value], sf.seeded(seed))
    return following, event
