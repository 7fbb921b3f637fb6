"""What an audit says."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from sfumato.core.alphabet import Label
from sfumato.stream.audit_promise import Promise
from sfumato.stream.coin_bets import Power
from sfumato.stream.truth_report import TruthReport

_SHOWN, _SHOWN_OF_A_KIND = 24, 8


class Kind(StrEnum):
    """What a problem is about.

    Attributes:
        FORMAT: The file is not as a release writes one.
        ROWS: A row is not what the plan does here, or says another price than it has.
        UNVERIFIABLE: Rows after a bad one: where their stream stood is not known.
        FILE: The file is not the one that the release wrote, or not all of it.
        LEDGER: The ledger, or what it holds beside the file.
        PROMISE: The rules allow more than they should, or are not those of a release.
        VALUES: Values were withheld, skipped or answered that must not be (true values needed).
        COINS: The outputs are no fair draws (true values, or a key, needed).
    """

    FORMAT = "format"
    ROWS = "rows"
    UNVERIFIABLE = "unverifiable"
    FILE = "file"
    LEDGER = "ledger"
    PROMISE = "promise"
    VALUES = "values"
    COINS = "coins"


@dataclass(frozen=True, slots=True)
class CoinReport:
    """How well outputs fit the channels of their true values.

    Attributes:
        level: An honest release is accused with at most this probability, whenever one looks.
        rows: Rows whose true values were given.
        tested: Those of them whose channel tosses coins.
        log_e_value: Logarithm of the largest fortune that bets against fair coins ever had; an
            honest release reaches the logarithm of K with probability at most 1/K.
        alarm: Whether it reached 1/level.
        suspicion: What the outputs look like then.
        power: After how many such rows releasers would be found that cheat in some of them.
    """

    level: float
    rows: int
    tested: int
    log_e_value: float
    alarm: bool
    suspicion: str | None
    power: list[Power]


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """How many draws were repeated with the key.

    Attributes:
        repeated: Rows whose draws were repeated, those of moments without a value included.
        due: All rows of the files and events of the ledger, also those that were not looked at.
        whole: Whether that is every draw: none is left, and the ledger, if any, could be read.
    """

    repeated: int
    due: int
    whole: bool

    def __str__(self) -> str:
        if self.whole:
            return "every draw was repeated"
        return f"{self.repeated:,} of {self.due:,} draws were repeated"


@dataclass(slots=True)
class StreamAudit:
    """What one stream leaked, recomputed.

    Attributes:
        steps: Moments of the stream.
        sip: Leakage under the model, summed.
        ldp: Model-free leakage, summed.
        composed: Leakage under the model that is passed with probability at most 1e-6: below the
            sum where a budget per step was fixed in advance.
        worst_step: Largest leakage of one step under the model.
        worst_window: Largest leakage of any window of the asked width; None without one.
        worst_period: Largest leakage within one period, where the budget is for such; else None.
        one_value: What all outputs together told about any one value: the largest change of the
            adversary's belief about it, over all moments and symbols, as a log ratio. Budgets per
            step or window do not bound it. Exact where it fits into memory, and batches can be
            listed; else the sum of all steps, which is a bound.
        loss: Realised loss, summed (only against the true values).
        gain: Realised information gain: log of how much likelier the true sequence became.
    """

    steps: int = 0
    sip: float = 0.0
    ldp: float = 0.0
    composed: float = 0.0
    worst_step: float = 0.0
    worst_window: float | None = None
    worst_period: float | None = None
    one_value: float = 0.0
    loss: float | None = None
    gain: float | None = None


@dataclass(slots=True)
class AuditReport:
    """The outcome of an audit.

    Attributes:
        rows: Rows checked.
        streams: What each stream leaked.
        problems: What does not fit, the first few of each kind, with their rows.
        problem_count: How many there are in all.
        problem_kinds: How many of each kind.
        unverifiable: Rows that nothing can be said of, since they follow a bad one.
        withheld: Rows that released nothing although the budget was not gone: a value
            outside the alphabet, which everybody can see.
        mean_loss: Realised loss per value, against the true values as they were: repeated values
            count, and withheld ones cost what the guess of somebody does who was told nothing.
        recovered_loss: The same of the receiver's best guesses given everything that left; None
            where outputs were not followed.
        silent_loss: What the best constant of each moment would have lost, per value; under a
            model that knows nothing, the constant that fits the true values best.
        compared: Values that this is about.
        never: Symbols that were never released.
        repeated: Rows that say again what an earlier file, or the ledger, says: retries.
        only_in_ledger: Events of the ledger that are in none of the files; they are checked too.
        ledger_head: Stands for all rows of the ledger; compare it with one written down before.
        promise: What the rules allow; None if they were not given.
        unchecked: What nobody looked at: bytes of packed files, columns that were allowed.
        coins: Whether outputs are fair draws; None without true values.
        replayed: How many draws were repeated; None without a key, and then in no document.
        possible: How many draws are what a key draws for some true value; None without a key that
            was held against the ledger alone, and then in no document.
        truth: What was leaked under another chain; None without one, and then in no document.
        starts: What was leaked in each start of a release that learns, where it started anew: under
            what was learnt in that start; `truth` is their sum. For others none, and then in no
            document.
        versions: What a learning release learnt again from what left, version by version; for
            others none, and then in no document.
        left_out: Rows and events of streams that nobody asked for; they are in `unchecked`.
        file: What messages call the current file, where there are several.
    """

    rows: int = 0
    streams: dict[str, StreamAudit] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0
    problem_kinds: dict[str, int] = field(default_factory=dict)
    unverifiable: int = 0
    withheld: int = 0
    mean_loss: float | None = None
    recovered_loss: float | None = None
    silent_loss: float | None = None
    compared: int = 0
    never: tuple[Label, ...] = ()
    repeated: int = 0
    only_in_ledger: int = 0
    ledger_head: str | None = None
    promise: Promise | None = None
    unchecked: list[str] = field(default_factory=list)
    coins: CoinReport | None = None
    replayed: ReplayReport | None = None
    possible: int | None = None
    truth: TruthReport | None = None
    starts: tuple[TruthReport, ...] = ()
    versions: tuple[str, ...] = ()
    left_out: int = field(default=0, repr=False)
    file: str = field(default="", repr=False)

    @property
    def passed(self) -> bool:
        """Whether everything fits."""
        return self.problem_count == 0

    def document(self) -> dict[str, Any]:
        """What was found, as a document."""
        found = asdict(self)
        del found["file"], found["left_out"]
        for name in ("replayed", "possible", "truth"):
            if found[name] is None:
                del found[name]
        for name in ("starts", "versions"):
            if not found[name]:
                del found[name]
        for told in (found.get("truth"), *found.get("starts", ())):
            if told is not None and told["phases"] is None:
                del told["phases"]
        return found

    def note(self, row: int, rule: str, kind: Kind = Kind.ROWS) -> None:
        """Remember a problem of a row; of many of one kind a few are told."""
        few = self.problem_kinds.get(kind.value, 0) < _SHOWN_OF_A_KIND
        self._count(kind)
        if few and len(self.problems) < _SHOWN:
            self.problems.append(f"{self.file}row {row}: {rule}")

    def note_ledger(self, rule: str) -> None:
        """Remember a problem of the ledger."""
        self.note_all(f"the ledger: {rule}", Kind.LEDGER)

    def note_all(self, rule: str, kind: Kind) -> None:
        """Remember a problem of the whole."""
        self._count(kind)
        if len(self.problems) < 2 * _SHOWN:
            self.problems.append(rule)

    def _count(self, kind: Kind) -> None:
        self.problem_count += 1
        self.problem_kinds[kind.value] = self.problem_kinds.get(kind.value, 0) + 1
