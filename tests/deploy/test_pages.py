"""README, tutorials and guides, in an empty folder and a new environment made from a wheel."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.deploy.conftest import ROOT, install, run, surroundings
from tests.shell.running import Result
from tests.shell.walked_pages import GUIDES, README, TUTORIALS, beside, walk


@pytest.mark.slow
@pytest.mark.parametrize("page", (README, *TUTORIALS), ids=lambda page: page.stem)
def test_a_page_goes_as_shown_for_a_stranger(page: Path, installed: Path, tmp_path: Path) -> None:
    _walk_there(page, installed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_a_guide_goes_as_shown_with_the_extras(
    page: Path, with_extras: Path, tmp_path: Path
) -> None:
    _walk_there(page, with_extras, tmp_path)


def _walk_there(page: Path, installed: Path, tmp_path: Path) -> None:
    program, home = installed / "venv" / "bin" / "sfumato", tmp_path / "home"
    empty = tmp_path / "empty"
    home.mkdir()
    empty.mkdir()
    found = f"{program.parent}:{os.environ['PATH']}"
    around = surroundings(HOME=str(home), XDG_CACHE_HOME="", PYTHONPATH="", PATH=found)

    def there(words: Sequence[str], folder: Path) -> Result:
        if words[0] != "sfumato":
            return beside(words, folder)
        ran = subprocess.run(
            [program, *words[1:]],
            cwd=folder,
            env=around,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return Result(ran.returncode, ran.stdout, ran.stderr)

    walk(page, empty, there, around)


@pytest.mark.slow
def test_an_sdist_installs_and_runs_in_a_new_environment(tmp_path: Path) -> None:
    build = ("-m", "hatchling", "build", "--target", "sdist", "--directory", tmp_path)
    run(sys.executable, *build, cwd=ROOT)
    (archive,) = tmp_path.glob("sfumato-*.tar.gz")
    site = install(archive, tmp_path)
    assert (site / "sfumato" / "py.typed").exists()
    program = tmp_path / "venv" / "bin" / "sfumato"
    run(program, "sample", "people", cwd=tmp_path, PYTHONPATH="")
    asked = ("privatize", "people.csv", "-c", "commute", "--epsilon", 1, "-o", "private.csv")
    run(program, *asked, cwd=tmp_path, PYTHONPATH="")
    run(program, "verify", "private.csv.certificate.json", cwd=tmp_path, PYTHONPATH="")
    run(program, "doctor", "--quiet", cwd=tmp_path, PYTHONPATH="")


@pytest.mark.slow
def test_a_bare_installation_has_what_it_declares_and_nothing_of_ours(installed: Path) -> None:
    python = installed / "venv" / "bin" / "python"
    asked = (
        "import importlib.util as u; print([n for n in ('hypothesis', 'torch') if u.find_spec(n)])"
    )
    told = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
    run(installed / "venv" / "bin" / "sfumato", "doctor", "--quiet", cwd=installed, PYTHONPATH="")
