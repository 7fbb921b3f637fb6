from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from sfumato import Alphabet
from sfumato.column.feature_prior import FeaturePrior
from sfumato.core.errors import InvalidParameter, UnknownSymbol
from sfumato.solver import optimal

Floats = NDArray[np.float64]
SECRET = "s3cret-value"


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Hundreds of tiny fits: on a busy machine threads would mostly wait for each other."""
    with threadpool_limits(limits=1):
        yield


def quick() -> LogisticRegression:
    return LogisticRegression(max_iter=1000)


class Frequencies:
    """A classifier by duck's feet: no parameters, no labels, the same answer for everybody."""

    def fit(self, rows: Floats, classes: NDArray[np.int64]) -> "Frequencies":
        self.shares = np.bincount(classes) / classes.size
        return self

    def predict_proba(self, rows: Floats) -> Floats:
        return np.tile(self.shares, (len(rows), 1))


class Answering(Frequencies):
    """Predicts what it was told to, whatever it was trained on."""

    def __init__(self, answer: list[float]) -> None:
        self.answer = answer

    def predict_proba(self, rows: Floats) -> Floats:
        return np.tile(np.array(self.answer), (len(rows), 1))


class TooSure(LogisticRegression):  # type: ignore[misc]
    """The same order of the classes, with probabilities squared and renormalised."""

    def predict_proba(self, rows: Floats) -> Floats:
        squared = super().predict_proba(rows) ** 2
        return np.asarray(squared / squared.sum(axis=1, keepdims=True))


def town(people: int, seed: int = 0) -> tuple[dict[str, Any], NDArray[np.int64], Floats]:
    """Features, values in 0..2 and the true distribution of each person's value."""
    rng = np.random.default_rng(seed)
    age, job = rng.normal(size=people), rng.integers(0, 3, size=people)
    logits = np.stack([0 * age, 1.2 * age + 0.8 * (job == 1), -0.9 * age + 1.1 * (job == 2)], 1)
    truth = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    values = (rng.random(people)[:, None] > truth.cumsum(axis=1)).sum(axis=1)
    return {"age": age, "job": np.array(["nurse", "cook", "clerk"])[job]}, values, truth


def taken(features: dict[str, Any], rows: NDArray[np.int64]) -> dict[str, Any]:
    return {name: [column[row] for row in rows] for name, column in features.items()}


# Priors are priors --------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 6),
    people=st.integers(1, 25),
    floor=st.sampled_from([1e-9, 1e-3, 0.2, 0.99]),
    folds=st.integers(2, 6),
)
@settings(max_examples=10)
def test_every_prior_has_full_support_and_keeps_the_floor(
    seed: int, size: int, people: int, floor: float, folds: int
) -> None:
    rng = np.random.default_rng(seed)
    hole = rng.random(people) < 0.2
    features = {
        "number": rng.normal(size=people).astype(object),
        "text": rng.choice(list("abc"), people).astype(object),
    }
    for column in features.values():
        column[hole] = None
    values = rng.integers(0, size, size=people)
    fitted = FeaturePrior.fit(
        features,
        values,
        alphabet=Alphabet.of_size(size + 1),
        classifier=quick(),
        floor=floor,
        folds=folds,
    )
    priors = fitted.priors(features)
    assert priors.shape == (people, size + 1)
    assert np.all(priors >= floor / (size + 1))
    assert np.abs(priors.sum(axis=1) - 1).max() <= 1e-12
    assert not priors.flags.writeable


def test_the_default_classifier_learns_and_is_deterministic() -> None:
    features, values, _ = town(200)
    others, _, truth = town(300, seed=7)
    first, again = (FeaturePrior.fit(features, values, folds=2) for _ in range(2))
    priors = first.priors(others)
    assert np.array_equal(priors, again.priors(others))
    assert first.temperature == again.temperature
    overall = np.bincount(values) / values.size
    assert np.abs(priors - truth).mean() < 0.75 * np.abs(overall - truth).mean()


def test_a_prior_depends_on_nobody_else_who_is_asked_about() -> None:
    features, values, _ = town(120)
    fitted = FeaturePrior.fit(features, values, classifier=quick())
    order = np.random.default_rng(1).permutation(120)
    together = fitted.priors(features)
    assert fitted.priors(taken(features, order)) == pytest.approx(together[order], abs=1e-14)
    assert fitted.priors(taken(features, order[:1])) == pytest.approx(together[order[:1]])


