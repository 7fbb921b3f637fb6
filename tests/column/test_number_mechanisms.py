import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.column.noise_scales import classical_scale, local_scale, paper_sampling_rate
from sfumato.column.number_mechanisms import NumberDesign, guessed, optimal_number, sampling
from sfumato.column.scaled_noise import MOST_POINTS_EACH, least_noise, least_noise_each, local_noise
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.models.mixture import GaussianMixture
from sfumato.noise.lattice import Lattice, Noise
from tests.oracles.mixture_noise import gaussian_deltas
from tests.strategies import Floats

WHOLE = 2**62
SECRET = "9151.25"

noises = st.sampled_from(list(Noise))
allowances = st.sampled_from([0.0, 1e-6, 1e-3, 0.1])
shapes = pytest.mark.parametrize("noise", list(Noise))


def bell(lattice: Lattice, deviation: float) -> Floats:
    masses = np.exp(-0.5 * (lattice.points / deviation) ** 2)
    return np.asarray(masses / masses.sum())


@st.composite
def priors(draw: st.DrawFn, size: int) -> Floats:
    """Even ones, skewed ones, and ones with masses down to 1e-100."""
    exponents = draw(
        st.one_of(
            st.lists(st.floats(-1.0, 0.0), min_size=size, max_size=size),
            st.lists(st.floats(-12.0, 0.0), min_size=size, max_size=size),
            st.lists(st.floats(-100.0, 0.0), min_size=size, max_size=size),
        )
    )
    masses = np.array([10.0**exponent for exponent in exponents])
    return np.asarray(masses / masses.sum())


# --- oracles, from the integers alone ---


def exact_delta(channel: Channel, prior: Floats, epsilon: float) -> Fraction:
    """The larger divergence at the worst value, no less than the truth."""
    k = factor_below(epsilon)
    share = [Fraction(float(mass)) for mass in prior]
    rows = [[Fraction(weight, WHOLE) for weight in row] for row in channel.weights.tolist()]
    total = sum(share)
    told = [
        sum((b * p for b, p in zip(share, column, strict=True)), Fraction(0)) / total
        for column in zip(*rows, strict=True)
    ]
    return max(max(over(row, told, k), over(told, row, k)) for row in rows)


def over(first: list[Fraction], second: list[Fraction], factor: Fraction) -> Fraction:
    pairs = zip(first, second, strict=True)
    return sum((max(p - factor * q, Fraction(0)) for p, q in pairs), Fraction(0))


def factor_below(epsilon: float) -> Fraction:
    with mpmath.workprec(300):
        whole = int(mpmath.floor(mpmath.exp(mpmath.mpf(epsilon)) * mpmath.mpf(2) ** 150))
    return Fraction(whole - 1, 2**150)


def float_delta(rows: Floats, told: Floats, epsilon: float) -> Floats:
    k = math.exp(epsilon)
    above = np.maximum(rows - k * told, 0).sum(axis=1)
    return np.asarray(np.maximum(above, np.maximum(told - k * rows, 0).sum(axis=1)))


def mean_error(design: NumberDesign, prior: Floats) -> float:
    points, outputs = design.lattice.points, design.channel.outputs
    cells = itertools.product(range(len(points)), enumerate(outputs.tolist()))
    return math.fsum(
        prior[x]
        / prior.sum()
        * (int(design.channel.weights[x, column]) / WHOLE)
        * abs(points[x] - points[y])
        for x, (column, y) in cells
    )


def best_constant(lattice: Lattice, prior: Floats) -> float:
    return min(float(prior @ np.abs(lattice.points - point)) for point in lattice.points)


def confirmed(design: NumberDesign, prior: Floats, epsilon: float, delta: float) -> bool:
    """Within the budget, and within the guarantee that it states itself."""
    within = exact_delta(design.channel, prior, epsilon) <= Fraction(delta)
    stated = design.lip
    told = exact_delta(design.channel, prior, stated.epsilon) <= Fraction(delta) + Fraction(
        1, 10**30
    )
    return within and told and stated.epsilon <= epsilon + 1e-12 and stated.delta <= delta


# --- one scale ---


