"""Any mechanism with a budget, moment by moment, so that no moment leaks more than alpha."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.core.errors import InsecureRandomness, InvalidParameter
from sfumato.core.guarantees import TemporalDP
from sfumato.core.guard import Guarded, guarded
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness, secure
from sfumato.temporal.over_time import TemporalLeakage, temporal_leakage
from sfumato.temporal.temporal_mechanisms import Maker
from sfumato.temporal.temporal_plan import TemporalPlan


class TemporalRelease(Guarded):
    """Releases of any mechanism under correlation.

    What is charged is the exact leakage of the mechanism that is drawn from; what every moment
    leaks by now follows from the charges so far.

    Args:
        plan: The rule.
        make: Makes the mechanism of a moment: `Histogram.of`, `Counts.of`, `Answer.of`,
            `Measurement.of`, or any function from a budget to a `Mechanism`.
        stream: Name of the stream; needed with keyed coins, which are one set for each name.
        randomness: Source of coins; secure if not given.
        purpose: A simulation may use seeded coins; a release may not.

    Examples:
        >>> from sfumato.core.alphabet import Alphabet
        >>> from sfumato.temporal.loss_function import LossFunction
        >>> from sfumato.temporal.temporal_mechanisms import Histogram
        >>> chain = LossFunction.of([[0.8, 0.2], [0.2, 0.8]])
        >>> plan = TemporalPlan(chain, chain, alpha=1.0)
        >>> release = TemporalRelease(plan, Histogram.of(Alphabet("ab")))
        >>> told = [release(["a", "b", "b", "a", "b"]) for _ in range(4)]
        >>> release.leakage.event <= TemporalDP(1.0)
        True

    References:
        [TPL, Fig. 1 and Alg. 8]
    """

    def __init__(
        self,
        plan: TemporalPlan,
        make: Maker,
        *,
        stream: str | None = None,
        randomness: Randomness | None = None,
        purpose: Purpose = Purpose.RELEASE,
    ) -> None:
        self._coins = secure() if randomness is None else randomness
        if self._coins.simulated and purpose is not Purpose.SIMULATION:
            raise InsecureRandomness("a temporal release")
        if stream is None and self._coins.addressed and not self._coins.simulated:
            raise InvalidParameter("stream", None, "be named, with keyed coins")
        self.plan = replace(plan, make=make, purpose=purpose)
        self._state = self.plan.begin("" if stream is None else stream)
        self._charges: list[float] = []

    @property
    def leakage(self) -> TemporalLeakage:
        """What every release so far leaks of its moment."""
        charges = np.array(self._charges)
        if not charges.size:
            return TemporalLeakage.joined(charges, charges, charges)
        return temporal_leakage(charges, self.plan.backward, self.plan.forward)

    @property
    def spent(self) -> TemporalDP:
        """The largest of them."""
        return self.leakage.event if self._charges else TemporalDP(0.0)

    @guarded
    def __call__(self, value: Any) -> Any:
        """Release the value of this moment.

        Raises:
            BudgetExceeded: If all releases that were planned have happened, or the mechanism leaks
                more than the budget it was made for; nothing was drawn.
        """
        mechanism, charge, after = self.plan.ready(self._state, value)
        coins = self.plan.coins(mechanism, self._state, self._coins)
        # Charged before anything is drawn: an interrupted release is one that happened.
        self._state = after
        self._charges.append(charge)
        return mechanism(value, coins)

    @guarded
    def skip(self) -> None:
        """A moment at which nothing is released; later ones of an endless stream may get more."""
        _, self._state = self.plan.skip(self._state)
        self._charges.append(0.0)
