"""Values that heap: what is promised holds against one who knows other such records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.core.errors import InvalidParameter
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import seeded
from sfumato.record.disclosure import disclosure
from sfumato.record.publish import publish
from sfumato.tables.problems import BadTable

Floats = NDArray[np.float64]
HALF = np.array([3.0, 5.0])
ASKED: dict[str, Any] = {"accuracy": HALF, "noise": "gaussian", "coupling": "gaussian"}


def heaped(count: int, seed: int) -> Floats:
    """Whole kilograms, and pressures that nearly all end in 0."""
    rng = np.random.default_rng(seed)
    weight = np.round(rng.normal(74, 14, count))
    pressure = 10 * rng.choice([11, 12, 13, 14, 16], count, p=[0.15, 0.5, 0.15, 0.15, 0.05])
    return np.stack([weight, pressure + rng.integers(0, 2, count) * 1.0], axis=1)


def table(rows: Floats) -> dict[str, Floats]:
    return {"weight": rows[:, 0], "pressure": rows[:, 1]}


def brute_force(people: Floats, sigma: Floats, known: Floats) -> float:
    """Bayes with every known record; every known record a centre, moved by the half widths too."""
    rng = np.random.default_rng(99)
    told = people + rng.normal(0, sigma, people.shape)
    points, counts = np.unique(known, axis=0, return_counts=True)
    shifts = np.array([[0, 0], *([a, b] for a in (-3, 3) for b in (-5, 5))], dtype=float)
    centres = (points[:, None] + shifts).reshape(-1, 2)
    holds = (np.abs(centres[:, None] - points) <= HALF).all(axis=2).astype(float)
    off = (told[:, None] - points) / sigma
    posterior = counts * np.exp(-0.5 * (off**2).sum(axis=2))
    guess = centres[np.argmax(posterior @ holds.T, axis=1)]
    return float((np.abs(guess - people) <= HALF).all(axis=1).mean())


FEW = table(heaped(19, 7))
FEW_ASKED: dict[str, Any] = {"accuracy": HALF, "sigma": 9.0}


def test_delta_is_no_less_than_what_one_who_knows_other_records_finds() -> None:
    people, known = heaped(600, 1), heaped(4_000, 2)
    sigma = np.array([9.0, 15.0])
    found = disclosure(table(people), ["weight", "pressure"], sigma=sigma, **ASKED)
    attack = brute_force(people, sigma, known)
    assert found.delta_model < attack <= found.delta < attack + 0.1
    assert found.delta == found.delta_held_out
    assert found.way == "attacks on held-out records"


def test_a_target_is_kept_against_one_who_knows_other_records() -> None:
    people, known = heaped(600, 3), heaped(4_000, 4)
    done = publish(
        table(people),
        ["weight", "pressure"],
        target_delta=0.35,
        randomness=seeded(1),
        purpose=Purpose.SIMULATION,
        **ASKED,
    ).certificate
    assert done.guarantee.delta <= 0.35
    assert brute_force(people, np.array(done.sigma), known) <= 0.35
    assert done.delta_held_out is not None
    assert done.delta_model < done.delta_held_out <= 0.35


def test_a_blind_guess_knows_where_values_heap() -> None:
    people = heaped(600, 5)
    best = max(
        (np.abs(people - centre) <= HALF).all(axis=1).mean() for centre in np.unique(people, axis=0)
    )
    found = disclosure(table(people), ["weight", "pressure"], sigma=30.0, **ASKED)
    assert found.delta_before >= best
    with pytest.raises(InvalidParameter, match="before anything is published"):
        disclosure(table(people), ["weight", "pressure"], target_delta=0.9 * best, **ASKED)


def test_too_few_records_to_attack_with_are_said_to_be() -> None:
    found = disclosure(table(heaped(150, 6)), ["weight", "pressure"], sigma=9.0, **ASKED)
    assert found.delta_held_out is None
    assert any("fewer than 200 records" in remark for remark in found.remarks)


@pytest.mark.parametrize("coupling", ["mixture", "gaussian", "kernel", "weight ~ pressure"])
def test_nothing_is_learnt_from_hardly_any_rows(coupling: str) -> None:
    with pytest.raises(BadTable, match="needs 20 rows"):
        disclosure(FEW, ["weight", "pressure"], **FEW_ASKED, coupling=coupling)


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "coupling",
    [
        "gaussian",
        "weight ~ pressure",
        *(pytest.param(n, marks=SLOW) for n in ("mixture", "kernel")),
    ],
)
def test_of_hardly_any_rows_is_told_what_a_history_teaches(coupling: str) -> None:
    history = table(heaped(60, 8))
    asked: dict[str, Any] = {**FEW_ASKED, "coupling": coupling, "history": history}
    assert disclosure(FEW, ["weight", "pressure"], **asked).rows == 19
