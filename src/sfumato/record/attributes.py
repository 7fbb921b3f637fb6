"""What is known of several columns of a table: nothing, a joint density, or equations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.models.encoding import number
from sfumato.record.coupling.coupled_prior import CoupledPrior, domains_of
from sfumato.record.coupling.coupling import FullCoupling, Interval, checked_domain
from sfumato.record.coupling.equations import Sides
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.tables.cells import read_each
from sfumato.tables.frames import column_list, columns_of
from sfumato.tables.problems import BadTable

Numbers = dict[str, Floats]
AnyCoupling = str | FullCoupling | JointMixture | Sequence[FullCoupling]

NAMED = ("none", "gaussian", "mixture", "kernel")
LEARNT = "mixture"
"""What an attacker is taken to know if nothing is said: the joint density of the columns, with as
many normal components as the records ask for."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """Columns with what is known of them.

    Attributes:
        names: The columns.
        domains: Intervals outside of which nothing is known: those that were given, and with
            equations one of each column.
        joint: Their joint density, if that is what is known.
        tied: The equations between them, if those are.
        text: What is known, in words.
        remarks: What a careful user should know.
    """

    names: tuple[str, ...]
    domains: Mapping[str, Interval]
    joint: JointMixture | None
    tied: CoupledPrior | None
    text: str
    remarks: tuple[str, ...]

    @property
    def ignorant(self) -> bool:
        """Whether nothing is taken to be known."""
        return self.joint is None and self.tied is None


def numbers_of(frame: Any, names: Sequence[str], source: str) -> Numbers:
    """Some columns as finite numbers.

    Raises:
        BadTable: If a column is missing or a cell is none; the row is named, the value is not.
    """
    columns = column_list("columns", names)
    if not columns:
        raise InvalidParameter("columns", columns, "name one column or more")
    cells = columns_of(frame, columns, source)
    found = {}
    for name in columns:
        try:
            found[name] = np.array(read_each(cells[name], number, source), dtype=np.float64)
        except BadTable as problem:
            raise BadTable(source, problem.row, f"column {name!r}: {problem.rule}") from None
    return found


def known_attributes(
    records: Numbers,
    coupling: AnyCoupling = LEARNT,
    *,
    domains: Mapping[str, Interval] | None = None,
    degree: int = 2,
    people: Numbers | None = None,
) -> Attributes:
    """What is known of some columns.

    Args:
        records: The columns, to learn from.
        coupling: `gaussian`, `mixture` or `kernel` for a joint density that is fitted; `none` for
            an attacker who has never seen such a table; an equation such as
            `"weight = 0.9*height - 90"`, or `"weight ~ height"` for a polynomial that is fitted;
            several with `;` between them. Or a model that is known already.
        domains: Intervals of the columns. With equations, those that are not given are from the
            least to the greatest value.
        degree: Of polynomials that are fitted.
        people: Those of whom it is said, upon whom remarks are made; the records if not given.

    Examples:
        >>> table = {"a": np.arange(9.0), "b": 2 * np.arange(9.0)}
        >>> known_attributes(table, "b = 2*a").tied.free
        ('a',)
    """
    given = _given(domains or {}, records)
    with _named_arguments():
        known = _known(records, coupling, given, degree)
    return replace(known, remarks=_remarks(known, records if people is None else people))


def _given(domains: Mapping[str, Interval], records: Numbers) -> dict[str, Interval]:
    for name, interval in domains.items():
        if name not in records:
            raise InvalidParameter("domains", name, f"name columns among {', '.join(records)}")
        if checks.numbers(f"the domain of {name!r}", interval).shape != (2,):
            raise InvalidParameter("domains", interval, f"be two numbers for {name!r}")
    return {name: checked_domain(name, interval) for name, interval in domains.items()}


@contextmanager
def _named_arguments() -> Iterator[None]:
    """Problems of a model with the names of what was asked for."""
    names = {"domain": "domains", "couplings": "coupling"}
    try:
        yield
    except InvalidParameter as problem:
        name = names.get(problem.name, problem.name)
        raise InvalidParameter(name, problem.value, problem.rule) from None


def _known(
    records: Numbers, coupling: AnyCoupling, given: Mapping[str, Interval], degree: int
) -> Attributes:
    names = tuple(records)
    if isinstance(coupling, JointMixture):
        if coupling.dimension != len(names):
            rule = f"be a density of {len(names)} attributes"
            raise InvalidParameter("coupling", coupling.dimension, rule)
        return Attributes(names, given, coupling, None, "a joint density", ())
    if isinstance(coupling, str) and coupling.strip() in NAMED:
        joint = _density(coupling.strip(), records, given)
        return Attributes(names, given, joint, None, coupling.strip(), ())
    # Equations need an interval of every column: what the records span where none is given.
    ends = domains_of({name: records[name] for name in names if name not in given}) | dict(given)
    tied = _equations(coupling, records, ends, degree)
    prior = CoupledPrior.of(names, tied, domains=ends, known=_free(records, tied, ends))
    # What was fitted tells of the records: only how it was asked for is told.
    text = coupling.strip() if isinstance(coupling, str) else "; ".join(t.text for t in tied)
    return Attributes(names, prior.domains, None, prior, text, ())


def _density(name: str, records: Numbers, domains: Mapping[str, Interval]) -> JointMixture | None:
    if name == "none":
        return None
    domains_of(records)  # a constant has no density
    table = np.stack(list(records.values()), axis=1)
    limits = None
    if domains:
        every = [domains.get(column, (-np.inf, np.inf)) for column in records]
        limits = np.array(every, dtype=np.float64)
    if name == "gaussian":
        return JointMixture.fit_normal(table, limits)
    if name == "mixture":
        return JointMixture.fit(table, domain=limits)
    return JointMixture.kernel(table, domain=limits)


def _free(
    records: Numbers, tied: Sequence[FullCoupling], domains: Mapping[str, Interval]
) -> JointMixture:
    """What is known of the columns that no equation gives."""
    free = [name for name in records if name not in {one.attributes[0] for one in tied}]
    if not free:
        raise InvalidParameter("coupling", len(tied), "leave an attribute free")
    domains_of({name: records[name] for name in free})  # a constant has no density
    return JointMixture.kernel(
        np.stack([records[name] for name in free], axis=1),
        domain=np.array([domains[name] for name in free]),
    )


def _equations(
    coupling: Any, records: Numbers, domains: Mapping[str, Interval], degree: int
) -> list[FullCoupling]:
    if isinstance(coupling, str):
        return [_equation(text, records, domains, degree) for text in coupling.split(";")]
    several = [coupling] if isinstance(coupling, FullCoupling) else coupling
    if not (
        isinstance(several, Sequence)
        and several
        and all(isinstance(one, FullCoupling) for one in several)
    ):
        rule = "be a text, a JointMixture, a FullCoupling or a list of FullCouplings"
        raise InvalidParameter("coupling", type(coupling).__name__, rule)
    for one in several:
        _check_columns(one.attributes, records)
    return list(several)


def _equation(
    text: str, records: Numbers, domains: Mapping[str, Interval], degree: int
) -> FullCoupling:
    """One equation, as it stands there or fitted; of these columns alone."""
    if "~" in text:
        target, _, right = text.partition("~")
        features = [name.strip() for name in right.split(",") if name.strip()]
        _check_columns([target.strip(), *features], records)
        if not features or len({target.strip(), *features}) <= len(features):
            rule = "be TARGET ~ COLUMN,COLUMN with every column named once"
            raise InvalidParameter("coupling", text.strip(), rule)
        return FullCoupling.fit(records, target.strip(), features, degree=degree, domains=domains)
    if "=" in text:
        _check_columns(Sides.parse(text).names, records)
        return FullCoupling.equation(text, domains)
    rule = f"be {', '.join(NAMED)}, an equation with =, or TARGET ~ COLUMN,COLUMN"
    raise InvalidParameter("coupling", text.strip(), rule)


def _check_columns(names: Sequence[str], records: Numbers) -> None:
    for name in names:
        if name not in records:
            raise InvalidParameter("coupling", name, f"name columns among {', '.join(records)}")


def _remarks(known: Attributes, people: Numbers) -> tuple[str, ...]:
    """Whether what is known holds for people; not for how many: certificates leave the house."""
    outside = [_outside(name, people[name], ends) for name, ends in known.domains.items()]
    tied = () if known.tied is None else known.tied.couplings
    return tuple(filter(None, [*outside, *(_unsatisfied(one, people) for one in tied)]))


def _outside(name: str, column: Floats, domain: Interval) -> str | None:
    low, high = domain
    if np.all((column >= low) & (column <= high)):
        return None
    return f"values of {name!r} lie outside their domain: what is said holds for the others"


def _unsatisfied(coupling: FullCoupling, people: Numbers) -> str | None:
    """An equation that people do not satisfy is said to be one."""
    target = coupling.attributes[0]
    off = np.abs(coupling.residuals({name: people[name] for name in coupling.attributes}))
    spread = float(np.median(off[np.isfinite(off)])) if np.isfinite(off).any() else np.inf
    low, high = coupling.domains[target]
    if spread <= 1e-6 * (high - low):
        return None
    return f"records do not satisfy the equation of {target!r}: what is said is for those who do"
