"""What a model was learnt from, if it was learnt from released values: it stands in its file."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.core import checks


@dataclass(frozen=True, slots=True)
class LearntHistory:
    """Where a learnt model comes from: it is a function of what left, and of public rules.

    Attributes:
        release: Fingerprint of the plan that the values left under.
        streams: How many streams there were.
        values: How many values had left.
        version: Which version of a learning release it is; None for a model of `learn`.

    Examples:
        >>> print(LearntHistory("ab", 20, 1_000))
        1,000 released values of 20 streams
    """

    release: str
    streams: int
    values: int
    version: int | None = None

    def __post_init__(self) -> None:
        checks.count("streams", self.streams)
        checks.count("values", self.values)
        if self.version is not None:
            checks.count("version", self.version)

    def __str__(self) -> str:
        which = "" if self.version is None else f", version {self.version} of their release"
        return f"{self.values:,} released values of {self.streams:,} streams{which}"
