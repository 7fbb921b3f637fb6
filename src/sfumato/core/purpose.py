"""What a release is for, and what leaves when it cannot go as planned."""

from __future__ import annotations

from enum import StrEnum


class Fallback(StrEnum):
    """What leaves when a step cannot be released as planned.

    `SUPPRESS` and `REPEAT` are visible to the receiver. That is harmless when the budget is gone,
    which everybody can tell; for a value outside the alphabet it tells that the value was
    outside. `SUBSTITUTE` hides that too: a symbol drawn from the adversary's own belief goes
    through the channel instead.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> once = sf.Horizon(sf.SIP(0.5), 1)
        >>> loss, silent = sf.loss.hamming(chain.alphabet), sf.Fallback.SUPPRESS
        >>> release = sf.InstantRelease(chain, budget=once, loss=loss, on_exhausted=silent)
        >>> release(0) in chain.alphabet.labels, release(0)
        (True, None)
    """

    REFUSE = "refuse"
    SUPPRESS = "suppress"
    REPEAT = "repeat"
    SUBSTITUTE = "substitute"


class Purpose(StrEnum):
    """Whether a person's data leaves, or a simulation is run with coins that can be guessed.

    Examples:
        >>> [str(purpose) for purpose in Purpose]
        ['release', 'simulation']
    """

    RELEASE = "release"
    SIMULATION = "simulation"
