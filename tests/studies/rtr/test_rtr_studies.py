"""Studies of series: what is certified is kept, verdicts follow the numbers, seeds decide all."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sfumato.noise.curves import gaussian_epsilon
from sfumato.series.paper_rule import paper_weight
from sfumato.studies.data.series_data import ftp_speeds
from sfumato.studies.rtr import drifting_series, drive_cycle, weight_claims, window_rivals
from sfumato.studies.rtr.method_claims import method_claims
from sfumato.studies.rtr.method_curves import Method, Task, Yardstick, curve_points
from sfumato.studies.rtr.point_table import better, curve, records, table
from sfumato.studies.rtr.private_sequences import Plot, sequence_claim, sequence_points, sequences
from sfumato.studies.rtr.rtr_catalogue import RTR_STUDIES
from sfumato.studies.rtr.rule_weights import correlation_points, geometric_points
from sfumato.studies.rtr.series_points import DELTA, Budget, SeriesPoint
from sfumato.studies.rtr.traffic import delay_claims, delay_points
from sfumato.studies.study import Claim, Setting, Verdict

VALUES = np.round(
    5000 + 3000 * np.sin(np.arange(120) * np.pi / 12) + np.random.default_rng(1).normal(0, 200, 120)
)
TASK = Task("4", "hours", VALUES, 24, ratios=(0.2, 1.0, 4.0))


@pytest.fixture(scope="module")
def points() -> list[SeriesPoint]:
    return curve_points(TASK, 4, seed=1)


def worse(points: list[SeriesPoint], method: str, factor: float) -> list[SeriesPoint]:
    """The same, one method with another error."""
    return [replace(p, error=factor * p.error) if p.method == method else p for p in points]


# Numbers ------------------------------------------------------------------------------------------


def test_a_seed_decides_every_number(points: list[SeriesPoint]) -> None:
    assert curve_points(TASK, 4, seed=1) == points
    assert curve_points(TASK, 4, seed=2) != points


def test_every_curve_keeps_the_promise_it_is_drawn_at(points: list[SeriesPoint]) -> None:
    for point in points:
        if point.panel == Yardstick.EXACT:
            assert (point.epsilon, point.delta) == (point.x, DELTA)
        if point.method == Method.GAUSSIAN:
            ratio = np.sqrt(VALUES.size) / point.error
            assert gaussian_epsilon(ratio, DELTA) == pytest.approx(point.x, rel=1e-6)


def test_what_equal_variance_hides_is_told(points: list[SeriesPoint]) -> None:
    for point in points:
        if point.panel == Yardstick.VARIANCE and point.method == Method.LAPLACE:
            assert 1.3 * point.x < point.epsilon
        if point.panel == Yardstick.VARIANCE and point.method == Method.FOURIER:
            assert point.epsilon > 3 * point.x
            assert point.delta == 0.0


def test_the_best_weight_errs_no_more_than_the_one_of_the_theorems(
    points: list[SeriesPoint],
) -> None:
    best, asked = (curve(points, m, Yardstick.EXACT) for m in (Method.BEST, Method.PAPER))
    for one, other in zip(best, asked, strict=True):
        assert one.error <= other.error
    assert paper_weight(VALUES, 1e-6) > 0.99


def test_a_table_has_a_row_for_each_curve(points: list[SeriesPoint]) -> None:
    heads, rows = table(points)
    assert len(heads) == 4 + len(TASK.ratios)
    assert len(rows) == len(Method) * len(Yardstick)
    assert {len(record) for record in records(points)} == {12}


def test_paths_drift_as_their_mean_says() -> None:
    found = drifting_series.drifting(0.05, 60, 4000, np.random.default_rng(3))
    exact = drifting_series.mean_path(0.05, 60)
    assert found.mean(axis=1) == pytest.approx(exact, abs=0.45)
    assert found[-1].var() == pytest.approx(27.8, rel=0.1)


def test_a_drive_of_any_noise_has_an_epsilon() -> None:
    told = [drive_cycle.drive_epsilon(ratio) for ratio in (0.5, 2.0, 50.0, 1000.0)]
    assert told[:2] == pytest.approx([gaussian_epsilon(r, DELTA) for r in (0.5, 2.0)], rel=1e-6)
    assert told[2] == pytest.approx(gaussian_epsilon(50.0, DELTA), rel=1e-6)
    assert 1000**2 / 2 < told[3] < 1000**2 / 2 + 6 * 1000


# Verdicts -----------------------------------------------------------------------------------------


def said(claims: list[Claim], words: str) -> Verdict:
    return next(claim.verdict for claim in claims if words in claim.claimed)


def test_verdicts_on_methods_follow_the_numbers(points: list[SeriesPoint]) -> None:
    good = worse(worse(points, Method.BEST, 0.01), Method.PAPER, 0.01)
    bad = worse(worse(points, Method.BEST, 100.0), Method.PAPER, 100.0)
    for words in ("independent noise", "less than FAST"):
        assert said(method_claims("RTR 4", good, "hours"), words) is Verdict.AGREES
        assert said(method_claims("RTR 4", bad, "hours"), words) is Verdict.DIFFERS
    assert said(method_claims("RTR 4", good, "hours"), "Fourier") is not Verdict.AGREES


def test_verdicts_on_delays_follow_the_numbers() -> None:
    found = delay_points(replace(TASK, figure="5"), 4, seed=1)
    assert said(delay_claims(found), "without delay") is Verdict.AGREES
    late = [
        replace(p, error=p.error * p.x) if p.method == "Fourier in blocks" else p for p in found
    ]
    assert said(delay_claims(late), "longer delays") is Verdict.DIFFERS
    assert said(delay_claims(worse(found, Method.BEST, 1e-3)), "some delay") is Verdict.DIFFERS


def test_verdicts_on_sequences_follow_the_numbers() -> None:
    plot = Plot.same_variance("17", float(VALUES.var()), VALUES.size)
    found = sequence_points(TASK, plot, sequences(VALUES, plot, seed=1))
    rivals = (Method.GAUSSIAN, Method.LAPLACE, Method.FAST)
    near = sequence_claim("RTR 17", worse(found, Method.BEST, 0.1), "near", rivals)
    far = sequence_claim("RTR 17", worse(found, Method.BEST, 10.0), "near", rivals)
    assert (near.verdict, far.verdict) == (Verdict.AGREES, Verdict.DIFFERS)
    assert "more than a constant" in far.reason


def test_verdicts_on_windows_and_trees_follow_the_numbers() -> None:
    budget = Budget.with_noise(float(VALUES.std()), VALUES.size)
    found = window_rivals.rival_points("hours", VALUES, budget, 2, 1)
    assert window_rivals.tree_claims(found)[0].verdict is Verdict.AGREES
    small = worse(found, "binary tree", 1e-6)
    assert window_rivals.tree_claims(small)[0].verdict is Verdict.DIFFERS
    best = worse(worse(found, "budget absorption", 1e-6), "budget distribution", 1e-6)
    assert window_rivals.window_claims(best)[1].verdict is Verdict.DIFFERS


def test_verdicts_on_drifts_follow_the_numbers() -> None:
    found: list[SeriesPoint] = []
    for push in (0.0, 0.05):
        draw = np.random.default_rng(1)
        series = drifting_series.drifting(push, 80, 4, draw)
        for each in drifting_series.EACH:
            found += drifting_series.drift_points(series, push, each, draw)
    good = drifting_series.drift_claims(worse(found, Method.BEST, 1e-3))
    bad = drifting_series.drift_claims(worse(found, Method.BEST, 1e3))
    assert (good[0].verdict, bad[0].verdict) == (Verdict.AGREES, Verdict.DIFFERS)


def test_verdicts_on_weights_follow_the_numbers() -> None:
    draw = np.random.default_rng(1)
    found = [p for rho in weight_claims.RHOS for p in correlation_points(rho, 60, 3, draw)]
    for ratio in (2.0, 0.5):
        found += geometric_points(replace(TASK, figure="11"), ratio, 3, draw)
    flat = [p for p in found if p.figure == "11"]
    assert said(weight_claims._falling_claims(flat), "at every epsilon") is Verdict.AGREES
    high = worse(flat, weight_claims.LEARNT, 100.0)
    assert said(weight_claims._falling_claims(high), "at every epsilon") is Verdict.DIFFERS
    nine = [p for p in found if p.figure == "9"]
    small = [replace(p, error=0.01, spread=0.0) if p.x < 0.05 else p for p in nine]
    assert said(weight_claims._correlation_claims(small), "some weight") is Verdict.AGREES
    never = [replace(p, error=50.0) if p.x < 1 else p for p in nine]
    assert said(weight_claims._correlation_claims(never), "some weight") is Verdict.DIFFERS


def test_verdicts_on_drives_follow_the_numbers() -> None:
    data = ftp_speeds(Setting())
    found = [
        point
        for noise in (5.0, 20.0, 2000.0)
        for point in drive_cycle.cycle_points(data, noise, 2, np.random.default_rng(1))
    ]
    words = "accurate enough"
    assert said(drive_cycle.claims(found), words) is Verdict.DIFFERS
    assert said(drive_cycle.claims(worse(found, Method.BANK, 1e-4)), words) is Verdict.AGREES


def test_chance_is_no_difference() -> None:
    one = SeriesPoint("4", "a", "b", "c", 1.0, 1.0, 0.3, 2.0, 0.1, 1.0, 0.0)
    assert not better(one, replace(one, error=1.5))
    assert better(one, replace(one, error=2.0))


# Whole studies ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("study", RTR_STUDIES, ids=lambda study: study.name)
def test_a_study_answers_for_each_of_its_figures(
    study: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    prepare: Callable[[Setting], object] = study.prepare  # type: ignore[attr-defined]
    work = prepare(Setting(quick=True))
    seen: list[int] = []
    found = work.run(seen.append)  # type: ignore[attr-defined]
    assert seen == list(range(1, work.steps + 1))  # type: ignore[attr-defined]
    assert {claim.figure for claim in found.claims} >= set(study.figures)  # type: ignore[attr-defined]
    for name, draw in found.pictures.items():
        path = tmp_path_factory.mktemp("pictures") / f"{name}.png"
        draw(path)
        assert path.stat().st_size > 5000
    silent = [record for record in found.records if not record["silence"] > 0]
    assert not silent
