"""Live events of streams that are released value by value, with and without a policy."""

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import sfumato as sf
from sfumato.core.randomness import Randomness, keyed
from sfumato.models.encoding import Bins, Grid, Symbols
from sfumato.models.stream_model import StreamModel
from sfumato.store.files import save
from sfumato.store.live import Answered, Asked, Reason, Refused
from sfumato.store.live_intake import begun
from sfumato.store.memory import MemoryStore
from sfumato.stream.input_rows import Reading
from sfumato.stream.live_fleet import LiveFleet
from sfumato.stream.live_release import open_release
from sfumato.stream.release_document import document, parse_spec
from sfumato.stream.release_run import RunSpec, release_table
from sfumato.stream.release_spec import JOB, ReleaseSpec
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
    table_coins,
    without_source,
)
from tests.contracts.live_stores import Place
from tests.shell.running import Result, call
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
        spec = RunSpec(reading=reading, ledger=path, randomness=table_coins(path))
        release_table(source, Table.at(str(folder / "out.csv")), model, plan, spec)

    def audit(self, path: Path) -> Result:
        save(model_of("words"), path.with_name("words.model"))
        given: list[object] = ["--model", path.with_name("words.model")]
        if (policy := self.policy()) is not None:
            save(policy, path.with_name("words.policy"))
            given += ["--policy", path.with_name("words.policy")]
        return call("audit", "--ledger", path, *given)


class TestLiveFleet(StreamLaws):
    """With a policy: by a fleet."""


class TestLivePlan(StreamLaws):
    """Without a policy: step by step."""

    def policy(self) -> None:
        return None


# What else a fleet keeps --------------------------------------------------------------------------


def fleet(model: StreamModel, plan: sf.Plan, **options: Any) -> tuple[LiveFleet, MemoryStore]:
    """A live fleet in memory."""
    store = MemoryStore(plan=plan.fingerprint, job=JOB)
    return LiveFleet(store, begun(store, "x"), model, plan, keyed(SECRET), **options), store


def plan_with(name: str, **options: Any) -> sf.Plan:
    """A plan with a policy for a model of one of the encodings."""
    chain = model_of(name).chain
    assert isinstance(chain, sf.MarkovChain)
    loss = sf.loss.hamming(chain.alphabet)
    given = {"budget": sf.PerStep(sf.SIP(1.0)), "policy": policy_of(name), **options}
    return sf.Plan(chain, loss=loss, **given)


def test_streams_beyond_the_bound_are_read_again_from_the_store() -> None:
    plan = plan_with("words")
    (small, _), (large, _) = (fleet(model_of("words"), plan, most_streams=n) for n in (2, 100))
    events = [Asked(f"e{n}", f"u{n % 5}", "abc"[n % 3], str(n)) for n in range(40)]
    parts = [events[start : start + 3] for start in range(0, 40, 3)]
    told = [[r for part in parts for r in run.answer(part)] for run in (small, large)]
    first, second = ([without_source(single(one)) for one in replies] for replies in told)
    assert first == second
    assert len(small._copy) <= 3 and len(large._copy) == 5


def test_a_budget_that_ends_within_a_call_refuses_the_rest_alone() -> None:
    plan = plan_with("words", budget=sf.Horizon(sf.SIP(2.0), 5))
    run, store = fleet(model_of("words"), plan)
    events = [Asked(f"e{n}", "ann" if n % 2 else f"u{n % 7}", "a") for n in range(200)]
    replies = run.answer(events)
    assert [count for _, count in store.streams()] == [5] * 8
    for reply in replies:
        assert isinstance(reply, Answered) or reason(reply) is Reason.BUDGET
    assert all(isinstance(one, Refused) for one in run.answer([Asked("z", "ann", "a")]))


def test_who_asks_after_the_end_of_a_budget_is_refused_by_array() -> None:
    plan = plan_with("words", budget=sf.Horizon(sf.SIP(2.0), 1))
    run, _ = fleet(model_of("words"), plan)
    run.answer([Asked(f"e{n}", f"u{n}", "a") for n in range(50)])
    steps: list[int] = []
    real = run._copy.fleet.run
    run._copy.fleet.run = lambda cells, which: steps.append(len(cells)) or real(cells, which)  # type: ignore
    replies = run.answer([Asked(f"f{n}", f"u{n}", "a") for n in range(51)])
    assert steps == [1]
    assert [isinstance(one, Answered) for one in replies] == [False] * 50 + [True]


@pytest.mark.parametrize("fallback", [sf.Fallback.SUPPRESS, sf.Fallback.REPEAT])
def test_fallbacks_answer_instead_of_refusing(fallback: sf.Fallback) -> None:
    budget = sf.Horizon(sf.SIP(2.0), 2)
    plan = plan_with("words", budget=budget, on_exhausted=fallback, on_unknown=fallback)
    run, _ = fleet(model_of("words"), plan)
    told = [single(one) for one in run.answer([Asked(f"e{n}", "ann", "axab"[n]) for n in range(4)])]
    outcomes = {sf.Fallback.SUPPRESS: "suppressed", sf.Fallback.REPEAT: "repeated"}
    assert [one.outcome for one in told] == ["released", *[outcomes[fallback]] * 3]
    assert told[2].leakage == 0.0


