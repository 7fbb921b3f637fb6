"""The README says what the program says: its commands are run in order, in an empty folder."""

import doctest
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.shell.running import done

README = Path(__file__).parents[2] / "README.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def transcript() -> Iterator[tuple[str, str]]:
    """Commands that are shown, and what is shown of their output."""
    (block,) = re.findall(r"^```console\n(.*?)^```$", README.read_text("utf-8"), re.M | re.S)
    for part in block.split("$ ")[1:]:
        command, _, told = part.partition("\n")
        yield command, told


def test_it_is_short() -> None:
    assert len(README.read_text("utf-8").splitlines()) < 120


def test_its_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", README.read_text("utf-8")):
        assert (README.parent / link).exists(), link


@pytest.mark.slow
def test_first_steps_go_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check = doctest.OutputChecker().check_output
    steps = list(transcript())
    assert len(steps) == 6
    for command, told in steps:
        program, *words = shlex.split(command)
        assert program == "sfumato"
        result = done(*words)
        # What is said to people on the side is shown where nothing else is said.
        text = result.out or result.err
        assert check(told, text, FLAGS), f"{command}\n{text}"


def test_its_twenty_lines_of_python_run() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.M | re.S)
    assert len(code.splitlines()) <= 20
    days = [["home", "work"] * 20, ["home"] * 20 + ["work"] * 20]
    given = {"history": days, "stream": days[0][:5], "names": ["ann", "bob"], "values": days[0][:2]}
    names: dict[str, Any] = dict(given)
    exec(compile(code, "README", "exec"), names)
    assert names["private"] in ("home", "work")
    assert names["release"].ledger.spent[0].epsilon <= 1.001
    assert len(names["step"].labels()) == 2
