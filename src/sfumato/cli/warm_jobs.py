"""Small jobs on made-up tables that need the same loops as real ones.

A loop is compiled when it is first called, for the types that it is called with: so the list of
what a command needs is the command itself, run on a few rows.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sfumato.core.compiled import CompiledLoop

_PLACES = ("home", "road", "work", "shop", "park", "gym")
_FIT = "fit history.csv --stream user --value place -o town.model"
_TABLE = "--model town.model --key-file key"


def _step_a_fleet() -> None:
    """Two streams under a policy of one channel that no solver made: what a release needs last."""
    import numpy as np

    from sfumato.core.budgets import PerStep
    from sfumato.core.channel import Channel
    from sfumato.core.guarantees import SIP
    from sfumato.core.loss import hamming
    from sfumato.models.markov import MarkovChain
    from sfumato.solver.policy import Policy, PolicyChannel, PolicyReport, Tree, tabulated
    from sfumato.stream.fleet import Fleet
    from sfumato.stream.plan import Plan

    chain = MarkovChain.from_matrix([[0.8, 0.2], [0.2, 0.8]])
    loss = hamming(chain.alphabet)
    rows = np.array([[0.6, 0.4], [0.4, 0.6]])
    kept = PolicyChannel.of(Channel.from_probabilities(rows), np.full(2, 0.5), 1 - np.eye(2))
    tree = Tree(np.array([[-1, 0, 1]]), np.zeros(1), np.arange(1))
    report = PolicyReport(1, 0.0, 0.0, 0.0)
    own = (chain.fingerprint, loss.fingerprint)
    policy = Policy(*own, "optimal", 0.5, None, 1e9, tabulated([kept], tree), report)
    # By two threads: what they need to share streams is compiled, too.
    fleet = Fleet(Plan(chain, PerStep(SIP(0.5)), loss, policy=policy), ["a", "b"], threads=2)
    fleet.step([0, 1])
    fleet.run(np.array([0, 1, 1]), np.array([0, 1, 0]))


def _step_a_sighted_fleet() -> None:
    """Two far-sighted streams whose outputs nobody searched for: what a release needs last."""
    import numpy as np

    from sfumato.core.budgets import PerStep
    from sfumato.core.guarantees import SIP
    from sfumato.core.loss import hamming
    from sfumato.core.randomness import secure
    from sfumato.models.markov import MarkovChain
    from sfumato.solver.design_methods import Method
    from sfumato.solver.policy import Policy, PolicyReport
    from sfumato.solver.solving_tables import sighted_solving_tables
    from sfumato.solver.value_function import ValueFunction
    from sfumato.stream.fleet import Fleet
    from sfumato.stream.fleet_arrays import StreamArrays
    from sfumato.stream.plan import Plan

    matrix = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    chain = MarkovChain.from_matrix(matrix)
    loss, places = hamming(chain.alphabet), np.arange(3)
    leaf = (np.array([[-1, 0, 3]]), np.zeros(1), np.tile(places, 2))
    orders = np.tile((places[:, None] + places) % 3, (2, 1)).astype(np.uint16)
    tables = sighted_solving_tables(loss.matrix.T.copy(), places, *leaf, orders)
    arrays = StreamArrays(chain, tables, np.inf, 2, scale=1.0)
    prepared = arrays.prepare(places[:2], np.tile([0.5, np.inf], (2, 1)))
    arrays.release(prepared, places[:2], secure().words(2))
    arrays.advance(places[:2])
    own = (chain.fingerprint, loss.fingerprint)
    channels = np.full((1, 3, 3), 1 / 3)
    sight = ValueFunction(*own, 0.5, 0.0, matrix, loss.matrix, np.zeros((1, 3)), channels, 1.0, 1.0)
    report = PolicyReport(1, 0.0, 0.0, 0.0)
    policy = Policy(*own, "far-sighted", 0.5, None, 1.0, tables, report, sight=sight)
    plan = Plan(chain, PerStep(SIP(0.5)), loss, method=Method.FAR_SIGHTED, policy=policy)
    Fleet(plan, ["a", "b"]).run(np.array([0, 1, 1]), np.array([0, 1, 0]))


JOBS: dict[str, tuple[str | Callable[[], None], ...]] = {
    "fleet": (
        _step_a_fleet,
        _FIT,
        f"release live.csv {_TABLE} --epsilon 0.5 --method step-wise -o private.csv",
        "compile --model town.model --epsilon 0.5 --method step-wise -o town.policy",
        f"release live.csv {_TABLE} --epsilon 0.5 --policy town.policy --ledger book -o quick.csv",
        "audit quick.csv --model town.model --policy town.policy --against live.csv",
    ),
    "release": (
        _step_a_sighted_fleet,
        _FIT,
        f"release live.csv {_TABLE} --epsilon 0.5 -o private.csv",
        "audit private.csv --model town.model --against live.csv",
        "recover private.csv --model town.model -o guesses.csv",
    ),
    "plan": (
        _FIT,
        "compile --model town.model --epsilon 0.5 --method step-wise --kind solved -o cells.policy",
        "plan --model town.model --epsilon 0.5 --streams 8 --steps 8",
        "plan --model town.model --budget 4 --horizon 30 --streams 8",
        f"release live.csv {_TABLE} --budget 4 --horizon 30 -o private.csv",
    ),
    "batches": (
        _FIT,
        f"release live.csv {_TABLE} --epsilon 0.5 --batch 2 -o private.csv",
    ),
    "privatize": (
        "privatize live.csv -c place --epsilon 1 --order kept --key-file key -o answers.csv",
        "privatize counts.csv -c count --epsilon 1 --order kept --key-file key -o numbers.csv",
    ),
    "publish": (
        "disclosure --table counts.csv --columns count,cars --accuracy 2 --sigma 5 "
        "--coupling gaussian",
        "publish --table counts.csv --columns count,cars --accuracy 2 --coupling gaussian "
        "--target-delta 0.25 --order kept --key-file key -o noisy.csv",
    ),
    "realtime": (
        "compare counts.csv --value count --sensitivity 1 --epsilon 1 --runs 2",
        "realtime counts.csv --value count --sensitivity 1 --epsilon 1 --key-file key -o out.csv",
    ),
    "temporal": (
        "temporal fit history.csv --stream user --value place -o town",
        "temporal allocate --alpha 1 --backward town.backward.csv --forward town.forward.csv",
        "temporal leakage --backward town.backward.csv --forward town.forward.csv "
        "--epsilon 0.1 --steps 50",
    ),
}
"""What each job runs: command lines, and a piece of one that must not wait for the rest."""


class Warmed(NamedTuple):
    """What a job found and did.

    Attributes:
        compiled: How many loops it had to compile.
        seconds: How long it took.
        files: The indexes on disk of all loops that it used.
    """

    compiled: int
    seconds: float
    files: list[str]


def run_job(name: str) -> Warmed:
    """Run a job here, in a folder of its own that does not stay; what it prints goes nowhere."""
    from sfumato.cli.app import called
    from sfumato.cli.first_use import alone
    from sfumato.core.compile_events import eagerly, told

    missing: list[str] = []
    begun = time.monotonic()
    silent = contextlib.redirect_stdout(io.StringIO())
    said = io.StringIO()
    quiet = (silent, contextlib.redirect_stderr(said))
    with _folder(), alone(), eagerly(), told(missing.append), quiet[0], quiet[1]:
        for step in JOBS[name]:
            if callable(step):
                step()
            elif code := called(shlex.split(step)):
                raise RuntimeError(f"{step}: exit code {code}: {said.getvalue()}")
    return Warmed(len(missing), time.monotonic() - begun, sorted(_indexes()))


@contextlib.contextmanager
def _folder() -> Iterator[None]:
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="sfumato-warm-") as folder:
        os.chdir(folder)
        try:
            make_tables()
            yield
        finally:
            os.chdir(before)


def make_tables() -> None:
    """People who stay a while and go on, and counts that rise and fall."""
    for name, shift in (("history", 0), ("live", 1)):
        rows = ["user,place"]
        for user in range(12):
            for moment in range(30):
                stays = 2 + (user + shift) % 3
                place = (user + moment // stays * (1 + user % 5)) % len(_PLACES)
                rows.append(f"u{user},{_PLACES[place]}")
        Path(f"{name}.csv").write_text("\n".join(rows) + "\n")
    counts = [(moment, 60 + 7 * (moment % 9) - 4 * (moment % 5)) for moment in range(80)]
    rows = [f"{moment},{count},{2 * count + moment % 7}" for moment, count in counts]
    Path("counts.csv").write_text("\n".join(["when,count,cars", *rows]) + "\n")
    Path("key").write_bytes(bytes(range(3, 99, 3)))
    Path("key").chmod(0o600)


def _indexes() -> Iterator[str]:
    """Files of all loops of the program that this process has called; others may use `njit`."""
    from sfumato.core.compiled import CompiledLoop

    for loop in gc.get_objects():
        # Not isinstance: it asks weak references to what is gone, too.
        if type(loop) is CompiledLoop and loop.overloads and _is_ours(loop):
            yield from loop.kept.indexes()


def _is_ours(loop: CompiledLoop) -> bool:
    module: str = loop.py_func.__module__
    return module.startswith("sfumato.")


def _stop(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _stop)
    for job in sys.argv[1:]:
        sys.stdout.write(json.dumps({"job": job, **run_job(job)._asdict()}) + "\n")
        sys.stdout.flush()
