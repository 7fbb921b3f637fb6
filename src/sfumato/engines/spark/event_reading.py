"""Which events can be read, and the places of their values: one judgement for all who ask.

A release leaves out, and a query of dead letters tells of, the very same events: both ask here. The
judgement follows from the event alone, whatever else is in its micro-batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.core.purpose import Fallback
from sfumato.models.encoding import Bins, Grid
from sfumato.models.stream_model import StreamModel
from sfumato.store.live import Refused, Reply
from sfumato.store.live_intake import refused_names
from sfumato.stream.live_values import LiveValues
from sfumato.tables.cells import Missing

if TYPE_CHECKING:
    import pandas as pd


class EventReader:
    """Reads events of a model; remembers how symbols are spelled.

    Args:
        model: How values are read.
        missing: What becomes of a missing value.
        unknown: What leaves for a value outside the alphabet.

    Examples:
        >>> import pandas as pd
        >>> import sfumato as sf
        >>> from sfumato.models.encoding import Symbols
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> model = StreamModel(chain, Symbols(chain.alphabet))
        >>> reader = EventReader(model, Missing.REFUSE, Fallback.REFUSE)
        >>> cells, bad = reader.read(["ann", ""], ["e1", "e2"], [pd.Series([1, 0])])
        >>> cells.tolist(), bad
        ([1, 0], {1: 'the stream must not be empty'})
    """

    def __init__(self, model: StreamModel, missing: Missing, unknown: Fallback) -> None:
        self._model = model
        self._values = LiveValues(model, missing, unknown)

    def read(
        self, streams: Sequence[str], ids: Sequence[str], values: list[pd.Series]
    ) -> tuple[Ints, dict[int, str]]:
        """Places of true symbols, as `Fleet.run` has them, and the rules that events break.

        Args:
            streams: Whose.
            ids: What tells each event from others of its stream.
            values: The columns of values.

        Returns:
            The places, and for each event that cannot be read its number and the rule.
        """
        refused = refused_names(ids, streams)
        cells = self._cells(values, refused)
        return cells, {row: _rule(reply) for row, reply in refused.items()}

    def _cells(self, values: list[pd.Series], bad: dict[int, Reply]) -> Ints:
        """Places of the true symbols; what cannot be read gets into `bad`."""
        if isinstance(self._model.encoding, Bins | Grid):
            parts = [_plain(value) for value in values]
            rows = parts[0] if len(parts) == 1 else [list(one) for one in zip(*parts, strict=True)]
            return self._values.cells(rows, bad)
        # Of symbols each spelling is read once.
        codes, words = values[0].factorize(use_na_sentinel=False)
        wrong: dict[int, Reply] = {}
        spelled = [None if one != one else one for one in words.tolist()]
        cells = self._values.cells(spelled, wrong)
        for place, reply in wrong.items():
            for row in np.flatnonzero(codes == place).tolist():
                bad.setdefault(row, reply)
        return np.asarray(cells[codes])


def _rule(reply: Reply) -> str:
    assert isinstance(reply, Refused)
    return reply.detail


def _plain(value: pd.Series) -> list[Any]:
    """Cells as Python has them; None for those that are missing."""
    gone = value.isna().to_numpy()
    cells = value.tolist()
    return [None if no else cell for no, cell in zip(gone, cells, strict=True)]
