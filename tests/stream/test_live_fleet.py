"""Live events of streams that are released value by value, with and without a policy."""

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import sfumato as sf
from sfumato.core.randomness import Randomness, keyed
from sfumato.models.encoding import Bins, Grid, StreamModel, Symbols
from sfumato.store.live import Answered, Asked, Reason, Refused
from sfumato.store.live_intake import begun
from sfumato.store.memory import MemoryStore
from sfumato.stream.input_rows import Reading
from sfumato.stream.live_fleet import LiveFleet
from sfumato.stream.live_release import open_release
from sfumato.stream.release_run import RunSpec, release_table
from sfumato.stream.release_spec import JOB, ReleaseSpec, document, parse_spec
from sfumato.tables.cells import Late, Missing
from sfumato.tables.readers import Table
from tests.contracts.live_laws import (
    FEW,
    SECRET,
    LiveLaws,
    Opened,
    coins_or_fresh,
    reason,
    single,
)
from tests.contracts.live_stores import Place
from tests.shell.tables import write
from tests.stream.both_ways import model_of

BUDGET = 2.0


@cache
def policy_of(name: str = "words") -> sf.Policy:
    """A policy for a model of one of the encodings."""
    chain = model_of(name).chain
    assert isinstance(chain, sf.MarkovChain)
    loss = sf.loss.hamming(chain.alphabet)
    return sf.compile_policy(chain, loss, 1.0, steps=120, max_channels=12)


def rules_of(policy: sf.Policy | None, *, few: bool = False, **options: Any) -> bytes:
    """The rules of a release."""
    spec = ReleaseSpec(epsilon=1.0, loss="hamming", **options)
    if few:
        spec = ReleaseSpec(budget=BUDGET, horizon=FEW, loss="hamming", **options)
    named = None if policy is None else policy.fingerprint
    return document(msgspec.structs.replace(spec, policy=named), model_of("words"))


class StreamLaws(LiveLaws):
    """What live events of streams share."""

    readable = ("a", "b", "c")
    unreadable = ("d", "", None, ["a", "b"], {"value": "a", "other": "b"}, object())
    most_spent = BUDGET

    def policy(self) -> sf.Policy | None:
        """That of the release."""
        return policy_of()

    def open(
        self, place: Any, coins: Randomness | None = None, *, few: bool = False, source: str = "x"
    ) -> Opened:
        policy = self.policy()
        given = (rules_of(policy, few=few), model_of("words"), policy, place.open)
        return open_release(*given, coins_or_fresh(coins), source)

    def release_table(self, folder: Path, path: Path, events: list[Asked]) -> None:
        policy, model = self.policy(), model_of("words")
        rows = [[one.stream, one.value, one.id, one.time or ""] for one in events]
        source = Table.at(str(write(folder / "day.csv", ("person", "value", "id", "when"), rows)))
        plan = parse_spec(rules_of(policy), "rules").plan(model, policy)
        timed = events[0].time is not None
        reading = Reading(event="id", time="when" if timed else None)
        spec = RunSpec(reading=reading, ledger=path, randomness=keyed(SECRET))
        release_table(source, Table.at(str(folder / "out.csv")), model, plan, spec)


class TestLiveFleet(StreamLaws):
    """With a policy: by a fleet."""


class TestLivePlan(StreamLaws):
    """Without a policy: step by step."""

    def policy(self) -> None:
        return None
