"""Documents about a whole release: plans, ledgers, all streams at one look, drift, the registry."""

from __future__ import annotations

import msgspec

from sfumato.service.stream_documents import Cell, Promise


class PlanPoint(msgspec.Struct, frozen=True, kw_only=True):
    """What a budget would buy.

    Attributes:
        epsilon: What a step may leak on average, in nats.
        status: `ready`, `computing`, `too slow`, or `unknown` where nothing can be said.
        loss: Expected loss of a value.
        low: Lower end of an interval of two standard errors.
        high: Upper end of it.
        best_guess: The same of the receiver's best guesses given all outputs.
        floor: What no release within the budget loses less than; null where none is known.
        charged: Mean leakage of a step under the model.
        model_free: Mean leakage of a step whatever the model.
        total: The most that a stream leaked in the trials.
        one_value: The most that a stream may tell about one of its values.
    """

    epsilon: float
    status: str
    loss: float | None = None
    low: float | None = None
    high: float | None = None
    best_guess: float | None = None
    floor: float | None = None
    charged: float | None = None
    model_free: float | None = None
    total: float | None = None
    one_value: float | None = None


class PlanDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Loss against budget for the model of a release.

    Attributes:
        release: The release.
        job: Its job.
        epsilon: What its own budget gives a step, on average.
        length: Values of a stream in the trials.
        streams: Streams of the trials, drawn from the model.
        unit: What losses are in.
        silence: What saying nothing loses.
        points: By rising epsilon, each step at its best: a curve of single steps.
        remark: What the points rest on.
        served: What this release itself does, tried with its own method and policy at its own
            budget; null where the curve at its budget is that, or batches are not forecast.
        served_method: Its method, such as `far-sighted`.
        served_remark: What is served beside what the curve shows, in words.
        remarks: What a careful reader should know: that a constant may do as well.
        unavailable: Why there are none; empty if there are.
    """

    release: str
    job: str
    epsilon: float | None = None
    length: int = 0
    streams: int = 0
    unit: str = ""
    silence: float | None = None
    points: list[PlanPoint] = []
    remark: str = ""
    served: PlanPoint | None = None
    served_method: str = ""
    served_remark: str = ""
    remarks: list[str] = []
    unavailable: str = ""


class AnswerRow(msgspec.Struct, frozen=True, kw_only=True):
    """An answer of a stream.

    Attributes:
        event: The event that asked, by the id that it was given.
        stream: Whose value it was.
        sequence: Its moment in the stream.
        outcome: What happened.
        released: What left.
        sip: What it was charged under the guarantee of the job; null for a series, whose charges
            are in units of its noise.
        ldp: What it was charged whatever the model; null for a series.
        signal: Which output left, where several release the same.
        batch: Where its batch began.
        time: When it was measured, if that was told.
    """

    event: str
    stream: str
    sequence: int
    outcome: str
    released: Cell
    sip: float | None
    ldp: float | None
    signal: int | None = None
    batch: int | None = None
    time: str | None = None


class LedgerRow(AnswerRow, frozen=True, kw_only=True):
    """A row of the ledger; `entry` is its number in the order of commits of all streams, from 1."""

    entry: int


class StreamLedgerDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Answers of one stream in order, each checked against the chain of hashes.

    Attributes:
        release: The release.
        stream: The stream.
        rows: Those of this page; nothing in them counts answers of other streams.
        next: Ask for the next page with `after` set to this; null at the end.
    """

    release: str
    stream: str
    rows: list[AnswerRow] = []
    next: int | None = None


class LedgerDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A page of rows, each checked against the chain of hashes.

    Attributes:
        release: The release.
        entries: Rows of the whole ledger.
        rows: Those found.
        next: Ask for the next page with `beyond` set to this; null at the end.
        promise: The guarantee of each series; null for other jobs.
    """

    release: str
    entries: int
    rows: list[LedgerRow] = []
    next: int | None = None
    promise: Promise | None = None


class HeadDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The head of a ledger, to be written down elsewhere: it stands for all of its rows.

    Attributes:
        release: The release.
        entries: Rows so far.
        head: `ROWS:HASH`, as `sfumato ledger check` takes it.
        ledger: What tells this ledger from others.
    """

    release: str
    entries: int
    head: str
    ledger: str


