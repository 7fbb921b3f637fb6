"""The guide to Spark, walked as it stands: each command in a process of its own."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.shell.forked import MAIN
from tests.shell.running import Result
from tests.shell.walked_pages import ENGINES, beside, walk


def apart(words: Sequence[str], folder: Path) -> Result:
    """A process for each command: the engine of one stays where it was started."""
    if words[0] != "sfumato":
        return beside(words, folder)
    # Warnings are no errors here: some are the engine's own.
    command = [sys.executable, "-c", MAIN, *words[1:]]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return Result(ran.returncode, ran.stdout, ran.stderr)


@pytest.mark.engines
@pytest.mark.parametrize("page", ENGINES, ids=lambda page: page.stem)
def test_a_guide_to_an_engine_goes_as_shown(page: Path, tmp_path: Path) -> None:
    walk(page, tmp_path, apart)
