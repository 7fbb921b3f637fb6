"""Disclosure of several columns: the best attacker's success, and publishing.

Rivals, in the same run: numpy on a full grid, which weighs every box for every published point,
and numpy's own normal generator, the least that adding noise could take. Processor seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

from sfumato.core.randomness import secure
from sfumato.record.attack.bayes_attack import bayes_disclosure
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.published_noise import lattice_steps, noise_of, published

Floats = NDArray[np.float64]
ACCURACY, SIGMA, WIDTH = 2.0, 6.0, 5
ROWS = 200_000


def priors() -> dict[str, JointMixture]:
    """One normal, two, and the kernel density of 2,000 records of the two."""
    pair = JointMixture(
        [0.4, 0.6], [[0, 0], [20, 10]], [[[25, 10], [10, 49]], [[16, -8], [-8, 36]]]
    )
    records = pair.draw(np.random.default_rng(0).random((2_000, 3)))
    return {
        "one normal": JointMixture.normal([0, 0], [[100, 60], [60, 100]]),
        "two normals": pair,
        "kernel density": JointMixture.kernel(records),
    }


def on_a_grid(prior: JointMixture, shape: str) -> float:
    """Every box for every published point, with whole arrays."""
    low, high = prior.bounds
    cell = 2 * ACCURACY / WIDTH
    axes = [np.arange(a, b, cell) + 0.5 * cell for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    masses = prior.density(grid.reshape(-1, 2)).reshape(grid.shape[:2]) * cell**2
    reach = int(np.ceil(3.5 * SIGMA / cell))
    total = 0.0
    for first in range(-reach, len(axes[0]) + reach, 3):
        for second in range(-reach, len(axes[1]) + reach, 3):
            off = grid - np.array([axes[0][0] + first * cell, axes[1][0] + second * cell])
            if shape == "gaussian":
                noise = np.exp(-0.5 * (off**2).sum(-1) / SIGMA**2) / (2 * np.pi * SIGMA**2)
            else:
                noise = ((off**2).sum(-1) <= 4 * SIGMA**2) / (4 * np.pi * SIGMA**2)
            boxes = uniform_filter(masses * noise, WIDTH, mode="constant") * WIDTH**2
            total += boxes.max() * (3 * cell) ** 2
    return total


def seconds(work: Callable[[], object]) -> tuple[float, object]:
    """Processor seconds of the second of two runs: the first may compile."""
    work()
    begin = time.process_time()
    done = work()
    return time.process_time() - begin, done


def main() -> None:
    """Print the tables."""
    print("| prior | noise | ours, s | delta | numpy grid, s | delta | numpy / ours |")
    print("|---|---|---|---|---|---|---|")
    for name, prior in priors().items():
        for shape in ("ball", "gaussian"):
            noise = noise_of(shape, SIGMA, 2)
            ours, found = seconds(lambda: bayes_disclosure(prior, noise, ACCURACY))  # noqa: B023
            theirs, rough = seconds(lambda: on_a_grid(prior, shape))  # noqa: B023
            print(
                f"| {name} | {shape} | {ours:.3g} | {found.delta:.4f} | {theirs:.3g} | "  # type: ignore[attr-defined]
                f"{rough:.4f} | {theirs / ours:.3g} |"
            )
    print()
    print("| noise | rows/s | numpy normal, rows/s | numpy / ours |")
    print("|---|---|---|---|")
    values, rng = np.random.default_rng(1).normal(170, 10, (ROWS, 2)), np.random.default_rng(2)
    bare, _ = seconds(lambda: values + rng.normal(0.0, SIGMA, values.shape))
    for shape in ("uniform", "gaussian", "laplace", "ball"):
        noise = noise_of(shape, SIGMA, 2)
        steps, coins = lattice_steps(noise, ACCURACY), secure()

        def publish() -> Floats:
            words = coins.words(ROWS * noise.words).reshape(ROWS, noise.words)  # noqa: B023
            return published(noise, values, steps, words)  # noqa: B023

        ours, _ = seconds(publish)
        print(f"| {shape} | {ROWS / ours:,.0f} | {ROWS / bare:,.0f} | {ours / bare:.3g} |")


if __name__ == "__main__":
    main()
