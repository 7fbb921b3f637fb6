"""Noise by name, and how it is added: on a lattice, where no float tells what was added."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.noise.number_noise import on_lattice
from sfumato.noise.registry import Registry
from sfumato.record.round_noise import RoundNoise
from sfumato.record.vector_noise import Kind, ProductNoise, VectorNoise, Words, axis_scales

SLACK = 2.0**-40
"""More than the coins, of 52 bits each, can move the probability of any box."""
_FINE = 2.0**-20
"""Steps of the lattice, in noise or accuracy: a millionth wider boxes in the certificate."""


VECTOR_NOISES: Registry[Callable[[Floats], VectorNoise]] = Registry(
    "noise",
    {
        "uniform": partial(ProductNoise, Kind.UNIFORM),
        "ball": RoundNoise.ball,
        "gaussian": partial(ProductNoise, Kind.GAUSSIAN),
        "laplace": partial(ProductNoise, Kind.LAPLACE),
    },
)
"""Noises by name, from the deviation of each axis."""


def noise_of(name: str, sigma: ArrayLike, dimension: int | None = None) -> VectorNoise:
    r"""A noise by name.

    Args:
        name: Which.
        sigma: Standard deviation of each axis; one number for all of them needs `dimension`.
        dimension: How many axes.

    Examples:
        >>> noise_of("ball", 5.0, 2).largest_box([1.0, 1.0])  # 1 / (25 pi)
        0.0127324
        >>> noise_of("uniform", 5.0, 2).largest_box([1.0, 1.0])  # 1 / (3 * 25)
        0.0133333
    """
    return VECTOR_NOISES.named(name)(axis_scales("sigma", sigma, dimension))


def published(noise: VectorNoise, values: ArrayLike, steps: Floats, words: Words) -> Floats:
    """Values with noise, on a lattice: every float that can come out can come from every value.

    A value is moved to the nearest multiple of a step, a power of two, and so is the noise; their
    sum is exact. The published value differs from value plus noise by at most one step.

    Args:
        noise: What is added.
        values: One person a row.
        steps: Distance of the points of the lattice, along each axis; see `lattice_steps`.
        words: Random words, one row of `noise.words` a person.

    Examples:
        >>> from sfumato.core.randomness import seeded
        >>> noise = noise_of("ball", 3.0, 2)
        >>> coins = seeded(1).words(noise.words).reshape(1, -1)
        >>> published(noise, [[170.0, 65.0]], lattice_steps(noise, 1.0), coins)
        array([[168.772826, 61.621285]])
    """
    given = np.atleast_2d(checks.numbers("values", values))
    if words.ndim != 2 or words.shape[1] != noise.words:
        raise InvalidParameter("words", words.shape, f"be {noise.words} a row")
    exponents = portable.log2(steps)
    if steps.shape != noise.sigma.shape or np.any(exponents != np.floor(exponents)):
        raise InvalidParameter("steps", steps.shape, "be a power of two for each axis")
    drawn = noise.draw(words)
    if given.shape != drawn.shape:
        raise InvalidParameter("values", given.shape, f"have the shape {drawn.shape}")
    columns = [
        step * (on_lattice(given[:, axis], step) + on_lattice(drawn[:, axis], step))
        for axis, step in enumerate(steps)
    ]
    return np.stack(columns, axis=1)


def lattice_steps(noise: VectorNoise, accuracy: ArrayLike) -> Floats:
    """Steps that are fine against noise and accuracy: powers of two."""
    widths = axis_scales("accuracy", accuracy, noise.sigma.size)
    return np.asarray(2.0 ** np.floor(portable.log2(np.minimum(noise.sigma, widths) * _FINE)))


def published_box(noise: VectorNoise, accuracy: ArrayLike, steps: Floats) -> float:
    """Largest probability that what `published` adds lies in any box, rounded up.

    What is added differs from the noise by at most a step, so it lies in a box only if the noise
    lies in one that is a step wider on each side.
    """
    widths = axis_scales("accuracy", accuracy, noise.sigma.size)
    return min(noise.largest_box(widths + steps) + SLACK, 1.0)
