r"""Priors of single persons, predicted from what is publicly known about them.

A classifier that was trained on people whose values are known predicts the values of others from
their features; its probabilities, calibrated and floored, are their priors. Any classifier with
`fit` and `predict_proba` will do. What that means for the guarantee:

- Features are taken as public. A channel that was designed for a person's prior tells his features;
  whoever wants those protected must release them through a channel too.
- A certificate computed with these priors holds for an adversary who predicts with this very
  model. One who predicts better is covered by the model-free certificate, or by a set of priors.
- People whose values trained the model have told them to it. `FeaturePrior.cross_fitted` keeps a
  person's value from shaping his own prior; it still shapes the priors of others.

References: [LIP, Sec. V-A]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from numbers import Real
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from sfumato.core import checks, portable
from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import InvalidParameter

Column: TypeAlias = Sequence[object] | NDArray[Any]
Features: TypeAlias = Mapping[str, Column]
Cells: TypeAlias = NDArray[np.object_]

# Part of every prior that is spread evenly, unless told.
FLOOR = 1e-3
# Numbers up to this one have a variance that is finite.
_LARGEST = 1e100
# Standard deviations beyond which a number counts as no further out: trees work in 32 bits.
_FAR = 30.0
# Columns that a text column may become; its rarer categories then count as one.
_CATEGORIES = 64
# Range in which the temperature is looked for.
_COLDEST, _HOTTEST = 1 / 8, 8.0


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a table, and which of them hold numbers."""

    names: tuple[str, ...]
    numeric: tuple[bool, ...]

    @classmethod
    def of(cls, features: Features) -> Self:
        """A column with a string in it holds text, any other one numbers."""
        if len(features) == 0:
            raise InvalidParameter("features", "none", "have at least one column")
        numeric = (not any(isinstance(cell, str) for cell in features[name]) for name in features)
        return cls(tuple(features), tuple(numeric))

    def cells(self, features: Features) -> Cells:
        """One row per person: floats, NaN where one is missing, and strings, "" if missing."""
        absent = [name for name in self.names if name not in features]
        if absent:
            raise InvalidParameter("features", "others", f"have the column {absent[0]!r}")
        read = [
            [_number(name, cell) if numeric else _text(name, cell) for cell in features[name]]
            for name, numeric in zip(self.names, self.numeric, strict=True)
        ]
        for name, column in zip(self.names, read, strict=True):
            if len(column) != len(read[0]) or not column:
                rule = f"have {max(1, len(read[0]))} entries, like the first column"
                raise InvalidParameter(f"features[{name!r}]", len(column), rule)
        table = np.empty((len(read[0]), len(read)), dtype=object)
        for place, column in enumerate(read):
            table[:, place] = column
        return table