@settings(max_examples=16, deadline=None)
@given(st.data(), noises, st.floats(0.05, 5.0), allowances)
def test_the_least_noise_keeps_its_budget_and_half_a_percent_less_does_not(
    data: st.DataObject, noise: Noise, epsilon: float, delta: float
) -> None:
    count = data.draw(st.integers(2, 9))
    prior, lattice = data.draw(priors(count)), Lattice(-3.0, 7.0, count)
    found = least_noise(noise, lattice, prior, epsilon, delta)
    assert confirmed(found, prior, epsilon, delta)
    assert found.cost == pytest.approx(mean_error(found, prior), rel=1e-9)
    assert found.scales is not None
    assert np.ptp(found.scales) == 0
    less = Channel.from_probabilities(lattice.noisy(noise, 0.995 * found.scales))
    assert exact_delta(less, prior, epsilon) > Fraction(delta)


@settings(max_examples=10, deadline=None)
@given(st.data(), noises, st.floats(0.2, 4.0), st.sampled_from([0.0, 1e-3, 0.1]))
def test_no_smaller_scale_on_a_grid_keeps_the_budget(
    data: st.DataObject, noise: Noise, epsilon: float, delta: float
) -> None:
    """The least scale is the least one, not just one at which the budget starts to hold."""
    prior, lattice = data.draw(priors(5)), Lattice(0.0, 1.0, 5)
    found = least_noise(noise, lattice, prior, epsilon, delta)
    assert found.scales is not None
    for part in np.geomspace(0.01, 0.99, 25):
        rows = lattice.noisy(noise, part * found.scales)
        assert float_delta(rows, prior @ rows, epsilon).max() > delta


@settings(max_examples=12, deadline=None)
@given(st.data(), noises, st.floats(0.2, 4.0), st.sampled_from([1e-6, 1e-3, 0.1]))
def test_a_prior_never_asks_for_more_noise_than_none(
    data: st.DataObject, noise: Noise, epsilon: float, delta: float
) -> None:
    prior, lattice = data.draw(priors(7)), Lattice(0.0, 1.0, 7)
    aware = least_noise(noise, lattice, prior, epsilon, delta)
    free = local_noise(noise, lattice, prior, epsilon, delta)
    assert aware.scales is not None
    assert free.scales is not None
    assert aware.scales[0] <= free.scales[0] * (1 + 1e-9)
    assert free.lip.epsilon <= epsilon + 1e-9
    assert free.ldp.epsilon <= epsilon + 1e-9


# --- scales of their own ---


@settings(max_examples=6, deadline=None)
@given(st.data(), noises, st.floats(0.2, 4.0), allowances)
def test_scales_of_their_own_never_cost_more_and_hold_under_their_true_marginal(
    data: st.DataObject, noise: Noise, epsilon: float, delta: float
) -> None:
    prior, lattice = data.draw(priors(7)), Lattice(-3.0, 3.0, 7)
    one = least_noise(noise, lattice, prior, epsilon, delta)
    each = least_noise_each(noise, lattice, prior, epsilon, delta)
    assert each.cost <= one.cost
    assert confirmed(each, prior, epsilon, delta)
    assert each.cost == pytest.approx(mean_error(each, prior), rel=1e-9)
    # The rows are those of the scales that are stated.
    assert each.scales is not None
    again = Channel.from_probabilities(lattice.noisy(noise, each.scales))
    assert again.weights.tolist() == each.channel.weights.tolist()


@pytest.mark.parametrize(("noise", "delta"), [(Noise.LAPLACE, 0.0), (Noise.GAUSSIAN, 1e-3)])
def test_scales_of_their_own_gain_on_a_bell(noise: Noise, delta: float) -> None:
    lattice = Lattice(-10.0, 10.0, 15)
    prior = bell(lattice, 4.0)
    one = least_noise(noise, lattice, prior, 2.0, delta)
    each = least_noise_each(noise, lattice, prior, 2.0, delta)
    assert each.cost < 0.97 * one.cost
    assert each.scales is not None
    assert each.scales.max() > 1.1 * each.scales.min()
    assert confirmed(each, prior, 2.0, delta)


