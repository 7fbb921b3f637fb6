"""Hashes of the pinned dependencies, from what `pip install --dry-run --report` says.

`make hashes`. What comes out is for `pip install --require-hashes -r FILE`, and has no address in
it. It is for one version of python on one kind of machine: other wheels have other hashes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any


def requirements(report: dict[str, Any]) -> Iterator[str]:
    """A line for each distribution of an installation that pip reports, by name.

    Args:
        report: What `pip install --dry-run --report` wrote.

    Raises:
        ValueError: If a distribution has no hash: whoever asks for hashes wants all of them.
    """
    found = report["environment"]
    names = ("implementation_name", "python_full_version", "sys_platform", "platform_machine")
    yield f"# For {' '.join(found[name] for name in names)}."
    for entry in sorted(report["install"], key=lambda entry: entry["metadata"]["name"].lower()):
        name, version = entry["metadata"]["name"], entry["metadata"]["version"]
        source = entry["download_info"]
        if "dir_info" in source:
            continue  # the package itself, from its sources
        hashes = source.get("archive_info", {}).get("hashes", {})
        if "sha256" not in hashes:
            raise ValueError(f"{name} {version} must have a sha256; pip reports none")
        yield f"{name}=={version} --hash=sha256:{hashes['sha256']}"


if __name__ == "__main__":
    print(*requirements(json.load(sys.stdin)), sep="\n")
