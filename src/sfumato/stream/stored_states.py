"""The states of many streams as a store keeps them, straight from the arrays of a fleet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.core.ledger import Ledgers
from sfumato.core.state import StreamState
from sfumato.store.answer_columns import PositionColumns
from sfumato.store.codec import forms_to_bytes
from sfumato.stream.fleet_arrays import StreamArrays


def stored_positions(
    plan: str,
    streams: Sequence[str],
    arrays: StreamArrays,
    ledgers: Ledgers,
    last: Ints,
    places: Ints,
) -> PositionColumns:
    """Where some streams stand; the states are what `to_bytes` makes of each `StreamState`.

    Args:
        plan: Fingerprint of the plan.
        streams: Names of these streams.
        arrays: Moments and beliefs of all streams.
        ledgers: What all streams spent.
        last: The symbols that they released last; -1 for none.
        places: Where these streams stand in the arrays.
    """
    forms = _forms(plan, streams, arrays, ledgers, last, places)
    return PositionColumns(
        streams=streams,
        sequences=arrays.moments[places],
        leakage=ledgers.spent[places, 0],
        model_free=ledgers.spent[places, 1],
        states=forms_to_bytes(StreamState, forms),
    )


def _forms(
    plan: str,
    streams: Sequence[str],
    arrays: StreamArrays,
    ledgers: Ledgers,
    last: Ints,
    places: Ints,
) -> Iterator[dict[str, Any]]:
    joints = arrays.joints[places].astype("<f8", copy=False)
    shape, order = arrays.chain.initial.shape, arrays.chain.order
    width, beliefs = joints[:1].nbytes, joints.tobytes()
    moments, keep = arrays.moments[places], ledgers.recent.shape[1]
    columns = (
        streams,
        moments.tolist(),
        np.minimum(moments, order - 1).tolist(),
        arrays.drifts[places].tolist(),
        ledgers.counts[places].tolist(),
        ledgers.spent[places].tolist(),
        ledgers.recent[places].tolist(),
        [None if symbol < 0 else symbol for symbol in last[places].tolist()],
    )
    rows = zip(*columns, strict=True)
    for place, (name, moment, axis, drift, count, (sip, ldp), recent, symbol) in enumerate(rows):
        data = beliefs[place * width : (place + 1) * width]
        joint = {"dtype": "<f8", "shape": shape, "data": data}
        charges = recent[keep - min(count, keep) :]
        yield {
            "plan": plan,
            "stream": name,
            "sequence": moment,
            "belief": {"joint": joint, "axis": axis, "drift": drift, "runs": None},
            "ledger": {"count": count, "sip": sip, "ldp": ldp, "recent": charges},
            "last": symbol,
        }
