import itertools
import json
import math
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.linear_model import LogisticRegression

import sfumato as sf
from sfumato.column.column_certificate import Privatized
from sfumato.column.privatize import Privatizer, privatize
from sfumato.core.channel import Channel
from sfumato.core.errors import InsecureRandomness, InvalidParameter, SfumatoError
from sfumato.core.guarantees import LIP
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness
from sfumato.models.mixture import GaussianMixture
from sfumato.models.prior_sets import PriorBall, PriorBox, PriorList
from sfumato.noise.frequency import Reporting
from sfumato.tables.problems import BadTable
from tests.contracts.mechanism_laws import watched
from tests.oracles.exact_leakage import exact_information_leakage, exact_local_leakage

Floats = NDArray[np.float64]
Make = Callable[[dict[str, list[Any]]], Any]

FRAMES: dict[str, Make] = {
    "mapping": lambda columns: columns,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}
CHANNELS = ("optimal", "calibrated", "context-free")
REPORTS = ("randomized-response", "unary-encoding", "subset-selection")
SKEWED = {"a": 0.55, "b": 0.3, "c": 0.1, "d": 0.05}
PEOPLE: dict[str, list[Any]] = {
    "x": list("aabacaabdabbcaba") * 5,
    "id": [f"p{row}" for row in range(80)],
    "age": [20 + row % 7 for row in range(80)],
}
TOKEN = "raw-value-that-nobody-may-read"
LEARNT = "learnt from this very column"


def coins() -> Randomness:
    return sf.keyed(b"0123456789abcdef")


def release(frame: Any, column: str = "x", **options: Any) -> Privatized:
    given: dict[str, Any] = {"epsilon": 1.0, "order": "kept", "randomness": coins()} | options
    return privatize(frame, column, **given)


def simulate(frame: Any, **options: Any) -> Privatized:
    return release(frame, randomness=sf.seeded(7), purpose=Purpose.SIMULATION, **options)


def cells(frame: Any, column: str = "x") -> list[Any]:
    """A column of any frame, read without the package."""
    if isinstance(frame, dict):
        return list(frame[column])
    got = frame[column]
    return list(got.to_pylist() if isinstance(frame, pa.Table) else got.to_list())


def names(frame: Any) -> list[str]:
    if isinstance(frame, dict):
        return list(frame)
    return list(frame.column_names if isinstance(frame, pa.Table) else frame.columns)


def sampled(frame: Any, **options: Any) -> tuple[Privatized, Any]:
    """A release, and what it was sampled from."""
    with watched() as seen:
        done = release(frame, **options)
    return done, seen[0]


# Oracles -----------------------------------------------------------------------------------------


def worst_leakage(channel: Channel, corners: Sequence[Floats]) -> float:
    """Over a polytope of priors: ratios are monotone along edges, so corners decide."""
    return max(float(exact_information_leakage(channel.weights, list(p))) for p in corners)


# Certificates ------------------------------------------------------------------------------------


NUMBERS = [4.1, 4.6, 5.2, 5.3, 4.9, 6.1, 3.3, 5.1, 7.7, 4.4, 9.2, 0.7] * 4
POINTS: dict[str, Any] = {"interval": (0.0, 10.0), "points": 21}


def test_a_delta_is_not_claimed_by_a_pure_mechanism() -> None:
    done = release({"x": NUMBERS}, delta=1e-3, **POINTS)
    assert (done.certificate.lip.delta, done.certificate.ldp.delta) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("prior", "epsilon", "keeps"),
    [
        ({"a": 0.5, "b": 0.5}, 1.0, True),
        ({"a": 0.9, "b": 0.1}, 3.0, True),
        ({"a": 0.9, "b": 0.1}, 1.0, False),
        ({"a": 0.8, "b": 0.15, "c": 0.05}, 2.0, False),
    ],
)
def test_the_published_form_is_refused_just_where_it_breaks_its_budget(
    prior: dict[str, float], epsilon: float, keeps: bool
) -> None:
    frame = {"x": ["a", "b"]}
    options: dict[str, Any] = {"mechanism": "published", "prior": prior}
    if keeps:
        done, channel = sampled(frame, epsilon=epsilon, **options)
        told = exact_information_leakage(channel.weights, [*prior.values()])
        assert float(told) <= done.certificate.lip.epsilon + 1e-13 <= epsilon + 1e-12
        return
    with watched() as seen, pytest.raises(InvalidParameter, match="nothing was released"):
        release(frame, epsilon=epsilon, **options)
    assert seen == []


@pytest.mark.parametrize("mechanism", REPORTS)
def test_frequencies_are_a_function_of_what_left(mechanism: str) -> None:
    done, made = sampled(PEOPLE, mechanism=mechanism)
    shown, false = made.shown
    single = mechanism == "randomized-response"
    reports = [[str(cell)] if single else json.loads(cell) for cell in cells(done.frame)]
    assert done.certificate.frequencies is not None
    for symbol, (share, error) in done.certificate.frequencies.items():
        counted = sum(symbol in report for report in reports) / len(reports)
        assert share == pytest.approx((counted - false) / (shown - false), abs=1e-9)
        assert error > 0


