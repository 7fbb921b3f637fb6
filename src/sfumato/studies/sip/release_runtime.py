"""How long a released value takes, as the alphabet, the order, the batch or the sequence grows.

Processor seconds of this process, divided by those of the smallest randomised response of the same
run: a time alone says more about the machine. Notions that the product does not release by are
measured at what they must compute before they can: mutual information (MIP) at the whole joint
table of a sequence and its outputs, Pufferfish at the search for the best Markov quilt.

These are measurements: two runs do not give the same numbers.

References:
    [SIP, Tab. I]
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.belief import Belief
from sfumato.core.budgets import PerStep
from sfumato.core.guarantees import SIP
from sfumato.core.loss import hamming
from sfumato.core.randomness import seeded
from sfumato.models.markov import MarkovChain
from sfumato.plots.points import MeasuredPoint
from sfumato.solver.design_methods import Method
from sfumato.stream.plan import Plan
from sfumato.stream.simulated_stream import as_simulation
from sfumato.studies.sip.fixed_channels import response

EPSILON = 1.0
LDP, PUBLISHED, CERTIFIED = "LDP, k-RR", "SIP, Algorithm 1", "SIP, certified optimum"
PREDICTION, MIP, PUFFERFISH = "prediction alone", "MIP, joint table", "Pufferfish, quilts"
_ORDER_SIZE, _BATCH_SIZE, _LENGTH_SIZE = 6, 4, 8
_LEAST_SECONDS, _LEAST_CALLS = 0.03, 5
"""A call is repeated until it has taken as long, and as often: shorter times are noise."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured.

    Attributes:
        alphabets: Symbols, for rules with a formula.
        solved: Symbols, for channels that are solved.
        orders: Of chains with 6 symbols.
        widths: Of batches of 4 symbols.
        lengths: Of sequences of 8 symbols.
        joint_lengths: Of sequences of bits whose joint table is made.
        repetitions: Of everything.
    """

    alphabets: tuple[int, ...] = (8, 32, 128, 512, 1024, 2048)
    solved: tuple[int, ...] = (8, 16, 32, 64, 128)
    orders: tuple[int, ...] = (1, 2, 3)
    widths: tuple[int, ...] = (1, 2, 3, 4)
    lengths: tuple[int, ...] = (8, 16, 32, 64, 128)
    joint_lengths: tuple[int, ...] = (2, 4, 6, 8, 10)
    repetitions: int = 3

    @property
    def steps(self) -> int:
        """Everything that is measured."""
        kinds = 3 * len(self.alphabets) + len(self.solved) + 2 * len(self.orders)
        return self.repetitions * (
            kinds + len(self.widths) + 2 * len(self.lengths) + len(self.joint_lengths)
        )


QUICK = Sizes((8, 512, 1024, 2048), (8, 16, 32), (1, 2), (1, 2, 3), (8, 32, 128), (6, 8, 10), 2)

Job = Callable[[], object]


def runtime_points(
    sizes: Sizes, seed: int, show: Callable[[int], None] | None = None
) -> list[MeasuredPoint]:
    """All panels: seconds per value as parts of those of the smallest randomised response."""
    draw, found = np.random.default_rng(seed), dict[tuple[str, str, int], list[float]]()
    done = 0
    for _ in range(sizes.repetitions):
        for panel, curve, size, job, values in _jobs(sizes, draw):
            found.setdefault((panel, curve, size), []).append(_seconds(job) / values)
            done += 1
            if show:
                show(done)
    unit = float(np.mean(found["alphabet", LDP, sizes.alphabets[0]]))
    return [
        MeasuredPoint(
            panel,
            curve,
            float(size),
            float(np.mean(times)) / unit,
            float(np.std(times, ddof=1) / math.sqrt(len(times))) / unit if len(times) > 1 else 0.0,
        )
        for (panel, curve, size), times in found.items()
    ]


def _jobs(sizes: Sizes, draw: np.random.Generator) -> list[tuple[str, str, int, Job, int]]:
    """Panel, curve, size, what is run, and how many values it releases."""
    jobs: list[tuple[str, str, int, Job, int]] = []
    for size in sizes.alphabets:
        chain = random_chain(size, draw)
        jobs += [
            ("alphabet", LDP, size, _drawn(size), 100),
            ("alphabet", PUBLISHED, size, _by_algorithm_1(chain, 8), 8),
            ("alphabet", PREDICTION, size, _predicted(chain), 1),
        ]
    for size in sizes.solved:
        chain = random_chain(size, draw)
        jobs.append(("alphabet", CERTIFIED, size, _released(chain, Method.OPTIMAL, 4), 4))
    for order in sizes.orders:
        chain = random_chain(_ORDER_SIZE, draw, order)
        jobs.append(("order", CERTIFIED, order, _released(chain, Method.OPTIMAL, 6), 6))
        jobs.append(("order", PREDICTION, order, _predicted(chain), 1))
    chain = random_chain(_BATCH_SIZE, draw)
    for width in sizes.widths:
        job = _released(chain, Method.OPTIMAL, 2 * width, width)
        jobs.append(("batch", CERTIFIED, width, job, 2 * width))
    chain = random_chain(_LENGTH_SIZE, draw)
    for length in sizes.lengths:
        jobs.append(("length", PUBLISHED, length, _by_algorithm_1(chain, length), length))
        jobs.append(("length", PUFFERFISH, length, _quilted(chain, length), length))
    bits = random_chain(2, draw)
    for length in sizes.joint_lengths:
        jobs.append(("length", MIP, length, _joint(bits, length), length))
    return jobs


def random_chain(size: int, draw: np.random.Generator, order: int = 1) -> MarkovChain:
    """Rows of uniform numbers."""
    rows = draw.random((size**order, size)) + 0.1
    initial = np.full((size,) * order, 1.0 / size**order)
    return MarkovChain.from_matrix(rows / rows.sum(axis=1, keepdims=True), initial)


def _seconds(job: Job) -> float:
    """Processor seconds of a call: the median, since now and then a loop is compiled in one."""
    job()
    spent: list[float] = []
    while len(spent) < _LEAST_CALLS or sum(spent) < _LEAST_SECONDS:
        began = time.process_time()
        job()
        spent.append(time.process_time() - began)
    return float(np.median(spent))


def _drawn(size: int) -> Job:
    channel, coins = response(size, EPSILON).channel, seeded(1)
    return lambda: [channel.draw([n % size], coins.words(1)) for n in range(100)]


def _predicted(chain: MarkovChain) -> Job:
    belief = chain.first()
    return lambda: chain.following(belief)


def _by_algorithm_1(chain: MarkovChain, values: int) -> Job:
    """The paper's own steps: the row of the true value, a draw, the belief after it."""
    k, path = math.exp(EPSILON), chain.sample(values, seeded(2)).tolist()
    coins, first, size = np.random.default_rng(3), chain.first().marginal, chain.size

    def job() -> None:
        belief = first
        for true, coin in zip(path, coins.random(values).tolist(), strict=True):
            row = belief / k
            row[true] += 1 - 1 / k
            told = min(int(np.searchsorted(row.cumsum(), coin)), size - 1)
            likelihood = np.full(size, belief[told] / k)
            likelihood[told] += 1 - 1 / k
            after = belief * likelihood
            belief = chain.spread(after / after.sum())

    return job


