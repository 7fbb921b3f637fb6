"""One table released twice under one key: by columns, and row by row as ever; all that is left."""

import itertools
import json
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow.ipc
import pyarrow.parquet

import sfumato as sf
from sfumato.core.budgets import Budget
from sfumato.models.encoding import Bins, Encoding, Grid, Symbols
from sfumato.models.stream_model import StreamModel
from sfumato.store.protocol import Again
from sfumato.stream import column_run, release_run
from sfumato.stream.input_rows import Reading
from sfumato.stream.plan import Plan
from sfumato.stream.release_run import RunSpec, release_table
from sfumato.tables import input_groups
from sfumato.tables.readers import Table
from sfumato.tables.writers import Output
from tests.shell.tables import write
from tests.stream.fleet_scripts import BUDGETS, SECRET

COLUMNS = ("person", "value", "other", "id", "when", "place")
"""Of the input: the second column of a point, an event id, a time, and something independent."""


def _random_chain(alphabet: sf.Alphabet, order: int = 1) -> sf.MarkovChain:
    size = len(alphabet)
    rows = np.random.default_rng(size).dirichlet(np.ones(size), size**order)
    return sf.MarkovChain.from_matrix(rows, alphabet=alphabet, floor=0.02)


def _encodings() -> dict[str, Encoding]:
    with_missing = sf.Alphabet(["a", "b", "(missing)"])
    return {
        "words": Symbols(sf.Alphabet("abc")),
        "words, order 2": Symbols(sf.Alphabet("ab")),
        "numbers": Symbols(sf.Alphabet([1, 2, 30])),
        "with missing": Symbols(with_missing),
        "bins": Bins([0.0, 1.0, 2.5, 4.0]),
        "clipped bins": Bins([0.0, 1.0, 2.5, 4.0], clip=True),
        "grid": Grid([0.0, 1.0, 2.0], [-1.0, 0.0, 1.0]),
        "clipped grid": Grid([0.0, 1.0, 2.0], [-1.0, 0.0, 1.0], clip=True),
    }


ENCODINGS = _encodings()


@cache
def model_of(name: str) -> StreamModel:
    """A model of one of the encodings."""
    encoding = ENCODINGS[name]
    chain = _random_chain(encoding.alphabet, 2 if name.endswith("order 2") else 1)
    values = ("value", "other") if isinstance(encoding, Grid) else ("value",)
    return StreamModel(chain, encoding, stream="person", values=values)


@cache
def _policy(name: str, method: str) -> sf.Policy:
    chain = model_of(name).chain
    assert isinstance(chain, sf.MarkovChain)
    asked: dict[str, Any] = {"method": method, "steps": 120, "max_channels": 12}
    return sf.compile_policy(chain, sf.loss.hamming(chain.alphabet), 1.0, **asked)


@cache
def plan_of(
    name: str,
    budget: str = "per step",
    method: str = "optimal",
    on_unknown: sf.Fallback = sf.Fallback.REFUSE,
    on_exhausted: sf.Fallback = sf.Fallback.REFUSE,
) -> Plan:
    """A plan with a policy for a model of one of the encodings."""
    due: Budget = BUDGETS[budget]
    policy, chain = _policy(name, method), model_of(name).chain
    if due.ldp is not None:
        policy = replace(policy, ldp=1.5)
    return Plan(
        chain,
        due,
        sf.loss.hamming(chain.alphabet),
        method=sf.Method(method),
        on_unknown=on_unknown,
        on_exhausted=on_exhausted,
        policy=policy,
    )


@dataclass(frozen=True)
class Day:
    """One table and how it is released.

    Attributes:
        records: Its rows, in the order of `COLUMNS`.
        reading: What its columns mean.
        source: Its name.
        output: That of the output.
        again: Whether it was seen before.
        write: Writes the table, unless in the way of its suffix.
        stop_after: Ctrl-C is pressed after so many rows.
        full_after: The disk is full after so many parts of the output.
        threads: How many share the streams.
    """

    records: Sequence[Sequence[object]]
    reading: Reading = field(default_factory=Reading)
    source: str = "live.csv"
    output: str = "private.csv"
    again: Again = Again.REFUSE
    write: Callable[[Path], object] | None = None
    stop_after: int | None = None
    full_after: int | None = None
    threads: int = 1


@dataclass
class Left:
    """All that a release leaves: what it says, and what it writes."""

    reports: list[Any] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    progress: list[int] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    ledger: list[Any] = field(default_factory=list)