# Priors ------------------------------------------------------------------------------------------


def test_an_estimate_is_the_smoothed_shares() -> None:
    done, channel = sampled(PEOPLE)
    counts = np.array([PEOPLE["x"].count(symbol) for symbol in "abcd"]) + 0.5
    told = float(exact_information_leakage(channel.weights, list(counts / counts.sum())))
    assert done.certificate.lip.epsilon == pytest.approx(told, abs=1e-9)
    assert done.spread.prior == pytest.approx(counts / counts.sum())
    assert LEARNT in str(done.certificate.remarks)


def test_all_ways_to_give_the_same_prior_agree(tmp_path: Path) -> None:
    given = sf.Prior([*SKEWED.values()], sf.Alphabet(SKEWED))
    sf.save(given, tmp_path / "known.prior")
    rows = "".join(f"{symbol},{mass}\n" for symbol, mass in reversed(SKEWED.items()))
    (tmp_path / "known.csv").write_text(f"value,probability\n{rows}")
    found = [
        release(PEOPLE, prior=prior)
        for prior in (SKEWED, given, str(tmp_path / "known.prior"), str(tmp_path / "known.csv"))
    ]
    assert len({str(replace(one.certificate, prior="")) for one in found}) == 1
    assert all(one.frame == found[0].frame for one in found)
    assert found[0].certificate.floor == 0
    assert "estimated" not in str(found[0].certificate.remarks)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "value,probability\n",
        "a,b\nx,1\n",
        "value,probability\na,1\na,0\n",
        "value,probability\na\n",
        "value,probability\na,many\n",
        "value,probability\na,0.5\nb,0.6\n",
    ],
)
def test_a_file_that_is_no_prior_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "known.csv").write_text(content)
    with pytest.raises(SfumatoError):
        release(PEOPLE, prior=str(tmp_path / "known.csv"))


@pytest.mark.parametrize("prior", ["estimation", "no-such-file.csv", "features:", "features:x"])
def test_an_unknown_source_of_a_prior_is_refused(prior: str) -> None:
    with pytest.raises(InvalidParameter, match="prior must"):
        release(PEOPLE, prior=prior)


THREE = {"x": list("aaabbc") * 5}


def boxed(lower: Floats, upper: Floats) -> list[Floats]:
    """The corners of a box of priors of three symbols: two at a bound, the third what is left."""
    found = []
    for free in range(3):
        others = [place for place in range(3) if place != free]
        for ends in itertools.product((lower, upper), repeat=2):
            corner = np.zeros(3)
            corner[others] = [end[place] for end, place in zip(ends, others, strict=True)]
            corner[free] = 1 - corner.sum()
            if lower[free] - 1e-12 <= corner[free] <= upper[free] + 1e-12:
                found.append(corner)
    return found


def moved(centre: Floats, radius: float) -> list[Floats]:
    """The corners of a ball: so much mass from one symbol to another."""
    unit = np.eye(3)
    return [centre + radius * (unit[i] - unit[j]) for i, j in itertools.permutations(range(3), 2)]


LISTED = [np.array([0.5, 0.3, 0.2]), np.array([0.3, 0.3, 0.4]), np.array([0.6, 0.2, 0.2])]
LOWER, UPPER, CENTRE = (
    np.array([0.4, 0.2, 0.1]),
    np.array([0.6, 0.5, 0.2]),
    np.array([0.5, 0.3, 0.2]),
)


@pytest.mark.parametrize(
    ("prior", "corners"),
    [
        (PriorList(LISTED), LISTED),
        (PriorBox(LOWER, UPPER), boxed(LOWER, UPPER)),
        (PriorBall(CENTRE, 0.1), moved(CENTRE, 0.1)),
    ],
)
def test_a_certificate_for_a_set_holds_at_every_corner(prior: Any, corners: list[Floats]) -> None:
    done, channel = sampled(THREE, prior=prior, epsilon=0.7)
    worst = worst_leakage(channel, corners)
    assert worst <= done.certificate.lip.epsilon + 1e-13 <= 0.7 + 1e-12
    assert done.certificate.lip.epsilon == pytest.approx(worst, abs=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"radius": 0.1, "ratio": 1.1},
        {"radius": -0.1},
        {"radius": math.nan},
        {"ratio": -1.0},
        {"radius": 0.1, "mechanism": "calibrated"},
        {"radius": 0.1, "prior": PriorBall([0.5, 0.3, 0.2], 0.1)},
        {"prior": PriorBall([0.5, 0.5], 0.1)},
        {"prior": "mixture", "kind": "symbols"},
        {"prior": {"a": 0.5, "b": 0.3, "c": 0.3}},
        {"delta": 0.1},
        {"epsilon": 0.0},
        {"epsilon": math.nan},
        {"mechanism": "laplace"},
        {"mechanism": "magic"},
        {"kind": "colours"},
        {"loss": "absolute"},
        {"mechanism": "context-free", "ldp": 1.0},
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_drawn(
    options: dict[str, Any],
) -> None:
    with watched() as seen, pytest.raises(InvalidParameter):
        release(THREE, **options)
    assert seen == []


