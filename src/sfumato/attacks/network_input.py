"""What a network sees of a stream: rows of numbers, one a moment.

The symbol that left and the signal beside it, as anybody sees them; and, for an attacker who knows
how values depend on each other, the distribution of the value given all that left until then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.models.value_chains import ValueChain
from sfumato.stream.evidence import Evidence, check_steady, evidence
from sfumato.stream.hidden_chain import HiddenChain
from sfumato.stream.plan import Plan
from sfumato.stream.recovery_loops import posteriors
from sfumato.stream.released_tracks import ReleasedTracks

_SIGNALS = 64
"""Signals that are told apart; of a plan with more, some look alike."""


class NetworkInput(StrEnum):
    """What an attacker shows his network.

    Examples:
        >>> [str(shown) for shown in NetworkInput]
        ['values', 'chain']
    """

    VALUES = "values"
    CHAIN = "chain"


def released_rows(tracks: ReleasedTracks, plan: Plan, shown: NetworkInput) -> list[Floats]:
    """What a network sees of each released stream.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]])
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(chain.alphabet))
        >>> (event,), _ = plan.step(plan.begin("ann"), [1], sf.secure())
        >>> left = ReleasedTracks.of([event], chain.alphabet)
        >>> (rows,) = released_rows(left, plan, NetworkInput.CHAIN)
        >>> rows.shape, round(float(rows[0, 2:].max()), 3)  # what left, and what is believed
        ((1, 4), 0.697)
    """
    columns = [_marked(tracks.places, len(plan.model.alphabet))]
    if plan.sight is not None:
        signals = np.where(tracks.signals >= 0, tracks.signals % _SIGNALS, -1)
        columns.append(_marked(signals, _SIGNALS))
    if shown is NetworkInput.CHAIN:
        check_steady(plan, "to be attacked")
        columns.append(_believed(plan, evidence(tracks, plan)))
    return _parted(np.hstack(columns), tracks.starts)


def raw_rows(tracks: Mapping[str, Sequence[int]], plan: Plan) -> list[Floats]:
    """The same of true values, -1 where one is unknown; what is believed of them is themselves."""
    symbols = len(plan.model.alphabet)
    return [_marked(np.asarray(track, dtype=np.int64), symbols) for track in tracks.values()]


def _believed(plan: Plan, told: Evidence) -> Floats:
    """The distribution of each value given all outputs until then."""
    model = plan.model
    if not isinstance(model, ValueChain):
        raise InvalidParameter("model", type(model).__name__, "be a chain of values")
    chain = HiddenChain.of(model, told.span)
    found = np.empty((len(told), chain.symbols))
    posteriors(chain.arrays, told.arrays, told.starts, chain.span, 0, found)
    return found


def _marked(places: Ints, size: int) -> Floats:
    """A 1 at the place of each row; none where there is no place."""
    return np.asarray(np.vstack([np.eye(size), np.zeros(size)])[places])


def _parted(rows: Floats, starts: Ints) -> list[Floats]:
    return np.split(rows, starts[1:-1])
