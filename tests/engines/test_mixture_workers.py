"""Workers of Spark release under a mixture of chains as its plan does, one value after another."""

import numpy as np

import sfumato as sf
from sfumato.engines.spark.partition_release import PartitionRelease
from sfumato.engines.spark.shard_release import Shard
from sfumato.engines.spark.shard_state import ShardState
from sfumato.engines.spark.worker_plan import PlanDocument, plan_of
from sfumato.models.encoding import Symbols
from sfumato.models.stream_model import StreamModel
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.tables.cells import Late
from tests.engines.scene import KEY, PLACES, batches, by_plan, walks, worker_plan
from tests.engines.shards import Asked, Oracle, asked_rows
from tests.engines.test_shard_release import told

DIGEST = "cd" * 32


def mixture(names: tuple[str, ...]) -> StreamModel:
    """Some stay, the others go round."""
    alphabet = sf.Alphabet(names)
    stays = sf.MarkovChain.from_matrix(0.1 + 0.7 * np.eye(3), alphabet=alphabet)
    moves = 0.1 + 0.7 * np.roll(np.eye(3), 1, axis=1)
    round_ = sf.MarkovChain.from_matrix(moves, alphabet=alphabet)
    chain = sf.stream.ClusteredChain(np.array([0.6, 0.4]), (stays, round_))
    return StreamModel(chain, Symbols(alphabet), "user", ("cell",))


def test_a_partition_is_answered_as_the_plan_answers_its_streams() -> None:
    rows = walks([6, 4])
    spec = ReleaseSpec(epsilon=0.8, method="step-wise", keep=("time",))
    document = PlanDocument.of(spec, mixture(PLACES))
    due = by_plan(rows, plan_of(document).plan)
    worker = PartitionRelease(worker_plan(document), "time")
    found = [row for part in worker(batches(rows, 3)) for row in part.to_pylist()]
    assert [(row["user"], row["sequence"], row["released"], row["sip"]) for row in found] == due


def test_a_shard_keeps_the_belief_about_clusters_between_its_batches() -> None:
    model = mixture(("a", "b", "c"))
    rule = ReleaseSpec(epsilon=0.8, method="step-wise").instant(model)
    shard, oracle = Shard(rule, sf.keyed(KEY), DIGEST, Late.REFUSE), Oracle(rule, KEY, late=False)
    stored: bytes | None = None
    for part in range(4):
        events = [Asked("ann", f"e{part}{n}", 10 * part + n, "abc"[n % 3]) for n in range(3)]
        before = None if stored is None else ShardState.of_bytes(stored, DIGEST)
        left, after = shard.answered(before, asked_rows(events), 0)
        due = oracle.answers(events, 0)
        assert all(due[name] == answer for name, answer in told(left))
        stored = after.encoded