def test_symbols_that_do_not_occur_may_be_listed() -> None:
    done, channel = sampled(THREE, values=["a", "b", "c", "d", "e"])
    assert done.certificate.size == channel.size == 5
    assert set(cells(done.frame)) <= set("abcde")
    assert release({"x": [3, 1] * 10}, values=range(1, 6)).certificate.size == 5


def test_a_mixture_of_normals_gives_the_masses_of_cells() -> None:
    density = GaussianMixture([0.3, 0.7], [3.0, 6.0], [1.0, 0.5])
    done, channel = sampled({"x": NUMBERS}, prior=density, **POINTS)
    cuts = np.concatenate([[-np.inf], np.linspace(0, 10, 21)[1:] - 0.25, [np.inf]])
    masses = 0.3 * np.diff(stats.norm.cdf(cuts, 3, 1)) + 0.7 * np.diff(stats.norm.cdf(cuts, 6, 0.5))
    assert done.spread.prior == pytest.approx(masses, abs=1e-15)
    told = float(exact_information_leakage(channel.weights, list(done.spread.prior)))
    assert told <= done.certificate.lip.epsilon + 1e-13
    learnt = release({"x": NUMBERS}, prior="mixture", **POINTS).certificate
    assert learnt.prior.startswith("a mixture of")
    assert LEARNT in str(learnt.remarks)


def test_numbers_stand_on_points_and_others_are_clamped() -> None:
    frame = {"x": [-5.0, 99.0, 2.4, 9.9, 0.1] * 4}
    done = release(frame, epsilon=40.0, interval=(0.0, 10.0), points=11)
    assert cells(done.frame) == [0.0, 10.0, 2.0, 10.0, 0.0] * 4
    assert done.clamped == 8
    assert done.certificate.interval == (0.0, 10.0)
    assert done.certificate.size == 11


def test_an_interval_that_nobody_gave_is_remarked_on() -> None:
    done = release({"x": NUMBERS})
    assert done.certificate.interval is not None
    assert any("give --range" in remark for remark in done.certificate.remarks)
    low, high = done.certificate.interval
    assert low <= np.quantile(NUMBERS, 0.01) < np.quantile(NUMBERS, 0.99) <= high
    assert done.certificate.size <= 200


def test_public_records_leave_no_remark_and_the_private_ones_do() -> None:
    history = {"x": list("abcd") * 20}
    assert LEARNT not in str(release(PEOPLE, history=history).certificate.remarks)
    assert LEARNT in str(release(PEOPLE).certificate.remarks)


# Columns -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([True, False, True], {"True", "False"}),
        ([1.0, 2.0, 2.0], {1, 2}),
        (["1", "2", "2"], {1, 2}),
        (["01", "2", "2"], {"01", "2"}),
        ([10**20, 10**21], {str(10**20), str(10**21)}),
        ([-0.0, 0, 1], {0, 1}),
    ],
)
def test_symbols_are_read_as_they_are_written(values: list[Any], labels: set[Any]) -> None:
    done = release({"x": values * 30}, mechanism="context-free")
    assert set(cells(done.frame)) == labels
    assert done.certificate.size == len(labels)


def test_one_symbol_alone_tells_nothing() -> None:
    done = release({"x": ["only"] * 3}, prior={"only": 1.0})
    assert (done.certificate.lip.epsilon, done.certificate.ldp.epsilon) == (0.0, 0.0)
    for mechanism in REPORTS:
        with pytest.raises(InvalidParameter):
            release({"x": ["only"] * 3}, prior={"only": 1.0}, mechanism=mechanism)


def shuffled(values: Sequence[Any]) -> list[Any]:
    return [values[row] for row in np.random.default_rng(5).permutation(len(values))]


def test_a_column_is_taken_for_what_it_looks_like() -> None:
    def interval(values: Sequence[Any], **options: Any) -> Any:
        return release({"x": shuffled(values)}, **options).certificate.interval

    assert interval(list(range(30)) * 2) is None
    assert interval(list(range(31)) * 2) is not None
    assert interval(list(range(20))) is not None
    assert interval([0.5, 1.0] * 10) is not None
    assert interval([0.5, 1.0] * 10, kind="symbols") is None
    assert interval([1, 2, 3] * 7, kind="numbers") is not None
    assert interval(["$1,200.50", "$90", "$3,000"] * 7) is not None
    assert release({"x": [1, 2, 3] * 7}, interval=(0, 9)).certificate.size == 200


