import operator
from typing import Any

import pytest

import sfumato as sf
from sfumato.attacks import LowerBound, Notion
from sfumato.attacks.proportions import interval, largest_proportion, least_proportion


@pytest.mark.parametrize(
    ("notion", "delta", "guarantee", "refuted"),
    [
        (Notion.LDP, 0.0, sf.LDP(0.9), True),
        (Notion.LDP, 0.0, sf.LDP(1.0), False),
        (Notion.LIP, 0.0, sf.LIP(0.9), True),
        (Notion.LIP, 0.0, sf.SIP(0.9), True),
        (Notion.LIP, 0.0, sf.LDP(0.9), True),
        (Notion.SIP, 0.0, sf.SIP(1.1), False),
        (Notion.DP, 0.0, sf.PureDP(0.9), True),
        # Of a promise that may fail more often than was tested, nothing follows.
        (Notion.DP, 0.0, sf.ApproxDP(0.9, 1e-9), False),
        (Notion.DP, 1e-6, sf.ApproxDP(0.9, 1e-9), True),
        (Notion.DP, 1e-6, sf.PureDP(0.9), True),
    ],
)
def test_a_bound_refutes_what_promises_less(
    notion: Notion, delta: float, guarantee: Any, refuted: bool
) -> None:
    assert LowerBound(1.0, notion, delta).exceeds(guarantee) is refuted


@pytest.mark.parametrize("guarantee", [sf.PureDP(0.1), sf.SIP(0.1), sf.TemporalDP(0.1)])
def test_a_bound_is_compared_with_its_own_kind_only(guarantee: Any) -> None:
    with pytest.raises(TypeError, match="its own kind; got LDP leakage"):
        LowerBound(1.0, Notion.LDP).exceeds(guarantee)


def test_a_bound_is_never_mixed_with_a_guarantee() -> None:
    bound: Any = LowerBound(1.0, Notion.LDP)
    for one, other in ((bound, sf.LDP(1.0)), (sf.LDP(1.0), bound), (bound, bound)):
        for mixed in (operator.add, operator.le, operator.lt):
            with pytest.raises(TypeError):
                mixed(one, other)


@pytest.mark.parametrize("wrong", [{"epsilon": -1.0}, {"epsilon": float("nan")}, {"failure": 2.0}])
def test_a_bound_is_an_amount_with_a_probability(wrong: dict[str, float]) -> None:
    with pytest.raises(sf.SfumatoError):
        LowerBound(**{"epsilon": 1.0, "notion": Notion.LDP, **wrong})  # type: ignore[arg-type]


def test_a_bound_is_printed_rounded_down() -> None:
    assert str(LowerBound(0.99999999, Notion.SIP)) == "SIP leakage at least 0.999999"


@pytest.mark.parametrize("hits", [0, 1, 7, 19, 20])
def test_bounds_of_proportions_are_where_the_tail_has_their_probability(hits: int) -> None:
    # By the sum over the binomial distribution itself.
    from math import comb

    def tail(share: float, numbers: range) -> float:
        return sum(comb(20, k) * share**k * (1 - share) ** (20 - k) for k in numbers)

    low, high = least_proportion(hits, 20, 0.03), largest_proportion(hits, 20, 0.03)
    assert low == 0 if hits == 0 else tail(low, range(hits, 21)) == pytest.approx(0.03)
    assert high == 1 if hits == 20 else tail(high, range(hits + 1)) == pytest.approx(0.03)
    assert interval(hits, 20, 0.06) == (low, high)
