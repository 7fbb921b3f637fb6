"""Fourier's transform of real series, forth and back: the same bits on every machine.

Halves of even lengths are transformed apart and joined, odd lengths by the definition: for series,
not for signals of millions of values.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.compiled import njit
from sfumato.core.portable_angles import cosine, sine


@njit(cache=True)
def transformed(real: Floats, imaginary: Floats) -> tuple[Floats, Floats]:
    """The sums over j of x[j] e^(-2 pi i j k / n), for every k: real and imaginary parts."""
    size = real.size
    cosines, sines = np.empty(size), np.empty(size)
    for place in range(size):
        # Angles up to half a turn: what is left of a whole one is as exact as the place.
        near = place if 2 * place <= size else place - size
        cosines[place] = cosine(2.0 * math.pi * near / size)
        sines[place] = sine(2.0 * math.pi * near / size)
    odd, times = size, 1
    while odd % 2 == 0:
        odd, times = odd // 2, times * 2
    high, low = np.empty(size), np.empty(size)
    # Each of `times` interleaved series of odd length, by the definition.
    for first in range(times):
        for k in range(odd):
            up = down = 0.0
            for j in range(odd):
                angle = (j * k % odd) * times
                a, b = real[first + j * times], imaginary[first + j * times]
                up += a * cosines[angle] + b * sines[angle]
                down += b * cosines[angle] - a * sines[angle]
            high[first * odd + k], low[first * odd + k] = up, down
    # Two of them at a time are joined: those that begin half of the distance apart.
    length = odd
    while times > 1:
        half = times // 2
        more, less = np.empty(size), np.empty(size)
        for first in range(half):
            for k in range(length):
                a, b = high[first * length + k], low[first * length + k]
                c, d = high[(first + half) * length + k], low[(first + half) * length + k]
                turn = k * half
                e = c * cosines[turn] + d * sines[turn]
                f = d * cosines[turn] - c * sines[turn]
                at = first * 2 * length + k
                more[at], less[at] = a + e, b + f
                more[at + length], less[at + length] = a - e, b - f
        high, low, times, length = more, less, half, 2 * length
    return high, low