@pytest.mark.parametrize("missing", [None, math.nan, "", "nan", "NaN"])
@pytest.mark.parametrize("kind", ["symbols", "numbers"])
def test_a_missing_value_is_named_by_its_row(missing: Any, kind: str) -> None:
    with pytest.raises(BadTable) as refusal:
        release({"x": ["1", "2", missing, "1"]}, kind=kind)
    assert refusal.value.row == 3


@pytest.mark.parametrize("frame", ["pandas", "polars", "pyarrow"])
def test_a_missing_value_of_a_frame_is_named_by_its_row(frame: str) -> None:
    for values in (["a", None, "b"], [1, None, 2], [1.5, None, 2.5]):
        with pytest.raises(BadTable) as refusal:
            release(FRAMES[frame]({"x": values}))
        assert refusal.value.row == 2


@pytest.mark.parametrize(
    "value", [math.inf, -math.inf, "inf", [1], {"a": 1}, date(2026, 1, 1), b"2", 2j, object()]
)
def test_what_is_no_value_is_named_by_its_row(value: Any) -> None:
    for kind in ("numbers", "symbols"):
        if (kind, value) in (("symbols", "inf"), ("numbers", b"2"), ("symbols", date(2026, 1, 1))):
            continue
        with pytest.raises(BadTable) as refusal:
            release({"x": [1, 2, value] + [1, 2] * 9}, kind=kind)
        assert refusal.value.row == 3


@pytest.mark.parametrize("frame", FRAMES)
def test_a_table_without_the_column_or_without_rows_is_refused(frame: str) -> None:
    with pytest.raises(BadTable, match="must have a column 'y'"):
        release(FRAMES[frame](PEOPLE), "y")
    with pytest.raises(BadTable, match="at least one row"):
        release(FRAMES[frame]({"x": []}))


@pytest.mark.parametrize("frame", [[1, 2], "x", None, pl.LazyFrame({"x": ["a"]}), pl.Series([1])])
def test_what_is_no_frame_is_refused(frame: Any) -> None:
    with pytest.raises(InvalidParameter, match="frame must be"):
        release(frame)


# Frames ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [*CHANNELS, *REPORTS])
def test_every_kind_of_frame_gives_the_same_answers(mechanism: str) -> None:
    found = {kind: release(make(PEOPLE), mechanism=mechanism) for kind, make in FRAMES.items()}
    for kind, one in found.items():
        assert type(one.frame) is type(FRAMES[kind]({"x": [1]}))
        assert asdict(one.certificate) == asdict(found["mapping"].certificate)
        assert cells(one.frame) == cells(found["mapping"].frame)


def test_every_kind_of_frame_gives_the_same_numbers() -> None:
    found = [release(make({"x": NUMBERS}), **POINTS) for make in FRAMES.values()]
    assert len({str(one.certificate) for one in found}) == 1
    assert len({tuple(cells(one.frame)) for one in found}) == 1


@pytest.mark.parametrize("frame", FRAMES)
def test_the_kept_columns_leave_first_and_the_released_one_last(frame: str) -> None:
    given = FRAMES[frame](PEOPLE)
    assert names(release(given).frame) == ["x"]
    done = release(given, keep=["age", "id"], independent=["id", "age"]).frame
    assert names(done) == ["age", "id", "x"]
    assert cells(done, "id") == PEOPLE["id"]
    assert cells(done, "age") == PEOPLE["age"]
    assert cells(done) == cells(release(given).frame)
    assert cells(given) == PEOPLE["x"]


@pytest.mark.parametrize("frame", FRAMES)
def test_the_released_column_and_unknown_ones_are_not_kept(frame: str) -> None:
    with pytest.raises(InvalidParameter, match="keep must not name a column"):
        release(FRAMES[frame](PEOPLE), keep=["x"])
    with pytest.raises(BadTable, match="must have a column 'street'"):
        release(FRAMES[frame](PEOPLE), keep=["street"])


@pytest.mark.parametrize("index", [list(range(79, -1, -1)), [0] * 80, [f"i{i}" for i in range(80)]])
def test_rows_stay_with_their_kept_columns_whatever_the_index(index: list[Any]) -> None:
    frame = pd.DataFrame(PEOPLE, index=index)
    done = release(frame, keep=["id"], identity="id").frame
    assert done["id"].tolist() == PEOPLE["id"]
    plain = release(PEOPLE, identity="id").frame
    assert done["x"].tolist() == cells(plain)


# Coins -------------------------------------------------------------------------------------------

PUBLIC = {"x": list("aabbbcd") * 9}


def answers(frame: dict[str, list[Any]], **options: Any) -> dict[str, Any]:
    """What was told of each person."""
    given: dict[str, Any] = {"history": PUBLIC, "identity": "id", "keep": ["id"]} | options
    done = release(frame, **given).frame
    return dict(zip(done["id"], done["x"], strict=True))


