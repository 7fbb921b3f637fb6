"""The certificate of a release: what it promises, what it costs, and what silence would cost.

Every job has one, with its own details beside the common part, and every command writes it the
same way: `certificate_document` for machines, `certificate_lines` for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LIP, SIP, Guarantee
from sfumato.core.printed import shown_down, shown_up
from sfumato.core.purpose import Purpose

# What the arithmetic of two equal losses may leave between them.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What a release promises and costs; a job adds its details in a subclass.

    Attributes:
        guarantees: What is promised: upper bounds, exact or rounded up.
        scopes: Of whom or against whom each holds, in words: `under the prior`.
        loss: What cost and silence are measured by, with its unit: `euclidean (km)`.
        cost: Expected loss of a value; None where there is no such number.
        silence: The same if one fixed value were released, whatever is true.
        gain: Part of that loss which the release saves, rounded down to two digits; negative if a
            constant were better. Follows from both unless it is given: say of losses that leave
            rounded, of which it could come out above the truth.
        kept: Columns that leave beside the release and are known to the adversary.
        independent: Columns that leave beside it and were declared to tell nothing of it.
        purpose: Whether data left, or coins can be guessed.
        remarks: What a careful user should know.

    Examples:
        >>> from sfumato.core.guarantees import LDP
        >>> told = Certificate(
        ...     guarantees=(LIP(0.5), LDP(0.912345678)),
        ...     scopes=("under the prior", "whatever the prior"),
        ...     loss="absolute",
        ...     cost=1.5,
        ...     silence=2.0,
        ... )
        >>> for line in certificate_lines(told):
        ...     print(line)
        leakage: LIP(0.5) under the prior, LDP(0.912346) whatever the prior
        expected absolute loss 1.5; saying nothing 2
        saves 25 % of what saying nothing loses, if the prior fits
        >>> certificate_document(told)["guarantees"][0]
        {'notion': 'LIP', 'epsilon': 0.5, 'delta': 0.0, 'scope': 'under the prior'}
    """

    guarantees: tuple[Guarantee, ...]
    scopes: tuple[str, ...]
    loss: str = ""
    cost: float | None = None
    silence: float | None = None
    gain: float | None = None
    kept: tuple[str, ...] = ()
    independent: tuple[str, ...] = ()
    purpose: Purpose = Purpose.RELEASE
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.scopes) != len(self.guarantees):
            rule = f"be as many as guarantees, {len(self.guarantees)}"
            raise InvalidParameter("scopes", len(self.scopes), rule)
        if self.gain is None:
            object.__setattr__(self, "gain", saved(self.cost, self.silence))


def saved(cost: float | None, silence: float | None) -> float | None:
    """The part of what silence loses that a release saves, rounded down to two digits.

    Examples:
        >>> saved(1.0, 3.0), saved(4.0, 3.0), saved(1.0, 0.0)
        (0.66, -0.34, None)
    """
    if cost is None or not silence:
        return None
    gain = 1 - cost / silence
    return 0.0 if abs(gain) < _ROUNDING else float(shown_down(gain, 2))


def certificate_document(certificate: Certificate) -> dict[str, Any]:
    """The certificate as a JSON object: the common part first, then the details of the job."""
    document = asdict(certificate)
    pairs = zip(certificate.guarantees, certificate.scopes, strict=True)
    # A scope without its guarantee means nothing: both become one entry.
    document["guarantees"] = [
        {"notion": type(one).__name__, **asdict(one), "scope": scope} for one, scope in pairs
    ]
    del document["scopes"]
    return document


def certificate_lines(certificate: Certificate) -> list[str]:
    """The promise, the cost and what it saves, in sentences.

    Remarks follow one by one, and a simulation is called one where its coins are chosen.
    """
    pairs = zip(certificate.guarantees, certificate.scopes, strict=True)
    leakages = ", ".join(f"{one} {scope}" for one, scope in pairs)
    lines = [f"leakage: {leakages}"] if leakages else []
    if certificate.cost is not None:
        silent = (
            "" if certificate.silence is None else f"; saying nothing {certificate.silence:.6g}"
        )
        share = " (the share of wrong values)" if certificate.loss == "hamming" else ""
        lines.append(
            f"expected {certificate.loss} loss {shown_up(certificate.cost)}{share}{silent}"
        )
    if certificate.gain is not None:
        percent = round(100 * certificate.gain, 9)  # of two digits already, rounded down
        lines.append(f"saves {percent:g} % of what saying nothing loses{_condition(certificate)}")
        if certificate.gain < 0:
            lines.append("WORSE THAN SAYING NOTHING: one fixed value would be nearer, and leak 0")
    return lines


def _condition(certificate: Certificate) -> str:
    """Costs under a prior or a model are those of people who follow it."""
    fits: Mapping[type, str] = {LIP: ", if the prior fits", SIP: ", if the model fits"}
    return next((fits[type(one)] for one in certificate.guarantees if type(one) in fits), "")
