"""The reference of the site: public names by their docstrings, commands by what they say.

It needs nothing but the package, so that tests see whether a name or a command was forgotten.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
ROOMS = {
    "sfumato": ("sfumato",),
    "stream": ("sfumato.stream",),
    "column": ("sfumato.column",),
    "record": ("sfumato.record",),
    "series": ("sfumato.series",),
    "temporal": ("sfumato.temporal",),
    "attacks": ("sfumato.attacks",),
    "client": ("sfumato.client",),
    "spark": ("sfumato.engines.spark",),
    "loss": ("sfumato.core.loss", "sfumato.stream.partition.batch_loss"),
    "ground": ("sfumato.solver", "sfumato.store"),
}
"""Pages, and the modules whose names stand on each."""
_SHOWN = {
    "sfumato.engines.spark": "sf.spark",
    "sfumato.core.loss": "sf.loss",
    "sfumato.stream.partition.batch_loss": "sf.stream.batch_loss",
}
"""How users write a module that lies elsewhere."""
EXAMPLE = re.compile(r"(?:^>>> .*\n(?:^(?!>>>)\S.*\n?|^\.\.\. .*\n?)*)+", re.M)


def reference_pages() -> dict[str, str]:
    """All pages of the reference, by their names."""
    pages = {page: _names(modules) for page, modules in ROOMS.items()}
    return pages | {"commands": _commands()}


def public_names(module: ModuleType) -> list[str]:
    """What a module offers: what it lists, or else what it defines itself."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    return [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and getattr(thing, "__module__", None) == module.__name__
    ]


def _names(packages: tuple[str, ...]) -> str:
    """A page of public names: where each is defined, its docstring follows."""
    parts = []
    for package in packages:
        module = importlib.import_module(package)
        about = EXAMPLE.sub("```pycon\n\\g<0>\n```\n", inspect.getdoc(module) or "")
        title = _SHOWN.get(package, package.replace("sfumato", "sf", 1))
        parts.append(f"# `{title}`\n\n{about}\n")
        for name in public_names(module):
            thing = getattr(module, name)
            where = getattr(thing, "__module__", None)
            if isinstance(where, str) and hasattr(thing, "__qualname__"):
                parts.append(f"::: {where}.{thing.__qualname__}\n")
    return "\n".join(parts)


def _commands() -> str:
    """What every command says of itself, as its transcript has it, and where it is used."""
    folder = ROOT / "tests" / "shell" / "golden"
    parts = [
        "# Commands\n",
        "What each command says of itself with `--help`, and pages that run it.\n",
    ]
    for path in sorted(folder.glob("help*.txt")):
        title = path.stem.removeprefix("help").strip("-").replace("-", " ") or "sfumato"
        title = title.replace("verify report", "verify-report")
        parts.append(f"## {title}\n\n```text\n{path.read_text(encoding='utf-8').strip()}\n```\n")
        if found := ", ".join(_pages_with(title)):
            parts.append(f"Run on: {found}.\n")
    return "\n".join(parts)


def _pages_with(command: str) -> Iterator[str]:
    """Links to pages on which a command is run, with what it says."""
    for page in sorted((ROOT / "docs").glob("*/*.md")):
        text = page.read_text(encoding="utf-8")
        if re.search(rf"^\$ (?:.*\| )?sfumato {command}(?![a-z-])", text, re.M):
            title = text.partition("\n")[0].removeprefix("# ")
            yield f"[{title}](../{page.relative_to(ROOT / 'docs')})"
