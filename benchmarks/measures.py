"""Small measures of every job, for `compare_revisions.py`: prints seconds of each as JSON.

Only public names and commands are used, so that the same file runs on two revisions of the
package. A measure is a function that prepares and returns what is timed.
"""

from __future__ import annotations

import contextlib
import io
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sfumato as sf

Work = Callable[[], object]
REPEATS = 5
FOLDER = Path(tempfile.mkdtemp(prefix="sfumato-measures-"))


def either(*names: str) -> Any:
    """The first of these public names that this revision has."""
    for name in names:
        found: Any = sf
        try:
            for part in name.split("."):
                found = getattr(found, part)
        except AttributeError:
            continue
        return found
    raise AttributeError(f"none of {names}")


def ring(size: int, stay: float) -> Any:
    """A chain that stays or moves to a neighbour."""
    rows = np.full((size, size), 1e-3)
    for place in range(size):
        rows[place, place] += stay
        rows[place, (place + 1) % size] += (1 - stay) / 2
        rows[place, place - 1] += (1 - stay) / 2
    return sf.MarkovChain.from_matrix(rows / rows.sum(axis=1, keepdims=True))


def command(*words: str) -> Work:
    """A command, run in this process, its words kept from the screen."""
    from sfumato.cli import main

    def run() -> None:
        problems = io.StringIO()
        if "-o" in words:  # a release does not write over another
            for old in FOLDER.glob(Path(words[-1]).name + "*"):
                old.unlink()
        argv, sys.argv = sys.argv, ["sfumato", *words]
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(problems):
                main()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(problems.getvalue()) from end
        finally:
            sys.argv = argv

    return run


def table(name: str, header: str, rows: list[str]) -> str:
    """A CSV file."""
    path = FOLDER / name
    path.write_text("\n".join([header, *rows]) + "\n")
    return str(path)


def history() -> str:
    """Eighty people who move on a ring of twelve places."""
    rng = np.random.default_rng(1)
    rows = []
    for person in range(80):
        place = int(rng.integers(12))
        for _ in range(40):
            place = (place + int(rng.choice([0, 0, 0, 1, -1]))) % 12
            rows.append(f"u{person},p{place}")
    return table("history.csv", "user,place", rows)


def numbers(rows: int) -> str:
    """A column of incomes and a second one that goes with it."""
    rng = np.random.default_rng(2)
    first = rng.lognormal(10, 0.5, rows).clip(0, 200_000)
    second = first * 0.5 + rng.normal(0, 2_000, rows)
    return table(
        "numbers.csv", "a,b", [f"{x:.0f},{y:.0f}" for x, y in zip(first, second, strict=True)]
    )


def counts(length: int) -> str:
    """A series with a week in it."""
    rng = np.random.default_rng(3)
    level = 4_000 + 1_000 * np.sin(np.arange(length) * 2 * np.pi / 7)
    return table("counts.csv", "n", [str(int(x)) for x in rng.poisson(level)])


def stream_one_value() -> Work:
    """One stream, two hundred values through solved channels."""
    chain = ring(8, 0.7)
    loss = sf.loss.absolute(chain.alphabet)
    values = np.random.default_rng(0).integers(8, size=200).tolist()

    def run() -> None:
        release = sf.InstantRelease(chain, budget=sf.SIP(0.5), loss=loss)
        for value in values:
            release(value)

    return run


def compiled() -> tuple[Any, Any, Any]:
    """A ring of eight places, its loss, and a policy for half a nat a step."""
    chain = ring(8, 0.7)
    loss = sf.loss.absolute(chain.alphabet)
    return chain, loss, sf.compile_policy(chain, loss, 0.5, steps=2_000)


def stream_compiled() -> Work:
    """One stream, three thousand values through a compiled policy."""
    chain, loss, policy = compiled()
    values = np.random.default_rng(0).integers(8, size=3_000).tolist()
    release = sf.InstantRelease(chain, budget=sf.PerStep(sf.SIP(0.5)), loss=loss, policy=policy)

    def run() -> None:
        for value in values:
            release(value)

    return run


def fleet_compiled() -> Work:
    """Twenty thousand streams, ten steps each."""
    chain, loss, policy = compiled()
    plan = either("InstantPlan", "Plan", "stream.Plan")(
        chain, sf.PerStep(sf.SIP(0.5)), loss, policy=policy
    )
    fleet = either("InstantFleet", "Fleet", "stream.Fleet")(
        plan, [str(place) for place in range(20_000)]
    )
    values = np.random.default_rng(0).integers(8, size=20_000)

    def run() -> None:
        for _ in range(10):
            fleet.step(values)

    return run


