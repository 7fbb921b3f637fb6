"""What a stream does next: which way a step is taken, and whether its budget has room for one."""

from __future__ import annotations

from sfumato.core.allowance_loops import allowance, pauses
from sfumato.core.arrays import Floats, Ints
from sfumato.core.budgets import USELESS_BELOW
from sfumato.core.compiled import IN_PLACE, njit

RELEASE, OBSERVE = 0, 1
"""Whether columns are drawn, or found by what was seen to leave."""
STOP, SUPPRESS, REPEAT = 0, 1, 2
"""What to do where nothing can leave: let the plan see to it, or be silent in one of two ways."""
UNKNOWN, PASSING = -1, -2
"""Cells that are none: a value outside the alphabet, and a moment without a value."""
NO_GUESS, TABLE = 0, 1
"""How the best constant of a pause is found: by the plan, or from a table of losses."""
TELL, PASS, PAUSE, GONE, HALT = range(5)
"""What a stream does next: release a value, let a moment pass or only a constant leave, be silent
for want of budget, or leave the step to the plan."""


@njit(**IN_PLACE, forceinline=True)
def next_move(
    passing: bool,
    rule_counts: Ints,
    rule_amounts: Floats,
    counts: Ints,
    spent: Floats,
    recent: Floats,
    stream: int,
    allowed: Floats,
    lane: int,
) -> int:
    """What a stream does next, and in a row of `allowed` what that may leak."""
    allowed[lane, 0], allowed[lane, 1] = 0.0, 0.0
    if passing:
        return PASS
    count = counts[stream]
    if pauses(rule_counts, count, recent, stream):
        return PAUSE
    sip = allowance(rule_counts, rule_amounts, count, spent[stream, 0], recent, stream, 0)
    ldp = allowance(rule_counts, rule_amounts, count, spent[stream, 1], recent, stream, 1)
    if sip <= 0.0 or ldp <= 0.0:
        return GONE
    if sip < USELESS_BELOW or ldp < USELESS_BELOW:
        return HALT
    allowed[lane, 0], allowed[lane, 1] = sip, ldp
    return TELL
