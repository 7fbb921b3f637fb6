"""Where coins are: everything that shapes the answer they are for, as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from sfumato.core import checks
from sfumato.core.errors import InvalidParameter


class Domain(StrEnum):
    """What coins are drawn for: no two kinds of release share any.

    Examples:
        >>> Domain("stream") is Domain.STREAM
        True
    """

    STREAM = "stream"
    TEMPORAL = "temporal"
    SERIES = "series"
    PRIVATIZE = "privatize"
    PUBLISH = "publish"
    SIMULATION = "simulation"


@dataclass(frozen=True, slots=True)
class Address:
    """Where the coins of one draw are: everything that shapes the answer.

    Two true values under one address share their noise, and two plans under one would tell a
    value by the difference of their answers. So the plan is part of it.

    Attributes:
        domain: What is released.
        plan: Fingerprint of all that shapes the answer, the purpose included.
        stream: Whose value it is.
        sequence: Which of his values.

    Examples:
        >>> here = Address(Domain.STREAM, "plan", "ann", 7)
        >>> here.encoded == Address(Domain.STREAM, "planann", "", 7).encoded
        False
    """

    domain: Domain
    plan: str
    stream: str
    sequence: int

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Domain):
            raise InvalidParameter("domain", "another", f"be one of {', '.join(Domain)}")
        if not isinstance(self.plan, str) or not self.plan:
            raise InvalidParameter("plan", "none", "be the fingerprint of a plan")
        if checks.count("sequence", self.sequence, at_least=0) >= 2**64:
            raise InvalidParameter("sequence", self.sequence, "be less than 2**64")

    @property
    def encoded(self) -> bytes:
        """As bytes; each part has its length in front, so no two addresses run together."""
        place = int(self.sequence).to_bytes(8, "big")
        return plan_part(self.domain, self.plan) + part(self.stream) + place


def encoded_names(names: Sequence[str]) -> list[bytes]:
    """Names as bytes; one that is no proper text (a lone surrogate) has some of its own."""
    try:
        return [name.encode() for name in names]
    except UnicodeEncodeError:
        return [name.encode(errors="surrogatepass") for name in names]


def part(name: str) -> bytes:
    """A part of an address: its length in front."""
    (encoded,) = encoded_names((name,))
    return len(encoded).to_bytes(8, "big") + encoded


@lru_cache(maxsize=256)
def plan_part(domain: Domain, plan: str) -> bytes:
    """The same for every value of a stream."""
    return part(domain.value) + part(plan)
