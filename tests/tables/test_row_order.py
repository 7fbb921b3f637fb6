import numpy as np
import pytest

from sfumato.tables.row_order import order_tells


@pytest.mark.parametrize("rows", [20, 57, 400, 5_000])
def test_a_random_order_is_never_taken_for_one_that_tells(rows: int) -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        assert not order_tells(rng.normal(size=rows))
        assert not order_tells(rng.integers(0, 3, rows).astype(float))


@pytest.mark.parametrize("direction", [1, -1])
def test_sorted_drifting_and_blockwise_values_are_found(direction: int) -> None:
    rng = np.random.default_rng(2)
    noise = rng.normal(size=300)
    assert order_tells(direction * np.sort(noise))
    assert order_tells(direction * np.linspace(0, 2, 300) + noise)
    assert order_tells(np.repeat(rng.normal(size=30), 10) + 0.3 * noise)
    assert order_tells(np.sin(np.arange(300) / 20) + 0.3 * noise)


def test_a_constant_or_a_handful_of_rows_is_no_order() -> None:
    assert not order_tells(np.ones(100))
    assert not order_tells(np.arange(10.0))


def test_a_faint_trace_in_a_large_table_is_no_plain_order() -> None:
    rng = np.random.default_rng(3)
    noise = rng.normal(size=20_000)
    faint = noise + 0.25 * np.repeat(rng.normal(size=2_000), 10)  # a correlation of .06
    assert not order_tells(faint)
    assert order_tells(noise + 0.6 * np.repeat(rng.normal(size=2_000), 10))


@pytest.mark.parametrize("period", range(2, 13))
def test_values_that_come_in_turn_are_found(period: int) -> None:
    turn = (np.arange(400) % period == 0).astype(float)
    assert order_tells(turn)
    flipped = np.random.default_rng(4).random(400) < 0.05
    assert order_tells(np.where(flipped, 1 - turn, turn))


def test_the_smallest_tables_are_tested_too() -> None:
    assert order_tells(np.arange(20.0))
    assert order_tells(np.tile([1.0, 0.0], 10))
