"""Every figure and table of the five papers: what it shows, in our words, and what kind it is."""

from __future__ import annotations

import re
from dataclasses import dataclass

PAPERS = {
    "SIP": "Online Context-aware Data Release with Sequence Information Privacy",
    "RTR": "Differentially Private Real-Time Release of Sequential Data",
    "LIP": "Context-Aware Local Information Privacy",
    "TPL": "Quantifying Differential Privacy in Continuous Data Release under Temporal "
    "Correlations",
    "MDDP": "Privacy-Preserving Correlated Data Publication: Privacy Analysis and Optimal Noise "
    "Design",
}
"""Titles, by the keys under which the documents cite the papers."""


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """A figure or a table of a paper.

    Attributes:
        key: Paper and number, such as `"SIP 6"` or `"SIP Table I"`.
        shows: What is to be seen.
        illustration: Why there is nothing to compute; empty for a result.
    """

    key: str
    shows: str
    illustration: str = ""

    @property
    def paper(self) -> str:
        """Key of the paper."""
        return self.key.split()[0]


_DRAWING = "a drawing of how the parts stand to each other"
_SYMBOLS = "a list of symbols"

FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure("SIP 1", "release value by value, and in batches", _DRAWING),
    PaperFigure(
        "SIP 2", "a response whose chances depend on the prior and on what was released", _DRAWING
    ),
    PaperFigure("SIP 3", "two tied bits, even prior: noise and least leakage against correlation"),
    PaperFigure("SIP 4", "the same under a skewed prior"),
    PaperFigure("SIP 5", "binary chains: loss against leakage, value by value and in batches"),
    PaperFigure("SIP 6", "Kosarak clicks: loss against leakage, and rivals"),
    PaperFigure("SIP 7", "one gaze track: raw, under LDP, value by value, in batches"),
    PaperFigure("SIP 8", "who looked? Rate of re-identification against the budget"),
    PaperFigure("SIP 9", "the same releases: mean distance from the true gaze"),
    PaperFigure("SIP Table I", "notions compared: online, composition, correlation, complexity"),
    PaperFigure("RTR 1", "noise on values, and noise on a mixture with an estimate", _DRAWING),
    PaperFigure("RTR 2", "two steps of the method", _DRAWING),
    PaperFigure("RTR 3", "flow chart of the method", _DRAWING),
    PaperFigure("RTR 4", "traffic: error against epsilon, and against noise at equal privacy"),
    PaperFigure("RTR 5", "traffic: the Fourier method with a delay"),
    PaperFigure("RTR 6", "traffic: released series of ten runs"),
    PaperFigure("RTR 7", "BA and BD beside the method"),
    PaperFigure("RTR 8", "traffic: the binary tree beside the method"),
    PaperFigure("RTR 9", "synthetic series: error against weight, for many correlations"),
    PaperFigure("RTR 10", "parameters learnt from the noisy series"),
    PaperFigure("RTR 11", "traffic: weights that fall geometrically"),
    PaperFigure("RTR 12", "paths of a drifting series"),
    PaperFigure("RTR 13", "error against drift"),
    PaperFigure("RTR 14", "a drive cycle at two levels of privacy"),
    PaperFigure("RTR 15", "bike rentals: error against epsilon, and at equal privacy"),
    PaperFigure("RTR 16", "bike rentals by the hour: released series at equal epsilon"),
    PaperFigure("RTR 17", "bike rentals by the hour: released series at equal noise"),
    PaperFigure("RTR 18", "bike rentals by the day: released series at equal epsilon"),
    PaperFigure("RTR 19", "bike rentals by the day: released series at equal noise"),
    PaperFigure("LIP 1", "people who privatise by their own priors", _DRAWING),
    PaperFigure("LIP 2", "what a leakage under a prior implies without one: exact and bound"),
    PaperFigure("LIP 3", "which notion implies which", "a map of the theorems"),
    PaperFigure("LIP 4", "four notions on a flipped bit"),
    PaperFigure("LIP 5", "many releases of one value, under sets of priors, of several values"),
    PaperFigure("LIP 6", "a prior estimated from samples: bounds, and how far they are off"),
    PaperFigure("LIP 7", "the sampling mechanism: error against epsilon and delta"),
    PaperFigure("LIP 8", "Gaussian noise: delta under LIP and under LDP"),
    PaperFigure("LIP 9", "Gaussian noise that depends on the value"),
    PaperFigure("LIP 10", "Laplace noise: scales without a prior, with one, value by value"),
    PaperFigure("LIP 11", "grades of students: local, global and bounded priors, LDP"),
    PaperFigure("LIP 12", "salaries: sampling and Gaussian noise, three deltas"),
    PaperFigure("LIP Table I", "symbols of the paper", _SYMBOLS),
    PaperFigure("TPL 1", "counts released over time, and people who move", _DRAWING),
    PaperFigure("TPL 2", "two matrices of moves, forward and backward", "data of an example"),
    PaperFigure("TPL 3", "backward, forward and temporal leakage at each moment"),
    PaperFigure("TPL 4", "the loss function of a 3 x 3 chain, from pairs of rows"),
    PaperFigure("TPL 5", "backward leakage over time: with and without a supremum"),
    PaperFigure("TPL 6", "run time of the algorithms against size and leakage"),
    PaperFigure("TPL 7", "backward leakage for chains of different strength"),
    PaperFigure("TPL 8", "two ways to allocate budgets to moments"),
    PaperFigure("TPL 9", "noise of the allocations against length and strength"),
    PaperFigure("TPL Table 1", "symbols of the paper", _SYMBOLS),
    PaperFigure(
        "TPL Table 2", "what a promise per moment is worth to a window and to a user, with a chain"
    ),
    PaperFigure("MDDP 1", "an attacker who knows the joint distribution", _DRAWING),
    PaperFigure("MDDP 2", "chance of disclosure: equation, joint density, kinds of noise"),
    PaperFigure("MDDP Table I", "symbols of the paper", _SYMBOLS),
)
"""In the order of the papers."""

BY_KEY = {figure.key: figure for figure in FIGURES}

_PLACE = re.compile(r"(?P<paper>[A-Z]+) (?P<table>Table )?(?P<number>[IVX]+\b|[0-9]+)(?P<rest>.*)")
_MORE = re.compile(r"(?P<join>-|, | and )(?P<number>[0-9]+)\b(?P<rest>.*)")


def figure_keys(place: str) -> tuple[list[str], str]:
    """The figures that a claim is about, and the panel.

    Examples:
        >>> figure_keys("LIP 5a"), figure_keys("SIP Table I"), figure_keys("RTR 4, left")
        ((['LIP 5'], 'a'), (['SIP Table I'], ''), (['RTR 4'], 'left'))
        >>> figure_keys("SIP 3, 4"), figure_keys("RTR 16-18")
        ((['SIP 3', 'SIP 4'], ''), (['RTR 16', 'RTR 17', 'RTR 18'], ''))
    """
    found = _PLACE.match(place)
    if found is None:
        return [], place
    paper, rest = found["paper"], found["rest"]
    numbers = [found["number"]]
    while not found["table"] and (more := _MORE.match(rest)):
        last = int(more["number"])
        first = int(numbers[-1]) + 1 if more["join"] == "-" else last
        numbers += [str(number) for number in range(first, last + 1)]
        rest = more["rest"]
    return [f"{paper} {found['table'] or ''}{number}" for number in numbers], rest.strip(" ,()")