@dataclass(frozen=True, slots=True, eq=False)
class FeaturePrior:
    r"""What is known of a person's value from his features.

    $$P(x) = (1 - f)\, \frac{p(x)^{1/T}}{\sum_z p(z)^{1/T}} + \frac{f}{n}$$

    where $p$ is what the classifier predicts, $T$ is `temperature`, $f$ is `floor` and $n$ the
    number of symbols: no probability is less than `floor / n`, and a symbol that nobody in the
    training rows had gets exactly that. The floor is spread evenly, not by overall frequencies,
    for these are 0 where it is needed most.

    Attributes:
        alphabet: The values that are predicted.
        floor: The part of every prior that does not depend on the features.
        temperature: How much too sure of itself the classifier was found to be: 1 if it was
            right, more if it had to be toned down. One number for all classes, so that it can be
            learnt from few rows and with classes that hardly occur.

    Examples:
        >>> known = {"hours": [1, 2, 7, 8] * 10, "school": ["north", None] * 20}
        >>> prior = FeaturePrior.fit(known, ["fail", "fail", "pass", "pass"] * 10, floor=0.2)
        >>> prior.priors({"hours": [1, 8], "school": ["north", "west"]}).round(1)
        array([[0.9, 0.1],
               [0.1, 0.9]])

    References:
        [LIP, Sec. V-A]
    """

    alphabet: Alphabet
    floor: float
    temperature: float
    _columns: _Columns = field(repr=False)
    _model: _Model = field(repr=False)

    @classmethod
    def fit(
        cls,
        features: Features,
        values: Column,
        *,
        alphabet: Alphabet | None = None,
        classifier: Any = None,
        floor: float = FLOOR,
        folds: int = 5,
    ) -> Self:
        """Learn from people whose features and values are known.

        Args:
            features: Column name -> one entry per person; a column holds numbers, or strings.
                None and NaN are missing: a missing number counts as the median and is marked as
                missing, a missing text is a category of its own.
            values: One symbol per person.
            alphabet: The possible values; if not given, those that occur, sorted.
            classifier: Anything with `fit` and `predict_proba`; it is copied, and sees numbers
                only: numeric columns scaled, text columns one-hot. If not given, a random forest:
                on tables of some hundred students its log loss was well below that of logistic
                regression, which wins where log-odds are linear in the features.
            floor: The part of every prior that is spread evenly over the alphabet.
            folds: Parts in which the rows are left out in turn to find the temperature, which
                then gives the priors of those left out the least log loss.
        """
        columns = _Columns.of(features)
        cells = _rows_for(columns, features, values)
        symbols = alphabet or Alphabet.occurring([list[Any](values)])
        places = symbols.indices(list(values))
        return cls._fitted(columns, cells, places, symbols, _classifier(classifier), floor, folds)

    @classmethod
    def cross_fitted(
        cls,
        features: Features,
        values: Column,
        *,
        alphabet: Alphabet,
        classifier: Any = None,
        floor: float = FLOOR,
        folds: int = 5,
    ) -> Floats:
        """Priors of the people of one table, each learnt without his own row.

        Who is left out together depends on the number of rows only, so a person's value has no
        part in his own prior. The alphabet must be given, for one that is read off the values
        would tell that a rare one occurs.

        Arguments are those of `fit`; rows are left out in turn here and inside each fit.

        Returns:
            One row per person.

        Examples:
            >>> from sklearn.linear_model import LogisticRegression
            >>> FeaturePrior.cross_fitted(
            ...     {"hours": [1, 2, 7, 8] * 5},
            ...     ["fail", "fail", "pass", "pass"] * 5,
            ...     alphabet=Alphabet(["fail", "pass"]),
            ...     classifier=LogisticRegression(),
            ...     floor=0.1,
            ... )[[0, 3]].round(1)
            array([[0.9, 0.1],
                   [0.1, 0.9]])
        """
        columns = _Columns.of(features)
        cells = _rows_for(columns, features, values)
        places = alphabet.indices(list(values))
        if places.size < 2:
            raise InvalidParameter("values", places.size, "have at least 2 entries to learn from")
        copied = _classifier(classifier)
        priors = np.empty((places.size, len(alphabet)))
        for out in _left_out(places.size, folds):
            rest = ~out
            others = cls._fitted(columns, cells[rest], places[rest], alphabet, copied, floor, folds)
            priors[out] = others._priors(cells[out])
        return checks.read_only(priors)

    def priors(self, features: Features) -> Floats:
        """One prior per person, from columns of the same names; further columns are ignored.

        Meant for people who are not among the training rows: a classifier may know those by
        heart, and `cross_fitted` is for them.

        Categories that training never saw count as the rare ones, if there were any, and else
        as none.
        """
        return checks.read_only(self._priors(self._columns.cells(features)))

    @classmethod
    def _fitted(
        cls,
        columns: _Columns,
        cells: Cells,
        places: Ints,
        alphabet: Alphabet,
        classifier: Any,
        floor: float,
        folds: int,
    ) -> Self:
        part = checks.proper_fraction("floor", floor)
        size = len(alphabet)
        model = _Model.trained(columns, cells, places, classifier)
        unseen = np.empty((places.size, size))
        temperature = 1.0
        if places.size > 1:
            for out in _left_out(places.size, folds):
                rest = ~out
                without = _Model.trained(columns, cells[rest], places[rest], classifier)
                unseen[out] = without.predicted(cells[out], size)
            temperature = _temperature(unseen, places, part)
        return cls(alphabet, part, temperature, columns, model)

    def _priors(self, cells: Cells) -> Floats:
        predicted = self._model.predicted(cells, len(self.alphabet))
        return _floored(_tempered(predicted, self.temperature), self.floor)


@dataclass(frozen=True, slots=True, eq=False)
class _Model:
    """A trained classifier, and the places of the symbols it has seen, in its order."""

    seen: Ints
    encoder: Any
    classifier: Any

    @classmethod
    def trained(cls, columns: _Columns, cells: Cells, places: Ints, classifier: Any) -> Self:
        # Numbered without gaps, for some classifiers want that; where only one symbol occurs
        # there is nothing to tell apart, and most refuse it.
        seen, classes = np.unique(places, return_inverse=True)
        if seen.size == 1:
            return cls(seen, None, None)
        encoder = _encoder(columns)
        copy = _part("base").clone(classifier, safe=False)
        copy.fit(encoder.fit_transform(cells), classes)
        return cls(seen, encoder, copy)

    def predicted(self, cells: Cells, size: int) -> Floats:
        """Probabilities of all symbols, 0 for those that were not seen."""
        table = np.zeros((len(cells), size))
        if self.classifier is None:
            table[:, self.seen] = 1.0
            return table
        predicted = self.classifier.predict_proba(self.encoder.transform(cells))
        shares = np.asarray(predicted, dtype=np.float64)
        if shares.shape != (len(cells), self.seen.size):
            rule = "predict one probability for each person and class"
            raise InvalidParameter("classifier", shares.shape, rule)
        sums = shares.sum(axis=1, keepdims=True)
        if not (np.all(shares >= 0) and np.all((sums > 0) & np.isfinite(sums))):
            rule = "predict probabilities: finite, nowhere negative, not all 0"
            raise InvalidParameter("classifier", "others", rule)
        table[:, self.seen] = shares / sums
        return table


