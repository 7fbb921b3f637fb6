import dataclasses
import itertools
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP, LIP, SIP, ApproxDP, Disclosure, PureDP, TemporalDP

amounts = st.one_of(st.sampled_from([0.0, 0.5, 1.0, math.inf]), st.floats(0.0, 100.0))
deltas = st.one_of(st.sampled_from([0.0, 1e-6, 0.5, 1.0]), st.floats(0.0, 1.0))

APPROXIMATE = [SIP, LIP, LDP, ApproxDP]
ADDITIVE = [SIP, LDP, ApproxDP]
KINDS: dict[str, st.SearchStrategy[Any]] = {
    **{kind.__name__: st.builds(kind, amounts, deltas) for kind in APPROXIMATE},
    "PureDP": st.builds(PureDP, amounts),
    "TemporalDP": st.builds(TemporalDP, amounts),
    "Disclosure": st.builds(Disclosure, st.floats(0.0, 100.0), deltas),
}
ONE_OF_EACH: list[Any] = [
    *(kind(1.0) for kind in (*APPROXIMATE, PureDP)),
    TemporalDP(1.0),
    Disclosure(1.0, 0.1),
]

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())


@every_kind
@given(st.data())
def test_order_is_reflexive(kind: st.SearchStrategy[Any], data: st.DataObject) -> None:
    one = data.draw(kind)
    same = dataclasses.replace(one)
    assert one == same
    assert hash(one) == hash(same)
    assert one <= same
    assert one >= same
    assert not one < same
    assert not one > same


@every_kind
@given(st.data())
def test_order_is_antisymmetric(kind: st.SearchStrategy[Any], data: st.DataObject) -> None:
    one, other = data.draw(kind), data.draw(kind)
    assert (one <= other and other <= one) == (one == other)
    assert (one < other) == (one <= other and one != other)
    assert (one >= other) == (other <= one)
    assert (one > other) == (other < one)
    assert not (one < other and other < one)


@every_kind
@given(st.data())
def test_order_is_transitive(kind: st.SearchStrategy[Any], data: st.DataObject) -> None:
    three = [data.draw(kind) for _ in range(3)]
    for a, b, c in itertools.permutations(three):
        if a <= b and b <= c:
            assert a <= c


@pytest.mark.parametrize("kind", APPROXIMATE)
def test_more_epsilon_and_less_delta_is_not_ordered(kind: type[SIP]) -> None:
    strong, sure = kind(1.0, 1e-5), kind(2.0, 1e-6)
    assert not strong <= sure
    assert not sure <= strong
    assert not strong < sure
    assert not sure < strong
    assert strong != sure
    assert kind(1.0, 1e-6) < strong
    assert kind(1.0, 1e-6) < sure


def test_a_wider_window_with_more_probability_is_not_ordered() -> None:
    wide, narrow = Disclosure(accuracy=2.0, delta=0.2), Disclosure(accuracy=1.0, delta=0.1)
    assert not wide <= narrow
    assert not narrow <= wide
    assert Disclosure(accuracy=2.0, delta=0.1) < wide
    assert Disclosure(accuracy=2.0, delta=0.1) < narrow


@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(ONE_OF_EACH, 2)), ids=str)
def test_different_kinds_are_neither_ordered_nor_added_nor_equal(one: Any, other: Any) -> None:
    assert one != other
    with pytest.raises(TypeError):
        _ = one <= other
    with pytest.raises(TypeError):
        _ = one < other
    with pytest.raises(TypeError):
        _ = one >= other
    with pytest.raises(TypeError):
        _ = one > other
    with pytest.raises(TypeError):
        _ = one + other


@pytest.mark.parametrize("one", ONE_OF_EACH, ids=lambda one: type(one).__name__)
def test_a_bare_number_is_no_guarantee(one: Any) -> None:
    assert one != 1.0
    with pytest.raises(TypeError):
        _ = one <= 1.0
    with pytest.raises(TypeError):
        _ = one + 1.0


@pytest.mark.parametrize("kind", ADDITIVE)
@given(amounts, deltas, amounts, deltas)
def test_adding_composes_and_rounds_up(
    kind: type[SIP], epsilon: float, delta: float, more: float, more_delta: float
) -> None:
    one, other = kind(epsilon, delta), kind(more, more_delta)
    total = one + other
    assert type(total) is kind
    assert total == other + one
    assert one <= total
    assert other <= total
    assert total.delta == 1.0 or Fraction(total.delta) >= Fraction(delta) + Fraction(more_delta)
    assert total.delta <= math.nextafter(delta + more_delta, 2.0)
    if math.isinf(epsilon) or math.isinf(more):
        assert total.epsilon == math.inf
    else:
        assert Fraction(total.epsilon) >= Fraction(epsilon) + Fraction(more)
        assert total.epsilon <= math.nextafter(epsilon + more, math.inf)


