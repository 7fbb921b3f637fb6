import math
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import sfumato as sf
from sfumato.core.errors import InsecureRandomness, InvalidParameter, SfumatoError
from sfumato.core.purpose import Purpose
from sfumato.record.attack import coupled_attack as coupled
from sfumato.record.attack.bayes_attack import Found, Way, bayes_disclosure
from sfumato.record.attributes import known_attributes
from sfumato.record.coupling.coupling import FullCoupling
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.disclosure import DisclosureReport
from sfumato.record.publish import Published
from sfumato.record.published_noise import noise_of
from sfumato.tables.problems import BadTable

Floats = NDArray[np.float64]
BODY = np.random.default_rng(7).multivariate_normal([170, 75], [[64, 60], [60, 144]], 60)
PEOPLE: dict[str, list[Any]] = {
    "height": BODY[:, 0].tolist(),
    "weight": BODY[:, 1].tolist(),
    "age": np.random.default_rng(8).integers(20, 60, 60).tolist(),
    "id": [f"p{row}" for row in range(60)],
}
LINE: dict[str, list[Any]] = {"a": np.linspace(0, 10, 41).tolist()}
LINE["b"] = [2 * a for a in LINE["a"]]
TOKEN = "8675309.25"
SLOW = pytest.mark.slow
FRAMES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "mapping": lambda columns: columns,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


@pytest.fixture(autouse=True)
def few_attacks() -> Iterator[None]:
    """How exactly an attacker is measured is tested where that is done, and takes long."""
    with mock.patch.multiple(coupled, _ATTACKS=128, _MOST_ATTACKS=128):
        yield


def told(columns: list[str] | None = None, frame: Any = None, **options: Any) -> DisclosureReport:
    given: dict[str, Any] = {"accuracy": 2.0, "sigma": 6.0, "coupling": "none"} | options
    return sf.disclosure(
        PEOPLE if frame is None else frame, columns or ["height", "weight"], **given
    )


def publish(frame: Any = None, columns: list[str] | None = None, **options: Any) -> Published:
    given: dict[str, Any] = {
        "accuracy": 2.0,
        "sigma": 6.0,
        "coupling": "none",
        "randomness": sf.keyed(b"0123456789abcdef"),
    } | options
    return sf.publish(PEOPLE if frame is None else frame, columns or ["height", "weight"], **given)


def noise_in(done: Published, columns: list[str], frame: Any = None) -> Floats:
    people = PEOPLE if frame is None else frame
    return np.asarray(done.values - np.array([people[name] for name in columns]).T)


# Reports -----------------------------------------------------------------------------------------


def test_nothing_known_is_the_paper_by_hand() -> None:
    found = told()
    assert found.delta == pytest.approx(4 * 4 / (4 * math.pi * 36))
    assert found.delta == found.delta_without_correlation == found.bound
    assert (found.gain, found.bound_of) == (0, "nothing")
    assert told(noise="uniform").delta == pytest.approx((2 / (math.sqrt(3) * 6)) ** 2)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.95])
def test_a_joint_normal_is_the_posterior_box(rho: float) -> None:
    covariance = np.array([[64.0, rho * 96], [rho * 96, 144.0]])
    model = JointMixture.normal([170.0, 75.0], covariance)
    found = told(noise="gaussian", coupling=model)
    posterior = np.linalg.inv(np.linalg.inv(covariance) + np.eye(2) / 36)
    draws = np.random.default_rng(1).multivariate_normal([0, 0], posterior, 400_000)
    assert found.delta == pytest.approx(np.mean(np.abs(draws).max(axis=1) <= 2), rel=0.02)
    assert found.information == pytest.approx(-0.5 * math.log(1 - rho**2))
    assert found.gain == pytest.approx(found.delta / found.delta_without_correlation - 1)
    assert found.delta_before < found.delta


@pytest.mark.parametrize(
    "noise", ["ball", "gaussian", *(pytest.param(n, marks=SLOW) for n in ("uniform", "laplace"))]
)
@pytest.mark.parametrize("coupling", ["gaussian", "weight ~ height"])
def test_knowing_more_never_helps_less(noise: str, coupling: str) -> None:
    found = told(noise=noise, coupling=coupling, degree=1)
    assert 0 <= found.delta_low <= found.delta <= found.delta_high <= 1
    assert found.delta >= found.delta_without_correlation
    assert found.delta_high >= 0.97 * found.delta_before
    assert 0 <= found.gamma <= 1
    assert found.gamma >= 0.999 * found.gamma_without_correlation


