"""Evidence of a column as a document: every float with all its digits, every weight an integer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec
import numpy as np

from sfumato.column.column_evidence import ColumnEvidence
from sfumato.column.mechanism_registry import mechanism_named
from sfumato.column.number_error import TrueNumbers
from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats, Ints
from sfumato.core.channel import Channel
from sfumato.core.errors import CorruptData, InvalidParameter, SfumatoError
from sfumato.core.guarantees import LIP
from sfumato.core.loss import matrix
from sfumato.core.response_channel import ResponseChannel
from sfumato.models.encoding import Symbols
from sfumato.models.prior_sets import PriorBall, PriorBox, PriorList, PriorSet
from sfumato.noise.lattice import Lattice
from sfumato.tables.named_loss import NAMED_LOSSES, named_loss
from sfumato.tables.pass_through import Groups

Row = str
"""Numbers with blanks between them: a line of a matrix is a line of the file."""
Read = TypeVar("Read")


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the document: a field that nobody knows is refused."""


class _ChannelDocument(_Strict, frozen=True, kw_only=True):
    """Weights row by row, or those that all rows share with the output that stands for each."""

    outputs: Row
    weights: list[Row] | None = None
    shared: Row | None = None
    target: Row | None = None


class _NumbersDocument(_Strict, frozen=True, kw_only=True):
    masses: Row
    sums: Row
    own: Row
    silence: float


class _WithinDocument(_Strict, frozen=True, kw_only=True):
    kind: str
    rows: list[Row]
    radius: float | None = None


class EvidenceDocument(_Strict, frozen=True, kw_only=True):
    """What a certificate holds of the evidence.

    Attributes:
        labels: The symbols in their order; None for numbers.
        places: Where they lie, if not at their own numbers.
        loss: A table of losses that has no name.
        priors: One for each channel, or each group of reports; none where they are not public, and
            what is sampled does not depend on them.
        of_group: Which of them each group of the kept columns has.
        groups: The cells of each group: what each means, and how it is written.
        channels: The integers that are sampled.
        reports: The integers of reports of sets of symbols.
        within: The set that the prior is known to lie in.
        numbers: Where true numbers lie, cell by cell, for each prior.
    """

    labels: list[str | int] | None
    places: list[Row] | None
    loss: list[Row] | None
    priors: list[Row]
    of_group: Row
    groups: list[list[tuple[str, str]]] | None
    channels: list[_ChannelDocument]
    reports: dict[str, int] | None
    within: _WithinDocument | None
    numbers: list[_NumbersDocument]


def evidence_document(
    evidence: ColumnEvidence, groups: Groups | None, *, public: bool
) -> dict[str, Any]:
    """Evidence as a JSON object.

    Args:
        evidence: All of it.
        groups: The groups of kept columns.
        public: Whether its priors are; else there is nothing but what does not depend on them.
    """
    if not public:
        every = np.zeros((0, 0)), np.zeros(0, np.int64)
        channels = evidence.channels[:1]
        evidence = replace(
            evidence, priors=every[0], of_group=every[1], channels=channels, numbers=()
        )
        groups = None
    where, loss, reporting = evidence.where, evidence.loss, evidence.reporting
    alphabet = where.alphabet if isinstance(where, Symbols) else None
    written = EvidenceDocument(
        labels=None if alphabet is None else list(alphabet.labels),
        places=None if alphabet is None else _places(alphabet),
        loss=None if loss is None or loss.name in NAMED_LOSSES else _rows(loss.matrix),
        priors=_rows(evidence.priors),
        of_group=_row(evidence.of_group),
        groups=None if groups is None else [list(key) for key in groups.keys],
        channels=[_channel(channel) for channel in evidence.channels],
        reports=None
        if reporting is None
        else {
            name: getattr(reporting, name)
            for name in reporting.__dataclass_fields__
            if name != "size"
        },
        within=None if evidence.within is None else _within(evidence.within),
        numbers=[
            _NumbersDocument(
                masses=_row(one.masses), sums=_row(one.sums), own=_row(one.own), silence=one.silence
            )
            for one in evidence.numbers
        ],
    )
    document: dict[str, Any] = msgspec.to_builtins(written)
    return document


def read_evidence(
    document: Any, *, mechanism: str, loss: str, budget: LIP, lattice: Lattice | None
) -> tuple[ColumnEvidence, list[tuple[tuple[str, str], ...]] | None]:
    """Evidence from its document, and the groups of kept columns that it is about.

    Args:
        document: The JSON object.
        mechanism: Which one the certificate names.
        loss: The name of what a wrong symbol costs.
        budget: What was asked for, at the delta that the mechanism uses.
        lattice: The points of numbers; None for symbols.

    Raises:
        CorruptData: If it is no evidence, with the rule that it breaks.
    """
    try:
        read = msgspec.convert(document, EvidenceDocument)
        evidence = _evidence(read, mechanism, loss, budget, lattice)
        if evidence.of_group.min() < 0 or evidence.of_group.max() >= len(evidence.priors):
            raise InvalidParameter("of_group", "another", "name priors")
    except (msgspec.MsgspecError, SfumatoError, ValueError, TypeError, OverflowError) as problem:
        raise CorruptData(f"evidence: {problem}") from problem
    groups = None if read.groups is None else [tuple(key) for key in read.groups]
    if groups is not None and len(groups) != evidence.of_group.size:
        raise CorruptData("evidence: every group must have a prior")
    return evidence, groups


