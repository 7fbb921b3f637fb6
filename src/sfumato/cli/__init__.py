"""The `sfumato` command: thin over the jobs; heavy imports wait until a command runs."""

from __future__ import annotations


def main() -> None:
    """Run the command line and exit with its code."""
    import os
    import sys
    import warnings

    # Arrow's own allocator keeps what it was given back: 50 MB more in a long release, and no gain.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # remarks of libraries are for those who write code
    try:
        from sfumato.cli.app import run

        code = run()
    except KeyboardInterrupt:
        code = 130  # nothing had begun: the parts of the program were still being loaded
    raise SystemExit(code)