def test_where_a_search_finds_less_than_the_values_alone_the_latter_is_told() -> None:
    low = Found(1e-9, 1e-9, 1e-9, Way.SAMPLING)
    ring = told(noise="gaussian", sigma=1e-3, accuracy=1e-3, coupling="weight ~ height", degree=1)
    assert ring.delta >= ring.delta_without_correlation
    with mock.patch("sfumato.record.attackers.bayes_disclosure", return_value=low):
        assert publish(coupling="gaussian").certificate.guarantee.delta >= 0.035


def test_the_bound_of_theorem_3_is_marked_where_it_is_none() -> None:
    frame = {"a": np.linspace(0, 10, 50), "b": np.linspace(9, 19, 50)}
    options = {"coupling": "b = a", "noise": "uniform", "accuracy": 0.25, "sigma": 60.0}
    found = told(["a", "b"], frame, **options)
    assert (found.bound_of, found.bound_holds) == ("gamma", False)
    assert found.gamma > 3 * found.bound
    assert any("Theorem 3" in remark for remark in found.remarks)
    kept = told(["a", "b"], LINE, coupling="b = 2*a", noise="uniform", accuracy=0.5, sigma=60.0)
    assert kept.bound_holds
    assert kept.inferred == ("b",)


def test_equations_functions_fits_and_text_agree() -> None:
    domains = {"a": (0.0, 10.0), "b": (0.0, 20.0)}
    options: dict[str, Any] = {"accuracy": 1.0, "sigma": 3.0, "noise": "uniform"}
    text = told(["a", "b"], LINE, coupling="b = 2*a", **options)
    model = FullCoupling.equation("b = 2*a", domains)
    assert told(["a", "b"], LINE, coupling=model, **options).delta == text.delta
    fitted = told(["a", "b"], LINE, coupling="b ~ a", degree=1, **options)
    assert fitted.delta == pytest.approx(text.delta, rel=1e-3)

    def twice(at: Any) -> Any:
        return at["b"] - 2 * at["a"]

    function = FullCoupling.function(twice, ["b", "a"], domains)
    assert told(["a", "b"], LINE, coupling=[function], **options).delta == pytest.approx(
        text.delta, rel=0.02
    )
    assert not any("satisfy" in remark for remark in text.remarks)
    assert math.isinf(text.information)


def test_records_that_do_not_satisfy_an_equation_are_remarked_upon() -> None:
    found = told(coupling="weight = 0.9*height - 78")
    assert any("do not satisfy" in remark for remark in found.remarks)


def test_values_outside_a_domain_are_remarked_upon_for_those_who_are_published() -> None:
    inner = {name: [170.0, 171.0, 172.0, 173.5] for name in ("height", "weight")}
    outer = {name: [120.0, 121.0, 122.0, 123.5] for name in ("height", "weight")}
    domains = {"height": (165.0, 175.0)}
    remark = "values of 'height' lie outside their domain: what is said holds for the others"
    for past in (None, inner):
        assert remark in publish(domains=domains, history=past).certificate.remarks
    domains = {"height": (0.0, 300.0)}
    assert remark not in publish(domains=domains, history=outer).certificate.remarks


# Targets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "target"),
    [
        ({}, 0.01),
        ({"noise": "laplace"}, 0.5),
        ({"noise": "uniform", "accuracy": [1.0, 3.0]}, 0.02),
        ({"noise": "gaussian", "coupling": "gaussian", "accuracy": [2.0, 5.0]}, 0.2),
        ({"noise": "gaussian", "coupling": "gaussian", "sigma": [1.0, 7.0]}, 0.1),
    ],
)
def test_the_least_noise_keeps_the_target_and_less_does_not(
    options: dict[str, Any], target: float
) -> None:
    given = {"sigma": None} | options
    found = told(target_delta=target, **given)
    assert found.delta_high <= target
    again = told(**(options | {"sigma": found.sigma}))
    assert again.delta_high <= target
    less = told(**(options | {"sigma": [0.97 * each for each in found.sigma]}))
    assert less.delta > target
    done = publish(target_delta=target, **given)
    assert done.certificate.guarantee.delta <= target
    assert done.certificate.sigma == found.sigma


