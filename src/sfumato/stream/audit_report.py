"""What an audit says."""

from __future__ import annotations

from dataclasses import dataclass, field

from sfumato.core.alphabet import Label

_SHOWN = 20


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
    one_value: float = 0.0
    loss: float | None = None
    gain: float | None = None


@dataclass(slots=True)
class AuditReport:
    """The outcome of an audit.

    Attributes:
        rows: Rows checked.
        streams: What each stream leaked.
        problems: What does not fit, the first few, each with its row.
        problem_count: How many there are in all.
        withheld: Rows that released nothing although the budget was not gone: a value
            outside the alphabet, which everybody can see.
        mean_loss: Realised loss per value, against the true values as they were: repeated values
            count, and withheld ones cost what the guess of somebody does who was told nothing.
        recovered_loss: The same of the receiver's best guesses given everything that left; None
            where outputs were not followed.
        silent_loss: What the best constant of each moment would have lost, per value.
        compared: Values that this is about.
        never: Symbols that were never released.
        repeated: Rows that say again what an earlier file, or the ledger, says: retries.
        only_in_ledger: Events of the ledger that are in none of the files; they are checked too.
        ledger_head: Stands for all rows of the ledger; compare it with one written down before.
    """

    rows: int = 0
    streams: dict[str, StreamAudit] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0
    withheld: int = 0
    mean_loss: float | None = None
    recovered_loss: float | None = None
    silent_loss: float | None = None
    compared: int = 0
    never: tuple[Label, ...] = ()
    repeated: int = 0
    only_in_ledger: int = 0
    ledger_head: str | None = None

    @property
    def passed(self) -> bool:
        """Whether everything fits."""
        return self.problem_count == 0

    def note(self, row: int, rule: str) -> None:
        """Remember a problem."""
        self.problem_count += 1
        if len(self.problems) < _SHOWN:
            self.problems.append(f"row {row}: {rule}")

    def note_ledger(self, rule: str) -> None:
        """Remember a problem of the ledger."""
        self.problem_count += 1
        if len(self.problems) < _SHOWN:
            self.problems.append(f"the ledger: {rule}")
