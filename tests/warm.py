"""Compile the loops before workers start: `python -m tests.warm`, the jobs of `sfumato warm`.

Then come those that take seconds and that no command needs, two at a time. What else only a test
needs is compiled by the first worker that calls it; the others wait for it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import sfumato as sf
from sfumato.cli.warm_command import warmed
from sfumato.cli.warm_jobs import JOBS
from sfumato.core.compile_events import eagerly
from sfumato.series.autoregressive import Autoregressive
from sfumato.series.filters import kalman
from tests.compiled import CHAINS, policy_of


def live(chain: sf.MarkovChain, policy: sf.Policy, method: sf.Method) -> None:
    """One stream value by value, and two in one run."""
    own: dict[str, Any] = {
        "loss": sf.loss.hamming(chain.alphabet),
        "method": method,
        "policy": policy,
    }
    release = sf.InstantRelease(chain, budget=sf.SIP(1.0), **own)
    release(chain.alphabet.labels[0])
    fleet = sf.Fleet(sf.Plan(chain, sf.PerStep(sf.SIP(1.0)), **own), ["a", "b"])
    fleet.run(np.array([0, 1, 1]), np.array([0, 1, 0]))


def kept(name: str) -> None:
    """Streams under channels that are kept: one of the chains of `compiled`."""
    live(CHAINS[name], policy_of(name), sf.Method.OPTIMAL)


def sighted() -> None:
    """Streams under a far-sighted policy."""
    chain = CHAINS["dense, order 1"]
    asked: dict[str, Any] = {"method": "far-sighted", "steps": 64}
    policy = sf.compile_policy(chain, sf.loss.hamming(chain.alphabet), 1.0, **asked)
    live(chain, policy, sf.Method.FAR_SIGHTED)


def clusters() -> None:
    """Which kind of person a stream is of."""
    moves = np.array([[0.9, 0.1], [0.1, 0.9]])
    chains = tuple(sf.MarkovChain.from_matrix(each) for each in (moves, moves[::-1].copy()))
    model = sf.stream.ClusteredChain(np.array([0.5, 0.5]), chains)
    plan = sf.Plan(model, sf.PerStep(sf.SIP(1.0)), sf.loss.hamming(model.alphabet))
    left, _ = plan.step(plan.begin("a"), [1], sf.secure())
    sf.stream.recover({"a": left}, plan).clusters()


def filtered() -> None:
    """A series through the filter of its own process."""
    running = kalman(Autoregressive(0.0, [0.5], 1.0)).begin(2)
    running.update(np.zeros((3, 2)), np.ones(3), np.ones(3))


PIECES: dict[str, Callable[[], None]] = {
    "dense": lambda: kept("dense, order 1"),
    "sparse": lambda: kept("sparse, order 1"),
    "sighted": sighted,
    "clusters": clusters,
    "filtered": filtered,
}


def in_its_own_process(name: str) -> None:
    subprocess.run([sys.executable, "-m", "tests.warm", name], check=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        with eagerly():
            PIECES[sys.argv[1]]()
    else:
        warmed(list(JOBS))
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            list(pool.map(in_its_own_process, PIECES))