def rows_of(frame: dict[str, list[Any]], order: Sequence[int]) -> dict[str, list[Any]]:
    return {name: [column[row] for row in order] for name, column in frame.items()}


@pytest.mark.parametrize("mechanism", [*CHANNELS, *REPORTS])
def test_a_person_gets_the_same_answer_wherever_his_row_stands(mechanism: str) -> None:
    whole = answers(PEOPLE, mechanism=mechanism)
    assert answers(rows_of(PEOPLE, range(79, -1, -1)), mechanism=mechanism) == whole
    part = answers(rows_of(PEOPLE, range(5, 60, 3)), mechanism=mechanism)
    assert part.items() <= whole.items()


def test_another_plan_column_or_key_brings_other_coins() -> None:
    many = {"x": ["a"] * 300, "y": ["a"] * 300}

    def told(column: str = "x", **options: Any) -> str:
        history = {column: ["a", "b"] * 50}
        return "".join(cells(release(many, column, history=history, **options).frame, column))

    def differ(one: str, other: str) -> bool:
        return sum(p != q for p, q in zip(one, other, strict=True)) > 60

    assert told() == told()
    assert differ(told(), told("y"))
    assert differ(told(), told(randomness=sf.keyed(b"another key of 16")))
    # At nearly the same level, so that only the coins can make the difference.
    assert differ(told(), told(epsilon=1.0001))


def test_secure_coins_differ_between_runs() -> None:
    frame = {"x": ["a", "b"] * 200}
    assert len({tuple(cells(release(frame, randomness=None).frame)) for _ in range(4)}) == 4
    again = [cells(release(frame, randomness=sf.secure()).frame) for _ in range(2)]
    assert again[0] != again[1]


def test_seeded_coins_are_for_simulations_only() -> None:
    with watched() as seen, pytest.raises(InsecureRandomness):
        release(PEOPLE, randomness=sf.seeded(7))
    assert seen == []
    assert cells(simulate(PEOPLE).frame) == cells(simulate(PEOPLE).frame)


def test_names_of_rows_are_unique_and_need_keyed_coins() -> None:
    twice = PEOPLE | {"id": [TOKEN, TOKEN, *PEOPLE["id"][2:]]}
    with pytest.raises(BadTable, match="column 'id' must name each row once") as refusal:
        release(twice, identity="id")
    assert TOKEN not in str(refusal.value)
    with pytest.raises(InvalidParameter, match="identity must come with keyed coins"):
        release(PEOPLE, identity="id", randomness=sf.secure())


# Sampler -----------------------------------------------------------------------------------------


# Fit and transform -------------------------------------------------------------------------------


def test_what_was_fitted_to_records_releases_other_tables() -> None:
    options: dict[str, Any] = {"keep": ["id"], "identity": "id", "order": "kept"}
    fitted = Privatizer("x", epsilon=1.0, randomness=coins(), **options).fit(pd.DataFrame(PUBLIC))
    done = fitted.release(pl.DataFrame(PEOPLE))
    direct = release(PEOPLE, history=PUBLIC, **options)
    assert cells(done.frame) == cells(direct.frame)
    assert asdict(done.certificate) == asdict(direct.certificate)
    assert fitted.release({"x": ["d"], "id": [1]}).certificate.rows == 1


def test_fitting_refuses_what_keeps_no_budget() -> None:
    with pytest.raises(InvalidParameter, match="keep the budget"):
        Privatizer("x", epsilon=0.5, mechanism="published").fit({"x": list("aaaaaaaab")})


@pytest.mark.parametrize("frame", FRAMES)
def test_an_unknown_symbol_is_named_by_its_row(frame: str) -> None:
    fitted = Privatizer("x", epsilon=1.0).fit(PUBLIC)
    with pytest.raises(BadTable, match="one of the 4 symbols") as refusal:
        fitted.transform(FRAMES[frame]({"x": ["a", "b", TOKEN]}))
    assert refusal.value.row == 3
    assert TOKEN not in str(refusal.value)


GRADES = ("poor", "fair", "good")


def grades(seed: int, people: int) -> dict[str, list[Any]]:
    """People whose grade follows their hours."""
    rng = np.random.default_rng(seed)
    hours = rng.integers(0, 4, people)
    noise = rng.integers(0, 2, people)
    return {
        "grade": [GRADES[min(2, place)] for place in (0.7 * hours + noise).astype(int)],
        "hours": hours.tolist(),
        "id": [f"s{row}" for row in range(people)],
    }


@pytest.fixture(scope="module")
def taught() -> Privatizer:
    """Learnt from the features of others."""
    options: dict[str, Any] = {"identity": "id", "keep": ["id"], "randomness": coins()}
    privatizer = Privatizer("grade", epsilon=1.0, prior="features:hours", **options)
    with mock.patch("sfumato.column.feature_prior._classifier", return_value=LogisticRegression()):
        return privatizer.fit(grades(1, 120))


