"""Rows of a released table, read and compared with what was due."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.core.alphabet import Label
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import UnknownSymbol
from sfumato.core.events import Event, Outcome
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.printed import shown_up
from sfumato.models.encoding import Symbols, Unreadable
from sfumato.models.stream_model import StreamModel

_KEYS = np.frombuffer(secrets.token_bytes(9 * 8), dtype=np.uint64) | np.uint64(1)


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A row of the released table.

    Attributes:
        number: Its number in the file.
        fields: Its cells.
        event: What it says that happened.
    """

    number: int
    fields: dict[str, Any]
    event: Event


def read_event(
    stream: str, fields: dict[str, Any], model: StreamModel, signal: str = "signal"
) -> Event:
    """The row as an event, in the types of the alphabet; `signal` is the column of signals.

    Raises:
        Unreadable: If it is not as a release writes it.
        UnknownSymbol: If what was released is no symbol.
    """
    try:
        outcome = Outcome(fields["outcome"])
        sequence = int(fields["sequence"])
        sip, ldp = SIP(float(fields["sip"])), LDP(float(fields["ldp"]))
    except (ValueError, TypeError):
        raise Unreadable(
            "outcome, sequence, sip and ldp must be as the release wrote them"
        ) from None
    try:
        batch = int(fields["batch"]) if "batch" in fields else None
    except (ValueError, TypeError):
        raise Unreadable("batch must be the sequence number at which the batch began") from None
    said = read_signal(fields.get(signal))
    released = released_symbol(fields["released"], model)
    return Event(stream, sequence, outcome, released, sip, ldp, batch, said)


def read_signal(cell: Any) -> int | None:
    """The output of its channel that a row names; None if it names none.

    Raises:
        Unreadable: If it is no whole number as a release writes it.

    Examples:
        >>> read_signal("3")
        3
    """
    if cell in (None, ""):
        return None
    try:
        signal = int(cell)
    except (ValueError, TypeError):
        signal = -1
    # One way to write a number: others would be room for a message.
    if signal < 0 or str(cell) != str(signal):
        raise Unreadable("signal must be the number of an output, as the release wrote it")
    return signal


def released_symbol(cell: Any, model: StreamModel) -> Label | None:
    """The symbol in a cell of a released table, in the type of the alphabet; None if empty."""
    if cell in (None, ""):
        return None
    label = cell
    if isinstance(model.alphabet.labels[0], int):
        label = Symbols(model.alphabet).encode(cell)
    if label not in model.alphabet:
        raise UnknownSymbol(len(model.alphabet), "the released value")
    read: Label = label
    return read


def differences(event: Event, due: Event, who: str) -> Iterator[str]:
    """The rules that an event breaks, given what was due."""
    if event.released != due.released or event.outcome is not due.outcome:
        yield f"{who} must say what was released, and nothing else"
    if event.signal != due.signal:
        yield f"{who} must say which output of the channel left, and nothing else (signal)"
    if event.batch != due.batch:
        yield f"{who} must say that the batch began at {due.batch}"
    if event.phase is not None and event.phase != due.phase:
        yield f"{who} must say when its value was: the time lies in another phase"
    if event.period is not None and event.period != due.period:
        yield f"{who} must say when its value was: the time lies in another period of the budget"
    for name in ("sip", "ldp"):
        said, true = getattr(event, name).epsilon, getattr(due, name).epsilon
        if said != true:
            shown = shown_up(true, 9), shown_up(said, 9)
            near = "" if shown[0] != shown[1] else ", in digits that are not shown"
            yield f"{name} must be {shown[0]}; {who} says {shown[1]}{near}"


def misspelled(
    row: AuditRow, model: StreamModel, *, text: bool, signal: str = "signal"
) -> Iterator[str]:
    """The cells that are not written as a release writes what they say.

    One way to write a number: others would be room for a message.

    Args:
        row: A row that was read.
        model: The model.
        text: Whether cells are texts, as in CSV; else they have types.
        signal: The column of signals.
    """
    event = row.event
    centre: list[float | None] = [None, None]
    places = model.alphabet.coordinates
    if "x" in row.fields and places is not None and event.released is not None:
        centre = places[model.alphabet.index(event.released)].tolist()
    due = {
        "sequence": event.sequence,
        "batch": event.batch,
        "released": event.released,
        signal: event.signal,
        "x": centre[0],
        "y": centre[1],
        "outcome": event.outcome.value,
        "sip": event.sip.epsilon,
        "ldp": event.ldp.epsilon,
    }
    for name, cell in row.fields.items():
        if name not in due:
            # Names of streams, event ids and kept columns are texts, and their own affair.
            if not isinstance(cell, str) and (cell is not None or name == model.stream):
                yield f"column {name!r} must hold texts"
        elif not same_cell(cell, due[name], text=text):
            if name in ("x", "y"):
                yield "x and y must be the centre of the released cell, as the release writes it"
                return
            yield f"{name} must be written as the release writes it"


def same_cell(cell: Any, due: Label | float | None, *, text: bool) -> bool:
    """Whether a cell is written as a release writes a value."""
    if text:
        return bool(cell == ("" if due is None else str(due)))
    # Two floats of one value are written alike but for the sign of zero.
    return type(cell) is type(due) and repr(cell) == repr(due)


def fingerprints(
    released: Ints,
    signals: Ints,
    outcomes: Ints,
    leakages: Floats,
    batches: Ints | None = None,
    times: Sequence[Ints] = (),
) -> Ints:
    """Eight bytes of what each of some rows says: keyed, so that nobody can look for two alike.

    Args:
        released: Places of symbols; -1 for none.
        signals: Outputs of channels; -1 for none.
        outcomes: What left, as places in `OUTCOMES`.
        leakages: Both certificates.
        batches: Where batches began; -1, or nothing, for none.
        times: What follows from times, phases and periods, where anything does.
    """
    bits = np.ascontiguousarray(leakages).view(np.int64)
    batches = np.full(len(released), -1, dtype=np.int64) if batches is None else batches
    mixed = np.full(len(released), _KEYS[0], dtype=np.uint64)
    parts = (released, signals, outcomes, *bits.T, batches, *times)
    for key, part in zip(_KEYS[1 : 1 + len(parts)], parts, strict=True):
        mixed = (mixed ^ part.astype(np.uint64)) * key
        mixed ^= mixed >> np.uint64(29)
    return mixed.view(np.int64)
