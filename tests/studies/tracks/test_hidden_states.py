"""Mechanisms that remember true values: beliefs against sums over all paths."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest

from sfumato.core.arrays import Floats
from sfumato.studies.tracks.clustered_reports import ClusteredReports
from sfumato.studies.tracks.compensated_noise import CompensatedNoise, SquareWave
from sfumato.studies.tracks.planar_noise import planar_channels

PLACES = np.array([[0.0, 0.0], [1.0, 0.0], [0.2, 1.0]])
MOVES = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.1, 0.6]])
FIRST = np.array([0.5, 0.3, 0.2])


def chance_of(path: Sequence[int]) -> float:
    return float(FIRST[path[0]] * math.prod(MOVES[a, b] for a, b in itertools.pairwise(path)))


def clustered() -> ClusteredReports:
    near = np.linalg.norm(PLACES[:, None] - PLACES, axis=2) <= 1.0
    assert near.sum() == 5 or near.sum() == 7
    return ClusteredReports(planar_channels(PLACES, np.array([1.5]))[0], near)


def explained(rule: ClusteredReports, path: Sequence[int], told: Sequence[int | None]) -> float:
    centre, chance = -1, 1.0
    for place, report in zip(path, told, strict=True):
        repeats = centre >= 0 and bool(rule.near[place, centre])
        if repeats != (report is None):
            return 0.0
        if report is not None:
            centre = place
            chance *= rule.channel[place, report]
    return chance


@pytest.mark.parametrize("seed", range(6))
def test_beliefs_about_clustered_reports_are_sums_over_all_paths(seed: int) -> None:
    rule, rng = clustered(), np.random.default_rng(seed)
    track = [int(rng.integers(3)) for _ in range(5)]
    told = rule.released(track, rng)
    known = rule.filtered(FIRST, MOVES, told)
    whole = rule.smoothed(MOVES, told, known)
    for last in range(5):
        paths = list(itertools.product(range(3), repeat=last + 1))
        weights = [chance_of(path) * explained(rule, path, told[: last + 1]) for path in paths]
        now = np.bincount([path[-1] for path in paths], weights, 3)
        assert np.abs(known[last].sum(axis=1) - now / now.sum()).max() < 1e-12
    past = np.array([np.bincount([path[t] for path in paths], weights, 3) for t in range(5)])
    assert np.abs(whole - past / past.sum(axis=1, keepdims=True)).max() < 1e-12


def test_a_repetition_excludes_places() -> None:
    rule = clustered()
    known = rule.filtered(FIRST, MOVES, [1, None])
    far = ~rule.near
    assert far.any()
    assert (known[1][far] == 0).all()


@pytest.mark.statistical
def test_reports_of_the_square_wave_have_its_density_and_no_other() -> None:
    wave, rng = SquareWave(1.2), np.random.default_rng(1)
    inputs = np.full(60_000, 0.3)
    reports = wave.perturbed(inputs, rng)
    assert reports.min() >= -wave.half_width
    assert reports.max() <= 1 + wave.half_width
    near = np.abs(reports - 0.3) <= wave.half_width

    def expected(epsilon: float) -> float:
        mass = 2 * wave.half_width * math.exp(epsilon)
        return mass / (mass + 1)

    deviation = 4 * (0.25 / 60_000) ** 0.5
    assert abs(near.mean() - expected(1.2)) < deviation
    assert min(abs(near.mean() - expected(scale * 1.2)) for scale in (0.7, 1.3)) > 3 * deviation
    left = reports[~near] < 0.3
    assert abs(left.mean() - 0.3) < 0.02


def test_inputs_are_told_apart_by_at_most_epsilon() -> None:
    wave = SquareWave(0.8)
    reports = np.linspace(-wave.half_width, 1 + wave.half_width, 101)
    logs = np.array([wave.log_likelihood(reports, np.full(101, v)) for v in (0.0, 0.4, 1.0)])
    assert np.ptp(logs, axis=0).max() == pytest.approx(0.8)


def off_inputs(rule: CompensatedNoise, path: Sequence[int], reports: Floats) -> float:
    """Logarithm of the chance of reports given a path, written out anew."""
    off, total = np.zeros(2), 0.0
    width = SquareWave(rule.epsilon / 2).half_width
    low, high = -rule.margin, 1 + rule.margin
    for place, report in zip(path, reports, strict=True):
        for axis in range(2):
            shifted = min(max(PLACES[place, axis] + off[axis], low), high)
            apart = abs(report[axis] - shifted) / (high - low)
            total += rule.epsilon / 2 if apart <= width else 0.0
        off += PLACES[place] - report
    return total


def test_particles_come_near_the_sums_over_all_paths() -> None:
    rule, rng = CompensatedNoise(4.0, 0.1, window=2), np.random.default_rng(2)
    reports = rule.released(PLACES[[0, 0, 1, 1]], rng)
    runs = [rule.beliefs(FIRST, MOVES, PLACES, reports, seed) for seed in range(40)]
    known, whole = (np.mean([run[part] for run in runs], axis=0) for part in (0, 1))
    for last in range(4):
        paths = list(itertools.product(range(3), repeat=last + 1))
        logs = [off_inputs(rule, path, reports[: last + 1]) for path in paths]
        weights = [chance_of(p) * math.exp(log) for p, log in zip(paths, logs, strict=True)]
        now = np.bincount([path[-1] for path in paths], weights, 3)
        assert np.abs(known[last] - now / now.sum()).max() < 0.02
    past = np.array([np.bincount([path[t] for path in paths], weights, 3) for t in range(4)])
    assert np.abs(whole - past / past.sum(axis=1, keepdims=True)).max() < 0.03
