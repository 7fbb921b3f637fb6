"""A release as readouts see it: its ledger, and the public rules that a ledger alone does not hold.

Everything a readout says is a function of public things: rules, model, policy, and what left. The
ledger is read beside the live run, by a connection of its own where it is a file, so that whoever
looks never waits for, or holds up, those who are answered.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeAlias, cast

import msgspec

from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.models.stream_model import StreamModel
from sfumato.series.live_series import live_method
from sfumato.series.series_audit import read_rules
from sfumato.series.series_ledger import JOB as SERIES
from sfumato.series.series_methods import AnyMethod
from sfumato.series.series_spec import SeriesSpec
from sfumato.solver.policy import Policy
from sfumato.store.codec import to_bytes
from sfumato.store.ledger_reader import LedgerReader
from sfumato.store.ledger_search import ReadableLedger, Snapshots
from sfumato.store.protocol import Store
from sfumato.store.sqlite import SqliteStore
from sfumato.stream.model_loss import unit_of
from sfumato.stream.plan import Plan
from sfumato.stream.release_document import parse_spec as stream_rules
from sfumato.stream.release_spec import JOB as STREAM
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.temporal.temporal_spec import JOB as TEMPORAL
from sfumato.temporal.temporal_spec import TemporalSpec
from sfumato.temporal.temporal_spec import parse_spec as temporal_rules


@dataclass(frozen=True, slots=True)
class StreamRules:
    """The rules of job `release`, with the plan that they make."""

    spec: ReleaseSpec
    model: StreamModel
    plan: Plan

    @property
    def unit(self) -> str:
        """What a loss is in, as words to put behind it."""
        return unit_of(self.spec.loss_for(self.model), self.model)


@dataclass(frozen=True, slots=True)
class SeriesRules:
    """The rules of job `realtime`.

    Attributes:
        spec: What was asked for.
        method: The noise that it makes.
        filtered: The same with its filter, where the rules say all of that.
    """

    spec: SeriesSpec
    method: AnyMethod
    filtered: AnyMethod | None = None


@dataclass(frozen=True, slots=True)
class TemporalRules:
    """The rules of job `temporal release`."""

    spec: TemporalSpec


Rules: TypeAlias = StreamRules | SeriesRules | TemporalRules


@dataclass(frozen=True)
class ReadableRelease:
    """One release, to be shown.

    Attributes:
        name: What the registry calls it.
        store: Its ledger, perhaps held by a live run at the same time.
        model: What the adversary is assumed to know; job `release` has one.
        policy: The compiled policy, if it has one.
    """

    name: str
    store: Store
    model: StreamModel | None = None
    policy: Policy | None = field(default=None, repr=False)

    @property
    def job(self) -> str:
        """The job that answers its events."""
        return self.store.front.job

    @cached_property
    def rules(self) -> Rules:
        """What the ledger says that the release does, with its plan.

        Raises:
            CorruptData: If it says nothing that a release does, or the model is missing.
        """
        text = self.store.front.rules
        where = f"release {self.name!r}"
        if text is None:
            raise CorruptData(f"{where}: its ledger must hold its rules; it holds none")
        match self.job:
            case STREAM.name if self.model is not None:
                spec = stream_rules(text.encode(), where)
                return StreamRules(spec, self.model, spec.plan(self.model, self.policy))
            case SERIES.name:
                series, method, _ = read_rules(msgspec.json.decode(text), where)
                return SeriesRules(series, method, _filtered(text))
            case TEMPORAL.name:
                return TemporalRules(temporal_rules(text.encode(), where))
            case _:
                raise CorruptData(f"{where}: its job must be one that is shown, with its model")

    @cached_property
    def model_digest(self) -> bytes | None:
        """Tells whether two releases rest on the same model; None without one."""
        return None if self.model is None else hashlib.sha256(to_bytes(self.model)).digest()

    @contextlib.contextmanager
    def ledger(self) -> Iterator[ReadableLedger]:
        """Its ledger as it is now; of a file a snapshot that others do not wait for."""
        if isinstance(self.store, SqliteStore) and self.store.path is not None:
            with LedgerReader(self.store.path, self.store.front.plan) as reader:
                yield reader
        elif isinstance(self.store, Snapshots):
            with self.store.snapshot() as snapshot:
                yield snapshot
        else:
            yield cast(ReadableLedger, self.store)  # memory


@dataclass(frozen=True, slots=True)
class CatalogueLine:
    """What the registry says of a model, policy or release.

    Attributes:
        kind: `model`, `policy` or `release`.
        name: Its name.
        version: Which of its name, from 1.
        created: When, as the registry wrote it.
        fingerprint: Of its content.
        uses: Names of what it is made of: a release names its model and policy.
        job: The job of a release.
        status: `ready`, `preparing` or `failed`.
        default: Whether it is the default release.
        detail: Why it failed, for administrators.
        closed: Since when a release answers nothing new; None if it does.
    """

    kind: str
    name: str
    version: int = 1
    created: str | None = None
    fingerprint: str = ""
    uses: tuple[str, ...] = ()
    job: str | None = None
    status: str = "ready"
    default: bool = False
    detail: str = ""
    closed: str | None = None


class Releases(Protocol):
    """Where readouts find releases; what holds the registry implements it."""

    def readable(self, name: str | None, stream: str | None = None) -> ReadableRelease:
        """A release by name; else that of a stream which began in one, or the default.

        Raises:
            LookupError: If there is none.
        """
        ...

    def others(self, name: str) -> Sequence[ReadableRelease]:
        """All open releases but one."""
        ...

    def unread(self) -> Sequence[str]:
        """Names of the releases that are not open."""
        ...

    def catalogue(self, within: Collection[str] | None = None) -> Sequence[CatalogueLine]:
        """Everything that was registered, oldest first; of some releases, what they rest on."""
        ...


def _filtered(text: str) -> AnyMethod | None:
    try:
        return live_method(text.encode())[1]
    except InvalidParameter:
        return None  # released by a table, with a filter that the rules only name


def plain(value: Any) -> str | int | float | None:
    """A released value as a document has it."""
    return value if value is None or isinstance(value, str | int | float) else str(value)
