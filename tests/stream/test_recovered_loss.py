"""Losses after recovery: in an audit beside true values, and in a plan."""

from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.stream.forecast import forecast
from sfumato.stream.history_paths import draw_paths
from sfumato.stream.recovered_rows import count_rows, summary, value_rows
from sfumato.stream.release_run import RunSpec
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Table

MOVES = [[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]]
CHAIN = sf.MarkovChain.from_matrix(MOVES)


def written(folder: Path, *, batch: int | None = None) -> tuple[Table, Table, sf.Plan, object]:
    """Streams of the model, true and released, with the rule of the release."""
    from sfumato.models.encoding import Symbols

    model = sf.stream.StreamModel(CHAIN, Symbols(CHAIN.alphabet))
    paths = draw_paths(CHAIN, 30, 6, seed=3)
    lines = [f"s{who},{path[t]}" for t in range(30) for who, path in enumerate(paths)]
    (folder / "live.csv").write_text("\n".join(["stream,value", *lines]) + "\n")
    spec = sf.stream.ReleaseSpec(epsilon=0.7, batch=batch, purpose="simulation")
    plan = spec.plan(model)
    true, left = (Table.at(str(folder / name)) for name in ("live.csv", "private.csv"))
    sf.stream.release_table(true, left, model, plan, RunSpec(randomness=sf.seeded(4)))
    return true, left, plan, model


@pytest.mark.parametrize("batch", [None, 2])
def test_an_audit_says_what_best_guesses_given_everything_lose(
    tmp_path: Path, batch: int | None
) -> None:
    true, left, plan, model = written(tmp_path, batch=batch)
    assert isinstance(model, sf.stream.StreamModel)
    report = sf.stream.audit_table(left, model, plan, against=true)
    assert report.passed and report.mean_loss is not None and report.recovered_loss is not None
    tracks = sf.stream.read_tracks(left, model)
    guessed = sf.stream.recover(tracks, plan).values().guesses
    paths = dict(enumerate(draw_paths(CHAIN, 30, 6, seed=3)))
    truth = np.concatenate([paths[int(name[1:])] for name in tracks.streams])
    assert report.recovered_loss == pytest.approx((guessed != truth).mean())
    assert report.recovered_loss < report.mean_loss


def test_a_plan_says_what_recovery_saves() -> None:
    plan = sf.Plan(CHAIN, sf.PerStep(sf.SIP(0.7)), sf.loss.hamming(CHAIN.alphabet))
    for paths in (None, draw_paths(CHAIN, 60, 12, seed=9)):
        rows = forecast(plan, length=60, streams=8, paths=paths).methods[:3]
        for row in rows:
            assert row.recovered_loss is not None and row.remapped_loss is not None
            assert row.recovered_loss < row.remapped_loss
        assert rows[0].recovered_loss is not None and rows[0].recovered_loss < rows[0].loss


def test_rows_of_the_same_file_stand_in_its_order(tmp_path: Path) -> None:
    _, left, plan, model = written(tmp_path)
    assert isinstance(model, sf.stream.StreamModel)
    tracks = sf.stream.read_tracks(left, model)
    found = sf.stream.recover(tracks, plan)
    rows = [row for block in value_rows(found, found.values()) for row in block]
    lines = Path(left.path).read_text().splitlines()[1:]
    assert [str(row[0]) for row in rows] == [line.split(",")[0] for line in lines]
    told = summary(found, found.values())
    assert told.rows == 180 and told.expected_recovered < told.expected_released
    assert sum(count for _, count, _ in told.counts.values()) == pytest.approx(180)
    counted = list(count_rows(sf.stream.Population(found)))
    assert sum(float(row[2] or 0) for row in counted) == 180


def test_a_file_that_says_what_the_plan_could_not_have_said_is_refused(tmp_path: Path) -> None:
    _, left, _, model = written(tmp_path)
    assert isinstance(model, sf.stream.StreamModel)
    path = Path(left.path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], *lines[7:]]) + "\n")
    with pytest.raises(BadTable, match=r"row 1: the sequence number must be 0; a stream that goes"):
        sf.stream.read_tracks(left, model)
    path.write_text("\n".join([*lines, lines[5]]) + "\n")
    assert len(sf.stream.read_tracks(left, model).places) == 180
    other = lines[5].split(",")
    place = lines[0].split(",").index("released")
    other[place] = str((int(other[place]) + 1) % 3)
    path.write_text("\n".join([*lines, ",".join(other)]) + "\n")
    with pytest.raises(BadTable, match="a moment must say again what was said of it before"):
        sf.stream.read_tracks(left, model)
