"""`sfumato recover`: all of its tables appear, or none; what it infers is in other hands' tests."""

from pathlib import Path

import pytest

from tests.shell.running import call, done, litter
from tests.shell.tables import csv_bytes, walk


@pytest.fixture
def town(tmp_path: Path) -> Path:
    """A folder with a model and a release."""
    (tmp_path / "history.csv").write_bytes(csv_bytes(["person", "place"], walk(1, rows=200)))
    (tmp_path / "live.csv").write_bytes(csv_bytes(["person", "place"], walk(7, rows=40)))
    model, released = tmp_path / "city.model", tmp_path / "private.csv"
    done("fit", tmp_path / "history.csv", "--stream", "person", "--value", "place", "-o", model)
    budget = ("--epsilon", "1", "--seed", "3")
    done("release", tmp_path / "live.csv", "-m", model, *budget, "-o", released)
    return tmp_path


def arguments(home: Path) -> tuple[object, ...]:
    tables = ("-o", home / "guesses.csv", "--counts", home / "counts.csv")
    flows = ("--flows", home / "flows.csv")
    return "recover", home / "private.csv", "-m", home / "city.model", *tables, *flows


@pytest.mark.parametrize("problem", [KeyboardInterrupt, OSError("disk full")])
def test_an_interrupted_recovery_leaves_nothing(
    town: Path, problem: type[BaseException] | BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(path.name for path in town.iterdir())

    def broken(population: object) -> None:
        raise problem

    with monkeypatch.context() as patch:
        patch.setattr("sfumato.stream.recovered_rows.flow_rows", broken)
        assert call(*arguments(town)).code == (130 if problem is KeyboardInterrupt else 2)
    assert sorted(path.name for path in town.iterdir()) == before
    assert litter(town) == []
    done(*arguments(town))
    assert all((town / f"{name}.csv").is_file() for name in ("guesses", "counts", "flows"))


def test_json_and_a_table_do_not_share_standard_output(town: Path) -> None:
    result = call("recover", town / "private.csv", "-m", town / "city.model", "-o", "-", "--json")
    assert result.code == 2 and "--json must not come with a table" in result.err


def test_a_series_that_was_filtered_and_a_channel_that_is_not_told_are_refused(
    tmp_path: Path,
) -> None:
    rows = [(f"2024-01-{day:02d}", 100 + day) for day in range(1, 29)]
    (tmp_path / "counts.csv").write_bytes(csv_bytes(["date", "cnt"], rows))
    budget = ("--sensitivity", "1", "--epsilon", "2", "--seed", "3")
    left = tmp_path / "left.csv"
    done("realtime", tmp_path / "counts.csv", "--value", "cnt", *budget, "-o", left)
    result = call("recover", left)
    assert result.code == 2 and "of a filter the estimates leave" in result.err
    survey = [("yes" if row % 3 else "no",) for row in range(60)]
    (tmp_path / "survey.csv").write_bytes(csv_bytes(["answer"], survey))
    told = tmp_path / "told.csv"
    column = ("-c", "answer", "--epsilon", "1", "--seed", "3", "--order", "kept")
    done("privatize", tmp_path / "survey.csv", *column, "-o", told)
    result = call("recover", told)
    assert result.code == 2 and "mechanism must be one for counting" in result.err
