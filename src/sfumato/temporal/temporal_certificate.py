"""What released streams leak and cost, from what left alone, and what silence would cost.

The leakage of every moment follows from the leakages of all releases of its stream. What a constant
would lose is, of answers, what the matrices say of the most frequent value; of counts, it is
estimated from the released ones, which costs nothing: noise of a known law is taken off their
variance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.core.certificate import Certificate
from sfumato.core.guarantees import TemporalDP
from sfumato.core.purpose import Purpose
from sfumato.models.markov import MarkovChain
from sfumato.temporal.over_time import TemporalLeakage, temporal_leakage
from sfumato.temporal.temporal_spec import Released, TemporalSpec

Moment = tuple[float, Sequence[int] | str | None]
"""The leakage of a release by itself, and what left; None at a moment without a release."""

_MOMENT = "of any single moment of a person"


@dataclass(slots=True)
class StreamTotals:
    """Gathers streams, one after the other, into a certificate.

    Attributes:
        spec: The rules.
        event: Largest leakage of a moment, under the matrices of its stream.
        strongest: The same for an adversary who knows the worst of all matrices.
        user: Largest leakage of a whole stream.
        moments: Releases so far, those at which nothing left included.
    """

    spec: TemporalSpec
    event: float = 0.0
    strongest: float = 0.0
    user: float = 0.0
    moments: int = 0
    _rare: dict[str, float | None] = field(default_factory=dict)
    _noise: float = 0.0
    _spread: float = 0.0
    _values: int = 0
    _seen: int = 0

    def add(self, stream: str, moments: Iterable[Moment]) -> TemporalLeakage | None:
        """One more stream, all of it; what each of its moments leaks."""
        history = list(moments)
        if not history:
            return None
        epsilons = np.array([epsilon for epsilon, _ in history])
        losses = self.spec.losses(stream)
        leakage = temporal_leakage(epsilons, *losses)
        event = leakage.event.alpha
        self.event, self.user = max(self.event, event), max(self.user, leakage.user.alpha)
        if self.spec.own:
            event = max(event, temporal_leakage(epsilons, *self.spec.strongest()).event.alpha)
        self.strongest = max(self.strongest, event)
        self.moments += len(history)
        self._weigh(stream, [(epsilon, value) for epsilon, value in history if value is not None])
        return leakage

    def _weigh(self, stream: str, history: list[Moment]) -> None:
        """Add what the values of one stream cost, and what a constant would have."""
        if not history:
            return
        epsilons = np.array([epsilon for epsilon, _ in history])
        if self.spec.released is Released.RESPONSE:
            self._noise += float((1 - response_odds(epsilons, len(self.spec.symbols))[0]).sum())
            self._values += len(history)
            alike = stream if stream in self.spec.own else ""
            # Streams without matrices of their own are all alike.
            if alike not in self._rare:
                self._rare[alike] = _silence(self.spec, alike)
            if (rare := self._rare[alike]) is not None:
                self._spread, self._seen = self._spread + len(history) * rare, self._seen + 1
            return
        table = np.array([value for _, value in history], dtype=np.float64)
        noise = float(count_variance(epsilons / self.spec.apart).sum()) * table.shape[1]
        self._noise, self._values = self._noise + noise, self._values + table.size
        if len(table) > 1:
            around = (
                float(((table - table.mean(axis=0)) ** 2).sum()) * len(table) / (len(table) - 1)
            )
            # What is left of the spread without the noise is the spread of the counts themselves.
            self._spread, self._seen = self._spread + around - noise, self._seen + 1

    def certificate(self) -> Certificate:
        """What all of it leaks and costs."""
        scopes = [(TemporalDP(self.event), f"{_MOMENT}, against the matrices of the stream")]
        if self.spec.own:
            against = f"{_MOMENT}, against the strongest of all matrices"
            scopes.append((TemporalDP(self.strongest), against))
        scopes.append((TemporalDP(self.user), "of a person's whole stream"))
        cost, silence = self._costs()
        return Certificate(
            guarantees=tuple(one for one, _ in scopes),
            scopes=tuple(scope for _, scope in scopes),
            loss="root mean squared" if self.spec.released is Released.COUNTS else "hamming",
            cost=cost,
            silence=silence,
            purpose=Purpose(self.spec.purpose),
            remarks=self._remarks(),
        )

    def _costs(self) -> tuple[float | None, float | None]:
        if not self._values:
            return None, None
        cost, spread = self._noise / self._values, max(0.0, self._spread) / self._values
        if self.spec.released is Released.COUNTS:
            cost, spread = math.sqrt(cost), math.sqrt(spread)
        return cost, spread if self._seen else None

    def _remarks(self) -> tuple[str, ...]:
        said = []
        if self.spec.released is Released.COUNTS:
            said.append("what saying nothing would lose is estimated from the released counts")
        if self.strongest > self.spec.alpha and self.event <= self.spec.alpha:
            said.append(
                "against the strongest matrix some moments leak more than alpha: give it to all "
                "streams (--backward, --forward) if any adversary may know it"
            )
        return tuple(said)


def _silence(spec: TemporalSpec, stream: str) -> float | None:
    """Part of the values that one fixed symbol is not, by a stream's matrices; None if unknown.

    Of a set of matrices the one under which a constant is best.
    """
    own = spec.own.get(stream)
    given = [*spec.backward, *spec.forward] if own is None else [own.backward, own.forward]
    known = [one for one in given if one and len(one) == len(spec.symbols)]
    shares = [float(MarkovChain.from_matrix(one).stationary().max()) for one in known]
    return 1 - max(shares) if shares else None


def count_variance(epsilons: Floats) -> Floats:
    """Variance of two-sided geometric noise by its leakage for counts that differ by 1."""
    ratio = portable.exp(-epsilons)
    return np.asarray(2 * ratio / (1 - ratio) ** 2)


def response_odds(epsilons: Floats, size: int) -> tuple[Floats, Floats]:
    """Probability of the true symbol, and of each other one, by the leakage of a response."""
    odds = portable.exp(epsilons)
    return np.asarray(odds / (odds + size - 1)), np.asarray(1 / (odds + size - 1))
