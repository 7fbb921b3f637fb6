"""The best attacker by brute force: every published point, every place of the box.

Nothing of the package is used. Densities are written down again, and integrals are sums over grids
that follow every scale and every jump of the problem.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, special, stats

Floats = NDArray[np.float64]
Ring = tuple[float, float, float]
"""Inner radius, outer radius, probability."""

_REACH = 9.0
_PARTS = 6


@dataclass(frozen=True)
class Line:
    """A mixture of normals on a line, in an interval."""

    weights: Sequence[float]
    means: Sequence[float]
    deviations: Sequence[float]
    low: float = -math.inf
    high: float = math.inf

    def density(self, x: Floats) -> Floats:
        total, mass = np.zeros_like(x), 0.0
        for w, m, d in zip(self.weights, self.means, self.deviations, strict=True):
            total += w * np.exp(-0.5 * ((x - m) / d) ** 2) / (d * math.sqrt(2 * math.pi))
            mass += w * (special.ndtr((self.high - m) / d) - special.ndtr((self.low - m) / d))
        return np.where((x >= self.low) & (x <= self.high), total / mass, 0.0)

    def cuts(self) -> Floats:
        steps = np.linspace(-_REACH, _REACH, 37)
        ends = [m + d * steps for m, d in zip(self.means, self.deviations, strict=True)]
        inside = np.clip(np.concatenate(ends), self.low, self.high)
        return np.unique(inside)


@dataclass(frozen=True)
class LineNoise:
    """A density on a line, where to cut it, and where it jumps or bends."""

    density: Callable[[Floats], Floats]
    cuts: Floats
    kinks: Floats


def line_noise(kind: str, sigma: float, rings: Sequence[Ring] = ()) -> LineNoise:
    """By name; rings are told in any unit and are stretched to the deviation."""
    if kind == "uniform" or (kind == "ball" and not rings):
        return line_noise("rings", sigma, [(0.0, 1.0, 1.0)])
    if kind == "gaussian":
        steps = sigma * np.linspace(-_REACH, _REACH, 37)
        return LineNoise(
            lambda t: np.exp(-0.5 * (t / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi)),
            steps,
            np.zeros(1),
        )
    if kind == "laplace":
        size = sigma / math.sqrt(2)
        near, far = np.linspace(0.0, 6.0, 16), np.linspace(7.0, 24.0, 12)
        half = size * np.concatenate([near, far])
        return LineNoise(
            lambda t: np.exp(-np.abs(t) / size) / (2 * size), np.union1d(-half, half), np.zeros(1)
        )
    squared = sum(p * (b**3 - a**3) / (3 * (b - a)) for a, b, p in rings)
    unit = sigma / math.sqrt(squared)
    scaled = [(a * unit, b * unit, p) for a, b, p in rings]

    def density(t: Floats) -> Floats:
        total = np.zeros_like(t)
        for a, b, p in scaled:
            total += np.where((np.abs(t) >= a) & (np.abs(t) < b), p / (2 * (b - a)), 0.0)
        return total

    ends = np.array([end for a, b, _ in scaled for end in (a, b, (a + b) / 2)])
    return LineNoise(density, np.union1d(-ends, ends), np.union1d(-ends, ends))


def _refined(cuts: Floats, parts: int) -> Floats:
    inner = cuts[:-1, None] + np.diff(cuts)[:, None] * np.arange(parts) / parts
    return np.concatenate([inner.ravel(), cuts[-1:]])


def line_posterior(prior: Line, noise: LineNoise, told: float) -> tuple[Floats, Floats]:
    """Edges, and the mass of prior times noise up to each of them."""
    known, heard = prior.cuts(), told + noise.cuts
    low, high = max(known[0], heard[0]), min(known[-1], heard[-1])
    cuts = np.concatenate([known, heard])
    if not low < high:
        return np.array([told, told + 1.0]), np.zeros(2)
    inside = np.union1d(cuts[(cuts > low) & (cuts < high)], [low, high])
    edges = _refined(inside, _PARTS)
    middles = 0.5 * (edges[1:] + edges[:-1])
    masses = prior.density(middles) * noise.density(told - middles) * np.diff(edges)
    return edges, np.concatenate([[0.0], np.cumsum(masses)])


def line_best(prior: Line, noise: LineNoise, accuracy: float, told: float) -> tuple[float, float]:
    """The mass of the best interval, and its middle."""
    edges, below = line_posterior(prior, noise, told)
    starts = np.concatenate([edges, edges - 2 * accuracy, edges - accuracy])
    masses = np.interp(starts + 2 * accuracy, edges, below) - np.interp(starts, edges, below)
    best = int(np.argmax(masses))
    return float(masses[best]), float(starts[best] + accuracy)


def line_disclosure(prior: Line, noise: LineNoise, accuracy: float) -> float:
    """The chance of the best attacker, one attribute.

    What is published changes at the scale of the prior around jumps of the noise, and at that of
    the noise around the middles and ends of the prior: the integral is cut at both.
    """
    ends = [*prior.means, *(end for end in (prior.low, prior.high) if math.isfinite(end))]
    around = np.add.outer(prior.cuts(), noise.kinks).ravel()
    about = np.add.outer(np.array(ends), noise.cuts).ravel()
    last = prior.cuts()[[0, -1]] + noise.cuts[[0, -1]]
    cuts = np.unique(np.clip(np.concatenate([around, about, last]), *last))
    nodes, weights = np.polynomial.legendre.leggauss(3)
    total = 0.0
    for low, high in itertools.pairwise(cuts):
        half = 0.5 * (high - low)
        for node, weight in zip(nodes, weights, strict=True):
            told = low + half * (1 + node)
            total += half * weight * line_best(prior, noise, accuracy, told)[0]
    return total


@dataclass(frozen=True)
class Plane:
    """A mixture of normals in the plane, in a rectangle."""

    weights: Sequence[float]
    means: Sequence[Sequence[float]]
    covariances: Sequence[Sequence[Sequence[float]]]
    domain: Sequence[Sequence[float]] = ((-math.inf, math.inf), (-math.inf, math.inf))

    def density(self, x: Floats, y: Floats) -> Floats:
        """On a grid; not divided by the mass in the rectangle."""
        total = np.zeros((x.size, y.size))
        for w, (mx, my), ((a, b), (_, d)) in zip(
            self.weights, self.means, self.covariances, strict=True
        ):
            determinant = a * d - b * b
            u, v = (x - mx)[:, None], (y - my)[None, :]
            squared = (d * u * u - 2 * b * u * v + a * v * v) / determinant
            total += w * np.exp(-0.5 * squared) / (2 * math.pi * math.sqrt(determinant))
        (x0, x1), (y0, y1) = self.domain
        inside = ((x >= x0) & (x <= x1))[:, None] & ((y >= y0) & (y <= y1))[None, :]
        return np.where(inside, total, 0.0)

    def bounds(self, axis: int, reach: float = 6.0) -> tuple[float, float]:
        ends = [
            (m[axis] - reach * math.sqrt(c[axis][axis]), m[axis] + reach * math.sqrt(c[axis][axis]))
            for m, c in zip(self.means, self.covariances, strict=True)
        ]
        low, high = self.domain[axis]
        return max(low, min(e[0] for e in ends)), min(high, max(e[1] for e in ends))


PlaneNoise = Callable[[Floats, Floats], Floats]


def plane_noise(
    kind: str, sigma: Sequence[float], rings: Sequence[Ring] = (), rho: float = 0.0
) -> tuple[PlaneNoise, tuple[float, float]]:
    """A density of two offsets that broadcast, and its reach along each axis."""
    s, t = sigma
    if kind == "uniform":
        a, b = math.sqrt(3) * s, math.sqrt(3) * t
        return (
            lambda u, v: np.where((np.abs(u) <= a) & (np.abs(v) <= b), 1 / (4 * a * b), 0.0),
            (a, b),
        )
    if kind == "gaussian":
        factor = 1 / (2 * math.pi * s * t * math.sqrt(1 - rho**2))

        def normal(u: Floats, v: Floats) -> Floats:
            squared = (u / s) ** 2 - 2 * rho * u * v / (s * t) + (v / t) ** 2
            return np.asarray(factor * np.exp(-0.5 * squared / (1 - rho**2)))

        return normal, (6 * s, 6 * t)
    if kind == "laplace":
        a, b = s / math.sqrt(2), t / math.sqrt(2)
        return (
            lambda u, v: np.exp(-np.abs(u) / a - np.abs(v) / b) / (4 * a * b),
            (11 * a, 11 * b),
        )
    shells = rings or [(0.0, 1.0, 1.0)]
    squared = sum(p * (q**2 + r**2) / 2 for q, r, p in shells)
    unit = math.sqrt(2 / squared)

    def round_noise(u: Floats, v: Floats) -> Floats:
        distance = np.sqrt((u / s) ** 2 + (v / t) ** 2) / unit
        total = np.zeros_like(distance)
        for q, r, p in shells:
            height = p / (math.pi * (r**2 - q**2) * unit**2 * s * t)
            total += np.where((distance >= q) & (distance < r), height, 0.0)
        return total

    outer = max(r for _, r, _ in shells) * unit
    return round_noise, (outer * s, outer * t)


def plane_disclosure(
    prior: Plane,
    noise: tuple[PlaneNoise, tuple[float, float]],
    accuracy: Sequence[float],
    *,
    cells: int = 160,
    told: int = 40,
) -> float:
    """The chance of the best attacker, two attributes.

    The box is a whole number of cells, so that every box of cells is looked at.
    """
    density, reach = noise
    spans, widths = [], []
    for axis in (0, 1):
        low, high = prior.bounds(axis)
        span = min(high - low, 2 * reach[axis])
        whole = max(2, round(2 * accuracy[axis] * cells / span))
        spans.append(whole)
        widths.append(2 * accuracy[axis] / whole)
    axes = []
    for axis in (0, 1):
        low, high = prior.bounds(axis)
        count = math.ceil((high - low) / widths[axis])
        extra = 0.5 * (count * widths[axis] - (high - low))
        axes.append(low - extra + (np.arange(count) + 0.5) * widths[axis])
    table = prior.density(np.asarray(axes[0]), np.asarray(axes[1]))
    table /= table.sum()
    ys, steps = [], []
    for axis in (0, 1):
        low, high = prior.bounds(axis, 5.0)
        low, high = low - reach[axis], high + reach[axis]
        steps.append((high - low) / told)
        ys.append(low + (np.arange(told) + 0.5) * steps[axis])
    total = 0.0
    for first in ys[0]:
        rows = np.flatnonzero(np.abs(axes[0] - first) <= reach[0])
        for second in ys[1]:
            columns = np.flatnonzero(np.abs(axes[1] - second) <= reach[1])
            if not (rows.size and columns.size):
                continue
            here = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
            off = (first - axes[0][rows])[:, None], (second - axes[1][columns])[None, :]
            total += _largest_window(table[here] * density(*off), *spans)
    return total * steps[0] * steps[1]


def _largest_window(table: Floats, rows: int, columns: int) -> float:
    rows, columns = min(rows, table.shape[0]), min(columns, table.shape[1])
    summed = np.zeros((table.shape[0] + 1, table.shape[1] + 1))
    summed[1:, 1:] = table.cumsum(axis=0).cumsum(axis=1)
    windows = (
        summed[rows:, columns:]
        - summed[:-rows, columns:]
        - summed[rows:, :-columns]
        + summed[:-rows, :-columns]
    )
    return float(windows.max())


def normal_disclosure(
    covariance: Sequence[Sequence[float]], sigma: Sequence[float], accuracy: Sequence[float]
) -> float:
    """Normal prior and independent normal noise, two attributes: nested quadrature."""
    prior = np.asarray(covariance)
    noise = np.diag(np.square(sigma))
    posterior = prior - prior @ np.linalg.solve(prior + noise, prior)
    a, b, d = posterior[0, 0], posterior[0, 1], posterior[1, 1]
    rest = math.sqrt(d - b * b / a)

    def slice_at(x: float) -> float:
        mean = b / a * x
        upper, lower = (accuracy[1] - mean) / rest, (-accuracy[1] - mean) / rest
        return float(
            stats.norm.pdf(x, 0, math.sqrt(a)) * (special.ndtr(upper) - special.ndtr(lower))
        )

    edge = accuracy[1] * a / b if b else math.inf
    inner = [place for place in (-edge, 0.0, edge) if abs(place) < accuracy[0]]
    return float(
        integrate.quad(slice_at, -accuracy[0], accuracy[0], points=inner or None, limit=400)[0]
    )


def share_in_ball(half: Sequence[float], radius: float) -> float:
    r"""The share of a box around the centre of a ball inside it: $P(\sum h_i^2 U_i^2 \le r^2)$.

    From the characteristic function of the sum (Gil-Pelaez), a product of Fresnel integrals; one
    and two dimensions, where that converges slowly, by quadrature.
    """
    squares = np.square(np.asarray(half, dtype=np.float64))
    level = radius**2 / squares.max()
    squares = squares / squares.max()
    if level >= squares.sum():
        return 1.0
    if squares.size <= 2:
        return _small_share(squares, level)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    # The tail of the integrand falls like t^(-1 - N/2) and swings.
    step, last = 1.0, 40_000.0 if squares.size == 3 else 6_000.0
    starts = np.arange(0.0, last, step)
    t = (starts[:, None] + 0.5 * step * (nodes + 1)).ravel()
    w = np.tile(0.5 * step * weights, starts.size)
    logs = np.ones(t.size, dtype=np.complex128)
    for square in squares:
        z = np.sqrt(2 * t * square / math.pi)
        sine, cosine = special.fresnel(z)
        logs *= (cosine + 1j * sine) / z
    imaginary = np.imag(np.exp(-1j * t * level) * logs)
    return float(0.5 - (w * imaginary / t).sum() / math.pi)


def _small_share(squares: Floats, level: float) -> float:
    if squares.size == 1:
        return min(math.sqrt(level / squares[0]), 1.0)

    def inner(u: float) -> float:
        left = level - squares[0] * u * u
        return min(math.sqrt(max(left, 0.0) / squares[1]), 1.0)

    kinks = [math.sqrt(max(level - k * squares[1], 0.0) / squares[0]) for k in (0, 1)]
    ends = sorted({0.0, 1.0, *(k for k in kinks if 0 < k < 1)})
    return float(
        sum(integrate.quad(inner, a, b, epsabs=1e-13)[0] for a, b in itertools.pairwise(ends))
    )
