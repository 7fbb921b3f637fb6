"""Releases of each job with some answers in their ledgers, for whoever reads them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from sfumato.core.alphabet import Alphabet
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import seeded
from sfumato.models.encoding import Symbols
from sfumato.models.markov import MarkovChain
from sfumato.models.stream_model import StreamModel
from sfumato.series import series_ledger
from sfumato.series.series_methods import series_method
from sfumato.series.series_spec import SeriesSpec
from sfumato.service.readable_release import CatalogueLine, ReadableRelease
from sfumato.store.codec import to_bytes
from sfumato.store.live_intake import ledger_id
from sfumato.store.memory import MemoryStore
from sfumato.store.protocol import Answer, Identity, Position, Store
from sfumato.store.sqlite import SqliteStore
from sfumato.stream import release_document
from sfumato.stream.plan import Plan
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.temporal import temporal_spec
from sfumato.temporal.temporal_rows import written_value
from sfumato.temporal.temporal_spec import TemporalSpec

PLACES = ("home", "work", "shop", "gym", "train")
BITS = ("no", "yes")


def sticky(symbols: Sequence[str], stay: float) -> StreamModel:
    """A model of values that mostly stay what they are."""
    size = len(symbols)
    move = (1 - stay) / (size - 1)
    rows = [[stay if x == y else move for y in range(size)] for x in range(size)]
    alphabet = Alphabet(symbols)
    chain = MarkovChain.from_matrix(rows, alphabet=alphabet)
    return StreamModel(chain, Symbols(alphabet), stream="person", values=("place",))


def opened(path: Path | None, plan: str, job: str, rules: str) -> Store:
    """A ledger in a file, or in memory."""
    from sfumato.store.protocol import Job

    store: Store
    if path is None:
        store = MemoryStore(plan=plan, job=Job(job), rules=rules)
    else:
        store = SqliteStore(path, plan, job=Job(job), rules=rules)
    store.begin("test", Identity.EVENT)
    return store


def stream_release(
    spec: ReleaseSpec, model: StreamModel, name: str = "city", path: Path | None = None
) -> ReadableRelease:
    """A release of symbols without answers; as a simulation, so that its coins may be seeded."""
    spec = msgspec.structs.replace(spec, purpose="simulation")
    rules = release_document.document(spec, model)
    plan = release_document.parse_spec(rules, "rules").plan(model)
    store = opened(path, plan.fingerprint, "release", rules.decode())
    return ReadableRelease(name, store, model)


def answer_stream(
    release: ReadableRelease, stream: str, values: Sequence[str], seed: int = 1
) -> list[Answer]:
    """Answer values of a stream from where it stands, each batch committed by itself."""
    from sfumato.service.stream_readouts import state_of

    rules = release.rules
    plan: Plan = rules.plan  # type: ignore[union-attr]
    store, coins, found = release.store, seeded(seed), list[Answer]()
    for start in range(0, len(values), plan.width):
        state = state_of(rules, stream, store.position(stream))  # type: ignore[arg-type]
        events, after = plan.step(state, values[start : start + plan.width], coins)
        answers = [
            Answer(
                ledger_id(stream, f"{stream}-{event.sequence}"),
                "test",
                event.sequence + 1,
                stream,
                event.sequence,
                event.outcome.value,
                event.released,
                event.sip.epsilon,
                event.ldp.epsilon,
                event.batch,
                f"2026-11-17T{event.sequence // 60 % 24:02d}:{event.sequence % 60:02d}:00",
                b"",
                event.signal,
            )
            for event in events
        ]
        ledger = after.ledger
        position = Position(stream, after.sequence, ledger.sip, ledger.ldp, to_bytes(after))
        store.commit(answers, [position])
        found += answers
    return found


def walked(model: StreamModel, length: int, seed: int) -> list[str]:
    """True values that move as the model says."""
    labels = model.alphabet.labels
    assert isinstance(model.chain, MarkovChain)
    return [str(labels[place]) for place in model.chain.sample(length, seeded(seed)).tolist()]


def series_release(length: int, values: int, path: Path | None = None) -> ReadableRelease:
    """A series of numbers, some of which were answered."""
    spec, purpose = SeriesSpec(1.0, 2.0, length=length, interval=(0.0, 100.0)), Purpose.SIMULATION
    method = series_method(spec)
    rules = msgspec.json.encode(series_ledger.rules_document(method, spec, purpose)).decode()
    plan = series_ledger.ledger_plan(method, spec, purpose)
    store = opened(path, plan, "realtime", rules)
    coins = method.own_coins(seeded(1), "meter", purpose)
    state = method.start(coins)
    for moment in range(values):
        (event,), state = method.step(state, [50.0 + moment], coins)
        left = spec.within(event.released)
        answer = Answer(
            f"m{moment}",
            "test",
            moment + 1,
            "meter",
            moment,
            event.outcome.value,
            left,
            event.charge,
            0.0,
        )
        store.commit([answer], [Position("meter", state.time, state.spent, 0.0, to_bytes(state))])
    return ReadableRelease("energy", store)


def temporal_release(values: int, path: Path | None = None) -> ReadableRelease:
    """Counts under correlation, some of which were answered."""
    matrix = [[0.8, 0.2], [0.1, 0.9]]
    spec = TemporalSpec(alpha=2.0, backward=[matrix], forward=[matrix], purpose="simulation")
    rules = temporal_spec.document(spec).decode()
    store = opened(path, spec.fingerprint, "temporal", rules)
    plan = spec.plan("tram")
    state = plan.begin("tram")
    for moment in range(values):
        (event,), state = plan.step(state, [40 + moment], seeded(moment))
        answer = Answer(
            f"t{moment}",
            "test",
            moment + 1,
            "tram",
            moment,
            "released",
            written_value(event.value),
            event.epsilon,
            event.epsilon,
        )
        position = Position("tram", state.sequence, state.spent, state.spent, to_bytes(state))
        store.commit([answer], [position])
    return ReadableRelease("counts", store)


@dataclass
class FixedReleases:
    """Releases that are given, the first of them the default."""

    releases: list[ReadableRelease] = field(default_factory=list)

    def readable(self, name: str | None, stream: str | None = None) -> ReadableRelease:
        for release in self.releases:
            if name in (None, release.name):
                return release
        raise LookupError(f"there is no release {name!r}")

    def others(self, name: str) -> Sequence[ReadableRelease]:
        return [release for release in self.releases if release.name != name]

    def unread(self) -> Sequence[str]:
        return []

    def catalogue(self, within: Collection[str] | None = None) -> Sequence[CatalogueLine]:
        models = [
            CatalogueLine("model", "city", 1, "2026-11-01T08:00:00Z", "5f1c9a20"),
            CatalogueLine("model", "city", 2, "2026-11-15T08:00:00Z", "d07e4b11"),
        ]
        made = [
            CatalogueLine(
                "release",
                release.name,
                created="2026-11-15T08:05:00Z",
                fingerprint=release.store.front.plan[:8],
                uses=("city",) if release.model else (),
                job=release.job,
                default=place == 0,
            )
            for place, release in enumerate(self.releases)
        ]
        return [*models, *made]

    def close(self) -> None:
        for release in self.releases:
            release.store.close()