def test_the_least_noise_against_an_equation_keeps_the_target() -> None:
    options: dict[str, Any] = {"coupling": "b = 2*a", "noise": "uniform", "accuracy": 1.0}
    found = told(["a", "b"], LINE, sigma=None, target_delta=0.4, **options)
    assert found.delta_high <= 0.4
    less = told(["a", "b"], LINE, sigma=[0.95 * each for each in found.sigma], **options)
    assert less.delta_high > 0.4


def test_proportions_are_those_of_sigma_or_of_the_accuracies() -> None:
    found = told(sigma=[1.0, 3.0], target_delta=0.05)
    assert found.sigma[1] == pytest.approx(3 * found.sigma[0])
    found = told(sigma=None, accuracy=[1.0, 5.0], target_delta=0.05)
    assert found.sigma[1] == pytest.approx(5 * found.sigma[0])


@pytest.mark.parametrize("target", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_a_target_that_is_no_probability_is_refused(target: float) -> None:
    with pytest.raises(InvalidParameter, match="target_delta"):
        told(target_delta=target, sigma=None)


def test_a_target_below_what_a_guess_has_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="which a guess has"):
        told(target_delta=0.005, sigma=None, coupling="gaussian")
    with pytest.raises(InvalidParameter, match="target_delta"):
        told(target_delta=1e-200, sigma=None)


def test_a_target_needs_few_assessments() -> None:
    calls = []

    def counted(*arguments: Any, **options: Any) -> Found:
        calls.append(1)
        return bayes_disclosure(*arguments, **options)

    with mock.patch("sfumato.record.attackers.bayes_disclosure", counted):
        told(noise="gaussian", coupling="gaussian", sigma=None, target_delta=0.06)
        told(noise="gaussian", coupling="gaussian", sigma=None, target_delta=0.99)
    assert len(calls) <= 80


# Publishing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "noise", ["ball", "gaussian", *(pytest.param(n, marks=SLOW) for n in ("uniform", "laplace"))]
)
@pytest.mark.parametrize("coupling", ["none", "gaussian"])
def test_a_certificate_is_never_less_than_the_report(noise: str, coupling: str) -> None:
    certificate = publish(noise=noise, coupling=coupling).certificate
    report = told(noise=noise, coupling=coupling)
    assert certificate.guarantee.delta >= report.delta
    assert certificate.guarantee_without_correlation.delta >= report.delta_without_correlation
    assert certificate.guarantee.delta <= report.delta_high * 1.1 + 1e-9  # told with two digits
    assert certificate.rows == report.rows == 60


def test_published_values_are_values_and_noise_on_a_lattice() -> None:
    many = {"x": [5.0] * 2_000 + [6.0], "y": [70.0] * 2_000 + [71.0]}
    done = publish(many, ["x", "y"], sigma=[1.0, 10.0], accuracy=[0.5, 5.0])
    noise = noise_in(done, ["x", "y"], many)
    assert noise.std(axis=0) == pytest.approx([1.0, 10.0], rel=0.06)
    assert np.abs(noise / [2.0, 20.0]).max() <= 1.001
    for column, step in zip(done.values.T, done.certificate.steps, strict=True):
        assert math.log2(step) == round(math.log2(step))
        np.testing.assert_array_equal(column / step, np.round(column / step))


def test_the_same_key_gives_the_same_values_and_another_one_others() -> None:
    first, again = publish(), publish()
    other = publish(randomness=sf.keyed(b"another-key-0123"))
    np.testing.assert_array_equal(first.values, again.values)
    assert abs(correlation(first, other)) < 0.4
    assert not np.any(first.values == other.values)
    assert np.any(publish(randomness=None).values != publish(randomness=None).values)


def correlation(one: Published, two: Published) -> float:
    columns = list(one.certificate.columns)
    first, second = noise_in(one, columns), noise_in(two, list(two.certificate.columns))
    return float(np.corrcoef(first[:, 0], second[:, 0])[0, 1])