def test_the_order_of_columns_and_further_columns_are_of_no_account() -> None:
    features, values, _ = town(60)
    fitted = FeaturePrior.fit(features, values, classifier=quick())
    turned = {"new": [0] * 60, "job": features["job"], "age": features["age"]}
    assert np.array_equal(fitted.priors(turned), fitted.priors(features))


def test_a_prior_can_be_designed_for() -> None:
    features, values, _ = town(60)
    prior = FeaturePrior.fit(features, values, classifier=quick()).priors(features)[0]
    assert optimal(prior, 1 - np.eye(3), 0.5).sip.epsilon <= 0.5


# What training never saw --------------------------------------------------------------------------


def test_a_symbol_that_nobody_had_gets_the_floor_exactly() -> None:
    features, values, _ = town(80)
    names = np.array(["a", "b", "d"])[values]
    alphabet = Alphabet("abcd")
    fitted = FeaturePrior.fit(features, names, alphabet=alphabet, classifier=quick(), floor=0.02)
    assert np.all(fitted.priors(features)[:, 2] == 0.02 / 4)


@pytest.mark.parametrize("people", [1, 2, 7])
def test_one_class_alone_is_predicted_for_everybody(people: int) -> None:
    features = {"age": list(range(people))}
    fitted = FeaturePrior.fit(features, ["b"] * people, alphabet=Alphabet("ab"), floor=0.1)
    assert fitted.priors({"age": [3, None]}) == pytest.approx(np.array([[0.05, 0.95]] * 2))
    assert fitted.temperature == pytest.approx(1.0)


def test_a_class_with_fewer_members_than_folds_is_kept() -> None:
    features, values, _ = town(60)
    rare = np.where(np.arange(60) == 7, 3, values)
    fitted = FeaturePrior.fit(features, rare, classifier=quick(), floor=1e-6, folds=5)
    assert fitted.alphabet.labels == (0, 1, 2, 3)
    assert np.all(fitted.priors(features)[:, 3] > 1e-4)


def test_an_unseen_category_counts_as_none() -> None:
    known = {"job": ["cook", "nurse"] * 30}
    fitted = FeaturePrior.fit(known, ["a", "b"] * 30, classifier=quick())
    cook, nurse, other = fitted.priors({"job": ["cook", "nurse", "pilot"]})
    assert cook[0] > 0.9 and nurse[1] > 0.9
    assert other == pytest.approx([0.5, 0.5], abs=0.01)


def test_rare_categories_count_as_one() -> None:
    job = [f"job {place}" for place in range(200)] + ["cook"] * 100
    fitted = FeaturePrior.fit({"job": job}, ["a"] * 200 + ["b"] * 100, classifier=quick())
    rare, unseen, cook = fitted.priors({"job": ["job 199", "pilot", "cook"]})
    assert rare[0] > 0.8 and cook[1] > 0.8
    assert np.array_equal(rare, unseen)


def test_that_something_is_missing_is_itself_a_feature() -> None:
    for holes in ([None, 1.5], [float("nan"), 1.5], [None, "cook"], [float("nan"), "cook"]):
        fitted = FeaturePrior.fit({"column": holes * 30}, ["a", "b"] * 30, classifier=quick())
        gone, there = fitted.priors({"column": holes})
        assert gone[0] > 0.9 and there[1] > 0.9


def test_a_missing_number_counts_as_the_median_where_training_had_none_missing() -> None:
    fitted = FeaturePrior.fit({"age": [1, 2, 3, 4, 5]}, [0, 0, 1, 1, 1], classifier=quick())
    gone, median = fitted.priors({"age": [None, 3]})
    assert np.array_equal(gone, median)


def test_an_empty_column_says_nothing() -> None:
    features, values, _ = town(60)
    with_hole = {**features, "empty": [None] * 60}
    plain = FeaturePrior.fit(features, values, classifier=quick()).priors(features)
    holed = FeaturePrior.fit(with_hole, values, classifier=quick()).priors(with_hole)
    assert holed == pytest.approx(plain, abs=1e-3)


