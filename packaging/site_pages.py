"""Pages of the documentation that stand elsewhere, or follow from the program.

README, SECURITY, CONTRIBUTING and CHANGELOG stay at the root, where people look for them; the
reference is made from docstrings and from what commands say of themselves.
"""

from __future__ import annotations

import re
import sys
from html import unescape
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))  # MkDocs loads this file by its path
from reference_pages import reference_pages

ROOT = Path(__file__).parents[1]
AT_ROOT = {"index.md": "README.md"} | {
    name: name for name in ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")
}
SOURCES = re.compile(
    r"\[([^\]]*)\]\((?:\.\./)*"
    r"(?:(?:src|tests|benchmarks|deploy|examples|packaging)(?:/[^)]*)?|LICENSE)\)"
)
SHIM = re.compile(r'src="?https://[^" >]*iframe-worker[^" >]*"?')
FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\(?P<open>[(\[])(?P<tex>.*?)\\[)\]]</(?P=tag)>', re.S
)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are in no file of the folder."""
    for name, source in AT_ROOT.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=text.replace("](docs/", "](")))
    for page, text in reference_pages().items():
        files.append(File.generated(config, f"reference/{page}.md", content=text))
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