@pytest.mark.parametrize("identity", [None, "id"])
@pytest.mark.parametrize(
    "options", [{"sigma": 6.5}, {"noise": "gaussian"}, {"noise": "uniform"}, {"sigma": [6.0, 7.0]}]
)
def test_another_noise_is_independent_under_the_same_key(
    options: dict[str, Any], identity: str | None
) -> None:
    assert abs(correlation(publish(identity=identity), publish(identity=identity, **options))) < 0.4


@pytest.mark.parametrize("identity", [None, "id"])
@pytest.mark.parametrize("columns", [["age", "weight"], ["weight", "height"]])
def test_other_columns_get_independent_noise_under_the_same_key(
    columns: list[str], identity: str | None
) -> None:
    # Else the difference of what was published twice is that of the values, without any noise.
    other = publish(columns=columns, identity=identity)
    assert abs(correlation(publish(identity=identity), other)) < 0.4


def test_a_named_person_keeps_the_answer_whoever_else_is_there() -> None:
    whole = publish(identity="id")
    order = list(reversed(range(10, 50)))
    part = {name: [cells[row] for row in order] for name, cells in PEOPLE.items()}
    some = publish(part, identity="id")
    np.testing.assert_array_equal(some.values, whole.values[order])


def test_seeded_coins_are_no_release() -> None:
    with pytest.raises(InsecureRandomness):
        publish(randomness=sf.seeded(1))
    done = publish(randomness=sf.seeded(1), purpose=Purpose.SIMULATION)
    assert len(done.values) == 60


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_keep_their_kind_and_order_and_nothing_else_leaves(kind: str) -> None:
    frame = FRAMES[kind](PEOPLE)
    done = publish(frame, ["weight", "height"], keep=["id"], independent=["id"])
    assert type(done.frame) is type(frame)
    columns = done.frame.column_names if kind == "pyarrow" else list(done.frame)
    if kind == "polars":
        columns = done.frame.columns
    assert list(columns) == ["id", "weight", "height"]
    again = publish(PEOPLE, ["weight", "height"], keep=["id"], independent=["id"]).frame
    column = done.frame["weight"]
    cells = column.to_pylist() if kind == "pyarrow" else list(column)
    assert cells == again["weight"]
    kept = done.frame["id"]
    assert (kept.to_pylist() if kind == "pyarrow" else list(kept)) == PEOPLE["id"]


def test_the_index_of_a_frame_does_not_leave() -> None:
    frame = pd.DataFrame(PEOPLE).set_index("id", drop=False)
    assert list(publish(frame).frame.index) == list(range(60))


@pytest.mark.parametrize(
    ("column", "sigma", "accuracy"),
    [([1e12, 1.5e12, 2e12], 1e11, 1e10), ([1e-9, 2e-9, 5e-9], 1e-9, 1e-10), ([1, 5, 9], 1.0, 0.2)],
)
def test_columns_of_any_scale_and_kind_are_published(
    column: list[float], sigma: float, accuracy: float
) -> None:
    done = publish({"x": column}, ["x"], sigma=sigma, accuracy=accuracy)
    assert np.abs(done.values[:, 0] - column).max() <= math.sqrt(3) * sigma * 1.001
    assert done.certificate.guarantee.delta == pytest.approx(accuracy / (math.sqrt(3) * sigma))


def test_five_columns_are_published() -> None:
    rng = np.random.default_rng(2)
    frame = {name: rng.normal(size=20) for name in "vwxyz"}
    done = publish(frame, list("vwxyz"), sigma=1.0, accuracy=0.5)
    assert done.values.shape == (20, 5)
    assert done.certificate.guarantee.delta == pytest.approx(
        told(list("vwxyz"), frame, sigma=1.0, accuracy=0.5).delta, rel=1e-4
    )


@pytest.mark.parametrize("frame", [{"x": [4.5]}, {"x": [4.5, 4.5, 4.5]}])
def test_one_person_and_people_alike_can_be_published_if_nothing_is_known(frame: Any) -> None:
    assert publish(frame, ["x"]).values.shape == (len(frame["x"]), 1)


