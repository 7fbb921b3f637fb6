"""What a released column cost on its true values, and whether its prior fits them."""

from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import sfumato as sf
from sfumato.column.column_certificate import Privatized
from sfumato.core.purpose import Purpose


def shares(a: float, rows: int, seed: int = 1) -> list[str]:
    """Rows of which a share is `a`, and the rest `b`."""
    found = np.array(["a"] * round(a * rows) + ["b"] * (rows - round(a * rows)))
    return list(np.random.default_rng(seed).permutation(found).tolist())


def simulated(frame: dict[str, Any], history: dict[str, Any] | None, **options: Any) -> Privatized:
    chosen: dict[str, Any] = {"epsilon": 2.5, "order": "kept", **options}
    coins: dict[str, Any] = {"randomness": sf.seeded(3), "purpose": Purpose.SIMULATION}
    past = None if history is None else pd.DataFrame(history)
    return sf.privatize(pd.DataFrame(frame), "x", history=past, **chosen, **coins)


def misfit(done: Privatized) -> bool:
    return any("THE PRIOR DOES NOT FIT" in note for note in done.notes)


def test_a_prior_that_the_rows_contradict_is_said_loudly_to_the_operator_alone() -> None:
    done = simulated({"x": shares(0.1, 500)}, {"x": shares(0.9, 2000)})
    (note,) = (note for note in done.notes if "PRIOR" in note)
    assert str(done.certificate.ldp) in note
    assert not any("FIT" in remark for remark in done.certificate.remarks)


def test_realised_and_constant_losses_are_those_of_the_true_values() -> None:
    truth = shares(0.1, 500)
    done = simulated({"x": truth}, {"x": shares(0.9, 2000)})
    wrong = np.mean([x != y for x, y in zip(truth, done.frame["x"], strict=True)])
    assert done.realised == pytest.approx(wrong)
    assert done.constant == pytest.approx(0.1)


def test_losses_of_numbers_are_measured_from_the_numbers_themselves() -> None:
    truth = np.random.default_rng(2).normal(50, 10, 300).round(2)
    options: dict[str, Any] = {"interval": (0.0, 100.0), "points": 21}
    done = simulated({"x": truth}, {"x": truth[::-1].copy()}, **options)
    assert done.realised == pytest.approx(np.abs(truth - done.frame["x"].to_numpy()).mean())
    assert done.constant == pytest.approx(np.abs(truth - np.median(truth)).mean())
    assert not misfit(done)
    assert misfit(simulated({"x": truth}, {"x": truth + 30}, **options))


def test_a_release_that_loses_to_a_constant_on_these_rows_says_so() -> None:
    done = simulated({"x": shares(0.02, 500)}, {"x": shares(0.9, 2000)}, epsilon=1.0)
    assert done.realised is not None
    assert done.realised >= 0.02
    assert any("NO BETTER THAN A CONSTANT" in note for note in done.notes)


def test_features_that_predict_another_course_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sfumato.column.feature_prior._classifier", lambda given: LogisticRegression()
    )
    mark = np.random.default_rng(4).integers(0, 4, 400)
    past = {"x": [f"g{m}" for m in mark], "m": mark}
    assert not misfit(simulated(past, past, prior="features:m"))
    other = {"x": [f"g{3 - m}" for m in mark], "m": mark}
    assert misfit(simulated(other, past, prior="features:m"))


@pytest.mark.parametrize("size", [2, 5, 40])
def test_rows_like_the_records_do_not_contradict_them(size: int) -> None:
    coins = np.random.default_rng(5)
    for _ in range(6):
        masses = coins.dirichlet(np.ones(size))
        past, rows = (coins.choice(size, count, p=masses) for count in (100, 1000))
        names: dict[str, Any] = {
            "values": [f"s{i}" for i in range(size)],
            "mechanism": "calibrated",
        }
        done = simulated({"x": [f"s{i}" for i in rows]}, {"x": [f"s{i}" for i in past]}, **names)
        assert not misfit(done)


def test_a_prior_that_is_known_up_to_a_distance_is_not_contradicted_within_it() -> None:
    rows, past = {"x": shares(0.5, 500)}, {"x": shares(0.9, 2000)}
    assert misfit(simulated(rows, past))
    assert misfit(simulated(rows, past, radius=0.05))
    assert not misfit(simulated(rows, past, radius=0.5))


@pytest.mark.parametrize("epsilon", [0.7, 1.3, 2.5])
def test_what_is_saved_is_computed_from_exact_losses_and_rounded_down(epsilon: float) -> None:
    truth = shares(0.87, 400)
    shown = simulated({"x": truth}, None, epsilon=epsilon).certificate
    exact = simulated({"x": truth}, {"x": truth}, epsilon=epsilon).certificate
    assert exact.cost is not None
    assert exact.silence is not None
    assert shown.cost is not None
    saved = Decimal(1 - exact.cost / exact.silence)
    down = Context(prec=2, rounding=ROUND_FLOOR).create_decimal(saved)
    assert shown.gain == exact.gain == float(down)
    assert shown.cost >= exact.cost
