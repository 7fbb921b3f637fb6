"""Every name of code in the glossary is there, and every notion that a guarantee has."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

import sfumato
from sfumato.core import guarantees

PAGE = Path(__file__).parents[1] / "docs" / "glossary.md"
NAMES = sorted(set(re.findall(r"`((?:sf|sfumato)\.[\w.]+)`", PAGE.read_text("utf-8"))))


def found(name: str) -> Any:
    """What a dotted name stands for; a field of a record is its name."""
    first, *parts = name.split(".")
    thing: Any = importlib.import_module("sfumato")
    path = "sfumato"
    for part in parts:
        path += f".{part}"
        if part in getattr(thing, "__dataclass_fields__", ()):
            return part
        try:
            thing = getattr(thing, part)
        except AttributeError:
            assert first == "sfumato", f"{name} is no public name"
            thing = importlib.import_module(path)
    return thing


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_the_glossary_is_there(name: str) -> None:
    found(name)


def test_every_public_guarantee_has_its_sentence() -> None:
    public = [name for name in dir(sfumato) if hasattr(guarantees, name)]
    assert len(public) == 6
    assert [name for name in public if f"sf.{name}" not in NAMES] == []


def test_a_name_that_is_not_there_is_found_out() -> None:
    with pytest.raises((AssertionError, ModuleNotFoundError)):
        found("sf.stream.no_such_thing")
    with pytest.raises((AssertionError, ModuleNotFoundError)):
        found("sfumato.stream.no_such_thing")
