"""What is loaded before anything is asked for: little, so that nobody waits."""

import json
import subprocess
import sys

import pytest

FOREIGN = """
import contextlib, io, json, sys
before = set(sys.modules)
{program}
after = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(json.dumps(sorted(after - sys.stdlib_module_names - {{"sfumato"}})))
"""
OURS = """
import json, sys
import sfumato
print(json.dumps(sorted(name for name in sys.modules if name.startswith("sfumato"))))
"""
HELP = """
from sfumato.cli.app import called
with contextlib.redirect_stdout(io.StringIO()):
    assert called({words}) == 0
"""
PARSER = {
    *("annotated_doc", "annotated_types", "click", "pydantic", "pydantic_core", "shellingham"),
    *("typer", "typing_extensions", "typing_inspection"),
}
"""What reads command lines: typer, and what it stands on."""


def told(program: str) -> list[str]:
    """The list that a program of its own prints."""
    words = [sys.executable, "-c", program]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    found: list[str] = json.loads(ran.stdout)
    return [name for name in found if not name.startswith("_")]


def test_importing_loads_no_library_and_three_modules() -> None:
    assert told(FOREIGN.format(program="import sfumato")) == []
    assert told(OURS) == ["sfumato", "sfumato.core", "sfumato.core.lazy"]
    # The same question finds them once a name is used.
    assert "numpy" in told(FOREIGN.format(program="import sfumato; sfumato.Prior"))


@pytest.mark.parametrize("words", [["--help"], ["release", "--help"], ["--version"]], ids=" ".join)
def test_help_loads_what_reads_command_lines_and_nothing_else(words: list[str]) -> None:
    assert set(told(FOREIGN.format(program=HELP.format(words=words)))) <= PARSER
