"""Notebooks and scripts run as they are; notebooks are kept without outputs."""

import ast
import json
import os
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest

from tests.shell.running import done
from tests.shell.test_readme_service import running_service

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_clean(path: Path) -> None:
    document = json.loads(path.read_text("utf-8"))
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert code and document["cells"][0]["cell_type"] == "markdown"
    for cell in code:
        assert (cell["outputs"], cell["execution_count"]) == ([], None)
        ast.parse("".join(cell["source"]))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_a_script_can_be_read(path: Path) -> None:
    """Some ask for brokers and clusters, which are not here: what is in them is run by its room."""
    compile(path.read_text("utf-8"), path.name, "exec")


@pytest.mark.parametrize(
    ("name", "told"), [("stream", "values are wrong; spent: "), ("series", "for each person")]
)
def test_a_script_of_the_library_runs_as_it_is(name: str, told: str, tmp_path: Path) -> None:
    said = _run(EXAMPLES / f"{name}.py", tmp_path)
    assert told in said and len(said.splitlines()) >= 5


def _run(path: Path, folder: Path, *words: str, **environment: str) -> str:
    source = str(EXAMPLES.parent / "src")
    done = subprocess.run(
        [sys.executable, str(path), *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": source, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout


def test_the_script_of_a_client_runs_against_a_service(tmp_path: Path) -> None:
    with chdir(tmp_path):
        done("sample", "activities")
        done("fit", "history.csv", "--stream", "person", "--value", "activity", "-o", "watch.model")
    line = "sfumato serve --home watch-home --model watch.model --epsilon 0.5 --method step-wise"
    with running_service(tmp_path, line) as (address, key):
        said = _run(EXAMPLES / "service_client.py", tmp_path, address, SFUMATO_ACCESS_KEY=key)
    assert said.count("asked again") == 3


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of the kernel's own libraries
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    source = str(EXAMPLES.parent / "src")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((source, os.environ.get("PYTHONPATH", ""))))
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    printed = [
        output.text
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "stream" and output.name == "stdout"
    ]
    assert len("".join(printed)) > 100
