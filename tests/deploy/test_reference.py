"""The reference of the site has every public name and every command."""

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from tests.shell.golden_cases import COMMANDS
from tests.test_public_names import PACKAGES

ROOT = Path(__file__).parents[2]
ELSEWHERE = ("sfumato.core.loss", "sfumato.stream.partition.batch_loss")
"""Modules that are public names themselves: `sf.loss`, `sf.stream.batch_loss`."""


def _loaded() -> ModuleType:
    path = ROOT / "packaging" / "reference_pages.py"
    spec = importlib.util.spec_from_file_location("reference_pages", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    found: dict[str, str] = _loaded().reference_pages()
    return found


def test_every_public_name_stands_on_a_page(pages: dict[str, str]) -> None:
    whole = "\n".join(pages.values())
    lacking = []
    for package in (*PACKAGES, *ELSEWHERE):
        module = importlib.import_module(package)
        for name in _loaded().public_names(module):
            thing = getattr(module, name)
            if isinstance(thing, ModuleType) or not hasattr(thing, "__qualname__"):
                continue
            if f"::: {thing.__module__}.{thing.__qualname__}\n" not in whole:
                lacking.append(f"{package}.{name}")
    assert lacking == []


def test_modules_that_are_public_names_have_a_title(pages: dict[str, str]) -> None:
    titles = ("sf.client", "sf.spark", "sf.loss", "sf.stream.batch_loss", "sf.attacks")
    whole = "\n".join(pages.values())
    assert [title for title in titles if f"# `{title}`\n" not in whole] == []
    assert "::: sfumato.core.loss.hamming\n" in pages["loss"]


def test_every_command_says_of_itself_what_it_does(pages: dict[str, str]) -> None:
    lines = pages["commands"].splitlines()
    assert [name for name in COMMANDS if f"## {name}" not in lines] == []
    assert len(COMMANDS) > 60


def test_every_page_of_the_reference_is_in_the_menu(pages: dict[str, str]) -> None:
    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """Passes over what only MkDocs understands."""

    Loader.add_multi_constructor("!", lambda *_: None)
    Loader.add_multi_constructor("tag:", lambda *_: None)
    menu = str(yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), Loader)["nav"])
    assert [page for page in pages if f"reference/{page}.md" not in menu] == []
