"""A mixture of chains from recorded streams, and what it rests on, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.progress import Progress
from sfumato.models.cluster_choice import TRIED, ClusterChoice, choose_clusters
from sfumato.models.cluster_fitting import FittedClusters, fit_clusters
from sfumato.models.clustered_chain import ClusteredChain
from sfumato.models.encoding import Encoding
from sfumato.models.stream_counts import StreamCounts
from sfumato.stream.fit_report import FitReport, chain_report

AUTO = "auto"
_FEW = 10.0
"""Streams under which a cluster is said to tell of single ones."""
_NAMED = 3
"""Symbols that are named of each cluster."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """What sets one cluster apart.

    Attributes:
        share: How common it is.
        streams: How many streams of the history are expected to be of it.
        stays: Share of the moves that lead nowhere else.
        often: Symbols that it shows more often than others do, with their share among its values
            and among all.
    """

    share: float
    streams: float
    stays: float
    often: tuple[tuple[str, float, float], ...]


@dataclass(frozen=True, slots=True)
class ClusteredFitReport(FitReport):
    """What a mixture rests on; the rest is that of the one chain of all streams.

    Attributes:
        clusters: The clusters, the most common one first.
        gain: Nats a value by which mixtures fitted to other streams predict a stream better than
            one chain fitted to them.
        gain_error: Its standard error, over streams.
        tried: The same gain of each number of clusters that was tried.
    """

    clusters: tuple[Cluster, ...] = ()
    gain: float = 0.0
    gain_error: float = 0.0
    tried: tuple[tuple[int, float], ...] = ()


def fit_mixture(
    encoding: Encoding,
    paths: Sequence[Ints],
    clusters: int | str,
    smoothing: tuple[float, float],
    progress: Progress | None = None,
) -> tuple[ClusteredChain, ClusteredFitReport]:
    """Fit a mixture to streams, and say what it is worth.

    Args:
        encoding: How raw values became symbols.
        paths: Places of the symbols of each stream.
        clusters: How many chains, or "auto": as many as predict streams held out.
        smoothing: Pseudo-counts per follower, and the least probability of any transition.
        progress: Called with the number of fits done so far.
    """
    pseudo, floor = smoothing
    tried = TRIED if clusters == AUTO else (1, cluster_number(clusters))
    choice = choose_clusters(
        encoding.alphabet, paths, tried, smoothing=pseudo, floor=floor, progress=progress
    )
    number = choice.clusters if clusters == AUTO else max(tried)
    if number == 1:
        rule = "not be given: no mixture predicts streams held out better than one chain does"
        raise InvalidParameter("--clusters", clusters, rule)
    found = fit_clusters(encoding.alphabet, paths, number, smoothing=pseudo, floor=floor)
    report = _report(found, paths, choice)
    if clusters == AUTO and number == max(TRIED):
        most = f"{number} clusters are the most that auto tries: more may predict better"
        report = replace(report, warnings=(*report.warnings, f"{most} (--clusters {2 * number})"))
    return found.chain, report


def cluster_number(clusters: int | str) -> int:
    """How many clusters a word asks for, if it is a number."""
    try:
        return checks.count("--clusters", int(clusters), at_least=2)
    except ValueError:
        rule = "be a number from 2 on, or auto"
        raise InvalidParameter("--clusters", clusters, rule) from None


def _report(
    found: FittedClusters, paths: Sequence[Ints], choice: ClusterChoice
) -> ClusteredFitReport:
    told = StreamCounts.of(paths, found.chain.size)
    seen = np.bincount(
        np.repeat(told.pairs // told.size, np.bincount(told.places, told.counts).astype(np.int64)),
        minlength=told.size,
    ).astype(np.float64)
    common = chain_report(found.common, paths, seen)
    number = len(found.chain.chains)
    gain, error = choice.gain(number)
    clusters = tuple(_cluster(found, told, place) for place in range(number))
    own = {field.name: getattr(common, field.name) for field in fields(FitReport)}
    own["warnings"] = (*common.warnings, *_warnings(clusters, gain, error))
    tried = tuple((other, choice.gain(other)[0]) for other in choice.scores)
    return ClusteredFitReport(**own, clusters=clusters, gain=gain, gain_error=error, tried=tried)


def _cluster(found: FittedClusters, told: StreamCounts, place: int) -> Cluster:
    parts = found.parts[:, place]
    own, everybody = _shown(told, parts), _shown(told, np.ones(told.streams))
    stays = told.stays * np.maximum(told.lengths - 1, 0)
    moves = float((parts * np.maximum(told.lengths - 1, 0)).sum())
    labels = found.chain.alphabet.labels
    often = np.argsort(everybody - own, kind="stable")[:_NAMED]
    return Cluster(
        share=float(found.chain.shares[place]),
        streams=float(parts.sum()),
        stays=float((parts * stays).sum()) / moves if moves > 0 else 0.0,
        often=tuple(
            (str(labels[symbol]), float(own[symbol]), float(everybody[symbol]))
            for symbol in often.tolist()
            if own[symbol] > everybody[symbol]
        ),
    )


def _shown(told: StreamCounts, parts: Floats) -> Floats:
    """Share of each symbol among the values of streams in parts."""
    shown = np.asarray((told.symbols * parts[:, None]).sum(axis=0)).ravel()
    return shown / max(float(shown.sum()), np.finfo(np.float64).tiny)


def _warnings(clusters: Sequence[Cluster], gain: float, error: float) -> list[str]:
    warnings = []
    if not gain > 2 * error:
        warnings.append(
            "the mixture predicts streams held out no better than one chain does, by two standard "
            "errors: people may not differ, or not enough of them were seen"
        )
    few = min(cluster.streams for cluster in clusters)
    if few < _FEW:
        warnings.append(
            f"a cluster rests on {few:.1f} streams: whoever sees the model learns much about them; "
            "take fewer clusters, or more people (--private makes no mixtures)"
        )
    return warnings


def cluster_words(report: ClusteredFitReport) -> list[str]:
    """What sets the clusters apart, and what they bring, one sentence each.

    Examples:
        >>> cluster = Cluster(0.3, 36.2, 0.91, (("factory", 0.31, 0.12),))
        >>> told = ClusteredFitReport(120, 40, 2, 39, (), 0.1, 0.1, (), clusters=(cluster,))
        >>> cluster_words(told)[0]
        'cluster 1: 30 % of the streams (36.2); 91 % of its values stay; factory 31 % (all: 12 %)'
    """
    lines = []
    for place, cluster in enumerate(report.clusters):
        often = ", ".join(
            f"{name} {100 * own:.0f} % (all: {100 * everybody:.0f} %)"
            for name, own, everybody in cluster.often
        )
        lines.append(
            f"cluster {place + 1}: {100 * cluster.share:.0f} % of the streams "
            f"({cluster.streams:.1f}); {100 * cluster.stays:.0f} % of its values stay; {often}"
        )
    lines.append(
        f"a value of streams held out is predicted better by {report.gain:.4f} nats than by one "
        f"chain (standard error {report.gain_error:.4f})"
    )
    return lines
