"""What the library answers with coins that are known: one case for each part of it.

Coins of `seeded` and `keyed` depend on the fingerprint of a plan; those of `Dice` do not, so a case
that has them tells apart a changed rule from a changed fingerprint.
"""

import ast
import random
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from tests.shell.golden_cases import SECRET, blocks, people
from tests.shell.golden_text import document, lines_table, stored, table
from tests.shell.tables import PLACES, walk

MODULES = {
    "Histogram": "sfumato.temporal.temporal_mechanisms",
    "Answer": "sfumato.temporal.temporal_mechanisms",
}
"""Names that the top of the package does not have, and where they are: all to change in a move."""


class _Public:
    """The package as its users see it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(MODULES.get(name, "sfumato")), name)


sf = _Public()

MATRIX = [[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]]
BELIEF = [0.5, 0.3, 0.2]
FIRST = 50
"""Released values that are told of a stream."""

Sections = dict[str, Any]
CASES: dict[str, Callable[[], Sections]] = {}


def case(make: Callable[[], Sections]) -> Callable[[], Sections]:
    """Note a case under the name of its function."""
    CASES[f"python-{make.__name__.replace('_', '-')}"] = make
    return make


def transcript(name: str) -> str:
    """What a case tells."""
    return document(CASES[name]())


class Dice:
    """Coins that do not depend on an address: the words of a generator, one after another."""

    simulated = False
    addressed = False

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next words."""
        return np.array([self._rng.getrandbits(64) for _ in range(count)], dtype=np.uint64)

    def word(self) -> int:
        """The next word."""
        return self._rng.getrandbits(64)

    def at(self, address: object) -> "Dice":
        """Everywhere the same."""
        return self


def plainly(thing: Any) -> Any:
    """Values as documents: records entry by entry, arrays as lists."""
    match thing:
        case dict():
            return {str(key): plainly(item) for key, item in thing.items()}
        case list() | tuple():
            return [plainly(item) for item in thing]
        case np.ndarray() | np.generic():
            return thing.tolist()
        case _ if is_dataclass(thing) and not isinstance(thing, type):
            try:
                return {type(thing).__name__: plainly(asdict(thing))}
            except TypeError:
                return repr(thing)
        case _:
            return thing


def chain() -> Any:
    """Three symbols that mostly stay."""
    return sf.MarkovChain.from_matrix(MATRIX)


def paths() -> list[list[str]]:
    """Recorded streams of four places."""
    streams: dict[str, list[str]] = {}
    for person, place in walk(1, rows=400):
        streams.setdefault(person, []).append(place)
    return list(streams.values())


def truth(length: int = 80) -> list[Any]:
    """A stream of the chain's symbols."""
    labels = chain().alphabet.labels
    return [labels[int(place)] for place in chain().sample(length, sf.seeded(3))]


def simulated() -> dict[str, Any]:
    """Seeded coins, and leave to use them."""
    return {"randomness": sf.seeded(5), "purpose": sf.Purpose.SIMULATION}


def spread(words: Sequence[object]) -> list[str]:
    """The first of what was released, and how often each occurs."""
    told = lines_table("\n".join(f'{{"released": "{word}"}}' for word in words))
    return [", ".join(map(str, words[:FIRST])), *list(table(told))[-2:]]


def release_of(release: Any, values: Sequence[Any]) -> Sections:
    """Released values, what was charged for each, and the account at the end."""
    events = [release.step(value) for value in values]
    return {
        "released (exact)": spread([event.released for event in events]),
        "charged": {
            "sip": [event.sip.epsilon for event in events],
            "ldp": [event.ldp.epsilon for event in events],
            "outcomes": sorted({event.outcome.value for event in events}),
        },
        "account": {"spent": str(release.ledger.spent), **asdict(release.ledger)},
        "state": list(stored(sf.store.to_bytes(release.state))),
    }


# Releases ----------------------------------------------------------------------------------------

BUDGETS: Mapping[str, Any] = {
    "per step": sf.PerStep(sf.SIP(0.3)),
    "capped": sf.PerStep(sf.SIP(0.3), sf.LDP(0.4)),
    "horizon": sf.Horizon(sf.SIP(10.0), 100),
    "window": sf.Window(sf.SIP(2.0), 5),
    "geometric": sf.stream.Geometric(sf.SIP(5.0), ratio=0.95),
}


@case
def instant_budgets() -> Sections:
    told: Sections = {}
    for name, budget in BUDGETS.items():
        release = sf.InstantRelease(
            chain(), budget=budget, loss=sf.loss.hamming(chain().alphabet), **simulated()
        )
        told |= {f"{name}: {part}": told_ for part, told_ in release_of(release, truth()).items()}
    return told


