"""A minimal installation says which extra is missing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.store.folder_home import FolderHome
from tests.shell.running import done
from tests.shell.tables import table, walk

# In an interpreter of its own: modules that a test loaded before would be there.
PROGRAM = """
import contextlib, io, json, sys
missing, commands = json.loads(sys.argv[1])
sys.modules.update(dict.fromkeys(missing))
from sfumato.cli.app import called
told = {}
for name, words in commands.items():
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = called(words)
    told[name] = [code, said.getvalue()]
print(json.dumps(told))
"""
MISSING = (
    *("torch", "httpx", "websockets", "paho", "prometheus_client", "psycopg", "psycopg_pool"),
    *("starlette", "uvicorn", "uvloop", "httptools", "pyspark"),
)
DATABASE = "postgresql://localhost/none"
COMMANDS = {
    "attacks": "attack private.csv -m a.model --known live.csv --network chain",
    "client": "push live.csv --to http://127.0.0.1:1 -o out.csv",
    "client, asked by an administrator": "access list --url http://127.0.0.1:1",
    "mqtt": "bridge mqtt --broker mqtt://localhost --in raw/{stream} --out private/ "
    "--id-from correlation --home home",
    "postgres": f"store check {DATABASE}",
    "postgres, brought back": f"store restore backup --to {DATABASE}",
    "postgres, migrated": f"store migrate {DATABASE}",
    "service": "serve --home home",
    "spark": "spark fit live.csv --stream person --value place --order 1 -o b.model",
}


@pytest.fixture(scope="module")
def minimal(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """What commands say where no extra is installed."""
    folder = tmp_path_factory.mktemp("minimal")
    table(folder / "live.csv", walk(1, rows=40))
    model = ("-m", folder / "a.model", "--quiet")
    columns = ("--stream", "person", "--value", "place", "--quiet")
    done("fit", folder / "live.csv", *columns, "-o", folder / "a.model")
    budget = ("--epsilon", 1, "--method", "step-wise")
    done("release", folder / "live.csv", *model, *budget, "-o", folder / "private.csv")
    with FolderHome(folder / "backup"):
        pass
    asked = json.dumps([MISSING, {name: words.split() for name, words in COMMANDS.items()}])
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, asked],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return {name: (code, said) for name, (code, said) in json.loads(ran.stdout).items()}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_missing_extra_is_named(name: str, minimal: dict[str, tuple[int, str]]) -> None:
    code, said = minimal[name]
    extra = name.partition(",")[0]
    assert code == 2 and f'pip install "sfumato[{extra}]"' in said, said
    assert len(said.splitlines()) == 1


def test_every_extra_is_asked_for() -> None:
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    extras = project.partition("[project.optional-dependencies]\n")[2].partition("\n[project.")[0]
    names = {line.partition(" = ")[0] for line in extras.splitlines() if " = [" in line}
    assert names == {name.partition(",")[0] for name in COMMANDS}
