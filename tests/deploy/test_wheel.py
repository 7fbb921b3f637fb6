"""A wheel that brings its loops along: the first commands compile nothing, and write the same."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from sfumato.cli import warm_jobs
from sfumato.core.carried_loops import FOLDER, RECORD
from tests.deploy.conftest import ROOT, run

# What a stranger does first, as the README has it; a key, so that answers can be compared.
FIRST = (
    "fit history.csv --stream user --value place -o city.model",
    "plan --model city.model --budget 10 --horizon 50",
    "release live.csv --model city.model --budget 10 --horizon 50 --ledger city.ledger "
    "--key-file key -o private.csv",
    "audit private.csv --model city.model --ledger city.ledger",
    "recover private.csv --model city.model -o guesses.csv --counts moments.csv",
    "release live.csv --model city.model --epsilon 0.5 --key-file key -o sighted.csv",
)
# The command, what numba compiled meanwhile, and where the program is.
RUN = """
import json, sys
from numba.core import event
import sfumato
from sfumato.cli.app import called
with event.install_recorder("numba:compile") as seen:
    code = called(sys.argv[2:])
names = [each.data["dispatcher"].py_func.__qualname__ for _, each in seen.buffer if each.is_start]
told = {"code": code, "compiled": names, "program": sfumato.__file__}
open(sys.argv[1], "w").write(json.dumps(told))
"""


def first_commands(python: Path | str, folder: Path, **environment: str) -> list[dict[str, Any]]:
    """Run the first commands in an empty folder, with an empty home."""
    home = folder / "home"
    home.mkdir(parents=True)
    before = os.getcwd()
    os.chdir(folder)
    try:
        warm_jobs.make_tables()
    finally:
        os.chdir(before)
    found = []
    for line in FIRST:
        words = (python, "-P", "-c", RUN, "told.json", *line.split())
        run(*words, cwd=folder, HOME=str(home), XDG_CACHE_HOME="", **environment)
        found.append(json.loads((folder / "told.json").read_text()))
    return found


@pytest.mark.slow
def test_the_first_commands_from_a_wheel_compile_nothing_and_write_what_loops_for_here_write(
    installed: Path, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    own = {"PYTHONPATH": str(ROOT / "src")}
    natively = first_commands(sys.executable, here, **own)
    brought = first_commands(installed / "venv" / "bin" / "python", there, PYTHONPATH="")
    assert {each["code"] for each in (*natively, *brought)} == {0}
    assert all(Path(each["program"]).is_relative_to(installed) for each in brought)
    assert [each["compiled"] for each in brought] == [[]] * len(FIRST)
    assert list((there / "home").rglob("*.nb[ic]")) == []
    for name in ("city.model", "private.csv", "sighted.csv"):
        assert (here / name).read_bytes() == (there / name).read_bytes()


@pytest.mark.slow
def test_a_wheel_with_loops_asks_for_what_compiled_them_and_says_that_all_jobs_are_ready(
    installed: Path,
) -> None:
    (site,) = (installed / "venv" / "lib").glob("python*/site-packages")
    record = json.loads((site / "sfumato" / FOLDER / RECORD).read_text())
    asked = next(site.glob("sfumato-*.dist-info")).joinpath("METADATA").read_text().splitlines()
    for name in ("numba", "llvmlite", "numpy"):
        assert f"Requires-Dist: {name}=={record['conditions'][name]}" in asked
    assert list(record["jobs"]) == sorted(warm_jobs.JOBS)
    run(installed / "venv" / "bin" / "sfumato", "warm", "--check", cwd=installed, PYTHONPATH="")
    # Nothing was compiled above; pages do more, and have an environment of their own.
    assert not list(site.rglob("__pycache__/*.nb[ic]"))