def _evidence(
    read: EvidenceDocument, mechanism: str, loss: str, budget: LIP, lattice: Lattice | None
) -> ColumnEvidence:
    where: Symbols | Lattice
    if lattice is not None:
        where, cost, size = lattice, None, lattice.count
    else:
        alphabet = Alphabet(
            read.labels or (), None if read.places is None else _floats(read.places)
        )
        where, size = Symbols(alphabet), len(alphabet)
        cost = named_loss(loss, alphabet) if read.loss is None else matrix(_floats(read.loss), loss)
    priors = _floats(read.priors) if read.priors else np.full((1, size), 1 / size)
    if priors.shape[1] != size:
        raise InvalidParameter("priors", priors.shape, f"have {size} entries each")
    rule = mechanism_named(mechanism).reports
    reporting = None
    if read.reports is not None:
        if rule is None:
            raise InvalidParameter("reports", mechanism, "come with a mechanism for counting")
        reporting = type(rule(size, 1.0))(size, **read.reports)
    elif len(read.channels) != len(priors):
        raise InvalidParameter("channels", len(read.channels), "be one for each prior")
    return ColumnEvidence(
        where=where,
        budget=budget,
        priors=priors,
        of_group=_whole(read.of_group) if read.priors else np.zeros(1, np.int64),
        channels=tuple(_read_channel(one) for one in read.channels),
        reporting=reporting,
        loss=cost,
        within=None if read.within is None else _read_within(read.within),
        numbers=tuple(
            TrueNumbers(
                _known(lattice),
                _numbers(one.masses),
                _numbers(one.sums),
                _numbers(one.own),
                one.silence,
            )
            for one in read.numbers
        ),
    )


def _channel(channel: Channel) -> _ChannelDocument:
    outputs = _row(channel.outputs)
    if not isinstance(channel, ResponseChannel):
        return _ChannelDocument(outputs=outputs, weights=_rows(channel.weights))
    shared, target = channel.integers
    return _ChannelDocument(outputs=outputs, shared=_row(shared), target=_row(target))


def _read_channel(read: _ChannelDocument) -> Channel:
    match read.weights, read.shared, read.target:
        case list() as rows, None, None:
            return Channel(np.stack([_whole(row) for row in rows]), _whole(read.outputs))
        case None, str() as shared, str() as target:
            return ResponseChannel(_whole(shared), _whole(target), _whole(read.outputs))
        case _:
            raise InvalidParameter("channel", "another", "have weights, or shared and target")


def _known(lattice: Lattice | None) -> Lattice:
    if lattice is None:
        raise InvalidParameter("numbers", "given", "come with an interval")
    return lattice


def _places(alphabet: Alphabet) -> list[Row] | None:
    """Where symbols lie; whole numbers are their own places."""
    if alphabet.coordinates is None or isinstance(alphabet.labels[0], int):
        return None
    return _rows(alphabet.coordinates)


def _within(priors: PriorSet) -> _WithinDocument:
    match priors:
        case PriorBall():
            return _WithinDocument(kind="ball", rows=[_row(priors.centre)], radius=priors.radius)
        case PriorBox():
            return _WithinDocument(kind="box", rows=[_row(priors.lower), _row(priors.upper)])
        case PriorList():
            return _WithinDocument(kind="list", rows=_rows(priors.priors))
        case _:
            raise InvalidParameter("prior", type(priors).__name__, "be a ball, a box or a list")


def _read_within(read: _WithinDocument) -> PriorSet:
    rows = _floats(read.rows)
    match read.kind, read.radius:
        case "ball", float() | int() as radius if len(rows) == 1:
            # As it was: scaling it once more could change a last digit.
            return _as_written(PriorBall(rows[0], radius), "centre", rows[0])
        case "box", None if len(rows) == 2:
            return PriorBox(rows[0], rows[1])
        case "list", None:
            return _as_written(PriorList(rows), "priors", rows)
        case _:
            raise InvalidParameter("within", read.kind, "be a ball, a box or a list of priors")


def _as_written(priors: Read, name: str, value: Floats) -> Read:
    object.__setattr__(priors, name, value)
    return priors


def _row(numbers: Any) -> Row:
    return " ".join(repr(number) for number in np.asarray(numbers).tolist())


def _rows(table: Any) -> list[Row]:
    return [_row(line) for line in table]


def _numbers(row: Row) -> Floats:
    return _canonical(np.array([float(part) for part in row.split(" ")], np.float64), row)


def _whole(row: Row) -> Ints:
    return _canonical(np.array([int(part) for part in row.split(" ")], np.int64), row)


def _canonical(found: Read, row: Row) -> Read:
    if _row(found) != row:  # 0.50 and 0.5 are one number, and two texts
        raise ValueError("numbers must be written in the one way that they have")
    return found


def _floats(rows: Sequence[Row]) -> Floats:
    return np.asarray(np.stack([_numbers(row) for row in rows]))
