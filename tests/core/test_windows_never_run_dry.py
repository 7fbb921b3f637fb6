"""A window gives every batch its floor, for ever, whatever was charged before."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from sfumato import LDP, SIP, Ledger, Window
from sfumato.core.budgets import FLOOR, Allowance
from sfumato.core.ledger import Charge, Ledgers

Chooser = Callable[[np.random.Generator, int], float]
"""Which part of its allowance the next batch uses."""
Told = list[tuple[int, Allowance, Charge]]
CHOOSERS: dict[str, Chooser] = {
    "all": lambda _, step: 1.0,
    "nothing": lambda _, step: 0.0,
    "anything": lambda draw, step: float(draw.random()),
    "all or nothing": lambda draw, step: float(draw.random() < 0.3),
    "silence, then bursts": lambda draw, step: float(step % 23 > 11),
    "hardly anything, then all": lambda draw, step: 1.0 if step % 17 < 3 else 1e-12,
    "nearly all": lambda draw, step: 1.0 - float(draw.random()) * 1e-15,
}


def floor(total: float, width: int, longest: int) -> float:
    """What a value is sure of, written down once more."""
    batches = 1 + -(-(width - 1) // longest)
    return FLOOR * total / (batches * longest)


def run(window: Window, longest: int, part: Chooser, steps: int, seed: int) -> Told:
    """Lengths, allowances and charges of batches of random length."""
    draw, ledger = np.random.default_rng(seed), Ledger()
    told: Told = []
    for step in range(steps):
        length = int(draw.integers(1, longest + 1)) if step % 5 else longest
        allowance = window.allowance(ledger, length, longest)
        assert allowance.ldp is not None
        used = part(draw, step)
        charge = Charge(used * allowance.sip, part(draw, step) * allowance.ldp)
        told.append((length, allowance, charge))
        ledger = ledger.charged(charge, window.memory, length)
    return told


@pytest.mark.parametrize("name", CHOOSERS)
@pytest.mark.parametrize("width", [1, 2, 3, 10, 37])
@pytest.mark.parametrize("longest", [1, 2, 5, 40])
def test_every_batch_is_sure_of_its_floor(name: str, width: int, longest: int) -> None:
    for total in (5.0, 1e-7, 80.0):
        window = Window(SIP(total), width, LDP(1.7 * total))
        for length, allowance, _ in run(window, longest, CHOOSERS[name], 150, width):
            sure = length * floor(total, width, longest) * (1 - 1e-9)
            assert allowance.sip >= sure
            assert (allowance.ldp or 0.0) >= 1.7 * sure


@pytest.mark.parametrize("name", CHOOSERS)
@pytest.mark.parametrize(("width", "longest"), [(1, 1), (10, 1), (10, 3), (3, 5), (37, 4)])
def test_no_window_is_passed_in_exact_arithmetic(name: str, width: int, longest: int) -> None:
    window = Window(SIP(5.0), width, LDP(8.5))
    told = run(window, longest, CHOOSERS[name], 120, longest)
    starts = np.cumsum([0] + [length for length, _, _ in told])
    for first in range(0, int(starts[-1]), 2):
        inside = [
            charge
            for (_, _, charge), start, end in zip(told, starts[:-1], starts[1:], strict=True)
            if start < first + width and end > first
        ]
        assert sum((Fraction(c.sip) for c in inside), Fraction(0)) <= Fraction(5.0)
        assert sum((Fraction(c.ldp) for c in inside), Fraction(0)) <= Fraction(8.5)


@pytest.mark.parametrize("name", CHOOSERS)
@pytest.mark.parametrize(("width", "values"), [(1, 1), (10, 1), (10, 3), (4, 7), (12, 12)])
def test_many_streams_get_bit_for_bit_what_each_would(name: str, width: int, values: int) -> None:
    for window in (Window(SIP(5.0), width), Window(SIP(0.3), width, LDP(0.4))):
        draw = np.random.default_rng(3)
        ledgers, singles = Ledgers(4, window.memory), [Ledger()] * 4
        for step in range(40):
            which = draw.permutation(4)[: 1 + step % 4]
            due = window.allowances(ledgers, which, values)
            for stream, row in zip(which.tolist(), due, strict=True):
                alone = window.allowance(singles[stream], values, values)
                cap = np.inf if alone.ldp is None else alone.ldp
                assert (alone.sip, cap) == tuple(row)
            used = np.array([CHOOSERS[name](draw, step) for _ in which])[:, None]
            charges = used * np.where(np.isinf(due), due[:, :1], due)
            ledgers.charge(which, charges, values)
            for stream, charge in zip(which.tolist(), charges.tolist(), strict=True):
                singles[stream] = singles[stream].charged(Charge(*charge), window.memory, values)


def test_what_silent_steps_leave_is_handed_on() -> None:
    window, ledger = Window(SIP(5.0), 10), Ledger()
    for _ in range(9):
        ledger = ledger.charged(Charge(0.0, 0.0), window.memory)
    assert window.allowance(ledger).sip == pytest.approx(0.5 + 4.5 / 10)
