"""Hidden chains by brute force: every sequence of values is written out and weighed.

Likelihoods come as a list per stream: for the output that ends at value `t` a dictionary from the
tuple of the values it is about to its likelihood, or None.
"""

from itertools import pairwise, product
from typing import Any

import numpy as np


def weighed(
    initial: Any, rows: Any, told: list[dict[tuple[int, ...], float] | None], symbols: int
) -> dict[tuple[int, ...], float]:
    """Probability of each sequence together with all outputs.

    Args:
        initial: From tuples of the first values, as many as the order, to probabilities.
        rows: From contexts to the probabilities of the next value.
        told: What each output told.
        symbols: How many symbols there are.
    """
    order, length = len(next(iter(initial))), len(told)
    found = {}
    for path in product(range(symbols), repeat=max(length, order)):
        weight = initial[path[:order]]
        for moment in range(order, length):
            weight *= rows[path[moment - order : moment]][path[moment]]
        for moment, output in enumerate(told):
            if output is not None:
                reach = len(next(iter(output)))
                weight *= output[path[moment + 1 - reach : moment + 1]]
        found[path] = weight
    return found


def counts(
    initial: Any, rows: Any, streams: list[list[dict[tuple[int, ...], float] | None]], symbols: int
) -> tuple[dict[tuple[int, ...], float], dict[tuple[tuple[int, ...], int], float], float]:
    """Expected starts and moves given all outputs, and the log probability of these."""
    order = len(next(iter(initial)))
    starts = dict.fromkeys(product(range(symbols), repeat=order), 0.0)
    moves = {(context, x): 0.0 for context in starts for x in range(symbols)}
    score = 0.0
    for told in streams:
        joint = weighed(initial, rows, told, symbols)
        total = sum(joint.values())
        score += float(np.log(total))
        for path, weight in joint.items():
            starts[path[:order]] += weight / total
            for moment in range(order, len(told)):
                moves[path[moment - order : moment], path[moment]] += weight / total
    return starts, moves, score


def output_probabilities(
    initial: list[float], rows: list[list[float]], channel: list[list[float]], length: int
) -> dict[tuple[int, ...], float]:
    """Probability of every sequence of outputs of a chain of order 1 through one channel."""
    symbols, outputs = range(len(rows)), range(len(channel[0]))
    found = dict.fromkeys(product(outputs, repeat=length), 0.0)
    for path in product(symbols, repeat=length):
        weight = initial[path[0]]
        for before, after in pairwise(path):
            weight *= rows[before][after]
        for seen in found:
            likely = weight
            for value, output in zip(path, seen, strict=True):
                likely *= channel[value][output]
            found[seen] += likely
    return found


def switching(
    initials: list[list[float]],
    rows: list[list[list[float]]],
    parts: list[int],
    told: list[list[float]],
) -> dict[tuple[int, ...], float]:
    """Probability of each sequence together with all outputs, where chains of order 1 take turns.

    Args:
        initials: For each part, the distribution of a first value.
        rows: For each part, the rows of its chain.
        parts: The part that each value is of: it was reached by the chain of this part.
        told: How likely each symbol made what left, value by value.
    """
    found = {}
    for path in product(range(len(rows[0])), repeat=len(parts)):
        weight = initials[parts[0]][path[0]]
        for moment, part in enumerate(parts[1:], start=1):
            weight *= rows[part][path[moment - 1]][path[moment]]
        for value, likelihood in zip(path, told, strict=True):
            weight *= likelihood[value]
        found[path] = weight
    return found
