"""Salaries: mechanisms on people who were not fitted to, their true delta, and verdicts."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sfumato.models.mixture import GaussianMixture
from sfumato.studies.data.people_data import salaries
from sfumato.studies.lip import salary_release
from sfumato.studies.lip.lip_number_noise import instance_scale, mixture_deltas
from sfumato.studies.lip.salary_release import (
    ALL,
    BEST,
    CERTIFIED,
    COROLLARY,
    GAUSSIAN_LDP,
    GUESSED,
    ONE_SCALE,
    OPTIMAL,
    OTHER_FIT,
    OWN_SCALES,
    SAMPLING,
    SILENCE,
    Town,
    corollary_scales,
)
from sfumato.studies.lip.salary_study import (
    Effort,
    SalaryPoint,
    salary_claims,
    salary_facts,
    salary_points,
)
from sfumato.studies.study import Setting, Verdict

FEW = Effort((1.0, 3.0), (1e-2,), (100_000.0, 200_000.0), 2)


@pytest.fixture(scope="module")
def points() -> list[SalaryPoint]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(salary_release, "POINTS", 21)  # coarse, and fast
        return salary_points(salaries(Setting()).gross[:3000], FEW, 1)


def test_certified_mechanisms_keep_their_delta(points: list[SalaryPoint]) -> None:
    certified = [point for point in points if point.mechanism in CERTIFIED]
    assert len(certified) == 4 * len(CERTIFIED)
    assert all(point.true_delta <= point.delta * (1 + 1e-9) for point in certified)
    assert any(point.true_delta > point.delta for point in points if point.mechanism == SAMPLING)


def test_what_promises_more_has_no_smaller_scale(points: list[SalaryPoint]) -> None:
    found = {(p.mechanism, p.epsilon): p.error for p in points if p.interval == ALL}
    for epsilon in FEW.epsilons:
        assert found[OWN_SCALES, epsilon] <= found[ONE_SCALE, epsilon]
        assert found[ONE_SCALE, epsilon] < found[GAUSSIAN_LDP, epsilon]
        assert found[OPTIMAL, epsilon] < found[SILENCE, epsilon]
        for name in (ONE_SCALE, OWN_SCALES):
            assert found[f"{name}{GUESSED}", epsilon] < found[name, epsilon]


def test_sampling_errs_less_than_gaussian_noise_at_small_budgets(
    points: list[SalaryPoint],
) -> None:
    found = {(p.mechanism, p.epsilon): p.error for p in points if p.interval == ALL}
    assert found[SAMPLING, 1.0] < found[OWN_SCALES, 1.0]
    assert found[SILENCE, 1.0] < found[SAMPLING, 1.0]


def test_halves_have_nobody_in_common() -> None:
    gross = np.arange(101.0)
    town = Town.halved(gross, 1)
    assert sorted([*town.told, *town.others]) == gross.tolist()
    assert not np.array_equal(Town.halved(gross, 2).told, town.told)


def test_scales_of_the_corollary_are_those_of_one_normal() -> None:
    values = np.array([0.0, 6.0, 12.0])
    found = corollary_scales(GaussianMixture.normal(0.0, 5.0), values, 1.5, 1e-4)
    wanted = [instance_scale(value, 1.5) for value in values.tolist()]
    assert found == pytest.approx(wanted, rel=1e-3)


def test_scales_of_the_corollary_leak_more_than_they_claim() -> None:
    mixture = GaussianMixture([0.6, 0.4], [46_000.0, 91_000.0], [24_600.0, 36_600.0])
    values = np.linspace(0, 200_000, 61)
    shares = mixture.density(values) / mixture.density(values).sum()
    scales = corollary_scales(mixture, values, 1.0, 1e-4)
    assert mixture_deltas(shares, values, scales, 1.0).max() > 0.05
    alone = mixture_deltas([1.0], values[:1], scales[:1], 1.0)
    assert alone.max() < 1e-9  # one value alone has nothing to tell


def test_every_mechanism_has_its_best_interval_in_hindsight(points: list[SalaryPoint]) -> None:
    found = {(p.mechanism, p.epsilon, p.interval): p.error for p in points}
    pairs = [(found[name, e, ALL], found[name, e, BEST]) for name, e, _ in found]
    assert all(best <= wide for wide, best in pairs)
    assert any(best < wide for wide, best in pairs)


# Verdicts -----------------------------------------------------------------------------------------

ERRORS = {
    SILENCE: 29.0, OPTIMAL: 10.0, SAMPLING: 50.0, OTHER_FIT: 50.5, GAUSSIAN_LDP: 35.0,
    ONE_SCALE: 40.0, OWN_SCALES: 30.0, COROLLARY: 28.0,
}  # fmt: skip


def made(change: Callable[[SalaryPoint], SalaryPoint] = lambda point: point) -> list[SalaryPoint]:
    """Points with which all claims of the paper hold, but for what is changed."""
    points = [
        SalaryPoint(name, epsilon, 1e-4, interval, 1000 * error, 10.0, 1e-4, epsilon)
        for epsilon in (1.0, 2.0)
        for interval in (ALL, BEST)
        for name, error in ERRORS.items()
    ]
    leaky = [replace(p, true_delta=0.01) if p.mechanism == OTHER_FIT else p for p in points]
    return [change(point) for point in leaky]


def test_verdicts_follow_the_errors() -> None:
    assert {claim.verdict for claim in salary_claims(made())} == {Verdict.AGREES}

    def times(name: str, factor: float) -> list[SalaryPoint]:
        return made(lambda p: replace(p, error=p.error * factor) if p.mechanism == name else p)

    small, fits, own, free, published = range(5)
    assert salary_claims(times(SAMPLING, 0.5))[small].verdict is Verdict.DIFFERS
    assert salary_claims(times(SAMPLING, 0.7))[small].verdict is Verdict.PARTLY
    assert salary_claims(times(OTHER_FIT, 1.2))[fits].verdict is Verdict.PARTLY
    assert salary_claims(times(OWN_SCALES, 2.0))[own].verdict is Verdict.DIFFERS
    assert salary_claims(times(GAUSSIAN_LDP, 1.2))[free].verdict is Verdict.PARTLY
    leaky = made(lambda p: replace(p, true_delta=0.3) if p.mechanism == COROLLARY else p)
    assert salary_claims(leaky)[published].verdict is Verdict.PARTLY
    assert "Gaussian, Cor. 10: 0.3 for 0.0001" in salary_claims(leaky)[published].seen


def test_facts_compare_with_silence() -> None:
    facts = salary_facts(made())
    assert "in 8 of 10 (interval all salaries), 8 of 10" in facts[0]
    assert "over their delta under the prior: 0 of" in facts[1]
