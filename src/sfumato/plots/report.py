"""A one-page report: self-contained, no network, pictures inside."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from pathlib import Path

from sfumato.store.files import write_whole

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sfumato: a certified release</title>
<style>
  body {{ font: 16px/1.5 system-ui, sans-serif; color: #2b2b2b; background: #fbfaf8;
         max-width: 62rem; margin: 2rem auto; padding: 0 1.2rem; }}
  h1 {{ font-weight: 600; margin-bottom: .2rem; }}
  .lead {{ color: #666; margin-top: 0; }}
  ol {{ padding-left: 1.2rem; }}
  .figures {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(26rem, 1fr));
             gap: 1.2rem; }}
  figure {{ margin: 0; background: #fff; border: 1px solid #e5e2dc; border-radius: 8px;
           padding: .8rem; }}
  figure:first-child {{ grid-column: 1 / -1; }}
  img {{ width: 100%; height: auto; }}
  figcaption {{ color: #555; font-size: .9rem; }}
</style>
<h1>A certified release</h1>
<p class="lead">Blurred, yet the picture stays. Everything here was computed from made-up data.</p>
<ol>
{story}
</ol>
<div class="figures">
{figures}
</div>
</html>
"""


def write_report(path: Path, story: Sequence[str], pictures: Sequence[tuple[Path, str]]) -> Path:
    """Write the page and return where it is."""
    lines = "\n".join(f"  <li>{html.escape(line)}</li>" for line in story)
    drawn = "\n".join(_figure(file, caption) for file, caption in pictures)
    write_whole(path, _PAGE.format(story=lines, figures=drawn).encode())
    return path


def _figure(file: Path, caption: str) -> str:
    data = base64.b64encode(file.read_bytes()).decode()
    words = html.escape(caption)
    return (
        f'  <figure><img alt="{words}" src="data:image/png;base64,{data}">'
        f"<figcaption>{words}</figcaption></figure>"
    )
