"""Write the golden outputs anew: `python -m tests.shell.golden_record [NAME...]`.

Without names all cases are run, slow ones too; with names those that begin with one of them. Each
case is run twice, and one that tells two different things is refused. Look at the difference
(`git diff tests/shell/golden`) before it is kept: it is what users will see change.
"""

import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from tests.shell import golden_cases, golden_python
from tests.shell.golden_text import differences

FOLDER = Path(__file__).parent / "golden"


def all_cases(staged: Path, scratch: Path) -> Mapping[str, Callable[[], str]]:
    """Name of a case -> what tells its transcript, in a new folder each time."""

    def commands(case: golden_cases.Case) -> str:
        return golden_cases.transcript(case, staged, Path(tempfile.mkdtemp(dir=scratch)))

    told = {case.name: partial(commands, case) for case in golden_cases.CASES}
    return told | {name: partial(golden_python.transcript, name) for name in golden_python.CASES}


def main(wanted: list[str]) -> int:
    """Record the cases whose names begin with one of those wanted; the number of failures."""
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        staged, scratch = Path(folder) / "staged", Path(folder) / "scratch"
        staged.mkdir()
        scratch.mkdir()
        golden_cases.stage(staged)
        cases = all_cases(staged, scratch)
        for name, tell in cases.items():
            if wanted and not name.startswith(tuple(wanted)):
                continue
            first, second = tell(), tell()
            if found := differences(first, second):
                failures += 1
                print(f"{name} tells two things:", *found, sep="\n", file=sys.stderr)
                continue
            (FOLDER / f"{name}.txt").write_text(first, encoding="utf-8")
        if not wanted:
            for path in FOLDER.glob("*.txt"):
                if path.stem not in cases:
                    path.unlink()
    return failures


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
