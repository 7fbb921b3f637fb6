"""What an amount of leakage means for what somebody believes."""

from __future__ import annotations

from sfumato.core import checks, portable
from sfumato.core.guarantees import LDP, LIP, SIP
from sfumato.core.printed import shown_down, shown_up

BELIEF = 0.1
"""What an observer is taken to believe beforehand, where words need a number."""

_CERTAINTY = 0.99


def belief_range(guarantee: SIP | LIP | LDP, before: float = BELIEF) -> tuple[float, float]:
    r"""What somebody may believe after a release who believed something with `before`.

    Under SIP and LIP each probability moves by a factor within $e^{\pm\epsilon}$, and so does that
    of the contrary. Under LDP the odds do. With a `delta` that holds except with that probability.

    Args:
        guarantee: What was promised about the value, or the whole stream.
        before: The probability that he gave to the value being what it is.

    Examples:
        >>> low, high = belief_range(SIP(1.0))
        >>> round(low, 3), round(high, 3)
        (0.037, 0.272)
        >>> low, high = belief_range(LDP(1.0))
        >>> round(low, 3), round(high, 3)
        (0.039, 0.232)
    """
    checks.proper_fraction("before", before)
    # Beyond, nothing is promised, and the exponential would overflow.
    factor = portable.exp(min(guarantee.epsilon, 700.0))
    match guarantee:
        case LDP():
            return before / (before + (1 - before) * factor), before * factor / (
                1 - before + before * factor
            )
        case SIP() | LIP():
            low = max(before / factor, 1 - (1 - before) * factor)
            return low, min(before * factor, 1 - (1 - before) / factor)


def belief_sentence(guarantee: SIP | LIP | LDP, about: str, before: float = BELIEF) -> str:
    """The same as a sentence, rounded outward.

    Examples:
        >>> belief_sentence(SIP(0.5), "the true value")
        'who gave the true value a chance of 10 % may give it 6.06 % to 16.5 % afterwards'
        >>> belief_sentence(SIP(50.0), "the true sequence").split(": ")[0]
        'who gave the true sequence a chance of 10 % may become all but certain of it'
    """
    low, high = belief_range(guarantee, before)
    parts = shown_down(100 * low, 3), shown_up(100 * high, 3)
    them = "them" if about.endswith("values") else "it"
    if high >= _CERTAINTY:
        return (
            f"who gave {about} a chance of {100 * before:g} % may become all but certain of "
            f"{them}: a limit this high does not prevent that"
        )
    return (
        f"who gave {about} a chance of {100 * before:g} % may give {them} {parts[0]} % to "
        f"{parts[1]} % afterwards"
    )
