"""The one-shot mechanisms by name, each ready to draw and with its certificate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, assert_never

import msgspec
import numpy as np
from numpy.typing import NDArray

from sfumato.column import number_mechanisms as numbers
from sfumato.column.bounded_prior import bounded_prior
from sfumato.column.column_knowledge import Known
from sfumato.column.number_mechanisms import NumberDesign
from sfumato.column.quantile_response import quantile_response
from sfumato.core import checks
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.channel import Channel
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP, LIP
from sfumato.core.loss import Loss
from sfumato.core.progress import Progress
from sfumato.noise.frequency import KaryResponse, Reporting, SubsetSelection, UnaryEncoding
from sfumato.noise.lattice import Lattice, Noise
from sfumato.solver.design_methods import Method
from sfumato.solver.design_methods import design as design_by
from sfumato.solver.design_result import Design
from sfumato.tables.named_loss import named_loss
from sfumato.tables.row_coins import RowCoins

_SOLVED = 64
"""Points up to which the optimum is found exactly."""
_BLOCK = 4096
"""Rows drawn together, so that memory does not grow with the table."""


class Mechanism(StrEnum):
    """How a column is released.

    Examples:
        >>> Mechanism("laplace-each")
        <Mechanism.LAPLACE_EACH: 'laplace-each'>
    """

    OPTIMAL = "optimal"
    CALIBRATED = "calibrated"
    CONTEXT_FREE = "context-free"
    PUBLISHED = "published"
    RANDOMIZED_RESPONSE = "randomized-response"
    UNARY_ENCODING = "unary-encoding"
    SUBSET_SELECTION = "subset-selection"
    GAUSSIAN = "gaussian"
    GAUSSIAN_EACH = "gaussian-each"
    GAUSSIAN_LOCAL = "gaussian-local"
    LAPLACE = "laplace"
    LAPLACE_EACH = "laplace-each"
    LAPLACE_LOCAL = "laplace-local"
    SAMPLING = "sampling"
    QUANTILE_RESPONSE = "quantile-response"


_FOR_SYMBOLS = {
    Mechanism.OPTIMAL: Method.OPTIMAL,
    Mechanism.CALIBRATED: Method.CALIBRATED,
    Mechanism.CONTEXT_FREE: Method.CONTEXT_FREE,
    Mechanism.PUBLISHED: Method.PUBLISHED,
}


@dataclass(frozen=True, slots=True)
class Released:
    """What was drawn.

    Attributes:
        values: What leaves, one for each row.
        shares: How often each place was released.
        frequencies: Estimated shares of the symbols among the true values, with standard errors.
    """

    values: list[Any]
    shares: Floats
    frequencies: dict[str, tuple[float, float]] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class OneShot:
    """A mechanism for a column, ready to draw.

    Attributes:
        lip: Largest exact leakage under the priors.
        ldp: Largest exact leakage whatever the prior.
        loss: What errors are measured by.
        cost: Expected loss of a value, clamping and rounding included; None where a report is no
            single value.
        nothing: Expected loss of the best fixed answer, for each prior its own.
        expected: Distribution of the outputs; None for reports.
        rounding: Expected loss of clamping and rounding alone; 0 for symbols.
        fingerprint: Identifies mechanism, loss, priors and labels.
        draw: From places and the coins of the rows to what leaves.
    """

    lip: LIP
    ldp: LDP
    loss: str
    cost: float | None
    nothing: float
    expected: Floats | None
    fingerprint: str
    rounding: float
    draw: Callable[[Ints, RowCoins], Released] = field(repr=False)


def one_shot(
    mechanism: Mechanism,
    known: Known,
    budget: LIP,
    *,
    loss: str | None = None,
    ldp: float | None = None,
    progress: Progress | None = None,
) -> OneShot:
    """Make a mechanism for what is known of a column.

    Args:
        mechanism: Which.
        known: Possible values and priors.
        budget: Leakage allowed under the prior.
        loss: What a wrong symbol costs.
        ldp: Cap on the leakage whatever the prior.
        progress: Told for how many people a mechanism was made.
    """
    if ldp is not None and mechanism is not Mechanism.OPTIMAL:
        raise InvalidParameter("ldp", ldp, "go with the optimal mechanism")
    if known.within is not None and mechanism is not Mechanism.OPTIMAL:
        raise InvalidParameter("mechanism", mechanism.value, "be optimal for a set of priors")
    if isinstance(known.where, Lattice):
        if loss not in (None, "absolute"):
            raise InvalidParameter("loss", loss, "be absolute for numbers")
        return _for_numbers(mechanism, known, known.where, budget, ldp, progress)
    if budget.delta:
        raise InvalidParameter("delta", budget.delta, "be 0 for symbols: the guarantee is pure")
    if mechanism in _REPORTS:
        return _reporting(mechanism, known, budget.epsilon, loss)
    if mechanism not in _FOR_SYMBOLS:
        raise InvalidParameter("mechanism", mechanism.value, "be for symbols, or kind be numbers")
    return _for_symbols(_FOR_SYMBOLS[mechanism], known, budget.epsilon, loss, ldp, progress)


def _for_numbers(
    mechanism: Mechanism,
    known: Known,
    lattice: Lattice,
    budget: LIP,
    ldp: float | None,
    progress: Progress | None,
) -> OneShot:
    made = []
    for place, prior in enumerate(known.priors):
        made.append(number_mechanism(mechanism, lattice, prior, budget, ldp))
        if progress:
            progress(place + 1)
    labels = [float(point) for point in lattice.points]
    channels, shares = [one.channel for one in made], known.shares
    true = [
        numbers.error(channel) for numbers, channel in zip(known.numbers, channels, strict=True)
    ]
    # Groups that no row belongs to are not released, and promise nothing.
    used = [one for one, share in zip(made, shares, strict=True) if share > 0]
    return OneShot(
        lip=max((one.lip for one in used), key=lambda lip: lip.epsilon),
        ldp=max((one.ldp for one in used), key=lambda ldp: ldp.epsilon),
        loss="absolute",
        cost=float(shares @ true),
        nothing=float(shares @ [numbers.silence for numbers in known.numbers]),
        expected=_expected(channels, known.priors, shares),
        fingerprint=_fingerprint(channels, labels, known.priors),
        rounding=float(shares @ [numbers.rounding for numbers in known.numbers]),
        draw=_drawing(channels, known.owner, labels, known.priors),
    )


def number_mechanism(
    mechanism: Mechanism, lattice: Lattice, prior: Floats, budget: LIP, ldp: float | None
) -> NumberDesign:
    """A mechanism for numbers by its name."""
    arguments = (lattice, prior, budget.epsilon, budget.delta)
    match mechanism:
        case Mechanism.OPTIMAL:
            best = numbers.optimal_number(lattice, prior, budget.epsilon, ldp=ldp)
            if ldp is not None or lattice.count <= _SOLVED:
                return best
            # On many points the search ends within 2 % of the optimum: a rival may be nearer.
            return min(best, quantile_response(lattice, prior, budget.epsilon), key=_cost)
        case Mechanism.QUANTILE_RESPONSE:
            return quantile_response(lattice, prior, budget.epsilon)
        case Mechanism.SAMPLING:
            return numbers.sampling(*arguments)
        case Mechanism.GAUSSIAN:
            return numbers.least_noise(Noise.GAUSSIAN, *arguments)
        case Mechanism.LAPLACE:
            return numbers.least_noise(Noise.LAPLACE, *arguments)
        case Mechanism.GAUSSIAN_EACH:
            return numbers.least_noise_each(Noise.GAUSSIAN, *arguments)
        case Mechanism.LAPLACE_EACH:
            return numbers.least_noise_each(Noise.LAPLACE, *arguments)
        case Mechanism.GAUSSIAN_LOCAL:
            if budget.delta == 0:
                raise InvalidParameter("delta", 0.0, "be positive for gaussian-local")
            return numbers.local_noise(Noise.GAUSSIAN, *arguments)
        case Mechanism.LAPLACE_LOCAL:
            return numbers.local_noise(Noise.LAPLACE, *arguments)
        case (
            Mechanism.CALIBRATED
            | Mechanism.CONTEXT_FREE
            | Mechanism.PUBLISHED
            | Mechanism.RANDOMIZED_RESPONSE
            | Mechanism.UNARY_ENCODING
            | Mechanism.SUBSET_SELECTION
        ):
            raise InvalidParameter("mechanism", mechanism.value, "be for numbers")
        case _:
            assert_never(mechanism)


def _cost(design: NumberDesign) -> float:
    return design.cost


def _for_symbols(
    method: Method,
    known: Known,
    epsilon: float,
    loss: str | None,
    ldp: float | None,
    progress: Progress | None,
) -> OneShot:
    costs = named_loss(loss or "hamming", known.alphabet)
    # People with equal priors share a channel.
    different, back = np.unique(known.priors, axis=0, return_inverse=True)
    owner = None if known.owner is None else back.ravel()[known.owner]
    shares = np.asarray(np.bincount(back.ravel(), known.shares, len(different)), np.float64)
    found: list[Design] = []
    for place, prior in enumerate(different):
        if known.within is not None:
            found.append(bounded_prior(known.within, costs, epsilon, ldp=ldp))
        else:
            found.append(design_by(method, prior, costs, epsilon, ldp=ldp))
        if progress:
            progress(place + 1)
    labels = list(known.alphabet.labels)
    channels, used = [one.channel for one in found], np.flatnonzero(shares).tolist()
    guesses = np.concatenate([(different @ costs.columns([j])) for j in range(len(labels))], 1)
    return OneShot(
        lip=LIP(max(found[place].sip.epsilon for place in used)),
        ldp=LDP(max(found[place].ldp.epsilon for place in used)),
        loss=costs.name,
        cost=float(shares @ [one.cost for one in found]),
        nothing=float(shares @ guesses.min(axis=1)),
        expected=_expected(channels, different, shares),
        fingerprint=digest(costs.fingerprint, _fingerprint(channels, labels, different)),
        rounding=0.0,
        draw=_drawing(channels, owner, labels, different),
    )


_REPORTS: dict[Mechanism, Callable[[int, float], Reporting]] = {
    Mechanism.RANDOMIZED_RESPONSE: KaryResponse.at,
    Mechanism.UNARY_ENCODING: UnaryEncoding.at,
    Mechanism.SUBSET_SELECTION: SubsetSelection.at,
}


_REPORTED_CELLS = 20_000_000
"""Bits of reports that are in memory at once."""


def _reporting(mechanism: Mechanism, known: Known, epsilon: float, loss: str | None) -> OneShot:
    """Reports of sets of symbols, made for estimating frequencies."""
    labels = list(known.alphabet.labels)
    costs = named_loss(loss or "hamming", known.alphabet)
    made = _REPORTS[mechanism](len(labels), checks.epsilon("epsilon", epsilon))
    address = digest("reports", mechanism.value, repr(made), *map(repr, labels))
    single = mechanism is Mechanism.RANDOMIZED_RESPONSE
    true, other = made.shown
    mean = known.mean

    def reports(places: Ints, coins: RowCoins, first: int) -> Bools:
        report = made.simulate  # whether coins may be guessed was settled by the caller
        if not coins.addressed:
            return report(places, coins.source)
        rows = enumerate(places, start=first)
        return np.concatenate([report([place], coins.of(row, address)) for row, place in rows])

    def draw(places: Ints, coins: RowCoins) -> Released:
        counts, values = np.zeros(len(labels), dtype=np.int64), []
        # A report names each symbol or not: many people and many symbols come in parts.
        part = max(1, _REPORTED_CELLS // len(labels))
        for first in range(0, places.size, part):
            told = reports(places[first : first + part], coins, first)
            counts += told.sum(axis=0)
            chosen = ([labels[place] for place in np.flatnonzero(row)] for row in told)
            values += [row[0] if single else _listed(row) for row in chosen]
        estimates = made.estimate_counts(counts, places.size)
        errors = [
            made.variance(min(1.0, max(0.0, float(share))), places.size) ** 0.5
            for share in estimates
        ]
        shares = counts / max(1, counts.sum())
        found = zip(map(str, labels), estimates.tolist(), errors, strict=True)
        return Released(values, np.asarray(shares), {name: (f, e) for name, f, e in found})

    return OneShot(
        lip=LIP(max(made.leakage(prior).epsilon for prior in _different(known))),
        ldp=made.local,
        loss=loss or "hamming",
        cost=_response_cost(costs, mean, true, other) if single else None,
        nothing=float(known.shares @ [costs.means(prior).min() for prior in known.priors]),
        expected=(true - other) * mean + other * mean.sum() if single else None,
        fingerprint=address,
        rounding=0.0,
        draw=draw,
    )


def _response_cost(loss: Loss, mean: Floats, true: float, other: float) -> float:
    """Expected loss where the truth is told with one probability and any other with another."""
    right = mean @ loss.paired(np.arange(mean.size))
    return float((true - other) * right + other * loss.means(mean).sum())


def _listed(row: list[Any]) -> str:
    """A set of symbols as one cell: a list in JSON, so that no symbol can be taken for two."""
    return msgspec.json.encode(row).decode()


def _different(known: Known) -> Floats:
    return np.asarray(np.unique(known.priors[known.shares > 0], axis=0))


def _expected(channels: Sequence[Channel], priors: Floats, shares: Floats) -> Floats:
    total = np.zeros(priors.shape[1])
    for channel, prior, share in zip(channels, priors, shares, strict=True):
        total[channel.outputs] += share * channel.mean_weights(prior)
    return np.asarray(total / total.sum())


def _fingerprint(channels: Sequence[Channel], labels: Sequence[Any], priors: Floats) -> str:
    parts = [channel.fingerprint for channel in channels]
    return digest("channels", priors, *parts, *map(repr, labels))


def _drawing(
    channels: Sequence[Channel], owner: Ints | None, labels: Sequence[Any], priors: Floats
) -> Callable[[Ints, RowCoins], Released]:
    """Draws each value through the channel of its row; all through the first without owners."""

    def draw(places: Ints, coins: RowCoins) -> Released:
        of_row = np.zeros(places.size, dtype=np.int64) if owner is None else owner
        prints = [_fingerprint([c], labels, p) for c, p in zip(channels, priors, strict=True)]
        words = _words(prints, of_row, coins)
        told = np.empty_like(places)
        in_turn = np.argsort(of_row, kind="stable")
        ends = np.flatnonzero(np.diff(of_row[in_turn])) + 1
        for rows in np.split(in_turn, ends):
            for start in range(0, rows.size, _BLOCK):
                block = rows[start : start + _BLOCK]
                told[block] = channels[of_row[block[0]]].draw(places[block], words[block])
        shares = np.bincount(told, minlength=len(labels)) / told.size
        return Released([labels[place] for place in told], shares)

    return draw


def _words(prints: Sequence[str], owner: Ints, coins: RowCoins) -> NDArray[np.uint64]:
    """A coin for each row; an addressed one depends on its name, its prior and its own channel."""
    if not coins.addressed:
        return coins.source.words(owner.size)
    own = [coins.of(row, prints[one]).word() for row, one in enumerate(owner)]
    return np.array(own, dtype=np.uint64)
