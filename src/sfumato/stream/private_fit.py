"""From a table of recorded people to a model that promises something to each of them.

What leaves is the model and the report, so nothing of either may come from the table but through
noise: symbols, ranges and the number of transitions of a person are given, values that are missing,
unreadable or no symbols part what stands around them in silence, and rows are not even counted. A
table without rows is fitted like any other. What cannot be read as a table at all (a torn line, a
row without a name) is refused, with its row: that error is for whoever has the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core.alphabet import Label
from sfumato.core.arrays import Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.progress import Progress
from sfumato.core.randomness import Randomness, secure
from sfumato.models.encoding import (
    DEGREES,
    Bins,
    Encoding,
    Grid,
    Raw,
    Symbols,
    Unreadable,
    check_degrees,
)
from sfumato.models.private_history import PrivateHistory
from sfumato.models.stream_model import StreamModel
from sfumato.stream.fit_model import AS_IT_IS, Cut, read_history
from sfumato.stream.fit_report import predictability
from sfumato.stream.private_counts import PrivacySpec, private_chain
from sfumato.tables.problems import EmptyTable
from sfumato.tables.readers import Table


@dataclass(frozen=True, slots=True)
class PrivateFitReport:
    """What may be said of a private fit: nothing that is not in the model already.

    Attributes:
        symbols: Size of the alphabet, which was given.
        transitions: About how many transitions were counted, noise included.
        predictability: Share of the uncertainty about a value that its past takes away.
        private: The promise.
        warnings: What a careful user should know.
    """

    symbols: int
    transitions: int
    predictability: float
    private: PrivateHistory
    warnings: tuple[str, ...]


def fit_private(
    history: Table,
    privacy: PrivacySpec,
    *,
    alphabet: Sequence[Label] | None = None,
    stream: str = "stream",
    values: tuple[str, ...] = ("value",),
    smoothing: float = 0.5,
    floor: float = 1e-6,
    cut: Cut = AS_IT_IS,
    randomness: Randomness | None = None,
    progress: Progress | None = None,
) -> tuple[StreamModel, PrivateFitReport]:
    """Fit a chain of order 1 under differential privacy of whole people.

    Guarantee:
        Pure differential privacy at the epsilon of `privacy`, for adding or removing all rows of
        one person (one name in the column `stream`), computed from the integers that are drawn
        from. Each further fit to the same people adds its own.

    Args:
        history: The table; rows of different people may be interleaved.
        privacy: What may leak about a person.
        alphabet: The symbols, which must be public: those that occur are not. None with bins or a
            grid, which then need ranges.
        stream: Column that tells people apart.
        values: Column of the value; two columns for a grid.
        smoothing: Pseudo-counts per follower, and per mean size of the noise.
        floor: Least probability of any transition.
        cut: How numbers become symbols, with ranges.
        randomness: Coins; secure ones if not given.
        progress: Called with the number of rows read so far.

    Raises:
        InvalidParameter: If symbols or ranges would have to be taken from the table.
        InsecureRandomness: If the coins can be guessed and this is no simulation.
    """
    encoding = _public_encoding(cut, alphabet, len(values))
    if cut.unit == DEGREES:
        check_degrees(encoding)
    coins = secure() if randomness is None else randomness
    try:
        _, paths, raws = read_history(history, stream, values, progress)
    except EmptyTable:
        paths, raws = [], []  # nobody: to refuse that would tell of the last one who left
    codes = np.array([_code(encoding, cells) for cells in zip(*raws, strict=True)])
    people = [_runs(codes[np.array(path)]) for path in paths]
    chain, total = private_chain(
        people, encoding.alphabet, privacy, coins, smoothing=smoothing, floor=floor
    )
    promise, about = privacy.certificate(stream), round(total)
    model = StreamModel(chain, encoding, stream, values, about, cut.unit, promise)
    warnings = _warnings(total, chain.size, promise)
    report = PrivateFitReport(chain.size, about, predictability(chain), promise, warnings)
    return model, report


def _public_encoding(cut: Cut, alphabet: Sequence[Label] | None, inputs: int) -> Encoding:
    """How values become symbols, from what was given alone."""
    numeric = cut.bins is not None or inputs == 2
    if numeric and (alphabet is not None or len(cut.ranges) != inputs):
        rule = "be given for bins and grids: the range of the history is itself private"
        raise InvalidParameter("--range", cut.ranges or None, rule)
    if inputs == 2:
        if cut.columns is None or cut.rows is None:
            raise InvalidParameter("cut", "no grid", "give the columns and rows of a grid")
        along, across = cut.ranges
        grid = Grid.covering(along, across, cut.columns, cut.rows)
        return Grid(grid.x_edges, grid.y_edges, clip=True)
    if cut.bins is not None:
        return Bins(Bins.covering(cut.ranges[0], cut.bins).edges, clip=True)
    if not alphabet or cut.ranges or cut.unit:
        rule = "list the symbols: which of them occur is itself private"
        raise InvalidParameter("--values", None if not alphabet else "given", rule)
    return Symbols.of(alphabet)


def _code(encoding: Encoding, cells: tuple[Raw, ...]) -> int:
    """The place of a value; -1 for whatever is no symbol: to refuse one would tell of it."""
    try:
        label = encoding.encode(*cells)
    except Unreadable:
        return -1
    return -1 if label is None else encoding.alphabet.index(label)


def _runs(codes: Ints) -> list[Ints]:
    """Successive values of one person; what is no symbol parts them."""
    parts = np.split(codes, np.flatnonzero(codes < 0))
    closed = [part[part >= 0] for part in parts]
    return [part for part in closed if part.size]


def _warnings(total: float, size: int, promise: PrivateHistory) -> tuple[str, ...]:
    """Whether noise drowns what was counted; from noisy counts alone."""
    noise = promise.move_scale * size
    if total >= 2 * noise * size**0.5:
        return ()
    return (
        "the noise is as large as what was counted: more people, a larger epsilon or fewer symbols "
        "would help; compare with a model without history",
    )
