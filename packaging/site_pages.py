"""Pages of the documentation that stand elsewhere, or follow from the program.

README, SECURITY, CONTRIBUTING and CHANGELOG stay at the root, where people look for them; the
reference is made from docstrings and from what commands say of themselves.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
AT_ROOT = {"index.md": "README.md"} | {
    name: name for name in ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")
}
ROOMS = {
    "stream": ("stream",),
    "column": ("column",),
    "record": ("record",),
    "series": ("series",),
    "temporal": ("temporal",),
    "attacks": ("attacks",),
    "ground": ("solver", "store"),
}
SOURCES = re.compile(
    r"\[([^\]]*)\]\((?:\.\./)*"
    r"(?:(?:src|tests|benchmarks|deploy|examples|packaging)(?:/[^)]*)?|LICENSE)\)"
)
EXAMPLE = re.compile(r"(?:^>>> .*\n(?:^(?!>>>)\S.*\n?|^\.\.\. .*\n?)*)+", re.M)
SHIM = re.compile(r'src="?https://[^" >]*iframe-worker[^" >]*"?')
FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\(?P<open>[(\[])(?P<tex>.*?)\\[)\]]</(?P=tag)>', re.S
)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are in no file of the folder."""
    for name, source in AT_ROOT.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=text.replace("](docs/", "](")))
    for page, rooms in ROOMS.items():
        packages = [f"sfumato.{room}" for room in rooms]
        files.append(File.generated(config, f"reference/{page}.md", content=_names(packages)))
    files.append(File.generated(config, "reference/sfumato.md", content=_names(["sfumato"])))
    files.append(File.generated(config, "reference/commands.md", content=_commands()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links to files of the root at their pages; sources are named, not linked."""
    for name in ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "README.md"):
        target = "index.md" if name == "README.md" else name
        depth = "../" * page.file.src_uri.count("/")
        markdown = re.sub(rf"\]\((?:\.\./)*{name}", f"]({depth}{target}", markdown)
    return SOURCES.sub(r"\1", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Formulas as MathML, which browsers draw themselves: no script, no network."""
    return FORMULA.sub(_formula, html)


def on_post_build(config: Any, **_: Any) -> None:
    """Search without a network: the theme would fetch what stands for a worker."""
    site = Path(config.site_dir)
    for path in site.rglob("*.html"):
        own = "../" * (len(path.relative_to(site).parts) - 1) + "offline_worker.js"
        found = path.read_text(encoding="utf-8")
        path.write_text(SHIM.sub(f'src="{own}"', found), encoding="utf-8")


def _formula(found: re.Match[str]) -> str:
    display = "block" if found["open"] == "[" else "inline"
    drawn = convert(unescape(found["tex"]), display=display)
    return f'<div class="formula">{drawn}</div>' if display == "block" else drawn


def _names(packages: list[str]) -> str:
    """A page of public names: where each is defined, its docstring follows."""
    parts = []
    for package in packages:
        module = importlib.import_module(package)
        about = EXAMPLE.sub("```pycon\n\\g<0>\n```\n", inspect.getdoc(module) or "")
        parts.append(f"# `{package.replace('sfumato', 'sf', 1)}`\n\n{about}\n")
        for name in module.__all__:
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
