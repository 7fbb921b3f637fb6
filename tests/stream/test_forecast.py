"""A plan is judged from many streams, with intervals, against silence."""

import math
from pathlib import Path

import numpy as np
import pytest

from sfumato import SIP, Horizon, MarkovChain, PerStep, Plan, Window, loss
from sfumato.models.encoding import Symbols
from sfumato.models.stream_model import StreamModel
from sfumato.stream.forecast import PlanReport, forecast
from sfumato.stream.history_paths import draw_paths, mean_and_error, read_paths
from sfumato.stream.remarks import factor_text
from sfumato.tables.readers import Table

STICKY = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])


def planned(epsilon: float, **asked: object) -> PlanReport:
    plan = Plan(STICKY, PerStep(SIP(epsilon)), loss.hamming(STICKY.alphabet))
    return forecast(plan, **({"length": 20, "streams": 6} | asked))  # type: ignore[arg-type]


# Intervals ----------------------------------------------------------------------------------------


def test_seeds_differ_by_no_more_than_their_intervals_say() -> None:
    truth = planned(0.6, length=12, streams=20, seed=99).methods[0]
    for seed in range(1, 4):
        found = planned(0.6, length=12, seed=seed).methods[0]
        assert 0 < found.loss_error < 0.1
        assert abs(found.loss - truth.loss) < 4 * math.hypot(found.loss_error, truth.loss_error)


def test_one_stream_says_nothing_about_its_error() -> None:
    report = planned(0.6, streams=1)
    assert report.methods[0].loss_error == math.inf
    assert any("cannot be told apart" in remark for remark in report.remarks)


def test_the_standard_error_is_that_of_means_where_lengths_are_equal() -> None:
    sums = np.array([3.0, 5.0, 4.0, 9.0])
    mean, error = mean_and_error(sums, np.full(4, 10.0))
    assert mean == pytest.approx(0.525)
    assert error == pytest.approx(np.std(sums / 10, ddof=1) / 2)


def test_streams_are_drawn_alike_and_independently() -> None:
    one, two = draw_paths(STICKY, 40, 2, seed=3)
    assert one != two
    assert [one, two] == draw_paths(STICKY, 40, 3, seed=3)[:2]
    assert one != draw_paths(STICKY, 40, 1, seed=4)[0]


# Silence ------------------------------------------------------------------------------------------


def test_a_release_that_is_no_better_than_a_constant_is_loudly_said_to_be() -> None:
    quiet, useful = planned(0.001, length=8), planned(1.5)
    assert "BETTER THAN SILENCE" in quiet.remarks[0]
    assert abs(quiet.methods[0].better) < 0.05
    assert not any("SILENCE" in remark for remark in useful.remarks)
    assert useful.methods[0].better > 2 * useful.methods[0].better_error > 0


def test_silence_loses_what_the_model_expects_of_the_likeliest_symbol() -> None:
    silence = planned(1.0, length=3).methods[-1]
    shares, belief = [], STICKY.initial
    for _ in range(3):
        shares.append(1 - belief.max())
        belief = belief @ STICKY.transition()
    assert silence.loss == pytest.approx(float(np.mean(shares)))
    assert (silence.sip, silence.constant, silence.better) == (0.0, 1.0, 0.0)


def test_symbols_that_never_leave_are_named() -> None:
    quiet = planned(0.001, length=8)
    assert quiet.methods[0].never == (1,)
    assert any("never released: 1" in remark for remark in quiet.remarks)
    assert planned(2.0, length=8).methods[0].never == ()


# Totals -------------------------------------------------------------------------------------------


def test_an_absurd_total_is_said_in_words() -> None:
    report = planned(1.0, length=30, streams=2)
    assert report.total == pytest.approx(30.0)
    (said,) = (remark for remark in report.remarks if remark.startswith("A LARGE TOTAL"))
    assert "SIP(30)" in said
    assert "a factor of 10^14" in said
    assert not any("TOTAL" in remark for remark in planned(0.1, length=30, streams=2).remarks)


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [(0.0, "a factor of 1.01"), (0.7, "a factor of 2.02"), (13.8, "a factor of 985,000")],
)
def test_factors_are_rounded_up(epsilon: float, words: str) -> None:
    assert factor_text(epsilon) == words
    assert float(words.split()[-1].replace(",", "")) >= math.exp(epsilon)


def test_totals_of_windows_and_horizons_are_those_of_their_budgets() -> None:
    costs = loss.hamming(STICKY.alphabet)
    window = forecast(Plan(STICKY, Window(SIP(1.0), 10), costs), length=25, streams=2)
    assert window.total == pytest.approx(3.0)
    fixed = forecast(Plan(STICKY, Horizon(SIP(2.0), 10), costs), length=15, streams=2)
    assert (fixed.total, fixed.one_value) == (2.0, 2.0)
    # Beyond the horizon nothing leaves, and the receiver's guess is what counts.
    assert fixed.methods[0].total <= 2.0
    assert fixed.methods[0].constant >= 5 / 15
    for report in (window, fixed):
        assert (report.methods[0].one_value or 0.0) <= report.one_value


# Held-out streams ---------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path: Path) -> Table:
    path = tmp_path / "held.csv"
    rows = [("u", "0"), ("u", "1"), ("v", "1"), ("u", "7"), ("v", ""), ("w", "0"), ("u", "1")]
    path.write_text("stream,value\n" + "".join(f"{owner},{value}\n" for owner, value in rows))
    return Table.at(str(path))


def test_held_out_streams_are_read_in_order_with_gaps(table: Table) -> None:
    model = StreamModel(STICKY, Symbols(STICKY.alphabet))
    assert read_paths(table, model, streams=9) == [[0, 1, -1, 1], [1, -1], [0]]
    assert read_paths(table, model, streams=2, length=2) == [[0, 1], [1, -1]]


def test_held_out_streams_are_judged_by_their_own_truths() -> None:
    """A stream that never leaves the rarer symbol: silence errs always, a model expects less."""
    stubborn = planned(1.5, paths=[[1] * 20, [1] * 20])
    assert stubborn.held_out
    assert (stubborn.streams, stubborn.length) == (2, 20)
    assert stubborn.methods[-1].loss == 1.0
    assert stubborn.methods[0].loss < 0.9
    assert planned(1.5, length=20).methods[-1].loss < 0.5
