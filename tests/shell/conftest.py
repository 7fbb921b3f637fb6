from pathlib import Path

import pytest

from tests.shell.releasing import STEP
from tests.shell.running import done
from tests.shell.tables import csv_bytes, table, walk, write


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one fitted model of each kind: places, levels, bins and a grid."""
    folder = tmp_path_factory.mktemp("models")
    table(folder / "places.csv", walk(1, rows=400))
    levels = walk(2, rows=400, symbols=("1", "2", "3"))
    table(folder / "levels.csv", levels)
    numbers = [(person, 10.0 * float(level)) for person, level in levels]
    table(folder / "bins.csv", numbers)
    points = [(person, number, -number / 2) for person, number in numbers]
    write(folder / "grid.csv", ["person", "lon", "lat"], points)
    fit = ("--stream", "person", "--value", "place", "--quiet")
    done("fit", folder / "places.csv", *fit, "-o", folder / "places.model")
    done("fit", folder / "levels.csv", *fit, "-o", folder / "levels.model")
    done("fit", folder / "bins.csv", *fit, "--bins", 4, "-o", folder / "bins.model")
    grid = ("--stream", "person", "--grid", "3x2", "--x", "lon", "--y", "lat", "--quiet")
    done("fit", folder / "grid.csv", *grid, "-o", folder / "grid.model")
    return folder


@pytest.fixture(scope="session")
def model(models: Path) -> Path:
    """A model of four places."""
    return models / "places.model"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A secret, so that two runs toss the same coins."""
    path = tmp_path / "secret.key"
    path.write_bytes(b"thirty-two bytes for test coins!")
    path.chmod(0o600)
    return path


@pytest.fixture
def town(tmp_path: Path) -> Path:
    """A folder with a model and a release."""
    (tmp_path / "history.csv").write_bytes(csv_bytes(["person", "place"], walk(1, rows=200)))
    (tmp_path / "live.csv").write_bytes(csv_bytes(["person", "place"], walk(7, rows=40)))
    model, released = tmp_path / "city.model", tmp_path / "private.csv"
    done("fit", tmp_path / "history.csv", "--stream", "person", "--value", "place", "-o", model)
    budget = ("--epsilon", "1", *STEP, "--seed", "3")
    done("release", tmp_path / "live.csv", "-m", model, *budget, "-o", released)
    return tmp_path
