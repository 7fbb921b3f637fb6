r"""Noise on columns that are tied: four panels as numbers, and what the text says.

*Panels (a), (b)*: height and weight of men, tied by a polynomial regression, with independent noise
of deviation 5 in both units. The paper's rates $\gamma$ with the equation and without, its bound
on the gain, what its attacker (`equation_estimates`) and the best one reach on people who satisfy
the equation, and on the people themselves. *Panels (c), (d)*: weight and systolic pressure, jointly
normal, with noise of deviation 10: $\delta$ without correlation, the bound of Thm. 4, the best
attacker, and the same were the columns independent.

Not in the paper and chosen here: the deviations and the accuracies; that people on the equation
have evenly spread heights, within what there is. Real people come from `read_people`: the table
of the paper, heights of 140 to 210 cm, weights of 40 to 180 kg, systolic pressures of 80 to 220
mmHg. Without it, `simulated_people`: heights 67.5 and 2.6 in, weights 20 lb off the printed
equation; weights 74 and 14 kg, pressures 127 and 17 mmHg, correlation .612 (seen: .621).

What the text says; *made up* and *real* (cardio_train.csv) are the two runs, $\varepsilon = 1$:

- "10,000 men aged 30-39": there are 707, of whom 704 are plausible; 456 of 70,000 rows are not.
- The printed regression is not of this table: in cm and kg it gives 1,411 kg at 170 cm. It is, to
  all printed digits, that of R's example `women`: 15 averages of American *women* aged 30 to 39, in
  inches and pounds (142 lb at 66.9 in). Fitted to the real men: 75 kg at 170 cm, and they are
  13.4 kg off.
- "Joint normal with $\rho = .612$": .271 of all, .347 of the men aged 30 to 39.
- Thm. 2 takes a weight inferred from a height within $\varepsilon$ to be within $\varepsilon$:
  true of slopes up to 1. The printed one is 2.3 to 5.3 lb/in, so $\gamma$ = .536 and the best
  attacker finds .178 (made up). The real one is .92 to 1.01 kg/cm: .248 and .253. Units decide:
  in inches and pounds the real slope is 5.2 to 5.6.
- Real people are off the equation, so the paper's attacker finds .017 of them (.241 of people on
  it); the best one would find .039, were they jointly normal. Made up: .020 (.162) and .060.
- Eq. 13, "the correlation will not increase $\delta$", is *false*: .013 without, .178 and .253
  with the equation.
- (a), "consistent with the bound in Thm. 3": true, but the bound on $\gamma$ is over 1 from
  $\varepsilon$ = .5 (made up) or 1 (real) on. It takes $\gamma_\varnothing$ for that of
  noise wider than the domain; with less it can fail: $b = 10a$, both in [-50, 50], noise in
  [-10, 10], $\varepsilon = .5$: the gain is 185, the bound 99.
- (b), "uniform performs better" is *false of $\gamma$*: uniform .536, Gaussian .247, Laplace .324
  (made up), .248, .216, .294 (real): the short reach of uniform noise is what narrows. Of the best
  attacker: .178, .192, .272, and .253, .257, .308, all within 5 %.
- (b), uniform noise is optimal whatever the equation (Thm. 2): *false* for slopes $s$ from .643 to
  1.555. As $\varepsilon \to 0$ and for $s \ge 1$ the best attacker finds
  $(1 + 1/s)\,\varepsilon/(\sqrt 3 \sigma)$ of uniform and
  $\sqrt{2/\pi}\sqrt{1 + 1/s^2}\,\varepsilon/\sigma$ of Gaussian noise: of two equal columns
  1.155 and 1.128, of three 1.732 and 1.382, in $\varepsilon/\sigma$.
- (c), the bound of Thm. 4 is *none*: .00425 and .00346, the truth is .0136 and .0115, of which
  .0114 and .0112 come from the columns alone. With $\varepsilon = \sigma/5$ it holds up to
  $\sigma = 1.3$ (made up) and .26 (real). What the correlation itself adds, a factor
  of 1.19 and 1.03, is below the 1.28 and 1.04 of the bound.
- (d), "the gain is prevented" by the ball is *false*: from .00318 to .0122 and .0104; independent,
  to .0103 and .0102. Remark 9's $\varepsilon^2/(3\sigma^2)$ is of uniform noise; the ball has
  $\varepsilon^2/(\pi\sigma^2)$.
- (d), the ball "achieves a higher MDDP than others": true of attackers without correlation, and of
  uniform noise; *false of Gaussian noise* against the best attacker: .0104 and .0091, and so at
  every accuracy up to 4, that is, $.4 \sigma$. With $\varepsilon = \sigma/5$ from $\sigma$ = 6.6 or
  7.5 on; with less noise the ball is better.
- The $\delta$ of its simulation is the largest share over 10,000 runs of 10,000 guesses: in the
  mean .0058 where .0033 is true ($\varepsilon = 1$, uniform noise of deviation 10).

References:
    [MDDP, Fig. 2]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.progress import Progress
from sfumato.core.randomness import Address, Domain, seeded
from sfumato.core.search import geometric, narrowed
from sfumato.plots.points import Point
from sfumato.record.attack.bayes_attack import bayes_disclosure
from sfumato.record.attack.chain_bound import chain_bound
from sfumato.record.attack.coupled_attack import coupled_disclosure
from sfumato.record.attack.paper_rates import disclosure_rates, equation_estimates
from sfumato.record.attack.point_cloud import posterior_weights
from sfumato.record.coupling.coupled_prior import Cloud, CoupledPrior
from sfumato.record.coupling.coupling import FullCoupling
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.published_noise import noise_of
from sfumato.record.vector_noise import VectorNoise
from sfumato.studies.mddp.mddp_people import (
    MEN,
    PLAUSIBLE,
    PRINTED_CORRELATION,
    People,
    printed_weight,
)

TIED_ACCURACIES = (0.5, 1.0, 2.0, 3.0, 4.0)
JOINT_ACCURACIES = (0.5, 1.0, 2.0, 4.0, 8.0)
SIGMA_TIED, SIGMA_JOINT = 5.0, 10.0
TIED_SHAPES, JOINT_SHAPES = ("uniform", "gaussian", "laplace"), ("uniform", "ball", "gaussian")
ATTACKS = 80

_INCH, _POUND = 2.54, 0.45359237
_TALL = 170.0

_ERROR = 0.05
"""Largest relative error of what is sampled for panels (a) and (b), with 99 % confidence."""
_SHARE = 0.2
"""Accuracy over deviation of the noise, where the deviation is what is looked for."""
_HALVINGS = 7
_QUIET, _LOUD = 0.25, 64.0


def tied_points(
    people: People,
    accuracies: Sequence[float] = TIED_ACCURACIES,
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
                bound = rates.gamma_without * (1 + rates.gain_bound)
                points.append(Point("2a", "γ", accuracy, rates.gamma))
                points.append(Point("2a", "γ without correlation", accuracy, rates.gamma_without))
                points.append(Point("2a", "bound of Thm. 3", accuracy, bound))
                points.append(Point("2a", "on the equation, best attacker", accuracy, found))
        half = np.full(2, accuracy)
        for who, cloud in (("on the equation", prior.cloud(half)), ("people", everybody)):
            share = attack_success(prior, uniform, half, cloud, attacks)
            points.append(Point("2a", f"{who}, paper's attacker", accuracy, share))
        best = bayes_disclosure(normal, uniform, accuracy).delta
        points.append(Point("2a", "people, best attacker", accuracy, best))
        if progress:
            progress(done)
    return points


def attack_success(
    prior: CoupledPrior, noise: VectorNoise, half: Floats, people: Cloud, attacks: int
) -> float:
    """How often the paper's attacker is right: the mean, over published points, of the chance.

    The chance is that the box holds the person, given what was published: what many people
    with the same point would show, without drawing them.
    """
    ranks = np.argsort(people.points[:, 0], kind="stable")
    shares = (np.arange(attacks) + 0.5) / attacks
    chosen = ranks[np.searchsorted(people.weights[ranks].cumsum()[:-1], shares, side="right")]
    words = (
        seeded(2)
        .at(Address(Domain.SIMULATION, "mddp", "attacks", 0))
        .words(attacks * noise.words)
        .reshape(attacks, -1)
    )
    told = people.points[chosen] + noise.draw(words)
    guessed = equation_estimates(prior, noise, half, told)
    chances = []
    for row, guess in zip(told, guessed, strict=True):
        posterior = posterior_weights(row, people.points, people.weights, noise.form())
        inside = (np.abs(people.points - guess) <= half).all(axis=1)
        chances.append(posterior[inside].sum() / posterior.sum())
    return float(np.mean(chances))


def joint_points(
    people: People,
    accuracies: Sequence[float] = JOINT_ACCURACIES,
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
    low, high = _QUIET, _LOUD
    if fails(joint, low):
        return 0.0
    if not fails(joint, high):
        return math.inf

    def holds(sigma: float) -> bool:
        return not fails(joint, sigma)

    return geometric(*narrowed(holds, low, high, steps=_HALVINGS, middle=geometric))


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


def facts(people: People, points: Sequence[Point]) -> list[str]:
    """What follows from the points of all panels."""
    curves: dict[tuple[str, str], dict[float, float]] = {}
    for point in points:
        curves.setdefault((point.figure, point.curve), {})[point.x] = point.y
    return [
        _who(people),
        *_equation_facts(people),
        *_tied_facts(people, curves),
        *_joint_facts(people, curves),
    ]


def _who(people: People) -> str:
    if not people.dropped and people.units == ("in", "lb"):
        return (
            f"{people.source}: {len(people.men):,} men around the printed equation, in inches and "
            f"pounds, and {len(people.bodies):,} bodies with the printed correlation; for the real "
            "table, --data"
        )
    kept = "; ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in PLAUSIBLE.items())
    return (
        f"{people.source}: {people.rows:,} people, {people.dropped:,} left out (kept: {kept}); "
        f"{len(people.men):,} men aged 30 to 39, where the paper says {MEN:,}"
    )


def _equation_facts(people: People) -> list[str]:
    coupling, (long, heavy) = people.coupling, people.units
    inches, pounds = _TALL / _INCH, printed_weight(_TALL / _INCH)
    place = inches if long == "in" else _TALL
    fitted = float(coupling.solve("weight", {"height": place})[0])
    low, high = slope_range(coupling)
    other = _POUND / _INCH if long == "in" else _INCH / _POUND
    others = "kg/cm" if long == "in" else "lb/in"
    return [
        f"2a: the printed equation gives {printed_weight(_TALL):,.0f} at {_TALL:g}, so it is not "
        f"in cm and kg; at {inches:.1f} in it gives {pounds:.0f} lb ({pounds * _POUND:.0f} kg); "
        f"what was fitted here gives {fitted:.0f} {heavy} there, and people are "
        f"{coupling.residual:.3g} {heavy} off it",
        "2a: Theorem 2 takes a weight inferred from a height within epsilon to be within epsilon: "
        f"true of slopes up to 1; here they are {low:.2f} to {high:.2f} {heavy}/{long} "
        f"({low * other:.2f} to {high * other:.2f} {others})",
    ]


def _tied_facts(people: People, curves: dict[tuple[str, str], dict[float, float]]) -> list[str]:
    told = {name: line for (figure, name), line in curves.items() if figure == "2a"}
    at = min(told["γ"], key=lambda accuracy: abs(accuracy - 1))
    over = [x for x, y in told["bound of Thm. 3"].items() if y >= 1]
    noises = {
        words: {shape: curves["2b", f"{shape}, {kind}"] for shape in TIED_SHAPES}
        for kind, words in (("γ", "gamma"), ("best attacker", "best attacker"))
    }
    return [
        f"2a: epsilon {at:g}, uniform noise: gamma {told['γ'][at]:.3f} and "
        f"{told['γ without correlation'][at]:.4f} without correlation; of people on the equation "
        f"the best attacker finds {told['on the equation, best attacker'][at]:.3f}, the paper's "
        f"{_at(told, 'on the equation', at):.3f}; of the people themselves the paper's finds "
        f"{_at(told, 'people', at):.4f}, the best one, were they jointly normal, "
        f"{told['people, best attacker'][at]:.4f}",
        f"2a: the bound of Theorem 3 on gamma is 1 or more, so says nothing, {_where(over)}",
        *(
            f"2b: epsilon {at:g}, {words}: "
            + ", ".join(f"{shape} {line[at]:.3f}" for shape, line in each.items())
            + f"; uniform is the least, by more than the error, {_where(_least(each, 'uniform'))}"
            for words, each in noises.items()
        ),
    ]


def _joint_facts(people: People, curves: dict[tuple[str, str], dict[float, float]]) -> list[str]:
    told = {name: line for (figure, name), line in curves.items() if figure == "2c"}
    at = min(told["best attacker"], key=lambda accuracy: abs(accuracy - 1))
    broken = [x for x, y in told["best attacker"].items() if y > told["bound of Thm. 4"][x]]
    known = {shape: curves["2d", f"{shape}, best attacker"] for shape in JOINT_SHAPES}
    alone = {shape: curves["2d", f"{shape}, without correlation"] for shape in JOINT_SHAPES}
    apart = {shape: curves["2d", f"{shape}, were they independent"] for shape in JOINT_SHAPES}
    joint = people.joint
    holds, better = turning_noise(joint, chain_fails), turning_noise(joint, ball_fails)
    better_at = [x for x, y in known["gaussian"].items() if y < known["ball"][x]]
    return [
        f"2c: correlation {joint.correlation[0, 1]:.3f}, printed {PRINTED_CORRELATION:g}",
        f"2c: epsilon {at:g}: delta without correlation {told['without correlation'][at]:.5f}, "
        f"bound of Theorem 4 {told['bound of Thm. 4'][at]:.5f}, were they independent "
        f"{told['were they independent'][at]:.5f}, truth {told['best attacker'][at]:.5f}; the "
        f"bound fails {_where(broken)}; with epsilon = sigma/5 it "
        + (f"holds up to sigma {holds:.2g}" if holds else f"fails from sigma {_QUIET:g} on"),
        f"2d: epsilon {at:g}: an attacker who knows the joint density raises delta of the ball "
        f"from {alone['ball'][at]:.5f} to {known['ball'][at]:.5f}, were they independent to "
        f"{apart['ball'][at]:.5f}: the gain is not prevented",
        f"2d: against this attacker Gaussian noise is better than the ball "
        f"{_where(better_at)} (epsilon {at:g}: {known['gaussian'][at]:.5f}); with epsilon = "
        f"sigma/5 from sigma {better:.2g} on",
    ]


def _at(told: dict[str, dict[float, float]], who: str, accuracy: float) -> float:
    return told[f"{who}, paper's attacker"][accuracy]


def _least(lines: dict[str, dict[float, float]], name: str) -> list[float]:
    """Where one line is below all others by more than sampling can do."""
    others = [line for other, line in lines.items() if other != name]
    return [x for x, y in lines[name].items() if all((1 + _ERROR) * y < line[x] for line in others)]


def _where(accuracies: Sequence[float]) -> str:
    if not accuracies:
        return "at no epsilon"
    return f"at epsilon {', '.join(f'{accuracy:g}' for accuracy in accuracies)}"
