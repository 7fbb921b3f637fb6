"""Mechanisms that keep what they promise, and others that were broken on purpose."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import sfumato as sf
from sfumato.attacks.black_box import BlackBox
from sfumato.core.guarantees import Guarantee

Mechanism = Callable[[Any], Any] | BlackBox | sf.Channel


def response(size: int, epsilon: float) -> np.ndarray:
    rows = np.ones((size, size))
    np.fill_diagonal(rows, math.exp(epsilon))
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


@dataclass
class Rows:
    """Draws from rows of probabilities, with coins of its own."""

    rows: np.ndarray
    coins: np.random.Generator

    def draw(self, values: Any) -> list[int]:
        below = self.rows.cumsum(axis=1)[np.asarray(values)]
        drawn = (self.coins.random((len(values), 1)) > below).sum(axis=1)
        return [int(output) for output in np.minimum(drawn, self.rows.shape[1] - 1)]


@dataclass(frozen=True)
class Case:
    """A mechanism, what it claims, and how it is asked."""

    name: str
    mechanism: Mechanism
    inputs: list[Any]
    claim: Guarantee
    asked: dict[str, Any] = field(default_factory=dict)


def correct(coins: np.random.Generator) -> list[Case]:
    """Each as leaky as its claim says: nothing is to spare."""

    def laplace(value: float) -> float:
        return value + float(coins.laplace())

    def unary(value: int) -> list[int]:
        bits = coins.random(4) < 1 / (math.e + 1)
        bits[value] = coins.random() < 0.5
        return [int(bit) for bit in bits]

    def clamped(value: float) -> float:
        return min(max(value + float(coins.laplace()), 0.0), 1.0)

    def normal(value: int) -> float:
        return value + float(coins.normal())

    two, three = response(2, 1.0), response(3, 0.4)
    prior = np.array([0.7, 0.2, 0.1])
    lip = float(np.abs(np.log(three / (prior @ three))).max())
    # The exact delta of a normal of deviation 1 and sensitivity 1 at epsilon 1.
    delta = 0.126937
    return [
        Case("a bit", Rows(two, coins), [0, 1], sf.LDP(1.0)),
        Case("three answers", Rows(three, coins), [0, 1, 2], sf.LDP(0.4)),
        Case("nothing", Rows(np.full((4, 4), 0.25), coins), [0, 1, 2, 3], sf.LDP(0.0)),
        Case("sixteen", Rows(response(16, 2.0), coins), list(range(16)), sf.LDP(2.0)),
        Case("numbers", laplace, [0.0, 0.5, 1.0], sf.LDP(1.0)),
        Case("clamped numbers", clamped, [0.0, 1.0], sf.LDP(1.0)),
        Case("unary bits", unary, [0, 1, 2, 3], sf.LDP(1.0)),
        Case("a prior", Rows(three, coins), [0, 1, 2], sf.LIP(lip), {"prior": prior}),
        Case("pairs", Rows(two, coins), [0, 1], sf.PureDP(1.0), {"neighbours": [(0, 1)]}),
        Case(
            "a normal",
            normal,
            [0, 1],
            sf.ApproxDP(1.0, delta),
            {"neighbours": [(0, 1)], "delta": delta},
        ),
    ]


def planted(coins: np.random.Generator) -> list[Case]:
    """Twelve bugs: each leaks a fifth more than it claims, or worse."""

    def laplace(value: float) -> float:  # the sensitivity is 1.2, not 1
        return value + float(coins.laplace())

    def geometric(value: int) -> int:  # the same on whole numbers
        share = 1 - math.exp(-1.2)
        return value + int(coins.geometric(share) - coins.geometric(share))

    def unary(value: int) -> list[int]:  # zeros are turned over too rarely
        bits = coins.random(8) < 1 / (math.exp(1.25) + 1)
        bits[value] = coins.random() < 0.5
        return [int(bit) for bit in bits]

    def reused(values: tuple[int, int]) -> list[float]:  # one noise for both of two counts
        noise = float(coins.laplace())
        return [count + noise for count in values]

    def twice(value: int) -> tuple[int, int]:  # asked again, it draws again
        kept = 1 / (1 + math.exp(-0.6))
        first, second = (value if coins.random() < kept else 1 - value for _ in range(2))
        return first, second

    def cut(value: float) -> float:  # noise is clipped: what lies beyond tells the value
        return value + float(np.clip(coins.laplace(), -3.0, 3.0))

    def normal(value: int) -> float:  # a deviation of 1 where 1.34 is due
        return value + float(coins.normal())

    one_bad = response(16, 1.0)
    one_bad[7] = 0.95 * one_bad[7]
    one_bad[7, 7] += 0.05  # a single value of sixteen is told too often
    coarse = np.floor(response(4, 1.0) * 8) / 8  # coins of three bits
    coarse[range(4), range(4)] += 1 - coarse.sum(axis=1)
    prior = [0.48, 0.48, 0.04]
    return [
        Case("a bit", Rows(response(2, 1.2), coins), [0, 1], sf.LDP(1.0)),
        Case("sixteen", Rows(response(16, 1.2), coins), list(range(16)), sf.LDP(1.0)),
        Case("sensitivity", laplace, [0.0, 0.6, 1.2], sf.LDP(1.0)),
        Case("whole numbers", geometric, [0, 1], sf.LDP(1.0)),
        Case("unary bits", unary, list(range(8)), sf.LDP(1.0)),
        Case("one noise", reused, [(3, 5), (4, 5), (3, 6)], sf.LDP(1.0)),
        Case("two draws", twice, [0, 1], sf.LDP(0.6)),
        Case("clipped noise", cut, [0.0, 1.0], sf.LDP(1.0)),
        Case("one value", Rows(one_bad, coins), list(range(16)), sf.LDP(1.0)),
        Case("three bits", Rows(coarse, coins), [0, 1, 2, 3], sf.LDP(1.0)),
        Case(
            "a rare value", Rows(response(3, 1.2), coins), [0, 1, 2], sf.LIP(0.6), {"prior": prior}
        ),
        Case(
            "deviation",
            normal,
            [0, 1],
            sf.ApproxDP(1.0, 0.05),
            {"neighbours": [(0, 1)], "delta": 0.05},
        ),
    ]
