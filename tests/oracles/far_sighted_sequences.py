"""The joint table of all values and all signals of a far-sighted plan, in fractions."""

import itertools
from fractions import Fraction

import mpmath
import numpy as np

from sfumato import MarkovChain, Plan

WHOLE = 2**62


def assert_charges_cover_every_sequence(plan: Plan, steps: int) -> None:
    """What every sequence of signals tells about every sequence of values is at most its charges.

    Weights are the integers that are sampled; the chances of values are those of the chain.
    """
    chain = plan.model
    assert isinstance(chain, MarkovChain) and chain.order == 1
    size, labels = chain.size, chain.alphabet.labels
    moves, first = (
        [[Fraction(float(p)) for p in row] for row in np.asarray(table)]
        for table in (chain.transition(), chain.initial[None, :])
    )
    paths = list(itertools.product(range(size), repeat=steps))
    chances = {path: first[0][path[0]] for path in paths}
    for path in paths:
        for here, after in itertools.pairwise(path):
            chances[path] *= moves[here][after]
    total = sum(chances.values())
    released = 0
    front = [(plan.begin("s"), dict.fromkeys(paths, Fraction(1)), 0.0, 0.0)]
    for moment in range(steps):
        following = []
        for state, told, sip, ldp in front:
            ready = plan.prepare(state)
            assert ready is not None
            channel = ready.design.channel
            for signal in channel.outputs.tolist():
                label = labels[int(ready.patterns[signal, 0])]
                (event,), later = plan.observe(state, [label], signal=signal)
                assert event.signal == signal
                weights = [int(w) for w in channel.weights[:, channel.column(signal)]]
                given = {path: told[path] * weights[path[moment]] / WHOLE for path in paths}
                charged = (sip + event.sip.epsilon, ldp + event.ldp.epsilon)
                following.append((later, given, *charged))
                mean = sum(chances[path] * given[path] for path in paths) / total
                ratios = [given[path] / mean for path in paths]
                most = mpmath.log(mpmath.mpf(1) * max(max(ratios), 1 / min(ratios)))
                assert most <= charged[0] + 1e-12
                assert mpmath.log(mpmath.mpf(1) * (max(ratios) / min(ratios))) <= charged[1] + 1e-12
                released += len(channel.outputs) > 1
        front = following
    assert released > 4  # something was told
