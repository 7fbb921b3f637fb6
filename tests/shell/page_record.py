"""Write what commands say into pages that show it: `python -m tests.shell.page_record [PAGE...]`.

Without names, the README, all tutorials and guides (one starts Spark); with names, those pages
whose file begins with one of them. What still fits stays, dots included; a line with other numbers
gets the new ones; where a command says something else, all of it is written. Each page is then
walked once more, and one that does not fit twice is told: put dots where coins are fresh. Look at
the difference before it is kept.
"""

import sys
import tempfile
from contextlib import chdir
from pathlib import Path

from tests.shell.walked_pages import ENGINES, GUIDES, README, TUTORIALS, record, walk


def main(wanted: list[str]) -> int:
    """Record the pages whose names begin with one of those wanted; how many do not fit twice."""
    failures = 0
    for page in (README, *TUTORIALS, *GUIDES, *ENGINES):
        if wanted and not page.name.startswith(tuple(wanted)):
            continue
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            changed = record(page, Path(folder))
        print(f"{page.name}: {'changed' if changed else 'as it was'}", flush=True)
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            try:
                walk(page, Path(folder))
            except AssertionError as problem:
                failures += 1
                print(f"{page.name} fits no second time:\n{problem}", file=sys.stderr)
    return failures


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
