"""What learning from outputs costs, and what it brings: `python benchmarks/learning.py`.

Costs: processor time of one pass of EM over a value of a stream, and its ratio to a forward pass of
`recover` over the same outputs, in alternation in the same run. Brings: nothing is known, streams
leave by randomised response, a chain is learnt from what left, and other streams are released
far-sighted with it; their loss against that of a release that knew the chain, over several draws.
The curve is drawn to `docs/images/learning.png`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import matplotlib
import numpy as np
from chains import Case, binary, ring

import sfumato as sf
from sfumato.core.arrays import Floats, Ints
from sfumato.models.emissions import Emissions
from sfumato.models.expectation import even, pass_sums
from sfumato.models.learning import learn_chain
from sfumato.stream.hidden_chain import HiddenChain
from sfumato.stream.recovery_loops import log_probabilities

START, EPSILON = 2.0, 0.5
LIVE_STREAMS, LIVE_LENGTH = 1_000, 200
DRAWS = 8
TARGET = Path(__file__).parents[1] / "docs" / "images" / "learning.png"
COLOURS = ("#8c4a2f", "#2f5f8c")


def drawn(chain: sf.MarkovChain, streams: int, length: int, seed: int) -> Ints:
    """Values of streams, a row each."""
    rng, moves = np.random.default_rng(seed), chain.transition().cumsum(axis=1)
    values = rng.choice(chain.size, size=streams, p=chain.initial)
    found = np.empty((streams, length), dtype=np.int64)
    for moment in range(length):
        found[:, moment] = values
        values = (rng.random(streams)[:, None] > moves[values]).sum(axis=1)
        values = np.minimum(values, chain.size - 1)
    return found


def answered(truth: Ints, channel: Floats, seed: int) -> Emissions:
    """What outputs of one channel told."""
    rng, sums = np.random.default_rng(seed), channel.cumsum(axis=1)
    outputs = (rng.random(truth.shape)[..., None] > sums[truth]).sum(axis=2)
    outputs = np.minimum(outputs, len(channel.T) - 1)
    return Emissions.of_rows([channel[:, row].T for row in outputs])


def response(size: int, epsilon: float) -> Floats:
    """Randomised response."""
    kept = np.exp(epsilon)
    whole = np.ones((size, size)) + (kept - 1) * np.eye(size)
    return np.asarray(whole / (kept + size - 1))


def alternated(runs: list[Callable[[], object]], times: int = 5) -> list[float]:
    """Least seconds of each, in alternation; the first round may compile."""
    found: list[list[float]] = [[] for _ in runs]
    for _ in range(times + 1):
        for place, run in enumerate(runs):
            began = time.process_time()
            run()
            found[place].append(time.process_time() - began)
    return [min(seconds[1:]) for seconds in found]


def costs(case: Case, streams: int = 1_000, length: int = 100) -> str:
    """A row of the table of costs."""
    chain = case.chain
    emissions = answered(drawn(chain, streams, length, 1), response(chain.size, START), 2)
    hidden, scores = HiddenChain.of(chain), np.empty(streams)
    told = emissions.begins, emissions.reaches, np.zeros(len(emissions), np.int64), emissions.told
    forward = partial(log_probabilities, hidden.arrays, told, emissions.starts, 1, scores)
    em, plain = alternated([partial(pass_sums, even(chain.size, 1), emissions), forward])
    each = 1e9 * em / (streams * length)
    return f"| {case.name} | {each:.0f} | {em / plain:.1f} |"


def loss(chain: sf.MarkovChain, case: Case, truth: Ints) -> float:
    """Share of wrong values of a far-sighted release with a chain."""
    priced = sf.loss.hamming(chain.alphabet)
    policy = sf.compile_policy(chain, priced, EPSILON, method="far-sighted", steps=500)
    plan = sf.Plan(
        chain, sf.PerStep(sf.SIP(EPSILON)), priced, method=sf.Method.FAR_SIGHTED, policy=policy
    )
    fleet = sf.Fleet(plan, [f"s{place}" for place in range(len(truth))])
    left = [fleet.step(truth[:, moment]).released for moment in range(truth.shape[1])]
    return float((np.stack(left, axis=1) != truth).mean())


@dataclass(frozen=True)
class Point:
    """What a chain learnt from so many values is worth, on average over draws.

    Attributes:
        name: The true chain.
        streams: Streams that were learnt from,
        length: and values of each.
        off: Distance of its rows to the true ones (L1).
        learnt: Share of values wrong with it,
        known: and with the true chain.
        more: How much more often wrong, a number for each draw.
    """

    name: str
    streams: int
    length: int
    off: float
    learnt: float
    known: float
    more: Floats

    @property
    def error(self) -> float:
        """Two standard errors of the mean of `more`."""
        return float(2 * self.more.std(ddof=1) / np.sqrt(len(self.more)))

    def row(self) -> str:
        """Of the table."""
        cells = f"{self.off:.3f} | {self.learnt:.4f} | {self.known:.4f}"
        more = f"{self.more.mean():+.1%} +- {self.error:.1%}"
        return f"| {self.name} | {self.streams:,} | {self.length} | {cells} | {more} |"


def curve(case: Case, sizes: tuple[tuple[int, int], ...]) -> list[Point]:
    """Print the rows of a case. In a draw all sizes are released on the same true values."""
    truths = [drawn(case.chain, LIVE_STREAMS, LIVE_LENGTH, 30 + draw) for draw in range(DRAWS)]
    known = np.array([loss(case.chain, case, truth) for truth in truths])
    points = []
    for streams, length in sizes:
        off, learnt = np.empty(DRAWS), np.empty(DRAWS)
        for draw, truth in enumerate(truths):
            values = drawn(case.chain, streams, length, 100 + draw)
            outputs = answered(values, response(case.chain.size, START), 200 + draw)
            found = learn_chain(outputs, case.chain.alphabet).chain
            off[draw] = np.abs(found.transition() - case.chain.transition()).sum(axis=1).mean()
            learnt[draw] = loss(found, case, truth)
        means = off.mean(), learnt.mean(), known.mean()
        points.append(Point(case.name, streams, length, *means, learnt / known - 1))
        print(points[-1].row(), flush=True)
    return points


def draw_curves(cases: list[list[Point]]) -> None:
    """How much more often wrong than with the true chain, by values that were learnt from."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
    for points, colour in zip(cases, COLOURS, strict=True):
        at = [point.streams * point.length for point in points]
        more = [100 * point.more.mean() for point in points]
        bars = [100 * point.error for point in points]
        axes.errorbar(at, more, bars, fmt="o-", color=colour, ms=4, capsize=3, label=points[0].name)
    axes.axhline(0, color="#777777", lw=0.8)
    axes.axhline(10, color="#777777", lw=0.8, ls="--")
    axes.set_xscale("log")
    axes.set_xlabel("values learnt from, all streams (randomised response, 2 nats each)")
    axes.set_ylabel("more often wrong than with\nthe true chain, % (+- 2 se)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(TARGET, dpi=130)


def main() -> None:
    """Print two tables."""
    print("| chain | EM pass, ns a value | EM pass / forward pass of `recover` |\n|---|---|---|")
    for case in (binary(), ring(4), ring()):
        print(costs(case), flush=True)
    print(
        "\n| chain | streams | values each | rows off (L1) | wrong, learnt | wrong, known | more |"
    )
    print("|---|---|---|---|---|---|---|")
    bits = curve(binary(), ((10, 20), (30, 20), (100, 20), (300, 20), (100, 100), (1_000, 100)))
    rings = curve(ring(4, 0.8), ((30, 20), (100, 20), (300, 20), (100, 100), (1_000, 100)))
    draw_curves([bits, rings])


if __name__ == "__main__":
    main()
