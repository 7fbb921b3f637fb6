"""A history is a collection of sequences, or a frame with named columns; nothing else is one."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato.core.errors import InvalidParameter
from sfumato.models.histories import recorded_paths
from sfumato.models.markov import MarkovChain
from sfumato.stream.fit_report import row_entropies

ROWS = {"who": ["u1", "u2", "u1", "u2", "u1"], "cell": ["a", "b", "a", "b", "b"]}
PATHS = [["a", "a", "b"], ["b", "b"]]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pd", "pl", "pa"])
def test_a_frame_is_fitted_by_its_columns_not_by_the_letters_of_their_names(make: Any) -> None:
    fitted = MarkovChain.fit(make(ROWS), stream="who", value="cell")
    assert fitted.fingerprint == MarkovChain.fit(PATHS).fingerprint
    with pytest.raises(InvalidParameter, match="stream and value must be given, with a frame"):
        MarkovChain.fit(make(ROWS))
    with pytest.raises(InvalidParameter, match="be one of the columns 'who', 'cell'"):
        MarkovChain.fit(make(ROWS), stream="who", value="place")


def test_a_frame_with_missing_values_is_refused() -> None:
    frame = pl.DataFrame({"who": ["u1", None], "cell": ["a", "b"]})
    with pytest.raises(InvalidParameter, match="column 'who' must have a value in each row"):
        MarkovChain.fit(frame, stream="who", value="cell")


@pytest.mark.parametrize(
    "flat",
    [["walk", "sit", "walk"], [1, 2, 1], "abba", {"u1": ["a", "b"]}, [{"a": 1}], 7, [b"ab"]],
    ids=repr,
)
def test_what_is_no_collection_of_sequences_is_refused(flat: Any) -> None:
    with pytest.raises(InvalidParameter, match="sequences must be a collection of sequences"):
        MarkovChain.fit(flat)


def test_arrays_tuples_and_generators_are_sequences() -> None:
    assert MarkovChain.fit(np.array([[0, 1], [1, 1]])).alphabet.labels == (0, 1)
    assert recorded_paths(tuple(path) for path in PATHS) == [("a", "a", "b"), ("b", "b")]


def test_columns_are_named_for_frames_only() -> None:
    with pytest.raises(InvalidParameter, match="not be given without a frame"):
        MarkovChain.fit(PATHS, value="cell")


def test_entropies_of_sparse_rows_are_those_of_the_rows() -> None:
    rng = np.random.default_rng(3)
    chain = MarkovChain.fit([rng.integers(0, 900, 2000).tolist()])
    assert not isinstance(chain.known, np.ndarray)
    rows = chain.transition()
    assert row_entropies(chain) == pytest.approx(-(rows * np.log(rows)).sum(axis=1), rel=1e-9)


def test_the_stationary_distribution_of_many_symbols_is_left_unchanged() -> None:
    """Transitions between any two symbols: a factor of the matrix would be full."""
    rng = np.random.default_rng(4)
    chain = MarkovChain.fit([rng.zipf(1.2, 30_000).clip(max=4000).tolist()])
    assert chain.size > 2000
    share = chain.stationary()
    assert np.abs(chain.spread(share) - share).sum() < 1e-12
    assert share.sum() == pytest.approx(1.0)
