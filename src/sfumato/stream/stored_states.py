"""The states of many streams as a store keeps them, straight from the arrays of a fleet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat

import numpy as np
from msgspec import Struct

from sfumato.core.arrays import Ints
from sfumato.core.ledger import Ledgers
from sfumato.core.state import StreamState
from sfumato.store.answer_columns import PositionColumns
from sfumato.store.codec import forms_to_bytes
from sfumato.stream.fleet_arrays import StreamArrays


class _Joint(Struct, gc=False):
    """An array as it is stored."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


class _Belief(Struct, gc=False):
    """The fields of a belief as they are stored."""

    joint: _Joint
    axis: int
    drift: float
    runs: None


class _Spends(Struct, gc=False):
    """The fields of what a stream spent as they are stored."""

    count: int
    sip: float
    ldp: float
    recent: list[list[float]]


class _State(Struct, gc=False):
    """The fields of a `StreamState` as they are stored, in their order."""

    plan: str
    stream: str
    sequence: int
    belief: _Belief
    ledger: _Spends
    last: int | None


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
) -> Iterator[_State]:
    joints = arrays.joints[places].astype("<f8", copy=False)
    width, data = joints[:1].nbytes, joints.tobytes()
    moments, keep = arrays.moments[places], ledgers.recent.shape[1]
    counts, spent = ledgers.counts[places].tolist(), ledgers.spent[places]
    recent = zip(counts, ledgers.recent[places].tolist(), strict=True)
    # Made by columns: a state is written for every answer, and a loop would take twice the time.
    cuts = [data[start : start + width] for start in range(0, len(data), width)]
    beliefs = map(
        _Belief,
        map(_Joint, repeat("<f8"), repeat(arrays.chain.initial.shape), cuts),
        np.minimum(moments, arrays.chain.order - 1).tolist(),
        arrays.drifts[places].tolist(),
        repeat(None),
    )
    charges = [own[keep - min(count, keep) :] for count, own in recent]
    spends = map(_Spends, counts, spent[:, 0].tolist(), spent[:, 1].tolist(), charges)
    symbols = [None if symbol < 0 else symbol for symbol in last[places].tolist()]
    return map(_State, repeat(plan), streams, moments.tolist(), beliefs, spends, symbols)
