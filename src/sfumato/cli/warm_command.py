"""`sfumato warm`: compile now what would be compiled at first use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import typer

from sfumato.cli import options
from sfumato.cli.console import FAILED_AUDIT, print_json, print_line, progress, table
from sfumato.cli.options import argument, flag, option
from sfumato.core.progress import Progress

_HERE = __file__
_RECORD = "warm.json"


class _WarmOptions(options.Options):
    jobs: list[str] | None = argument("Only these jobs.", "JOB", default=None)
    check: bool = flag("--check", "Compile nothing; say what is missing (exit code 1).")
    native: bool = flag("--native", "For this very processor, even if the package brings loops.")
    processes: int | None = option("At the same time; as many as there are processors.")
    shown: options.Shown


def warm(given: _WarmOptions) -> None:
    """Compile the loops that commands need, once, so that the first real job does not wait.

    Small jobs are run on made-up tables, several at a time: fleet, release, plan, batches,
    privatize, publish, realtime and temporal. Loops are kept beside the program or, where nothing
    can be written, in the cache of the user; $SFUMATO_CACHE_DIR names another folder. It must be
    one that nobody else can change, for what is found there is run. Loops are compiled for this
    processor, and anew when the program changes.

    A package that was built with its loops (make wheel) has them for all processors of a kind:
    nothing is compiled then, unless --native asks for it. Answers are the same, to the last bit.

    \b
    Examples:
      sfumato warm
      sfumato warm release privatize
      sfumato warm --check --json
      sfumato warm --native
    """
    from sfumato.cli.warm_jobs import JOBS
    from sfumato.core.errors import InvalidParameter

    wanted = list(dict.fromkeys(given.jobs or JOBS))
    for name in wanted:
        if name not in JOBS:
            raise InvalidParameter("JOB", name, f"be one of {', '.join(JOBS)}")
    if given.processes is not None and given.processes < 1:
        raise InvalidParameter("--processes", given.processes, "be at least 1")
    if given.check:
        _check(wanted, given.native, given.shown)
        return
    settings = _this_processor() if given.native else {}
    with progress("compiling loops, once", len(wanted), given.shown.no_progress) as show:
        found = warmed(wanted, given.processes, show, settings)
    _tell(found, given.shown)


def warmed(
    jobs: list[str],
    processes: int | None = None,
    show: Progress = lambda done: None,
    settings: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Run jobs, several at a time, under some settings of numba; what each found and did."""
    found: dict[str, dict[str, Any]] = {}
    with ThreadPoolExecutor(processes or len(os.sched_getaffinity(0))) as pool:
        for done in as_completed([pool.submit(_run, name, settings or {}) for name in jobs]):
            one = done.result()
            found[one["job"]] = one
            show(len(found))
    _remember(found)
    return [found[name] for name in jobs]


def _run(name: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """Run a job in a process of its own."""
    words = [sys.executable, "-P", "-m", "sfumato.cli.warm_jobs", name]
    nothing, around = subprocess.DEVNULL, os.environ | settings
    done = subprocess.run(words, stdin=nothing, capture_output=True, check=False, env=around)
    if done.returncode:
        raise RuntimeError(f"job {name}: {done.stderr.decode(errors='replace')}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _remember(found: dict[str, dict[str, Any]]) -> None:
    """Write down beside the loops which files each job uses, for `--check`."""
    from sfumato.core.loop_folders import places
    from sfumato.store.outputs import whole

    folder = places(_HERE).writes
    if folder is not None:
        known = _warmed_before() | {name: one["files"] for name, one in found.items()}
        with whole(Path(folder) / _RECORD) as path:
            path.write_text(json.dumps({"stamp": _stamp(), "jobs": known}))


def _this_processor() -> dict[str, str]:
    """Numba's settings as they are, said aloud: whoever names a processor gets its own loops."""
    from numba.core.registry import cpu_target

    _, name, features = cpu_target.target_context.codegen().magic_tuple()
    return {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features}


def _brought() -> dict[str, list[str]]:
    """What the package brings along, if it is from this version of the program."""
    from sfumato.core.carried_loops import carried, source_digest

    own = carried()
    if own is None or own.sources != source_digest():
        return {}
    return {name: [str(Path(own.folder) / file) for file in own.jobs[name]] for name in own.jobs}


def _warmed_before() -> dict[str, list[str]]:
    """What was warmed for this version of the program, of numba and of the processor."""
    from sfumato.core.loop_folders import places

    for folder in places(_HERE).reads:
        try:
            record = json.loads((Path(folder) / _RECORD).read_text())
        except (OSError, ValueError):
            continue
        if record.get("stamp") == _stamp():
            jobs: dict[str, list[str]] = record["jobs"]
            return jobs
    return {}


def _stamp() -> str:
    """Everything that a compiled loop depends on."""
    import hashlib

    import numba
    from numba.core.registry import cpu_target

    from sfumato.core.carried_loops import source_digest

    machine = cpu_target.target_context.codegen().magic_tuple()
    parts = (numba.__version__, sys.version_info[:2], machine, source_digest())
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def missing_loops(wanted: Iterable[str], native: bool = False) -> dict[str, int | None]:
    """How many compiled loops each job lacks that it once had; None if it never had any."""
    known = _warmed_before() | ({} if native else _brought())
    return {
        name: sum(not Path(file).exists() for file in known[name]) if name in known else None
        for name in wanted
    }


def _check(wanted: list[str], native: bool, shown: options.Shown) -> None:
    missing = missing_loops(wanted, native)
    ready = [name for name in wanted if missing[name] == 0]
    cold = [name for name in wanted if name not in ready]
    if shown.as_json:
        print_json({"ready": ready, "missing": cold})
    elif not shown.quiet:
        for name in wanted:
            lacks = missing[name]
            words = "ready" if name in ready else "not warmed" if lacks is None else f"{lacks} gone"
            print_line(f"{name}: {words}")
    if cold:
        raise typer.Exit(FAILED_AUDIT)


def _tell(found: list[dict[str, Any]], shown: options.Shown) -> None:
    from sfumato.core.loop_folders import places

    folder = places(_HERE).writes
    if shown.as_json:
        told = [{**each, "files": len(each["files"])} for each in found]
        print_json({"jobs": told, "folder": folder})
    elif not shown.quiet:
        rows = [
            [each["job"], f"{each['compiled']}", f"{len(each['files'])}", f"{each['seconds']:.1f}"]
            for each in found
        ]
        table("Loops", ["job", "compiled", "used", "seconds"], rows)