def wrongly_calibrated(lattice: Lattice, prior: Floats, epsilon: float, delta: float) -> Channel:
    """A planted bug: each scale is measured against the marginal of one scale for all."""
    scales = []
    for place in range(lattice.count):
        for scale in np.geomspace(0.5, 200.0, 400):
            rows = lattice.noisy(Noise.GAUSSIAN, scale)
            if float_delta(rows[[place]], prior @ rows, epsilon)[0] <= delta:
                scales.append(scale)
                break
    assert len(scales) == lattice.count
    return Channel.from_probabilities(lattice.noisy(Noise.GAUSSIAN, scales))


def test_the_oracle_finds_a_certificate_under_the_wrong_marginal() -> None:
    lattice = Lattice(-12.0, 12.0, 13)
    prior = bell(lattice, 5.0)
    wrong = wrongly_calibrated(lattice, prior, 2.0, 1e-4)
    assert exact_delta(wrong, prior, 2.0) > 100 * Fraction(1, 10**4)
    right = least_noise_each(Noise.GAUSSIAN, lattice, prior, 2.0, 1e-4)
    assert exact_delta(right.channel, prior, 2.0) <= Fraction(1e-4)


# --- what the paper says ---


def normal(outputs: Floats, mean: Floats | float, deviation: Floats | float) -> Floats:
    return np.asarray(
        np.exp(-0.5 * ((outputs - mean) / deviation) ** 2) / (deviation * math.sqrt(2 * math.pi))
    )


def published_scales(points: Floats, spread: float, epsilon: float, delta: float) -> Floats:
    """[LIP, Cor. 10]: the least scale at each value, against N(0, spread^2 + scale^2)."""
    low, high = np.full(points.shape, 0.1), np.full(points.shape, 1000.0)
    reduced = np.linspace(-12.0, 12.0, 2401)
    for _ in range(28):
        scale = np.sqrt(low * high)
        width = np.hypot(spread, scale)[:, None]
        rows = normal(reduced * width, points[:, None], scale[:, None]) * width
        told = normal(reduced, 0.0, 1.0)
        step = reduced[1] - reduced[0]
        fits = float_delta(rows, told, epsilon) * step <= delta
        low, high = np.where(fits, low, scale), np.where(fits, scale, high)
    return high


@pytest.mark.parametrize(
    ("epsilon", "stated", "measured"),
    [(1.0, 0.193, 0.1937), (2.0, 0.090, 0.0911), (3.0, 0.029, 0.0296)],
)
def test_the_published_scale_for_each_value_breaks_its_delta(
    epsilon: float, stated: float, measured: float
) -> None:
    """A normal prior of deviation 5 on [-12, 12], a delta of 1e-4 claimed."""
    points = np.linspace(-12.0, 12.0, 121)
    scales = published_scales(points, 5.0, epsilon, 1e-4)
    share = normal(points, 0.0, 5.0)
    share[[0, -1]] /= 2
    share /= share.sum()
    outputs = np.linspace(-500.0, 500.0, 5001)
    rows = normal(outputs, points[:, None], scales[:, None])
    true = float_delta(rows, share @ rows, epsilon) * (outputs[1] - outputs[0])
    assert true.max() == pytest.approx(measured, abs=2e-4)
    assert true.max() == pytest.approx(stated, abs=1.5e-3)
    assert share[true > 1e-4].sum() > 0.9


def laplace_ratio(
    points: Floats, prior: Floats, scales: Floats, interval: tuple[float, float]
) -> float:
    """The largest log ratio of densities inside an interval and of the masses of its two ends."""
    low, high = interval
    outputs = np.linspace(low, high, 2001)
    rows = np.exp(-np.abs(outputs - points[:, None]) / scales[:, None]) / (2 * scales[:, None])
    ends = [0.5 * np.exp(-(points - low) / scales), 0.5 * np.exp(-(high - points) / scales)]
    rows = np.column_stack([rows, *ends])
    return float(np.abs(np.log(rows / (prior @ rows))).max())


