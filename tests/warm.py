"""Compile the loops before workers start: `python -m tests.warm`, the jobs of `sfumato warm`.

What only a test needs is compiled by the first worker that calls it; the others wait for it.
"""

from __future__ import annotations

from sfumato.cli.warm_command import warmed
from sfumato.cli.warm_jobs import JOBS

if __name__ == "__main__":
    warmed(list(JOBS))
