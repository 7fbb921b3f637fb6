"""Figure 2 of MDDP: laws of the curves, and which statements about them hold."""

import gzip
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from sfumato.plots.points import Point
from sfumato.record.attack.coupled_attack import coupled_disclosure
from sfumato.record.attack.paper_rates import disclosure_rates
from sfumato.record.coupling.coupled_prior import CoupledPrior
from sfumato.record.coupling.coupling import FullCoupling
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.published_noise import noise_of
from sfumato.studies.mddp.mddp_drawings import draw
from sfumato.studies.mddp.mddp_people import (
    MEN,
    PRINTED,
    PRINTED_CORRELATION,
    People,
    printed_weight,
    read_people,
    simulated_people,
)
from sfumato.studies.mddp.tied_columns import (
    JOINT_SHAPES,
    SIGMA_JOINT,
    SIGMA_TIED,
    TIED_SHAPES,
    attack_success,
    ball_fails,
    chain_fails,
    joint_points,
    slope_range,
    tied_points,
    turning_noise,
)
from sfumato.tables.problems import BadTable
from tests.strategies import Floats

Curves = dict[tuple[str, str], dict[float, float]]
TIED, JOINT = (1.0,), (4.0,)


@pytest.fixture(scope="module")
def people() -> People:
    return simulated_people()


@pytest.fixture(scope="module")
def points(people: People) -> list[Point]:
    return [*tied_points(people, TIED, attacks=20), *joint_points(people, JOINT)]


@pytest.fixture(scope="module")
def curves(points: list[Point]) -> Curves:
    found: Curves = {}
    for point in points:
        found.setdefault((point.figure, point.curve), {})[point.x] = point.y
    return found


# The printed equation ----------------------------------------------------------------------------


def test_the_printed_equation_is_that_of_fifteen_averages_of_american_women() -> None:
    """The table `women` of R (World Almanac, 1975): aged 30 to 39, inches and pounds."""
    height = np.arange(58, 73)
    weight = [115, 117, 120, 123, 126, 129, 132, 135, 139, 142, 146, 150, 154, 159, 164]
    square, line, constant = np.polyfit(height, weight, 2)
    assert (round(constant, 2), round(line, 2), round(square, 3)) == PRINTED


def test_the_printed_equation_is_plausible_in_inches_and_pounds_alone() -> None:
    assert all(printed_weight(height) > 850 for height in range(140, 211))
    assert printed_weight(170) == pytest.approx(1411.08)
    pounds = np.array([printed_weight(height / 2.54) for height in (150, 170, 190)])
    assert 0.45359237 * pounds == pytest.approx([53.2, 64.3, 80.1], abs=0.1)


def test_its_slope_is_over_one_in_inches_and_pounds_and_under_one_in_metric_units() -> None:
    height = np.array([58.0, 72.0])
    slopes = PRINTED[1] + 2 * PRINTED[2] * height
    assert slopes == pytest.approx([2.278, 4.602])
    assert (slopes * 0.45359237 / 2.54 < 1).all()


# The people --------------------------------------------------------------------------------------


def test_made_up_people_are_what_the_paper_says_theirs_are(people: People) -> None:
    assert people.men.shape == people.bodies.shape == (MEN, 2)
    coupling = people.coupling
    for height in (64.0, 67.5, 71.0):
        weight = float(coupling.solve("weight", {"height": height})[0])
        assert weight == pytest.approx(printed_weight(height), abs=1.0)
    assert coupling.residual == pytest.approx(20.0, rel=0.02)
    assert people.joint.correlation[0, 1] == pytest.approx(PRINTED_CORRELATION, abs=0.02)
    assert slope_range(coupling)[0] > 2


