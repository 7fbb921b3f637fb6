r"""How far the outputs of a stream moved the adversary's belief: realised, against certified.

The certificate of a stream bounds $|\log P(x_1^T \mid y_1^T) / P(x_1^T)|$ over all tracks $x$ and
outputs $y$. For the outputs that left, the largest value over all tracks is known exactly,

$$\max\Big(\sum_t \max_x \log a_t(y_t \mid x) - \log P(y_1^T),\;
           \log P(y_1^T) - \sum_t \min_x \log a_t(y_t \mid x)\Big)$$

where $a_t$ is the channel of moment $t$ under the outputs before it: a track may be any, so each
moment is at its worst. It is a lower bound on what the release leaks.
"""

from __future__ import annotations

import numpy as np

from sfumato.attacks.lower_bound import LowerBound, Notion
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.models.library import PatternLibrary
from sfumato.models.periodic import PeriodicChain
from sfumato.stream.evidence import Evidence
from sfumato.stream.hidden_chain import HiddenChain
from sfumato.stream.recovery import Recovery
from sfumato.stream.recovery_loops import log_probabilities


def rounded_down(gain: float) -> float:
    """A gain that was computed in floating point, less what rounding may have added."""
    return max(0.0, gain - 1e-9 * (1.0 + abs(gain)))


def probability_of_outputs(chain: HiddenChain, told: Evidence) -> Floats:
    """Log probability of all that left of each stream, up to factors of its likelihoods.

    Examples:
        >>> import sfumato as sf
        >>> from sfumato.stream.evidence import of_likelihoods
        >>> even = HiddenChain.of(sf.MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]]))
        >>> told = of_likelihoods([[(1, np.array([0.9, 0.1]))], [(1, None)]], 2)
        >>> np.exp(probability_of_outputs(even, told))
        array([0.5, 1. ])
    """
    found = np.empty(len(told.starts) - 1)
    log_probabilities(chain.arrays, told.arrays, told.starts, chain.span, found)
    return found


def realised_gains(recovery: Recovery) -> tuple[LowerBound, ...]:
    """What each released stream told about its whole track, at least.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(chain.alphabet))
        >>> (event,), _ = plan.step(plan.begin("ann"), [1], sf.secure())
        >>> (gain,) = realised_gains(sf.stream.recover({"ann": [event]}, plan))
        >>> gain.exceeds(event.sip), gain.exceeds(sf.SIP(0.49))
        (False, True)
    """
    if recovery.plan.memory > 1:
        rule = "be 1: outputs that look at the same value are not at their worst together"
        raise InvalidParameter("memory", recovery.plan.memory, rule)
    told, symbols = recovery.evidence, len(recovery.labels)
    most, least = np.zeros(len(told)), np.zeros(len(told))
    for place in np.flatnonzero(told.begins >= 0).tolist():
        begin = int(told.begins[place])
        chance = told.told[begin : begin + symbols ** int(told.reaches[place])]
        with np.errstate(divide="ignore"):
            most[place], least[place] = np.log(chance.max()), np.log(chance.min())
    bounds = []
    for stream, whole in enumerate(probability_of_outputs(recovery.chain, told).tolist()):
        own = slice(int(told.starts[stream]), int(told.starts[stream + 1]))
        gain = max(float(most[own].sum()) - whole, whole - float(least[own].sum()))
        tried = f"all tracks of {own.stop - own.start} values, given what left"
        bounds.append(LowerBound(rounded_down(gain), Notion.SIP, tried=tried))
    return tuple(bounds)


def value_gains(recovery: Recovery) -> Floats:
    r"""The largest $|\log P(x_t \mid y_1^T) / P(x_t)|$ over all moments and symbols of each stream.

    What is certified for the whole track bounds this, too: a value is a function of it.
    """
    told = recovery.evidence
    beforehand = prior_marginals(recovery)
    gains = np.zeros(len(told.starts) - 1)
    moments = recovery.released.moments
    for first, stop, found in recovery.blocks():
        with np.errstate(divide="ignore"):
            moved = np.abs(np.log(found / beforehand[moments[first:stop]])).max(axis=1)
        stream = np.searchsorted(told.starts, np.arange(first, stop), side="right") - 1
        np.maximum.at(gains, stream, moved)
    return np.array([rounded_down(gain) for gain in gains.tolist()])


def prior_marginals(recovery: Recovery) -> Floats:
    """What is known of each moment before anything left: one row each, up to the longest stream."""
    longest = int(np.diff(recovery.evidence.starts).max(initial=0))
    rows, model = np.empty((longest, len(recovery.labels))), recovery.plan.model
    assert not isinstance(model, PatternLibrary | PeriodicChain)  # of which there is no recovery
    belief = model.first()
    for moment in range(longest):
        rows[moment] = belief.marginal / belief.marginal.sum()
        belief = model.following(belief)
    return rows
