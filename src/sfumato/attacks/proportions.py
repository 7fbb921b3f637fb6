"""How sure a count makes us of a probability: exact bounds."""

from __future__ import annotations

from scipy import special

from sfumato.core import checks


def least_proportion(hits: int, trials: int, failure: float) -> float:
    r"""Lower confidence bound on a probability (Clopper and Pearson).

    Whatever the probability is, the bound is above it with probability at most `failure`. It also
    bounds the largest of several probabilities, one a trial, if each trial depends on the earlier
    ones in any way.

    Examples:
        >>> round(least_proportion(80, 100, 0.05), 4)
        0.7228
        >>> least_proportion(0, 100, 0.05)
        0.0
    """
    return 0.0 if hits == 0 else float(special.betaincinv(hits, trials - hits + 1, failure))


def largest_proportion(hits: int, trials: int, failure: float) -> float:
    """Upper confidence bound on a probability.

    Examples:
        >>> round(largest_proportion(0, 100, 0.05), 4)
        0.0295
    """
    return 1.0 - least_proportion(trials - hits, trials, failure)


def interval(hits: int, trials: int, failure: float = 0.05) -> tuple[float, float]:
    """Both, each wrong with half of the probability.

    Examples:
        >>> low, high = interval(8, 10)
        >>> round(low, 3), round(high, 3)
        (0.444, 0.975)
    """
    checks.count("trials", trials)
    half = failure / 2
    return least_proportion(hits, trials, half), largest_proportion(hits, trials, half)
