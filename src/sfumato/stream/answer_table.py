"""Answers by columns, as they stand in the output: public things only."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.events import OUTCOMES
from sfumato.models.encoding import Grid
from sfumato.models.stream_model import StreamModel
from sfumato.store.answer_columns import Coded
from sfumato.stream.column_rows import RowColumns
from sfumato.stream.fleet_answers import Run
from sfumato.tables.spelling import Cells

AnswerTable: TypeAlias = dict[str, Cells]


def answer_table(model: StreamModel, rows: RowColumns, run: Run) -> AnswerTable:
    """What leaves for some rows: the columns of `output_columns`."""
    table: AnswerTable = {} if rows.ids is None else {"event": rows.ids}
    table[model.stream] = rows.streams
    table.update(rows.beside)
    table["sequence"] = run.sequences
    table["released"] = Coded(run.released, model.alphabet.labels)
    if run.signals is not None:
        table["signal"] = np.ma.masked_array(run.signals, run.signals < 0)
    if isinstance(model.encoding, Grid):
        assert model.alphabet.coordinates is not None  # the cells of a grid have middles
        for axis, name in enumerate("xy"):
            table[name] = _middles(model.alphabet.coordinates[:, axis], run.released)
    table["outcome"] = Coded(run.outcomes.astype(np.int64), [one.value for one in OUTCOMES])
    table["sip"], table["ldp"] = run.charges[:, 0], run.charges[:, 1]
    return table


def _middles(middles: Floats, released: Ints) -> Coded[float]:
    """Coordinates of cells; none where nothing left."""
    return Coded(released, middles.tolist())