def _released(chain: MarkovChain, method: Method, values: int, width: int = 1) -> Job:
    """Some values by a plan, each time from another belief: channels of the last one are kept."""
    plan = Plan(chain, PerStep(SIP(EPSILON)), hamming(chain.alphabet), width, method=method)
    plan, coins, draw = as_simulation(plan), seeded(1), np.random.default_rng(3)
    labels = [chain.alphabet.labels[place] for place in chain.sample(values, seeded(2))]
    begin = plan.begin("runtime")

    def job() -> None:
        joint = draw.random(chain.initial.shape) + 0.1
        state = replace(begin, belief=Belief(joint / joint.sum()))
        for start in range(0, values, width):
            _, state = plan.step(state, labels[start : start + width], coins)

    return job


def _joint(chain: MarkovChain, length: int) -> Job:
    """The mutual information of a sequence and its outputs, from their joint table."""
    rows = response(chain.size, EPSILON).channel.probabilities

    def job() -> float:
        prior, channel = sequence_table(chain, length), rows
        for _ in range(length - 1):
            channel = np.asarray(np.kron(channel, rows))
        joint = prior[:, None] * channel
        return float((joint * np.log(channel / joint.sum(axis=0))).sum())

    return job


def sequence_table(chain: MarkovChain, length: int) -> Floats:
    """The probability of every sequence."""
    table, moves = chain.first().marginal, chain.transition()
    for _ in range(length - 1):
        table = (table.reshape(-1, chain.size)[:, :, None] * moves).ravel()
    return np.asarray(table)


def _quilted(chain: MarkovChain, length: int) -> Job:
    """For the middle value, the quilt of one value before and one after it that costs least."""
    forward, backward = chain.transition(), chain.reversed().transition()

    def job() -> float:
        before, after = _influences(backward, length), _influences(forward, length)
        best = math.inf
        for near, earlier in enumerate(before, 1):
            for far, later in enumerate(after, 1):
                influence = float((earlier + later).max())
                if influence < EPSILON:
                    best = min(best, (near + far - 1) / (EPSILON - influence))
        return best

    return job


def _influences(moves: Floats, length: int) -> list[Floats]:
    """For each distance, how much more likely one value makes what is seen there than another."""
    found, power = [], np.eye(len(moves))
    for _ in range(length // 2):
        power = power @ moves
        logs = np.log(power)
        found.append((logs[:, None, :] - logs[None, :, :]).max(axis=2))
    return found
