"""A build hook: compile the loops and put them into the wheel (`make wheel`).

Hatchling calls it only where `HATCH_BUILD_HOOK_ENABLE_CUSTOM` is set; every other build makes the
plain wheel. It needs the program's own dependencies, so hatchling is called where they are
installed, and not by pip, which builds a wheel twice. What it makes is a wheel for this version of
python on this platform, and asks for the very versions of numba, llvmlite and numpy that compiled
its loops: with others they would not be used.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MADE_WITH = ("numba", "llvmlite", "numpy")


class CarriedLoops(BuildHookInterface):  # type: ignore[type-arg]
    """Adds a folder of compiled loops to the wheel and tells for what it was made."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before files are gathered; an editable install has loops of its own."""
        if version == "editable":
            return
        sys.path.insert(0, os.path.join(self.root, "src"))
        from sfumato.core.carried_loops import FOLDER

        folder = Path(self.root, "build", FOLDER)
        made_for = compiled(folder)
        build_data["force_include"][str(folder)] = f"sfumato/{FOLDER}"
        build_data["dependencies"] += [f"{name}=={made_for[name]}" for name in MADE_WITH]
        build_data["pure_python"] = False
        build_data["infer_tag"] = True  # cp311-cp311-linux_x86_64: this machine's kind, no more


def compiled(folder: Path) -> dict[str, str]:
    """Fill a folder with the loops of all jobs; what they were made for."""
    from sfumato.core import carried_loops

    baseline = carried_loops.BASELINES.get(platform.machine())
    if baseline is None or not carried_loops.has(baseline):
        raise SystemExit(f"loops are carried for {', '.join(carried_loops.BASELINES)} alone")
    made_for = carried_loops.conditions(baseline)
    written = folder / carried_loops.RECORD
    # Loops of an earlier build are as good as new ones, if the same tools made them: what has
    # other sources since then has another name.
    if not written.exists() or json.loads(written.read_text())["conditions"] != made_for:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o755, exist_ok=True)
    jobs = run_jobs(folder, baseline.settings)
    remove_unused(folder, {name for names in jobs.values() for name in names})
    record = {"conditions": made_for, "sources": carried_loops.source_digest(), "jobs": jobs}
    written.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    return made_for


def run_jobs(folder: Path, settings: dict[str, str]) -> dict[str, list[str]]:
    """Let jobs compile into a folder; the lists of compiled forms that each of them uses."""
    from sfumato.cli.warm_command import warmed
    from sfumato.cli.warm_jobs import JOBS
    from sfumato.core.loop_folders import CHOSEN

    # The jobs are processes of their own: they import this tree, whatever else is installed.
    os.environ |= settings | {CHOSEN: str(folder), "PYTHONPATH": sys.path[0]}
    return {each["job"]: [Path(file).name for file in each["files"]] for each in warmed([*JOBS])}


def remove_unused(folder: Path, lists: set[str]) -> None:
    """Leave the lists that are used, and the forms that they name: x.nbi, and x.1.nbc and on."""
    for file in folder.iterdir():
        form = file.suffix == ".nbc" and f"{file.stem.rpartition('.')[0]}.nbi" in lists
        if not form and file.name not in lists:
            file.unlink()
