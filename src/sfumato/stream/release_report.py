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
        largest_estimate: For a release for many chains: the largest sum, over values of one stream
            that were answered anew, of what they leaked under the estimate; `largest_sip` is then
            that under the worst chain of the set.
        confidence: Probability that the true chain is in the set; 1 where that is assumed.
        expected_loss: What a value was expected to cost, under the model, or the estimate of a
            release that learns; None in batches and by a policy, where `plan` predicts it.
        silent_loss: What the best constant would have cost, under the same.
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
    largest_estimate: float | None = None
    confidence: float | None = None
    expected_loss: float | None = None
    silent_loss: float | None = None