def test_a_seed_fixes_the_people() -> None:
    first, again, other = (simulated_people(seed, 50).men for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.isclose(first, other).any()


def rows_of(count: int) -> list[list[str]]:
    """Men aged 35, whose height and weight vary, with a pressure."""
    return [
        [str(i), "12800", "2", str(160 + i % 20), f"{60 + i % 7 + i % 20:.1f}", str(110 + i % 13)]
        for i in range(count)
    ]


def text_of(rows: list[list[str]], head: str = "id;age;gender;height;weight;ap_hi") -> str:
    return "\n".join([head, *(";".join(row) for row in rows), ""])


def test_a_table_is_read_without_implausible_rows_and_others_than_young_men(
    tmp_path: Path,
) -> None:
    rows = rows_of(40)
    rows += [["a", "12800", "1", "160", "60", "120"], ["b", "20000", "2", "170", "70", "140"]]
    rows += [["c", "14610", "2", "170", "70", "140"], ["d", "10957", "2", "170", "70", "140"]]
    rows += [["e", "12800", "2", "139", "70", "140"], ["f", "12800", "2", "170", "30", "140"]]
    rows += [["g", "12800", "2", "170", "70", "14020"], ["h", "10958", "2", "210", "180", "220"]]
    plain, zipped = tmp_path / "table.csv", tmp_path / "table"
    plain.write_text(text_of(rows), encoding="utf-8")
    zipped.write_bytes(gzip.compress(plain.read_bytes()))
    for path in (plain, zipped):
        read = read_people(path)
        assert (read.rows, read.dropped, read.units) == (48, 3, ("cm", "kg"))
        assert len(read.bodies) == 45
        assert len(read.men) == 41  # 10958 days are 30 years of 365.25 days; 14610 are 40
        assert read.men[-1].tolist() == [210.0, 180.0]
        assert read.bodies[0].tolist() == [60.0, 110.0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "must have the columns age, gender, height, weight, ap_hi, separated by ';'"),
        (b"age,gender,height,weight,ap_hi\n1,2,3,4,5\n", "there is no age, gender, height"),
        (text_of(rows_of(40), "id;age;gender;height;mass;ap_hi").encode(), "there is no weight"),
        (text_of([*rows_of(2), ["x", "1", "2", "tall", "70", "120"]]).encode(), "row 3: column"),
        (text_of([["x", "1", "2", "170", "nan", "120"]]).encode(), "'weight' must be a number"),
        (text_of([["x", "1", "2"]]).encode(), "row 1: column 'height' must be a number"),
        (text_of(rows_of(29)).encode(), "must hold at least 30 men"),
        (text_of([]).encode(), "must hold at least 30 men"),
        (gzip.compress(text_of(rows_of(40)).encode())[:-20], "must be a whole gzip file"),
        (b"\xff\xfe;\x00", "must be text in UTF-8"),
    ],
)
def test_a_table_that_is_none_is_refused_with_its_fault(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(BadTable, match=r"table\.csv") as refused:
        read_people(path)
    assert said in str(refused.value)
    assert "tall" not in str(refused.value)


# Panels (a) and (b) ------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_equation_raises_the_rate_within_the_bound(curves: Curves) -> None:
    for x in TIED:
        alone, gamma = curves["2a", "γ without correlation"][x], curves["2a", "γ"][x]
        assert alone < gamma <= curves["2a", "bound of Thm. 3"][x]


def test_the_bound_on_the_gain_fails_where_noise_is_narrow_and_the_equation_steep() -> None:
    """Theorem 3 takes the rate of a column for 2 epsilon/M: that is of noise wider than M."""
    steep = FullCoupling.equation("b = 10*a", {"a": (-50, 50), "b": (-50, 50)})
    prior = CoupledPrior.of(["a", "b"], [steep])
    rates = disclosure_rates(prior, noise_of("uniform", 10 / math.sqrt(3), 2), 0.5)
    assert rates.gain_bound == 99
    assert rates.gain > 150


def test_the_equation_raises_delta_as_well(curves: Curves) -> None:
    """The paper, Eq. 13: "the correlation will not increase delta"."""
    for x in TIED:
        assert curves["2a", "on the equation, best attacker"][x] > x**2 / (3 * SIGMA_TIED**2)


def test_a_steep_equation_leaves_the_attacker_far_below_the_rate(
    curves: Curves, people: People
) -> None:
    gamma, reached = (curves["2a", n][1.0] for n in ("γ", "on the equation, best attacker"))
    low, high = slope_range(people.coupling)
    assert 2 < low < gamma / reached < high


def test_the_papers_attacker_is_not_the_best_and_needs_the_equation(curves: Curves) -> None:
    for x in TIED:
        best = curves["2a", "on the equation, best attacker"][x]
        tried = curves["2a", "on the equation, paper's attacker"][x]
        people = curves["2a", "people, paper's attacker"][x]
        assert tried < 1.1 * best
        assert people < 0.5 * tried
        assert 1.5 * people < curves["2a", "people, best attacker"][x] < best


def test_the_attack_on_two_equal_columns_has_its_exact_success() -> None:
    """Both intervals of width 2r hold the value: of their meet, L, the attacker finds 2 epsilon.

    L has the density L/(2 r^2), so the success is 2 epsilon/r - (epsilon/r)^2.
    """
    equal = FullCoupling.equation("b = a", {"a": (0, 1_000), "b": (0, 1_000)})
    prior = CoupledPrior.of(["a", "b"], [equal])
    noise, half = noise_of("uniform", 5.0, 2), np.full(2, 2.0)
    part = 2 / (5 * math.sqrt(3))
    exact = 2 * part - part**2
    best = coupled_disclosure(prior, noise, half)
    # Points along the curve make the best box look a little better: 3.5 % here, and 1 % of chance.
    assert exact < best.high and exact < best.delta < 1.06 * exact
    found = attack_success(prior, noise, half, prior.cloud(half), 120)
    assert found == pytest.approx(exact, rel=0.08)
    assert found != pytest.approx(1.3 * exact, rel=0.08)


def peak(shape: str, slopes: tuple[float, ...]) -> float:
    """Best success against columns x, s x, ..., per epsilon and unit deviation, for tiny boxes.

    The integral, over what is published of the other columns, of the largest likelihood of x;
    the first column is published as 0 and x runs over a grid.
    """
    densities: dict[str, Callable[[Floats], Floats]] = {
        "uniform": lambda z: (np.abs(z) <= math.sqrt(3)) / (2 * math.sqrt(3)),
        "gaussian": lambda z: np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi),
        "laplace": lambda z: np.exp(-math.sqrt(2) * np.abs(z)) / math.sqrt(2),
    }
    density = densities[shape]
    x = np.linspace(-9, 9, 361)
    others = np.linspace(-14, 14, 141) if len(slopes) > 1 else np.linspace(-50, 50, 2_001)
    grids = np.meshgrid(*[others] * len(slopes), indexing="ij")
    best = np.zeros(grids[0].shape)
    for place in x:
        likely = np.full(grids[0].shape, float(density(np.array(place))))
        for slope, told in zip(slopes, grids, strict=True):
            likely = likely * density(told - slope * place)
        best = np.maximum(best, likely)
    step = others[1] - others[0]
    return float(2 / max(1.0, *slopes) * best.sum() * step ** len(slopes))