class StreamLine(msgspec.Struct, frozen=True, kw_only=True):
    """A stream in a list, and what it leaked in all: under the model, and whatever the model.

    Null is what the job does not add up: a series has its promise instead, and the matrices of a
    temporal release bound what is told of any one moment, not the sum.
    """

    stream: str
    answers: int
    sip: float | None
    ldp: float | None


class StreamsDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Streams by name; ask for those `after` the name in `next`, null at the end."""

    release: str
    streams: list[StreamLine] = []
    next: str | None = None
    promise: Promise | None = None


class Minute(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in one minute on this node, so many minutes ago."""

    ago: int
    answered: int
    repeated: int
    refused: int


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """What whole streams leaked under the model, where no limit holds for a whole stream.

    Attributes:
        median: Of all streams, in nats.
        largest: Of any stream.
        warning: What `audit` says of the largest; empty if it is not much.
    """

    median: float
    largest: float
    warning: str = ""


class OverviewDocument(msgspec.Struct, frozen=True, kw_only=True):
    """All streams of a release together.

    Attributes:
        release: The release.
        job: Its job.
        rule: Its budget in words.
        entries: Answers in the ledger.
        head: Stands for all of them.
        streams: How many streams there are, as far as they were counted.
        complete: Whether all were, as they stand now; if not, ask again in a moment.
        exhausted: Streams that may release nothing any more.
        left: How many streams have 0 to 10 %, 10 to 20 %, ... of their budget left; empty for a
            budget at every step, of which nothing is ever used up.
        totals: What streams leaked in all, where nothing limits it; null where something does.
        promise: The guarantee of each series; null for other jobs.
        refused: Events refused since this node started, by reason.
        minutes: The last hour on this node, oldest first.
        per_second: Events answered in the last minute, per second.
    """

    release: str
    job: str
    rule: str
    entries: int
    head: str
    streams: int
    complete: bool
    exhausted: int
    left: list[int]
    totals: Totals | None = None
    promise: Promise | None = None
    refused: dict[str, int] = {}
    minutes: list[Minute] = []
    per_second: float = 0.0


class OutputShare(msgspec.Struct, frozen=True, kw_only=True):
    """How often a symbol was released, beside what the model expects under the beliefs.

    Attributes:
        symbol: The symbol.
        observed: How often it left.
        expected: How often it was expected to.
        surprise: The difference in standard deviations.
    """

    symbol: Cell
    observed: int
    expected: float
    surprise: float


class DriftDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A hint whether streams still move as the model says, from released values alone.

    Attributes:
        release: The release.
        streams: Streams that were looked at: those that were answered last.
        outputs: Outputs that tell something, of these.
        surprise: How much less probable the outputs were than expected, in standard deviations.
        shares: Symbol by symbol, the most surprising first; none for batches.
        false_alarm: How often so large a surprise, or larger, would be seen if the model were
            right: for the largest of all those shown together, by normal approximation.
        hint: The same in words.
        log_capital: Logarithm of what bets against the model have made of these streams, of 1;
            None where nobody bets: batches, large alphabets, chains of higher order.
        alarm: Whether that is so much that a right model ever lets it come about with probability
            at most `alpha`, however often these streams are looked at.
        alpha: That probability.
        proof: The same in words.
        unavailable: Why there is none; empty if there is.
    """

    release: str
    streams: int = 0
    outputs: int = 0
    log_capital: float | None = None
    alarm: bool = False
    alpha: float = 0.01
    proof: str = ""
    surprise: float | None = None
    shares: list[OutputShare] = []
    false_alarm: float | None = None
    hint: str = ""
    unavailable: str = ""


class CatalogueRow(msgspec.Struct, frozen=True, kw_only=True):
    """A model, policy or release of the registry; only administrators see why one failed.

    Of a release that answers nothing new, `closed` says since when.
    """

    kind: str
    name: str
    version: int
    created: str | None
    fingerprint: str
    uses: list[str]
    job: str | None
    status: str
    default: bool
    detail: str = ""
    closed: str | None = None


class CatalogueDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was registered, oldest first.

    Attributes:
        rows: Models, policies and releases.
        limited: Whether the access key is for some releases: then others are left out, whether or
            not there are, with the models and policies that only they rest on.
    """

    rows: list[CatalogueRow]
    limited: bool = False
