"""What SIP says of its Figure 5, judged by expected losses on the two chains."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sfumato.plots.points import BatchPoint
from sfumato.studies.sip.sip_batches import Comparison
from sfumato.studies.study import Claim, verdict_of

_SEEN = 1e-3
"""Differences of losses that thinning cannot make."""
_WIDTHS = ("instantaneous", "batches of 2", "batches of 3", "batches of 5")
_RESPONSE, _TWICE = "randomized response", "randomized response, 2 epsilon"


class _Losses:
    """Losses by curve, setting and budget."""

    def __init__(self, points: Sequence[BatchPoint]) -> None:
        self.points = {(p.curve, p.setting, p.epsilon): p for p in points}
        self.at = sorted({(p.setting, p.epsilon) for p in points})

    def pairs(self, one: str, other: str, setting: str = "ab") -> list[tuple[float, float]]:
        """Losses of two curves at every setting and budget."""
        return [
            (self.points[(one, *at)].loss, self.points[(other, *at)].loss)
            for at in self.at
            if at[0] in setting
        ]


def claims(
    points: Sequence[BatchPoint], compared: Sequence[Comparison], kink: Comparison
) -> list[Claim]:
    """Every claim of the text about the figure."""
    losses = _Losses(points)
    return [
        _between(losses),
        _beyond(losses),
        _wider(losses, compared, kink),
        _stronger(losses),
        _rivals(losses),
    ]


def _between(losses: _Losses) -> Claim:
    above = [mine <= rival + _SEEN for mine, rival in losses.pairs("instantaneous", _RESPONSE)]
    below = [mine >= rival - _SEEN for mine, rival in losses.pairs("instantaneous", _TWICE)]
    return Claim(
        "SIP 5",
        "the instantaneous release loses less than randomised response at epsilon-LDP and more "
        "than at 2 epsilon-LDP, for every epsilon",
        f"less than at epsilon in {sum(above)} of {len(above)} cases, more than at 2 epsilon in "
        f"{sum(below)}",
        verdict_of([*above, *below]),
        "" if all([*above, *below]) else "on correlated bits it can lose less than at 2 epsilon",
    )


def _beyond(losses: _Losses) -> Claim:
    pairs = losses.pairs("instantaneous", _RESPONSE, "b")
    held = [mine < rival for mine, rival in pairs]
    guessed = [
        losses.points["instantaneous", *at].loss
        < losses.points["calibrated", *at].guessed_loss + _SEEN
        for at in losses.at
        if at[0] == "b"
    ]
    return Claim(
        "SIP 5 (b)",
        "on correlated bits the instantaneous release outperforms randomised response",
        f"as released at {sum(held)} of {len(held)} budgets; at equal leakage, against the best "
        f"guess after randomised response, at {sum(guessed)}",
        verdict_of([*held, *guessed]),
        "" if all(guessed) else "the optimum of a step is not that of a stream",
    )


def _wider(losses: _Losses, compared: Sequence[Comparison], kink: Comparison) -> Claim:
    shown = [
        wide <= narrow + _SEEN
        for one, other in pairwise(_WIDTHS)
        for narrow, wide in losses.pairs(one, other)
    ]
    dearer = sum(pair.dearer for pair in compared)
    return Claim(
        "SIP 5",
        "batches always outperform the instantaneous release, the more so the wider they are",
        f"in {sum(shown)} of {len(shown)} steps of the figure, in {len(compared) - dearer} of "
        f"{len(compared)} exact comparisons over 6 values; not at epsilon {kink.epsilon:.4f}, "
        f"where batches of {kink.wide} lose {kink.wide_loss:.5f} and of {kink.narrow} "
        f"{kink.narrow_loss:.5f}",
        verdict_of([*shown, dearer == 0, not kink.dearer]),
        "erratum N5" if kink.dearer else "",
    )


def _stronger(losses: _Losses) -> Claim:
    """Whether the advantage over randomised response is larger on the correlated chain."""
    budgets = sorted({epsilon for _, epsilon in losses.at})

    def gain(curve: str, setting: str, epsilon: float) -> float:
        rival = losses.points[_RESPONSE, setting, epsilon].loss
        return rival / max(losses.points[curve, setting, epsilon].loss, 1e-12)

    held = [
        gain(curve, "b", epsilon) > gain(curve, "a", epsilon)
        for curve in _WIDTHS
        for epsilon in budgets
    ]
    return Claim(
        "SIP 5",
        "the advantage of context-aware releases is larger where the correlation is strong",
        f"the loss of randomised response over ours is larger on (b) than on (a) in {sum(held)} of "
        f"{len(held)} cases",
        verdict_of(held),
        "" if all(held) else "erratum 7: (a) is independent data, (b) the correlated one",
    )


def _rivals(losses: _Losses) -> Claim:
    names = ("ToPS", "ToPL", "temporal LDP")
    counted = {
        name: [mine < rival for mine, rival in losses.pairs("instantaneous", name)]
        for name in names
    }
    said = ", ".join(f"{name} {sum(found)} of {len(found)}" for name, found in counted.items())
    return Claim(
        "SIP 5",
        "the rivals from the literature (ToPS; temporal LDP) lose more than the SIP releases",
        f"at equal promises the instantaneous release loses less than: {said}; they leak less than "
        "they promise, which the picture takes into account",
        verdict_of(held for found in counted.values() for held in found),
    )
