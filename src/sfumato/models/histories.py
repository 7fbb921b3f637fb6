"""Recorded sequences in whatever form they come: lists of lists, or a frame with two columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.core.alphabet import Label
from sfumato.core.errors import InvalidParameter

_SEQUENCES = "be a collection of sequences, one per stream, as [['a', 'b'], ['b', 'b']]"


def recorded_paths(
    history: Any, stream: str | None = None, value: str | None = None
) -> list[Sequence[Label]]:
    """One sequence of symbols for each stream.

    Args:
        history: A collection of sequences; or a frame (polars, pandas, pyarrow) with one row per
            value, in order.
        stream: Column of a frame that tells streams apart.
        value: Column of a frame that holds the values.

    Raises:
        InvalidParameter: If it is neither. A text is one value, not a sequence of letters.

    Examples:
        >>> recorded_paths([["a", "b"], ("b",)])
        [['a', 'b'], ('b',)]
        >>> recorded_paths(["walk", "sit"])
        Traceback (most recent call last):
        sfumato.core.errors.InvalidParameter: sequences must be a collection of sequences, ...
    """
    if _is_frame(history):
        if stream is None or value is None:
            rule = "be given, with a frame: the columns that hold the streams and the values"
            raise InvalidParameter("stream and value", None, rule)
        return _paths_of_frame(history, stream, value)
    if stream is not None or value is not None:
        raise InvalidParameter("stream and value", "columns", "not be given without a frame")
    if isinstance(history, Mapping | str | bytes) or not isinstance(history, Iterable):
        raise InvalidParameter("sequences", type(history).__name__, _SEQUENCES)
    paths = list(history)
    for path in paths:
        # The letters of a text, and the keys of a mapping, are nobody's sequence.
        if isinstance(path, str | bytes | Mapping) or not isinstance(path, Sequence | np.ndarray):
            raise InvalidParameter("sequences", f"a {type(path).__name__} among them", _SEQUENCES)
    return paths


def _is_frame(history: Any) -> bool:
    return hasattr(history, "columns") or hasattr(history, "__dataframe__")


def _paths_of_frame(frame: Any, stream: str, value: str) -> list[Sequence[Label]]:
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True)
    for name in (stream, value):
        if name not in table.columns:
            rule = f"be one of the columns {', '.join(map(repr, table.columns))}"
            raise InvalidParameter("column", name, rule)
        if table[name].is_null().any():
            raise InvalidParameter(f"column {name!r}", "missing values", "have a value in each row")
    paths: dict[Any, list[Label]] = {}
    for owner, label in zip(table[stream].to_list(), table[value].to_list(), strict=True):
        paths.setdefault(owner, []).append(label)
    return list(paths.values())