def _temperature(predicted: Floats, places: Ints, floor: float) -> float:
    """The temperature at which the floored priors have the least log loss.

    A mild pull towards 1 settles what few rows, or rows all alike, leave open.
    """
    people = np.arange(places.size)

    def loss(logarithm: float) -> float:
        priors = _floored(_tempered(predicted, portable.exp(logarithm)), floor)
        return float(0.5 * logarithm**2 - portable.log(priors[people, places]).sum())

    bounds = (portable.log(_COLDEST), portable.log(_HOTTEST))
    found = float(minimize_scalar(loss, bounds=bounds, method="bounded").x)
    return portable.exp(found)


def _tempered(predicted: Floats, temperature: float) -> Floats:
    # Divided by the largest first, so that no row can vanish.
    largest = predicted.max(axis=1, keepdims=True)
    powers = portable.power(predicted / largest, 1 / temperature)
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _floored(probabilities: Floats, floor: float) -> Floats:
    return np.asarray((1 - floor) * probabilities + floor / probabilities.shape[1])


def _left_out(rows: int, folds: int) -> Iterable[Bools]:
    """Who is left out in each turn; shuffled by a fixed seed, for tables are often sorted."""
    turns = min(checks.count("folds", folds, at_least=2), rows)
    turn = np.random.default_rng(0).permutation(rows) % turns
    return (turn == this for this in range(turns))


def _rows_for(columns: _Columns, features: Features, values: Column) -> Cells:
    cells = columns.cells(features)
    if len(cells) != len(values):
        rule = f"have {len(cells)} entries, one per row of the features"
        raise InvalidParameter("values", len(values), rule)
    return cells


def _number(name: str, cell: object) -> float:
    if cell is None:
        return math.nan
    if not isinstance(cell, Real | np.bool_):
        rule = "hold numbers, or None where one is missing"
        raise InvalidParameter(f"features[{name!r}]", type(cell).__name__, rule)
    size: Any = abs(cell)  # before it becomes a float, which the largest whole numbers cannot
    if size > _LARGEST:
        rule = f"hold finite numbers of at most {_LARGEST:g}"
        raise InvalidParameter(f"features[{name!r}]", "a larger one", rule)
    return float(cell)


def _text(name: str, cell: object) -> str:
    if cell is None or (isinstance(cell, float | np.floating) and math.isnan(cell)):
        return ""
    if not isinstance(cell, str):
        rule = "hold strings only, or None where one is missing"
        raise InvalidParameter(f"features[{name!r}]", type(cell).__name__, rule)
    return str(cell)


def _encoder(columns: _Columns) -> Any:
    """Numbers: median for missing ones, which are marked, and scaled. Texts: one-hot."""
    preprocessing = _part("preprocessing")
    numbers = _part("pipeline").make_pipeline(
        _part("impute").SimpleImputer(
            strategy="median", add_indicator=True, keep_empty_features=True
        ),
        preprocessing.StandardScaler(),
        preprocessing.FunctionTransformer(np.clip, kw_args={"a_min": -_FAR, "a_max": _FAR}),
    )
    texts = preprocessing.OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=_CATEGORIES, sparse_output=False
    )
    numeric = np.array(columns.numeric)
    return _part("compose").ColumnTransformer(
        [("numbers", numbers, np.flatnonzero(numeric)), ("texts", texts, np.flatnonzero(~numeric))]
    )


def _classifier(given: Any) -> Any:
    """The classifier to copy. Fitting tosses no coin of privacy, so its seed may be fixed."""
    if given is None:
        return _part("ensemble").RandomForestClassifier(
            n_estimators=100, min_samples_leaf=5, max_features=0.5, random_state=0
        )
    if not (hasattr(given, "fit") and hasattr(given, "predict_proba")):
        rule = "have the methods fit and predict_proba"
        raise InvalidParameter("classifier", type(given).__name__, rule)
    return given


def _part(name: str) -> Any:
    """A module of scikit-learn, which takes a second to load."""
    return import_module(f"sklearn.{name}")
