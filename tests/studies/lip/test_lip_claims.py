"""Verdicts on the figures of LIP follow the numbers, whichever they are."""

import pytest

from sfumato.studies.lip import lip_claims, lip_formula_claims, lip_number_claims
from sfumato.studies.lip.lip_claims import Lines
from sfumato.studies.study import Verdict


def of_bit(rare: float) -> Lines:
    ends = {"even": 3.0, "one common": 2.5, "one rare": rare}
    return {
        ("5a", f"{name}, ε = {epsilon:g}, {kind}"): {1.0: 1.0, 8.0: end}
        for name, end in ends.items()
        for epsilon in (2.0, 5.0)
        for kind in ("bound", "worst")
    }


@pytest.mark.parametrize(("rare", "said"), [(2.0, Verdict.AGREES), (4.0, Verdict.DIFFERS)])
def test_whether_rare_symbols_leak_less_is_seen_in_the_last_release(
    rare: float, said: Verdict
) -> None:
    assert lip_claims._rare(of_bit(rare)).verdict is said


def of_gaps(rare: float, even: float) -> Lines:
    tops = {"one rare": rare, "even": even}
    exact = {("2a", f"{name}, exact"): {0.0: 0.0, 1.0: 1.5} for name in tops}
    return exact | {
        ("2a", f"{name}, bound"): {0.0: 0.0, 1.0: 1.5 + gap} for name, gap in tops.items()
    }


@pytest.mark.parametrize(
    ("rare", "even", "said"),
    [(0.1, 0.0, Verdict.AGREES), (0.0, 0.0, Verdict.PARTLY), (0.0, 0.1, Verdict.DIFFERS)],
)
def test_whether_a_bound_is_loose_is_seen_in_its_gap(
    rare: float, even: float, said: Verdict
) -> None:
    assert lip_claims._looser(of_gaps(rare, even)).verdict is said


@pytest.mark.parametrize(("worst", "said"), [(6.0, Verdict.AGREES), (7.0, Verdict.PARTLY)])
def test_whether_leakage_grows_linearly_is_seen_in_its_steps(worst: float, said: Verdict) -> None:
    straight = {1.0: 2.0, 2.0: 4.0, 3.0: 6.0}
    lines = {("5a", "bound"): straight, ("5a", "worst"): {1.0: 2.0, 2.0: 4.0, 3.0: worst}}
    assert lip_claims._straight("LIP 5a", "a", lines).verdict is said


@pytest.mark.parametrize(("delta", "said"), [(1e-4, Verdict.AGREES), (2e-4, Verdict.DIFFERS)])
def test_a_promise_that_is_broken_once_is_broken(delta: float, said: Verdict) -> None:
    lines = {("9b", "Cor. 10, prior cut"): {0.5: 1e-5, 1.0: delta}}
    assert lip_number_claims._delta(lines).verdict is said


@pytest.mark.parametrize(("far", "said"), [(0.1, Verdict.AGREES), (0.3, Verdict.PARTLY)])
def test_whether_a_prior_helps_is_asked_of_every_value(far: float, said: Verdict) -> None:
    lines = {("8", f"LIP, X = {value}"): {1.0: 0.1} for value in (0, 5)}
    lines |= {("8", "LIP, X = 10"): {1.0: far}, ("8", "LDP, 2ε"): {1.0: 0.2}}
    assert lip_number_claims._against_twice(lines).verdict is said


@pytest.mark.parametrize(("told", "said"), [(0.0, Verdict.DIFFERS), (1.0, Verdict.AGREES)])
def test_a_ratio_is_not_its_logarithm(told: float, said: Verdict) -> None:
    lines = {(panel, "LIP"): {0.0: 9.0, 0.5: told} for panel in ("4a", "4b")}
    assert lip_formula_claims._binary(lines).verdict is said


def test_the_bound_for_all_priors_is_above_epsilon() -> None:
    found = lip_formula_claims._all_priors()
    assert "3.28 for 2" in found.seen
    assert found.verdict is Verdict.DIFFERS


@pytest.mark.parametrize(("free", "said"), [(5.0, Verdict.AGREES), (3.0, Verdict.PARTLY)])
def test_which_bound_is_least_is_asked_where_the_corollary_says(free: float, said: Verdict) -> None:
    lines = {("6a", "ln((e^ε - 1 + p)/p)"): {9.0: 1.2}, ("6b", "ln((e^ε - 1 + p)/p)"): {9.0: free}}
    assert lip_formula_claims._smallest(lines).verdict is said
