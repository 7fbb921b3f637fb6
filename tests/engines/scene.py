"""A small town, and what one process makes of it: the oracle is the plain fleet and the files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.engines.spark.worker_plan import PlanDocument, WorkerPlan
from sfumato.models.encoding import Symbols
from sfumato.models.stream_model import StreamModel
from sfumato.stream.release_spec import ReleaseSpec

KEY = bytes(range(7, 39))
PLACES = ("home", "shop", "work")
COLUMNS = ("user", "time", "cell")
Row = tuple[str, int, str]


@dataclass(frozen=True)
class Town:
    model: StreamModel
    policy: sf.Policy
    plan: sf.Plan
    spec: ReleaseSpec

    @property
    def document(self) -> PlanDocument:
        return PlanDocument.of(self.spec, self.model, self.policy)


@cache
def town() -> Town:
    chain = sf.MarkovChain.from_matrix(
        [[0.8, 0.1, 0.1], [0.3, 0.5, 0.2], [0.1, 0.1, 0.8]], alphabet=sf.Alphabet(PLACES)
    )
    loss = sf.loss.hamming(chain.alphabet)
    policy = sf.compile_policy(chain, loss, 0.5, steps=300)
    plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), loss, policy=policy)
    model = StreamModel(chain, Symbols(chain.alphabet), "user", ("cell",))
    return Town(model, policy, plan, ReleaseSpec(epsilon=0.5, keep=("time",)))


def walks(lengths: Sequence[int], seed: int = 1) -> list[Row]:
    """True rows of streams of some lengths, in no order at all."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"u{number}", time, PLACES[rng.integers(3)])
        for number, length in enumerate(lengths)
        for time in range(length)
    ]
    rng.shuffle(rows)
    return rows


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Stream by stream, as an engine gives them to workers, each by time."""
    return sorted(rows, key=lambda row: (crc32(row[0].encode()), row[0], row[1]))


def batches(rows: Sequence[Row], size: int) -> Iterator[pa.RecordBatch]:
    """Sorted rows as a worker is given them."""
    cells = list(zip(*in_order(rows), strict=True))
    table = pa.table(dict(zip(COLUMNS, map(list, cells), strict=True)))
    yield from table.to_batches(max_chunksize=size)


def worker_plan(document: PlanDocument) -> WorkerPlan:
    return WorkerPlan(SimpleNamespace(value=document), KEY)


def by_fleet(rows: Sequence[Row], plan: sf.Plan, key: bytes = KEY) -> list[tuple[Any, ...]]:
    """The same rows through one plain fleet: user, time, sequence, released, sip, ldp."""
    ordered, names = in_order(rows), sorted({row[0] for row in rows})
    fleet = sf.Fleet(plan, names, randomness=sf.keyed(key))
    which = np.array([names.index(row[0]) for row in ordered])
    cells = np.array([PLACES.index(row[2]) for row in ordered])
    run = fleet.run(cells, which)
    answers = zip(run.sequences.tolist(), run.released.tolist(), run.charges.tolist(), strict=True)
    found = [
        (row[0], str(row[1]), moment, PLACES[place], *charges)
        for row, (moment, place, charges) in zip(ordered, answers, strict=True)
    ]
    return sorted(found, key=lambda row: (row[0], row[2]))


def by_plan(rows: Sequence[Row], plan: sf.Plan, key: bytes = KEY) -> list[tuple[Any, ...]]:
    """The same rows, one value after another by the rule: user, sequence, released, sip."""
    coins, due = sf.keyed(key), []
    for user in sorted({row[0] for row in rows}):
        state = plan.begin(user)
        for row in in_order(rows):
            if row[0] == user:
                (event,), state = plan.step(state, [row[2]], coins)
                due.append((user, event.sequence, event.released, event.sip.epsilon))
    return due


def answers(rows: Sequence[Any]) -> list[tuple[Any, ...]]:
    """What Spark says, in the order of the oracle."""
    names = ("user", "time", "sequence", "released", "sip", "ldp")
    found = [tuple(row[name] for name in names) for row in rows]
    return sorted(found, key=lambda row: (row[0], row[2]))