@pytest.mark.parametrize(
    ("missing", "outcomes"),
    [
        (Missing.SKIP, ["released", "skipped", "skipped", "released"]),
        (Missing.SYMBOL, ["released"] * 4),
        (Missing.DROP, ["released", None, None, "released"]),
        (Missing.REFUSE, ["released", None, None, "released"]),
    ],
)
def test_missing_values_follow_the_rules(missing: Missing, outcomes: list[str | None]) -> None:
    name = "with missing" if missing is Missing.SYMBOL else "words"
    run, _ = fleet(model_of(name), plan_with(name), missing=missing)
    replies = run.answer([Asked(f"e{n}", "ann", v) for n, v in enumerate(["a", None, " ", "b"])])
    found = [single(one).outcome if isinstance(one, Answered) else None for one in replies]
    assert found == outcomes


def test_late_events_are_taken_where_the_rules_say_so() -> None:
    run, _ = fleet(model_of("words"), plan_with("words"), late=Late.ACCEPT)
    replies = run.answer([Asked(f"e{n}", "ann", "a", time) for n, time in enumerate("312")])
    assert [single(one).sequence for one in replies] == [0, 1, 2]


def test_streams_are_read_again_only_if_another_node_has_committed(tmp_path: Path) -> None:
    """Also those that this node did not use when it noticed that another had."""
    place, plan = Place("shared", tmp_path), plan_with("words")
    stores = [place.open(plan.fingerprint, JOB, "") for _ in range(2)]
    one, other = (
        LiveFleet(store, begun(store, f"node {n}"), model_of("words"), plan, keyed(SECRET))
        for n, store in enumerate(stores)
    )
    reads: list[list[str]] = []
    real = stores[0].ends
    stores[0].ends = lambda names: reads.append([*names]) or real(names)  # type: ignore
    asked = [(one, "ann"), (one, "ann"), (other, "ann"), (one, "bob"), (one, "ann"), (one, "ann")]
    told = [run.answer([Asked(f"e{n}", who, "a")]) for n, (run, who) in enumerate(asked)]
    assert [single(reply).sequence for (reply,) in told] == [0, 1, 2, 0, 3, 4]
    assert reads == [["ann"], ["bob"], ["ann"]]


def test_an_event_that_is_judged_again_gets_no_answer_of_another() -> None:
    """The second is refused, so the third is not late; it is drawn after the fourth."""
    plan = plan_with("words", budget=sf.Horizon(sf.SIP(2.0), 1))
    run, _ = fleet(model_of("words"), plan, missing=Missing.SKIP)
    asked = [("ann", "a", "1"), ("ann", "a", "9"), ("ann", None, "5"), ("bob", "b", "1")]
    events = [Asked(f"e{n}", *given) for n, given in enumerate(asked)]
    first, second, third, fourth = run.answer(events)
    assert reason(second) is Reason.BUDGET
    told = [(one.id, one.stream) for one in map(single, (first, third, fourth))]
    assert told == [("e0", "ann"), ("e2", "ann"), ("e3", "bob")]


@pytest.mark.parametrize("name", ["bins", "clipped bins", "grid", "clipped grid", "numbers"])
def test_values_are_read_as_their_encoding_reads_them(name: str) -> None:
    """Numbers by array, and one by one where they are spelled otherwise."""
    model = model_of(name)
    run, _ = fleet(model, plan_with(name, on_unknown=sf.Fallback.SUPPRESS))
    draw = np.random.default_rng(1)
    points = draw.uniform(-1.5, 5.0, size=(60, 2)).tolist()
    values: list[Any] = [list(point) for point in points]
    if not isinstance(model.encoding, Grid):
        values = [point[0] for point in points]
    if isinstance(model.encoding, Symbols):
        values = draw.choice([1, 2, 30, 31], size=60).tolist()
    as_text = [[str(part) for part in one] if isinstance(one, list) else str(one) for one in values]
    mixed = [*as_text[:30], *values[30:]]
    tags = []
    for part, given in enumerate((values, as_text, mixed)):
        own, _ = fleet(model, plan_with(name, on_unknown=sf.Fallback.SUPPRESS))
        own._source = run._source
        replies = own.answer([Asked(f"e{n}", "ann", value) for n, value in enumerate(given)])
        tags.append([(single(one).tag, single(one).released) for one in replies])
        assert part == 0 or tags[part] == tags[0]
    if isinstance(model.encoding, Bins | Grid):
        (reply,) = run.answer([Asked("bad", "ann", [float("inf"), 0.0])])
        assert reason(reply) is Reason.VALUE


def test_replies_by_columns_are_those_one_by_one() -> None:
    run, _ = fleet(model_of("words"), plan_with("words"))
    ids, streams, values = (
        ["e1", "e2", "e3", "e1"],
        ["ann", "bob", "ann", "ann"],
        ["a", "b", "?", "a"],
    )
    columns = run.answer_columns(ids, streams, values)
    assert len(columns) == 4 and columns.rows.tolist() == [0, 1] and columns.fresh is not None
    first, second, third, fourth = columns.replies()
    assert (single(first).id, single(second).id) == ("e1", "e2")
    assert reason(third) is Reason.VALUE and single(fourth) == single(first)
    assert run.answer_columns([], [], []).replies() == []


def test_a_release_opens_under_its_own_model_and_policy_alone(tmp_path: Path) -> None:
    rules, place, coins = rules_of(policy_of()), Place("sqlite", tmp_path), sf.secure()
    wrong = [
        (None, policy_of(), coins),
        (model_of("words"), None, coins),
        (model_of("numbers"), policy_of(), coins),
        (model_of("words"), policy_of(), sf.seeded(1)),
    ]
    for model, policy, own in wrong:
        with pytest.raises(sf.SfumatoError):
            open_release(rules, model, policy, place.open, own, "x")
    with pytest.raises(sf.SfumatoError):
        symbol = rules_of(policy_of(), missing="symbol")
        open_release(symbol, model_of("words"), policy_of(), place.open, coins, "x")
    assert not place.path.exists()
