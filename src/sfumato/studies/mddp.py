r"""DOCSTRING

References:
    [MDDP, Fig. 2]
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sfumato.formats.problems import BadTable
from sfumato.jobs import Progress
from sfumato.kernels.clouds import cloud_shares
from sfumato.leakage.chain import chain_bound
from sfumato.leakage.coupled import coupled_disclosure, disclosure_rates, equation_estimates
from sfumato.leakage.disclosure import bayes_disclosure
from sfumato.mechanisms.publishing import noise_of
from sfumato.mechanisms.vector_noise import Kind, VectorNoise, standard, uniforms
from sfumato.models.coupled import Cloud, CoupledPrior
from sfumato.models.coupling import FullCoupling
from sfumato.models.joint import JointMixture
from sfumato.randomness import seeded
from sfumato.studies.lip_discrete import Point

Floats = NDArray[np.float64]

ACCURACIES = (0.5, 1.0, 2.0, 3.0, 4.0)
SIGMA_TIED, SIGMA_JOINT = 5.0, 10.0
TIED_SHAPES, JOINT_SHAPES = ("uniform", "gaussian", "laplace"), ("uniform", "ball", "gaussian")
ATTACKS = 100

PRINTED = (261.88, -7.35, 0.083)
PRINTED_CORRELATION = 0.612
MEN = 10_000
_INCH, _POUND = 2.54, 0.45359237
_TALL = 170.0

PLAUSIBLE = {"height": (140.0, 210.0), "weight": (40.0, 180.0), "ap_hi": (80.0, 220.0)}
_COLUMNS = ("age", "gender", *PLAUSIBLE)
_YEAR, _MAN = 365.25, 2
_LEAST = 30
_ZIPPED = b"\x1f\x8b"

_HEIGHTS, _OFF = (67.5, 2.6), 20.0
_BODIES = ((74.0, 14.0), (127.0, 17.0))

_SHARE = 0.2
_HALVINGS = 7


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """Whom the figure is about.

    Attributes:
        source: Where they come from.
        rows: How many there were.
        dropped: How many of them were left out as implausible.
        units: Of heights and weights of the men.
        men: Heights and weights of men aged 30 to 39, one a row.
        bodies: Weights in kg and systolic pressures in mmHg of everybody, one a row.
    """

    source: str
    rows: int
    dropped: int
    units: tuple[str, str]
    men: Floats
    bodies: Floats

    @property
    def coupling(self) -> FullCoupling:
        """Weight as a polynomial of height, of degree 2; domains are what there is."""
        height, weight = self.men.T
        return FullCoupling.fit({"height": height, "weight": weight}, "weight", ["height"])

    @property
    def joint(self) -> JointMixture:
        """Weight and pressure, jointly normal."""
        return JointMixture.fit_normal(self.bodies)


def printed_weight(height: float) -> float:
    """What the equation that the paper prints gives.

    Examples:
        >>> printed_weight(170.0)  # no kilograms for as many centimetres
        1411.08
        >>> printed_weight(170.0 / 2.54)  # pounds for as many inches
        141.75
    """
    return sum(weight * height**power for power, weight in enumerate(PRINTED))


def simulated_people(seed: int = 1, count: int = MEN) -> People:
    """Men around the printed equation, in inches and pounds, and bodies of the printed correlation.

    Args:
        seed: Another one gives other people.
        count: How many men, and how many bodies.

    Examples:
        >>> people = simulated_people(count=2_000)
        >>> people.men[:2].round(1), float(people.joint.correlation[0, 1].round(1))
        (array([[...]]), 0.6)
    """
    words = seeded(seed).at("people", 0).words(4 * count).reshape(4, count)
    normals = standard(Kind.GAUSSIAN, uniforms(words))
    height = _HEIGHTS[0] + _HEIGHTS[1] * normals[0]
    weight = np.polynomial.polynomial.polyval(height, PRINTED) + _OFF * normals[1]
    rest = math.sqrt(1 - PRINTED_CORRELATION**2)
    pressed = PRINTED_CORRELATION * normals[2] + rest * normals[3]
    bodies = [
        centre + spread * column
        for (centre, spread), column in zip(_BODIES, (normals[2], pressed), strict=True)
    ]
    men = np.stack([height, weight], axis=1)
    return People("made-up people", count, 0, ("in", "lb"), men, np.stack(bodies, axis=1))


def read_people(path: str | Path) -> People:
    """The people of the table of cardiovascular disease, without what is implausible.

    Args:
        path: Columns separated by `;`, as it comes from Kaggle; may be gzipped.

    Raises:
        BadTable: It is no such table, or has too few men of the age.
    """
    source = str(path)
    table = _table(source)
    age, gender, height, weight, pressure = table.T
    kept = np.ones(len(table), dtype=np.bool_)
    for column, (low, high) in zip((height, weight, pressure), PLAUSIBLE.values(), strict=True):
        kept &= (column >= low) & (column <= high)
    chosen = kept & (gender == _MAN) & (age >= 30 * _YEAR) & (age < 40 * _YEAR)
    if np.count_nonzero(chosen) < _LEAST:
        rule = f"must hold at least {_LEAST} men (gender 2) aged 30 to 39 (age in days)"
        raise BadTable(source, None, f"{rule}, of plausible height, weight and pressure")
    return People(
        Path(path).name,
        len(table),
        int(np.count_nonzero(~kept)),
        ("cm", "kg"),
        np.stack([height, weight], axis=1)[chosen],
        np.stack([weight, pressure], axis=1)[kept],
    )


def _table(source: str) -> Floats:
    """The columns that are read, of all rows."""
    content = Path(source).read_bytes()
    try:
        whole = gzip.decompress(content) if content.startswith(_ZIPPED) else content
        lines = csv.DictReader(io.StringIO(whole.decode("utf-8-sig"), newline=""), delimiter=";")
        missing = [name for name in _COLUMNS if name not in (lines.fieldnames or ())]
        if missing:
            rule = f"must have the columns {', '.join(_COLUMNS)}, separated by ';'"
            raise BadTable(source, None, f"{rule}; there is no {', '.join(missing)}")
        rows = [
            [_number(source, row, name, line[name]) for name in _COLUMNS]
            for row, line in enumerate(lines, start=1)
        ]
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise BadTable(source, None, "must be a whole gzip file") from None
    except (UnicodeDecodeError, csv.Error):
        raise BadTable(source, None, "must be text in UTF-8, columns separated by ';'") from None
    return np.array(rows, dtype=np.float64).reshape(-1, len(_COLUMNS))


def _number(source: str, row: int, name: str, text: str | None) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadTable(source, row, f"column {name!r} must be a number")
    return value


def tied_points(
    people: People,
    accuracies: Sequence[float] = ACCURACIES,
    attacks: int = ATTACKS,
    progress: Progress | None = None,
) -> list[Point]:
    """Heights and weights that the fitted equation ties: panels (a) and (b).

    Abscissa: accuracy, in the units of both. Ordinate: a rate or a probability.

    Args:
        people: Whose.
        accuracies: The abscissae.
        attacks: How many published points the paper's attacker is tried on.
        progress: Told how many accuracies are done.

    References:
        [MDDP, Fig. 2(a) and (b)]
    """
    prior = CoupledPrior.of(["height", "weight"], [people.coupling])
    normal = JointMixture.fit_normal(people.men)
    everybody = Cloud(people.men, np.full(len(people.men), 1 / len(people.men)))
    uniform = noise_of("uniform", SIGMA_TIED, 2)
    points = []
    for done, accuracy in enumerate(accuracies, start=1):
        for shape in TIED_SHAPES:
            noise = noise_of(shape, SIGMA_TIED, 2)
            rates = disclosure_rates(prior, noise, accuracy)
            found = coupled_disclosure(prior, noise, accuracy).delta
            points.append(Point("2b", f"{shape}, γ", accuracy, rates.gamma))
            points.append(Point("2b", f"{shape}, best attacker", accuracy, found))
            if shape == "uniform":
                bound = min(rates.gamma_without * (1 + rates.gain_bound), 1.0)
                points.append(Point("2a", "γ", accuracy, rates.gamma))
                points.append(Point("2a", "γ without correlation", accuracy, rates.gamma_without))
                points.append(Point("2a", "bound of Thm. 3", accuracy, bound))
                points.append(Point("2a", "on the equation, best attacker", accuracy, found))
        half = np.full(2, accuracy)
        for who, cloud in (("on the equation", prior.cloud(half)), ("people", everybody)):
            share = _success(prior, uniform, half, cloud, attacks)
            points.append(Point("2a", f"{who}, paper's attacker", accuracy, share))
        best = bayes_disclosure(normal, uniform, accuracy).delta
        points.append(Point("2a", "people, best attacker", accuracy, best))
        if progress:
            progress(done)
    return points


def _success(
    prior: CoupledPrior, noise: VectorNoise, half: Floats, people: Cloud, attacks: int
) -> float:
    """How often the paper's attacker is right: the mean, over published points, of the chance.

    The chance is that the box holds the person, given what was published: what many people
    with the same point would show, without drawing them.
    """
    ranks = np.argsort(people.points[:, 0], kind="stable")
    shares = (np.arange(attacks) + 0.5) / attacks
    chosen = ranks[np.searchsorted(people.weights[ranks].cumsum()[:-1], shares, side="right")]
    words = seeded(2).at("attacks", 0).words(attacks * noise.words).reshape(attacks, -1)
    told = people.points[chosen] + noise.draw(words)
    guessed = equation_estimates(prior, noise, half, told)
    found = cloud_shares(guessed, half, told, people.points, people.weights, noise.form())
    return float(found.mean())


def joint_points(
    people: People,
    accuracies: Sequence[float] = ACCURACIES,
    progress: Progress | None = None,
) -> list[Point]:
    """Weights and pressures that are jointly normal: panels (c) and (d).

    Abscissa: accuracy in kg and mmHg. Ordinate: a probability.

    Args:
        people: Whose.
        accuracies: The abscissae.
        progress: Told how many accuracies are done.

    References:
        [MDDP, Fig. 2(c) and (d)]
    """
    joint = people.joint
    apart = _apart(joint)
    points = []
    for done, accuracy in enumerate(accuracies, start=1):
        for shape in JOINT_SHAPES:
            noise = noise_of(shape, SIGMA_JOINT, 2)
            values = {
                "without correlation": noise.box_mass([accuracy, accuracy]),
                "were they independent": bayes_disclosure(apart, noise, accuracy).delta,
                "best attacker": bayes_disclosure(joint, noise, accuracy).delta,
            }
            points += [Point("2d", f"{shape}, {n}", accuracy, y) for n, y in values.items()]
            if shape == "uniform":
                points += [Point("2c", name, accuracy, y) for name, y in values.items()]
                bound = chain_bound(joint, noise, accuracy).delta
                points.append(Point("2c", "bound of Thm. 4", accuracy, bound))
        if progress:
            progress(done)
    return points


def _apart(joint: JointMixture) -> JointMixture:
    """The same columns, each alone."""
    return JointMixture.normal(joint.means[0], np.diag(np.diag(joint.covariances[0])))


def slope_range(coupling: FullCoupling) -> tuple[float, float]:
    """Least and greatest slope of weight against height, over the heights there are."""
    height = np.linspace(*coupling.domains["height"], 201)
    at = {"height": height, "weight": np.zeros(201)}
    slopes = coupling.slopes("weight", "height", at)
    return float(slopes.min()), float(slopes.max())


def turning_noise(joint: JointMixture, fails: Callable[[JointMixture, float], bool]) -> float:
    """The noise at which a statement about a joint normal begins to fail; 0 if it always does."""
    low, high = 0.25, 64.0
    if fails(joint, low):
        return 0.0
    if not fails(joint, high):
        return math.inf
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fails(joint, middle) else (middle, high)
    return math.sqrt(low * high)


def chain_fails(joint: JointMixture, sigma: float) -> bool:
    """Whether the best attacker beats the bound of Theorem 4, uniform noise."""
    noise = noise_of("uniform", sigma, 2)
    bound = chain_bound(joint, noise, _SHARE * sigma)
    return not bound.holds(bayes_disclosure(joint, noise, _SHARE * sigma))


def ball_fails(joint: JointMixture, sigma: float) -> bool:
    """Whether Gaussian noise keeps more from the best attacker than the ball."""
    ball, normal = (
        bayes_disclosure(joint, noise_of(shape, sigma, 2), _SHARE * sigma).delta
        for shape in ("ball", "gaussian")
    )
    return normal < ball
