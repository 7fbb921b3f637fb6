"""Learn that people differ from what left: a mixture of chains from plan and outputs alone.

As `learning` does for one chain. Whoever receives a release can do the same: it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core import checks
from sfumato.core.alphabet import Alphabet
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Event
from sfumato.core.progress import Progress
from sfumato.models.cluster_choice import TRIED, ClusterChoice
from sfumato.models.cluster_learning import cluster_scores, learn_clusters
from sfumato.models.clustered_chain import ClusteredChain
from sfumato.models.emissions import Emissions
from sfumato.models.learning import FLOOR, SMOOTHING
from sfumato.models.markov import MarkovChain
from sfumato.stream.cluster_report import AUTO, cluster_number
from sfumato.stream.learning import emissions_of
from sfumato.stream.plan import Plan
from sfumato.stream.released_tracks import ReleasedTracks

_EVERY = 3
"""Every so many streams are held out."""
_LEAST = 12
"""Streams that there must be: fewer show no kinds of people."""


@dataclass(frozen=True, slots=True, eq=False)
class MixtureLearning:
    """A mixture that was learnt from what left, and what it is worth.

    Attributes:
        chain: The mixture, with full support.
        streams: How many streams there were.
        values: How many values they had.
        telling: Of how many of them an output told anything.
        log_likelihood: Log probability of the outputs under it, up to a constant.
        common_log_likelihood: The same under the one chain that was learnt from all streams.
        gain: Nats a value by which a mixture learnt from some streams predicts the outputs of
            others better than one chain learnt from them.
        gain_error: Its standard error.
        converged: Whether learning had settled.
    """

    chain: ClusteredChain
    streams: int
    values: int
    telling: int
    log_likelihood: float
    common_log_likelihood: float
    gain: float
    gain_error: float
    converged: bool

    @property
    def people_differ(self) -> bool:
        """Whether it predicts better than one chain, by two standard errors."""
        return self.gain > 2 * self.gain_error


def learn_mixture(
    released: ReleasedTracks | Mapping[str, Sequence[Event]],
    plan: Plan,
    clusters: int | str,
    *,
    smoothing: float = SMOOTHING,
    floor: float = FLOOR,
    progress: Progress | None = None,
) -> MixtureLearning:
    """Learn a mixture of chains from released streams, given the public plan.

    Args:
        released: What left: from `read_tracks`, or the events of each stream from its first moment
            on.
        plan: The rule of the release, value by value.
        clusters: How many chains, or "auto": as many as predict the outputs of streams held out.
        smoothing: Pseudo-counts of each value after each.
        floor: Least probability of any transition.
        progress: Called with the number of passes over the outputs so far.

    Raises:
        InvalidParameter: If the plan could not have released this, or no mixture can be learnt.

    Examples:
        >>> import sfumato as sf
        >>> nothing = sf.MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]])
        >>> loss, plain = sf.loss.hamming(nothing.alphabet), sf.Method.RANDOMIZED_RESPONSE
        >>> plan = sf.Plan(nothing, sf.PerStep(sf.SIP(4.0)), loss, method=plain)
        >>> left = {}
        >>> for name in range(12):  # some move at each moment, some now and then
        ...     state, left[f"u{name}"] = plan.begin(f"u{name}"), []
        ...     for moment in range(30):
        ...         value = moment // (1 + name % 2 * 9) % 2
        ...         (event,), state = plan.step(state, [value], sf.secure())
        ...         left[f"u{name}"].append(event)
        >>> found = learn_mixture(left, plan, 2)
        >>> found.streams, found.values
        (12, 360)
    """
    model = plan.model
    if not isinstance(model, MarkovChain | ClusteredChain):
        raise InvalidParameter("model", type(model).__name__, "be a chain or a mixture of chains")
    tracks = released
    if not isinstance(tracks, ReleasedTracks):
        tracks = ReleasedTracks.of(tracks, model.alphabet)
    emissions = emissions_of(tracks, plan)
    if not emissions.telling:
        raise InvalidParameter("released", "constants", "tell something about the values")
    asked = (emissions, model.alphabet)
    choice = _held_out(*asked, clusters, smoothing, floor)
    number = choice.clusters if clusters == AUTO else max(choice.scores)
    if number == 1:
        rule = "not be given: no mixture predicts the outputs of streams held out better than one "
        raise InvalidParameter("--clusters", clusters, rule + "chain does")
    found = learn_clusters(*asked, number, smoothing=smoothing, floor=floor, progress=progress)
    gain, error = choice.gain(number)
    return MixtureLearning(
        chain=found.chain,
        streams=emissions.streams,
        values=len(emissions),
        telling=emissions.telling,
        log_likelihood=found.log_likelihood,
        common_log_likelihood=found.common.log_likelihood,
        gain=gain,
        gain_error=error,
        converged=found.converged,
    )


def _held_out(
    emissions: Emissions, alphabet: Alphabet, clusters: int | str, smoothing: float, floor: float
) -> ClusterChoice:
    """Learn from two thirds of the streams, and look at the other third."""
    tried = TRIED if clusters == AUTO else (1, cluster_number(clusters))
    checks.count("streams", emissions.streams, at_least=_LEAST)
    places = np.arange(emissions.streams)
    apart = places % _EVERY == _EVERY - 1
    seen, other = emissions.of_streams(places[~apart]), emissions.of_streams(places[apart])
    choice = ClusterChoice({}, np.diff(other.starts).astype(np.float64))
    for number in tried:
        found = learn_clusters(seen, alphabet, number, smoothing=smoothing, floor=floor)
        chain = found.common.chain if number == 1 else found.chain
        choice.scores[number] = cluster_scores(other, chain)
        if number > 1 and choice.clusters != number:
            break
    return choice
