"""Is anything slower than it was? `make bench-compare BASE=REVISION`.

The small measures of every job run on the given revision and on the working tree in turn, several
rounds, each in a process of its own on the same machine; the best of each side are compared.
Prints a table, and fails if a measure is slower than the limit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROUNDS = 3
LIMIT = 1.05
"""By how much a measure may be slower: as much as the best of three rounds differ by themselves."""


def measured(source: Path, names: list[str]) -> dict[str, float]:
    """Seconds of each measure with the package that stands in this folder."""
    surroundings = {**os.environ, "PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
    words = [sys.executable, str(HERE / "measures.py"), *names]
    run = subprocess.run(words, env=surroundings, capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(f"the measures {names} failed with {source}:\n{run.stderr}")
    found: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return found


def compare(base: Path, names: list[str]) -> bool:
    """Print a row per measure; whether all are fast enough."""
    print("| measure | before, ms | after, ms | after / before |\n|---|---|---|---|")
    fast = True
    for name in names:
        sides: dict[Path, float] = {}
        for _ in range(ROUNDS):
            for source in (base, HERE.parent / "src"):
                seconds = measured(source, [name])[name]
                sides[source] = min(seconds, sides.get(source, seconds))
        before, after = sides.values()
        fast = fast and after <= LIMIT * before
        print(
            f"| {name} | {1e3 * before:.1f} | {1e3 * after:.1f} | {after / before:.2f} |",
            flush=True,
        )
    return fast


def main() -> None:
    """Check the revision out beside the tree, compare, and clean up."""
    from measures import MEASURES

    if len(sys.argv) < 2:
        sys.exit("usage: compare_revisions.py REVISION [MEASURE ...]")
    revision, *names = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="sfumato-base-") as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(HERE.parent), "worktree"]
        subprocess.run([*git, "add", "--detach", str(tree), revision], check=True, stdout=2)
        try:
            fast = compare(tree / "src", names or list(MEASURES))
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)
    sys.exit(0 if fast else f"something is slower than {LIMIT} times {revision}")


if __name__ == "__main__":
    main()