@settings(max_examples=25)
@given(st.data(), st.floats(0.05, 6.0))
def test_the_published_laplace_scale_keeps_its_budget_when_outputs_are_clamped(
    data: st.DataObject, epsilon: float
) -> None:
    masses = data.draw(st.lists(st.floats(0.01, 1.0), min_size=2, max_size=5))
    prior = np.array(masses) / sum(masses)
    points = np.linspace(0.0, 3.0, prior.size)
    least, k = float(prior.min()), math.exp(epsilon)
    scale = 3.0 / math.log((k - least) / (1 - least))
    ratio = laplace_ratio(points, prior, np.full(prior.size, scale), (0.0, 3.0))
    assert ratio <= epsilon + 1e-9
    # The other branch, printed for large budgets, is only looser.
    assert scale <= 3.0 / epsilon * (1 + 1e-12)
    looser = laplace_ratio(points, prior, np.full(prior.size, 3.0 / epsilon), (0.0, 3.0))
    assert looser <= ratio + 1e-9


@settings(max_examples=15, deadline=None)
@given(st.data(), st.floats(0.1, 5.0))
def test_the_least_laplace_noise_is_at_most_the_published_one(
    data: st.DataObject, epsilon: float
) -> None:
    prior, lattice = data.draw(priors(5)), Lattice(0.0, 3.0, 5)
    found = least_noise(Noise.LAPLACE, lattice, prior, epsilon)
    least, k = float(prior.min()), math.exp(epsilon)
    assert found.scales is not None
    assert found.scales[0] <= 3.0 / math.log((k - least) / (1 - least)) * (1 + 1e-9)
    assert found.scales[0] <= 3.0 / epsilon * (1 + 1e-9)


def test_scales_that_differ_have_no_bound_without_a_bounded_output() -> None:
    points, prior, scales = np.array([0.0, 1.0]), np.array([0.5, 0.5]), np.array([1.0, 2.0])
    ratios = [laplace_ratio(points, prior, scales, (-u, u + 1)) for u in (1.0, 10.0, 100.0, 500.0)]
    assert np.diff(ratios).min() > 0
    assert ratios[-1] > 200
    assert (ratios[-1] - ratios[-2]) / 400 == pytest.approx(0.5, abs=1e-3)


# --- sampling ---


@settings(max_examples=15, deadline=None)
@given(st.data(), st.floats(0.05, 2.0), st.sampled_from([0.0, 1e-6, 1e-3, 0.1]))
def test_the_rate_of_sampling_is_the_largest_that_keeps_the_budget(
    data: st.DataObject, epsilon: float, delta: float
) -> None:
    count = data.draw(st.integers(2, 7))
    prior = data.draw(priors(count))
    found = sampling(Lattice(0.0, 1.0, count), prior, epsilon, delta)
    assert confirmed(found, prior, epsilon, delta)
    rare, k = float(prior.min()), math.exp(epsilon)
    for_rare = (delta + (k - 1) * rare) / (1 - rare)
    for_others = 1 - (1 - delta / (1 - rare)) / k
    rate = min(1.0, for_rare, for_others)
    other = int(prior.argmin())
    common = int(np.where(np.arange(count) == other, 0.0, prior).argmax())
    shown = dict(zip(found.channel.outputs.tolist(), found.channel.weights[other], strict=True))
    kept = 1 - int(shown[common]) / WHOLE / float(prior[common] / prior.sum())
    assert kept == pytest.approx(rate, rel=1e-6, abs=1e-12)


@settings(max_examples=16, deadline=None)
@given(st.floats(0.0, 10.0), st.floats(0.0, 1.0))
def test_the_published_rate_is_that_of_the_paper(epsilon: float, delta: float) -> None:
    k = math.exp(epsilon)
    expected = min(delta * k, 1 - 1 / k + delta / k)
    assert paper_sampling_rate(epsilon, delta) == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert 0 <= paper_sampling_rate(epsilon, delta) <= 1


