"""What streams have spent so far, under both certificates, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.guard import Guarded, guarded
from sfumato.core.numerics import add_up

_MOST = 2**62
"""Numbers of periods lie within it, as those of `periods.py` do; a state can hold them."""


@dataclass(frozen=True, slots=True)
class Charge:
    """The price of one step under both certificates."""

    sip: float
    ldp: float


FREE = Charge(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The running account of one stream: sums, rounded up, and the last few charges.

    Attributes:
        count: Steps so far, those that cost nothing included.
        sip: Sum of the leakages under the model.
        ldp: Sum of the model-free leakages.
        recent: The last charges, oldest first; as many as the budget's window needs.

    Examples:
        >>> ledger = Ledger().charged(Charge(0.2, 0.3), keep=0).charged(Charge(0.1, 0.1), keep=0)
        >>> ledger.count, ledger.spent[0] <= SIP(0.3000001)
        (2, True)
    """

    count: int = 0
    sip: float = 0.0
    ldp: float = 0.0
    recent: tuple[Charge, ...] = ()

    def __post_init__(self) -> None:
        # A stored sum below 0, or none at all, would be a budget that nobody granted.
        if not (self.count >= 0 and self.sip >= 0 and self.ldp >= 0):
            raise InvalidParameter("ledger", "sums below 0", "have counts and sums of at least 0")

    @property
    def spent(self) -> tuple[SIP, LDP]:
        """Everything so far: under the model, and whatever the model."""
        return SIP(self.sip), LDP(self.ldp)

    def charged(self, charge: Charge, keep: int, values: int = 1) -> Ledger:
        """The ledger after one more step; the last `keep` charges stay known one by one.

        A batch of several values is charged at the last of them.
        """
        # The values of a batch before its last one are steps of a window, too.
        recent = (*self.recent, *[FREE] * (values - 1), charge)
        return Ledger(
            count=self.count + values,
            sip=add_up(self.sip, charge.sip),
            ldp=add_up(self.ldp, charge.ldp),
            recent=recent[-keep:] if keep else (),
        )


@dataclass(frozen=True, slots=True)
class PeriodLedger:
    """What one stream has spent in the period of its last value.

    Attributes:
        index: Number of the period; later ones are larger.
        ledger: What was spent in it.

    Examples:
        >>> PeriodLedger(3).charged(Charge(0.2, 0.3)).ledger.sip
        0.2
    """

    index: int
    ledger: Ledger = Ledger()

    def __post_init__(self) -> None:
        # A clock in the place of a number would begin a period, and its budget, with every value.
        whole = isinstance(self.index, int | np.integer)
        if not whole or not -_MOST < self.index < _MOST:
            rule = "be a whole number within 2^62, as `Period.at` gives it"
            raise InvalidParameter("period", self.index, rule)
        object.__setattr__(self, "index", int(self.index))

    def charged(self, charge: Charge, values: int = 1) -> PeriodLedger:
        """The same after one more step in this period."""
        return PeriodLedger(self.index, self.ledger.charged(charge, 0, values))


class Ledgers(Guarded):
    """The running accounts of many streams as arrays; each is what a `Ledger` would be.

    Attributes:
        counts: Steps of each stream so far.
        spent: Sums of both leakages, one row per stream.
        recent: The last charges of each stream, oldest first; empty places at the front.

    Examples:
        >>> ledgers = Ledgers(2, keep=0)
        >>> ledgers.charge(np.array([1]), np.array([[0.2, 0.3]]))
        >>> ledgers[0].count, ledgers[1].sip
        (0, 0.2)
    """

    def __init__(self, streams: int, keep: int) -> None:
        self.counts = np.zeros(streams, dtype=np.int64)
        self.spent = np.zeros((streams, 2))
        self.recent = np.zeros((streams, keep, 2))

    @guarded
    def grow(self, streams: int) -> None:
        """Make room for `streams` accounts; those that come have spent nothing."""
        more, keep = streams - len(self.counts), self.recent.shape[1]
        self.counts = np.concatenate([self.counts, np.zeros(more, dtype=np.int64)])
        self.spent = np.concatenate([self.spent, np.zeros((more, 2))])
        self.recent = np.concatenate([self.recent, np.zeros((more, keep, 2))])

    @guarded
    def __getitem__(self, stream: int) -> Ledger:
        count, keep = int(self.counts[stream]), self.recent.shape[1]
        last = self.recent[stream, keep - min(count, keep) :]
        recent = tuple(Charge(*charge) for charge in last.tolist())
        sip, ldp = self.spent[stream].tolist()
        return Ledger(count, sip, ldp, recent)

    @guarded
    def __setitem__(self, stream: int, ledger: Ledger) -> None:
        self.counts[stream] = ledger.count
        self.spent[stream] = ledger.sip, ledger.ldp
        self.recent[stream] = 0.0
        for place, charge in enumerate(reversed(ledger.recent), start=1):
            self.recent[stream, -place] = charge.sip, charge.ldp

    @guarded
    def charge(self, which: Ints, charges: Floats, values: int = 1) -> None:
        """Add one step to some streams; a batch of several values is charged at the last."""
        from sfumato.core.account_loops import charge

        for _ in range(values - 1):
            charge(self.counts, self.spent, self.recent, which, np.zeros(charges.shape))
        charge(self.counts, self.spent, self.recent, which, charges)


def sum_up(left: Floats, right: Floats) -> Floats:
    """Sums that are never below the exact ones, and exact where a term is 0, as `add_up`."""
    exact = (left == 0.0) | (right == 0.0)
    return np.where(exact, left + right, np.nextafter(left + right, np.inf))