def test_values_too_far_from_0_for_the_lattice_are_refused_by_column() -> None:
    frame = {"x": [1e12, 1.1e12], "y": [1.0, 2.0]}
    with pytest.raises(SfumatoError, match="x") as problem:
        publish(frame, ["x", "y"])
    assert "'x'" in str(problem.value)


# Refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell", [None, math.nan, math.inf, -math.inf, TOKEN + "x", "", date(1986, 7, 5)]
)
@pytest.mark.parametrize("run", [told, publish])
def test_a_cell_that_is_no_number_is_refused_by_column_and_row(
    cell: Any, run: Callable[..., Any]
) -> None:
    frame = {"x": [1.0, 2.0, cell], "y": [1.0, 2.0, 3.0]}
    with pytest.raises(BadTable, match="row 3: column 'x'") as problem:
        run(frame=frame, columns=["x", "y"])
    assert TOKEN not in str(problem.value)
    assert "1986" not in str(problem.value)


def test_frames_without_rows_with_columns_missing_or_twice_are_refused() -> None:
    with pytest.raises(BadTable, match="at least one row"):
        publish({"x": [], "y": []}, ["x", "y"])
    with pytest.raises(BadTable, match="column 'zz'"):
        publish(columns=["height", "zz"])
    with pytest.raises(BadTable, match="distinct"):
        publish(pd.DataFrame([[1, 2], [3, 4]], columns=["x", "x"]), ["x"])
    with pytest.raises(InvalidParameter, match="columns"):
        publish(columns=["height", "height"])
    with pytest.raises(InvalidParameter, match="keep"):
        publish(keep=["height"])
    with pytest.raises(InvalidParameter, match="keyed coins"):
        publish(identity="id", randomness=None)
    twins = {"x": [1.0, 2.0], "id": [TOKEN, TOKEN]}
    with pytest.raises(BadTable, match="name each row once") as problem:
        publish(twins, ["x"], identity="id")
    assert TOKEN not in str(problem.value)


@pytest.mark.parametrize("run", [told, publish])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sigma": 0.0}, "sigma must be greater than 0"),
        ({"sigma": -1.0}, "sigma must be greater than 0"),
        ({"sigma": math.nan}, "sigma"),
        ({"sigma": [1.0, 2.0, 3.0]}, "sigma"),
        ({"sigma": None}, "sigma must be given, or target_delta"),
        ({"accuracy": 0.0}, "accuracy must be greater than 0"),
        ({"accuracy": [1.0, -1.0]}, "accuracy must be greater than 0"),
        ({"noise": "cauchy"}, "noise must be one of"),
        ({"attacker": 0.2}, "attacker must come with the best noise"),
        ({"noise": "best", "target_delta": 0.1}, "noise must come with sigma"),
        ({"coupling": "weight = height + 1000"}, "coupling must have a solution for 'weight'"),
        ({"coupling": "weight = other*height"}, "other"),
        ({"coupling": "weight"}, "coupling must be none, gaussian, mixture, kernel"),
        ({"coupling": ""}, "coupling must be none, gaussian, mixture, kernel"),
        ({"coupling": "weight = height; height = weight"}, "coupling"),
        ({"coupling": "weight ~ zz"}, "coupling must name columns among"),
        ({"coupling": "weight ~ height, height"}, "coupling"),
        ({"coupling": "weight ~"}, "coupling"),
        ({"coupling": "weight ~ weight"}, "coupling"),
        ({"coupling": "weight = __import__('os')"}, "coupling must be arithmetic"),
        ({"coupling": "weight = height.real"}, "coupling must be arithmetic"),
        ({"coupling": "weight = height**9**9**9"}, "coupling must be arithmetic"),
        ({"coupling": "weight ~ height", "degree": 0}, "degree"),
        ({"coupling": "weight ~ height", "degree": 40}, "degree"),
        ({"domains": {"height": (5.0, 5.0)}}, "domain"),
        ({"domains": {"height": (9.0, 5.0)}}, "domain"),
        ({"domains": {"height": (math.nan, 5.0)}}, "domain"),
        ({"domains": {"zz": (0.0, 5.0)}}, "domains must name columns among"),
        ({"domains": {"height": (5.0, 5.0)}, "coupling": "gaussian"}, "domain"),
        ({"domains": {"height": (900.0, 901.0)}, "coupling": "gaussian"}, "domain"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(
    options: dict[str, Any], words: str, run: Callable[..., Any]
) -> None:
    with pytest.raises(InvalidParameter, match=words) as problem:
        run(**options)
    for values in (PEOPLE["height"], PEOPLE["weight"]):
        assert not any(f"{value:.5g}" in str(problem.value) for value in (min(values), max(values)))


def test_columns_that_are_one_another_have_no_joint_density() -> None:
    with pytest.raises(InvalidParameter, match="positive definite"):
        told(["a", "b"], LINE, coupling="gaussian")
    with pytest.raises(InvalidParameter, match="positive definite"):
        JointMixture.normal([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]])