def released(
    folder: Path, name: str, plan: Plan, days: Sequence[Day], *, ledger: bool, by_columns: bool
) -> Left:
    """What is left after some days."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    left = Left()
    with _predictable(by_columns=by_columns):
        for day in days:
            _release(folder, model_of(name), plan, day, left, ledger=ledger)
    if ledger and (folder / "ledger").exists():
        left.ledger = _dump(folder / "ledger")
    return left


@contextmanager
def _predictable(*, by_columns: bool) -> Iterator[None]:
    """Secrets of ledgers that are alike, and groups of rows that do not depend on the clock."""
    counter = itertools.count()

    def urandom(size: int) -> bytes:
        return np.random.default_rng(next(counter)).bytes(size)

    with ExitStack() as patched:
        patched.enter_context(mock.patch.object(os, "urandom", urandom))
        for module in (input_groups, column_run):
            patched.enter_context(mock.patch.object(module, "GROUP_SECONDS", np.inf))
        patched.enter_context(mock.patch.object(column_run, "_COMMIT_SECONDS", np.inf))
        if not by_columns:
            never = mock.patch.object(release_run, "_by_columns", lambda *_: False)
            patched.enter_context(never)
        yield


def _release(
    folder: Path, model: StreamModel, plan: Plan, day: Day, left: Left, *, ledger: bool
) -> None:
    source, output = folder / day.source, folder / day.output
    if day.write is None:
        write(source, COLUMNS, day.records)
    else:
        day.write(source)
    spec = RunSpec(
        reading=day.reading,
        document=json.dumps({"rules": "of this release"}).encode() if ledger else None,
        ledger=folder / "ledger" if ledger else None,
        again=day.again,
        randomness=sf.keyed(SECRET),
        threads=day.threads,
    )

    def progress(rows: int) -> None:
        left.progress.append(rows)
        if day.stop_after is not None and rows >= day.stop_after:
            signal.raise_signal(signal.SIGINT)

    told: dict[str, Any] = {"progress": progress, "remark": left.remarks.append}
    tables = Table.at(str(source)), Table.at(str(output))
    try:
        with _disk(day.full_after):
            left.reports.append(release_table(*tables, model, plan, spec, **told))
    except (sf.SfumatoError, OSError) as problem:
        said = str(problem).replace(str(folder), "")
        left.reports.append((type(problem).__name__, said))
    left.remarks[:] = [remark.replace(str(folder), "") for remark in left.remarks]
    left.outputs.append(_content(output))
    with suppress(FileNotFoundError):
        left.outputs.append(output.with_name(output.name + ".plan.json").read_bytes())


@contextmanager
def _disk(full_after: int | None) -> Iterator[None]:
    """A disk on which so many parts of an output fit, and a seal that anybody can read."""
    counter = itertools.count()
    with ExitStack() as patched:
        plain = mock.patch.object(release_run, "sealed", lambda _, seal: repr(seal).encode())
        patched.enter_context(plain)
        for name in ("write", "write_columns"):
            written = getattr(Output, name)

            def write(self: Output, part: Any, written: Any = written) -> None:
                if full_after is not None and next(counter) >= full_after:
                    raise OSError("the disk is full")
                written(self, part)

            patched.enter_context(mock.patch.object(Output, name, write))
        yield


def _content(path: Path) -> object:
    if not path.exists():
        return None
    if path.suffix == ".parquet":
        return pyarrow.parquet.read_table(path)
    if path.suffix == ".arrow":
        return pyarrow.ipc.open_file(path).read_all()
    return path.read_bytes()


def _dump(path: Path) -> list[object]:
    """Every row of every table of a ledger."""
    with sqlite3.connect(path) as database:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master")]
        kept = [name for name in tables if name in ("ledger", "inputs", "streams", "events")]
        return [(name, database.execute(f"SELECT * FROM {name}").fetchall()) for name in kept]


def same_both_ways(
    folder: Path, name: str, plan: Plan, days: Sequence[Day], *, ledger: bool = False
) -> Left:
    """Release both ways; assert that nothing tells them apart; what was left."""
    ways: Mapping[bool, Left] = {
        by_columns: released(folder, name, plan, days, ledger=ledger, by_columns=by_columns)
        for by_columns in (False, True)
    }
    rows, columns = ways[False], ways[True]
    assert columns.reports == rows.reports
    assert columns.remarks == rows.remarks
    assert columns.progress == rows.progress
    assert columns.outputs == rows.outputs
    assert columns.ledger == rows.ledger
    return columns
