"""Points of the curves of a study."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """One point of one curve.

    Attributes:
        figure: Number and panel in the paper, such as `"2a"`.
        curve: What the curve is called.
        x: Abscissa: epsilon in nats (2), the probability of a flip (4), how many values were
            released (5), how many samples the prior was estimated from (6).
        y: Ordinate, in nats; infinite where nothing is bounded.
    """

    figure: str
    curve: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class MeasuredPoint(Point):
    """A point that is the mean of repeated runs.

    Attributes:
        error: Standard error of its ordinate.
    """

    error: float


@dataclass(frozen=True, slots=True)
class BatchPoint:
    """One curve at one budget.

    Attributes:
        setting: Name of the chain.
        curve: Name of the curve.
        width: Values of a batch.
        epsilon: Leakage per value that all curves are drawn against.
        loss: Expected share of wrong bits.
        guessed_loss: The same after the best guess from all outputs so far, which costs no
            privacy.
        leakage: Largest exact leakage of a batch that occurred, divided by its values; what the
            channel really leaks, whatever its rule claims.
        exact: Whether the tree was never thinned.
    """

    setting: str
    curve: str
    width: int
    epsilon: float
    loss: float
    guessed_loss: float
    leakage: float
    exact: bool
