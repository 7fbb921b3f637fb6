"""What a design returns: a channel, what it costs, and both certificates."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.core.channel import Channel
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.information_leakage import instantaneous_leakage
from sfumato.core.local_leakage import local_leakage
from sfumato.core.loss import Loss


@dataclass(frozen=True, slots=True)
class Design:
    """A channel designed for one belief.

    Attributes:
        channel: The mechanism itself, in the integers that will be sampled.
        cost: Its expected loss under the belief.
        lower_bound: A proven floor under the expected loss of *every* channel within the budget;
            None for methods that do not search for the best.
        sip: Its exact leakage under the belief, rounded up.
        ldp: Its exact model-free leakage, rounded up.

    Examples:
        >>> import sfumato as sf
        >>> belief = [0.1, 0.2, 0.7]
        >>> found = sf.solver.optimal(belief, sf.loss.hamming(sf.Alphabet.of_size(3)), 1.0)
        >>> found.sip <= sf.SIP(1.0), found.ldp <= sf.LDP(2.0), found.gap < 1e-6
        (True, True, True)
    """

    channel: Channel
    cost: float
    lower_bound: float | None
    sip: SIP
    ldp: LDP

    @property
    def gap(self) -> float | None:
        """How much better a channel could possibly be; None where no bound is known."""
        return None if self.lower_bound is None else max(0.0, self.cost - self.lower_bound)


def measured(
    channel: Channel, belief: Floats, loss: Loss | Floats, lower_bound: float | None = None
) -> Design:
    """Compute the cost and both certificates of a channel from its integers.

    The loss may be a table with one column for each symbol that can be released.
    """
    if isinstance(loss, Loss):
        cost = channel.mean_loss(belief, loss)
    else:
        per_row = (channel.probabilities * loss[:, channel.outputs]).sum(axis=1)
        cost = float(portable.dot(belief, per_row) / belief.sum())
    return Design(
        channel=channel,
        cost=cost,
        lower_bound=lower_bound,
        sip=instantaneous_leakage(channel, belief),
        ldp=local_leakage(channel),
    )


def silent(belief: Floats, loss: Loss) -> Design:
    """The best constant: it ignores the value, so it tells nothing and costs no privacy."""
    output, cost = loss.best_constant(belief)
    channel = Channel.constant(len(loss), output)
    return Design(channel, float(cost / belief.sum()), None, SIP(0.0), LDP(0.0))
