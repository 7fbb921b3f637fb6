"""How long first use takes: `python benchmarks/first_use.py [COMMAND...]`.

Each command runs on a small table with an empty folder of compiled loops, then again with what the
first run left there: the second is the limit, the same command with nothing to compile. Seconds
are wall-clock, of two processes where the command starts a helper; compiling is told in seconds
of the processor, of this process alone, so that it can be compared on a busy machine.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMANDS = {
    "fit": "fit history.csv --stream user --value place -o town.model",
    "release": "release live.csv --model town.model --epsilon 0.5 --key-file key -o private.csv",
    "audit": "audit private.csv --model town.model",
    "compile": "compile --model town.model --epsilon 0.5 --method step-wise -o town.policy",
    "release with a policy": "release live.csv --model town.model --epsilon 0.5 --key-file key "
    "--policy town.policy -o quick.csv",
    "plan": "plan --model town.model --budget 10 --horizon 50",
    "privatize": "privatize live.csv -c place --epsilon 1 --order kept --key-file key -o one.csv",
    "realtime": "realtime counts.csv --value count --sensitivity 1 --epsilon 1 --key-file key "
    "-o series.csv",
    "temporal": "temporal fit history.csv --stream user --value place -o town",
    "demo": "demo -o demo",
}
"""In an order in which each finds what it reads."""


def run_one(words: list[str]) -> None:
    """Run a command in this process, and write down each loop that is compiled."""
    from numba.core import event

    found: dict[str, float] = {}
    open_ones: list[list[float]] = []

    class Compiled(event.Listener):
        def on_start(self, event: event.Event) -> None:
            open_ones.append([time.process_time(), 0.0])

        def on_end(self, event: event.Event) -> None:
            begun, within = open_ones.pop()
            taken = time.process_time() - begun
            if open_ones:
                open_ones[-1][1] += taken
            loop = event.data["dispatcher"].py_func
            name = f"{loop.__module__.rpartition('.')[2]}.{loop.__qualname__}"
            found[name] = found.get(name, 0.0) + taken - within

    event.register("numba:compile", Compiled())
    sys.argv = ["sfumato", *words]
    from sfumato.cli.app import run

    code = run()
    Path(os.environ["FIRST_USE_RESULT"]).write_text(json.dumps({"code": code, "loops": found}))


def timed(words: list[str], folder: Path, loops: Path) -> tuple[float, dict[str, float]]:
    """Seconds of a command in a process of its own, and seconds of each loop compiled."""
    result = folder / "result.json"
    added = {"SFUMATO_CACHE_DIR": str(loops), "FIRST_USE_RESULT": str(result)}
    begun = time.monotonic()
    subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), "--one", *words],
        cwd=folder, env=os.environ | added, check=True, capture_output=True,
    )  # fmt: skip
    taken = time.monotonic() - begun
    found = json.loads(result.read_text())
    if found["code"]:
        raise RuntimeError(f"{' '.join(words)}: exit code {found['code']}")
    return taken, found["loops"]


def main(wanted: list[str]) -> None:
    """Print a table."""
    from sfumato.cli import warm_jobs

    print("| command | cold, s | warm, s | loops | compiling, s of processor | dearest |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        warm_jobs.make_tables()
        made = folder / "made"
        made.mkdir()
        names = list(COMMANDS)
        last = max(map(names.index, wanted), default=len(names) - 1)
        for command, line in list(COMMANDS.items())[: last + 1]:
            words = shlex.split(line)
            before = set(folder.iterdir())
            loops = made / command.replace(" ", "-") if command in wanted or not wanted else made
            loops.mkdir(exist_ok=True)
            cold, compiled = timed(words, folder, loops)
            if loops == made:
                continue  # only what it leaves behind is needed
            for path in set(folder.iterdir()) - before:
                subprocess.run(["rm", "-r", str(path)], check=True)
            warm, _ = timed(words, folder, loops)
            dearest = sorted(compiled, key=lambda loop: -compiled[loop])[:5]
            told = ", ".join(f"{loop} {compiled[loop]:.1f}" for loop in dearest)
            spent = sum(compiled.values())
            print(
                f"| {command} | {cold:.1f} | {warm:.1f} | {len(compiled)} | {spent:.1f} | {told} |"
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        run_one(sys.argv[2:])
    else:
        main(sys.argv[1:])
