"""Several columns of a table, published with noise and a certificate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from scipy import stats

from sfumato.core.arrays import Floats
from sfumato.core.certificate import Certificate
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import Disclosure
from sfumato.core.numerics import expected_error, up
from sfumato.core.printed import shown_up
from sfumato.core.progress import Progress
from sfumato.core.randomness import Address, Domain, Randomness
from sfumato.core.specs import spec_of
from sfumato.noise.number_noise import on_lattice
from sfumato.record.attack.bayes_attack import Way
from sfumato.record.attackers import certified, guessed, known_to_others
from sfumato.record.best_round_noise import BestRound
from sfumato.record.noise_choice import chosen_noise
from sfumato.record.people import FRAME, People, known_people
from sfumato.record.published_noise import lattice_steps, published, published_box
from sfumato.record.record_spec import RecordSpec
from sfumato.record.remarks import Assessment, Silence, common_facts, common_remarks
from sfumato.record.vector_noise import VectorNoise
from sfumato.tables.frames import framed_columns
from sfumato.tables.problems import BadTable
from sfumato.tables.row_coins import RowCoins, release_coins, row_addresses
from sfumato.tables.row_order import ORDER_TESTED, Order, order_tells

_WIDEST = 2.0**24
"""Deviation of the noise in accuracies: 64 of such deviations are fewer than 2^52 steps."""
SCOPES = ("against who knows the coupling", "against who sees the published values alone")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishCertificate(Assessment, Certificate):
    """The certificate of published columns; its guarantee is no less than any delta.

    Attributes:
        order: How the rows left: as they came (`checked`, or `kept` by declaration) or `shuffled`.
        steps: Distance of the points on which published values lie, on each column.
        fingerprint: Identifies all of this but the remarks, and the purpose.
    """

    order: str
    steps: tuple[float, ...]
    fingerprint: str

    @property
    def guarantee(self) -> Disclosure:
        """What one who knows the coupling and the kept columns reaches at most, on all columns.

        In whichever group of the kept columns; the accuracy is the least of the columns'.
        """
        return self._disclosures()[0]

    @property
    def guarantee_without_correlation(self) -> Disclosure:
        """The same of an attacker who sees the values alone."""
        return self._disclosures()[1]

    def _disclosures(self) -> list[Disclosure]:
        return [one for one in self.guarantees if isinstance(one, Disclosure)]


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """Published columns with their certificate.

    Attributes:
        frame: The published columns and those that were to be kept, as the kind of frame that came.
        certificate: What they promise.
        silence: How much better than a constant they are: for you alone, as it tells of the table.
        dropped: How many rows were left out because a value was missing; for you alone.
        spec: What was asked for.
        noise: What was added: as public as what it was made against.
    """

    frame: Any
    certificate: PublishCertificate
    values: Floats = field(repr=False)
    silence: Silence
    dropped: int
    spec: RecordSpec = field(repr=False)
    noise: VectorNoise = field(repr=False)


def publish(
    frame: Any,
    columns: Sequence[str] | RecordSpec,
    *,
    history: Any = None,
    progress: Progress | None = None,
    **options: Any,
) -> Published:
    """Publish several columns with noise, and say what an attacker may learn of them.

    Publishing the same people again tells more about them: keep what was published. With `keyed`
    coins the same columns get the same noise again, or, with `identity`, the same person: then a
    key is for one record of each person.

    What it takes is what `disclosure` takes.

    Examples:
        >>> rng = np.random.default_rng(1)
        >>> people = {"age": rng.normal(50, 15, 200), "town": ["Delft", "Gouda"] * 100}
        >>> done = publish(people, ["age"], accuracy=2.0, target_delta=0.2, keep=["town"])
        >>> done.certificate.guarantee <= Disclosure(2.0, 0.2), done.certificate.groups
        (True, 2)
        >>> done.certificate.delta_before, done.silence.useful  # a guess; better than a constant
        (0.12, (True,))

    References:
        [MDDP, Eq. 1 and Def. 5]
    """
    spec = spec_of(RecordSpec, columns, options)
    coins = release_coins("publish", spec.randomness, spec.purpose, spec.identity)
    people = known_people(frame, history, spec)
    if spec.order is Order.CHECKED:
        _check_order(people)
    noise, best = chosen_noise(people, spec, progress)
    steps = lattice_steps(noise, people.half)
    _check_reach(people, noise, steps)
    table = np.stack(list(people.columns.values()), axis=1)
    naming = None if spec.identity is None else people.others[spec.identity]
    names = row_addresses(table, naming, spec.identity, FRAME)
    # What attackers know shapes the promise, not the answer: a person who is published again, among
    # others, gets the same answer under the same noise, not a second one.
    plan = digest("publishing", spec.purpose.value, *people.names, noise.fingerprint, steps)
    words = RowCoins(coins, Domain.PUBLISH, plan, names).words(noise.words)
    values = published(noise, table, steps, words)
    turn = np.arange(len(values))
    if spec.order is Order.SHUFFLED:
        shuffled = RowCoins(coins, Domain.PUBLISH, digest("order", plan), names).words(1)
        turn = np.argsort(shuffled[:, 0], kind="stable")
    values = values[turn]
    released = dict(zip(people.names, values.T.tolist(), strict=True))
    certificate = _certificate(people, noise, best, spec, steps)
    return Published(
        framed_columns(frame, people.beside.columns, released, people.rows[turn].tolist()),
        replace(certificate, fingerprint=publish_fingerprint(certificate, spec, plan, coins)),
        values,
        Silence.of(people, noise, steps),
        people.dropped,
        spec,
        noise,
    )


def _check_order(people: People) -> None:
    """An order of rows that tells of a column would leave beside it."""
    for name in people.names:
        rest = np.empty(len(people.rows))
        for group in people.groups:  # what a group tells is known already
            column = group.people[name]
            rest[group.places] = stats.rankdata(column) / (column.size + 1) - 0.5
        if order_tells(rest):
            rule = (
                f"the order of the rows tells of {name!r} (it is sorted, drifts, stands in "
                "blocks or comes in turn), and it would leave too: shuffle them (order: shuffled), "
                "or declare that it tells nothing (order: kept)"
            )
            raise BadTable(FRAME, None, rule)


def _check_reach(people: People, noise: VectorNoise, steps: Floats) -> None:
    """Values and noise that the lattice cannot hold are refused before anything is drawn."""
    if np.any(noise.sigma > _WIDEST * people.half):
        rule = f"be at least sigma / {_WIDEST:.3g}"
        raise InvalidParameter("accuracy", people.half.tolist(), rule)
    for (name, column), step in zip(people.columns.items(), steps, strict=True):
        try:
            on_lattice(column, step)
        except InvalidParameter as problem:
            rule = f"column {name!r} must {problem.rule}, of {step:.3g} each: move it nearer to 0"
            raise BadTable(FRAME, None, f"{rule}, or raise sigma and accuracy") from None


def _certificate(
    people: People,
    noise: VectorNoise,
    best: BestRound | None,
    spec: RecordSpec,
    steps: Floats,
) -> PublishCertificate:
    half, least = people.half, float(people.half.min())
    guesses = [guessed(group, half) for group in people.groups]
    found = [certified(group.known, noise, half, steps) for group in people.groups]
    attacks = [known_to_others(group, noise, half) for group in people.groups]
    counted = [0.0 if attack is None else up(attack.high) for attack in attacks]
    # Who knows what is common does at least as well as a guess.
    highs = [
        high if group.known.ignorant else max(high, guess, other)
        for group, (high, _), guess, other in zip(
            people.groups, found, guesses, counted, strict=True
        )
    ]
    worst = int(np.argmax(highs))
    model, way = found[worst]
    delta, target = _shortened(people, highs[worst]), spec.target_delta
    if target is not None:
        if highs[worst] > target:
            rule = "be more: no noise that was tried keeps it in every group"
            raise InvalidParameter("target_delta", target, rule)
        delta = min(delta, float(target))
    before = _shortened(people, max(guesses), blind=True)
    return PublishCertificate(
        **common_facts(people, noise, spec),
        guarantees=(
            Disclosure(least, delta),
            Disclosure(least, published_box(noise, half, steps)),
        ),
        scopes=SCOPES,
        purpose=spec.purpose,
        delta_model=min(_shortened(people, model), delta),
        delta_held_out=(
            None
            if all(attack is None for attack in attacks)
            else min(_shortened(people, max(counted)), delta)
        ),
        delta_mean=min(_shortened(people, _mean_up(people, highs)), delta),
        delta_before=before,
        delta_before_mean=_shortened(people, _mean_up(people, guesses), blind=True),
        order=str(spec.order),
        way=(Way.HELD_OUT if counted[worst] > model else way).value,
        steps=tuple(steps.tolist()),
        fingerprint="",  # of all the rest
        remarks=(
            *common_remarks(people, before, best),
            *((ORDER_TESTED,) if spec.order is Order.CHECKED else ()),
        ),
    )


def _shortened(people: People, value: float, *, blind: bool = False) -> float:
    """With two digits, rounded up, if it was learnt from the people themselves.

    With all digits, whoever knows every row but one could compute the last.
    """
    known = blind or not people.groups[0].known.ignorant
    if people.learnt_from == "table" or (known and people.guessed_from_table):
        return min(float(shown_up(value, 2)), 1.0)
    return value


def _mean_up(people: People, values: Sequence[float]) -> float:
    """Mean over all people of what holds for each of their groups, rounded up."""
    if len(values) == 1:
        return values[0]
    total = math.fsum(share * value for share, value in zip(people.shares, values, strict=True))
    return min(up(total * (1 + expected_error(len(values)))), 1.0)


def publish_fingerprint(
    certificate: PublishCertificate, spec: RecordSpec, plan: str, coins: Randomness
) -> str:
    """Of all that shapes answers and promise; without a key, of nothing that is not said anyway.

    A plain digest of what was learnt would let everyone test guesses at the table.
    """
    said = asdict(replace(certificate, remarks=()))
    given = (spec.degree, sorted((spec.domains or {}).items()), str(spec.missing))
    promise = digest("publishing", repr((sorted(said.items()), given)))
    if not coins.addressed:
        return promise
    address = Address(Domain.PUBLISH, digest(promise, plan), "fingerprint", 0)
    return coins.at(address).words(4).tobytes().hex()
