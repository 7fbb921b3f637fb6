"""How knowledge of a column comes about: given, or learnt from records of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sfumato.column.column_priors import AnyPrior, number_priors, read_prior, symbol_priors
from sfumato.column.column_spec import FEATURES, ColumnSpec, Kind
from sfumato.column.feature_prior import FLOOR, FeaturePrior
from sfumato.column.knowledge import Knowledge, Records, column_cells, feature_cells, symbol_places
from sfumato.core import checks, portable
from sfumato.core.alphabet import Label
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.models.encoding import Raw, Symbols, text
from sfumato.models.mixture import GaussianMixture
from sfumato.models.numerals import PLAIN, Numerals
from sfumato.models.prior_sets import PriorBall, PriorBox, PriorSet
from sfumato.tables.cells import MISSING_SYMBOL, Missing, read_each
from sfumato.tables.pass_through import FEWEST_ROWS, Columns, Groups
from sfumato.tables.problems import BadTable

_LEARNT_PRIORS = ("estimate", "mixture")
# A column with more different whole numbers than this is taken for numbers, not for symbols.
_MANY = 30
# Largest share of rows whose value no other row has, for symbols that are read off them.
_MOST_UNIQUE = 0.1
LEARNT_HERE = (
    "the prior was learnt from this very column: the guarantee is against an adversary who "
    "knows that prior already; learn it from public records (history) to be safe"
)


def learn(spec: ColumnSpec, columns: Columns, records: Records) -> Knowledge:
    """Learn what is known of a column from records of it, or take what is given."""
    if isinstance(spec.prior, str) and spec.prior.startswith(FEATURES):
        return _predicted(spec, columns, records)
    values = spec.cells(column_cells(columns, spec.column, records.source))
    prior = spec.prior
    if isinstance(prior, str) and prior not in _LEARNT_PRIORS:
        prior = read_prior(prior)
    given = not isinstance(prior, str)
    if given and spec.pass_through.linked:
        rule = "be declared independent: a prior that was given holds for everybody"
        raise InvalidParameter("keep", list(spec.pass_through.linked), rule)
    if records is Records.PRIVATE and not given:
        _check_rows(len(values))
    groups = _groups(spec, columns, records)
    kind, why = _kind(values, prior, spec)
    if kind is Kind.SYMBOLS:
        if isinstance(prior, str | PriorSet):  # possible symbols are read off the records
            _check_symbols(spec, values, records)
        knowledge = symbol_priors(values, prior, spec, groups, records.source)
    else:
        knowledge = _number_priors(values, prior, spec, groups, records.source)
    remarks = knowledge.remarks
    if why is not None:
        remarks = (*remarks, f"the column was read as {kind.value}: {why}")
    if records is Records.PRIVATE:
        remarks = (*remarks, *_learnt_here(spec))
    source = Records.PUBLIC if given else records
    return _uncertain(
        replace(knowledge, groups=groups, remarks=remarks, records=source), spec.radius, spec.ratio
    )


def learn_each(spec: ColumnSpec, columns: Columns) -> Knowledge:
    """Priors from features for the people of one table, each learnt without his own row."""
    where, features, labels = _for_features(spec, columns, Records.PRIVATE)
    priors = FeaturePrior.cross_fitted(features, labels, alphabet=where.alphabet)
    owner = np.arange(len(priors))
    knowledge = _by_features(spec, where, priors, Records.PRIVATE)
    return replace(knowledge, owner=owner, floor=FLOOR)


def _predicted(spec: ColumnSpec, columns: Columns, records: Records) -> Knowledge:
    where, features, labels = _for_features(spec, columns, records)
    predictor = FeaturePrior.fit(features, labels, alphabet=where.alphabet)
    knowledge = _by_features(spec, where, np.empty((0, len(where.alphabet))), records)
    return replace(knowledge, predictor=predictor, floor=predictor.floor)


def _by_features(spec: ColumnSpec, where: Symbols, priors: Floats, records: Records) -> Knowledge:
    names = ", ".join(spec.features)
    public = f"each prior is predicted from {names}, which are taken as public"
    return Knowledge(
        where,
        priors,
        f"features {names}",
        features=spec.features,
        records=records,
        remarks=(public, LEARNT_HERE) if records is Records.PRIVATE else (public,),
    )


def _for_features(
    spec: ColumnSpec, columns: Columns, records: Records
) -> tuple[Symbols, Columns, list[Label]]:
    """The symbols, the features of people and their true values."""
    names, source = spec.features, records.source
    values = spec.cells(column_cells(columns, spec.column, source))
    if others := [name for name in spec.pass_through.linked if name not in names]:
        rule = "be among the features of the prior, or declared independent"
        raise InvalidParameter("keep", others, rule)
    if not names or spec.column in names:
        rule = "name columns after features:, and not the one that is released"
        raise InvalidParameter("prior", spec.prior, rule)
    if spec.kind is Kind.NUMBERS or spec.interval is not None:
        rule = "not come with numbers: features predict symbols"
        raise InvalidParameter("prior", spec.prior, rule)
    if records is Records.PRIVATE:
        _check_rows(len(values))
        _check_symbols(spec, values, records)
    where = spec.symbols(values, source)
    labels = [where.alphabet.labels[place] for place in symbol_places(where, values, source)]
    return where, feature_cells(columns, names, source), labels


def _groups(spec: ColumnSpec, columns: Columns, records: Records) -> Groups | None:
    if not spec.pass_through.linked:
        return None
    groups = Groups.of(columns, spec.pass_through.linked)
    groups.check_sizes(records.source)
    return groups


def _number_priors(
    values: Sequence[Raw], prior: AnyPrior, spec: ColumnSpec, groups: Groups | None, source: str
) -> Knowledge:
    if spec.missing is Missing.SYMBOL:
        rule = "be refuse or drop for numbers: symbol is for symbols only (kind: symbols)"
        raise InvalidParameter("missing", str(spec.missing), rule)
    numerals = Numerals.of(values) or PLAIN
    read = read_each(values, numerals.read, source)
    knowledge = number_priors(read, prior, spec, groups)
    if numerals.plain:
        return knowledge
    remark = f"numbers were read as written, with {numerals.decimal!r} before the fraction"
    return replace(knowledge, numerals=numerals, remarks=(*knowledge.remarks, remark))


def _kind(values: Sequence[Raw], prior: AnyPrior, spec: ColumnSpec) -> tuple[Kind, str | None]:
    """How a column is read, and why where nobody said so."""
    if spec.kind is not None:
        return Kind(spec.kind), None
    if isinstance(prior, GaussianMixture) or prior == "mixture" or spec.interval:
        return Kind.NUMBERS, None
    if prior != "estimate" or spec.values is not None:
        return Kind.SYMBOLS, None
    return guessed_kind([value for value in values if value != MISSING_SYMBOL] or values)


def guessed_kind(values: Sequence[Raw]) -> tuple[Kind, str]:
    """What a column looks like, and why.

    Examples:
        >>> guessed_kind(["yes", "no", "yes"])
        (<Kind.SYMBOLS: 'symbols'>, 'they are words')
        >>> guessed_kind(["$1,200.50", "$900"])
        (<Kind.NUMBERS: 'numbers'>, 'they have fractions')
        >>> guessed_kind([3, 1, 2, 3, 1, 2] * 5)[0]
        <Kind.SYMBOLS: 'symbols'>
    """
    numerals = Numerals.of(values)
    if numerals is None:
        return Kind.SYMBOLS, "they are words"
    numbers = [numerals.read(value) for value in values]
    if any(not value.is_integer() for value in numbers):
        return Kind.NUMBERS, "they have fractions"
    if len(set(numbers)) > _MANY:
        return Kind.NUMBERS, f"they are more than {_MANY} different whole numbers"
    if len(set(numbers)) > 1 and single_occurrences(numbers) > _MOST_UNIQUE * len(numbers):
        return Kind.NUMBERS, "hardly any two of them are equal"
    return Kind.SYMBOLS, f"they are {_MANY} different whole numbers or fewer"


def single_occurrences(values: Sequence[object]) -> int:
    """How many values occur in one row only."""
    return sum(count == 1 for count in Counter(values).values())


def _check_rows(rows: int) -> None:
    """Refuse to learn a prior from hardly any private rows: it would be those rows."""
    if rows < FEWEST_ROWS:
        rule = (
            f"a prior needs {FEWEST_ROWS} rows to be learnt from the column that is released: "
            "fewer tell their own values; give a prior, or public records (history)"
        )
        raise BadTable(Records.PRIVATE.source, None, rule)


def _check_symbols(spec: ColumnSpec, values: Sequence[Raw], records: Records) -> None:
    """Refuse symbols that are read off private rows and would give them away by occurring."""
    if spec.values is not None or records is Records.PUBLIC:
        return
    words = read_each(values, text, records.source)
    remedy = "name the possible ones (values), or learn them from public records (history)"
    if len(set(words)) == 1:
        rule = f"all rows hold one value, which would leave as it is: {remedy}"
        raise BadTable(records.source, None, rule)
    if (share := single_occurrences(words) / len(words)) > _MOST_UNIQUE:
        rule = (
            f"{share:.0%} of the rows hold a value that no other row has, and real values would "
            f"leave: {remedy}"
        )
        raise BadTable(records.source, None, rule)


def _learnt_here(spec: ColumnSpec) -> tuple[str, ...]:
    """What was learnt from the very column that is released is said to be."""
    if spec.prior in _LEARNT_PRIORS:
        return (LEARNT_HERE,)
    if isinstance(spec.prior, PriorSet) and spec.values is None:
        return (
            "the possible symbols were read off this very column: which ones occur is told; give "
            "them (values) to be safe",
        )
    return ()


def _uncertain(knowledge: Knowledge, radius: float | None, ratio: float | None) -> Knowledge:
    """The same with a prior that is only known up to a total variation, or up to a factor."""
    if radius is None and ratio is None:
        return knowledge
    if radius is not None and ratio is not None:
        raise InvalidParameter("radius", radius, "not come with ratio")
    name = "radius" if ratio is None else "ratio"
    if knowledge.groups is not None:
        rule = "go with kept columns that are declared independent, or with none"
        raise InvalidParameter(name, "given", rule)
    if len(knowledge.priors) != 1 or knowledge.within is not None or knowledge.kind is Kind.NUMBERS:
        raise InvalidParameter(name, "given", "go with symbols")
    prior = knowledge.priors[0]
    if radius is not None:
        return replace(knowledge, within=PriorBall(prior, radius))
    factor = checks.finite("ratio", 1.0 if ratio is None else ratio, at_least=1.0)
    return replace(knowledge, within=PriorBox.near(prior, portable.log(factor)))
