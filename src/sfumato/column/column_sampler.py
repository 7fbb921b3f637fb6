"""A mechanism that was made for what is known of a column: its certificates, and its draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import msgspec
import numpy as np

from sfumato.column.column_evidence import ColumnEvidence, Figures, channels_fingerprint
from sfumato.column.column_spec import ColumnSpec
from sfumato.column.knowledge import Knowledge
from sfumato.column.mechanism_registry import Mechanism, ReportRule, mechanism_named
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.core.progress import Progress
from sfumato.noise.frequency import KaryResponse, Reporting
from sfumato.noise.lattice import Lattice
from sfumato.tables.named_loss import named_loss
from sfumato.tables.row_coins import RowCoins

# Rows drawn together, so that memory does not grow with the table.
_BLOCK = 4096
# Bits of reports that are in memory at once.
_REPORTED_CELLS = 20_000_000


@dataclass(frozen=True, slots=True)
class Drawn:
    """What was drawn.

    Attributes:
        values: What leaves, one for each row.
        shares: How often each place was released.
        frequencies: Estimated shares of the symbols among the true values, with standard errors.
    """

    values: list[Any]
    shares: Floats
    frequencies: dict[str, tuple[float, float]] | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ColumnSampler(Figures):
    """A mechanism for a column, ready to draw, with what it promises and costs.

    Attributes:
        evidence: What its figures follow from.
        fingerprint: Identifies mechanism, loss, priors and labels.
        draw: From places and the coins of the rows to what leaves.
    """

    evidence: ColumnEvidence
    fingerprint: str
    draw: Callable[[Ints, RowCoins], Drawn] = field(repr=False)

    @classmethod
    def of(
        cls,
        evidence: ColumnEvidence,
        groups: Floats,
        mechanism: str,
        draw: Callable[[Ints, RowCoins], Drawn],
    ) -> ColumnSampler:
        """The sampler of some evidence, where each group has a share of the rows."""
        figures = evidence.figures(groups)
        known = {part.name: getattr(figures, part.name) for part in fields(Figures)}
        return cls(
            evidence=evidence, fingerprint=evidence.fingerprint(mechanism), draw=draw, **known
        )


def column_sampler(
    spec: ColumnSpec, knowledge: Knowledge, progress: Progress | None = None
) -> ColumnSampler:
    """Make the mechanism that a spec asks for, for what is known of its column."""
    mechanism = mechanism_named(spec.mechanism)
    if spec.ldp is not None and not mechanism.robust:
        raise InvalidParameter("ldp", spec.ldp, "go with the optimal mechanism")
    if knowledge.within is not None and not mechanism.robust:
        raise InvalidParameter("mechanism", mechanism.name, "be optimal for a set of priors")
    if isinstance(knowledge.where, Lattice):
        return _for_numbers(mechanism, spec, knowledge, knowledge.where, progress)
    if spec.delta:
        raise InvalidParameter("delta", spec.delta, "be 0 for symbols: the guarantee is pure")
    if mechanism.reports is not None:
        return _for_reports(mechanism.reports, spec, knowledge)
    return _for_symbols(mechanism, spec, knowledge, progress)


def certified_sampler(
    spec: ColumnSpec, knowledge: Knowledge, evidence: ColumnEvidence
) -> ColumnSampler:
    """The sampler of what a certificate holds; reports are made anew from what was asked."""
    rule = mechanism_named(spec.mechanism).reports
    if rule is not None:
        return _for_reports(rule, spec, knowledge)
    owner = None if knowledge.owner is None else evidence.of_group[knowledge.owner]
    drawing = _drawing(evidence.channels, owner, evidence.labels, evidence.priors)
    return ColumnSampler.of(evidence, knowledge.shares, spec.mechanism, drawing)


def _for_numbers(
    mechanism: Mechanism,
    spec: ColumnSpec,
    knowledge: Knowledge,
    lattice: Lattice,
    progress: Progress | None,
) -> ColumnSampler:
    if spec.loss not in (None, "absolute"):
        raise InvalidParameter("loss", spec.loss, "be absolute for numbers")
    rule = mechanism.numbers
    if rule is None:
        raise InvalidParameter("mechanism", mechanism.name, "be for numbers")
    priors = knowledge.priors
    designs = [rule(lattice, prior, spec.budget, spec.ldp) for prior in _counted(priors, progress)]
    labels = [float(point) for point in lattice.points]
    channels = tuple(design.channel for design in designs)
    evidence = ColumnEvidence(
        where=lattice,
        budget=replace(spec.budget, delta=designs[0].lip.delta),
        priors=priors,
        of_group=np.arange(len(priors)),
        channels=channels,
        numbers=knowledge.numbers,
    )
    drawing = _drawing(channels, knowledge.owner, labels, priors)
    return ColumnSampler.of(evidence, knowledge.shares, mechanism.name, drawing)


def _for_symbols(
    mechanism: Mechanism, spec: ColumnSpec, knowledge: Knowledge, progress: Progress | None
) -> ColumnSampler:
    rule, set_of_priors = mechanism.symbols, knowledge.within
    if rule is None:
        raise InvalidParameter("mechanism", mechanism.name, "be for symbols, or kind be numbers")
    loss = named_loss(spec.loss or "hamming", knowledge.alphabet)
    # People with equal priors share a channel.
    priors, back = np.unique(knowledge.priors, axis=0, return_inverse=True)
    owner = None if knowledge.owner is None else back.ravel()[knowledge.owner]
    designs = [
        rule(prior if set_of_priors is None else set_of_priors, loss, spec.budget, spec.ldp)
        for prior in _counted(priors, progress)
    ]
    labels = list(knowledge.alphabet.labels)
    channels = tuple(design.channel for design in designs)
    evidence = ColumnEvidence(
        where=knowledge.where,
        budget=spec.budget,
        priors=priors,
        of_group=back.ravel(),
        channels=channels,
        loss=loss,
        within=set_of_priors,
    )
    drawing = _drawing(channels, owner, labels, priors)
    return ColumnSampler.of(evidence, knowledge.shares, mechanism.name, drawing)


def _counted(priors: Floats, progress: Progress | None) -> Iterator[Floats]:
    """One prior after another; what was made for each is told when the next is asked for."""
    for place, prior in enumerate(priors):
        yield prior
        if progress:
            progress(place + 1)


def _for_reports(rule: ReportRule, spec: ColumnSpec, knowledge: Knowledge) -> ColumnSampler:
    """Reports of sets of symbols, made for estimating frequencies."""
    labels = list(knowledge.alphabet.labels)
    loss = named_loss(spec.loss or "hamming", knowledge.alphabet)
    reporting = rule(len(labels), spec.epsilon)
    evidence = ColumnEvidence(
        where=knowledge.where,
        budget=spec.budget,
        priors=knowledge.priors,
        of_group=np.arange(len(knowledge.priors)),
        reporting=reporting,
        loss=loss,
    )
    address = evidence.fingerprint(spec.mechanism)
    single = isinstance(reporting, KaryResponse)

    def reports(places: Ints, coins: RowCoins, first: int) -> Bools:
        report = reporting.report  # whether coins may be guessed was settled by the caller
        if not coins.addressed:
            return report(places, coins.source)
        rows = enumerate(places, start=first)
        return np.concatenate([report([place], coins.of(row, address)) for row, place in rows])

    def draw(places: Ints, coins: RowCoins) -> Drawn:
        counts, values = np.zeros(len(labels), dtype=np.int64), []
        # A report names each symbol or not: many people and many symbols come in parts.
        part = max(1, _REPORTED_CELLS // len(labels))
        for first in range(0, places.size, part):
            shown = reports(places[first : first + part], coins, first)
            counts += shown.sum(axis=0)
            chosen = ([labels[place] for place in np.flatnonzero(row)] for row in shown)
            values += [row[0] if single else _listed(row) for row in chosen]
        return reported(reporting, labels, values, counts)

    return ColumnSampler.of(evidence, knowledge.shares, spec.mechanism, draw)


def reported(reporting: Reporting, labels: Sequence[Any], values: list[Any], counts: Ints) -> Drawn:
    """Reports with the shares of the symbols that they let one estimate."""
    people = len(values)
    estimates = reporting.estimate_counts(counts, people).tolist()
    errors = [reporting.variance(min(1.0, max(0.0, share)), people) ** 0.5 for share in estimates]
    frequencies = dict(zip(map(str, labels), zip(estimates, errors, strict=True), strict=True))
    return Drawn(values, np.asarray(counts / max(1, counts.sum())), frequencies)


def _listed(row: list[Any]) -> str:
    """A set of symbols as one cell: a list in JSON, so that no symbol can be taken for two."""
    return msgspec.json.encode(row).decode()


def _drawing(
    channels: Sequence[Channel], owner: Ints | None, labels: Sequence[Any], priors: Floats
) -> Callable[[Ints, RowCoins], Drawn]:
    """Draws each value through the channel of its row; all through the first without owners."""

    def draw(places: Ints, coins: RowCoins) -> Drawn:
        of_row = np.zeros(places.size, dtype=np.int64) if owner is None else owner
        prints = [
            channels_fingerprint([c], labels, p) for c, p in zip(channels, priors, strict=True)
        ]
        # An addressed coin depends on the row's name, its prior and its own channel.
        words = coins.each_word(prints, of_row)
        outputs = np.empty_like(places)
        in_turn = np.argsort(of_row, kind="stable")
        ends = np.flatnonzero(np.diff(of_row[in_turn])) + 1
        for rows in np.split(in_turn, ends):
            for start in range(0, rows.size, _BLOCK):
                block = rows[start : start + _BLOCK]
                outputs[block] = channels[of_row[block[0]]].draw(places[block], words[block])
        shares = np.bincount(outputs, minlength=len(labels)) / outputs.size
        return Drawn([labels[place] for place in outputs], shares)

    return draw