def test_uniform_noise_is_not_the_best_for_columns_that_an_equation_ties() -> None:
    """The paper, Theorem 2: it is, for any equation. Of equal columns it is worse than Gaussian."""
    for slope in (1.0, 2.0, 4.0):
        uniform, normal = peak("uniform", (slope,)), peak("gaussian", (slope,))
        assert uniform == pytest.approx((1 + 1 / slope) / math.sqrt(3), rel=0.02)
        flat = math.sqrt(2 / math.pi * (1 + slope**-2))
        assert normal == pytest.approx(flat, rel=0.005)
        assert (normal < uniform) is (slope < 1.555)
    assert peak("laplace", (1.0,)) == pytest.approx(math.sqrt(2), rel=0.01)
    assert peak("uniform", (1.0, 1.0)) == pytest.approx(math.sqrt(3), rel=0.05)
    assert peak("gaussian", (1.0, 1.0)) == pytest.approx(math.sqrt(6 / math.pi), rel=0.01)


def test_by_the_papers_own_rate_uniform_noise_is_the_worst(curves: Curves) -> None:
    """The paper, of Fig. 2(b): it "performs better". Its short reach narrows what is possible."""
    for x in TIED:
        rates = {shape: curves["2b", f"{shape}, γ"][x] for shape in TIED_SHAPES}
        assert rates["gaussian"] < rates["laplace"] < rates["uniform"]
        best = {shape: curves["2b", f"{shape}, best attacker"][x] for shape in TIED_SHAPES}
        assert best["uniform"] < best["laplace"]
        assert best["gaussian"] < best["laplace"]


# Panels (c) and (d) ------------------------------------------------------------------------------


def sampled_success(joint: JointMixture, sigma: float, half: float, count: int) -> Floats:
    """Posterior mass of the best box, uniform noise: on a grid of each published square."""
    rng = np.random.default_rng(5)
    reach, cells = math.sqrt(3) * sigma, 140
    inverse = np.linalg.inv(joint.covariances[0])
    people = rng.multivariate_normal(joint.means[0], joint.covariances[0], count)
    wide = round(half / reach * cells)  # cells in a box: the box is 2 half wide, the square 2 reach
    steps = (np.arange(cells) + 0.5) / cells * 2 * reach - reach
    found = []
    for told in people + rng.uniform(-reach, reach, people.shape):
        off = np.stack(np.meshgrid(told[0] + steps, told[1] + steps, indexing="ij"), axis=-1)
        off = off - joint.means[0]
        weights = np.exp(-0.5 * np.einsum("xyi,ij,xyj->xy", off, inverse, off))
        sums = np.zeros((cells + 1, cells + 1))
        sums[1:, 1:] = weights.cumsum(axis=0).cumsum(axis=1)
        boxes = sums[wide:, wide:] - sums[:-wide, wide:] - sums[wide:, :-wide]
        found.append((boxes + sums[:-wide, :-wide]).max() / weights.sum())
    return np.array(found)


@pytest.mark.statistical
def test_the_exact_curve_is_that_of_many_attacks(curves: Curves, people: People) -> None:
    reach = math.sqrt(3) * SIGMA_JOINT
    half = round(4.0 / reach * 140) / 140 * reach  # whole cells; 1 % from 4
    found = sampled_success(people.joint, SIGMA_JOINT, half, 250)
    told = curves["2c", "best attacker"][4.0] * (half / 4.0) ** 2
    error = float(found.std(ddof=1)) / math.sqrt(found.size)
    assert abs(found.mean() - told) < 4 * error + 0.005 * told
    assert abs(found.mean() - 0.8 * told) > 4 * error