@given(st.lists(st.floats(0.0, 1.0), max_size=200))
def test_a_long_sum_never_falls_below_the_exact_one(parts: list[float]) -> None:
    total = sum((SIP(part) for part in parts), start=SIP(0.0))
    assert Fraction(total.epsilon) >= sum(Fraction(part) for part in parts)


@pytest.mark.parametrize("kind", [*ADDITIVE, PureDP])
@given(amounts)
def test_adding_nothing_changes_nothing(kind: type[SIP], epsilon: float) -> None:
    assert kind(epsilon) + kind(0.0) == kind(epsilon)


@given(st.floats(0.0, 100.0), st.floats(0.0, 100.0))
def test_pure_privacy_stays_pure_when_added(one: float, other: float) -> None:
    total = PureDP(one) + PureDP(other)
    assert total.delta == 0.0
    assert Fraction(total.epsilon) >= Fraction(one) + Fraction(other)


@pytest.mark.parametrize("one", [LIP(1.0), Disclosure(1.0, 0.1), TemporalDP(1.0)])
def test_a_notion_that_does_not_compose_has_no_sum(one: Any) -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = one + one


@pytest.mark.parametrize("one", ONE_OF_EACH, ids=lambda one: type(one).__name__)
def test_a_guarantee_cannot_be_changed(one: Any) -> None:
    for part in dataclasses.fields(one):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, part.name, 0.0)
    with pytest.raises((AttributeError, TypeError)):
        one.note = "kept beside"


@pytest.mark.parametrize("kind", [*APPROXIMATE, PureDP, TemporalDP])
@pytest.mark.parametrize("amount", [-1e-300, -1.0, math.nan, -math.inf])
def test_refuses_an_amount_that_is_none(kind: type[SIP], amount: float) -> None:
    with pytest.raises(InvalidParameter, match="must be at least 0; got"):
        kind(amount)


@pytest.mark.parametrize("kind", APPROXIMATE)
@pytest.mark.parametrize("delta", [-1e-9, 1.0 + 1e-9, math.nan, math.inf])
def test_refuses_a_delta_that_is_no_probability(kind: type[SIP], delta: float) -> None:
    with pytest.raises(InvalidParameter, match=r"delta must lie in \[0, 1\]"):
        kind(1.0, delta)
    with pytest.raises(InvalidParameter, match=r"delta must lie in \[0, 1\]"):
        Disclosure(1.0, delta)


def test_refuses_pure_privacy_that_may_fail() -> None:
    with pytest.raises(InvalidParameter, match=r"delta must be 0; use ApproxDP; got 0\.1"):
        PureDP(1.0, 0.1)


@pytest.mark.parametrize("accuracy", [-1.0, math.nan, math.inf])
def test_refuses_an_accuracy_that_is_none(accuracy: float) -> None:
    with pytest.raises(InvalidParameter, match="accuracy must be finite and at least 0"):
        Disclosure(accuracy, 0.1)


@given(amounts, deltas)
def test_amounts_are_kept_as_floats(epsilon: float, delta: float) -> None:
    assume(math.isfinite(epsilon))
    whole = SIP(int(epsilon))
    assert type(whole.epsilon) is float
    assert type(LDP(epsilon, delta).delta) is float


def test_prints_its_kind_its_amount_and_its_delta_if_any() -> None:
    assert str(SIP(0.5)) == "SIP(0.5)"
    assert str(ApproxDP(1.0, 1e-6)) == "ApproxDP(1, delta=1e-06)"
    assert repr(LDP(1.0)) == "LDP(epsilon=1.0, delta=0.0)"


@every_kind
@given(st.data())
def test_the_text_of_a_guarantee_promises_no_more_than_it(
    kind: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    one = data.draw(kind)
    text = str(one)
    assert text.startswith(f"{type(one).__name__}(")
    names = {kind.__name__: kind for kind in (*APPROXIMATE, PureDP, TemporalDP, Disclosure)}
    again = eval(text, {"inf": math.inf, **names})  # the text is what one would write
    assert again >= one
