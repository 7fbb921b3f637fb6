"""What the release of a table did, in numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReleaseReport:
    """What a run did.

    Attributes:
        rows: Rows answered.
        repeated: How many of them had been answered before; their noise was not drawn again.
        streams: How many streams the answers belong to.
        largest_sip: Largest leakage under the model that any of those streams has in all.
        largest_ldp: The same whatever the model.
        interrupted: Whether the run was asked to stop before the end of the input.
        waiting: Rows read but not answered: their batch was not complete when the run stopped.
        missing: Values that were missing: their rows were left out, their moments passed, or they
            were released as a symbol of their own.
        clipped: Values beyond the range of the model, released as if they stood at its edge.
    """

    rows: int
    repeated: int
    streams: int
    largest_sip: float
    largest_ldp: float
    interrupted: bool
    waiting: int = 0
    missing: int = 0
    clipped: int = 0
