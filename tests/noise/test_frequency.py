import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sfumato import secure, seeded
from sfumato.core.errors import InvalidParameter, UnknownSymbol
from sfumato.noise.frequency import KaryResponse, Reporting, SubsetSelection, UnaryEncoding
from tests.oracles.report_tables import table

Make = Callable[[int, float], Reporting]
MAKES: list[Make] = [KaryResponse.at, UnaryEncoding.at, SubsetSelection.at]


def exact_log(ratio: Fraction) -> mpmath.mpf:
    with mpmath.workdps(50):
        return abs(mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator))


@settings(max_examples=40)
@given(
    make=st.sampled_from(MAKES),
    size=st.integers(2, 5),
    epsilon=st.floats(1e-3, 12),
    seed=st.integers(0, 2**32 - 1),
)
def test_both_leakages_are_those_of_the_whole_table(
    make: Make, size: int, epsilon: float, seed: int
) -> None:
    mechanism = make(size, epsilon)
    prior = np.random.default_rng(seed).dirichlet(np.ones(size)) * 0.999 + 0.001 / size
    parts = [Fraction(float(p)) for p in prior]
    free, told = mpmath.mpf(0), mpmath.mpf(0)
    for rows in table(mechanism).values():
        weighted = (p * row for p, row in zip(parts, rows, strict=True))
        mean = sum(weighted, Fraction(0)) / sum(parts, Fraction(0))
        free = max(free, exact_log(max(rows) / min(rows)))
        told = max(told, *(exact_log(row / mean) for row in rows))
    assert free <= mechanism.local.epsilon <= epsilon
    assert mechanism.local.epsilon == pytest.approx(float(free), rel=1e-9, abs=1e-12)
    assert told <= mechanism.leakage(prior).epsilon
    assert mechanism.leakage(prior).epsilon == pytest.approx(float(told), rel=1e-9, abs=1e-12)
    assert mechanism.leakage(prior).epsilon <= mechanism.local.epsilon + 1e-12


@pytest.mark.parametrize("make", MAKES)
def test_a_symbol_is_shown_as_often_as_the_table_says(make: Make) -> None:
    mechanism = make(4, 1.3)
    for true, asked in itertools.product(range(4), repeat=2):
        share = sum(rows[true] for bits, rows in table(mechanism).items() if bits[asked])
        assert mechanism.shown[int(true != asked)] == pytest.approx(float(share), rel=1e-12)
    assert all(sum(rows[true] for rows in table(mechanism).values()) == 1 for true in range(4))


@pytest.mark.parametrize("make", MAKES)
def test_reports_follow_the_table_and_no_other(make: Make) -> None:
    people, true = 60_000, 2
    mechanism = make(4, 1.0)
    reports = mechanism.report(np.full(people, true), seeded(5))
    codes = (reports @ (2 ** np.arange(3, -1, -1))).tolist()
    counted = np.bincount(codes, minlength=16)

    def fits(other: Reporting) -> bool:
        expected = {
            int("".join(map(str, bits)), 2): float(rows[true])
            for bits, rows in table(other).items()
        }
        assert counted[[code for code in range(16) if code not in expected]].sum() == 0
        shares = np.array([expected[code] for code in sorted(expected)])
        seen = counted[sorted(expected)]
        return float(stats.chisquare(seen, shares / shares.sum() * people).pvalue) > 1e-4

    assert fits(mechanism)
    assert not fits(make(4, 1.3))
    assert not fits(make(4, 0.7))


@pytest.mark.parametrize("make", MAKES)
def test_estimates_have_no_bias_and_the_stated_variance(make: Make) -> None:
    mechanism, people, runs = make(5, 1.5), 200, 400
    truth = np.repeat(np.arange(5), [100, 50, 30, 20, 0])
    coins = seeded(9)
    counts = [mechanism.report(truth, coins).sum(axis=0) for _ in range(runs)]
    found = np.array([mechanism.estimate_counts(count, people) for count in counts])
    share = np.bincount(truth, minlength=5) / people
    # People are fixed, so only the coins vary: the variance is that of the reports.
    error = np.sqrt([mechanism.variance(float(f), people) for f in share])
    assert np.all(np.abs(found.mean(axis=0) - share) < 5 * error / math.sqrt(runs))
    ratio = found.var(axis=0) / error**2
    assert np.all((ratio > 0.7) & (ratio < 1.35))


def test_subset_selection_of_one_is_k_ary_response() -> None:
    one, response = SubsetSelection.at(6, 2.0, chosen=1), KaryResponse.at(6, 2.0)
    assert one.shown == pytest.approx(response.shown, rel=1e-9)


def test_the_best_rival_changes_with_the_size() -> None:
    few, many = 3, 200
    at = {make: [make(n, 1.0).variance(0.0, 1000) for n in (few, many)] for make in MAKES}
    assert at[KaryResponse.at][1] > 10 * at[UnaryEncoding.at][1]
    assert at[SubsetSelection.at][0] <= at[UnaryEncoding.at][0]
    assert at[SubsetSelection.at][1] == pytest.approx(at[UnaryEncoding.at][1], rel=0.05)


def test_values_that_are_no_symbols_are_refused() -> None:
    response = KaryResponse.at(3, 1.0)
    assert response.report([0, 1], secure()).sum() == 2
    for wrong in ([3], [-1], [0.5], ["a"], [[0, 1]]):
        with pytest.raises(UnknownSymbol) as refusal:
            response.report(wrong, secure())
        assert "0.5" not in str(refusal.value)
    for make in MAKES:
        with pytest.raises(InvalidParameter):
            make(1, 1.0)
    with pytest.raises(InvalidParameter, match="chosen must lie in"):
        SubsetSelection.at(4, 1.0, chosen=4)
