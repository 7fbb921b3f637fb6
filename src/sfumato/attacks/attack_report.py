"""What an attack on a released file needs beside it, and what it says about each stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.attacks.lower_bound import LowerBound
from sfumato.attacks.track_attack import TrackAttack
from sfumato.core.arrays import Ints
from sfumato.core.guarantees import SIP
from sfumato.models.stream_model import StreamModel
from sfumato.stream.released_tracks import ReleasedTracks
from sfumato.stream.truth_reader import Truths
from sfumato.tables.cells import Missing
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Table

_BLOCK = 65_536


@dataclass(frozen=True, slots=True)
class StreamGain:
    """What one stream told.

    Attributes:
        stream: Its name.
        values: How many values it has.
        gain: How far the belief about its whole track moved, at least.
        value_gain: How far the belief about any one value moved.
        certified: What its rows say that it leaked, at most; None where they say nothing.
    """

    stream: str
    values: int
    gain: LowerBound
    value_gain: float
    certified: SIP | None

    @property
    def refuted(self) -> bool:
        """Whether the rows promise less than was seen to leak."""
        return self.certified is not None and self.gain.exceeds(self.certified)


def stream_gains(attack: TrackAttack, certified: Mapping[str, SIP]) -> list[StreamGain]:
    """What each stream told, those that told most first."""
    tracks = attack.recovery.released
    lengths = np.diff(tracks.starts).tolist()
    found = [
        StreamGain(name, length, gain, single, certified.get(name))
        for name, length, gain, single in zip(
            tracks.streams, lengths, attack.gains, attack.value_gains.tolist(), strict=True
        )
    ]
    return sorted(found, key=lambda one: -one.gain.epsilon)


def read_certified(tables: Sequence[Table], model: StreamModel) -> dict[str, SIP]:
    """What the rows of each stream say that they leaked, added up; nothing if they do not say it.

    A row that says again what was said before counts once.
    """
    charges: dict[str, dict[str, SIP]] = {}
    for table in tables:
        for chunk in table.chunks([model.stream, "sequence"], optional=["sip"]):
            if "sip" not in chunk.columns:
                return {}
            named = (chunk.columns[name] for name in (model.stream, "sequence", "sip"))
            for offset, (stream, sequence, sip) in enumerate(zip(*named, strict=True)):
                try:
                    charge = SIP(float(sip))
                except (TypeError, ValueError):
                    rule = "sip must be a leakage, as the release wrote it"
                    raise BadTable(table.path, chunk.first + offset, rule) from None
                charges.setdefault(str(stream), {})[str(sequence)] = charge
    return {name: sum(own.values(), start=SIP(0.0)) for name, own in charges.items()}


def read_truths(
    tables: Sequence[Table], tracks: ReleasedTracks, model: StreamModel, missing: Missing
) -> Ints:
    """The place of the true symbol of each released value; -1 where it has none.

    Raises:
        BadTable: If the tables do not have the same values of each stream.
    """
    truths = Truths(tables, model, missing)
    places = np.full(len(tracks.places), -1)
    for stream, name in enumerate(tracks.streams):
        for value in range(int(tracks.starts[stream]), int(tracks.starts[stream + 1])):
            symbol = truths.of(name, int(tracks.rows[value])).symbol
            if symbol is not None:
                places[value] = model.alphabet.place(symbol)
    truths.check_used_up()
    return places


def guess_columns(top: int) -> dict[str, type]:
    """The columns of a table of guesses, after that of the streams."""
    likeliest = {f"likeliest_{rank + 1}": str for rank in range(top)}
    chances = {f"chance_{rank + 1}": float for rank in range(top)}
    return {"sequence": int, "released": str, "guess": str, "error": float, **likeliest, **chances}


def guess_rows(attack: TrackAttack) -> Iterator[list[tuple[str | int | float | None, ...]]]:
    """The guesses at all values, some rows at a time."""
    tracks, labels = attack.recovery.released, [str(label) for label in attack.recovery.labels]
    owners = np.repeat(np.arange(len(tracks.streams)), np.diff(tracks.starts))
    moments = tracks.moments
    for first in range(0, len(tracks.places), _BLOCK):
        rows = []
        for value in range(first, min(first + _BLOCK, len(tracks.places))):
            left = int(tracks.places[value])
            rows.append(
                (
                    tracks.streams[int(owners[value])],
                    int(moments[value]),
                    None if left < 0 else labels[left],
                    labels[int(attack.guesses[value])],
                    float(attack.errors[value]),
                    *(labels[place] for place in attack.ranked[value].tolist()),
                    *attack.chances[value].tolist(),
                )
            )
        yield rows