def test_everyone_is_released_under_the_prior_of_his_own_features(taught: Privatizer) -> None:
    people = grades(2, 40)
    assert taught.knowledge_.predictor is not None
    priors = taught.knowledge_.predictor.priors({"hours": people["hours"]})
    with watched() as seen:
        done = taught.release(people)
    # One channel for the people of each number of hours, in the order of their priors.
    worst = max(
        float(exact_information_leakage(channel.weights, list(prior)))
        for channel, prior in zip(seen, np.unique(priors, axis=0), strict=True)
    )
    free = max(float(exact_local_leakage(channel.weights)) for channel in seen)
    assert worst <= done.certificate.lip.epsilon + 1e-13 <= 1 + 1e-12
    assert done.certificate.lip.epsilon == pytest.approx(worst, abs=1e-9)
    assert free <= done.certificate.ldp.epsilon == pytest.approx(free, abs=1e-9)
    assert names(done.frame) == ["id", "grade"]
    assert any("taken as public" in remark for remark in done.certificate.remarks)


def test_people_with_equal_features_share_a_channel(taught: Privatizer) -> None:
    people = grades(2, 30)
    with watched() as seen:
        taught.release(people)
    assert len(seen) == len(set(people["hours"]))


def test_a_value_has_no_part_in_its_own_prior() -> None:
    people = grades(3, 40)
    other = people | {"grade": ["poor", *people["grade"][1:]]}
    assert people["grade"][0] != "poor"
    priors = []
    quick = mock.patch(
        "sfumato.column.feature_prior._classifier", return_value=LogisticRegression()
    )
    for frame in (people, other):
        with quick, watched() as seen:
            done = release(frame, "grade", prior="features:hours", values=GRADES)
        priors.append(done.knowledge.priors[0].tolist())
        assert seen
        assert done.certificate.lip <= LIP(1.0)
        assert LEARNT in str(done.certificate.remarks)
    assert priors[0] == priors[1]


@pytest.mark.parametrize(
    "options",
    [{"radius": 0.1}, {"kind": "numbers"}, {"interval": (0, 1)}, {"prior": "features:street"}],
)
def test_features_do_not_go_with_everything(options: dict[str, Any]) -> None:
    people = grades(3, 20)
    with pytest.raises(SfumatoError):
        release(people, "grade", **{"prior": "features:hours", "history": people} | options)


# Silence -----------------------------------------------------------------------------------------


def everything_said(action: Callable[[], Any]) -> str:
    """All that a failure tells: messages, notes, causes that a traceback shows."""
    with pytest.raises(SfumatoError) as failure:
        action()
    shown = "".join(traceback.format_exception(failure.value))
    # Source lines name no value; what is searched for is put together at run time.
    return shown + repr(failure.value) + repr(vars(failure.value))


SECRET = "".join(["zq", "7", "xk"])
BIG = 918273.645


@pytest.mark.parametrize(
    "action",
    [
        lambda: release({"x": ["1", SECRET]}, kind="numbers"),
        lambda: release({"x": ["1", SECRET]}, prior="mixture"),
        lambda: release({"x": ["1", SECRET]}, interval=(0, 1)),
        lambda: release({"x": ["a", SECRET]}, values=["a", "b"]),
        lambda: release({"x": ["a", SECRET]}, prior={"a": 0.5, "b": 0.5}),
        lambda: release({"x": ["a", SECRET]}, history=PUBLIC),
        lambda: release({"x": ["a", SECRET, None]}),
        lambda: release({"x": ["a", [SECRET]]}),
        lambda: release({"x": ["a", SECRET]}, loss="absolute"),
        lambda: release({"x": ["a", SECRET]}, mechanism="laplace"),
        lambda: release({"x": ["a", SECRET], "id": [SECRET] * 2}, identity="id"),
        lambda: release({"x": ["a"] * 9 + [SECRET]}, mechanism="published", epsilon=0.1),
        lambda: release({"x": ["a", "b"] * 9, "f": [1, SECRET] * 9}, prior="features:f"),
        lambda: release({"x": [BIG] * 4 + [None]}),
        lambda: release({"x": [BIG] * 4}, prior="mixture"),
        lambda: release({"x": [BIG] * 4}, kind="numbers"),
        lambda: release({"x": [BIG, math.inf]}, kind="numbers"),
        lambda: release({"x": [BIG, "a"]}, prior={"a": 0.5, "b": 0.5}),
    ],
)
def test_no_refusal_quotes_a_value(action: Callable[[], Any]) -> None:
    said = everything_said(action)
    assert SECRET not in said
    assert str(BIG) not in said


