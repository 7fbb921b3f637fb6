"""What all releases that answered a stream told of it together.

A release charges its own budget and knows nothing of the others, so its figures alone are not what
the stream leaked. Model-free charges add up; those under the model do not, and are put together by
the rule of `sfumato audit` for several releases (`stream.audit_total`). That rule is for releases
under one model: of a release under another model, its model-free charge is all that is known.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from sfumato.core.printed import shown_up
from sfumato.service.moment_readouts import NATS, promise_of
from sfumato.service.readable_release import ReadableRelease, Releases, StreamRules
from sfumato.service.stream_documents import OtherRelease, Together
from sfumato.store.protocol import Position
from sfumato.stream.audit_total import total

PARTIAL = "releases that this access key is not for are not counted here, whether or not there are"
"""Said to every key that is limited, so that it tells nothing; a sum of some is no bound of all."""


class Beside(msgspec.Struct, frozen=True):
    """What is said of a stream beside the release that was asked.

    Attributes:
        others: The other releases that answered it.
        unread: Names of releases that are not open: whether they did is not known.
        together: Bounds for all that are known; None if it is alone, or none is known.
        words: The same as sentences.
    """

    others: list[OtherRelease]
    unread: list[str]
    together: Together | None
    words: list[str]


def beside(
    releases: Releases,
    release: ReadableRelease,
    stream: str,
    sip: float,
    ldp: float,
    within: Collection[str] | None = None,
) -> Beside:
    """What other releases told of a stream, and all of them together with this one's charges.

    Args:
        releases: Where the others are found.
        release: The one that was asked.
        stream: The stream.
        sip: What it was charged there under the model.
        ldp: And whatever the model.
        within: Names of the releases that whoever asks may know of; None for all.
    """
    found = [
        (other, position)
        for other in releases.others(release.name)
        if within is None or other.name in within
        if (position := _standing(other, stream)) is not None and position.sequence
    ]
    unread = [name for name in releases.unread() if within is None or name in within]
    others = [_line(other, position) for other, position in found]
    together, asked = None, [release, *(other for other, _ in found)]
    if found and all(isinstance(each.rules, StreamRules) for each in asked):
        parts = [(sip, ldp), *(_part(release, other, position) for other, position in found)]
        together = Together(len(parts), *total(parts))
    words = _words(others, unread, together, "all" if within is None else "the")
    return Beside(others, unread, together, words if within is None else [*words, PARTIAL])


def _standing(release: ReadableRelease, stream: str) -> Position | None:
    with release.ledger() as ledger:
        found = ledger.standing_of([stream])
    return found[0] if found else None


def _line(release: ReadableRelease, position: Position) -> OtherRelease:
    # Charges of a series are in units of its noise: what it promises is told in their place.
    promise = promise_of(release.rules)
    told = (position.leakage, position.model_free)
    sip, ldp = told if promise is None else (promise.epsilon, promise.epsilon)
    return OtherRelease(
        release=release.name,
        job=release.job,
        unit=NATS,
        answers=position.sequence,
        sip=sip,
        ldp=ldp,
    )


def _part(
    asked: ReadableRelease, other: ReadableRelease, position: Position
) -> tuple[float, float]:
    """Charges of another release, for whoever believes in the model of the one that was asked."""
    same = asked.model_digest == other.model_digest
    return (position.leakage if same else position.model_free), position.model_free


def _words(
    others: Sequence[OtherRelease], unread: Sequence[str], together: Together | None, which: str
) -> list[str]:
    said = []
    if together is not None:
        said = [
            f"{which} {together.releases} releases of this stream together leaked at most "
            f"{shown_up(together.sip)} nats, if values move as the model says",
            f"and at most {shown_up(together.ldp)} nats however they move",
        ]
    elif others:
        said = [f"{len(others)} more of other jobs answered this stream; no sum of them is known"]
    if unread:
        said.append(f"{len(unread)} more releases are not open, and are not counted here")
    return said
