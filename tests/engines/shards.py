"""Events of shards for tests, and an oracle that answers them one by one, by the plan alone."""

import hashlib
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.core.errors import BudgetExceeded
from sfumato.core.state import StreamState
from sfumato.engines.spark.shard_release import AskedRows
from sfumato.models.encoding import Symbols
from sfumato.models.stream_model import StreamModel

KEY = b"a key of these tests, not of anybody"
LETTERS = sf.Alphabet(["a", "b", "c"])


class Asked(NamedTuple):
    """One event; its time is in seconds."""

    stream: str
    id: str
    time: int
    value: str


def letters() -> StreamModel:
    """Three letters that mostly stay."""
    rows = [[0.8, 0.1, 0.1], [0.15, 0.7, 0.15], [0.05, 0.15, 0.8]]
    chain = sf.MarkovChain.from_matrix(rows, alphabet=LETTERS)
    return StreamModel(chain, Symbols(LETTERS), stream="user", values=("cell",))


@cache
def letter_policy() -> sf.Policy:
    """Channels for half a nat a letter."""
    chain = letters().value_by_value
    assert isinstance(chain, sf.MarkovChain)
    return sf.compile_policy(chain, sf.loss.hamming(LETTERS), 0.5, steps=200)


def asked_rows(events: Iterable[Asked]) -> AskedRows:
    """Events as a worker has them."""
    rows = list(events)
    names = [f"{row.stream}\n{row.id}".encode() for row in rows]
    hashes = [int.from_bytes(hashlib.sha256(name).digest()[:7], "big") for name in names]
    return AskedRows(
        streams=pa.array([row.stream for row in rows], pa.string()),
        ids=pa.array([row.id for row in rows], pa.string()),
        times=np.array([1_000_000 * row.time for row in rows], dtype=np.int64),
        cells=np.array([LETTERS.index(row.value) for row in rows], dtype=np.int64),
        hashes=np.array(hashes, dtype=np.int64),
    )


class Answer(NamedTuple):
    """What left for an event."""

    sequence: int
    outcome: str
    released: str | int | None
    sip: float
    ldp: float


class Oracle:
    """Streams by `Plan.step` alone, each event of a micro-batch in the order of time and id.

    Args:
        plan: The rule.
        key: Secret of its coins.
        late: Whether events may go back in time.
        seconds: Length of the periods that the budget is for, if it is for such.
    """

    def __init__(
        self, plan: sf.Plan, key: bytes, *, late: bool = False, seconds: int | None = None
    ) -> None:
        self._seconds = seconds
        self._plan, self._coins, self._late = plan, sf.keyed(key), late
        self._states: dict[str, StreamState] = {}
        self._last: dict[str, int] = {}
        self._known: dict[tuple[str, str], tuple[int, Answer]] = {}

    def answers(self, events: Iterable[Asked], watermark: int) -> dict[tuple[str, str], object]:
        """An answer for each stream and id, or the word of a refusal."""
        found: dict[tuple[str, str], object] = {}
        for event in sorted(events, key=lambda one: (one.time, one.id, one.value)):
            name = (event.stream, event.id)
            if name in found:
                continue
            found[name] = self._answer(event, name, watermark)
        gone = [name for name, (time, _) in self._known.items() if time < watermark]
        for name in gone:
            del self._known[name]
        return found

    def _answer(self, event: Asked, name: tuple[str, str], watermark: int) -> object:
        if name in self._known:
            return self._known[name][1]
        if event.time < watermark:
            return "late"
        if not self._late and event.time < self._last.get(event.stream, event.time):
            return "order"
        state = self._states.get(event.stream) or self._plan.begin(event.stream)
        try:
            period = None if self._seconds is None else event.time // self._seconds
            (left,), after = self._plan.step(state, [event.value], self._coins, period=period)
        except BudgetExceeded:
            return "budget"
        self._states[event.stream] = after
        self._last[event.stream] = max(event.time, self._last.get(event.stream, event.time))
        sums = (left.sip.epsilon, left.ldp.epsilon)
        answer = Answer(left.sequence, left.outcome.value, left.released, *sums)
        self._known[name] = (event.time, answer)
        return answer

    @property
    def spent(self) -> dict[str, tuple[float, float]]:
        """What each stream has spent."""
        return {name: (state.ledger.sip, state.ledger.ldp) for name, state in self._states.items()}
