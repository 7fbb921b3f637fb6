"""Hypothesis strategies for the nouns of the package."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.channel import Channel

Floats = NDArray[np.float64]

LEAST_MASS = 1e-12

epsilons = st.floats(min_value=1e-3, max_value=8.0)
leakages = st.floats(min_value=0.0, max_value=8.0)
sizes = st.integers(2, 6)


@dataclass(frozen=True)
class Problem:
    """What a design is asked for."""

    belief: Floats
    loss: Floats
    epsilon: float


def _logarithmic(exponent: float) -> float:
    return float(10.0**exponent)


_masses = st.one_of(
    st.floats(0.05, 1.0),
    st.floats(-11.0, 0.0).map(_logarithmic),
    st.sampled_from([LEAST_MASS, 1e-9, 1e-4, 1.0]),
)


@st.composite
def beliefs(draw: st.DrawFn, size: int | None = None) -> Floats:
    """Distributions with full support: even ones, skewed ones, and entries down to 1e-12."""
    count = draw(sizes) if size is None else size
    masses = np.array(draw(st.lists(_masses, min_size=count, max_size=count)))
    share = np.maximum(masses / masses.sum(), LEAST_MASS)
    return np.asarray(share / share.sum())


@st.composite
def balanced_beliefs(draw: st.DrawFn, size: int) -> Floats:
    """Distributions in which no symbol is rare."""
    masses = np.array(draw(st.lists(st.floats(0.5, 1.0), min_size=size, max_size=size)))
    return np.asarray(masses / masses.sum())


@st.composite
def losses(draw: st.DrawFn, size: int) -> Floats:
    """Wrong or right, distance, squared distance, or any table."""
    places = np.arange(size, dtype=np.float64)
    apart = np.abs(places[:, None] - places[None, :])
    entries = st.lists(st.floats(0.0, 10.0), min_size=size * size, max_size=size * size)
    table = entries.map(lambda values: np.array(values).reshape(size, size))
    return draw(st.one_of(st.sampled_from([np.sign(apart), apart, apart**2]), table))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """A belief, a loss of the same size and a budget."""
    belief = draw(beliefs())
    return Problem(belief, draw(losses(belief.size)), draw(epsilons))


@st.composite
def stochastic_matrices(
    draw: st.DrawFn, rows: int | None = None, columns: int | None = None
) -> Floats:
    """Rows that sum to 1; entries may be 0, and a row may be certain."""
    height = draw(sizes) if rows is None else rows
    width = draw(sizes) if columns is None else columns
    row = st.lists(
        st.one_of(st.integers(0, 9), st.floats(1e-6, 9.0)), min_size=width, max_size=width
    )
    table = np.array([draw(row.filter(any)) for _ in range(height)], dtype=np.float64)
    return np.asarray(table / table.sum(axis=1, keepdims=True))


@st.composite
def positive_matrices(
    draw: st.DrawFn, rows: int | None = None, columns: int | None = None
) -> Floats:
    """Rows that sum to 1 and have no zero: every leakage is finite."""
    table = draw(stochastic_matrices(rows, columns))
    floor = draw(st.floats(1e-9, 0.5))
    return np.asarray((1 - floor) * table + floor / table.shape[1])


def channels(size: int | None = None) -> st.SearchStrategy[Channel]:
    """Channels that may be silent about some outputs for some symbols."""
    return stochastic_matrices(rows=size).map(Channel.from_probabilities)


def positive_channels(size: int | None = None) -> st.SearchStrategy[Channel]:
    """Channels of finite leakage."""
    return positive_matrices(rows=size).map(Channel.from_probabilities)


@st.composite
def channels_and_beliefs(draw: st.DrawFn) -> tuple[Channel, Floats]:
    """A channel of finite leakage and a belief about its input."""
    channel = draw(positive_channels())
    return channel, draw(beliefs(channel.size))
