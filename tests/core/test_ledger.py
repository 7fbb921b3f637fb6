from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from sfumato import LDP, SIP, Ledger
from sfumato.core.ledger import FREE, Charge

amounts = st.one_of(st.just(0.0), st.floats(1e-12, 40.0))
charges = st.lists(st.builds(Charge, amounts, amounts), max_size=40)


def ledger_of(charged: list[Charge], keep: int = 0) -> Ledger:
    ledger = Ledger()
    for charge in charged:
        ledger = ledger.charged(charge, keep)
    return ledger


def exact(numbers: list[float]) -> Fraction:
    return sum((Fraction(number) for number in numbers), start=Fraction(0))


@given(charges)
def test_sums_are_never_below_the_exact_ones_and_hardly_above(charged: list[Charge]) -> None:
    ledger = ledger_of(charged)
    for spent, total in (
        (ledger.sip, exact([charge.sip for charge in charged])),
        (ledger.ldp, exact([charge.ldp for charge in charged])),
    ):
        assert total <= Fraction(spent) <= total * (1 + Fraction(1, 10**12))
    assert ledger.count == len(charged)


@given(charges, amounts, amounts)
def test_a_step_never_lowers_what_was_spent(charged: list[Charge], sip: float, ldp: float) -> None:
    before = ledger_of(charged)
    after = before.charged(Charge(sip, ldp), keep=0)
    assert before.sip <= after.sip
    assert before.ldp <= after.ldp
    assert before.spent[0] <= after.spent[0]


@given(charges)
def test_a_free_step_costs_nothing_but_is_counted(charged: list[Charge]) -> None:
    before = ledger_of(charged)
    after = before.charged(FREE, keep=0)
    assert (after.sip, after.ldp) == (before.sip, before.ldp)
    assert after.count == before.count + 1


def test_charging_makes_a_new_ledger() -> None:
    ledger = Ledger()
    ledger.charged(Charge(1.0, 2.0), keep=0)
    assert ledger == Ledger()


def test_both_certificates_are_told_apart() -> None:
    assert ledger_of([Charge(0.5, 0.75)]).spent == (SIP(0.5), LDP(0.75))


def test_a_new_ledger_has_spent_nothing() -> None:
    assert Ledger().spent == (SIP(0.0), LDP(0.0))
