"""What released streams leak and cost, from what left alone: exact leakage, and estimated silence.

The leakage of every moment follows from the leakages of all releases of its stream. What a constant
would have cost is estimated from the released values, which costs nothing: noise of a known law is
taken off their variance, or their shares.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.certificate import Certificate
from sfumato.core.guarantees import TemporalDP
from sfumato.core.purpose import Purpose
from sfumato.temporal.over_time import TemporalLeakage, temporal_leakage
from sfumato.temporal.temporal_spec import Released, TemporalSpec

Moment = tuple[float, Sequence[int] | str | None]
"""The leakage of a release by itself, and what left; None at a moment without a release."""

_MOMENT = "of any single moment of a person"
_RMSE, _WRONG = "root mean squared (a count)", "share wrong"


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
    _noise: float = 0.0
    _spread: float = 0.0
    _values: int = 0
    _shares: Counter[str] = field(default_factory=Counter)

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
        self._weigh([(epsilon, value) for epsilon, value in history if value is not None])
        return leakage

    def _weigh(self, history: list[Moment]) -> None:
        if not history:
            return
        epsilons = np.array([epsilon for epsilon, _ in history])
        if self.spec.released is Released.COUNTS:
            table = np.array([value for _, value in history], dtype=np.float64)
            noise = count_variance(epsilons / self.spec.apart)
            around = ((table - table.mean(axis=0)) ** 2).sum() * _unbiased(len(table))
            self._noise += float(noise.sum()) * table.shape[1]
            # What is left of the spread without the noise is the spread of the counts themselves.
            self._spread += float(around) - float(noise.sum()) * table.shape[1]
            self._values += table.size
        else:
            size = len(self.spec.symbols)
            right, other = response_odds(epsilons, size)
            self._noise += float((1 - right).sum())
            self._values += len(history)
            for (_, value), truth, lie in zip(history, right.tolist(), other.tolist(), strict=True):
                for symbol in self.spec.symbols:
                    if truth > lie:
                        self._shares[symbol] += (float(value == symbol) - lie) / (truth - lie)

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
            loss=_RMSE if self.spec.released is Released.COUNTS else _WRONG,
            cost=cost,
            silence=silence,
            purpose=Purpose(self.spec.purpose),
            remarks=self._remarks(),
        )

    def _costs(self) -> tuple[float | None, float | None]:
        if not self._values:
            return None, None
        if self.spec.released is Released.COUNTS:
            cost = math.sqrt(self._noise / self._values)
            return cost, math.sqrt(max(0.0, self._spread) / self._values)
        most = max(self._shares.values(), default=0.0) / self._values
        return self._noise / self._values, 1 - min(max(most, 1 / len(self.spec.symbols)), 1.0)

    def _remarks(self) -> tuple[str, ...]:
        said = ["what saying nothing would lose is estimated from the released values"]
        if self.strongest > self.spec.alpha and self.event <= self.spec.alpha:
            said.append(
                "against the strongest matrix some moments leak more than alpha: give it to all "
                "streams (--backward, --forward) if any adversary may know it"
            )
        return tuple(said)


def _unbiased(count: int) -> float:
    """So that the squares around a mean that is estimated too are not too small."""
    return count / (count - 1) if count > 1 else 0.0


def count_variance(epsilons: Floats) -> Floats:
    """Variance of two-sided geometric noise by its leakage for counts that differ by 1."""
    ratio = np.exp(-epsilons)
    return np.asarray(2 * ratio / (1 - ratio) ** 2)


def response_odds(epsilons: Floats, size: int) -> tuple[Floats, Floats]:
    """Probability of the true symbol, and of each other one, by the leakage of a response."""
    odds = np.exp(epsilons)
    return np.asarray(odds / (odds + size - 1)), np.asarray(1 / (odds + size - 1))
