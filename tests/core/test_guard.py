"""Everything that remembers: found by reading the source, hammered by threads, forked, copied."""

from __future__ import annotations

import ast
import copy
import importlib
import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from inspect import isabstract
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sfumato
from sfumato import loss
from sfumato.core.alphabet import Alphabet
from sfumato.core.budgets import Horizon, PerStep
from sfumato.core.errors import ForkedUse, SfumatoError
from sfumato.core.guarantees import SIP
from sfumato.core.guard import Guarded
from sfumato.core.ledger import Ledgers
from sfumato.core.randomness import Address, Randomness, secure
from sfumato.models.encoding import Symbols
from sfumato.models.markov import MarkovChain
from sfumato.models.stream_model import StreamModel
from sfumato.series.memory import Memory
from sfumato.series.realtime import Realtime
from sfumato.series.series_release import SeriesRelease
from sfumato.solver.policy import Policy
from sfumato.store.database_guard import DatabaseGuard
from sfumato.store.home import MemoryHome, _WatchedStore
from sfumato.store.live import Answered, Asked
from sfumato.store.live_intake import begun
from sfumato.store.live_run import SteppedRun
from sfumato.store.memory import MemoryStore
from sfumato.store.postgres import PostgresStore
from sfumato.store.postgres_registry import PostgresRegistry
from sfumato.store.postgres_stream_homes import PostgresStreamHomes
from sfumato.store.protocol import NO_JOB, Position
from sfumato.store.protocol import Answer as Stored
from sfumato.store.registry import MemoryRegistry
from sfumato.store.sqlite import SqliteStore
from sfumato.store.sqlite_registry import SqliteRegistry
from sfumato.store.stream_homes import MemoryStreamHomes, SqliteStreamHomes
from sfumato.stream.compile import compile_policy
from sfumato.stream.fleet import Fleet
from sfumato.stream.fleet_replay import Replay
from sfumato.stream.fleet_streams import FleetStreams
from sfumato.stream.learning_release import LearningRelease
from sfumato.stream.learning_rules import LearningRules
from sfumato.stream.live_batches import LiveBatches
from sfumato.stream.live_fleet import LiveFleet
from sfumato.stream.plan import Plan
from sfumato.stream.release import BatchedRelease, InstantRelease
from sfumato.stream.version_history import VersionHistory
from sfumato.temporal.loss_function import LossFunction
from sfumato.temporal.temporal_mechanisms import Answer
from sfumato.temporal.temporal_plan import TemporalPlan
from sfumato.temporal.temporal_release import TemporalRelease
from tests.contracts.threads import at_once

THREADS, EACH, BUDGET = 8, 25, 50
HOME = Path(sfumato.__file__).parent
CHAIN = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
HAMMING = loss.hamming(CHAIN.alphabet)
LOSS = LossFunction.of([[0.8, 0.2], [0.2, 0.8]])


class Yielding:
    """Fresh coins; whoever draws lets other threads run in the middle of his step."""

    simulated = False
    addressed = False

    def __init__(self, pause: float = 0.0) -> None:
        self._source, self._pause = secure(), pause

    def words(self, count: int) -> NDArray[np.uint64]:
        time.sleep(self._pause)
        return self._source.words(count)

    def word(self) -> int:
        return int(self.words(1)[0])

    def at(self, address: Address) -> Randomness:
        return self


# What remembers, found in the source -----------------------------------------------------------

