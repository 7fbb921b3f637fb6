"""Draw the pictures of docs/concepts.md: `docs/images/concept-*.png`, each from its formula."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from scipy.stats import norm

import sfumato as sf
from sfumato.core.printed import shown_down, shown_up
from sfumato.explanations.belief_words import belief_range

IMAGES = Path(__file__).parents[1] / "docs" / "images"
BEFORE, AFTER, LIMIT, OTHER, INK = "#b9b2a6", "#8c4a2f", "#2b2b2b", "#1b6ca8", "#2b2b2b"
HAMMING = 1.0 - np.eye(3)


def beside(axes: Axes) -> None:
    """A legend to the right of the axes."""
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def one_nat(axes: Axes) -> None:
    """What a belief of 10 % may become."""
    prior = 0.1
    budgets = (0.1, 0.5, 1.0, 2.0, 5.0)
    for place, epsilon in enumerate(budgets):
        low, high = belief_range(sf.SIP(epsilon), prior)
        axes.barh(place, high - low, 0.55, low, color=AFTER if epsilon == 1 else BEFORE)
        said = f"{shown_down(100 * low, 3)} % to {shown_up(100 * high, 3)} %"
        axes.text(high + 0.012, place, said, va="center")
    axes.axvline(prior, color=LIMIT, linewidth=1)
    axes.text(prior + 0.008, len(budgets) - 0.45, "before: 10 %", va="center")
    axes.set_yticks(range(len(budgets)), [f"{e:g} nat{'s' * (e != 1)}" for e in budgets])
    axes.set_ylim(-0.6, len(budgets) - 0.1)
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    axes.set_xlabel("belief in the true value after one output (LIP, SIP)")


def lip(axes: Axes) -> None:
    """Belief before and after an output of the best channel, with the limits of LIP."""
    prior, epsilon = np.array([0.2, 0.3, 0.5]), 0.5
    channel = np.asarray(sf.solver.optimal(prior, HAMMING, epsilon).channel.probabilities)
    joint = prior[:, None] * channel
    output = int(np.argmin(np.where(joint.sum(0) > 0, joint.sum(0), 2)))
    after = joint[:, output] / joint[:, output].sum()
    places = np.arange(3)
    axes.bar(places - 0.18, prior, 0.34, color=BEFORE, label="before")
    axes.bar(places + 0.18, after, 0.34, color=AFTER, label="after one output")
    k = math.exp(epsilon)
    axes.hlines(prior * k, places - 0.4, places + 0.4, color=LIMIT, linestyles="--")
    axes.hlines(prior / k, places - 0.4, places + 0.4, color=LIMIT, linestyles=":")
    axes.plot([], [], "--", color=LIMIT, label="belief × $e^{0.5}$: no more")
    axes.plot([], [], ":", color=LIMIT, label="belief × $e^{-0.5}$: no less")
    axes.set_xticks(places, ["bus", "car", "train"])
    axes.set_ylabel("belief")
    axes.set_ylim(0, 0.9)
    beside(axes)


def sip(axes: Axes) -> None:
    """Belief in the true value along a sticky stream, with what a step may do to it."""
    stay, epsilon, steps = 0.95, 0.3, 40
    move = np.array([[stay, 1 - stay], [1 - stay, stay]])
    truth = np.repeat([0, 1], steps // 2)
    coins, belief = np.random.default_rng(5), np.array([0.5, 0.5])
    before, after = [], []
    for value in truth:
        # The best channel would often be a constant here, which shows nothing of the bound.
        channel = np.asarray(
            sf.solver.calibrated_randomized_response(
                belief, 1.0 - np.eye(2), epsilon
            ).channel.probabilities
        )
        output = int(coins.random() > channel[value, 0])
        posterior = belief * channel[:, output]
        posterior /= posterior.sum()
        before.append(belief[value])
        after.append(posterior[value])
        belief = posterior @ move
    at = np.arange(1, steps + 1)
    low, high = zip(*(belief_range(sf.SIP(epsilon), each) for each in before), strict=True)
    axes.vlines(at, low, high, color=BEFORE, linewidth=5, label="what one output\nmay do to it")
    axes.plot(at, after, "o-", color=AFTER, markersize=3, label="belief in the\ntrue value")
    axes.axvline(steps / 2 + 0.5, color=LIMIT, linewidth=1, linestyle=":")
    axes.text(steps / 2 + 1, 0.04, "here the value changes")
    axes.set_xlabel("value")
    axes.set_ylabel("belief")
    axes.set_ylim(0, 1.02)
    beside(axes)


def ldp(axes: Axes) -> None:
    """Outputs of randomised response under two values."""
    k = math.e
    right, wrong = k / (k + 2), 1 / (k + 2)
    places = np.arange(3)
    axes.bar(places - 0.18, [right, wrong, wrong], 0.34, color=AFTER, label="true value: bus")
    axes.bar(places + 0.18, [wrong, right, wrong], 0.34, color=OTHER, label="true value: car")
    axes.set_xticks(places, ["“bus”", "“car”", "“train”"])
    axes.set_ylabel("probability of the output")
    for place in (0, 1):
        axes.text(place, right + 0.02, "ratio $e^1$ = 2.72", ha="center")
    axes.text(2, wrong + 0.02, "ratio 1", ha="center")
    axes.set_ylim(0, 0.72)
    beside(axes)


def series_dp(axes: Axes) -> None:
    """Two densities of a released count, with and without a person."""
    sigma, epsilon = 1.5, 1.0
    at = np.linspace(-5, 6.5, 600)
    without, present = norm.pdf(at, 0, sigma), norm.pdf(at, 1, sigma)
    axes.plot(at, without, color=OTHER, label="without her")
    axes.plot(at, present, color=AFTER, label="with her")
    axes.plot(at, math.exp(epsilon) * without, ":", color=OTHER, label="$e^ε$ × without her")
    over = present > math.exp(epsilon) * without
    axes.fill_between(at, math.exp(epsilon) * without, present, where=over, color=AFTER, alpha=0.45)
    edge = sigma**2 * epsilon + 0.5
    delta = norm.sf(edge, 1, sigma) - math.exp(epsilon) * norm.sf(edge, 0, sigma)
    axes.annotate(
        f"δ = {delta:.3f}:\nthe area above",
        (3.35, 0.055),
        (4.1, 0.13),
        arrowprops={"arrowstyle": "-", "color": INK},
    )
    axes.set_xlabel("released count, less the true one without her")
    axes.set_ylabel("density")
    axes.set_ylim(0, 0.36)
    axes.legend(frameon=False, loc="upper left")


def temporal(axes: Axes) -> None:
    """How the leakage about a moment grows with the releases around it."""
    chain = sf.temporal.LossFunction.of([[0.95, 0.05], [0.05, 0.95]])
    told = sf.temporal.temporal_leakage([0.1] * 30, chain, chain)
    at = np.arange(1, 31)
    axes.plot(at, np.asarray(told.total), color=AFTER, label="all releases together")
    axes.plot(at, np.asarray(told.backward), "--", color=OTHER, label="those up to it")
    axes.plot(at, np.asarray(told.forward), ":", color=OTHER, label="it and those after")
    axes.plot(at, [0.1] * 30, color=BEFORE, linewidth=3, label="this release by itself")
    axes.set_xlabel("release")
    axes.set_ylabel("nats about that moment")
    axes.set_xlim(1, 30)
    axes.set_xticks([1, 10, 20, 30])
    axes.set_ylim(bottom=0)
    beside(axes)


def disclosure(axes: Axes) -> None:
    """People before, and what is left of them once noisy values are published."""
    mean, spread = np.array([170.0, 70.0]), np.array([[81.0, 66.0], [66.0, 182.0]])
    noise = np.diag([64.0, 64.0])
    published = np.array([181.0, 90.0])
    gain = spread @ np.linalg.inv(spread + noise)
    best, left = mean + gain @ (published - mean), spread - gain @ spread
    coins = np.random.default_rng(3)
    cloud = coins.multivariate_normal(mean, spread, 700)
    axes.plot(*cloud.T, ".", color=BEFORE, markersize=3, label="people like her")
    angle = np.linspace(0, 2 * math.pi, 200)
    ring = np.linalg.cholesky(left) @ np.array([np.cos(angle), np.sin(angle)]) * 1.5
    axes.plot(*(best[:, None] + ring), color=AFTER, label="where she probably is")
    axes.plot(*published, "x", color=OTHER, markersize=8, label="published, with noise")
    box = Rectangle(best - [3, 4], 6, 8, fill=False, edgecolor=LIMIT, linewidth=1.6)
    axes.add_patch(box)
    draws = coins.multivariate_normal(best, left, 400_000)
    delta = float((np.abs(draws - best) < [3, 4]).all(1).mean())
    axes.plot(
        [],
        [],
        "s",
        markerfacecolor="none",
        color=LIMIT,
        label=f"best guess ± 3 cm, ± 4 kg:\nright with probability {delta:.2f}",
    )
    axes.set_xlabel("height in cm")
    axes.set_ylabel("weight in kg")
    axes.set_xlim(140, 202)
    axes.set_xticks([140, 160, 180, 200])
    axes.set_ylim(28, 118)
    beside(axes)


PICTURES: dict[str, Callable[[Axes], None]] = {
    "one-nat": one_nat,
    "lip": lip,
    "sip": sip,
    "ldp": ldp,
    "series": series_dp,
    "temporal": temporal,
    "disclosure": disclosure,
}


def main() -> None:
    """Draw all of them in one style: small, on white, readable on a dark page."""
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    for name, picture in PICTURES.items():
        figure, axes = plt.subplots(figsize=(6.4, 2.7), layout="constrained")
        picture(axes)
        path = IMAGES / f"concept-{name}.png"
        figure.savefig(path, dpi=150)
        plt.close(figure)
        print(path)


if __name__ == "__main__":
    main()