@pytest.mark.parametrize("classifier", [DecisionTreeClassifier(random_state=0), quick()])
def test_numbers_far_out_have_a_prior(classifier: Any) -> None:
    fitted = FeaturePrior.fit({"age": [1, 2, 3, 4] * 5}, [0, 0, 1, 1] * 5, classifier=classifier)
    near, far = fitted.priors({"age": [200, 1e100]})
    assert np.array_equal(near, far)
    assert near[1] > 0.5


# Calibration --------------------------------------------------------------------------------------


def miscalibration(priors: Floats, truth: Floats) -> float:
    """Mean distance of predicted and true probability, over ten groups of like predictions.

    `truth` is the known conditional distribution, not a draw: what differs is not sampling noise.
    """
    gaps = []
    for symbol in range(priors.shape[1]):
        groups = np.array_split(np.argsort(priors[:, symbol]), 10)
        gaps += [abs((priors - truth)[group, symbol].mean()) for group in groups]
    return float(np.mean(gaps))


def test_probabilities_match_frequencies_even_if_the_classifier_is_too_sure() -> None:
    features, values, _ = town(3000, seed=1)
    others, _, truth = town(4000, seed=2)
    plain = FeaturePrior.fit(features, values, classifier=quick())
    mended = FeaturePrior.fit(features, values, classifier=TooSure(max_iter=1000))
    squared = plain.priors(others) ** 2
    planted = squared / squared.sum(axis=1, keepdims=True)
    assert miscalibration(plain.priors(others), truth) < 0.02
    assert miscalibration(mended.priors(others), truth) < 0.02
    assert miscalibration(planted, truth) > 0.04
    assert plain.temperature == pytest.approx(1.0, abs=0.1)
    assert mended.temperature == pytest.approx(2.0, abs=0.2)


def test_a_classifier_that_knows_nothing_is_left_as_it_is() -> None:
    features, values, _ = town(400)
    fitted = FeaturePrior.fit(features, values, classifier=Frequencies(), floor=1e-6)
    shares = np.bincount(values) / values.size
    assert fitted.priors(features).mean(axis=0) == pytest.approx(shares, abs=0.05)


def test_the_classifier_that_was_given_predicts_and_is_not_touched() -> None:
    given, features = Answering([0.2, 0.8]), {"age": [1, 2] * 5}
    fitted = FeaturePrior.fit(features, ["a", "b"] * 5, classifier=given, floor=0.1)
    tempered = np.array([0.2, 0.8]) ** (1 / fitted.temperature)
    expected = 0.9 * tempered / tempered.sum() + 0.05
    assert fitted.priors({"age": [7]})[0] == pytest.approx(expected, abs=1e-12)
    assert not hasattr(given, "shares")


# Cross-fitting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("classifier", [quick(), Frequencies()])
def test_no_value_shapes_its_own_prior(classifier: Any) -> None:
    features, values, _ = town(24)
    alphabet = Alphabet.of_size(4)

    def priors(told: NDArray[np.int64]) -> Floats:
        return FeaturePrior.cross_fitted(
            features, told, alphabet=alphabet, classifier=classifier, folds=2
        )

    before = priors(values)
    for person in (0, 23):
        for other in (values[person], (values[person] + 1) % 4):
            changed = values.copy()
            changed[person] = other
            after = priors(changed)
            assert np.array_equal(after[person], before[person])
            if other != values[person]:
                assert not np.array_equal(after, before)


def test_a_fit_on_all_rows_would_be_found_out() -> None:
    features, values, _ = town(24)
    changed = np.where(np.arange(24) == 5, (values + 1) % 3, values)
    first, second = (
        FeaturePrior.fit(features, told, alphabet=Alphabet.of_size(3), classifier=quick())
        for told in (values, changed)
    )
    assert not np.array_equal(first.priors(features)[5], second.priors(features)[5])


def test_cross_fitted_priors_are_priors_and_know_something() -> None:
    features, values, truth = town(400)
    priors = FeaturePrior.cross_fitted(
        features, values, alphabet=Alphabet.of_size(4), classifier=quick(), floor=0.01, folds=3
    )
    assert np.all(priors >= 0.01 / 4)
    assert np.abs(priors.sum(axis=1) - 1).max() <= 1e-12
    assert np.abs(priors[:, :3] - truth).mean() < 0.06


