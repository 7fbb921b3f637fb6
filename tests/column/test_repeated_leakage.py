import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import LIP, Channel
from sfumato.column.repeated_leakage import (
    correlated_bound,
    repeated_bound,
    repeated_leakage,
)
from sfumato.core.errors import InvalidParameter
from sfumato.core.information_leakage import information_leakage

SEEDS = st.integers(0, 2**32 - 1)


def channels_of(rng: np.random.Generator, size: int, count: int) -> list[Channel]:
    tables = rng.dirichlet(np.ones(2), size=(count, size)) * 0.98 + 0.01
    return [Channel.from_probabilities(rows) for rows in tables]


def exact_leakage(channels: list[Channel], prior: np.ndarray) -> mpmath.mpf:
    parts = [Fraction(float(p)) for p in prior]
    tables = [channel.weights.tolist() for channel in channels]
    worst = mpmath.mpf(0)
    for told in itertools.product(*(range(len(table[0])) for table in tables)):
        rows = [
            math.prod(Fraction(t[x][y]) for t, y in zip(tables, told, strict=True))
            for x in range(len(parts))
        ]
        weighted = (p * row for p, row in zip(parts, rows, strict=True))
        mean = sum(weighted, Fraction(0)) / sum(parts, Fraction(0))
        with mpmath.workdps(50):
            for row in rows:
                ratio = Fraction(row) / mean
                worst = max(worst, abs(mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)))
    return worst


@settings(max_examples=25)
@given(seed=SEEDS, size=st.integers(2, 4), count=st.integers(1, 4))
def test_the_leakage_of_repeated_releases_is_exact_and_within_the_bound(
    seed: int, size: int, count: int
) -> None:
    rng = np.random.default_rng(seed)
    channels, prior = channels_of(rng, size, count), rng.dirichlet(np.ones(size)) * 0.9 + 0.1 / size
    exact = exact_leakage(channels, prior)
    told = repeated_leakage(channels, prior).epsilon
    assert exact <= told
    assert told == pytest.approx(float(exact), rel=1e-9, abs=1e-12)
    each = [LIP(information_leakage(channel, prior).epsilon) for channel in channels]
    assert told <= repeated_bound(each, prior).epsilon + 1e-9


@settings(max_examples=25)
@given(seed=SEEDS, count=st.integers(1, 3))
def test_a_sequence_leaks_no_more_than_the_bound(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.ones(2**count)) * 0.9 + 0.1 / 2**count
    cube = joint.reshape((2,) * count)
    channels = channels_of(rng, 2, count)
    margins = [
        cube.sum(axis=tuple(a for a in range(count) if a != moment)) for moment in range(count)
    ]
    rows: np.ndarray = np.ones((1, 1))
    for channel in channels:
        rows = np.kron(rows, channel.probabilities)
    mean = joint @ rows
    leaked = np.abs(np.log(rows / mean)).max()
    each = [
        LIP(information_leakage(channel, prior).epsilon)
        for channel, prior in zip(channels, margins, strict=True)
    ]
    bound = correlated_bound(each, margins, least=float(min(joint.min(), 0.5)))
    assert leaked <= bound.epsilon + 1e-9


@settings(max_examples=16, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 4), secrets=st.integers(2, 4))
def test_what_is_correlated_leaks_less(seed: int, size: int, secrets: int) -> None:
    rng = np.random.default_rng(seed)
    (channel,) = channels_of(rng, size, 1)
    prior, rows = rng.dirichlet(np.ones(secrets)), rng.dirichlet(np.ones(size), size=secrets)
    prior = prior * 0.9 + 0.1 / secrets
    rows = rows * 0.9 + 0.1 / size
    told = information_leakage(channel, prior @ rows).epsilon
    through = Channel.from_probabilities(rows @ channel.probabilities, channel.outputs)
    assert information_leakage(through, prior).epsilon <= told + 1e-9


@settings(max_examples=16, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 4))
def test_what_is_done_to_the_output_tells_nothing_more(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    (channel,) = channels_of(rng, size, 1)
    prior = rng.dirichlet(np.ones(size)) * 0.9 + 0.1 / size
    kernel = rng.dirichlet(np.ones(3), size=2)
    after = Channel.from_probabilities(channel.probabilities @ kernel)
    told = information_leakage(channel, prior).epsilon
    assert information_leakage(after, prior).epsilon <= told + 1e-9


@settings(max_examples=16, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 4), parts=st.integers(1, 4))
def test_a_mixture_of_priors_leaks_no_more_than_its_worst_part(
    seed: int, size: int, parts: int
) -> None:
    rng = np.random.default_rng(seed)
    (channel,) = channels_of(rng, size, 1)
    priors = rng.dirichlet(np.ones(size), size=parts) * 0.9 + 0.1 / size
    mixed = rng.dirichlet(np.ones(parts)) @ priors
    worst = max(information_leakage(channel, prior).epsilon for prior in priors)
    assert information_leakage(channel, mixed).epsilon <= worst + 1e-9


def test_bad_input_is_refused() -> None:
    noisy = Channel.from_probabilities([[0.75, 0.25], [0.25, 0.75]])
    other = Channel.constant(3, 0)
    for channels in ([], [noisy, other], [noisy] * 40):
        with pytest.raises(InvalidParameter, match="channels must"):
            repeated_leakage(channels, [0.5, 0.5])
    with pytest.raises(InvalidParameter, match="priors must be one per guarantee"):
        correlated_bound([LIP(1.0)], [], 0.1)
    open_door = Channel.from_probabilities(np.eye(2))
    assert repeated_leakage([open_door], [0.5, 0.5]).epsilon == math.inf