def test_names_that_are_no_words_can_stand_in_equations() -> None:
    frame = {"a b": LINE["a"], "c-d": LINE["b"]}
    options: dict[str, Any] = {"accuracy": 1.0, "sigma": 3.0}
    exact = told(["a b", "c-d"], frame, coupling="`c-d` = 2*`a b`", **options)
    fitted = told(["a b", "c-d"], frame, coupling="c-d ~ a b", degree=1, **options)
    assert fitted.delta == pytest.approx(exact.delta, rel=1e-3)


def test_history_is_learnt_from_and_not_published() -> None:
    past = {name: PEOPLE[name][:30] for name in ("height", "weight")}
    done = publish(history=past, coupling="gaussian", noise="gaussian")
    assert len(done.values) == 60
    assert not any("these very people" in remark for remark in done.certificate.remarks)
    table = np.array([past["height"], past["weight"]]).T
    model = JointMixture.fit_normal(table)
    exact = bayes_disclosure(model, noise_of("gaussian", 6.0, 2), 2.0)
    assert done.certificate.guarantee.delta == pytest.approx(exact.delta, rel=1e-4)
    learnt = publish(coupling="gaussian", noise="gaussian").certificate
    assert any("these very people" in remark for remark in learnt.remarks)


def test_attributes_say_what_is_known() -> None:
    records = {name: np.array(LINE[name]) for name in "ab"}
    known = known_attributes(records, "b = 2*a")
    assert (known.text, known.joint) == ("b = 2*a", None)
    assert known.domains == {"a": (0.0, 10.0), "b": (0.0, 20.0)}
    with pytest.raises(InvalidParameter, match="density of 2 attributes"):
        known_attributes(records, JointMixture.normal([0.0], [[1.0]]))


def test_people_in_clusters_are_found_as_often_as_a_guess_finds_them() -> None:
    rng = np.random.default_rng(5)
    a = np.where(rng.random(500) < 0.5, rng.normal(0, 0.1, 500), rng.normal(100, 0.1, 500))
    options: dict[str, Any] = {"accuracy": 0.4, "sigma": 5.0, "noise": "gaussian"}
    found = told(["a", "b"], {"a": a, "b": 2 * a}, coupling="b = 2*a", **options)
    guess = float(np.mean(np.abs(2 * a) <= 0.4))
    assert found.delta_before >= 0.95 * guess
    assert found.delta >= 1.8 * guess  # noise of 5 tells which cluster it is
    with pytest.raises(InvalidParameter, match="target_delta must be more than"):
        told(["a", "b"], {"a": a, "b": 2 * a}, coupling="b = 2*a", accuracy=0.4, target_delta=0.3)


@pytest.mark.slow
def test_a_coupling_that_a_constant_guess_beats_is_said_to_be_one() -> None:
    rng = np.random.default_rng(5)
    a = np.where(rng.random(600) < 0.5, rng.normal(0, 1, 600), rng.normal(100, 1, 600))
    frame = {"a": a, "b": a + rng.normal(0, 1, 600)}
    options: dict[str, Any] = {"accuracy": 1.0, "sigma": 5.0, "noise": "gaussian"}
    known = [told(["a", "b"], frame, coupling=c, **options) for c in ("gaussian", "mixture")]
    said = [any("a constant guess finds more" in r for r in one.remarks) for one in known]
    assert said == [True, False]
    alike = {"a": rng.normal(size=600), "b": rng.normal(size=600)}
    calm = told(["a", "b"], alike, coupling="gaussian", **(options | {"sigma": 0.5}))
    assert not any("guess" in remark for remark in calm.remarks)
