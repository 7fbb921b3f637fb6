"""What an audit can do with a release whose inside it does not see: ask it for outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from sfumato.core.channel import Channel
from sfumato.core.randomness import Randomness, seeded


@runtime_checkable
class BlackBox(Protocol):
    """Something that answers values with outputs; whatever it is inside.

    Examples:
        >>> class Coin:
        ...     def draw(self, values):
        ...         return [value ^ 1 for value in values]
        >>> isinstance(Coin(), BlackBox), isinstance(len, BlackBox)
        (True, False)
    """

    def draw(self, values: Sequence[Any]) -> Sequence[Any]:
        """One output for each value, in order."""
        ...


@dataclass(frozen=True, slots=True)
class Called:
    """A function that is called with one value at a time: ours, OpenDP's, anybody's.

    Attributes:
        mechanism: Gives a new output at each call.

    Examples:
        >>> Called(lambda value: value + 1).draw([1, 2])
        [2, 3]
    """

    mechanism: Callable[[Any], Any]

    def draw(self, values: Sequence[Any]) -> Sequence[Any]:
        """One output for each value, in order."""
        return [self.mechanism(value) for value in values]


@dataclass(frozen=True, slots=True, eq=False)
class SampledChannel:
    """The sampler of a channel: values and outputs are places in its alphabet.

    Attributes:
        channel: What is sampled.
        coins: Where its words come from; a simulation of seed 0 if not given.

    Examples:
        >>> noisy = Channel.from_probabilities([[0.75, 0.25], [0.25, 0.75]])
        >>> len(SampledChannel(noisy).draw([0, 1, 1]))
        3
    """

    channel: Channel
    coins: Randomness | None = None

    def __post_init__(self) -> None:
        if self.coins is None:
            object.__setattr__(self, "coins", seeded(0))

    def draw(self, values: Sequence[Any]) -> Sequence[Any]:
        """One output for each value, in order."""
        assert self.coins is not None
        words = self.coins.words(len(values))
        outputs: list[int] = self.channel.draw(np.asarray(values), words).tolist()
        return outputs


def black_box(mechanism: Callable[[Any], Any] | BlackBox | Channel) -> BlackBox:
    """Whatever was given, as something that can be asked for outputs."""
    if isinstance(mechanism, Channel):
        return SampledChannel(mechanism)
    # A channel of another library may be called and have a method `draw` of its own kind.
    return Called(mechanism) if callable(mechanism) else mechanism
