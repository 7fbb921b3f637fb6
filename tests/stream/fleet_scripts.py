"""Plans with policies, value by value and in batches, and scripts that fleets play from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import tests.compiled as compiled
from sfumato import (
    LDP,
    SIP,
    Alphabet,
    Event,
    Fleet,
    Horizon,
    MarkovChain,
    PerStep,
    Plan,
    Policy,
    Window,
    compile_policy,
    keyed,
    loss,
    seeded,
)
from sfumato.core.budgets import Budget
from sfumato.core.bursts import Bursts, WindowBursts
from sfumato.core.randomness import Address, Randomness
from sfumato.store import to_bytes
from sfumato.stream import Geometric, StreamState
from sfumato.stream.partition.batch_loss import BatchLoss, additive
from tests.oracles.batches import Process, chain_of, random_process

SECRET = b"a secret of sixteen bytes or more"
ALPHA = 1e-6  # false alarm rate of a statistical test
COUNT = 20_000  # streams of such a test
NAMES = ("ann", "bob", "eve", "zoe", "kim")
BUDGETS: dict[str, Budget] = {
    "per step": PerStep(SIP(1.0)),
    "per step, capped": PerStep(SIP(0.4), LDP(0.6)),
    "horizon": Horizon(SIP(4.0), 7),
    "horizon, capped": Horizon(SIP(4.0), 7, LDP(6.0)),
    "window": Window(SIP(2.0), 3),
    "window, capped": Window(SIP(2.0), 3, LDP(2.5)),
    "geometric": Geometric(SIP(3.0), 0.7),
    "geometric, capped": Geometric(SIP(3.0), 0.7, LDP(4.0)),
    "bursts": Bursts(SIP(4.0), 8, None, 3, 1.5),
    "bursts in a window, capped": WindowBursts(SIP(2.0), 4, LDP(3.0), 2),
}
BATCH_BUDGETS: dict[str, Budget] = {
    "per step": PerStep(SIP(0.5)),
    "per step, capped": PerStep(SIP(0.4), LDP(0.5)),
    "horizon": Horizon(SIP(4.0), 9),
    "horizon, capped": Horizon(SIP(4.0), 9, LDP(5.0)),
    "window": Window(SIP(2.0), 5),
    "window, capped": Window(SIP(2.0), 5, LDP(2.4)),
    "geometric": Geometric(SIP(3.0), 0.8),
    "geometric, capped": Geometric(SIP(3.0), 0.8, LDP(4.0)),
    "bursts": Bursts(SIP(4.0), 12, None, 4, 1.5),
    "bursts in a window, capped": WindowBursts(SIP(3.0), 6, LDP(4.0), 5),
}


@dataclass(frozen=True)
class Setting:
    """A process in fractions, the same chain, and the length of its batches."""

    process: Process
    chain: MarkovChain
    width: int

    @property
    def loss(self) -> BatchLoss:
        return additive(loss.hamming(self.chain.alphabet))


def _setting(size: int, order: int, width: int, *, thin: bool = False) -> Setting:
    process = random_process(size, order, np.random.default_rng(10 * size + order), sticky=1.5)
    alphabet = Alphabet("abc"[:size]) if order == 1 else None
    return Setting(process, chain_of(process, thin=thin, alphabet=alphabet), width)


SETTINGS = {
    "letters in pairs": _setting(3, 1, 2),
    "letters in threes": _setting(2, 1, 3, thin=True),
    "order two in threes": _setting(2, 2, 3),
    "order two in pairs": _setting(3, 2, 2, thin=True),
    "order three in threes": _setting(2, 3, 3),
    "one by one": _setting(3, 1, 1),
}


@cache
def policy_of(name: str, method: str = "optimal") -> Policy:
    """A policy; for batches, half a unit per value, from a short simulation."""
    if name in compiled.CHAINS:
        return compiled.policy_of(name, 1.0, None, method)
    setting = SETTINGS[name]
    return compile_policy(
        setting.chain,
        setting.loss,
        0.5 * setting.width,
        width=setting.width,
        method=method,
        steps=96,
        max_channels=12,
    )


def plan_of(name: str, budget: Budget | str = "per step", **options: Any) -> Plan:
    """The plan of a chain, value by value, or of a setting, in batches."""
    in_batches = name in SETTINGS
    if isinstance(budget, str):
        budget = (BATCH_BUDGETS if in_batches else BUDGETS)[budget]
    if not in_batches:
        return compiled.plan_of(name, budget, **options)
    setting = SETTINGS[name]
    options.setdefault("policy", policy_of(name))
    return Plan(setting.chain, budget, setting.loss, setting.width, **options)


def keyed_coins() -> Randomness:
    return keyed(SECRET)


@dataclass(frozen=True)
class Move:
    """What some streams do together: a whole batch each, a shorter one, or nothing."""

    which: list[int] | None
    batches: list[list[Any]]
    short: bool = False

    @property
    def streams(self) -> Sequence[int]:
        return range(len(NAMES)) if self.which is None else self.which


def moves(plan: Plan, steps: int, strange: object = None) -> list[Move]:
    """Everybody, some in another order, short batches in the middle, a pause, a stranger."""
    draw, labels, width = np.random.default_rng(steps), plan.model.alphabet.labels, plan.width

    def batch(length: int) -> list[Any]:
        return [labels[place] for place in draw.integers(0, len(labels), length)]

    script = []
    for step in range(steps):
        which = draw.permutation(len(NAMES))[: 2 + step % 3].tolist() if step % 3 == 1 else None
        if step % 5 == 4:
            script.append(Move(which, []))
        if width > 1 and step % 3 == 2:
            ended = draw.permutation(len(NAMES))[:2].tolist()
            script += [Move([one], [batch(1 + step % (width - 1))], short=True) for one in ended]
        batches = [batch(width) for _ in (NAMES if which is None else which)]
        if strange is not None and step % 2:
            batches[step % len(batches)][step % width] = strange
        script.append(Move(which, batches))
    return script


def together(fleet: Fleet, script: Sequence[Move]) -> list[tuple[Event, ...]]:
    """What a fleet answers to a script."""
    events: list[tuple[Event, ...]] = []
    for move in script:
        which = None if move.which is None else np.array(move.which)
        if not move.batches:
            fleet.skip(which)
        elif move.short:
            events.append(fleet.flush(move.streams[0], move.batches[0]))
        else:
            alone = not fleet.plan.in_batches
            told = fleet.step([b[0] for b in move.batches] if alone else move.batches, which)
            assert len(told) == len(move.batches)
            assert list(told.streams) == [NAMES[place] for place in move.streams]
            assert [events[0].stream for events in told] == list(told.streams)
            events += list(told)
    return events


def apart(
    plan: Plan, script: Sequence[Move], coins: Randomness
) -> tuple[list[tuple[Event, ...]], list[StreamState]]:
    """The same script, stream by stream, by the rule alone."""
    states, events = [plan.begin(name) for name in NAMES], []
    for move in script:
        for row, stream in enumerate(move.streams):
            if move.batches:
                told, states[stream] = plan.step(states[stream], move.batches[row], coins)
                events.append(told)
            else:
                _, states[stream] = plan.skip(states[stream], plan.width)
    return events, states


def everything(fleet: Fleet) -> list[bytes]:
    return [to_bytes(fleet.state(stream)) for stream in range(len(fleet))]


def same(
    plan: Plan, script: Sequence[Move], coins: Callable[[], Randomness], **options: Any
) -> list[Event]:
    """Hold a fleet against single streams, to the last bit; return its events."""
    fleet = Fleet(plan, NAMES, randomness=coins(), **options)
    events = together(fleet, script)
    due, states = apart(plan, script, coins())
    assert events == due
    assert everything(fleet) == [to_bytes(state) for state in states]
    assert fleet.spent.tolist() == [[state.ledger.sip, state.ledger.ldp] for state in states]
    return [event for batch in events for event in batch]


class Bulk:
    """Seeded coins that are not tied to addresses: quick for many streams."""

    simulated = True
    addressed = False

    def __init__(self, seed: int) -> None:
        self._source = seeded(seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        return self._source.words(count)

    def word(self) -> int:
        return self._source.word()

    def at(self, address: Address) -> Randomness:
        return self


def assert_drawn_from(
    counts: NDArray[np.int64], row: NDArray[np.float64], place: int, wrong: Sequence[float]
) -> None:
    """Counts of outputs fit a row of a channel, and none whose entry at a place is a little off."""

    def fit(shares: NDArray[np.float64]) -> float:
        return float(stats.chisquare(counts, shares / shares.sum() * counts.sum()).pvalue)

    assert counts.sum() == COUNT and len(row) > 1
    assert fit(row) > ALPHA
    for factor in wrong:
        off = row.copy()
        off[place] *= factor
        assert fit(off) < ALPHA
