import ast
import inspect
import subprocess
import sys
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import sfumato

SOURCE = Path(__file__).parents[1] / "src" / "sfumato" / "__init__.py"


def imports_for_type_checkers() -> dict[str, str]:
    """Name -> module, as the block under TYPE_CHECKING says."""
    found: dict[str, str] = {}
    for node in ast.parse(SOURCE.read_text()).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for statement in node.body:
                assert isinstance(statement, ast.ImportFrom)
                for alias in statement.names:
                    assert alias.asname is None
                    found[alias.name] = str(statement.module)
    return found


def homes() -> dict[str, str]:
    """Name -> module, as the table of the lazy loader says; a module is its own home."""
    table = {name: f"sfumato.{home}" for home, names in sfumato._HOMES.items() for name in names}
    assert len(table) == sum(map(len, sfumato._HOMES.values()))
    return table


def in_a_fresh_interpreter(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_every_public_name_is_exported_once_and_sorted() -> None:
    def as_ruff_sorts(name: str) -> tuple[int, str]:
        return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)

    assert list(sfumato.__all__) == sorted(set(sfumato.__all__), key=as_ruff_sorts)


def test_type_checkers_and_the_loader_see_the_same_names() -> None:
    typed = imports_for_type_checkers()
    assert set(typed) == set(sfumato.__all__)
    modules = {"loss", "batch_loss"}
    assert modules == set(typed) - set(homes())
    assert {name: home for name, home in typed.items() if name not in modules} == homes()


@pytest.mark.parametrize("name", sfumato.__all__)
def test_every_public_name_can_be_used_and_is_explained(name: str) -> None:
    thing = getattr(sfumato, name)
    home = homes().get(name)
    if home is None:
        assert isinstance(thing, ModuleType)
    else:
        assert thing is getattr(import_module(home), name)
        assert thing.__module__ == home
    explanation = thing.__doc__ or ""
    assert len(explanation.strip()) > 20
    if inspect.isclass(thing) and not issubclass(thing, Enum):
        # A dataclass without a docstring gets its signature as one.
        assert not explanation.startswith(f"{name}(")


@pytest.mark.parametrize("name", sfumato.__all__)
def test_every_public_method_is_explained(name: str) -> None:
    thing = getattr(sfumato, name)
    if not inspect.isclass(thing):
        assert callable(thing) or isinstance(thing, ModuleType)
        return
    for member, made in vars(thing).items():
        explained = isinstance(made, property | classmethod | staticmethod)
        if not member.startswith("_") and (explained or inspect.isfunction(made)):
            assert inspect.getdoc(getattr(thing, member)), f"{name}.{member}"


def test_names_are_listed_for_completion() -> None:
    assert dir(sfumato) == sorted(sfumato.__all__)


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(AttributeError, match="module 'sfumato' has no attribute 'Sfumato'"):
        sfumato.Sfumato  # noqa: B018


def test_importing_costs_nothing() -> None:
    heavy = "sorted({'numpy', 'scipy', 'msgspec', 'cryptography'} & set(sys.modules))"
    assert in_a_fresh_interpreter(f"import sys, sfumato; print({heavy})") == "[]"
    # The same question finds them once a name is used.
    used = in_a_fresh_interpreter(f"import sys, sfumato; sfumato.Prior; print({heavy})")
    assert "numpy" in used


def test_a_star_import_brings_the_public_names_and_no_more() -> None:
    program = (
        "before = set(dir()); from sfumato import *; "
        "print(*sorted(set(dir()) - before - {'before'}))"
    )
    assert in_a_fresh_interpreter(program).split() == sorted(sfumato.__all__)
