"""The joint table of all values and all signals of a far-sighted plan, in fractions."""

import itertools
from collections.abc import Sequence
from fractions import Fraction

import mpmath

from sfumato import MarkovChain, Plan

WHOLE = 2**62


def chances_of(chain: MarkovChain, length: int) -> dict[tuple[int, ...], Fraction]:
    """Every path with its probability; those of the floats of the model."""
    moves = [[Fraction(float(p)) for p in row] for row in chain.transition()]
    chances = {}
    for path in itertools.product(range(chain.size), repeat=max(length, chain.order)):
        chance = Fraction(float(chain.initial[path[: chain.order]]))
        for end in range(chain.order, len(path)):
            context = 0
            for value in path[end - chain.order : end]:
                context = context * chain.size + value
            chance *= moves[context][path[end]]
        chances[path] = chance
    return chances


def assert_charges_cover_every_sequence(plan: Plan, lengths: int | Sequence[int]) -> None:
    """What every sequence of signals tells about every sequence of values is at most its charges.

    Weights are the integers that are sampled; the chances of values are those of the chain.

    Args:
        plan: The rule.
        lengths: Values of each batch, or the number of single values.
    """
    chain, batches = plan.model, [1] * lengths if isinstance(lengths, int) else lengths
    assert isinstance(chain, MarkovChain)
    chances = chances_of(chain, sum(batches))
    total, released, moment = sum(chances.values()), 0, 0
    front = [(plan.begin("s"), dict.fromkeys(chances, Fraction(1)), 0.0, 0.0)]
    for length in batches:
        following = []
        for state, told, sip, ldp in front:
            ready = plan.prepare(state, length)
            assert ready is not None
            channel = ready.design.channel
            cells = {path: ready.partition.cell(path[moment : moment + length]) for path in chances}
            for signal in channel.outputs.tolist():
                labels = [chain.alphabet.labels[int(z)] for z in ready.patterns[signal]]
                named = signal if plan.sight else None
                events, later = plan.observe(state, labels, signal=named)
                assert {event.signal for event in events} == {named}
                weights = [int(w) for w in channel.weights[:, channel.column(signal)]]
                given = {path: told[path] * weights[cells[path]] / WHOLE for path in chances}
                charged = (sip + events[-1].sip.epsilon, ldp + events[-1].ldp.epsilon)
                following.append((later, given, *charged))
                mean = sum(chances[path] * given[path] for path in chances) / total
                ratios = [given[path] / mean for path in chances]
                most = mpmath.log(mpmath.mpf(1) * max(max(ratios), 1 / min(ratios)))
                assert most <= charged[0] + 1e-12
                assert mpmath.log(mpmath.mpf(1) * (max(ratios) / min(ratios))) <= charged[1] + 1e-12
                released += len(channel.outputs) > 1
        front, moment = following, moment + length
    assert released > 4  # something was told
