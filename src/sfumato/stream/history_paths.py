"""True streams to try a plan on: drawn from the model, or read from a table it has not seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.randomness import Address, Domain, seeded
from sfumato.models.encoding import Unreadable
from sfumato.models.stream_model import StreamModel
from sfumato.models.value_chains import ValueChain
from sfumato.tables.cells import is_missing, stream_name
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Table

TruePath = Sequence[int]
"""Places of the true symbols of a stream; -1 for one that is missing or outside the alphabet."""


def draw_paths(chain: ValueChain, length: int, streams: int, seed: int) -> list[TruePath]:
    """Streams that the model itself draws, each with coins of its own."""
    checks.count("length", length)
    coins = [
        seeded(seed).at(Address(Domain.SIMULATION, chain.fingerprint, f"truth {number}", 0))
        for number in range(checks.count("streams", streams))
    ]
    return [chain.sample(length, own).tolist() for own in coins]


def read_paths(
    history: Table, model: StreamModel, *, streams: int, length: int | None = None
) -> list[TruePath]:
    """The first streams of a table, each cut to a length if one is given."""
    return list(named_paths(history, model, streams=streams, length=length).values())


def named_paths(
    history: Table, model: StreamModel, *, streams: int | None = None, length: int | None = None
) -> dict[str, list[int]]:
    """The same with the names of the streams; all of them if no number is given."""
    paths: dict[str, list[int]] = {}
    for chunk in history.chunks([model.stream, *model.values]):
        cells = zip(*(chunk.columns[name] for name in model.values), strict=True)
        owners = chunk.columns[model.stream]
        for offset, (owner, value) in enumerate(zip(owners, cells, strict=True)):
            row = chunk.first + offset
            name = stream_name(owner, model.stream, history.path, row)
            if name not in paths and streams is not None and len(paths) >= streams:
                continue
            path = paths.setdefault(name, [])
            if length is None or len(path) < length:
                path.append(_place(value, model, history.path, row))
    if not paths:
        raise BadTable(history.path, None, "the table must have at least one row")
    return paths


def _place(value: tuple[object, ...], model: StreamModel, source: str, row: int) -> int:
    try:
        return model.alphabet.place(model.encoding.encode(*value))  # type: ignore[arg-type]
    except Unreadable as problem:
        if any(is_missing(cell) for cell in value):  # type: ignore[arg-type]
            return -1
        raise BadTable(source, row, f"the value {problem}") from None


def mean_and_error(sums: Floats, counts: Floats) -> tuple[float, float]:
    """Mean per value and its standard error over streams, which may differ in length.

    Examples:
        >>> import numpy as np
        >>> mean_and_error(np.array([2.0, 4.0]), np.array([10.0, 10.0]))
        (0.3, 0.1)
    """
    mean = float(sums.sum() / counts.sum())
    if len(sums) < 2:
        return mean, math.inf
    apart = sums - mean * counts
    spread = math.sqrt(len(sums) / (len(sums) - 1) * float(apart @ apart))
    return mean, spread / float(counts.sum())
