"""The files of one study, written together or not at all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sfumato.core.printed import finite
from sfumato.store.files import together
from sfumato.studies.book.blocks import Link
from sfumato.studies.book.html_page import html_page
from sfumato.studies.book.markdown_page import markdown_page
from sfumato.studies.book.result import Result
from sfumato.studies.book.study_page import study_blocks

PICTURE_ENDINGS = (".png", ".svg")
_TEXTS = ("results.csv", "results.json", "index.md", "index.html")


def results_csv(records: list[dict[str, Any]]) -> bytes:
    r"""One row a record; the heads are those of all records, in the order in which they occur.

    Examples:
        >>> results_csv([{"x": 1}, {"x": 2, "y": 0.5}])
        b'x,y\n1,\n2,0.5\n'
    """
    heads = list(dict.fromkeys(name for record in records for name in record))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, heads, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue().encode()


def write_results(result: Result, home: Path, ways: Sequence[Link] = ()) -> list[Path]:
    """Numbers, pictures and pages of a study in its folder.

    Args:
        result: The study.
        home: Folder of all studies; the study has one in it, by its name.
        ways: From its page to others.
    """
    folder = home / result.study.name
    found = result.findings
    drawn = {
        folder / f"{name}{ending}": draw
        for name, draw in found.pictures.items()
        for ending in PICTURE_ENDINGS
    }
    files = [folder / name for name in _TEXTS] + list(drawn)
    document = json.dumps(finite(result.document), indent=2, ensure_ascii=False)
    with new_folder(folder), together(files) as [table, numbers, text, page, *pictures]:
        table.write_bytes(results_csv(result.records))
        numbers.write_bytes(f"{document}\n".encode())
        for aside, draw in zip(pictures, drawn.values(), strict=True):
            draw(aside)
        pixels = dict(zip(found.pictures, pictures[:: len(PICTURE_ENDINGS)], strict=True))
        blocks = study_blocks(result, pixels)
        text.write_bytes(markdown_page(blocks))
        page.write_bytes(html_page(result.study.name, blocks, ways))
    return files


@contextmanager
def new_folder(folder: Path) -> Iterator[None]:
    """A folder that goes again if the block fails and left nothing in it."""
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for each in made:
            with suppress(OSError):  # somebody else put something there
                each.rmdir()
        raise
