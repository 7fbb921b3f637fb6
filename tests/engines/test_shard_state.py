"""What a state store keeps of answers comes back as it was, in as few bytes as it takes."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engines.spark.shard_state import Answers

WHOLE = ("hashes", "places", "times", "sequences", "outcomes", "released", "signals")
edges = [0, -1, 127, 128, -128, -129, 2**15 - 1, 2**15, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1]
numbers = st.sampled_from([*edges, 2**63 - 1, -(2**63)]) | st.integers(-(2**63), 2**63 - 1)


def answers(columns: dict[str, list[int]], count: int) -> Answers:
    whole = {name: np.array(columns[name], dtype=np.int64) for name in WHOLE}
    ids = pa.array([f"e{row}" for row in range(count)], pa.string())
    return Answers(ids=ids, charges=np.arange(2.0 * count).reshape(count, 2) / 7, **whole)


@given(
    st.integers(0, 4).flatmap(lambda n: st.tuples(*[st.lists(numbers, min_size=n, max_size=n)] * 7))
)
def test_answers_come_back_to_the_bit(columns: tuple[list[int], ...]) -> None:
    given = answers(dict(zip(WHOLE, columns, strict=True)), len(columns[0]))
    back = Answers.of_bytes(given.encoded)
    for name in WHOLE:
        assert getattr(back, name).dtype == np.int64
        assert getattr(back, name).tolist() == getattr(given, name).tolist()
    assert back.ids.to_pylist() == given.ids.to_pylist()
    assert back.charges.tolist() == given.charges.tolist()


@pytest.mark.parametrize("count", [100, 1_000])
def test_small_numbers_take_few_bytes(count: int) -> None:
    small = answers({name: [row % 100 for row in range(count)] for name in WHOLE}, count)
    large = answers({name: [2**62 + row for row in range(count)] for name in WHOLE}, count)
    assert len(large.encoded) - len(small.encoded) >= 49 * count - 1_000
    assert len(small.encoded) < len(large.encoded)


def test_answers_that_were_kept_with_eight_bytes_a_number_are_read() -> None:
    rows = np.arange(3)
    columns = {name: pa.array(rows) for name in WHOLE}
    columns |= {"ids": pa.array(["a", "b", "c"])}
    columns |= {name: pa.array(np.ones(3)) for name in ("sip", "ldp")}
    batch, sink = pa.RecordBatch.from_pydict(columns), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    assert Answers.of_bytes(bytes(sink.getvalue())).sequences.tolist() == [0, 1, 2]
