r"""What several releases of the same people told together.

Each has its own coins and its own plan, and knows nothing of the others. Model-free leakages add
up. Leakages under the model do **not**: a channel was certified under a belief that the other
releases have changed. Given the true values $x$ of a stream,

$$\frac{\Pr(y_1, \dots, y_k \mid x)}{\Pr(y_1, \dots, y_k)}
  = \prod_i \frac{\Pr(y_i \mid x)}{\Pr(y_i \mid y_1, \dots, y_{i-1})},$$

and both probabilities in a factor lie within $e^{\pm \epsilon_i}$ of $\Pr(y_i)$: it counts twice,
but for the first release, which may be any; and never more than its model-free leakage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sfumato.core.numerics import add_up
from sfumato.stream.audit_report import AuditReport


@dataclass(frozen=True, slots=True)
class ToldTogether:
    """What all releases told of one stream.

    Attributes:
        releases: How many there are.
        sip: Bound on the leakage under the model.
        ldp: Model-free leakage: the sum.
    """

    releases: int
    sip: float
    ldp: float


def told_together(reports: Sequence[AuditReport]) -> Mapping[str, ToldTogether]:
    """What some releases told of each stream that is in any of them."""
    found: dict[str, list[tuple[float, float]]] = {}
    for report in reports:
        for stream, entry in report.streams.items():
            found.setdefault(stream, []).append((entry.sip, entry.ldp))
    return {stream: ToldTogether(len(parts), *total(parts)) for stream, parts in found.items()}


def total(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Leakages of several releases of one stream together, from those of each.

    Args:
        parts: Leakage under the model, and whatever the model, of each release.

    Examples:
        >>> total([(1.0, 2.0)])
        (1.0, 2.0)
        >>> [round(both, 9) for both in total([(1.0, 1.5), (0.5, 1.5)])]
        [2.0, 3.0]
    """
    free = _sum(ldp for _, ldp in parts)
    first = max(range(len(parts)), key=lambda place: _later(parts[place]) - parts[place][0])
    others = [_later(part) for place, part in enumerate(parts) if place != first]
    return min(_sum([parts[first][0], *others]), free), free


def _later(part: tuple[float, float]) -> float:
    """What a release tells at most after another."""
    return min(2 * part[0], part[1])


def _sum(amounts: Iterable[float]) -> float:
    found = 0.0
    for amount in amounts:
        found = add_up(found, amount)
    return found