@pytest.mark.parametrize("mechanism", [*CHANNELS, *REPORTS])
def test_a_release_with_public_knowledge_quotes_nothing_else(mechanism: str) -> None:
    frame = PEOPLE | {"street": [SECRET] * 80}
    options: dict[str, Any] = {"keep": ["id"], "identity": "id", "randomness": coins()}
    options["order"] = "kept"
    fitted = Privatizer("x", epsilon=1.0, mechanism=mechanism, **options).fit(PUBLIC)
    done = fitted.release(frame)
    assert SECRET not in repr(done) + repr(fitted) + repr(done.spread) + str(
        asdict(done.certificate)
    )


def test_numbers_that_are_clamped_are_quoted_nowhere() -> None:
    frame = {"x": [*NUMBERS, BIG]}
    for mechanism in ("optimal", "laplace", "sampling"):
        done = release(frame, mechanism=mechanism, history={"x": NUMBERS}, **POINTS)
        said = repr(done) + repr(done.spread.places) + str(cells(done.frame))
        assert "918273" not in said


# What once slipped through -----------------------------------------------------------------------


def test_an_index_leaves_only_as_a_kept_column_and_that_is_noted() -> None:
    names = shuffled([f"i{row}" for row in range(80)])
    frame = pd.DataFrame(PEOPLE, index=names).rename_axis("who")
    done = release(frame, keep=["id"], independent=["id"])
    assert done.frame.index.tolist() == list(range(80))
    assert any("index" in note for note in done.notes)
    kept = release(frame.reset_index(), keep=["who"], independent=["who"])
    assert kept.frame["who"].tolist() == names
    assert release(pd.DataFrame(PEOPLE)).notes == release(PEOPLE).notes


def test_an_index_that_half_agrees_with_the_column_tells_nothing() -> None:
    rng = np.random.default_rng(4)
    values = rng.choice(["a", "b"], 100)
    other = np.where(values == "a", "b", "a")
    frame = pd.DataFrame({"x": values}, index=np.where(rng.random(100) < 0.75, values, other))
    for order in ("checked", "kept", "shuffled"):
        assert release(frame, order=order).frame.index.tolist() == list(range(100))


def test_the_metadata_of_a_pyarrow_table_does_not_leave_with_kept_columns() -> None:
    frame = pa.table(PEOPLE).replace_schema_metadata({"note": TOKEN})
    done = release(frame, keep=["id"], identity="id").frame
    assert TOKEN not in str(done.schema.metadata)


def test_the_certificate_of_numbers_is_the_same_whatever_is_true() -> None:
    # How many values were clamped is told exactly, without noise: one row tells all.
    found = [release({"x": [x]}, history={"x": NUMBERS}, **POINTS) for x in (5.0, 50.0)]
    assert found[0].certificate == found[1].certificate


def test_a_person_with_features_keeps_his_answer_when_others_leave(taught: Privatizer) -> None:
    # All channels of the table are part of everyone's address: fresh noise for the same value.
    people = grades(2, 60)
    idle = rows_of(people, [row for row in range(60) if people["hours"][row] == 0])
    found = []
    for frame in (people, idle):
        done = taught.release(frame).frame
        found.append(dict(zip(done["id"], done["grade"], strict=True)))
    assert found[1].items() <= found[0].items()


def test_row_numbers_of_another_table_bring_other_coins() -> None:
    # With the same coins, two answers that differ prove that two values differ.
    fitted = Privatizer("x", epsilon=1.0, randomness=coins()).fit({"x": ["a", "b"] * 50})
    try:
        one = fitted.transform({"x": ["a"] * 400})
        other = fitted.transform({"x": ["a"] * 399 + ["b"]})
    except InvalidParameter:
        return  # or names are asked for
    assert cells(one)[:399] != cells(other)[:399]


def test_a_ratio_of_one_leaves_the_prior_as_it_is() -> None:
    # Said to be a factor, taken for the logarithm of one.
    assert release(THREE, ratio=1.0).certificate.cost == pytest.approx(
        release(THREE).certificate.cost, rel=1e-6
    )


def test_a_ratio_of_nothing_is_not_taken_for_another_one() -> None:
    # 0 is either refused (a factor is at least 1) or means that the prior is known.
    try:
        cost = release(THREE, ratio=0.0).certificate.cost
    except InvalidParameter:
        return
    assert cost == pytest.approx(release(THREE).certificate.cost, rel=1e-6)


@pytest.mark.parametrize("kind", ["string", "Int64", "boolean", "Float64"])
def test_a_missing_value_of_a_nullable_pandas_column_is_named_by_its_row(kind: str) -> None:
    values: dict[str, list[Any]] = {
        "string": ["a", None, "b"],
        "Int64": [1, None, 2],
        "boolean": [True, None, False],
        "Float64": [1.5, None, 2.5],
    }
    with pytest.raises(BadTable) as refusal:
        release(pd.DataFrame({"x": pd.array(values[kind], dtype=kind)}))
    assert refusal.value.row == 2


