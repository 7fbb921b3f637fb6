"""Documents about one stream: what is sent, and what the description of the service says of it.

Charges and bounds are in nats, rounded up; a bound that does not exist is null. `left` is rounded
down. Amounts under the model are called `sip`, those whatever the model `ldp`.
"""

from __future__ import annotations

import msgspec

Cell = str | int | float | None
"""What was released: a symbol, a number, several counts as a list in JSON, or nothing."""


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """Differential privacy of a whole series, whatever the model; from the noise that is drawn.

    Attributes:
        epsilon: In nats.
        delta: The chance that is left out; 0 where none is.
        level: Whose data are protected together: `user level`, `event level`, `w-event level`.
    """

    epsilon: float
    delta: float
    level: str


class Amount(msgspec.Struct, frozen=True, kw_only=True):
    """One certificate of a stream.

    Attributes:
        spent: Everything so far; of temporal releases, what any moment leaked; null for a series,
            whose guarantee is for all of its values together.
        limit: The most that the budget lets out, over the steps of its rule; null without a limit.
        left: What is left of it now: in all, or in the window that the next step belongs to.
        next: What the next step may leak.
    """

    spent: float | None = None
    limit: float | None = None
    left: float | None = None
    next: float | None = None


class WindowStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step that still counts in the window of the next one, and what it was charged."""

    sequence: int
    sip: float
    ldp: float


class OtherRelease(msgspec.Struct, frozen=True, kw_only=True):
    """Another release that answered the same stream, from a budget of its own.

    Attributes:
        release: Its name.
        job: Its job.
        unit: What its amounts are in.
        answers: Moments so far.
        sip: What was charged there under the guarantee of its job.
        ldp: What was charged there whatever the model.
    """

    release: str
    job: str
    unit: str
    answers: int
    sip: float
    ldp: float


class Together(msgspec.Struct, frozen=True):
    """What several releases of one stream leaked together, rounded up.

    Attributes:
        releases: How many.
        sip: Bound under the model of the release that was asked: each but one counts twice, and
            at most its model-free charge; of another model, that charge.
        ldp: The sum whatever the model.
    """

    releases: int
    sip: float
    ldp: float


class BudgetDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What a stream has spent and may still spend in one release.

    Attributes:
        release: The release that was asked.
        stream: The stream.
        job: The job of the release.
        answers: Moments so far.
        rule: The budget in words.
        unit: What amounts are in.
        steps: Steps that the limit is for: a horizon, or a window; null for ever.
        steps_left: Steps left of a horizon.
        exhausted: Whether nothing may leave any more.
        model: The certificate under the model; a series has none; for a temporal release, what
            correlation lets out of any one moment.
        model_free: What holds whatever the model; the backstop. Of a series, its limit.
        in_window: Charges that still count in the next step's window, oldest first.
        one_value: The most that all of this release may tell about one value; null: no bound.
        one_value_rule: What that bound rests on.
        others: Other open releases that answered this stream: their charges come on top.
        unread: Releases that are not open now; whether they answered it is not known.
        together: What all of them leaked; null if it is alone, or no bound is known.
        promise: The guarantee of a series; null for other jobs.
        remark: That nothing left yet; else empty.
        partial: That releases may be left out, for keys that are limited to some; else empty.
    """

    release: str
    stream: str
    job: str
    answers: int
    rule: str
    unit: str = "nats"
    steps: int | None = None
    steps_left: int | None = None
    exhausted: bool = False
    model: Amount
    model_free: Amount
    in_window: list[WindowStep] = []
    one_value: float | None = None
    one_value_rule: str = ""
    others: list[OtherRelease] = []
    unread: list[str] = []
    together: Together | None = None
    promise: Promise | None = None
    remark: str = ""
    partial: str = ""


class CertificateDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What a stream leaked in one release, computed again, in the words of `sfumato audit`.

    Attributes:
        release: The release.
        stream: The stream.
        job: The job of the release.
        unit: What sums are in.
        answers: Moments that the ledger has.
        checked: Moments that were followed so far; ask again while it is less.
        passed: Whether everything that was followed is what the rules do, at the price they say.
        problems: What is not.
        sip: Leakage under the model, summed; null for a series, which has a promise.
        ldp: Model-free leakage, summed; null for a series.
        composed: Leakage under the model that is passed with probability at most 1e-6.
        worst_step: Largest leakage of one step under the model; null for a series.
        worst_window: Largest leakage of any window of the budget's width.
        one_value: What all outputs told about any one value; exact, or the least bound known.
        guarantees: The same as sentences.
        head: Stands for all rows of the ledger; empty for a key that is not for all streams.
        others: Other open releases that answered this stream, as they charged it.
        unread: Releases that are not open now; whether they answered it is not known.
        together: What all of them leaked; null if it is alone, or no bound is known.
        promise: The guarantee of a series; null for other jobs.
        remarks: What a careful reader should know, such as that a constant may be as near.
    """

    release: str
    stream: str
    job: str
    unit: str = "nats"
    answers: int
    checked: int
    passed: bool
    problems: list[str] = []
    sip: float | None = 0.0
    ldp: float | None = 0.0
    composed: float | None = None
    worst_step: float | None = 0.0
    worst_window: float | None = None
    one_value: float | None = None
    guarantees: list[str] = []
    head: str = ""
    others: list[OtherRelease] = []
    unread: list[str] = []
    together: Together | None = None
    promise: Promise | None = None
    remarks: list[str] = []


class LeakagePoint(msgspec.Struct, frozen=True, kw_only=True):
    """One moment of a stream.

    Attributes:
        sequence: Which, from 0.
        time: When it was measured, if that was told.
        released: What left.
        outcome: How.
        sip: What it was charged under the guarantee of the job; null for a series, as are the
            next three: its charges are in units of its noise, not of leakage.
        ldp: What it was charged whatever the model.
        total_sip: The sum up to it, rounded up.
        total_ldp: The same whatever the model.
        backward: Temporal releases: what all releases up to it tell of this moment.
        forward: Temporal releases: what all from it on do.
        total: Temporal releases: what all of them do.
    """

    sequence: int
    time: str | None
    released: Cell
    outcome: str
    sip: float | None
    ldp: float | None
    total_sip: float | None
    total_ldp: float | None
    backward: float | None = None
    forward: float | None = None
    total: float | None = None


class LeakageDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What left over time, and what it leaked: the last moments of a stream.

    Attributes:
        release: The release.
        stream: The stream.
        job: The job of the release.
        unit: What amounts are in.
        answers: Moments so far.
        symbols: The symbols in order, where values are symbols.
        points: The moments shown, in order.
        promise: The guarantee of a series; null for other jobs.
    """

    release: str
    stream: str
    job: str
    unit: str = "nats"
    answers: int
    symbols: list[Cell] = []
    points: list[LeakagePoint] = []
    promise: Promise | None = None


class BeliefDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What the adversary believed of each value right after it was answered: a heat strip.

    Attributes:
        release: The release.
        stream: The stream.
        answers: Moments so far.
        followed: Moments that were followed so far; ask again while it is less.
        symbols: The symbols shown, in order; of many, those believed in most.
        others: How many symbols are not shown.
        width: Moments of a column; probabilities are their mean.
        steps: First moment of each column.
        probabilities: One row for each column: of each symbol shown, in ten-thousandths.
        unavailable: Why there is none; empty if there is.
    """

    release: str
    stream: str
    answers: int
    followed: int
    symbols: list[Cell] = []
    others: int = 0
    width: int = 1
    steps: list[int] = []
    probabilities: list[list[int]] = []
    unavailable: str = ""


class RecoveredValue(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one value given everything that left.

    Attributes:
        sequence: Its moment.
        released: What left then.
        guess: The best guess for the loss.
        probability: How probable the guess is.
        loss: What the guess is expected to lose.
        credible: The fewest symbols that hold the truth with the probability asked for.
    """

    sequence: int
    released: Cell
    guess: Cell
    probability: float
    loss: float
    credible: list[Cell]


class RecoveredDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What a receiver can infer, free of privacy cost; right if the model is.

    Attributes:
        release: The release.
        stream: The stream.
        answers: Moments so far.
        followed: Moments that were followed so far; ask again while it is less.
        cover: Probability of the credible sets.
        values: The last values, in order.
        unavailable: Why there is none; empty if there is.
    """

    release: str
    stream: str
    answers: int
    followed: int
    cover: float
    values: list[RecoveredValue] = []
    unavailable: str = ""
