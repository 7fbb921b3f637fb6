r"""Mechanisms for tracks whose next channel follows from public things alone.

Each offers a family of channels, from quiet to loud; a run takes the loudest one that leaks no more
than its cap under what an observer believes by then. That is more than their authors ask for: it
puts them at their best, at the leakage that everything else is judged at.

- *Planar Laplace*: the same noise whatever was told before.
- *Predictive*: is the truth near a prediction? That is asked with Laplace noise on the threshold;
  if so, the prediction leaves, otherwise planar Laplace noise.
- *Adaptive*: noise of a rate that depends on how far the truth is from a prediction.

References:
    [Andres2013, Sec. 4], [Chatzikokolakis2014, Sec. 3], [Dhubhani2018, Sec. 4]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.studies.tracks.planar_noise import planar_channels


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Channels from quiet to loud with the same outputs.

    Attributes:
        rows: Chances of the shape (scales, places, outputs).
        shown: The place that each output shows.
    """

    rows: Floats
    shown: Ints


class PublicRival(Protocol):
    """What a run asks of such a mechanism."""

    def family(self, last: int | None, guess: int) -> Family:
        """Channels for the next value.

        Args:
            last: The place that was shown last, if any.
            guess: The best guess of what an observer believes.
        """
        ...


class Scales:
    """Planar noise on some places, at rates that cover all that is of use.

    Examples:
        >>> corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        >>> noise = Scales(corners)
        >>> noise.channels.shape == (len(noise.rates), 4, 4)
        True
    """

    def __init__(self, places: Floats, count: int = 160) -> None:
        self.distances: Floats = np.linalg.norm(places[:, None] - places[None], axis=2)
        least = self.distances[self.distances > 0].min()
        self.rates: Floats = np.geomspace(0.01 / self.distances.max(), 12.0 / least, count)
        self.channels: Floats = planar_channels(places, self.rates)


@dataclass(frozen=True, slots=True, eq=False)
class PlanarLaplace:
    """Noise of one rate on every value."""

    noise: Scales

    def family(self, last: int | None, guess: int) -> Family:
        """The same for every history."""
        return Family(self.noise.channels, np.arange(self.noise.channels.shape[2]))


@dataclass(frozen=True, slots=True, eq=False)
class Predictive:
    """A noisy test whether the prediction is near, then the prediction or noise.

    Attributes:
        noise: For the values that are not near.
        threshold: What is near, as a distance.
        share: Rate of the test, in parts of that of the noise.
        parrot: Whether what was shown last is the prediction, or the best guess.
    """

    noise: Scales
    threshold: float
    share: float
    parrot: bool

    def family(self, last: int | None, guess: int) -> Family:
        """The last output of all says that the test was passed."""
        predicted = last if self.parrot and last is not None else guess
        over = self.noise.distances[:, predicted] - self.threshold
        rates = self.share * self.noise.rates[:, None]
        half = np.exp(-rates * np.abs(over)) / 2
        near = np.where(over > 0, half, 1 - half)[:, :, None]
        rows = np.concatenate([(1 - near) * self.noise.channels, near], axis=2)
        return Family(rows, np.append(np.arange(rows.shape[1]), predicted))


@dataclass(frozen=True, slots=True, eq=False)
class Adaptive:
    """Noise that depends on how far the truth is from a prediction.

    Attributes:
        noise: At every rate.
        near: Below this distance the rate is divided.
        far: Beyond this distance it is multiplied.
        factor: By which.
        parrot: Whether what was shown last is the prediction, or the best guess.
    """

    noise: Scales
    near: float
    far: float
    factor: float
    parrot: bool

    def family(self, last: int | None, guess: int) -> Family:
        """Rows of different rates, side by side."""
        predicted = last if self.parrot and last is not None else guess
        away = self.noise.distances[:, predicted]
        times = np.where(
            away < self.near, 1 / self.factor, np.where(away > self.far, self.factor, 1.0)
        )
        ratio = self.noise.rates[1] / self.noise.rates[0]
        shift = np.rint(np.log(times) / np.log(ratio)).astype(np.int64)
        last_rate = len(self.noise.rates) - 1
        scales = np.clip(np.arange(last_rate + 1)[:, None] + shift, 0, last_rate)
        truths = np.arange(len(away))
        return Family(self.noise.channels[scales, truths], truths)


def loudest(family: Family, belief: Floats, cap: float) -> tuple[int, float] | None:
    """The loudest channel within a cap and what it leaks; None where even the first leaks more.

    Args:
        family: The channels.
        belief: What an observer believes before.
        cap: Most nats.

    Examples:
        >>> rows = np.array([[[0.5, 0.5], [0.5, 0.5]], [[0.6, 0.4], [0.4, 0.6]]])
        >>> family = Family(rows, np.arange(2))
        >>> loudest(family, np.array([0.5, 0.5]), 0.1)
        (0, 0.0)
    """
    marginals = np.einsum("x,sxo->so", belief, family.rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.abs(np.log(family.rows / marginals[:, None]))
    ratios[np.broadcast_to(marginals[:, None] == 0, ratios.shape)] = 0.0
    leaks = ratios.max(axis=(1, 2))
    within = np.flatnonzero(leaks <= cap)
    if len(within) == 0:
        return None
    return int(within[-1]), float(leaks[within[-1]])
