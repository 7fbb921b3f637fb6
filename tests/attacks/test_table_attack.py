"""Published columns are guessed at by who knows others: kept columns help, certificates hold."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.attacks import attack_table
from sfumato.attacks.table_attack import hold_same_people
from sfumato.record.attack.bayes_attack import bayes_disclosure
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.published_noise import noise_of


def people(count: int, seed: int) -> tuple[np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, count)
    height = rng.normal(160 + 20 * group, 4)
    return np.stack([height, 0.8 * height - 60 + rng.normal(0, 4, count)], 1), list(
        np.array(["f", "m"])[group]
    )


@pytest.mark.statistical
def test_kept_columns_are_knowledge_and_no_guess_beats_the_exact_bound() -> None:
    true, kept = people(400, 1)
    records, theirs = people(800, 2)
    noise = noise_of("gaussian", 6.0, 2)
    left = true + np.random.default_rng(3).normal(0, 6.0, true.shape)
    half = 3.0
    plain = attack_table(left, records, noise, half).scored(true)
    grouped = attack_table(left, records, noise, half, groups=(kept, theirs)).scored(true)
    assert plain.published < plain.share < grouped.share + 0.03
    assert grouped.blind < grouped.share
    # The exact probability of the best attacker, for one normal: that of each group.
    spread = np.array([[16.0, 12.8], [12.8, 0.64 * 16 + 16]])
    density = JointMixture([1.0], [[0.0, 0.0]], [spread])
    exact = bayes_disclosure(density, noise, np.array([half, half])).high
    assert grouped.low <= exact
    assert not grouped.refutes(exact) and grouped.refutes(0.3 * exact)


def test_true_values_that_are_said_to_be_noisy_refute_their_certificate() -> None:
    true, _ = people(200, 4)
    noise = noise_of("gaussian", 30.0, 2)
    raw = attack_table(true, people(300, 5)[0], noise, 1.0).scored(true)
    assert raw.published == 1.0 > raw.share
    assert raw.refutes(0.9)
    left = true + np.random.default_rng(6).normal(0, 30.0, true.shape)
    assert not attack_table(left, people(300, 5)[0], noise, 1.0).scored(true).refutes(0.25)


def test_a_group_that_no_record_has_is_guessed_from_all() -> None:
    noise = noise_of("uniform", 1.0, 1)
    records = np.array([[1.0], [1.0], [9.0]])
    groups = (["x", "y", "new"], ["x", "x", "y"])
    found = attack_table([[1.2], [8.8], [9.1]], records, noise, 0.5, groups=groups)
    assert found.scored([[1.0], [9.0], [9.0]]).share == 1.0
    assert found.blind.ravel().tolist() == [1.0, 9.0, 1.0]


def test_records_that_hold_the_people_themselves_are_told_from_those_with_ties() -> None:
    true, _ = people(100, 1)
    records, _ = people(400, 2)
    rng = np.random.default_rng(3)
    assert not hold_same_people(records, true)
    assert hold_same_people(true, true)
    assert hold_same_people(rng.permutation(np.vstack([true, true])), true)
    assert hold_same_people(rng.permutation(np.vstack([records, true])), true)
    assert hold_same_people(np.vstack([records, true[:10]]), true)
    # Rounded values tie by chance, in one table more than in the other.
    for digits in (0, -1, -2):
        rough, other = true.round(digits), records.round(digits)
        assert not hold_same_people(other, rough)
        assert not hold_same_people(other[:50, :1], rough[:, :1])
        assert not hold_same_people(records, rough)
    assert hold_same_people(rng.permutation(true.round(-1)), true.round(-1))
    accused = [
        hold_same_people(rng.integers(0, 2, (100, 1)), rng.integers(0, 2, (100, 1)))
        for _ in range(40)
    ]
    assert not any(accused)


def test_what_does_not_fit_is_refused() -> None:
    noise = noise_of("uniform", 1.0, 1)
    with pytest.raises(sf.SfumatoError, match="be rows of 1 columns"):
        attack_table([[1.0]], [[1.0, 2.0]], noise, 0.5)
    with pytest.raises(sf.SfumatoError, match="be one for each row"):
        attack_table([[1.0]], [[1.0]], noise, 0.5, groups=(["a"], ["a", "b"]))
    with pytest.raises(sf.SfumatoError, match=r"be of shape \(1, 1\)"):
        attack_table([[1.0]], [[1.0]], noise, 0.5).scored([[1.0], [2.0]])
