"""What is known of people whose columns are published: by default, beside them, and of whom."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_iris

import sfumato as sf
from sfumato.core.errors import InvalidParameter
from sfumato.record.attributes import LEARNT
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.record_attest import publish_document
from sfumato.tables.problems import BadTable

Floats = NDArray[np.float64]
IRIS = load_iris()
FLOWERS: dict[str, list[Any]] = {
    "sepal": IRIS.data[:, 0].tolist(),
    "petal": IRIS.data[:, 2].tolist(),
    "species": [str(IRIS.target_names[kind]) for kind in IRIS.target],
    "id": [f"f{row}" for row in range(150)],
}
TOKEN = "8675309"
GIVEN: dict[str, Any] = {"noise": "gaussian", "coupling": "gaussian"}
FRAMES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "mapping": lambda columns: columns,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


def publish(frame: Any = None, columns: list[str] | None = None, **options: Any) -> Any:
    given = {"accuracy": 0.3, "sigma": 0.5, "order": "kept", **GIVEN, **options}
    return sf.publish(FLOWERS if frame is None else frame, columns or ["sepal", "petal"], **given)


# Kept columns ------------------------------------------------------------------------------------


def found_by_species(accuracy: float, sigma: float, runs: int = 60) -> tuple[float, float]:
    """Share of flowers that a Bayesian finds who sees the species: all of them, and the best kind.

    Of every species he knows mean and covariance; the posterior of a normal after normal noise is
    one around a weighted mean, whose best box is the one in its middle.
    """
    rng = np.random.default_rng(11)
    table = np.array([FLOWERS["sepal"], FLOWERS["petal"]]).T
    found = []
    for kind in range(3):
        own = table[IRIS.target == kind]
        spread = np.cov(own.T)
        gain = spread @ np.linalg.inv(spread + sigma**2 * np.eye(2))
        hits = []
        for _ in range(runs):
            told = own + rng.normal(0, sigma, own.shape)
            guess = own.mean(axis=0) + (told - own.mean(axis=0)) @ gain.T
            hits.append(np.mean(np.abs(guess - own).max(axis=1) <= accuracy))
        found.append(float(np.mean(hits)))
    return float(np.mean(found)), max(found)


@pytest.mark.parametrize("sigma", [0.3, 0.8])
def test_who_uses_a_kept_column_finds_no_more_than_the_certificate_says(sigma: float) -> None:
    mean, worst = found_by_species(0.3, sigma)
    said = publish(sigma=sigma, keep=["species"]).certificate
    assert (said.groups, said.kept) == (3, ("species",))
    assert mean <= said.delta_mean * 1.02  # these flowers are no perfect normals
    assert worst <= said.guarantee.delta * 1.02
    assert said.delta_mean <= 1.15 * mean
    # Whoever closes his eyes to the species is told far less than the truth.
    blind = publish(sigma=sigma).certificate
    assert blind.guarantee.delta < 0.85 * mean


def success_on_a_grid(mean: float, deviation: float, reach: float, accuracy: float) -> float:
    """The best attacker on a normal value behind uniform noise, by sums over fine grids."""
    step = accuracy / 40
    values = np.arange(mean - 7 * deviation, mean + 7 * deviation, step)
    masses = np.exp(-0.5 * ((values - mean) / deviation) ** 2)
    sums = np.concatenate([[0.0], np.cumsum(masses / masses.sum())])
    window, most, total = 80, math.floor(2 * reach / step), 0.0
    for first in range(-most, len(values)):
        low, high = max(first, 0), min(first + most, len(values))
        starts = np.arange(low, max(high - window, low) + 1)
        ends = np.minimum(starts + window, high)
        total += float((sums[ends] - sums[starts]).max()) / most
    return total


def test_groups_agree_with_brute_force_over_a_grid_for_uniform_noise() -> None:
    rng = np.random.default_rng(3)
    town = ["a"] * 60 + ["b"] * 40
    age = np.concatenate([rng.normal(30, 2, 60), rng.normal(60, 9, 40)])
    frame = {"age": age, "town": town}
    options: dict[str, Any] = {"noise": "uniform", "sigma": 4.0, "accuracy": 1.0}
    said = publish(frame, ["age"], keep=["town"], history=frame, **options)
    reach = 4.0 * math.sqrt(3)
    exact = [
        success_on_a_grid(part.mean(), part.std(ddof=1), reach, 1.0)
        for part in (age[:60], age[60:])
    ]
    assert said.certificate.guarantee.delta == pytest.approx(max(exact), rel=0.02)
    assert said.certificate.guarantee.delta >= 0.999 * max(exact)
    mean = 0.6 * exact[0] + 0.4 * exact[1]
    assert said.certificate.delta_mean == pytest.approx(mean, rel=0.02)
    assert said.certificate.delta_mean >= 0.999 * mean
    report = sf.disclosure(
        frame, ["age"], accuracy=1.0, sigma=4.0, noise="uniform", coupling="gaussian", keep=["town"]
    )
    assert (report.groups, report.rows) == (2, 100)
    assert report.delta == pytest.approx(max(exact), rel=0.02)
    assert report.delta_mean == pytest.approx(mean, rel=0.02)


def test_a_column_that_was_declared_independent_is_recorded_and_changes_nothing() -> None:
    said = publish(keep=["id", "species"], independent=["id"]).certificate
    assert (said.kept, said.independent, said.groups) == (("species",), ("id",), 3)
    assert any("'id'" in r and "declared to tell nothing" in r for r in said.remarks)
    assert said.guarantee == publish(keep=["species"]).certificate.guarantee
    alone = publish(keep=["id"], independent=["id"])
    assert list(alone.frame) == ["id", "sepal", "petal"]
    assert alone.certificate.guarantee == publish().certificate.guarantee


@pytest.mark.parametrize("coupling", ["none", "gaussian"])
def test_groups_of_a_few_are_refused_and_nobody_is_named(coupling: str) -> None:
    frame = FLOWERS | {"number": [TOKEN, *FLOWERS["id"][1:]]}
    with pytest.raises(BadTable, match=r"must have 20 rows .*150 of 150") as problem:
        publish(frame, keep=["number"], coupling=coupling)
    assert TOKEN not in str(problem.value)


def test_a_column_that_is_constant_within_a_group_is_refused() -> None:
    frame = FLOWERS | {"petal": [float(kind) for kind in IRIS.target]}
    with pytest.raises(InvalidParameter, match="varies, in every group of equal values"):
        publish(frame, keep=["species"])


def test_a_given_density_cannot_know_the_kept_columns() -> None:
    density = JointMixture.normal([5.8, 3.8], [[1.0, 0.5], [0.5, 3.0]])
    with pytest.raises(InvalidParameter, match="coupling must be learnt where columns are kept"):
        publish(coupling=density, keep=["species"])
    done = publish(coupling=density, keep=["species"], independent=["species"])
    assert (done.certificate.groups, done.certificate.learnt_from) == (1, "nothing")


def test_the_best_noise_with_a_bound_has_no_groups() -> None:
    options: dict[str, Any] = {"noise": "best", "attacker": 0.4, "keep": ["species"]}
    with pytest.raises(InvalidParameter, match="attacker must come without columns that are kept"):
        publish(**options)


def test_public_records_teach_group_by_group() -> None:
    said = publish(keep=["species"], history=FLOWERS).certificate
    rounded = publish(keep=["species"]).certificate.guarantee.delta
    assert said.guarantee.delta <= rounded <= 1.1 * said.guarantee.delta
    assert said.learnt_from == "history"
    with pytest.raises(BadTable, match="column 'species'"):
        publish(keep=["species"], history={k: FLOWERS[k] for k in ("sepal", "petal")})
    strange = FLOWERS | {"species": [*FLOWERS["species"][:-1], TOKEN]}
    with pytest.raises(BadTable, match=r"row 150: .*must occur in the records") as problem:
        publish(strange, keep=["species"], history=FLOWERS)
    assert TOKEN not in str(problem.value)


def test_a_target_is_kept_in_every_group() -> None:
    said = publish(columns=["sepal"], sigma=None, target_delta=0.72, keep=["species"]).certificate
    assert said.guarantee.delta <= 0.72
    less = [0.97 * each for each in said.sigma]
    nearer = publish(columns=["sepal"], sigma=less, keep=["species"]).certificate
    assert nearer.guarantee.delta > 0.72
    with pytest.raises(InvalidParameter, match="which a guess has"):
        publish(columns=["sepal"], sigma=None, target_delta=0.3, keep=["species"])


# The default attacker, and the blind guess -------------------------------------------------------


def test_an_attacker_knows_the_joint_density_unless_said_otherwise() -> None:
    asked: dict[str, Any] = {"accuracy": 0.3, "sigma": 0.8, "noise": "gaussian"}
    done = sf.publish(FLOWERS, ["petal"], order="shuffled", **asked).certificate
    report = sf.disclosure(FLOWERS, ["petal"], **asked)
    assert done.coupling == report.coupling == LEARNT == "mixture"
    assert done.guarantee.delta >= report.delta > 1.5 * report.delta_without_correlation
    assert report.delta > done.delta_before >= report.delta_before
    assert any("these very people" in remark for remark in done.remarks)
    assert not any("guess" in remark for remark in done.remarks)


def test_a_blind_guess_is_the_best_box_of_what_is_known() -> None:
    normal = publish(columns=["petal"], accuracy=1.0, history=FLOWERS).certificate
    spread = float(np.std(FLOWERS["petal"], ddof=1))
    assert normal.delta_before == pytest.approx(math.erf(1.0 / spread / math.sqrt(2)), rel=1e-6)
    nothing = publish(columns=["petal"], coupling="none", history=FLOWERS).certificate
    values = np.array(FLOWERS["petal"])
    best = max(np.mean((values >= low) & (values <= low + 0.6 + 1e-9)) for low in values)
    assert nothing.delta_before == pytest.approx(best)


def test_who_is_taken_to_know_nothing_is_said_loudly_to_lose_to_a_guess() -> None:
    for said in (
        publish(coupling="none").certificate,
        sf.disclosure(FLOWERS, ["sepal", "petal"], accuracy=0.3, sigma=0.5, coupling="none"),
    ):
        assert said.remarks[0].startswith("NO PROMISE AGAINST ANYONE WHO KNOWS")
        assert said.delta_before > 0.1
    said = publish(coupling="none", sigma=2.0).certificate
    assert said.delta_before > 5 * said.guarantee.delta
    assert not any("NO PROMISE" in remark for remark in publish().certificate.remarks)


def test_a_certificate_is_never_below_a_blind_guess() -> None:
    for sigma in (0.5, 50.0):
        said = publish(sigma=sigma, keep=["species"]).certificate
        assert said.guarantee.delta >= said.delta_before
        assert said.delta_mean >= said.delta_before_mean


# Silence -----------------------------------------------------------------------------------------


def test_noise_is_compared_with_saying_nothing() -> None:
    done = publish(sigma=[0.4, 3.0], randomness=sf.keyed(b"0123456789abcdef"))
    table = np.array([FLOWERS["sepal"], FLOWERS["petal"]]).T
    missed = np.sqrt(np.mean((done.values - table) ** 2, axis=0))
    assert done.silence.error == pytest.approx([0.4, 3.0], rel=1e-4)
    assert done.silence.error == pytest.approx(missed, rel=0.25)
    assert done.silence.error[0] > 0.4  # the lattice is part of it
    assert done.silence.constant == pytest.approx(table.std(axis=0))
    assert done.silence.useful == (True, False)
    (remark,) = done.silence.remarks
    assert remark.startswith("NO BETTER THAN A CONSTANT")
    assert "'petal'" in remark
    assert "CONSTANT" not in str(done.certificate)  # it would tell of the table


def test_where_groups_are_known_their_means_are_the_constants() -> None:
    alone, grouped = publish(sigma=0.6), publish(sigma=0.6, keep=["species"])
    assert alone.silence.useful == (True, True)
    assert grouped.silence.useful == (False, False)
    table = np.array(FLOWERS["petal"])
    within = math.sqrt(np.mean([table[IRIS.target == kind].var() for kind in range(3)]))
    assert grouped.silence.constant[1] == pytest.approx(within)


def test_a_best_guess_from_noise_and_mean_is_what_simulation_finds() -> None:
    done = publish(sigma=1.0)
    rng = np.random.default_rng(2)
    truth = rng.normal(0, done.silence.constant[0], 200_000)
    told = truth + rng.normal(0, done.silence.error[0], truth.size)
    slope = np.cov(told, truth)[0, 1] / told.var()
    missed = math.sqrt(np.mean((slope * told - truth) ** 2))
    assert done.silence.guessed[0] == pytest.approx(missed, rel=0.01)


# Missing values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("hole", [None, math.nan])
def test_rows_without_a_value_are_left_out_and_counted(kind: str, hole: float | None) -> None:
    broken = FLOWERS | {"sepal": [hole, *FLOWERS["sepal"][1:-1], hole]}
    frame = FRAMES[kind](broken)
    done = publish(frame, missing="drop", keep=["id"], independent=["id"])
    assert (done.dropped, done.certificate.rows, len(done.values)) == (2, 148, 148)
    assert type(done.frame) is type(frame)
    kept = done.frame["id"]
    names = kept.to_pylist() if kind == "pyarrow" else list(kept)
    assert names == FLOWERS["id"][1:-1]
    whole = {name: cells[1:-1] for name, cells in FLOWERS.items()}
    assert done.certificate.guarantee == publish(whole).certificate.guarantee
    report = sf.disclosure(frame, ["sepal"], accuracy=0.3, sigma=0.5, missing="drop", **GIVEN)
    assert (report.dropped, report.rows) == (2, 148)
    assert "2" not in [word for remark in done.certificate.remarks for word in remark.split()]


def test_a_missing_value_is_refused_unless_it_is_to_be_dropped() -> None:
    broken = FLOWERS | {"petal": [*FLOWERS["petal"][:5], None, *FLOWERS["petal"][6:]]}
    with pytest.raises(BadTable, match="row 6: column 'petal'"):
        publish(broken)
    text = broken | {"sepal": [*FLOWERS["sepal"][:8], TOKEN + "x", *FLOWERS["sepal"][9:]]}
    with pytest.raises(BadTable, match="row 9: column 'sepal'"):  # counted with those left out
        publish(text, missing="drop")
    for choice in ("symbol", "skip", "nonsense"):
        with pytest.raises(InvalidParameter, match="missing must be refuse or drop"):
            publish(broken, missing=choice)
    with pytest.raises(BadTable, match="at least one row"):
        publish({"sepal": [None, None], "petal": [1.0, 2.0]}, missing="drop")


# Fingerprints ------------------------------------------------------------------------------------


def test_a_promise_against_another_attacker_has_another_fingerprint() -> None:
    key = b"0123456789abcdef"
    strong = publish(randomness=sf.keyed(key))
    options: list[dict[str, Any]] = [
        {"coupling": "none"},
        {"coupling": "petal ~ sepal"},
        {"accuracy": 0.2999},
        {"domains": {"petal": (0.0, 9.0)}},
        {"history": FLOWERS},
        {"keep": ["species"]},
        {"keep": ["species"], "independent": ["species"]},
    ]
    seen = {strong.certificate.fingerprint}
    for option in options:
        other = publish(randomness=sf.keyed(key), **option)
        np.testing.assert_array_equal(other.values, strong.values)
        assert not other.certificate.fingerprint.startswith(strong.certificate.fingerprint[:8])
        seen.add(other.certificate.fingerprint)
    assert len(seen) == 1 + len(options)
    assert publish(randomness=sf.keyed(key)).certificate.fingerprint in seen


def test_without_a_key_a_fingerprint_tells_nothing_that_the_certificate_does_not() -> None:
    """A digest of what was learnt would let everyone test guesses at the table."""
    moved = FLOWERS | {"petal": [FLOWERS["petal"][0] + 1e-6, *FLOWERS["petal"][1:]]}
    first, other = publish().certificate, publish(moved).certificate
    assert first == other
    keys = [publish(frame, randomness=sf.keyed(b"0123456789abcdef")) for frame in (FLOWERS, moved)]
    assert keys[0].certificate.fingerprint != first.fingerprint


# What was learnt from the people is told in few digits, and their order is not told ---------------


def test_what_was_learnt_from_the_table_is_told_with_two_digits() -> None:
    said = publish(keep=["species"]).certificate
    exact = publish(keep=["species"], history=FLOWERS).certificate
    for name in ("delta_mean", "delta_before", "delta_before_mean"):
        short, long = getattr(said, name), getattr(exact, name)
        assert short == float(f"{short:.2g}")
        assert long <= short <= 1.1 * long
    target = publish(sigma=None, target_delta=0.4567, accuracy=0.1).certificate
    assert target.guarantee.delta <= 0.4567
    ratio = target.sigma[0] / 0.1
    assert ratio == pytest.approx(float(f"{ratio:.3g}"), rel=1e-12)


def test_an_order_of_rows_that_tells_of_a_column_is_refused() -> None:
    # The flowers are sorted by their species.
    with pytest.raises(BadTable, match="order of the rows tells of 'sepal'"):
        publish(order="checked")
    assert publish(order="checked", keep=["species"]).certificate.order == "checked"
    with pytest.raises(InvalidParameter, match="order"):
        publish(order="sorted")


def test_shuffled_rows_leave_whole_and_in_no_order() -> None:
    key = sf.keyed(b"0123456789abcdef")
    options: dict[str, Any] = {"keep": ["id"], "independent": ["id"], "randomness": key}
    kept, shuffled = publish(**options), publish(order="shuffled", **options)
    assert shuffled.frame["id"] != kept.frame["id"]
    before = {name: row for name, row in zip(kept.frame["id"], kept.values.tolist(), strict=True)}
    for name, row in zip(shuffled.frame["id"], shuffled.values.tolist(), strict=True):
        assert before[name] == row
    places = [kept.frame["id"].index(name) for name in shuffled.frame["id"]]
    assert abs(np.corrcoef(places, np.arange(150))[0, 1]) < 0.4
    again = publish(order="shuffled", **options)
    assert again.frame["id"] == shuffled.frame["id"]


def test_the_best_noise_of_columns_that_nobody_described_is_learnt_from_them() -> None:
    """Its shells follow from their means and variances, so a certificate must not tell them."""
    column = np.random.default_rng(3).normal(70.0, 9.0, 60)
    options: dict[str, Any] = {"accuracy": 3.0, "sigma": 8.0, "coupling": "none"}
    made = sf.publish({"x": column}, ["x"], noise="best", **options)
    assert made.certificate.learnt_from == "table"
    assert publish_document(made)["evidence"] is None
    plain = sf.publish({"x": column}, ["x"], noise="gaussian", **options)
    assert plain.certificate.learnt_from == "nothing"
