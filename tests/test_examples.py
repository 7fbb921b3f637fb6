"""Notebooks run as they are, from top to bottom; they are kept without outputs."""

import ast
import json
import os
from pathlib import Path

import pytest

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
    """It asks for brokers and clusters, which are not here: what is in it is run by its room."""
    compile(path.read_text("utf-8"), path.name, "exec")


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