@case
def instant_periods() -> Sections:
    day = sf.stream.Period("day")
    release = sf.InstantRelease(
        chain(),
        budget=sf.PerPeriod(sf.SIP(1.0), day, cap=sf.SIP(0.5)),
        loss=sf.loss.hamming(chain().alphabet),
        on_exhausted=sf.Fallback.SUPPRESS,
        **simulated(),
    )
    # Four values a day, the first before 1970: the budget of a day is gone before it ends.
    days = [place // 4 - 1 for place in range(12)]
    events = [release.step(value, period=at) for value, at in zip(truth(), days, strict=False)]
    told = [(event.period, event.released, event.outcome.value, event.sip) for event in events]
    return {"events": list(map(str, told)), "spent": str(release.ledger.spent)}


@case
def instant_dice() -> Sections:
    told: Sections = {}
    losses = {
        "hamming": sf.loss.hamming(chain().alphabet),
        "absolute": sf.loss.absolute(chain().alphabet),
        "squared": sf.loss.squared(chain().alphabet),
        "matrix": sf.loss.matrix([[0, 1, 3], [1, 0, 1], [2, 1, 0]]),
    }
    for name, loss in losses.items():
        release = sf.InstantRelease(chain(), budget=sf.SIP(0.4), loss=loss, randomness=Dice(1))
        told |= {f"{name}: {part}": told_ for part, told_ in release_of(release, truth()).items()}
    return told


@case
def instant_methods() -> Sections:
    told: Sections = {}
    for method in sf.Method:
        if method in (sf.Method.PAPER, sf.Method.FAR_SIGHTED):
            continue  # one does not keep its budget, the other takes seconds to look ahead
        release = sf.InstantRelease(
            chain(),
            budget=sf.SIP(0.4),
            loss=sf.loss.absolute(chain().alphabet),
            method=method,
            randomness=sf.keyed(SECRET),
        )
        told |= {
            f"{method.value}: {part}": told_
            for part, told_ in release_of(release, truth(50)).items()
        }
    return told


@case
def instant_fallbacks() -> Sections:
    told: Sections = {}
    for fallback in ("suppress", "repeat"):
        release = sf.InstantRelease(
            chain(),
            budget=sf.Horizon(sf.SIP(2.0), 10),
            loss=sf.loss.hamming(chain().alphabet),
            on_exhausted=fallback,
            on_unknown="substitute",
            **simulated(),
        )
        values = [*truth(15), "nowhere", *truth(5)]
        told |= {
            f"{fallback}: {part}": told_ for part, told_ in release_of(release, values).items()
        }
    return told


def clusters() -> Any:
    """Two kinds of people: those whose values move as they do, and those who go backwards."""
    forwards = sf.MarkovChain.fit(paths())
    kinds = (forwards, forwards.reversed())
    return sf.stream.ClusteredChain(np.array([0.75, 0.25]), kinds, 0.001)


@case
def periodic_models() -> Sections:
    """A chain that changes with time: by the place in the stream, and by the hour."""
    turns = sf.stream.PeriodicChain.fit(paths(), sf.stream.Cycle.of("6", phases=3))
    loss = sf.loss.hamming(turns.alphabet)
    release = sf.InstantRelease(turns, budget=sf.SIP(0.5), loss=loss, **simulated())
    hours = [[place % 24 // 6 for place in range(len(path))] for path in paths()]
    day = sf.stream.PeriodicChain.fit(paths(), sf.stream.Cycle.of("hour", 4), phases=hours)
    return {
        **release_of(release, paths()[0][:30]),
        "model": {
            "fingerprints": [turns.fingerprint, day.fingerprint],
            "rows": [day.at(phase).row(0) for phase in range(4)],
            "initial": day.initial.tolist(),
        },
        "file": list(stored(sf.store.to_bytes(day))),
    }


@case
def instant_models() -> Sections:
    models = {
        "order 2": sf.MarkovChain.fit(paths(), order=2),
        "pairs": sf.stream.PairChain.fit(paths()),
        "clusters": clusters(),
        "prior": sf.Prior([0.4, 0.3, 0.2, 0.1], sf.Alphabet(sorted(PLACES))),
    }
    told: Sections = {}
    for name, model in models.items():
        release = sf.InstantRelease(
            model, budget=sf.SIP(0.5), loss=sf.loss.hamming(model.alphabet), **simulated()
        )
        told |= {
            f"{name}: {part}": told_ for part, told_ in release_of(release, paths()[0][:60]).items()
        }
    return told


@case
def instant_skips() -> Sections:
    release = sf.InstantRelease(
        chain(), budget=sf.SIP(0.4), loss=sf.loss.hamming(chain().alphabet), **simulated()
    )
    released = []
    for place, value in enumerate(truth(40)):
        if place % 4 == 3:
            release.skip()
        else:
            released.append(release(value))
    return {"released (exact)": spread(released), "account": plainly(release.ledger)}


def batches(release: Any, values: Sequence[Any]) -> Sections:
    """As `release_of`, for values that leave together."""
    events = [event for value in values for event in release.add(value)]
    events += release.flush()
    return {
        "released (exact)": spread([event.released for event in events]),
        "charged": {
            "sip": [event.sip.epsilon for event in events],
            "ldp": [event.ldp.epsilon for event in events],
            "batches": [event.batch for event in events],
        },
        "account": plainly(release.ledger),
        "state": list(stored(sf.store.to_bytes(release.state))),
    }


@case
def batched() -> Sections:
    alphabet = chain().alphabet
    ways: dict[str, dict[str, Any]] = {
        "width 2": {"width": 2, "loss": sf.loss.hamming(alphabet), **simulated()},
        "width 3": {"width": 3, "loss": sf.loss.absolute(alphabet), **simulated()},
        "histogram": {"width": 3, "loss": sf.stream.batch_loss.histogram(alphabet), **simulated()},
        "compared": {
            "width": 2,
            "loss": sf.stream.batch_loss.compared(alphabet, lambda a, b: float(a != b)),
            **simulated(),
        },
        "memory": {"width": 2, "memory": 2, "loss": sf.loss.hamming(alphabet), **simulated()},
        "dice": {"width": 2, "loss": sf.loss.hamming(alphabet), "randomness": Dice(1)},
        "keyed": {"width": 4, "loss": sf.loss.hamming(alphabet), "randomness": sf.keyed(SECRET)},
    }
    told: Sections = {}
    for name, way in ways.items():
        release = sf.BatchedRelease(chain(), budget=sf.SIP(0.4), **way)
        told |= {f"{name}: {part}": told_ for part, told_ in batches(release, truth(61)).items()}
    library = sf.PatternLibrary.fit(paths(), width=3, most=40)
    release = sf.BatchedRelease(
        library,
        width=3,
        budget=sf.SIP(0.5),
        loss=sf.loss.hamming(library.alphabet),
        **simulated(),
    )
    found = batches(release, paths()[0][:40])
    return told | {f"library: {part}": told_ for part, told_ in found.items()}


def _steps(fleet: Any, moments: Sequence[Sequence[Any]]) -> Sections:
    steps = [fleet.step(values) for values in moments]
    labels = [label for step in steps for label in step.labels()]
    return {
        "released (exact)": spread(["/".join(map(str, np.ravel(label))) for label in labels]),
        "charges": [np.asarray(step.charges).ravel() for step in steps],
        "state": list(stored(sf.store.to_bytes(fleet.state(1)))),
    }


@case
def fleets() -> Sections:
    loss, names = sf.loss.hamming(chain().alphabet), [f"s{number}" for number in range(8)]
    budget, purpose = sf.PerStep(sf.SIP(0.4)), sf.Purpose.SIMULATION
    policy = sf.compile_policy(chain(), loss, 0.4, steps=60)
    plans = {
        "per step": sf.Plan(chain(), budget, loss, purpose=purpose, policy=policy),
        "window": sf.Plan(chain(), sf.Window(sf.SIP(2.0), 5), loss, purpose=purpose, policy=policy),
    }
    values = [truth(80)[moment::10] for moment in range(10)]
    told: Sections = {}
    for name, plan in plans.items():
        fleet = sf.Fleet(plan, names, randomness=sf.seeded(5))
        told |= {f"{name}: {part}": value for part, value in _steps(fleet, values).items()}
    wide = sf.stream.batch_loss.additive(loss)
    pairs = sf.compile_policy(chain(), wide, 0.4, width=2, steps=60)
    batched_plan = sf.Plan(chain(), budget, wide, 2, purpose=purpose, policy=pairs)
    fleet_of_batches = sf.Fleet(batched_plan, names, randomness=sf.seeded(5))
    rows = [list(zip(*values[at : at + 2], strict=True)) for at in range(0, 10, 2)]
    found = _steps(fleet_of_batches, rows)
    return told | {f"batched: {part}": value for part, value in found.items()}


# Mechanisms, leakages, models ---------------------------------------------------------------------


def designed(found: Any) -> dict[str, Any]:
    """A design: its certificates and its channel."""
    return {
        "cost": found.cost,
        "lower_bound": found.lower_bound,
        "sip": found.sip.epsilon,
        "ldp": found.ldp.epsilon,
        "outputs": found.channel.outputs,
        "probabilities": found.channel.probabilities[:4].tolist(),
        "all": found.channel.probabilities.ravel(),
    }


@case
def designs() -> Sections:
    loss = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    wide = np.full(30, 1 / 30)
    line = np.abs(np.subtract.outer(np.arange(30), np.arange(30)))
    return {
        "optimal": designed(sf.solver.optimal(BELIEF, loss, 1.0)),
        "optimal, capped": designed(sf.solver.optimal(BELIEF, loss, 1.0, ldp=1.2)),
        "optimal, 30 symbols": designed(sf.solver.optimal(wide, line, 1.0)),
        "optimal, candidates": designed(sf.solver.optimal(wide, line, 1.0, candidates=8)),
        "randomized response": designed(sf.solver.randomized_response(BELIEF, loss, 1.0)),
        "calibrated": designed(sf.solver.calibrated_randomized_response(BELIEF, loss, 1.0)),
        "context free": designed(sf.solver.context_free(BELIEF, loss, 1.0)),
        "published": designed(sf.solver.paper_response(BELIEF, loss, 1.0)),
        "least leakage": designed(sf.solver.least_leakage(BELIEF, loss, max_loss=0.2)),
        "ball": designed(sf.column.bounded_prior(sf.column.PriorBall(BELIEF, 0.1), loss, 1.0)),
        "box": designed(
            sf.column.bounded_prior(sf.column.PriorBox([0.1] * 3, [0.7] * 3), loss, 1.0)
        ),
        "list": designed(
            sf.column.bounded_prior(sf.column.PriorList([BELIEF, [0.2, 0.3, 0.5]]), loss, 1.0)
        ),
    }


@case
def leakages() -> Sections:
    channel = sf.Channel.from_probabilities([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    kept = sf.solver.certified(np.eye(3), BELIEF, epsilon=0.5)
    sequence = sf.stream.tabulate(chain(), lambda released: channel, 3)
    return {
        "channel": {
            "local": str(sf.stream.local_leakage(channel)),
            "information": str(sf.stream.information_leakage(channel, BELIEF)),
            "instantaneous": str(sf.stream.instantaneous_leakage(channel, BELIEF)),
            "batch": str(sf.stream.batch_leakage(channel, BELIEF)),
            "sequence": str(sf.stream.sequence_leakage([channel] * 3, [BELIEF] * 3)),
            "bounded": str(sf.column.bounded_leakage(channel, sf.column.PriorBall(BELIEF, 0.1))),
            "posterior": [channel.posterior(BELIEF, place) for place in channel.outputs.tolist()],
            "draws": channel.draw([0, 1, 2] * 4, Dice(1).words(12)),
            "weights": channel.weights.tolist(),
        },
        "certified": kept.probabilities.tolist(),
        "tabulated": {
            "information": sequence.information_leakage(),
            "local": sequence.local_leakage(),
            "mutual": sequence.mutual_information(),
            "pufferfish": sequence.pufferfish_leakage(),
        },
        "composed": [
            sf.stream.composed([0.1] * 400).epsilon,
            sf.stream.composed([0.1] * 400, 1e-6).epsilon,
        ],
        "guarantees": {
            name: [repr(kind(1.0)), repr(kind(1.0) <= kind(2.0))]
            for name, kind in (("LDP", sf.LDP), ("LIP", sf.LIP), ("SIP", sf.SIP))
        }
        | {"others": [repr(sf.PureDP(1.0)), repr(sf.ApproxDP(1.0, 1e-6)), repr(sf.TemporalDP(1.0))]}
        | {"disclosure": repr(sf.record.Disclosure(2.0, 0.1))},
        "budgets": {
            name: [str(budget.allowance(sf.Ledger())), str(budget.memory)]
            for name, budget in BUDGETS.items()
        },
    }


@case
def models() -> Sections:
    first, second = sf.MarkovChain.fit(paths()), sf.MarkovChain.fit(paths(), order=2)
    mixture = sf.column.GaussianMixture.fit([float(row[2]) for row in people(60)])
    joint = sf.record.JointMixture.fit_normal([row[1:3] for row in people(60)])
    features = sf.column.FeaturePrior.fit(
        {"hours": [1, 2, 7, 8] * 10, "school": ["north", None] * 20},
        ["fail", "fail", "pass", "pass"] * 10,
        floor=0.2,
    )
    body = sf.record.FullCoupling.equation(
        "weight = 261.88 - 7.35*height + 0.083*height**2",
        {"height": (50, 90), "weight": (80, 300)},
    )
    belief = first.following(first.first().update(np.array([0.1, 0.2, 0.3, 0.4])))
    return {
        "chain": {
            "transition": first.transition().tolist(),
            "stationary": first.stationary(),
            "belief": belief.marginal,
            "sample": first.sample(20, sf.seeded(2)),
            "reversed": first.reversed().transition().tolist(),
        },
        "order 2": list(stored(sf.store.to_bytes(second))),
        "pairs": list(stored(sf.store.to_bytes(sf.stream.PairChain.fit(paths())))),
        "clusters": list(stored(sf.store.to_bytes(clusters()))),
        "library": list(
            stored(sf.store.to_bytes(sf.PatternLibrary.fit(paths(), width=2, most=12)))
        ),
        "prior": list(stored(sf.store.to_bytes(sf.Prior(BELIEF)))),
        "policy": list(
            stored(
                sf.store.to_bytes(
                    sf.compile_policy(chain(), sf.loss.hamming(chain().alphabet), 0.5, steps=60)
                )
            )
        ),
        "mixture": {"means": mixture.means, "deviations": mixture.deviations},
        "joint": {"means": joint.means.tolist(), "covariance": joint.covariance.tolist()},
        "features": features.priors({"hours": [1, 8], "school": ["north", "west"]}).tolist(),
        "coupling": {
            "weight": body.solve("weight", {"height": [60, 70]}),
            "narrowed": {k: list(v) for k, v in body.narrowed({"height": (60, 70)}).items()},
        },
        "prior sets": {
            "ball": sf.column.PriorBall(BELIEF, 0.1).least_masses,
            "box": sf.column.PriorBox([0.1] * 3, [0.7] * 3).nominal,
            "list": sf.column.PriorList([BELIEF, [0.2, 0.3, 0.5]]).least_masses,
        },
    }


@case
def losses() -> Sections:
    grid = sf.Alphabet.grid(2, 2)
    line = sf.Alphabet.of_size(3)
    earth = sf.Alphabet(["a", "b"], [[5.0, 50.0], [6.0, 51.0]])
    found = {
        "hamming": (sf.loss.hamming(line), 3),
        "absolute": (sf.loss.absolute(line), 3),
        "squared": (sf.loss.squared(line), 3),
        "euclidean": (sf.loss.euclidean(grid), 4),
        "great circle": (sf.loss.great_circle(earth), 2),
    }
    return {name: sf.loss.as_matrix(loss, size).tolist() for name, (loss, size) in found.items()}


@case
def fingerprints() -> Sections:
    """These shape keyed coins and are in every stored plan: a change of them is on purpose."""
    loss = sf.loss.hamming(chain().alphabet)
    plan = sf.Plan(chain(), sf.PerStep(sf.SIP(0.4)), loss)
    wide = sf.Plan(chain(), sf.PerStep(sf.SIP(0.4)), sf.stream.batch_loss.additive(loss), 2)
    back = sf.temporal.LossFunction.of([[0.8, 0.2], [0.2, 0.8]])
    series = sf.Realtime.gaussian(1.0, epsilon=1.0, delta=1e-6, length=20)
    things = {
        "chain": chain(),
        "order 2": sf.MarkovChain.fit(paths(), order=2),
        "pairs": sf.stream.PairChain.fit(paths()),
        "clusters": clusters(),
        "prior": sf.Prior(BELIEF),
        "alphabet": chain().alphabet,
        "instant plan": plan,
        "batched plan": wide,
        "temporal plan": sf.temporal.TemporalPlan(back, back, alpha=1.0, steps=3),
        "realtime": series,
        "channel": sf.Channel.from_probabilities([[0.75, 0.25], [0.25, 0.75]]),
        "mixture": sf.column.GaussianMixture([0.5, 0.5], [165.0, 178.0], [6.0, 7.0]),
    }
    told = [f"{name}: {_apart(thing.fingerprint)}" for name, thing in things.items()]
    here = sf.stream.Address(sf.stream.Domain.STREAM, "plan", "ann", 7)
    words = [sf.seeded(5).at(here).words(3), sf.keyed(SECRET).at(here).words(3)]
    coins = [", ".join(map(str, some.tolist())) for some in words]
    return {"fingerprints (exact)": told, "coins (exact)": coins}


@case
def kinds() -> Sections:
    """Words that are stored and printed, messages of refusals, and what is read back."""
    loss, labels = sf.loss.hamming(chain().alphabet), chain().alphabet.labels
    policy = sf.compile_policy(chain(), loss, 0.4, steps=40)
    plan = sf.Plan(chain(), sf.PerStep(sf.SIP(0.4)), loss, policy=policy)
    fleet = sf.Fleet(plan, ["a", "b"], randomness=sf.keyed(SECRET))
    release = sf.InstantRelease(chain(), budget=sf.SIP(0.4), loss=loss, randomness=Dice(1))
    event = release.step(labels[0])
    things = {
        sf.stream.Step: fleet.step(labels[:2]),
        sf.Event: event,
        sf.stream.StreamState: release.state,
        sf.stream.Belief: release.state.belief,
        sf.Policy: policy,
        sf.solver.Design: sf.solver.optimal(BELIEF, loss, 1.0),
        sf.stream.SequenceTable: sf.stream.tabulate(
            chain(), lambda told: sf.solver.optimal(BELIEF, loss, 1).channel, 2
        ),
    }
    enumerations = (
        sf.Fallback,
        sf.stream.Outcome,
        sf.Method,
        sf.Purpose,
        sf.Unit,
        sf.stream.Domain,
    )
    back = sf.store.from_bytes(sf.store.to_bytes(release.state), sf.stream.StreamState)
    with tempfile.TemporaryDirectory() as folder:
        sf.save(chain(), Path(folder) / "chain")
        same = sf.load(Path(folder) / "chain").fingerprint == chain().fingerprint
    coins = sf.secure()
    return {
        "words": {kind.__name__: [one.value for one in kind] for kind in enumerations},
        "kinds": [f"{kind.__name__} {isinstance(one, kind)}" for kind, one in things.items()],
        "event": list(stored(sf.store.to_bytes(event))),
        "read back": [same, sf.store.to_bytes(back) == sf.store.to_bytes(release.state)],
        "secure": [coins.simulated, coins.addressed, coins.words(3).size],
        "refusals": [
            _message(lambda: sf.InstantRelease(chain(), budget=sf.SIP(0.4), loss=[[0, 1], [1, 0]])),
            _message(lambda: release("nowhere")),
            _message(lambda: sf.SIP(-1.0)),
            _message(lambda: sf.solver.optimal([0.5, 0.6], [[0, 1], [1, 0]], 1.0)),
            _message(lambda: sf.MarkovChain.from_matrix([[0.5, 0.6], [0.5, 0.5]])),
            _message(lambda: sf.store.from_bytes(b"sfumato", sf.Prior)),
            _message(lambda: sf.keyed(b"short")),
            _message(
                lambda: sf.InstantRelease(
                    chain(), budget=sf.SIP(0.4), loss=loss, randomness=sf.seeded(1)
                )
            ),
            _message(lambda: sf.SIP(1.0) + sf.LDP(1.0)),
            _message(lambda: sf.solver.paper_response(BELIEF, loss, -1.0)),
        ],
    }


def _message(refused: Callable[[], object]) -> str:
    try:
        refused()
    except (sf.SfumatoError, TypeError) as problem:
        return f"{type(problem).__name__}: {problem}"
    return "not refused"


def _apart(digits: str) -> str:
    """In groups, so that it is not taken for a hash that changes from run to run."""
    return " ".join(re.findall(".{1,8}", digits))


# Jobs --------------------------------------------------------------------------------------------


def counts(length: int = 60) -> list[float]:
    """A series with a week in it."""
    return [round(100 + 20 * np.sin(day / 5) + 10 * (day % 7 == 0), 1) for day in range(length)]


@case
def series() -> Sections:
    given: dict[str, Any] = {"epsilon": 1.0, "length": 60}
    methods = {
        "gaussian": sf.Realtime.gaussian(1.0, delta=1e-6, estimate=sf.seasonal(7), **given),
        "laplace": sf.Realtime.laplace(1.0, **given),
        "discrete gaussian": sf.Realtime.discrete_gaussian(1.0, delta=1e-6, **given),
        "binomial": sf.Realtime.binomial(1.0, delta=1e-6, **given),
        "event": sf.Realtime.gaussian(1.0, delta=1e-6, unit=sf.Unit.EVENT, **given),
    }
    told: Sections = {}
    for name, method in methods.items():
        running = method.begin(sf.seeded(5), purpose=sf.Purpose.SIMULATION)
        released = [f"{running.step(count):.10g}" for count in counts()]
        told[f"{name}: released (exact)"] = [", ".join(released[:FIRST])]
        told[f"{name}: rest"] = {
            "guarantee": str(method.guarantee),
            "variances": method.variances,
            "all": [float(word) for word in released],
        }
        if name == "gaussian":
            told["state"] = list(stored(sf.store.to_bytes(running.state)))
    many = methods["gaussian"].release_many(
        np.array([counts(), counts()]).T, sf.seeded(5), sf.Purpose.SIMULATION
    )
    return told | {"many": {"last": many[-5:].tolist(), "all": many.ravel()}}


@case
def rivals() -> Sections:
    found = sf.compare(counts(40), sensitivity=1.0, epsilon=2.0, delta=1e-6, runs=2, period=7)
    names = ("unit", "kind", "epsilon", "delta", "rmse", "rmse_error", "mae", "of_silence")
    told = {one.method: [getattr(one, name) for name in names] for one in found.outcomes}
    return {"outcomes": plainly(told), "silence": found.silence}


@case
def temporal() -> Sections:
    back, forth = (sf.temporal.LossFunction.of(rows) for rows in ([[0.8, 0.2], [0.2, 0.8]], MATRIX))
    leakage = sf.temporal.temporal_leakage([0.1] * 10, back, forth)
    told: Sections = {
        "leakage": {
            "backward": leakage.backward,
            "forward": leakage.forward,
            "event": leakage.event.alpha,
            "user": leakage.user.alpha,
        },
        "loss": [back(1.0), back.supremum(0.1), forth(0.5)],
        "budgets": sf.temporal.TemporalPlan(back, forth, alpha=1.0, steps=6).budgets,
    }
    alphabet = sf.Alphabet("ab")
    for steps in (None, 6):
        plan = sf.temporal.TemporalPlan(back, forth, alpha=1.0, steps=steps)
        for make, value in ((sf.Histogram, ["a", "b", "b", "a"]), (sf.Answer, "a")):
            release = sf.temporal.TemporalRelease(
                plan,
                make.of(alphabet),
                randomness=sf.seeded(5),
                purpose=sf.Purpose.SIMULATION,
            )
            here = f"{make.__name__}, {steps or 'no'} steps"
            told[f"{here}: released (exact)"] = [str(release(value)) for _ in range(6)]
            told[f"{here}: spent"] = {
                "spent": release.spent.alpha,
                "backward": release.leakage.backward,
            }
    return told


def frame(rows: int = 60) -> pd.DataFrame:
    """People with a salary, a weight and a blood pressure."""
    rng = random.Random(9)
    persons = list(people(rows))
    return pd.DataFrame(
        {
            "gross": [round(rng.lognormvariate(11, 0.3)) for _ in persons],
            "weight": [row[2] for row in persons],
            "pressure": [float(str(row[3])) for row in persons],
            "level": [rng.choice([1, 2, 2, 3]) for _ in persons],
        }
    )


def framed(data: pd.DataFrame) -> list[str]:
    """A frame, row by row and summed up."""
    return list(table(data.to_csv(index=False, lineterminator="\n")))


@case
def columns() -> Sections:
    one = sf.privatize(
        frame(), "gross", epsilon=2.0, interval=(0, 200_000), points=40, **simulated()
    )
    assert isinstance(one.certificate, sf.Certificate)
    level = {"epsilon": 1.0, "loss": "absolute"}
    meter = sf.Privatizer("level", **level, **simulated()).fit(frame())
    rest = meter.release(frame(20))
    noisy = sf.publish(
        frame(),
        ["weight", "pressure"],
        accuracy=[3, 5],
        sigma=8,
        noise="gaussian",
        coupling="gaussian",
        **simulated(),
    )
    found = sf.disclosure(
        frame(), ["weight", "pressure"], accuracy=[3, 5], sigma=8, coupling="gaussian"
    )
    return {
        "privatize (exact)": framed(one.frame),
        "privatize: certificate": plainly(one.certificate),
        "privatizer (exact)": framed(rest.frame),
        "privatizer: certificate": plainly(rest.certificate),
        "publish (exact)": framed(noisy.frame),
        "publish: certificate": plainly(noisy.certificate),
        "disclosure": plainly(found),
    }


# README ------------------------------------------------------------------------------------------


class _Seeded(ast.NodeTransformer):
    """A snippet with seeded coins in place of secure ones; what stands alone is told."""

    releases = ("InstantRelease", "BatchedRelease", "Fleet", "privatize")

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name == "secure":
            return ast.parse("coins()", mode="eval").body
        if name in self.releases:
            node.keywords.append(_keyword("randomness", "coins()"))
        if (name in self.releases and "Fleet" not in name) or name in ("Plan", "begin"):
            node.keywords.append(_keyword("purpose", "simulation"))
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.value, ast.Call):
            node.value = ast.Call(ast.Name("told", ast.Load()), [node.value], [])
        return node


def _keyword(name: str, value: str) -> ast.keyword:
    return ast.keyword(name, ast.parse(value, mode="eval").body)


class _Names(dict[str, Any]):
    """Names of a snippet; every value that `private` gets is noted."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__(given)
        self.private: list[Any] = []

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        if name == "private":
            self.private.append(value)


def snippets() -> Iterator[str]:
    """The Python blocks of the guides."""
    yield from (text for kind, text in blocks() if kind == "python")


@case
def client() -> Sections:
    told: Sections = {}
    for kind in (sf.Client, sf.AsyncClient):
        for url in ("http://gate.example", "gate.example"):
            with pytest.raises(sf.SfumatoError) as refusal:
                kind(url, "sfk_0a1b2c3d_secret")
            told[f"{kind.__name__} {url}"] = [str(refusal.value)]
    told["an event"] = [repr(sf.LiveEvent("ann", "home", id="e1"))]
    return told


@case
def drift() -> Sections:
    model = chain()
    loss, purpose = sf.loss.hamming(model.alphabet), sf.Purpose.SIMULATION
    plan = sf.Plan(model, sf.PerStep(sf.SIP(2.0)), loss, purpose=purpose)
    state, left, coins = plan.begin("ann"), list[Any](), sf.seeded(3)
    for value in truth(120):
        events, state = plan.step(state, [value], coins)
        left += events
    found = sf.drift_test({"ann": left}, plan, block=40)
    return {
        "drift": {
            "ends": found.ends.tolist(),
            "log_capital": found.log_capital.tolist(),
            "alarm": found.alarm,
            "chance": found.chance,
        }
    }


@case
def learning() -> Sections:
    bit, purpose = sf.Alphabet.of_size(2), sf.Purpose.SIMULATION
    release = sf.LearningRelease(
        bit,
        budget=sf.SIP(2.0),
        loss=sf.loss.hamming(bit),
        first=1000,
        scouts=0,
        ready=0.001,
        purpose=purpose,
        randomness=sf.seeded(4),
    )
    rng, values, left = np.random.default_rng(3), np.arange(40) % 2, list[str]()
    for _ in range(30):
        events = [release(f"u{place}", value) for place, value in enumerate(values.tolist())]
        left.append("".join(str(event.released) for event in events))
        values = np.where(rng.random(40) < 0.9, values, 1 - values)
    told = release.spent("u3")
    return {
        "left (exact)": left,
        "versions": [f"{one.values} values, moves {one.moves}" for one in release.versions],
        "spent": [str(told.estimate), str(told.over_set), str(told.ldp), str(told.confidence)],
    }


@case
def first_steps() -> Sections:
    with tempfile.TemporaryDirectory() as folder:
        files = sf.sample("clicks", folder)
        path = Path(folder) / "coin.model"
        sf.save(sf.Prior([0.7, 0.3]), path)
        found = sf.explain(path)
        return {
            "sample": [f"{file.name}: {len(file.read_bytes())} bytes" for file in files],
            "explain": [found.kind, *found.lines],
        }


@case
def readme() -> Sections:
    sent: list[Any] = []
    said: list[Any] = []
    streams = paths()
    names = _Names(
        {
            "history": streams,
            "stream": streams[0][:60],
            "names": ["ann", "bob"],
            "values": [streams[0][0], streams[1][0]],
            "counts": counts(),
            "frame": frame(),
            "send": lambda value: sent.append(value),
            "told": lambda value: said.append(value),
            "coins": lambda: sf.seeded(5),
            "simulation": sf.Purpose.SIMULATION,
        }
    )
    told: Sections = {}
    for number, code in enumerate(snippets()):
        tree = ast.fix_missing_locations(_Seeded().visit(ast.parse(code)))
        exec(compile(tree, f"README {number}", "exec"), {}, names)
        private, step = names.private, names.pop("step", None)
        left = [word if isinstance(word, str) else f"{word:.10g}" for word in [*private, *sent]]
        told[f"{number}: left (exact)"] = [", ".join(left)]
        if step is not None:
            told[f"{number}: step (exact)"] = [", ".join(map(str, step.labels()))]
        frames = [item for one in said for item in (one if isinstance(one, tuple) else (one,))]
        for place, item in enumerate(frames):
            if isinstance(item, pd.DataFrame):
                told[f"{number}.{place}: frame (exact)"] = framed(item)
            else:
                told[f"{number}.{place}: said"] = str(item)
        for some in (sent, said, private):
            some.clear()
    return told
