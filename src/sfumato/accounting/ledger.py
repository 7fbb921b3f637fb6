"""What one stream has spent so far, under both certificates, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato._numerics import add_up
from sfumato.guarantees import LDP, SIP


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

    @property
    def spent(self) -> tuple[SIP, LDP]:
        """Everything so far: under the model, and whatever the model."""
        return SIP(self.sip), LDP(self.ldp)

    def charged(self, charge: Charge, keep: int) -> Ledger:
        """The ledger after one more step; the last `keep` charges stay known one by one."""
        recent = (*self.recent, charge)
        return Ledger(
            count=self.count + 1,
            sip=add_up(self.sip, charge.sip),
            ldp=add_up(self.ldp, charge.ldp),
            recent=recent[-keep:] if keep else (),
        )