@pytest.mark.parametrize(("epsilon", "delta"), [(2.0, 0.01), (1.0, 0.05), (0.5, 0.001)])
def test_the_published_rate_keeps_the_letter_of_its_definition_and_not_the_stronger_form(
    epsilon: float, delta: float
) -> None:
    rate, count = Fraction(paper_sampling_rate(epsilon, delta)), 4000
    even, k = Fraction(1, count), factor_below(epsilon)
    row = [rate + (1 - rate) * even] + [(1 - rate) * even] * (count - 1)
    told = [even] * count
    # Equation 3 forgives e^eps delta on the first line.
    assert over(row, told, k) <= k * Fraction(delta)
    assert over(told, row, k) <= Fraction(delta)
    assert over(row, told, k) > Fraction(11, 10) * Fraction(delta)
    ours = [Fraction(delta) + (1 - Fraction(delta)) * even]
    ours += [(1 - Fraction(delta)) * even] * (count - 1)
    assert max(over(ours, told, k), over(told, ours, k)) <= Fraction(delta)


def test_a_published_rate_is_known_for_every_level() -> None:
    assert paper_sampling_rate(800.0, 0.1) == 1.0


# --- the optimum and guessing ---


@settings(max_examples=8, deadline=None)
@given(st.data(), st.floats(0.2, 4.0))
def test_no_mechanism_is_cheaper_than_the_optimal_channel(
    data: st.DataObject, epsilon: float
) -> None:
    masses = data.draw(st.lists(st.floats(0.02, 1.0), min_size=7, max_size=7))
    prior, lattice = np.array(masses) / sum(masses), Lattice(-2.0, 4.0, 7)
    best = optimal_number(lattice, prior, epsilon)
    assert confirmed(best, prior, epsilon, 0.0)
    assert best.cost == pytest.approx(mean_error(best, prior), rel=1e-9)
    rivals = [sampling(lattice, prior, epsilon)]
    for noise in Noise:
        noisy = least_noise(noise, lattice, prior, epsilon)
        rivals += [noisy, guessed(noisy, prior)]
    costs = [rival.cost for rival in rivals] + [best_constant(lattice, prior)]
    assert best.cost <= min(costs) + 1e-6


@settings(max_examples=15, deadline=None)
@given(st.data(), noises, st.floats(0.2, 4.0), allowances)
def test_a_guess_costs_no_more_and_tells_no_more(
    data: st.DataObject, noise: Noise, epsilon: float, delta: float
) -> None:
    prior, lattice = data.draw(priors(6)), Lattice(-2.0, 4.0, 6)
    plain = least_noise(noise, lattice, prior, epsilon, delta)
    after = guessed(plain, prior)
    assert after.cost <= plain.cost * (1 + 1e-12)
    assert after.cost <= best_constant(lattice, prior) * (1 + 1e-12) + 1e-15
    assert after.cost == pytest.approx(mean_error(after, prior), rel=1e-9, abs=1e-15)
    at = exact_delta(plain.channel, prior, epsilon)
    assert exact_delta(after.channel, prior, epsilon) <= at
    assert after.lip.epsilon <= plain.lip.epsilon + 1e-12
    assert after.ldp.epsilon <= plain.ldp.epsilon + 1e-12
    assert confirmed(after, prior, epsilon, delta)


# --- scales without a prior ---


@settings(max_examples=15, deadline=None)
@given(st.floats(0.05, 6.0), st.floats(-12.0, -0.5), st.sampled_from([1e-6, 1.0, 1e9]))
def test_the_scale_without_a_prior_is_the_root_of_the_exact_curve(
    epsilon: float, exponent: float, width: float
) -> None:
    delta = 10.0**exponent
    found = local_scale(Noise.GAUSSIAN, width, epsilon, delta)

    def curve(scale: mpmath.mpf) -> mpmath.mpf:
        half, shift = 1 / (2 * scale), mpmath.mpf(epsilon) * scale
        return mpmath.ncdf(half - shift) - mpmath.exp(mpmath.mpf(epsilon)) * mpmath.ncdf(
            -half - shift
        )

    with mpmath.workdps(40):
        reduced = mpmath.mpf(found) / mpmath.mpf(width)
        # Differences of doubles near 1e-16 cannot place a delta of 1e-12 any better.
        assert curve(reduced * (1 - mpmath.mpf(10) ** -4)) > delta
        assert curve(reduced * (1 + mpmath.mpf(10) ** -4)) < delta
    assert local_scale(Noise.LAPLACE, width, epsilon, delta) == width / epsilon


