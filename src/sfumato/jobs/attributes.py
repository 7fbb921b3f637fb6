"""What is known of several columns of a table: nothing, a joint density, or equations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.formats.problems import BadTable
from sfumato.jobs.fit import read_each
from sfumato.jobs.frames import columns_of
from sfumato.models.coupled import CoupledPrior, checked_domain, domains_of
from sfumato.models.coupling import FullCoupling, Interval
from sfumato.models.encoding import number
from sfumato.models.joint import JointMixture

Floats = NDArray[np.float64]
Numbers = dict[str, Floats]
AnyCoupling = str | FullCoupling | JointMixture | Sequence[FullCoupling]

NAMED = ("none", "gaussian", "mixture", "kernel")


@dataclass(frozen=True, slots=True)
class Attributes:
    """Columns with what is known of them.

    Attributes:
        names: The columns.
        domains: The interval of each.
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


def numbers_of(frame: Any, names: Sequence[str], source: str) -> Numbers:
    """Some columns as finite numbers.

    Raises:
        BadTable: If a column is missing or a cell is none; the row is named, the value is not.
    """
    columns = list(names)
    if not columns or len(set(columns)) != len(columns):
        raise InvalidParameter("columns", columns, "name one column or more, each once")
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
    coupling: AnyCoupling = "none",
    *,
    domains: Mapping[str, Interval] | None = None,
    degree: int = 2,
) -> Attributes:
    """What is known of some columns.

    Args:
        records: The columns, to learn from.
        coupling: `none`; `gaussian`, `mixture` or `kernel` for a joint density that is fitted; an
            equation such as `"weight = 0.9*height - 90"`, or `"weight ~ height"` for a polynomial
            that is fitted; several with `;` between them. Or a model that is known already.
        domains: Intervals of the columns; from the least to the greatest value if not given.
        degree: Of polynomials that are fitted.

    Examples:
        >>> table = {"a": np.arange(9.0), "b": 2 * np.arange(9.0)}
        >>> known_attributes(table, "b = 2*a").tied.free
        ('a',)
    """
    given = dict(domains or {})
    for name in given:
        if name not in records:
            raise InvalidParameter("domains", name, f"name columns among {', '.join(records)}")
    for name, interval in given.items():
        checked_domain(name, interval)
    ends = domains_of({name: records[name] for name in records if name not in given}) | given
    remarks = _outside(records, given)
    names = tuple(records)
    if isinstance(coupling, JointMixture):
        if coupling.dimension != len(names):
            rule = f"be a density of {len(names)} attributes"
            raise InvalidParameter("coupling", coupling.dimension, rule)
        return Attributes(names, ends, coupling, None, "a joint density", remarks)
    if isinstance(coupling, str) and coupling.strip() in NAMED:
        joint = _density(coupling.strip(), records, given)
        return Attributes(names, ends, joint, None, coupling.strip(), remarks)
    tied = _equations(coupling, records, ends, degree)
    free = [name for name in names if name not in {one.attributes[0] for one in tied}]
    if not free:
        raise InvalidParameter("coupling", len(tied), "leave an attribute free")
    known = JointMixture.kernel(
        np.stack([records[name] for name in free], axis=1),
        domain=np.array([ends[name] for name in free]),
    )
    prior = CoupledPrior.of(names, tied, domains=ends, known=known)
    off = [_remark(one, records) for one in tied]
    # What was fitted tells of the records: only how it was asked for is told.
    text = coupling.strip() if isinstance(coupling, str) else "; ".join(t.text for t in tied)
    return Attributes(names, ends, None, prior, text, (*remarks, *filter(None, off)))


def _density(name: str, records: Numbers, domains: Mapping[str, Interval]) -> JointMixture | None:
    if name == "none":
        return None
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


def _equations(
    coupling: Any, records: Numbers, domains: Mapping[str, Interval], degree: int
) -> list[FullCoupling]:
    if isinstance(coupling, FullCoupling):
        return [coupling]
    if not isinstance(coupling, str):
        return list(coupling)
    found = []
    for text in coupling.split(";"):
        if "~" in text:
            target, _, features = text.partition("~")
            wanted = [name.strip() for name in features.split(",") if name.strip()]
            for name in [target.strip(), *wanted]:
                if name not in records:
                    rule = f"name columns among {', '.join(records)}"
                    raise InvalidParameter("coupling", name, rule)
            found.append(
                FullCoupling.fit(records, target.strip(), wanted, degree=degree, domains=domains)
            )
        elif "=" in text:
            found.append(FullCoupling.equation(text, domains))
        else:
            rule = f"be {', '.join(NAMED)}, an equation with =, or TARGET ~ COLUMN,COLUMN"
            raise InvalidParameter("coupling", text.strip(), rule)
    return found


def _outside(records: Numbers, domains: Mapping[str, Interval]) -> tuple[str, ...]:
    counts = {
        name: int(np.count_nonzero((records[name] < low) | (records[name] > high)))
        for name, (low, high) in domains.items()
    }
    return tuple(
        f"{count:,} values of {name!r} lie outside their domain: what is said holds for the others"
        for name, count in counts.items()
        if count
    )


def _remark(coupling: FullCoupling, records: Numbers) -> str | None:
    """An equation that the records do not satisfy is said to be one."""
    target = coupling.attributes[0]
    off = np.abs(coupling.residuals({name: records[name] for name in coupling.attributes}))
    spread = float(np.median(off[np.isfinite(off)])) if np.isfinite(off).any() else np.inf
    low, high = coupling.domains[target]
    if spread <= 1e-6 * (high - low):
        return None
    return f"records do not satisfy the equation of {target!r}: what is said is for those who do"
