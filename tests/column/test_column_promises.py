"""What a released column promises, against oracles of rational numbers and plain counting."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

import sfumato as sf
from sfumato.column.column_rivals import rivals
from sfumato.column.column_spec import ColumnSpec
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LIP
from sfumato.models.mixture import GaussianMixture
from sfumato.tables.problems import BadTable
from tests.column.test_privatize import FRAMES, LEARNT, cells, release, sampled, simulate
from tests.contracts.mechanism_laws import watched
from tests.oracles.exact_leakage import exact_information_leakage

Floats = NDArray[np.float64]


def exact_ratio(channel: Channel, prior: Sequence[float]) -> Fraction:
    """The largest ratio of a row and the marginal, either way, in rational numbers."""
    share = [Fraction(float(mass)) for mass in prior]
    worst = Fraction(1)
    for column in channel.weights.T.tolist():
        mean = sum((p * w for p, w in zip(share, column, strict=True)), Fraction(0)) / sum(share)
        worst = max(worst, *(max(w / mean, mean / w) for w in column))
    return worst


def below(ratio: Fraction, epsilon: float) -> bool:
    """Whether a ratio is at most e**epsilon, up to the rounding of one logarithm."""
    told = math.log(ratio.numerator) - math.log(ratio.denominator)
    return told <= epsilon + 1e-12


# Priors that were given --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "epsilon"),
    [("optimal", 1.0), ("optimal", 8.0), ("laplace", 4.0), ("quantile-response", 8.0)],
)
def test_the_leakage_is_that_under_the_very_prior_that_was_given(
    epsilon: float, mechanism: str
) -> None:
    bell = GaussianMixture.normal(0.0, 5.0)
    options: dict[str, Any] = {"interval": (-30.0, 30.0), "points": 121, "mechanism": mechanism}
    done, channel = sampled({"x": [1.0]}, prior=bell, epsilon=epsilon, **options)
    cuts = np.concatenate([[-np.inf], np.linspace(-29.75, 29.75, 120), [np.inf]])
    upper = np.diff(stats.norm.cdf(cuts, 0, 5))
    masses = np.minimum(upper, upper[::-1])  # of the tail that keeps its digits
    assert below(exact_ratio(channel, masses), done.certificate.lip.epsilon + 1e-9)
    assert done.certificate.lip <= LIP(epsilon)
    assert done.certificate.floor == 0.0


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 8.0])
def test_a_symbol_that_a_given_prior_calls_impossible_changes_no_certificate(
    epsilon: float,
) -> None:
    prior = {"a": 0.7, "b": 0.3, "c": 0.0}
    done, channel = sampled({"x": ["a", "b"]}, prior=prior, epsilon=epsilon)
    assert below(exact_ratio(channel, [0.7, 0.3, 0.0]), done.certificate.lip.epsilon)
    # Whoever has it none the less is covered, too.
    assert release({"x": ["c"]}, prior=prior, epsilon=epsilon).certificate.lip <= LIP(epsilon)


def test_only_what_was_estimated_has_a_floor_and_it_is_said() -> None:
    values = np.random.default_rng(1).normal(50, 9, 400).round(2).tolist()
    options: dict[str, Any] = {"interval": (0.0, 100.0), "points": 51}
    fitted = release({"x": values}, prior="mixture", **options).certificate
    assert fitted.floor == 1e-6
    assert any("1e-06 of it spread evenly" in remark for remark in fitted.remarks)
    counted = release({"x": values}, **options).certificate
    assert counted.floor == pytest.approx(20 / 420)  # the root of 400 rows
    assert any("0.048 of it spread evenly" in remark for remark in counted.remarks)
    given = release({"x": values}, prior=GaussianMixture.normal(50, 9), **options).certificate
    assert given.floor == 0.0
    assert not any("spread" in remark for remark in given.remarks)


# What leaves beside it ---------------------------------------------------------------------------


def flowers(seed: int = 2, each: int = 60) -> dict[str, list[Any]]:
    """Three kinds of flowers with hardly overlapping widths, in no order."""
    rng = np.random.default_rng(seed)
    rows = [
        (kind, round(0.2 * round(float(rng.normal(mean, 0.2)) / 0.2), 1))
        for kind, mean in (("setosa", 0.3), ("versicolor", 1.3), ("virginica", 2.1))
        for _ in range(each)
    ]
    order = rng.permutation(len(rows))
    return {"kind": [rows[i][0] for i in order], "width": [rows[i][1] for i in order]}


NUMBERS: dict[str, Any] = {"interval": (0.0, 3.0), "points": 16}


def attacked(seen: Sequence[Channel], frame: dict[str, list[Any]]) -> float:
    """The largest leakage for someone who knows the kind, by counting."""
    worst = Fraction(1)
    kinds = sorted(set(frame["kind"]))
    for channel, kind in zip(seen, kinds, strict=True):
        pairs = zip(frame["kind"], frame["width"], strict=True)
        places = [round(min(max(width, 0.0), 3.0) / 0.2) for own, width in pairs if own == kind]
        counts = np.bincount(places, minlength=16) + math.sqrt(len(places)) / 16
        worst = max(worst, exact_ratio(channel, (counts / counts.sum()).tolist()))
    return float(math.log(worst))


def test_a_kept_column_is_known_to_whom_the_certificate_is_about() -> None:
    frame = flowers()
    with watched() as seen:
        done = release(frame, "width", keep=["kind"], **NUMBERS)
    assert attacked(seen, frame) <= done.certificate.lip.epsilon + 1e-12 <= 1 + 1e-9
    assert (done.certificate.kept, done.certificate.independent) == (("kind",), ())
    with watched() as seen:
        blind = release(frame, "width", keep=["kind"], independent=["kind"], **NUMBERS)
    # What the old certificate ignored: the same attacker on a mechanism that knows no kinds.
    assert attacked([seen[0]] * 3, frame) > blind.certificate.lip.epsilon + 0.1


def test_a_declared_column_is_recorded_and_its_lie_is_told_to_the_operator_alone() -> None:
    frame = flowers()
    done = release(frame, "width", keep=["kind"], independent=["kind"], **NUMBERS)
    assert done.certificate.independent == ("kind",)
    assert any("declared to tell nothing" in remark for remark in done.certificate.remarks)
    assert any("look tied to 'kind'" in note for note in done.notes)
    assert "tied" not in str(done.certificate)
    fair = frame | {"kind": [["u", "v"][i % 2] for i in range(180)]}
    assert release(fair, "width", keep=["kind"], independent=["kind"], **NUMBERS).notes == ()


@pytest.mark.parametrize("mechanism", ["optimal", "calibrated", "randomized-response"])
def test_symbols_are_certified_within_every_group_too(mechanism: str) -> None:
    rng = np.random.default_rng(3)
    homes = [["east", "west"][place] for place in rng.integers(0, 2, 200)]
    shares = {"east": [0.8, 0.1, 0.1], "west": [0.1, 0.2, 0.7]}
    frame = {"home": homes, "x": [str(rng.choice(list("abc"), p=shares[h])) for h in homes]}
    done, made = sampled(frame, keep=["home"], mechanism=mechanism)
    for home in ("east", "west"):
        own = [x for x, h in zip(frame["x"], homes, strict=True) if h == home]
        counts = np.array([own.count(symbol) for symbol in "abc"]) + 0.5
        told = made.leakage(counts / counts.sum()) if mechanism.startswith("random") else None
        assert told is None or told <= done.certificate.lip
    with watched() as seen:
        release(frame, keep=["home"], mechanism=mechanism)
    if isinstance(seen[0], Channel):
        assert len(seen) == 2


def test_the_group_of_numbers_about_which_most_is_told_is_the_one_that_counts() -> None:
    # Noise that ignores the prior leaks more under a prior that is narrow.
    rng = np.random.default_rng(6)
    homes = rng.permutation(["near", "far"] * 60).tolist()
    values = [float(rng.normal(5, 0.4 if home == "near" else 3)) for home in homes]
    options: dict[str, Any] = {"interval": (0.0, 10.0), "points": 11, "mechanism": "laplace-local"}
    with watched() as seen:
        done = release({"x": values, "home": homes}, keep=["home"], **options)
    leakages = [
        float(exact_information_leakage(channel.weights, list(prior)))
        for channel, prior in zip(seen, done.knowledge.priors, strict=True)
    ]
    assert max(leakages) <= done.certificate.lip.epsilon <= 1.01 * max(leakages)
    assert min(leakages) < 0.97 * max(leakages)


def test_the_group_about_which_most_is_told_is_the_one_that_counts() -> None:
    rng = np.random.default_rng(4)
    shares = {"east": [0.98, 0.01, 0.01], "west": [0.4, 0.3, 0.3]}
    homes = [["east", "west"][place] for place in rng.integers(0, 2, 400)]
    frame = {"home": homes, "x": [str(rng.choice(list("abc"), p=shares[h])) for h in homes]}
    with watched() as seen:
        done = release(frame, keep=["home"])
    assert sorted(channel.is_constant for channel in seen) == [False, True]
    [telling] = [channel for channel in seen if not channel.is_constant]
    pairs = list(zip(frame["home"], frame["x"], strict=True))
    counts = np.array([pairs.count(("west", symbol)) for symbol in "abc"]) + 0.5
    ratio = exact_ratio(telling, (counts / counts.sum()).tolist())
    assert ratio > 2
    assert below(ratio, done.certificate.lip.epsilon)


def test_groups_may_be_learnt_from_public_records_and_a_new_one_is_refused() -> None:
    past, now = flowers(seed=5), flowers(seed=6, each=4)
    done = release(now, "width", keep=["kind"], history=past, **NUMBERS)
    assert done.certificate.rows == 12
    assert LEARNT not in str(done.certificate.remarks)
    other = now | {"kind": ["unheard-of", *now["kind"][1:]]}
    with pytest.raises(BadTable, match="row 1: ") as problem:
        release(other, "width", keep=["kind"], history=past, **NUMBERS)
    assert "unheard-of" not in str(problem.value)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"keep": ["id"]}, "must have 20 rows"),
        ({"keep": ["kind"], "prior": GaussianMixture.normal(1.0, 1.0)}, "declared independent"),
        ({"keep": ["id"], "prior": "features:kind", "kind": "symbols"}, "among the features"),
        ({"keep": ["kind"], "kind": "symbols", "radius": 0.1}, "declared independent"),
        ({"independent": ["kind"]}, "name columns that are kept"),
    ],
)
def test_kept_columns_that_nobody_can_certify_are_refused(
    options: dict[str, Any], rule: str
) -> None:
    frame = flowers() | {"id": list(range(180))}
    frame["width"] = [round(width) for width in frame["width"]]
    with watched() as seen, pytest.raises((BadTable, InvalidParameter), match=rule):
        release(frame, "width", **options)
    assert seen == []


def test_the_names_of_rows_may_be_kept() -> None:
    frame = flowers() | {"id": list(range(180))}
    done = release(frame, "width", keep=["id"], identity="id", **NUMBERS)
    assert done.certificate.independent == ("id",)


# The order of rows -------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["width", "kind"])
def test_an_order_of_rows_that_tells_of_the_column_is_refused(by: str) -> None:
    frame = flowers()
    rows = sorted(range(180), key=lambda row: frame[by][row])
    sorted_ = {name: [column[row] for row in rows] for name, column in frame.items()}
    with watched() as seen, pytest.raises(BadTable, match="order of the rows"):
        release(sorted_, "width", order="checked", **NUMBERS)
    assert seen == []
    kept = release(sorted_, "width", order="kept", **NUMBERS).certificate
    assert kept.order == "kept"
    assert any("declared to tell nothing" in remark for remark in kept.remarks)


@pytest.mark.parametrize("values", [["pos", "neg"], ["pos", "neg", "neg"]])
def test_rows_that_take_turns_are_refused(values: list[str]) -> None:
    with pytest.raises(BadTable, match="order of the rows"):
        release({"x": values * 100}, order="checked", epsilon=0.1)


def test_a_certificate_says_that_an_order_was_tested_and_not_proven_harmless() -> None:
    done = release(flowers(), "width", order="checked", **NUMBERS).certificate
    assert any("tested" in remark and "not proven" in remark for remark in done.remarks)


def test_an_order_by_a_kept_column_tells_nothing_new() -> None:
    frame = flowers()
    rows = sorted(range(180), key=lambda row: frame["kind"][row])
    sorted_ = {name: [column[row] for row in rows] for name, column in frame.items()}
    assert (
        release(sorted_, "width", keep=["kind"], order="checked", **NUMBERS).certificate.rows == 180
    )


def test_shuffled_rows_stay_whole() -> None:
    frame = {"x": [i % 3 for i in range(90)], "id": list(range(90))}
    options: dict[str, Any] = {"epsilon": 40.0, "prior": {0: 0.4, 1: 0.3, 2: 0.3}}
    options |= {"keep": ["id"], "independent": ["id"], "order": "shuffled"}
    told = release(frame, randomness=sf.secure(), **options).frame
    assert [i % 3 for i in told["id"]] == told["x"]
    assert sorted(told["id"]) == list(range(90))
    assert told["id"] != list(range(90))
    again = [release(frame, **options).frame for _ in range(2)]
    assert again[0] == again[1]


@pytest.mark.parametrize("frame", FRAMES)
def test_rows_of_every_kind_of_frame_are_shuffled_and_dropped_whole(frame: str) -> None:
    rows: dict[str, list[Any]] = {
        "x": [None if i % 5 == 4 else i % 3 for i in range(90)],
        "id": list(range(90)),
    }
    options: dict[str, Any] = {"epsilon": 40.0, "prior": {0: 0.4, 1: 0.3, 2: 0.3}}
    options |= {"keep": ["id"], "independent": ["id"], "order": "shuffled", "missing": "drop"}
    done = release(FRAMES[frame](rows), **options)
    told = list(zip(cells(done.frame, "id"), cells(done.frame), strict=True))
    assert sorted(told) == [(i, i % 3) for i in range(90) if i % 5 != 4]
    assert told != sorted(told)
    assert (done.missing, done.certificate.rows) == (18, 72)


# Symbols that are read off the column ------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        (["HIV positive"], "20 rows"),
        ([73_412.55], "20 rows"),
        (["No"] * 10_000, "one value"),
        ([f"person {i}" for i in range(500)], "no other row has"),
        (["yes", "no"] * 40 + [f"rare {i}" for i in range(12)], "no other row has"),
        ([f"0{i}" for i in range(100, 400)], "no other row has"),
        ([7.5] * 400, "hardly differ"),
    ],
)
def test_no_value_leaves_by_being_a_symbol(values: list[Any], rule: str) -> None:
    with watched() as seen, pytest.raises((BadTable, InvalidParameter), match=rule) as problem:
        release({"x": values}, order="kept")
    assert seen == []
    assert str(values[0]) not in str(problem.value)


def test_one_row_leaves_where_the_knowledge_is_public() -> None:
    prior = {"HIV positive": 0.1, "HIV negative": 0.9}
    assert release({"x": ["HIV positive"]}, prior=prior).certificate.rows == 1
    history = {"x": ["HIV positive"] + ["HIV negative"] * 9}
    assert release({"x": ["HIV positive"]}, history=history).certificate.rows == 1
    # The alphabet alone is not enough: a prior of one row is that row.
    with pytest.raises(BadTable, match="20 rows"):
        release({"x": ["HIV positive"]}, values=list(prior))


def test_money_is_read_as_numbers_and_that_is_said() -> None:
    rng = np.random.default_rng(7)
    pays = [f"${pay:,.2f}" for pay in rng.normal(50_000, 9_000, 300)]
    done = release({"pay": pays}, "pay")
    assert (done.certificate.kind, done.certificate.size > 50) == ("numbers", True)
    assert any("read as numbers" in remark for remark in done.certificate.remarks)
    assert any("before the fraction" in remark for remark in done.certificate.remarks)
    assert not set(pays) & {f"${told:,.2f}" for told in done.frame["pay"]}


def test_whole_numbers_of_many_kinds_are_numbers_even_in_short_columns() -> None:
    rng = np.random.default_rng(8)
    pays = rng.integers(20_000, 90_000, 80).tolist()
    done = release({"pay": pays}, "pay")
    assert done.certificate.kind == "numbers"
    assert not set(pays) & set(done.frame["pay"])
    ages = rng.integers(18, 65, 400).tolist()
    assert release({"age": ages}, "age").certificate.kind == "numbers"


def test_symbols_of_one_row_are_told_to_the_operator_alone() -> None:
    rng = np.random.default_rng(9)
    values = [str(value) for value in rng.choice(list("abc"), 200)] + ["d"]
    done = release({"x": values})
    assert done.notes == ("1 symbols occur in one row only: that they occur is told",)


# Missing values ----------------------------------------------------------------------------------

GAPS: list[Any] = ["a", None, "b", "", "a", " ", "b", math.nan] * 10


def test_missing_values_are_refused_dropped_or_a_symbol_and_counted() -> None:
    with pytest.raises(BadTable, match=r"row 2: the value must not be missing; 40 are"):
        release({"x": GAPS})
    dropped = release(
        {"x": GAPS, "row": list(range(80))}, missing="drop", keep=["row"], independent=["row"]
    )
    assert dropped.missing == 40
    assert dropped.frame["row"] == list(range(0, 80, 2))
    told = release({"x": GAPS}, missing="symbol")
    assert (told.missing, told.certificate.size, told.certificate.rows) == (40, 3, 80)
    assert set(told.frame["x"]) <= {"a", "b", "(missing)"}
    assert "40" not in str(told.certificate.remarks)


def test_a_missing_value_that_is_a_symbol_is_as_private_as_any() -> None:
    done, channel = sampled({"x": GAPS}, missing="symbol", mechanism="calibrated")
    counts = np.array([40.5, 20.5, 20.5])
    told = float(exact_information_leakage(channel.weights, list(counts / counts.sum())))
    assert told <= done.certificate.lip.epsilon + 1e-13
    assert channel.weights.min() > 0


def test_a_symbol_for_missing_values_is_there_whether_or_not_one_is_missing() -> None:
    whole = release({"x": ["a", "b"] * 20}, missing="symbol").certificate
    assert whole.size == 3


def test_dropped_rows_keep_their_kind_of_frame() -> None:
    frame = pd.DataFrame({"x": ["a", None, "b", "b"] * 10}, index=[f"r{i}" for i in range(40)])
    done = release(frame, missing="drop").frame
    assert isinstance(done, pd.DataFrame)
    assert done.index.tolist() == list(range(30))


@pytest.mark.parametrize("missing", ["skip", "ignore"])
def test_what_makes_no_sense_for_one_column_is_refused(missing: str) -> None:
    with pytest.raises(InvalidParameter, match="missing must be"):
        release({"x": ["a", "b"] * 20}, missing=missing)


# What it is worth --------------------------------------------------------------------------------


def test_a_release_that_is_worth_no_more_than_a_constant_says_so_loudly() -> None:
    done = release({"x": ["No"] * 10_000}, values=["No", "Yes"])
    assert set(done.frame["x"]) == {"No"}
    assert (done.certificate.gain, done.certificate.never) == (0.0, ("Yes",))
    assert any(r.startswith("NOT WORTH IT") for r in done.certificate.remarks)
    assert any("no row can get 'Yes'" in r for r in done.certificate.remarks)


def test_noise_that_loses_to_a_constant_says_how_much() -> None:
    values = np.random.default_rng(10).normal(0, 5, 400).round(2).tolist()
    options: dict[str, Any] = {"interval": (-30.0, 30.0), "points": 61, "epsilon": 0.5}
    noisy = release({"x": values}, mechanism="laplace", **options).certificate
    assert noisy.cost is not None
    assert noisy.silence is not None
    assert noisy.cost > 3 * noisy.silence
    assert noisy.gain == pytest.approx(1 - noisy.cost / noisy.silence, rel=0.1)
    assert any("times what a constant loses" in remark for remark in noisy.remarks)
    best = release({"x": values}, **options).certificate
    assert best.gain is not None
    assert best.gain > 0.05
    assert not any("WORTH" in remark for remark in best.remarks)


# Loss as people feel it --------------------------------------------------------------------------


def test_the_loss_counts_clamping_and_rounding() -> None:
    thousands = np.random.default_rng(11).normal(112, 30, 3_000).round(1)
    done = simulate({"x": thousands.tolist()}, interval=(0.0, 200_000.0), epsilon=2.0)
    felt = float(np.mean(np.abs(thousands - np.array(done.frame["x"]))))
    assert set(done.frame["x"]) == {0.0}
    assert done.certificate.cost == pytest.approx(felt, rel=0.1)  # two digits are told, rounded up
    assert done.certificate.rounding == pytest.approx(felt, rel=5e-2)
    silent = float(np.mean(np.abs(thousands - np.median(thousands))))
    assert done.certificate.silence == pytest.approx(silent, rel=5e-2)
    assert any(remark.startswith("TOO COARSE") for remark in done.certificate.remarks)


@pytest.mark.statistical
@pytest.mark.parametrize("prior", ["estimate", "mixture"])
def test_the_loss_is_what_many_releases_lose(prior: str) -> None:
    values = np.random.default_rng(12).normal(40, 12, 8_000)
    options: dict[str, Any] = {"interval": (20.0, 55.0), "points": 8, "prior": prior}
    done = simulate({"x": values.tolist()}, epsilon=2.0, **options)
    felt = np.abs(values - np.array(done.frame["x"]))
    error = 5 * float(felt.std()) / math.sqrt(felt.size) + 5e-2 * float(felt.mean())
    assert done.certificate.cost == pytest.approx(float(felt.mean()), abs=error)


def test_what_was_learnt_from_rows_is_told_in_two_digits_and_tests_no_guesses() -> None:
    values = np.random.default_rng(14).normal(50, 9, 400).tolist()
    options: dict[str, Any] = {"interval": (0.0, 100.0), "points": 51, "order": "kept"}
    prints = set()
    for last in (20.0, 80.0):
        done = release({"x": [*values, last]}, randomness=sf.secure(), **options).certificate
        for told in (done.cost, done.silence, done.rounding):
            assert told == float(f"{told:.2g}")
        prints.add(done.fingerprint)
    assert len(prints) == 1
    # A key tells different mechanisms apart, but only those who have it can test guesses.
    keyed = {release({"x": [*values, x]}, **options).certificate.fingerprint for x in (20.0, 80.0)}
    assert len(keyed) == 2
    other = release({"x": [*values, 20.0]}, randomness=sf.keyed(b"another secret, 16+"), **options)
    assert other.certificate.fingerprint not in keyed


# Rivals ------------------------------------------------------------------------------------------


def test_rivals_are_within_the_same_leakage_and_a_constant_is_among_them() -> None:
    values = np.random.default_rng(13).normal(0, 5, 500).round(2).tolist()
    options: dict[str, Any] = {"interval": (-20.0, 20.0), "points": 41, "epsilon": 2.0}
    done = release({"x": values}, **options)
    found = {rival.name: rival for rival in rivals(ColumnSpec("x", **options), done.knowledge)}
    assert found["optimal"].cost == pytest.approx(done.certificate.cost, rel=5e-2)
    assert found["a constant"].cost == pytest.approx(done.certificate.silence, rel=5e-2)
    assert all(rival.lip <= 2.0 for rival in found.values())
    best = min(found.values(), key=lambda rival: rival.cost)
    assert best.name == "optimal"
    # The fair rival is far better than noise, with or without the best guess from it.
    fair = found["quantile-response"].cost
    assert best.cost < fair < found["laplace, best guess"].cost < found["laplace"].cost


def test_rivals_of_symbols_are_told_too() -> None:
    done = release({"x": list("aabbbcab") * 10})
    found = [rival.name for rival in rivals(ColumnSpec("x", epsilon=1.0), done.knowledge)]
    assert set(found) >= {"optimal", "a constant", "calibrated", "randomized-response"}
    assert found[0] == "optimal"


def test_every_combination_of_what_leaves_is_released_or_refused_and_never_half() -> None:
    frame = flowers(each=25)
    for order, missing, mechanism in itertools.product(
        ("checked", "kept", "shuffled"), ("refuse", "drop"), ("optimal", "laplace")
    ):
        options: dict[str, Any] = {"order": order, "missing": missing, "mechanism": mechanism}
        done = release(frame, "width", keep=["kind"], **options, **NUMBERS)
        assert sorted(done.frame["kind"]) == sorted(frame["kind"])
        assert len(done.frame["width"]) == 75


# One meaning, one fingerprint; messages ----------------------------------------------------------


def test_whole_numbers_and_fractions_that_are_equal_give_the_same_answers() -> None:
    values = np.random.default_rng(12).uniform(0, 20, 60).round(2).tolist()

    def released(**options: Any) -> Any:
        key = sf.keyed(bytes(range(32)))
        frame = pd.DataFrame({"x": values})
        return sf.privatize(frame, "x", points=11, randomness=key, order="kept", **options)

    whole = released(epsilon=1, delta=0, ldp=4, interval=(0, 20))
    floats = released(epsilon=1.0, delta=0.0, ldp=4.0, interval=(0.0, 20.0))
    assert whole.certificate.fingerprint == floats.certificate.fingerprint
    assert whole.frame["x"].tolist() == floats.frame["x"].tolist()


@pytest.mark.parametrize("options", [{"interval": (0.0, 9.0)}, {}])
def test_a_missing_number_cannot_be_a_symbol(options: dict[str, Any]) -> None:
    values = [*np.linspace(0.5, 8.5, 60).tolist(), None]
    with pytest.raises(InvalidParameter, match="missing must be refuse or drop for numbers"):
        release({"x": values}, missing="symbol", **options)


def test_a_symbol_that_the_records_lack_says_to_name_all_possible_ones() -> None:
    past = pd.DataFrame({"x": ["a", "b"] * 20})
    with pytest.raises(BadTable, match=r"row 2: .*name all that are possible \(values\)"):
        release({"x": ["a", "c"]}, history=past)


def test_one_column_leaves_and_two_leave() -> None:
    frame = {"x": ["a", "b"] * 40, "k": ["u"] * 80, "l": ["v"] * 80}
    one = release(frame, keep=["k"], order="kept").certificate.remarks
    assert any(remark.startswith("'k' leaves beside it and is knowledge") for remark in one)
    two = release(frame, keep=["k", "l"], order="kept").certificate.remarks
    assert any(remark.startswith("'k', 'l' leave beside it and are knowledge") for remark in two)


@pytest.mark.parametrize("mechanism", ["optimal", "calibrated", "context-free"])
def test_leakages_learnt_from_the_rows_are_coarse_and_rounded_up(mechanism: str) -> None:
    values = list("aabacaabdabbcabacab") * 5
    exact = release({"x": values}, history={"x": values}, mechanism=mechanism, epsilon=0.9871234)
    coarse = release({"x": values}, mechanism=mechanism, epsilon=0.9871234).certificate
    for told, true in ((coarse.lip, exact.certificate.lip), (coarse.ldp, exact.certificate.ldp)):
        assert true.epsilon <= told.epsilon <= true.epsilon * 1.01
        assert told.epsilon in (float(f"{told.epsilon:.3g}"), 0.9871234)
    assert coarse.lip <= LIP(0.9871234)
    assert coarse.outputs is None
    assert exact.certificate.outputs is not None
