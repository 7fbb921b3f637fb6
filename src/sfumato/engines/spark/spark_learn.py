"""A chain learnt from a released frame: passes over what workers keep, sums that have no order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.events import Outcome
from sfumato.core.fixed_sums import FixedSum
from sfumato.core.progress import Progress
from sfumato.engines.spark.column_names import mapped
from sfumato.engines.spark.partition_outputs import (
    FOUND,
    KEPT,
    AskOutputs,
    Bets,
    Chosen,
    CountSlots,
    Found,
    KeepOutputs,
    Lengths,
    Pass,
    Score,
    Scores,
    Sizes,
    Task,
    found_in,
    kept_rows,
)
from sfumato.engines.spark.spark_audit import arranged_release
from sfumato.engines.spark.worker_plan import OpenedPlan, PlanDocument, plan_of
from sfumato.models.chain_bets import BetCounts
from sfumato.models.emissions import Emissions, piece_cuts
from sfumato.models.expectation import Counted, Guess, order_of
from sfumato.models.learning import FLOOR, SMOOTHING
from sfumato.models.markov import MarkovChain
from sfumato.models.output_sums import EmissionSums
from sfumato.models.stream_model import StreamModel
from sfumato.solver.policy import Policy
from sfumato.stream.learning import (
    Learning,
    check_learnable,
    learn_sums,
    learnt_model,
)
from sfumato.stream.one_channel import one_channel
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.tables.problems import BadTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SMALL = 32 << 20
"""Bytes of what outputs told that one process goes through faster than an engine starts its jobs:
some millions of values that left through one channel."""


@dataclass(frozen=True, slots=True)
class SparkLearning:
    """A model that was learnt from a released frame, and what it is worth.

    Attributes:
        model: The model, to be saved and released with: `sf.save(found.model, "learnt.model")`.
        report: What it is worth, as of `sf.stream.learn`.

    Examples:
        With a session at hand, `spark`:

        ```python
        import secrets
        import sfumato as sf
        from sfumato.stream.fit_model import Cut, uniform_model
        rows = [("ann", time, "home" if time % 5 else "work") for time in range(40)]
        frame = spark.createDataFrame(rows, ["user", "time", "value"])
        start = uniform_model(Cut(), ("home", "work"), stream="user")
        asked = {"epsilon": 2.0, "method": "randomized-response"}
        key = secrets.token_bytes(32)
        private = sf.spark.release(frame, model=start, key=key, order="time", **asked)
        rules = sf.stream.ReleaseSpec(**asked, keep=("time",), model=start.chain.fingerprint)
        found = sf.spark.learn(private, model=start, rules=rules, order=1)
        assert found.model.alphabet.labels == ("home", "work")
        ```
    """

    model: StreamModel
    report: Learning


def learn(
    frame: DataFrame,
    *,
    model: StreamModel,
    rules: ReleaseSpec,
    policy: Policy | None = None,
    stream: str | None = None,
    order: int | None = None,
    smoothing: float = SMOOTHING,
    floor: float = FLOOR,
    confidence: float = 0.95,
    partitions: int | None = None,
    progress: Progress | None = None,
) -> SparkLearning:
    """Learn how values follow each other from a released frame: just what `sfumato learn` learns.

    The model is that of one process to the byte, in any number of partitions: streams are counted
    off in an order that follows from their names, and expected counts are added up as whole
    numbers, multiples of 2^-52. Every pass over the outputs is a job; what they told stays with
    the workers between passes (8 bytes for each value and symbol; for each value alone where all
    left through one channel). A stream is held whole by one worker. To the driver come sums, and
    for streams held out a number each. Where all of it is small (32 MB), the driver goes through
    it by itself: with the same sums, without the price of a job for every pass.

    Args:
        frame: What `release` made, or a table of it; rows in any order, each once.
        model: The model of the release.
        rules: Its rules.
        policy: The policy that they name, if they do.
        stream: Column of the streams; as fitted if not given.
        order: How many past values the next one depends on; chosen among 0, 1 and 2 by streams
            held out if not given.
        smoothing: Pseudo-counts of each value after each context.
        floor: Least probability of any transition.
        confidence: That of the set of plausible chains.
        partitions: Parts that streams are shared out to; by the size of the frame if not given.
        progress: Called with the number of passes over the outputs so far.

    Raises:
        InvalidParameter: If rules, model and policy do not go together, or the frame has other
            columns than a release.

    Examples:
        With a session at hand, `spark`:

        ```python
        import secrets
        import sfumato as sf
        from sfumato.stream.fit_model import Cut, uniform_model
        rows = [("ann", time, "home" if time % 5 else "work") for time in range(40)]
        frame = spark.createDataFrame(rows, ["user", "time", "value"])
        start = uniform_model(Cut(), ("home", "work"), stream="user")
        asked = {"epsilon": 2.0, "method": "randomized-response"}
        key = secrets.token_bytes(32)
        private = sf.spark.release(frame, model=start, key=key, order="time", **asked)
        rules = sf.stream.ReleaseSpec(**asked, keep=("time",), model=start.chain.fingerprint)
        found = sf.spark.learn(private, model=start, rules=rules, order=1)
        assert found.report.values == 40
        ```
    """
    named = replace(model, stream=stream or model.stream)
    sent = PlanDocument.of(rules, named, policy)
    opened = plan_of(sent)
    check_learnable(opened.plan)
    rows = arranged_release(frame, opened, partitions, together=True)
    channel = _channel(frame, opened)
    shared = frame.sparkSession.sparkContext.broadcast(sent)
    with _kept(mapped(rows, KeepOutputs(shared, channel), KEPT)) as kept:
        sums = FrameSums.of(kept, len(named.alphabet))
        width = 1 if channel is not None else 1 + sums.symbols
        report = learn_sums(
            sums if 8 * width * sums.values > _SMALL else sums.gathered(),
            opened.plan,
            channel,
            order=order,
            smoothing=smoothing,
            floor=floor,
            confidence=confidence,
            progress=progress,
        )
    return SparkLearning(learnt_model(report, named, opened.plan), report)


def _channel(frame: DataFrame, opened: OpenedPlan) -> Floats | None:
    """The one channel that all values of a frame left through; None if not so."""
    from pyspark.sql import functions as F

    channel = one_channel(opened.plan)
    if channel is None:
        return None
    other = F.coalesce(F.col("outcome") != Outcome.RELEASED.value, F.lit(True))
    return channel if frame.where(other).isEmpty() else None


@contextmanager
def _kept(frame: DataFrame) -> Iterator[DataFrame]:
    """A frame that is computed once, in memory and on the disks of workers."""
    from pyspark import StorageLevel

    kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield kept
    finally:
        kept.unpersist()


@dataclass(frozen=True, slots=True, eq=False)
class FrameSums:
    """Sums over the outputs that workers keep: an `OutputSums`, each answer of which is a job.

    Attributes:
        kept: What `KeepOutputs` made.
        chosen: The streams that are meant.
        streams: How many there are.
        values: How many values they have.
        telling: How many of these have an output that tells anything.
    """

    kept: DataFrame
    chosen: Chosen
    streams: int
    values: int
    telling: int

    @classmethod
    def of(cls, kept: DataFrame, symbols: int) -> FrameSums:
        """All streams of a frame."""
        found = found_in(kept.mapInArrow(CountSlots(), FOUND).toArrow())
        counts = np.sum([one.numbers for one in found], axis=0, dtype=np.int64)
        if not counts.any():
            raise BadTable("the frame", None, "there must be at least one row")
        return cls._sized(kept, Chosen(symbols, np.cumsum(counts) - counts))

    @classmethod
    def _sized(cls, kept: DataFrame, chosen: Chosen) -> FrameSums:
        found = _asked(kept, chosen, Sizes())
        sizes = found.numbers.reshape(-1, 3).sum(axis=0)
        return cls(kept, chosen, *map(int, sizes))

    @property
    def symbols(self) -> int:
        """How many symbols a value can take."""
        return self.chosen.symbols

    @property
    def span(self) -> int:
        """The most values that one output tells about together: they leave one by one."""
        return 1

    def passed(self, guess: Guess) -> Counted:
        """What is expected of hidden values under a chain, given all outputs."""
        task = Pass(guess)
        sums = task.sums(_asked(self.kept, self.chosen, task))
        return sums.counted(self.symbols, order_of(guess, self.symbols))

    def score(self, guess: Guess) -> float:
        """Log probability of all outputs, up to factors that are those of no chain."""
        whole, parts, _ = _asked(self.kept, self.chosen, Score(guess))
        return float(FixedSum(whole, parts).value()[0])

    def scores(self, guess: Guess) -> Floats:
        """The same of each stream."""
        places, _, scores = _asked(self.kept, self.chosen, Scores(guess))
        return scores[np.argsort(places)]

    def lengths(self) -> Floats:
        """How many values each stream has."""
        return self._lengths().astype(np.float64)

    def _lengths(self) -> Ints:
        places, lengths, _ = _asked(self.kept, self.chosen, Lengths())
        return lengths[np.argsort(places)]

    def gathered(self) -> EmissionSums:
        """The same sums over the same outputs, in the memory of the driver."""
        batches = self.kept.toArrow().to_batches()
        found = [self.chosen.of(row) for batch in batches for row in kept_rows(batch)]
        whole = Emissions.joined([emissions for emissions, _ in found])
        order = np.argsort(np.concatenate([places for _, places in found]))
        return EmissionSums(whole.of_streams(order))

    def cut(self, pieces: int) -> FrameSums:
        """Streams cut into at least so many pieces, as `Emissions.cut` does."""
        if self.streams >= pieces:
            return self
        # Streams are few: how many pieces each becomes is found as in one process.
        each = -(-pieces // self.streams)
        counts = np.array([1 + len(piece_cuts(one, each)) for one in self._lengths().tolist()])
        firsts = np.cumsum(counts) - counts
        return FrameSums._sized(self.kept, replace(self.chosen, firsts=firsts, each=each))

    def every(self, number: int, rest: int) -> tuple[FrameSums, FrameSums]:
        """Each stream whose place, divided by a number, leaves a rest; and all others."""
        assert self.chosen.number == 1, "places are those among all streams"
        own, others = (
            replace(self.chosen, number=number, rest=rest, others=others)
            for others in (False, True)
        )
        return FrameSums._sized(self.kept, own), FrameSums._sized(self.kept, others)

    def bets(self, channel: Floats, guide: MarkovChain | None) -> BetCounts:
        """What bets on a chain need of outputs that all left through one channel."""
        return Bets(channel, guide).counts(_asked(self.kept, self.chosen, Bets(channel, guide)))


def _asked(kept: DataFrame, chosen: Chosen, task: Task) -> Found:
    """What all workers found."""
    return task.joined(found_in(kept.mapInArrow(AskOutputs(chosen, task), FOUND).toArrow()))
