"""How a checkpoint of an engine knows the release that it belongs to.

An engine compares the types of the state that a query keeps with those of the checkpoint before it
reads a row, and names of fields not at all. So the digest of a release is written down as types: of
a struct of decimals that is always null, the scale of each is five bits. A query with another plan,
model, key or number of shards is refused by the engine itself, also where no stream of its first
rows is known: one that was cut into other shards would begin its streams again, with their budgets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.engines.spark.shard_state import OtherRelease
from sfumato.engines.spark.worker_plan import PlanDocument
from sfumato.tables.documents import read_document

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

IDENTITY = "digest_of_model_policy_rules_key_and_shards"
"""What the engine calls it when it refuses another one."""
_PARTS = 20
"""Of five bits each: a hundred bits, more than chance or malice can make agree."""
_BITS = 5
_DIGITS = 38
"""Of a decimal; its scale may be from 0 to as many."""


def release_digest(sent: PlanDocument, key: bytes, shards: int, columns: tuple[str, ...]) -> str:
    """What identifies a release in its checkpoint; it tells nothing of the key.

    Args:
        sent: Model, policy and rules.
        key: Secret of the coins.
        shards: How many shards the streams are cut into.
        columns: Those of ids and times: by others a known event would be a new one.
    """
    # Slow on purpose: it lies in a checkpoint, and must not show who guesses a key right.
    tag = hashlib.scrypt(key, salt=b"sfumato checkpoint", n=1 << 14, r=8, p=1).hex()
    return digest("checkpoint", 2, sent.plan, sent.model.hex(), tag, shards, *columns)


def state_type(release: str) -> StructType:
    """The type of the state of a release: its bytes, and its digest.

    Examples:
        >>> fields = state_type("ff" * 32)[IDENTITY].dataType.fieldNames()
        >>> len(fields), fields[0]
        (20, 'digest_00')
    """
    from pyspark.sql import types

    number = int(release, 16)
    scales = [(number >> (_BITS * place)) % (1 << _BITS) for place in range(_PARTS)]
    parts = [
        types.StructField(f"digest_{place:02}", types.DecimalType(_DIGITS, scale))
        for place, scale in enumerate(scales)
    ]
    return types.StructType(
        [
            types.StructField("shard", types.BinaryType()),
            types.StructField(IDENTITY, types.StructType(parts)),
        ]
    )


def checkpoint_query(folder: str | Path) -> str:
    """The id of the query that a checkpoint belongs to: what its coins are derived from.

    Examples:
        >>> folder = getfixture("tmp_path")
        >>> _ = (folder / "metadata").write_text('{"id":"6f0a..."}')
        >>> checkpoint_query(folder)
        '6f0a...'
    """
    try:
        told = msgspec.json.decode(read_document("--checkpoint", Path(folder) / "metadata"))
    except msgspec.DecodeError:
        told = None
    if not isinstance(told, dict) or not isinstance(told.get("id"), str):
        raise InvalidParameter("--checkpoint", str(folder), "be one of a streaming query of Spark")
    return str(told["id"])


def check_in_step(session: SparkSession, checkpoint: str, output: str) -> None:
    """Refuse a checkpoint that does not know all micro-batches which a folder has answers of.

    One that is new, or came out of a backup, would take events for others under numbers that are
    done: they would be charged, Spark would leave their answers out of the folder, and where they
    lie elsewhere in the stream their coins would be those of other values.

    Args:
        session: That reads both.
        checkpoint: Of the query.
        output: What its sink of files writes.

    Raises:
        InvalidParameter: If it is behind.
    """
    if _latest(session, f"{output}/_spark_metadata") > _latest(session, f"{checkpoint}/offsets"):
        rule = (
            f"know every micro-batch that {output} has answers of; go on with the checkpoint that "
            "made them, or begin both anew"
        )
        raise InvalidParameter("--checkpoint", checkpoint, rule)


def _latest(session: Any, log: str) -> int:
    """The last number in a log of Spark, wherever it lies; -1 if there is none."""
    path = session._jvm.org.apache.hadoop.fs.Path(log)
    files = path.getFileSystem(session._jsc.hadoopConfiguration())
    if not files.exists(path):
        return -1
    names = (one.getPath().getName().partition(".")[0] for one in files.listStatus(path))
    return max((int(name) for name in names if name.isdecimal()), default=-1)


@contextmanager
def refused_checkpoint() -> Iterator[None]:
    """Say what is wrong where the engine refuses the checkpoint of another release."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as problem:
        told = str(problem)
        if "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE" in told and IDENTITY in told:
            raise OtherRelease from None
        raise