@pytest.mark.parametrize("values", [np.array([1, 2, 2, 3] * 9), np.array([True, False, True] * 9)])
def test_a_column_of_a_mapping_may_be_a_numpy_array(values: Any) -> None:
    plain = release({"x": values.tolist()}, history={"x": values.tolist()})
    assert cells(release({"x": values}, history={"x": values}).frame) == cells(plain.frame)


@pytest.mark.parametrize("mechanism", ["optimal", "randomized-response"])
@pytest.mark.parametrize("frame", FRAMES)
def test_a_table_without_rows_is_refused_with_public_records_too(
    frame: str, mechanism: str
) -> None:
    with pytest.raises(BadTable, match="at least one row"):
        release(FRAMES[frame]({"x": []}), history=PUBLIC, mechanism=mechanism)


def test_columns_of_a_mapping_are_equally_long() -> None:
    with pytest.raises(SfumatoError):
        release({"x": ["a", "b"], "id": ["p1"]}, keep=["id"])


@pytest.mark.parametrize("frame", FRAMES)
def test_a_column_that_is_kept_twice_leaves_once_or_is_refused(frame: str) -> None:
    try:
        done = release(FRAMES[frame](PEOPLE), keep=["id", "id"]).frame
    except SfumatoError:
        return
    assert names(done) == ["id", "x"]


def test_a_column_whose_name_is_a_number_is_released_or_refused_clearly() -> None:
    frame, column, kept = pd.DataFrame({0: ["a", "b"] * 9, 1: range(18)}), 0, 1
    try:
        done = privatize(frame, column, epsilon=1.0, keep=[kept])  # type: ignore[arg-type]
    except SfumatoError:
        return
    assert list(done.frame.columns) == [1, 0]


def test_a_table_with_two_columns_of_one_name_is_refused_clearly() -> None:
    with pytest.raises(SfumatoError):
        release(pd.DataFrame([["a", "b"], ["b", "a"]], columns=["x", "x"]))


def test_many_features_are_not_taken_for_the_name_of_a_file() -> None:
    columns = {f"a rather long name of a column {place}": [1, 2] * 10 for place in range(9)}
    quick = mock.patch(
        "sfumato.column.feature_prior._classifier", return_value=LogisticRegression()
    )
    with quick:
        done = release({"x": list("ab") * 10, **columns}, prior=f"features:{','.join(columns)}")
    assert done.certificate.lip <= LIP(1.0)


def test_different_reports_are_told_differently() -> None:
    # `a|b` is one symbol, or two.
    drawn: list[Any] = []
    simulated = Reporting.report

    def noted(self: Reporting, *arguments: Any) -> Any:
        drawn.extend(report := simulated(self, *arguments))
        return report

    with mock.patch.object(Reporting, "report", noted):
        try:
            told = release({"x": ["a", "b", "a|b"] * 40}, mechanism="unary-encoding").frame
        except SfumatoError:
            return
    assert len({tuple(report.tolist()) for report in drawn}) == len(set(cells(told)))


def test_records_that_are_the_frame_itself_are_no_public_records() -> None:
    assert LEARNT in str(release(PEOPLE, history=PEOPLE).certificate.remarks)


def test_a_file_that_happens_to_be_called_estimate_changes_no_remark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "estimate").write_text("something else")
    monkeypatch.chdir(tmp_path)
    assert LEARNT in str(release(PEOPLE).certificate.remarks)


def test_symbols_that_are_read_off_the_column_are_remarked_on() -> None:
    # The set of priors is given, but the alphabet says which rare symbols occur.
    assert release(THREE, prior=PriorBall([0.5, 0.3, 0.2], 0.1)).certificate.remarks


def test_a_whole_number_of_thousands_of_digits_is_read_or_refused_clearly() -> None:
    try:
        release({"x": [10**5000, 5] * 10})
    except SfumatoError as problem:
        assert "row 1" in str(problem)


def test_a_prior_of_words_and_whole_numbers_knows_both() -> None:
    try:
        done = release({"x": [1, "a"] * 10}, prior={1: 0.5, "a": 0.5})
    except InvalidParameter:
        return
    assert done.certificate.size == 2


@pytest.mark.parametrize("interval", [(-1.7e308, 1.7e308), (0.0, 1.0, 2.0), "0:1", (0.0,)])
def test_an_interval_that_is_none_is_refused_clearly(interval: Any) -> None:
    with pytest.raises(InvalidParameter, match="interval"):
        release({"x": NUMBERS}, interval=interval)


def test_one_text_is_not_taken_for_a_list_of_columns_to_keep() -> None:
    frame = {"x": ["a", "b", "a"], "i": [1, 2, 3], "d": [4, 5, 6]}
    with pytest.raises(InvalidParameter, match="keep must be a list of columns"):
        privatize(frame, "x", epsilon=1.0, keep="id")
