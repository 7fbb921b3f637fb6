"""Accuracy and time of the best attacker, where the truth is known.

Columns 1 to 4, correlations 0 to .9999, every noise, mixtures, domains and rings, against brute
force on grids (one or two columns), powers of one column (independent ones), and closed forms
(a mixture of two equal normals, which is not recognised as one). Processor seconds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np
from tests.oracles.disclosure import (
    Line,
    Plane,
    line_disclosure,
    line_noise,
    plane_disclosure,
    plane_noise,
)
from tests.record.noises import shells

from sfumato.record.attack.bayes_attack import bayes_disclosure
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.published_noise import noise_of
from sfumato.record.vector_noise import VectorNoise

RING = [(0.9, 1.0, 1.0)]
LINES = {
    "normal": Line([1.0], [0.0], [1.0]),
    "domain": Line([1.0], [0.0], [1.0], -0.5, 2.0),
    "mixture": Line([0.3, 0.7], [-2.0, 2.0], [0.5, 1.0]),
}
PLANES = {
    "correlated .8": Plane([1.0], [[0.0, 5.0]], [[[1.0, 0.8], [0.8, 1.0]]]),
    "domain": Plane(
        [1.0], [[0.0, 0.0]], [[[1.0, 0.5], [0.5, 1.0]]], [[-0.5, 2.0], [-math.inf, 0.5]]
    ),
    "mixture": Plane(
        [0.4, 0.6],
        [[-1.0, 0.0], [1.5, 1.0]],
        [[[0.5, 0.2], [0.2, 0.6]], [[0.4, -0.2], [-0.2, 1.0]]],
    ),
}
Case = tuple[str, JointMixture, VectorNoise, float, float]


def named(kind: str, sigma: float, size: int) -> VectorNoise:
    """A noise by name, or a thin ring."""
    if kind == "ring":
        return shells(np.full(size, sigma), [0.9, 1.0], [1.0])
    return noise_of(kind, sigma, size)


def one_column() -> Iterator[Case]:
    """Against brute force."""
    for name, kind, sigma, eps in [
        ("normal", "uniform", 1.0, 0.1),
        ("normal", "ring", 1.0, 0.1),
        ("domain", "uniform", 0.5, 0.1),
        ("mixture", "gaussian", 1.0, 1.0),
        ("mixture", "laplace", 1.0, 0.1),
        ("mixture", "ring", 3.0, 0.02),
    ]:
        line = LINES[name]
        prior = JointMixture(
            line.weights,
            [[mean] for mean in line.means],
            [[[deviation**2]] for deviation in line.deviations],
            [[line.low, line.high]],
        )
        shape = line_noise("rings" if kind == "ring" else kind, sigma, RING)
        exact = line_disclosure(line, shape, eps)
        yield f"1 {name}, {kind} {sigma:g}, {eps:g}", prior, named(kind, sigma, 1), eps, exact


def two_columns() -> Iterator[Case]:
    """Against brute force."""
    for name, kind in [
        ("correlated .8", "uniform"),
        ("correlated .8", "laplace"),
        ("correlated .8", "ring"),
        ("domain", "ball"),
        ("mixture", "ball"),
        ("mixture", "gaussian"),
    ]:
        plane = PLANES[name]
        prior = JointMixture(plane.weights, plane.means, plane.covariances, plane.domain)
        rings = RING if kind == "ring" else ()
        shape = plane_noise("rings" if kind == "ring" else kind, (1.0, 1.0), rings)
        exact = plane_disclosure(plane, shape, (0.5, 0.5), cells=110, told=40)
        yield f"2 {name}, {kind} 1, .5", prior, named(kind, 1.0, 2), 0.5, exact


def more_columns() -> Iterator[Case]:
    """Against powers of one column, and closed forms."""
    for size in (2, 3, 4):
        for kind, sigma, eps in [
            ("uniform", 1.0, 0.5),
            ("laplace", 1.0, 0.5),
            ("uniform", 5.0, 1.0),
        ]:
            alone = line_disclosure(LINES["normal"], line_noise(kind, sigma), eps)
            prior = JointMixture.normal(np.zeros(size), np.eye(size))
            title = f"{size} independent, {kind} {sigma:g}, {eps:g}"
            yield title, prior, noise_of(kind, sigma, size), eps, alone**size
        for rho in (0.0, 0.6, 0.99, 0.9999):
            spread = (1 - rho) * np.eye(size) + rho
            twice = JointMixture([0.5, 0.5], np.zeros((2, size)), [spread] * 2)
            noise = noise_of("gaussian", 1.0, size)
            exact = bayes_disclosure(JointMixture.normal(np.zeros(size), spread), noise, 0.1).delta
            yield f"{size} correlated {rho:g} twice, gaussian 1, .1", twice, noise, 0.1, exact


def main() -> None:
    """Print the table."""
    print("| columns, density, noise, accuracy | truth | off | said | seconds |")
    print("|---|---|---|---|---|")
    for title, prior, noise, eps, exact in (*one_column(), *two_columns(), *more_columns()):
        begin = time.process_time()
        found = bayes_disclosure(prior, noise, eps)
        spent = time.process_time() - begin
        off, said = found.delta / exact - 1, 0.5 * (found.high - found.low) / found.delta
        print(f"| {title} | {exact:.5f} | {off:+.2%} | {said:.2%} | {spent:.2f} |", flush=True)


if __name__ == "__main__":
    main()
