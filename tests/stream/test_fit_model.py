"""Fitting from tables with gaps, with values beyond the range, and with distances in units."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from sfumato.core.alphabet import MISSING_SYMBOL
from sfumato.core.errors import InvalidParameter
from sfumato.models.encoding import Bins, Grid, Symbols
from sfumato.models.stream_model import StreamModel
from sfumato.store.files import load, save
from sfumato.stream.fit_model import Cut, fit_table
from sfumato.stream.model_loss import default_loss, unit_of
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.tables.cells import Missing
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Table


def table(path: Path, columns: list[str], rows: Sequence[tuple[object, ...]]) -> Table:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)
    return Table.at(str(path))


@pytest.fixture
def gaps(tmp_path: Path) -> Table:
    """Two streams; in the first one a value is missing between b and a."""
    rows = [("u", "a"), ("u", "b"), ("u", ""), ("u", "a"), ("v", "NaN"), ("v", "b"), ("v", "b")]
    return table(tmp_path / "gaps.csv", ["stream", "value"], rows)


# Missing values -----------------------------------------------------------------------------------


def test_a_missing_value_is_refused_and_its_row_is_named(gaps: Table) -> None:
    with pytest.raises(BadTable, match="row 3: the value must not be empty"):
        fit_table(gaps)


@pytest.mark.parametrize(
    ("missing", "symbols", "transitions"),
    # a-b, b-b; and b-a where the gap is closed; all moves where a gap is a symbol.
    [(Missing.DROP, 2, 3), (Missing.SKIP, 2, 2), (Missing.SYMBOL, 3, 5)],
)
def test_a_gap_is_closed_or_parts_or_is_a_symbol(
    gaps: Table, missing: Missing, symbols: int, transitions: int
) -> None:
    model, report = fit_table(gaps, missing=missing)
    assert (report.symbols, report.transitions) == (symbols, transitions)
    assert report.missing == (0 if missing is Missing.SYMBOL else 2)
    gap = MISSING_SYMBOL if missing is Missing.SYMBOL else None
    assert (MISSING_SYMBOL in model.alphabet) == (gap is not None)
    if gap:
        assert isinstance(model.encoding, Symbols)
        assert [model.encoding.encode(cell) for cell in ("", None, " ", "nan", "a")] == [
            gap
        ] * 4 + ["a"]


def test_a_symbol_for_gaps_is_refused_where_symbols_have_places(tmp_path: Path) -> None:
    speeds = table(tmp_path / "speeds.csv", ["stream", "value"], [("u", 1), ("u", ""), ("u", 3)])
    with pytest.raises(InvalidParameter, match="--missing must be refuse, drop or skip with bins"):
        fit_table(speeds, cut=Cut(bins=2), missing=Missing.SYMBOL)


def test_the_row_of_a_wrong_value_is_right_after_gaps(tmp_path: Path) -> None:
    rows: list[tuple[object, ...]] = [("u", 1), ("u", ""), ("u", 3), ("u", "fast")]
    speeds = table(tmp_path / "speeds.csv", ["stream", "value"], rows)
    with pytest.raises(BadTable, match="row 4: the value must be a number"):
        fit_table(speeds, cut=Cut(bins=2), missing=Missing.DROP)


def test_a_table_of_gaps_is_refused(tmp_path: Path) -> None:
    nothing = table(tmp_path / "gaps.csv", ["stream", "value"], [("u", ""), ("u", "")])
    with pytest.raises(BadTable, match="at least one value must not be missing"):
        fit_table(nothing, missing=Missing.SKIP)


# Ranges -------------------------------------------------------------------------------------------


def test_values_beyond_the_range_are_clipped_and_counted_and_the_model_goes_on_clipping(
    tmp_path: Path,
) -> None:
    rows: list[tuple[object, ...]] = [("u", v) for v in (-5, 1, 4, 9, 12)]
    speeds = table(tmp_path / "speeds.csv", ["stream", "value"], rows)
    model, report = fit_table(speeds, cut=Cut(bins=5, ranges=((0.0, 10.0),), unit="km/h"))
    assert (report.clipped, report.unit) == (2, "km/h")
    # By hand: middles 1, 3, 5, 7, 9; distances 6, 0, 1 (4 begins the next bin), 0, 3.
    assert report.rounding == pytest.approx((6 + 0 + 1 + 0 + 3) / 5)
    save(model, tmp_path / "speeds.model")
    again = load(tmp_path / "speeds.model")
    assert isinstance(again, StreamModel)
    assert isinstance(again.encoding, Bins)
    assert again.encoding.clip
    assert again.unit == "km/h"
    assert [again.encoding.encode(value) for value in (-1e9, 99.0)] == ["1", "9"]
    assert [again.encoding.outside(value) for value in (-0.1, 0.0, 10.0, 10.1)] == [1, 0, 0, 1]


def test_without_a_range_a_value_beyond_history_is_outside_the_alphabet(tmp_path: Path) -> None:
    speeds = table(tmp_path / "speeds.csv", ["stream", "value"], [("u", 0), ("u", 10)])
    model, report = fit_table(speeds, cut=Cut(bins=5))
    assert report.clipped == 0
    assert isinstance(model.encoding, Bins)
    assert model.encoding.encode(10.5) is None


def test_a_range_or_a_unit_of_names_is_refused(gaps: Table) -> None:
    for cut in (Cut(ranges=((0.0, 1.0),)), Cut(unit="km")):
        with pytest.raises(BadTable, match="must come with --bins or --grid"):
            fit_table(gaps, cut=cut, missing=Missing.DROP)


# Units --------------------------------------------------------------------------------------------


def points(tmp_path: Path) -> Table:
    rows: list[tuple[object, ...]] = [("u", 8.4, 47.3), ("u", 8.6, 47.4), ("u", 8.5, 47.5)]
    return table(tmp_path / "gps.csv", ["stream", "lon", "lat"], rows)


def test_a_grid_in_degrees_loses_kilometres_along_the_earth(tmp_path: Path) -> None:
    cut = Cut(columns=2, rows=2, ranges=((8.0, 9.0), (47.0, 48.0)), unit="degrees")
    model, report = fit_table(points(tmp_path), values=("lon", "lat"), cut=cut)
    assert default_loss(model) == "great-circle"
    assert (report.unit, unit_of("great-circle", model)) == ("km", "km")
    costs = ReleaseSpec(epsilon=1.0).instant(model).value_loss
    assert costs is not None
    # By hand: half a degree of latitude, and of longitude at 47.25 degrees north.
    assert costs.matrix[0, 1] == pytest.approx(6371.0088 * math.radians(0.5), rel=1e-9)
    width = 2 * math.asin(math.cos(math.radians(47.25)) * math.sin(math.radians(0.25)))
    assert costs.matrix[0, 2] == pytest.approx(6371.0088 * width, rel=1e-9)
    assert 0 < (report.rounding or 0) < 40


def test_a_plain_grid_loses_distance_and_names_lose_rightness(tmp_path: Path, gaps: Table) -> None:
    model, _ = fit_table(points(tmp_path), values=("lon", "lat"), cut=Cut(columns=2, rows=2))
    assert isinstance(model.encoding, Grid)
    assert default_loss(model) == "euclidean"
    named, _ = fit_table(gaps, missing=Missing.DROP)
    assert (default_loss(named), unit_of("hamming", named)) == ("hamming", "wrong")


def test_degrees_beyond_the_earth_are_refused(tmp_path: Path) -> None:
    cut = Cut(columns=2, rows=2, ranges=((0.0, 1.0), (0.0, 91.0)), unit="degrees")
    with pytest.raises(InvalidParameter, match="--y must be latitude, within 90"):
        fit_table(points(tmp_path), values=("lon", "lat"), cut=cut)


def test_losses_on_demand_are_those_of_the_matrix() -> None:
    from sfumato import Alphabet, loss

    draw = np.random.default_rng(1)
    places = np.stack([draw.uniform(-180, 180, 700), draw.uniform(-90, 90, 700)], axis=1)
    costs = loss.great_circle(Alphabet([f"p{i}" for i in range(700)], places))
    belief = draw.dirichlet(np.ones(700))
    means = costs.means(belief)
    assert means == pytest.approx(belief @ costs.matrix, rel=1e-9)
    assert costs.matrix.max() <= costs.bound * (1 + 1e-12) <= 6371.0088 * math.pi * (1 + 1e-9)


def test_a_release_counts_what_it_clips(tmp_path: Path) -> None:
    from tests.shell.running import done

    rows: list[tuple[object, ...]] = [("u", v) for v in (1, 4, 9, 6, 2, 8) * 3]
    table(tmp_path / "history.csv", ["stream", "value"], rows)
    table(tmp_path / "live.csv", ["stream", "value"], [("u", -3), ("u", 5), ("u", 99)])
    model, private = tmp_path / "speeds.model", tmp_path / "private.csv"
    done("fit", tmp_path / "history.csv", "--bins", 5, "--range", "0:10", "-o", model)
    rule = ("-m", model, "--epsilon", 1, "-o", private, "--json")
    assert done("release", tmp_path / "live.csv", *rule).document["clipped"] == 2
    audit = ("audit", private, "-m", model, "--against", tmp_path / "live.csv", "--json")
    report = done(*audit).document
    # However it was released, 99 is at least 90 from the middle of any bin.
    assert report["passed"]
    assert report["mean_loss"] >= (4 + 90) / 3


# How streams begin --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("streams", "length", "said"), [(3, 200, True), (300, 30, False), (2, 6, False)]
)
def test_a_fit_says_when_beginnings_rest_on_few_streams(
    tmp_path: Path, streams: int, length: int, said: bool
) -> None:
    rows = [(f"s{n}", "ab"[(n + t) % 2]) for n in range(streams) for t in range(length)]
    history = table(tmp_path / "history.csv", ["stream", "value"], rows)
    _, report = fit_table(history)
    few = [warning for warning in report.warnings if "how a stream begins" in warning]
    assert bool(few) == said
    if said:
        assert f"only {streams} streams" in few[0] and f"have {length} values" in few[0]
        assert f"{length / (streams + length):.0%} like any later one" in few[0]
