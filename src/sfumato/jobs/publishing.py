"""Several columns of a table, published with noise and a certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato._digest import content, digest
from sfumato.errors import InvalidParameter
from sfumato.formats.problems import BadTable
from sfumato.guarantees import Disclosure
from sfumato.jobs import Progress
from sfumato.jobs.attributes import AnyCoupling, Attributes, Numbers, known_attributes, read_people
from sfumato.jobs.coins import RowCoins, release_coins, row_addresses
from sfumato.jobs.frames import column_list, columns_of, framed_columns
from sfumato.jobs.noise import (
    Wanted,
    certified,
    chosen_noise,
    guessed,
    told_of_best,
    told_of_guesses,
)
from sfumato.mechanisms.publishing import Shape, lattice_steps, published, published_box
from sfumato.mechanisms.series_noise import on_lattice
from sfumato.mechanisms.vector_noise import VectorNoise, axis_scales
from sfumato.models.coupling import Interval
from sfumato.models.joint import JointMixture
from sfumato.randomness import Domain, Randomness
from sfumato.streaming.instant import Purpose

Floats = NDArray[np.float64]

_FRAME = "frame"
_WIDEST = 2.0**24
"""Deviation of the noise in accuracies: 64 of such deviations are fewer than 2^52 steps."""


@dataclass(frozen=True, slots=True)
class PublishCertificate:
    """What published columns promise.

    Attributes:
        guarantee: An attacker who knows the coupling comes near on all columns with at most this
            probability; the accuracy is the least of the columns'.
        guarantee_without_correlation: The same of an attacker who sees the values alone.
        columns: The columns.
        rows: How many people.
        noise: Shape of the noise.
        sigma: Its standard deviation on each column.
        accuracy: How near an attacker must come, on each column.
        coupling: What the attacker knows.
        way: How the guarantee was found.
        steps: Distance of the points on which published values lie, on each column.
        fingerprint: Identifies noise, lattice, what the attacker knows, and the purpose.
        remarks: What a careful user should know.
    """

    guarantee: Disclosure
    guarantee_without_correlation: Disclosure
    columns: tuple[str, ...]
    rows: int
    noise: str
    sigma: tuple[float, ...]
    accuracy: tuple[float, ...]
    coupling: str
    way: str
    steps: tuple[float, ...]
    fingerprint: str
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """Published columns with their certificate.

    Attributes:
        frame: The published columns and those that were to be kept, as the kind of frame that came.
        certificate: What they promise.
    """

    frame: Any
    certificate: PublishCertificate
    values: Floats = field(repr=False)


def publish(
    frame: Any,
    columns: Sequence[str],
    *,
    accuracy: ArrayLike,
    sigma: ArrayLike | None = None,
    noise: str = Shape.BALL,
    coupling: AnyCoupling = "none",
    target_delta: float | None = None,
    attacker: float | None = None,
    correlation: ArrayLike | None = None,
    domains: Mapping[str, Interval] | None = None,
    degree: int = 2,
    history: Any = None,
    keep: Sequence[str] = (),
    identity: str | None = None,
    randomness: Randomness | None = None,
    purpose: Purpose = Purpose.RELEASE,
    progress: Progress | None = None,
) -> Published:
    """Publish several columns with noise, and say what an attacker may learn of them.

    Publishing the same people again tells more about them: keep what was published. With `keyed`
    coins the same columns get the same noise again, or, with `identity`, the same person: then a
    key is for one record of each person.

    Args:
        frame: A polars or pandas frame, a pyarrow table or a mapping of columns; one row a person.
        columns: The columns that are published.
        accuracy: How near an attacker must come, for all columns or each.
        sigma: Standard deviation of the noise, for all columns or each; see `disclosure`.
        noise: Its shape; see `disclosure`.
        coupling: What the attacker knows; see `known_attributes`.
        target_delta: Add the least noise with which the attacker succeeds at most so often.
        attacker: See `disclosure`.
        correlation: Of Gaussian noise; see `disclosure`.
        domains: Intervals of the columns, known to everybody.
        degree: Of polynomials that are fitted.
        history: Public records to learn the coupling from; else the frame itself.
        keep: Columns that leave as they are.
        identity: Column that names the rows, for keyed coins.
        randomness: Source of coins; secure if not given.
        purpose: A simulation may use seeded coins; a release may not.
        progress: Told how many steps are done.

    Examples:
        >>> people = {"height": [160.0, 171.5, 180.0] * 9, "weight": [55.0, 70.0, 82.5] * 9}
        >>> done = publish(people, ["height", "weight"], accuracy=2.0, target_delta=0.01)
        >>> done.certificate.guarantee <= Disclosure(2.0, 0.01), len(done.frame["height"])
        (True, 27)

    References:
        [MDDP, Eq. 1 and Def. 5]
    """
    coins = release_coins("publish", randomness, purpose, identity)
    if set(column_list("keep", keep)) & set(columns):
        raise InvalidParameter("keep", list(keep), "name no column that is published")
    people, past = read_people(frame, history, columns)
    others = columns_of(frame, [*keep, *([] if identity is None else [identity])], _FRAME)
    known = known_attributes(past, coupling, domains=domains, degree=degree, people=people)
    half = axis_scales("accuracy", accuracy, len(known.names))
    wanted = Wanted(str(noise), correlation, attacker)
    added, best = chosen_noise(known, past, wanted, half, sigma, target_delta, progress)
    steps = lattice_steps(added, half)
    _check_reach(people, added, half, steps)
    certificate = _certificate(known, added, str(noise), half, steps, people, purpose)
    guesses = told_of_guesses(guessed(known, half), people, half)
    told = (*certificate.remarks, *told_of_best(best, known), *guesses)
    if history is None and known.text != "none" and not isinstance(coupling, JointMixture):
        told = (
            *told,
            "the coupling was learnt from these very people: what is said holds for an attacker "
            "who knows it already; learn it from public records (history) to be safe",
        )
    table = np.stack(list(people.values()), axis=1)
    naming = None if identity is None else others[identity]
    names = row_addresses(table, naming, identity, _FRAME)
    rows = RowCoins(coins, Domain.PUBLISH, certificate.fingerprint, names)
    values = published(added, table, steps, rows.words(added.words))
    released = dict(zip(known.names, values.T.tolist(), strict=True))
    return Published(
        framed_columns(frame, keep, released), replace(certificate, remarks=told), values
    )


def _check_reach(people: Numbers, noise: VectorNoise, half: Floats, steps: Floats) -> None:
    """Values and noise that the lattice cannot hold are refused before anything is drawn."""
    if np.any(noise.sigma > _WIDEST * half):
        rule = f"be at least sigma / {_WIDEST:.3g}"
        raise InvalidParameter("accuracy", half.tolist(), rule)
    for (name, column), step in zip(people.items(), steps, strict=True):
        try:
            on_lattice(column, step)
        except InvalidParameter as problem:
            rule = f"column {name!r} must {problem.rule}, of {step:.3g} each: move it nearer to 0"
            raise BadTable(_FRAME, None, f"{rule}, or raise sigma and accuracy") from None


def _certificate(
    known: Attributes,
    noise: VectorNoise,
    shape: str,
    half: Floats,
    steps: Floats,
    people: Numbers,
    purpose: Purpose,
) -> PublishCertificate:
    alone = published_box(noise, half, steps)
    high, way = certified(known, noise, half, steps)
    least = float(half.min())
    told = (known.names, known.domains, known.joint, known.tied, known.text)
    return PublishCertificate(
        guarantee=Disclosure(least, high),
        guarantee_without_correlation=Disclosure(least, alone),
        columns=known.names,
        rows=len(people[known.names[0]]),
        noise=shape,
        sigma=tuple(noise.sigma.tolist()),
        accuracy=tuple(half.tolist()),
        coupling=known.text,
        way=way.value,
        steps=tuple(steps.tolist()),
        fingerprint=digest(
            "publishing", purpose.value, noise.fingerprint, half, steps, content(told)
        ),
        remarks=known.remarks,
    )
