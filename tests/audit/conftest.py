import shutil
from pathlib import Path

import pytest

from tests.audit.scene import Scene, live_table
from tests.shell.running import done
from tests.shell.tables import table, walk, write

ROWS, MANY = 60, 300
"""Rows of a scene; true values need more of them to tell."""
RULE = ("--epsilon", 0.8, "--method", "randomized-response")
PLACES_AT = {"bakery": 1.0, "clinic": 2.0, "market": 3.0, "school": 4.0}


def _places(folder: Path) -> Path:
    folder.mkdir()
    history = table(folder / "history.csv", walk(1, rows=400))
    fit = ("--stream", "person", "--value", "place", "--quiet")
    done("fit", history, *fit, "-o", folder / "city.model")
    live_table(folder, walk(3, rows=MANY if folder.name == "long" else ROWS))
    return folder


NAMES = (
    ("csv", "csv"),
    ("long", "csv"),
    ("jsonl", "jsonl"),
    ("packed", "csv.gz"),
    ("parquet", "parquet"),
    ("batch", "csv"),
    ("ledger", "csv"),
)


@pytest.fixture(scope="session")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Scene]:
    """An honest release of each kind."""
    return _scenes(tmp_path_factory.mktemp("scenes"))


@pytest.fixture(scope="session")
def compiled_scenes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Scene]:
    """The same under a compiled policy; values leave one by one."""
    return _scenes(tmp_path_factory.mktemp("compiled"), compiled=True)


def _scenes(top: Path, *, compiled: bool = False) -> dict[str, Scene]:
    found = {
        name: Scene(_places(top / name), f"private.{suffix}", compiled)
        for name, suffix in NAMES
        if not (compiled and name == "batch")
    }
    (top / "grid").mkdir()
    found["grid"] = Scene(top / "grid", compiled=compiled)
    points = [(who, PLACES_AT[where], -PLACES_AT[where]) for who, where in walk(1, rows=200)]
    history = write(top / "grid" / "history.csv", ["person", "lon", "lat"], points)
    grid = ("--stream", "person", "--grid", "3x2", "--x", "lon", "--y", "lat", "--quiet")
    done("fit", history, *grid, "-o", found["grid"].model)
    write(found["grid"].live, ["person", "lon", "lat"], points[:40])
    for name, scene in found.items():
        more = {"batch": ("--batch", 2), "ledger": ("--ledger", scene.ledger)}
        policy = ("--policy", _policy(scene, top, name)) if compiled else ()
        scene.release(*RULE, *policy, *more.get(name, ()))
    return found


def _policy(scene: Scene, top: Path, name: str) -> Path:
    """A policy for a scene; all but the grid have one model."""
    path, first = scene.folder / "city.policy", top / "csv" / "city.policy"
    if name in ("csv", "grid"):
        done("compile", "-m", scene.model, *RULE, "--quiet", "-o", path)
    else:
        shutil.copyfile(first, path)
    return path
