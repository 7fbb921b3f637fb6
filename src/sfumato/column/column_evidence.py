"""What the figures of a released column follow from: priors, losses and integers that are sampled.

Whoever has it computes leakage, cost and silence anew. It holds nothing but public knowledge: of a
prior that was learnt from the very rows, or predicted from features that do not leave, there is
none to be given away.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.column.approximate_leakage import local_leakage_within
from sfumato.column.number_error import TrueNumbers
from sfumato.column.number_mechanisms import number_design
from sfumato.core import portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.channel import Channel
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP, LIP
from sfumato.core.loss import Loss
from sfumato.models.encoding import Symbols
from sfumato.models.prior_sets import PriorSet
from sfumato.noise.frequency import KaryResponse, Reporting
from sfumato.noise.lattice import Lattice
from sfumato.solver.bounded_prior_channel import bounded_leakage
from sfumato.solver.design_result import measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a release of a column promises and costs.

    Attributes:
        lip: Largest exact leakage under the priors.
        ldp: Largest exact leakage whatever the prior.
        loss: What errors are measured by.
        cost: Expected loss of a value, clamping and rounding included; None where a report is no
            single value.
        silence: Expected loss of the best fixed answer, for each prior its own.
        expected: Distribution of the outputs; None for reports of sets.
        rounding: Expected loss of clamping and rounding alone; 0 for symbols.
    """

    lip: LIP
    ldp: LDP
    loss: str
    cost: float | None
    silence: float
    expected: Floats | None
    rounding: float = 0.0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ColumnEvidence:
    """All that the figures of a column follow from, but how many rows each prior is about.

    Attributes:
        where: The alphabet, or the points that stand for numbers.
        budget: What was asked for, at the delta that the mechanism uses.
        priors: One row for each channel; for reports one for each group.
        of_group: Which of them each group has.
        channels: What is sampled; none for reports.
        reporting: Reports of sets of symbols, if that is what leaves.
        loss: What a wrong symbol costs; None for numbers, whose error is absolute.
        within: The set that the prior is known to lie in; None if it is known itself.
        numbers: Where true numbers lie, for each prior; empty for symbols.
    """

    where: Symbols | Lattice
    budget: LIP
    priors: Floats
    of_group: Ints
    channels: tuple[Channel, ...] = ()
    reporting: Reporting | None = None
    loss: Loss | None = None
    within: PriorSet | None = None
    numbers: tuple[TrueNumbers, ...] = field(default=())

    @property
    def labels(self) -> list[Any]:
        """What can leave, place by place."""
        if isinstance(self.where, Lattice):
            return [float(point) for point in self.where.points]
        return list(self.where.alphabet.labels)

    def fingerprint(self, mechanism: str) -> str:
        """Identifies mechanism, loss, priors and labels."""
        if self.reporting is not None:
            return digest("reports", mechanism, repr(self.reporting), *map(repr, self.labels))
        sampled = channels_fingerprint(self.channels, self.labels, self.priors)
        return sampled if self.loss is None else digest(self.loss.fingerprint, sampled)

    @property
    def local(self) -> LDP:
        """Leakage whatever the prior, of what does not depend on one: the same for all groups."""
        if self.reporting is not None:
            return self.reporting.local
        return local_leakage_within(self.channels[0], self.budget.delta)

    def figures(self, groups: Floats) -> Figures:
        """What it promises and costs, where each group has a share of the rows."""
        # Groups that no row belongs to are not released, and promise nothing.
        shares = np.bincount(self.of_group, groups, len(self.priors)).astype(np.float64)
        if self.reporting is not None:
            return self._reported(self.reporting, shares)
        if isinstance(self.where, Lattice):
            return self._of_numbers(self.where, shares)
        return self._of_symbols(shares)

    def _of_numbers(self, lattice: Lattice, shares: Floats) -> Figures:
        designs = [
            number_design(channel, lattice, None, prior, self.budget)
            for channel, prior in zip(self.channels, self.priors, strict=True)
        ]
        used = [design for design, share in zip(designs, shares, strict=True) if share > 0]
        pairs = zip(self.numbers, self.channels, strict=True)
        return Figures(
            lip=max((design.lip for design in used), key=lambda lip: lip.epsilon),
            ldp=max((design.ldp for design in used), key=lambda ldp: ldp.epsilon),
            loss="absolute",
            cost=_mean(shares, [one.error(channel) for one, channel in pairs]),
            silence=_mean(shares, [one.silence for one in self.numbers]),
            expected=self._expected(shares),
            rounding=_mean(shares, [one.rounding for one in self.numbers]),
        )

    def _of_symbols(self, shares: Floats) -> Figures:
        loss = self._fresh_loss()
        pairs = list(zip(self.channels, self.priors, strict=True))
        used = [pair for pair, share in zip(pairs, shares, strict=True) if share > 0]
        within = self.within
        if within is None:
            designs = [measured(channel, prior, loss) for channel, prior in pairs]
            leakage = max(measured(channel, prior, loss).sip.epsilon for channel, prior in used)
        else:
            table = self._fresh_loss().matrix
            designs = [measured(channel, within.nominal, table) for channel, _ in pairs]
            leakage = max(bounded_leakage(channel, within).epsilon for channel, _ in used)
        return Figures(
            lip=LIP(leakage),
            ldp=LDP(max(measured(channel, prior, loss).ldp.epsilon for channel, prior in used)),
            loss=loss.name,
            cost=_mean(shares, [design.cost for design in designs]),
            silence=_mean(shares, [float(loss.means(prior).min()) for prior in self.priors]),
            expected=self._expected(shares),
        )

    def _reported(self, reporting: Reporting, shares: Floats) -> Figures:
        loss = self._fresh_loss()
        true, other = reporting.shown
        mean = np.asarray(portable.dot(shares, self.priors))
        # Reports of one symbol are values; those of several have no loss.
        single = isinstance(reporting, KaryResponse)
        right = portable.dot(mean, loss.paired(np.arange(mean.size)))
        cost = float((true - other) * right + other * loss.means(mean).sum())
        known = np.unique(self.priors[shares > 0], axis=0)
        return Figures(
            lip=LIP(max(reporting.leakage(prior).epsilon for prior in known)),
            ldp=reporting.local,
            loss=loss.name,
            cost=cost if single else None,
            silence=_mean(shares, [float(loss.means(prior).min()) for prior in self.priors]),
            expected=(true - other) * mean + other * mean.sum() if single else None,
        )

    def _fresh_loss(self) -> Loss:
        """The loss without a table that a design may have made: which one is there moves digits."""
        loss = self.loss
        if loss is None:
            raise InvalidParameter("loss", None, "be given for symbols")
        if loss.measure is None or loss.places is None:
            return loss
        return Loss.between(loss.measure, loss.places)

    def _expected(self, shares: Floats) -> Floats:
        total = np.zeros(self.priors.shape[1])
        for channel, prior, share in zip(self.channels, self.priors, shares, strict=True):
            total[channel.outputs] += share * channel.mean_weights(prior)
        return np.asarray(total / total.sum())


def _mean(shares: Floats, values: Sequence[float]) -> float:
    """Rounded once, whatever the machine."""
    return math.fsum(share * value for share, value in zip(shares.tolist(), values, strict=True))


def channels_fingerprint(channels: Sequence[Channel], labels: Sequence[Any], priors: Floats) -> str:
    """Identifies channels by what is sampled, with the priors that they are for."""
    parts = [channel.fingerprint for channel in channels]
    return digest("channels", priors, *parts, *map(repr, labels))
