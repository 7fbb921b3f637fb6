"""Arrow uses the system's memory while tables are on their way, and no longer."""

from contextlib import ExitStack

import pyarrow as pa
import pytest

from sfumato.tables.arrow_memory import returned_memory


def backend() -> str:
    name: str = pa.default_memory_pool().backend_name
    return name


def test_the_last_of_several_tables_sets_the_pool_back_in_whatever_order_they_end() -> None:
    before = backend()
    first, second = ExitStack(), ExitStack()
    first.enter_context(returned_memory())
    second.enter_context(returned_memory())
    first.close()
    assert backend() == "system"
    second.close()
    assert backend() == before


def test_a_table_that_fails_sets_the_pool_back() -> None:
    before = backend()
    with pytest.raises(RuntimeError), returned_memory():
        raise RuntimeError
    assert backend() == before