def test_a_table_sorted_by_value_is_cross_fitted_all_the_same() -> None:
    features, values, truth = town(200)
    order = np.argsort(values)
    priors = FeaturePrior.cross_fitted(
        taken(features, order),
        values[order],
        alphabet=Alphabet.of_size(3),
        classifier=quick(),
        folds=3,
    )
    assert np.abs(priors - truth[order]).mean() < 0.1


# Refusals -----------------------------------------------------------------------------------------

TABLE: dict[str, Any] = {"age": [1, 2, 3, 4], "job": ["cook", "nurse", None, "cook"]}
LABELS = ["a", "b", "a", "b"]


@pytest.mark.parametrize(
    ("features", "values", "options", "message"),
    [
        ({}, LABELS, {}, "features must have at least one column"),
        ({"age": []}, [], {}, r"features\['age'\] must have 1 entries"),
        ({"age": [1, 2], "job": ["cook"]}, LABELS, {}, r"features\['job'\] must have 2 entries"),
        (TABLE, LABELS[:3], {}, "values must have 4 entries"),
        (TABLE, [1.5, 2, 1, 2], {}, "labels must be strings or whole numbers"),
        ({"age": [1, 2, SECRET, 4]}, LABELS, {}, r"features\['age'\] must hold strings only"),
        ({"age": [1, 2, 10**400, 4]}, LABELS, {}, r"features\['age'\] must hold finite numbers"),
        ({"age": [1, 2, np.inf, 4]}, LABELS, {}, r"features\['age'\] must hold finite numbers"),
        ({"age": [1, 2, [SECRET], 4]}, LABELS, {}, r"features\['age'\] must hold numbers"),
        (TABLE, LABELS, {"floor": 0.0}, "floor must lie strictly between 0 and 1"),
        (TABLE, LABELS, {"floor": 1.0}, "floor must lie strictly between 0 and 1"),
        (TABLE, LABELS, {"folds": 1}, "folds must be a whole number of at least 2"),
        (TABLE, LABELS, {"classifier": LinearSVC()}, "have the methods fit and predict_proba"),
        (TABLE, LABELS, {"classifier": Answering([1.0])}, "one probability for each person"),
        (TABLE, LABELS, {"classifier": Answering([-1.0, 2.0])}, "must predict probabilities"),
        (TABLE, LABELS, {"classifier": Answering([0.0, 0.0])}, "must predict probabilities"),
        (TABLE, LABELS, {"classifier": Answering([np.nan, 1.0])}, "must predict probabilities"),
    ],
)
def test_what_cannot_be_learnt_from_is_refused(
    features: Any, values: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidParameter, match=message) as refusal:
        FeaturePrior.fit(features, values, **{"classifier": quick(), **options})
    assert SECRET not in str(refusal.value)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"age": [1]}, "features must have the column 'job'"),
        ({"age": [SECRET], "job": ["cook"]}, r"features\['age'\] must hold numbers"),
        ({"age": [1], "job": [7]}, r"features\['job'\] must hold strings only"),
        ({"age": [], "job": []}, r"features\['age'\] must have 1 entries"),
        ({"age": [1], "job": []}, r"features\['job'\] must have 1 entries"),
    ],
)
def test_features_unlike_those_of_training_are_refused(features: Any, message: str) -> None:
    fitted = FeaturePrior.fit(TABLE, LABELS, classifier=quick())
    with pytest.raises(InvalidParameter, match=message) as refusal:
        fitted.priors(features)
    assert SECRET not in str(refusal.value)


def test_an_unknown_value_is_refused_and_not_quoted() -> None:
    values, alphabet = ["a", "b", "a", SECRET], Alphabet("ab")
    for learn in (FeaturePrior.fit, FeaturePrior.cross_fitted):
        with pytest.raises(UnknownSymbol, match="one of the 2 symbols") as refusal:
            learn(TABLE, values, alphabet=alphabet, classifier=quick())
        assert SECRET not in str(refusal.value)


def test_nobody_is_left_to_learn_from_in_a_table_of_one() -> None:
    with pytest.raises(InvalidParameter, match="values must have at least 2 entries"):
        FeaturePrior.cross_fitted({"age": [1]}, ["a"], alphabet=Alphabet("ab"))