def stream_batches() -> Work:
    """One stream in batches of three."""
    chain = ring(5, 0.7)
    loss = sf.loss.hamming(chain.alphabet)
    values = np.random.default_rng(0).integers(5, size=30).tolist()

    def run() -> None:
        release = sf.BatchedRelease(chain, width=3, budget=sf.SIP(0.5), loss=loss)
        for value in values:
            release.add(value)

    return run


def solver(size: int) -> Callable[[], Work]:
    """The best channel of an alphabet of this size."""

    def prepare() -> Work:
        rng = np.random.default_rng(size)
        beliefs = rng.dirichlet(np.ones(size), 3)
        loss = sf.loss.absolute(sf.Alphabet.of_size(size))
        optimal = either("optimal", "solver.optimal")
        return lambda: [optimal(belief, loss, 1.0) for belief in beliefs]

    return prepare


def fit() -> Work:
    """Learn a chain from three thousand rows."""
    out = str(FOLDER / "fit.model")
    return command("fit", history(), "--stream", "user", "--value", "place", "-o", out)


def release() -> Work:
    """Release three thousand rows of a CSV file, with certificates."""
    model, out = str(FOLDER / "release.model"), str(FOLDER / "release.csv")
    command("fit", history(), "--stream", "user", "--value", "place", "-o", model)()
    return command("release", history(), "-m", model, "--epsilon", ".5", "-o", out)


def audit() -> Work:
    """Audit what `release` wrote."""
    release()()
    return command("audit", str(FOLDER / "release.csv"), "-m", str(FOLDER / "release.model"))


def privatize() -> Work:
    """One column of three thousand numbers."""
    words = ("--column", "a", "--epsilon", "2", "--range", "0:200000", "--prior", "mixture")
    out = str(FOLDER / "column.csv")
    return command("privatize", numbers(3_000), *words, "--seed", "1", "-o", out)


def disclosure() -> Work:
    """What two columns with uniform noise disclose."""
    words = ("--columns", "a,b", "--sigma", "3000", "--accuracy", "1000", "--coupling", "gaussian")
    return command("disclosure", "--table", numbers(1_000), *words)


def realtime() -> Work:
    """A series of one thousand counts."""
    words = ("--value", "n", "--sensitivity", "1", "--epsilon", "1", "--range", "0:20000")
    out = str(FOLDER / "series.csv")
    return command("realtime", counts(1_000), *words, "--seed", "1", "-o", out)


def live_series() -> Work:
    """Two thousand values of a live series, one by one."""
    method = sf.Realtime.gaussian(
        1.0, epsilon=1.0, delta=1e-6, length=2_000, estimate=sf.seasonal(7), unit=sf.Unit.USER
    )
    values = np.random.default_rng(0).poisson(400, 2_000).astype(float).tolist()

    def run() -> None:
        running = method.begin(sf.secure())
        for value in values:
            running.step(value)

    return run


def temporal() -> Work:
    """What three thousand releases tell under correlation of fifty values."""
    rows = np.random.default_rng(5).dirichlet(np.ones(50), 50)
    leakage = either("temporal_leakage", "temporal.temporal_leakage")
    function = either("LossFunction", "temporal.LossFunction")
    return lambda: leakage([0.1] * 3_000, backward=function.of(rows), forward=function.of(rows))


def help_page() -> Work:
    """`sfumato --help` in a process of its own."""
    words = [sys.executable, "-c", "import sys; from sfumato.cli import main; main()", "--help"]
    return lambda: subprocess.run(words, capture_output=True, check=True)


MEASURES: dict[str, Callable[[], Work]] = {
    "one stream, solved": stream_one_value,
    "one stream, compiled": stream_compiled,
    "fleet, compiled": fleet_compiled,
    "batches of three": stream_batches,
    "solver, 8 symbols": solver(8),
    "solver, 64 symbols": solver(64),
    "solver, 200 symbols": solver(200),
    "fit": fit,
    "release of a table": release,
    "audit of a table": audit,
    "privatize": privatize,
    "disclosure": disclosure,
    "realtime": realtime,
    "live series": live_series,
    "temporal leakage": temporal,
    "help": help_page,
}


def spent() -> float:
    """Seconds of the processor, of this process and its children: machines are shared."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def main() -> None:
    """Time each measure: one run to warm up, then the best of some."""
    wanted = sys.argv[1:] or list(MEASURES)
    found = {}
    for name in wanted:
        work = MEASURES[name]()
        work()
        times = []
        for _ in range(REPEATS):
            began = spent()
            work()
            times.append(spent() - began)
        found[name] = min(times)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