HELD = {
    "stream.partition.boxes.Boxes": "one call's own",
    "stream.compile._TreeBuilder": "one call's own",
    "record.best_round_noise._Game": "one call's own",
    "stream.fleet_arrays.StreamArrays": "held by a fleet, or by the one stream of a release",
    "stream.fleet_loop.FleetLoop": "held by a fleet, or by the one stream of a release",
    "stream.fleet_loop.Batch": "held by a fleet, under its lock, or one call's own",
    "core.encoded_names.EncodedNames": "held by a fleet, under its lock, or one call's own",
    "stream.solved_steps.SolvedSteps": "held by a fleet",
    "stream.single_stream.SingleStream": "held by an InstantRelease, under its lock",
    "store.chain.Anchor": "held by a SqliteStore, under its lock",
    "store.ledger_check._Stream": "one call's own",
    "store.ledger_check.LedgerReport": "one call's own",
    "store.ledger_file.LedgerFile": "part of a LedgerReader, which has a lock",
    "store.ledger_reader.LedgerReader": "spends nothing, and has a lock",
    "store.ledger_rows.LedgerRows": "part of a LedgerReader or PostgresReader, which has a lock",
    "store.postgres_rows.PostgresRows": "part of a PostgresReader or PostgresStore, with a lock",
    "store.postgres_turns.PostgresTurns": "part of a PostgresStore, with a lock",
    "store.postgres_turns._Held": "each thread has its own",
    "core.randomness._Secure": "has a lock, and new coins after a fork",
    "core.keyed_words.KeyedWords": "counts how many it drew, which decides nothing but the time",
    "core.randomness._Keyed": "has a lock; a child that replays must get the same coins",
    "series.series_audit.SeriesAudit": "one call's own",
    "temporal.temporal_audit._Walk": "one call's own",
    "temporal.temporal_certificate.StreamTotals": "one call's own",
    "temporal.temporal_run._TemporalRun": "one call's own",
    "store.ledgered_run._HeldByName": "one call's own",
    "store.unkept.UnkeptStore": "one call's own",
    "store.folder_home.FolderHome": "which ledgers are open: one assignment each",
    "stream.column_run.ColumnRun": "one call's own",
    "stream.column_run.OneByOne": "one call's own",
    "stream.run_streams.RunStreams": "one call's own",
    "stream.earlier_rows.EarlierRows": "one call's own",
    "stream.seen_ids.SeenIds": "one call's own",
    "stream.audit_walk.Walk": "one call's own",
    "stream.audit_columns.ColumnWalk": "one call's own",
    "stream.audit_columns.FleetStates": "one call's own",
    "stream.output_log.OutputLog": "one call's own",
    "stream.audit_checks.Exposure": "one call's own",
    "stream.audit_checks.Totals": "one call's own",
    "stream.audit_checks.Losses": "one call's own",
    "stream.replayed_coins.ReplayedCoins": "one call's own",
    "stream.possible_draws.PossibleDraws": "one call's own",
    "stream.other_truth.OtherTruth": "one call's own",
    "stream.worst_chain._Search": "one call's own",
    "stream.other_truth._Followed": "one call's own",
    "stream.truth_beliefs.SteadyBelief": "one call's own",
    "stream.truth_beliefs.PhasedBelief": "one call's own",
    "stream.fleet_threads.FleetThreads": "held by a fleet, under its lock; a child starts its own",
    "stream.fleet_threads.Errand": "begun by one thread or by none: decided in one step",
    "stream.truth_report.TruthAudit": "one call's own",
    "stream.output_tree.OutputTree": "one call's own",
    "stream.output_tree._AnyBeliefs": "held by an OutputTree",
    "stream.burst_search._Tries": "one call's own",
    "core.verification.Verification": "one call's own",
    "stream.coin_bets.Bets": "one call's own",
    "stream.coin_bets._Each": "one call's own",
    "stream.coin_test.FairCoins": "one call's own",
    "stream.audit_ledger.LedgerSide": "one call's own",
    "stream.audit_report.AuditReport": "one call's own",
    "stream.input_rows.RowChecks": "one call's own",
    "stream.input_rows.RowReader": "one call's own",
    "store.ledgered_run.Group": "one call's own",
    "store.ledgered_run.LedgeredRun": "one call's own",
    "stream.row_run.RowRun": "one call's own",
    "stream.learning_run.LearningRowRun": "one call's own",
    "stream.worth_run.RobustRowRun": "one call's own",
    "stream.worth_run.WorthRowRun": "one call's own",
    "stream.true_values.RealisedLoss": "one call's own",
    "stream.silence.Silence": "one call's own",
    "stream.recovered_loss.RecoveredLoss": "one call's own",
    "models.learning._Search": "one call's own",
    "models.drift_learner.DriftLearner": "one call's own",
    "models.cluster_fitting._Search": "one call's own",
    "models.cluster_learning._Search": "one call's own",
    "stream.evidence._Collector": "one call's own",
    "stream.learning._Counted": "one call's own",
    "stream.leakage_by_start._Start": "one call's own",
    "stream.released_tracks._Rows": "one call's own",
    "stream.truth_reader.Truths": "one call's own",
    "stream.value_exposure.ValueExposure": "one call's own",
    "store.sqlite_registry.RegistryReader": "one call's own; a SqliteRegistry is guarded",
    "store.shared_anchor.SharedAnchor": "held by a PostgresStore or registry, under its lock",
    "store.live_intake.Retries": "held by a live run, under its lock",
    "store.waiting_batches.WaitingBatches": "held by a SteppedRun, under its lock",
    "stream.fleet_copy.FleetCopy": "held by a LiveFleet, under its lock",
    "stream.live_values.LiveValues": "held by a LiveFleet, under its lock",
    "stream.live_group.LiveGroup": "one call's own",
    "temporal.live_streams.LiveStreams": "held by a SteppedRun, under its lock",
    "column.privatize.Privatizer": "fitted like any estimator; it spends no budget over time",
}
"""Classes that change and need no guard of their own, with the reason."""
ROOMS = (
    "core",
    "models",
    "noise",
    "solver",
    "store",
    "stream",
    "column",
    "record",
    "series",
    "temporal",
)
"""Where budgets are spent and kept; tables, pictures and commands belong to one call."""
CHANGING = {"append", "appendleft", "pop", "popleft", "add", "update", "extend", "clear", "insert"}
CHANGING |= {"execute", "executemany", "remove", "setdefault"}


