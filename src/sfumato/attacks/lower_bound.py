"""What an attack has shown: at least so much leaks. Not a guarantee, and never mixed with one.

A guarantee is an upper bound that holds for every attacker; an attack is one attacker, so what it
reaches is a lower bound. The two may be compared: a bound above a guarantee refutes it. They cannot
be added, ordered or put in each other's place, and the absence of a high bound proves nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from sfumato.core import checks
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP, LIP, SIP, ApproxDP, Guarantee, PureDP
from sfumato.core.printed import shown_down, shown_up


class Notion(StrEnum):
    """What a lower bound is about.

    Examples:
        >>> Notion("LDP") is Notion.LDP
        True
    """

    LDP = "LDP"
    LIP = "LIP"
    SIP = "SIP"
    DP = "DP"


# A promise of LDP is one of LIP and SIP too: no output is likelier on average than at its most.
_REFUTED: dict[Notion, tuple[type, ...]] = {
    Notion.LDP: (LDP,),
    Notion.LIP: (LIP, SIP, LDP),
    Notion.SIP: (SIP, LIP, LDP),
    Notion.DP: (PureDP, ApproxDP),
}


@dataclass(frozen=True, slots=True)
class LowerBound:
    r"""A release leaks at least this much under a notion: no smaller $\epsilon$ can be promised.

    Attributes:
        epsilon: The amount; 0 if nothing was shown.
        notion: What it is an amount of.
        delta: The promise that it speaks of is $(\epsilon, \delta)$.
        failure: Probability, over coins and draws of the attack, that it says too much; 0 where it
            was computed from channels, not from samples.
        tried: What the attack did, for people.

    Examples:
        >>> bound = LowerBound(1.3, Notion.LDP, failure=0.05, tried="value 3 against value 7")
        >>> print(bound)
        LDP leakage at least 1.3 (wrong with probability at most 0.05)
        >>> bound.exceeds(LDP(1.0)), bound.exceeds(LDP(2.0))
        (True, False)
        >>> bound + LDP(1.0)
        Traceback (most recent call last):
        TypeError: unsupported operand type(s) for +: 'LowerBound' and 'LDP'
    """

    epsilon: float
    notion: Notion
    delta: float = 0.0
    failure: float = 0.0
    tried: str = ""

    def __post_init__(self) -> None:
        if math.isnan(self.epsilon) or self.epsilon < 0:
            raise InvalidParameter("epsilon", self.epsilon, "be at least 0")
        checks.fraction("delta", self.delta)
        checks.fraction("failure", self.failure)

    def exceeds(self, guarantee: Guarantee) -> bool:
        """Whether it refutes a guarantee: what was promised cannot be true.

        A promise with a smaller delta holds at this one too, so it is refuted with it; of one with
        a larger delta the bound says nothing.

        Raises:
            TypeError: If the guarantee is of a kind that the bound does not speak of.
        """
        if not isinstance(guarantee, _REFUTED[self.notion]):
            kinds = f"{self.notion} leakage and {type(guarantee).__name__}"
            raise TypeError(f"a lower bound must be compared with its own kind; got {kinds}")
        assert isinstance(guarantee, SIP | LIP | LDP | PureDP | ApproxDP)
        return guarantee.delta <= self.delta and self.epsilon > guarantee.epsilon

    def __str__(self) -> str:
        at = f" at delta={shown_down(self.delta)}" if self.delta else ""
        sure = f" (wrong with probability at most {shown_up(self.failure)})" if self.failure else ""
        return f"{self.notion} leakage at least {shown_down(self.epsilon)}{at}{sure}"