def test_normal_noise_without_a_delta_has_no_scale_of_its_own() -> None:
    assert local_scale(Noise.GAUSSIAN, 1.0, 1.0, 0.0) == math.inf
    lattice = Lattice(0.0, 1.0, 5)
    found = least_noise(Noise.GAUSSIAN, lattice, np.full(5, 0.2), 1.0)
    assert confirmed(found, np.full(5, 0.2), 1.0, 0.0)


def test_the_textbook_scale_is_refused_beyond_its_proof_and_never_smaller() -> None:
    for epsilon, delta in itertools.product((0.1, 0.5, 1.0), (1e-9, 1e-5, 1e-2)):
        expected = 2.0 * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
        assert classical_scale(2.0, epsilon, delta) == pytest.approx(expected)
        assert expected >= local_scale(Noise.GAUSSIAN, 2.0, epsilon, delta)
    for epsilon in (1.0 + 1e-9, 2.0, 0.0, -1.0, math.nan):
        with pytest.raises(InvalidParameter, match="epsilon"):
            classical_scale(1.0, epsilon, 1e-5)
    for delta in (0.0, 1.0, math.nan):
        with pytest.raises(InvalidParameter, match="delta"):
            classical_scale(1.0, 0.5, delta)


def test_the_scale_without_a_prior_refuses_what_is_no_budget() -> None:
    for noise, (width, epsilon, delta) in itertools.product(
        Noise, ((1.0, 0.0, 0.1), (1.0, -1.0, 0.1), (0.0, 1.0, 0.1), (1.0, 1.0, -0.1))
    ):
        with pytest.raises(InvalidParameter):
            local_scale(noise, width, epsilon, delta)


# --- the lattice and the line ---


@pytest.mark.parametrize(("noise", "epsilon"), [(2.0, 0.5), (1.0, 1.0), (4.0, 0.1)])
def test_the_delta_on_a_fine_lattice_tends_to_that_of_the_line(
    noise: float, epsilon: float
) -> None:
    prior = GaussianMixture([0.4, 0.6], [-1.0, 2.0], [1.0, 0.5])
    true = [-2.0, 0.0, 3.0]
    expected = gaussian_deltas(prior, noise, epsilon, true)
    errors = []
    for count in (49, 97, 193, 385):
        lattice = Lattice(-24.0, 24.0, count)
        ends = np.concatenate([[-np.inf], lattice.edges, [np.inf]])
        share = np.maximum(prior.masses(ends), 1e-190)
        rows = lattice.noisy(Noise.GAUSSIAN, noise)
        found = float_delta(rows, share @ rows / share.sum(), epsilon)[lattice.places(true)]
        errors.append(float(np.abs(found - expected).max()))
    assert errors[-1] < 2e-3
    assert errors[-1] < errors[0] / 8


# --- the same twice, errors ---


def test_wrong_arguments_are_refused_by_name() -> None:
    lattice, even = Lattice(0.0, float(SECRET), 3), np.full(3, 1 / 3)
    for make in (least_noise, least_noise_each, local_noise):
        for name, prior, epsilon, delta in (
            ("prior", [0.5, 0.5, 0.0], 1.0, 0.1),
            ("prior", [0.5, 0.5], 1.0, 0.1),
            ("prior", [0.5, 0.6, 0.1], 1.0, 0.1),
            ("epsilon", even, 0.0, 0.1),
            ("epsilon", even, math.inf, 0.1),
            ("delta", even, 1.0, 1.0),
            ("delta", even, 1.0, -0.1),
            ("delta", even, 1.0, math.nan),
        ):
            with pytest.raises(InvalidParameter, match=name) as refusal:
                make(Noise.LAPLACE, lattice, prior, epsilon, delta)
            assert SECRET not in str(refusal.value)
    fine = Lattice(0.0, 1.0, MOST_POINTS_EACH + 1)
    with pytest.raises(InvalidParameter, match="lattice"):
        least_noise_each(Noise.LAPLACE, fine, np.full(fine.count, 1 / fine.count), 1.0)
    with pytest.raises(InvalidParameter, match="prior"):
        guessed(least_noise(Noise.LAPLACE, lattice, even, 1.0), [0.5, 0.5])