def of_self(node: ast.expr) -> bool:
    """Whether an expression is a part of `self`."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return node.value.id == "self"
        node = node.value
    return False


def changes(node: ast.AST) -> bool:
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            flat = [each for t in targets for each in getattr(t, "elts", [t])]
            return any(map(of_self, flat))
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return of_self(target)
        case ast.Call(func=ast.Attribute(attr=name, value=value)):
            return name in CHANGING and of_self(value)
    return False


def remembers(kind: ast.ClassDef) -> bool:
    """Whether a class changes itself after it was made."""
    making = {"__init__", "__post_init__", "__new__"}
    methods = [part for part in kind.body if isinstance(part, ast.FunctionDef)]
    later = [method for method in methods if method.name not in making]
    return any(changes(node) for method in later for node in ast.walk(method))


@cache
def classes() -> list[tuple[str, bool]]:
    return list(_classes())


def _classes() -> Iterator[tuple[str, bool]]:
    for file in sorted(HOME.rglob("*.py")):
        where = ".".join(file.relative_to(HOME).with_suffix("").parts)
        if where.split(".")[0] in ROOMS:
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    yield f"{where}.{node.name}", remembers(node)


def kinds() -> dict[str, type]:
    found = {}
    for name, _ in classes():
        room, _, kind = name.rpartition(".")
        found[name] = getattr(importlib.import_module(f"sfumato.{room}"), kind, None)
    return {name: kind for name, kind in found.items() if isinstance(kind, type)}


def test_whatever_remembers_is_guarded_or_held_by_what_is() -> None:
    known = kinds()
    loose = {name for name, active in classes() if active and name in known}
    loose -= {name for name in loose if issubclass(known[name], Guarded)}
    # A memory is held by a SeriesRelease, under its lock.
    loose -= {name for name in loose if issubclass(known[name], Memory)}
    assert loose == set(HELD)


def test_a_class_that_changes_is_recognised() -> None:
    for body in ("self.n += 1", "self.a.b[0] = 1", "self.x, y = 1, 2", "self.kept.append(1)"):
        source = f"class New:\n    def step(self):\n        {body}\n"
        assert remembers(ast.parse(source).body[0])  # type: ignore[arg-type]
    quiet = (
        "class Quiet:\n    def __init__(self):\n        self.n = 1\n    def f(self):\n        x = 1"
    )
    assert not remembers(ast.parse(quiet).body[0])  # type: ignore[arg-type]


# One of each kind ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """An object, what a thread does with it, how often that may succeed, and what it counts."""

    made: Any
    act: Callable[[int], object]
    allowed: int
    counted: Callable[[], int]


def running() -> Case:
    method = Realtime.laplace(1.0, epsilon=1.0, length=BUDGET)
    made = method.begin(Yielding())
    return Case(made, lambda _: made.step(1.0), BUDGET, lambda: made.time)


def moments() -> Case:
    plan = TemporalPlan(LOSS, LOSS, 5.0, BUDGET)
    made = TemporalRelease(plan, Answer.of(Alphabet("ab")), randomness=Yielding())
    return Case(made, lambda _: made("a"), BUDGET, lambda: len(made.leakage.epsilons))


def ledgers() -> Case:
    made, which, cost = Ledgers(2, 3), np.array([1]), np.array([[0.1, 0.1]])
    return Case(made, lambda _: made.charge(which, cost), THREADS * EACH, lambda: made[1].count)


def instant() -> Case:
    budget = Horizon(SIP(float(BUDGET)), BUDGET)
    made = InstantRelease(CHAIN, budget=budget, loss=HAMMING, randomness=Yielding())
    return Case(made, lambda n: made(n % 2), BUDGET, lambda: made.state.sequence)


def learning() -> Case:
    bit = Alphabet.of_size(2)
    made = LearningRelease(bit, budget=SIP(0.5), loss=HAMMING, randomness=Yielding())
    count = lambda: made.states["ann"].sequence  # noqa: E731
    return Case(made, lambda n: made("ann", n % 2), THREADS * EACH, count)


def history() -> Case:
    bit = Alphabet.of_size(2)
    made = VersionHistory(LearningRules(bit, PerStep(SIP(0.5)), HAMMING))
    return Case(made, lambda n: made.add("ann", n % 2), THREADS * EACH, lambda: made.count)


def batched() -> Case:
    budget = Horizon(SIP(float(BUDGET)), BUDGET)
    made = BatchedRelease(CHAIN, width=1, budget=budget, loss=HAMMING, randomness=Yielding())
    return Case(made, lambda n: made.add(n % 2), BUDGET, lambda: made.state.sequence)


def fleet() -> Case:
    policy = compile_policy(CHAIN, HAMMING, 0.5, steps=100)
    plan = Plan(CHAIN, PerStep(SIP(0.5)), HAMMING, policy=policy)
    made = Fleet(plan, ["ann", "bob"], randomness=Yielding())
    return Case(made, lambda n: made.step([n % 2, 1]), THREADS * EACH, lambda: told(made))


def told(made: Fleet) -> int:
    return made.state(0).sequence


def store() -> Case:
    made = SqliteStore(None, "plan")
    return Case(made, lambda n: made.commit(*stored(n)), THREADS * EACH, made.count)


def memory_store() -> Case:
    made = MemoryStore(plan="plan")
    entries = lambda: made.front.head.entries  # noqa: E731
    return Case(made, lambda n: made.commit(*stored(n)), THREADS * EACH, entries)


def live(policy: Policy | None, run: Callable[[MemoryStore, Plan], Any]) -> Case:
    plan = Plan(CHAIN, Horizon(SIP(float(BUDGET)), BUDGET), HAMMING, policy=policy)
    place = MemoryStore(plan=plan.fingerprint)
    made = run(place, plan)

    def act(number: int) -> None:
        (reply,) = made.answer([Asked(f"e{number}", "ann", number % 2)])
        if not isinstance(reply, Answered):
            raise SfumatoError(reply.detail)

    return Case(made, act, BUDGET, lambda: place.front.head.entries)


MODEL = StreamModel(CHAIN, Symbols(CHAIN.alphabet))


def live_fleet() -> Case:
    policy = compile_policy(CHAIN, HAMMING, 1.0, steps=100)
    return live(
        policy,
        lambda place, plan: LiveFleet(place, begun(place, "http"), MODEL, plan, Yielding()),
    )


def stepped() -> Case:
    return live(
        None,
        lambda place, plan: SteppedRun(
            place, begun(place, "http"), LiveBatches(MODEL, plan, Yielding())
        ),
    )


def appending(made: MemoryRegistry | SqliteRegistry) -> Case:
    def act(number: int) -> None:
        made.append("ann", "key.revoked", f"key {number}", b"")

    return Case(made, act, THREADS * EACH, lambda: len(made.entries()))


def sqlite_registry() -> Case:
    folder = Path(tempfile.mkdtemp())
    return appending(SqliteRegistry(folder / "registry.db"))


def settling(made: MemoryStreamHomes | SqliteStreamHomes) -> Case:
    def act(number: int) -> None:
        made.settle([f"s{number}"], "town")

    names = [f"s{number}" for number in range(THREADS * EACH)]
    return Case(made, act, THREADS * EACH, lambda: len(made.settled(names)))


def memory_home() -> Case:
    made = MemoryHome()
    open_ = made.open_ledger
    ledgers = lambda: len(made.ledgers())  # noqa: E731
    return Case(made, lambda n: open_(f"r{n}", "plan", NO_JOB, None), THREADS * EACH, ledgers)


def stored(number: int) -> tuple[list[Stored], list[Position]]:
    """The first value of a stream of its own."""
    name = f"stream {number}"
    answer = Stored(f"e{number}", "live.csv", number, name, 0, "released", 1, 0.1, 0.1)
    return [answer], [Position(name, 1, 0.1, 0.1, b"state")]


CASES: dict[type, Callable[[], Case]] = {
    SeriesRelease: running,
    TemporalRelease: moments,
    Ledgers: ledgers,
    InstantRelease: instant,
    LearningRelease: learning,
    VersionHistory: history,
    BatchedRelease: batched,
    Fleet: fleet,
    SqliteStore: store,
    MemoryStore: memory_store,
    LiveFleet: live_fleet,
    SteppedRun: stepped,
    MemoryRegistry: lambda: appending(MemoryRegistry()),
    SqliteRegistry: sqlite_registry,
    MemoryHome: memory_home,
    MemoryStreamHomes: lambda: settling(MemoryStreamHomes()),
    SqliteStreamHomes: lambda: settling(SqliteStreamHomes(Path(tempfile.mkdtemp()) / "s.db")),
}
IDS = [kind.__name__ for kind in CASES]


def test_every_guarded_class_is_tried() -> None:
    # A fleet, one of one call, a MemoryStore that tells, and those that need a server: tests/store
    # tries them.
    own = {Guarded, DatabaseGuard, FleetStreams, Replay, _WatchedStore}
    own |= {PostgresStore, PostgresRegistry, PostgresStreamHomes}
    guarded = {kind for kind in kinds().values() if issubclass(kind, Guarded)} - own
    assert {kind for kind in guarded if not isabstract(kind)} == set(CASES)


def hammered(case: Case) -> tuple[int, list[Exception]]:
    """How many of all attempts of eight threads succeeded, and what broke."""
    done: list[int] = []
    broken: list[Exception] = []

    def work(thread: int) -> None:
        for turn in range(EACH):
            try:
                case.act(thread * EACH + turn)
            except SfumatoError:
                continue
            except Exception as problem:
                broken.append(problem)
            done.append(1)

    at_once(THREADS, work)
    return len(done), broken


@pytest.mark.parametrize("kind", CASES, ids=IDS)
def test_eight_threads_release_what_one_budget_allows(kind: type) -> None:
    case = CASES[kind]()
    assert type(case.made) is kind
    assert hammered(case) == (case.allowed, [])
    assert case.counted() == case.allowed


def test_without_its_lock_a_release_is_caught_spending_twice() -> None:
    made = Realtime.laplace(1.0, epsilon=1.0, length=BUDGET).begin(Yielding(pause=1e-4))
    made._lock = nullcontext()
    released, _ = hammered(Case(made, lambda _: made.advance([1.0]), BUDGET, lambda: 0))
    assert released > BUDGET


@pytest.mark.parametrize("kind", CASES, ids=IDS)
def test_a_copy_that_could_spend_again_is_refused(kind: type) -> None:
    made = CASES[kind]().made
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied or stored"):
            way(made)


def in_child(task: Callable[[], str]) -> str:
    """What a forked child says."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads are none of ours
        child = os.fork()
    if child == 0:
        try:
            os.write(write, task().encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        found = pipe.read()
    os.waitpid(child, 0)
    return found


def test_a_forked_child_is_refused_and_its_parent_goes_on() -> None:
    cases = {kind.__name__: make() for kind, make in CASES.items()}

    def used() -> str:
        taken = []
        for name, case in cases.items():
            try:
                case.act(0)
                taken.append(name)
            except ForkedUse as refusal:
                if "must be used in the process that made it" not in str(refusal):
                    taken.append(name)
        return ",".join(taken) or "nothing"

    assert in_child(used) == "nothing"
    for case in cases.values():
        case.act(1)


def test_a_state_is_not_read_in_a_forked_child_either() -> None:
    release, series, ledger = instant().made, running().made, store().made
    ways = [lambda: release.state, lambda: series.state, lambda: ledger.count()]

    def read() -> str:
        return str(sum(refused(way) for way in ways))

    assert in_child(read) == "3"


def refused(way: Callable[[], object]) -> bool:
    try:
        way()
    except ForkedUse:
        return True
    return False


def test_a_child_that_merely_ends_takes_no_event_from_the_ledger(tmp_path: Path) -> None:
    """It would close the connection it got by the fork, and remove the log under its parent."""
    script = """
        import os, sys
        from sfumato.store.protocol import Answer, Position
        from sfumato.store.sqlite import SqliteStore

        def stored(number):
            return Answer(f"e{number}", "live.csv", number, "ann", number, "released", 1, 0.1, 0.1)

        def at(number):
            return Position("ann", number, 0.1 * number, 0.1 * number, b"state")

        store = SqliteStore(sys.argv[1], "plan")
        store.commit([stored(n) for n in range(60)], [at(60)])
        child = os.fork()
        if child == 0:
            del store
            sys.exit(0)
        os.waitpid(child, 0)
        for number in range(60, 125):
            store.commit([stored(number)], [at(number + 1)])
        os._exit(0)  # a crash: nothing is closed
    """
    path = tmp_path / "city.ledger"
    command = [sys.executable, "-c", textwrap.dedent(script), str(path)]
    subprocess.run(command, check=True)
    with SqliteStore(path, "plan") as kept:
        assert kept.count() == 125
        assert [answer.place for answer in kept.rest("ann", 0)] == list(range(125))