def line_success(deviation: float, reach: float, half: float) -> float:
    """One normal column with uniform noise: the best interval is nearest to the mean."""
    told = np.linspace(0, 8 * deviation + reach, 100_001)
    centre = np.clip(0.0, told - reach + half, told + reach - half)
    ends = [ndtr((centre + side * half) / deviation) for side in (1, -1)]
    return float(np.trapezoid(ends[0] - ends[1], told) / reach)


def test_independent_columns_are_found_apart(curves: Curves, people: People) -> None:
    deviations, reach = np.sqrt(np.diag(people.joint.covariance)), math.sqrt(3) * SIGMA_JOINT
    for x in JOINT:
        exact = math.prod(line_success(deviation, reach, x) for deviation in deviations)
        assert curves["2c", "were they independent"][x] == pytest.approx(exact, rel=3e-3)


def test_curves_without_correlation_have_their_closed_forms(curves: Curves) -> None:
    """Remark 9 gives the ball eps^2/(3 sigma^2): that is independent uniform noise."""
    for x in JOINT:
        unit = x**2 / SIGMA_JOINT**2
        assert curves["2c", "without correlation"][x] == pytest.approx(unit / 3)
        assert curves["2d", "ball, without correlation"][x] == pytest.approx(unit / math.pi)
        normal = math.erf(x / (SIGMA_JOINT * math.sqrt(2))) ** 2
        assert curves["2d", "gaussian, without correlation"][x] == pytest.approx(normal)


def test_the_bound_of_the_chain_is_that_of_the_correlation_and_is_none(
    curves: Curves, people: People
) -> None:
    rho = float(people.joint.correlation[0, 1])
    for x in JOINT:
        alone, bound = (curves["2c", n][x] for n in ("without correlation", "bound of Thm. 4"))
        assert bound == pytest.approx(alone / math.sqrt(1 - rho**2))
        truth, apart = (curves["2c", n][x] for n in ("best attacker", "were they independent"))
        assert alone < apart < truth
        assert truth > 1.8 * bound
        assert truth / apart < bound / alone  # what the correlation itself adds


def test_the_bound_of_the_chain_holds_for_little_noise_alone(people: People) -> None:
    assert not chain_fails(people.joint, 0.5)
    assert chain_fails(people.joint, 3.0)


def test_the_ball_does_not_prevent_the_gain(curves: Curves) -> None:
    """The paper, of Fig. 2(d): "the privacy disclosure gain under f_X is prevented"."""
    for x in JOINT:
        alone, apart, known = (
            curves["2d", f"ball, {name}"][x]
            for name in ("without correlation", "were they independent", "best attacker")
        )
        assert known > 1.05 * apart > 2 * alone
        assert known < curves["2d", "uniform, best attacker"][x]


def test_gaussian_noise_beats_the_ball_against_whoever_knows_the_density(
    curves: Curves, people: People
) -> None:
    """The paper: the ball "achieves a higher (eps, delta)-MDDP than others"."""
    alone = {shape: curves["2d", f"{shape}, without correlation"][4.0] for shape in JOINT_SHAPES}
    known = {shape: curves["2d", f"{shape}, best attacker"][4.0] for shape in JOINT_SHAPES}
    assert alone["ball"] < alone["uniform"] < alone["gaussian"]
    assert 1.04 * known["gaussian"] < known["ball"] < known["uniform"]
    assert not ball_fails(people.joint, 3.0)


def test_a_turning_point_is_bracketed() -> None:
    unit = JointMixture.normal([0.0, 0.0], np.eye(2))
    assert turning_noise(unit, lambda _, sigma: sigma > 3.0) == pytest.approx(3.0, rel=0.03)
    assert turning_noise(unit, lambda _, sigma: True) == 0.0
    assert turning_noise(unit, lambda _, sigma: False) == math.inf


def test_a_maximum_over_all_runs_is_far_over_the_probability() -> None:
    """The paper's delta: the largest of 10,000 shares, of 10,000 guesses each."""
    guesses = runs = 10_000
    delta = 1 / (3 * SIGMA_JOINT**2)
    below = binom.cdf(np.arange(200), guesses, delta)
    mean_of_largest = float((1 - below**runs).sum()) / guesses
    assert mean_of_largest == pytest.approx(0.0058, abs=1e-4)
    assert mean_of_largest > 1.7 * delta


# The picture -------------------------------------------------------------------------------------


def test_the_picture_is_drawn(points: list[Point], tmp_path: Path) -> None:
    draw(points, ("in", "lb"), tmp_path / "all.png")
    assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG")
