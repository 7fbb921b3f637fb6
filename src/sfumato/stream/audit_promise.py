"""What the rules of a release promise, in words, and whether that is what an auditor asks for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sfumato.core import checks
from sfumato.core.errors import InvalidParameter
from sfumato.core.periods import NAMES, Period
from sfumato.core.printed import shown_up
from sfumato.models.stream_model import StreamModel
from sfumato.stream.period_rules import most_within, words
from sfumato.stream.release_spec import ReleaseSpec


class Allow(StrEnum):
    """What fails an audit unless it is allowed by name.

    Attributes:
        WITHHELD: Rows that released nothing although there was budget: everybody sees that
            something unusual happened there. With true values they are checked one by one.
        UNSEALED: Rules that do not say how many rows their file has, and its digest: as for a
            pipe, or by an older program. Then nobody can tell a part from the whole.
        ANY_MODEL: Rules that do not name their model by its fingerprint.
        REPEATED: Rows of a file that stand after a later row of their stream: a retry through a
            pipe is answered so. Which rows come again is seen by everybody, and could be a
            message.
    """

    WITHHELD = "withheld"
    UNSEALED = "unsealed"
    ANY_MODEL = "any-model"
    REPEATED = "repeated"


@dataclass(frozen=True, slots=True)
class Required:
    """What an auditor asks of the rules.

    Attributes:
        budget: The most that may leak under the model: `0.3/value`, `10/50` (any 50 successive
            values of a stream), `10/day` (each day of event time; also hour, week, month),
            `10/stream`; a number alone is in the unit of the rules.
        ldp: The same whatever the model.
        model: Fingerprint that the model must have.
        simulation: A simulation is what is wanted.
        allow: What need not hold.
    """

    budget: str | None = None
    ldp: str | None = None
    model: str | None = None
    simulation: bool = False
    allow: frozenset[Allow] = frozenset()


@dataclass(frozen=True, slots=True)
class Promise:
    """What the rules of a release promise.

    Attributes:
        epsilon: The most that leaks under the model,
        unit: and over what.
        ldp: The same whatever the model; None if that has no cap.
        loss: What the release tried to keep small.
        method: How channels are found.
        purpose: A release, or a simulation.
        bursts: How a total is spread; None if evenly.
        batch: Values that leave together; None if each leaves alone.
        kept: Columns that leave as they are.
        model: Fingerprint of the model.
        policy: Fingerprint of the compiled policy, if there was one.
        program: What wrote the file.
        complete: Whether all of the input was answered; None if that is not said.
    """

    epsilon: float
    unit: str
    ldp: float | None
    loss: str
    method: str
    purpose: str
    bursts: str | None
    batch: int | None
    kept: tuple[str, ...]
    model: str | None
    policy: str | None
    program: str | None
    complete: bool | None

    def lines(self) -> list[str]:
        """The promise in words."""
        free = "no cap" if self.ldp is None else f"LDP({shown_up(self.ldp, 5)})"
        how = [f"loss {self.loss}", f"method {self.method}", self.purpose]
        how += [] if self.bursts is None else [self.bursts]
        how += [] if self.batch is None else [f"batches of {self.batch}"]
        made = [f"model {self.model or 'NOT NAMED'}", f"policy {self.policy or 'none'}"]
        made += [self.program or "program not named"]
        said = [
            f"promise: SIP({shown_up(self.epsilon, 5)}) {self.unit}, {free} whatever the model; "
            f"{', '.join(how)}",
            f"made with: {', '.join(made)}",
        ]
        if self.kept:
            said.append(f"columns that left as they were: {', '.join(map(repr, self.kept))}")
        if self.complete is False:
            said.append("INTERRUPTED: the file ends where the release was stopped")
        return said


def promise_of(spec: ReleaseSpec, model: StreamModel) -> Promise:
    """What the rules of a release promise.

    Examples:
        >>> from sfumato.models.encoding import Symbols
        >>> from sfumato.models.markov import MarkovChain
        >>> chain = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> model = StreamModel(chain, Symbols(chain.alphabet))
        >>> promise = promise_of(ReleaseSpec(budget=3.0, horizon=12, every=4), model)
        >>> promise.epsilon, promise.unit, promise.bursts
        (3.0, 'for all 12 values of a stream', 'in bursts every 4 values')
    """
    spec.schedule()
    loss = spec.loss_for(model)
    total = spec.epsilon if spec.budget is None else spec.budget
    bursts = None
    if spec.per is not None:
        bursts = _sharing(spec)
    elif spec.every is not None or spec.first is not None or spec.cap is not None:
        bursts = f"in bursts every {spec.every or 1} values"
        bursts += "" if spec.first in (None, 1) else f", the first {spec.first:g} times as large"
        bursts += "" if spec.cap is None else f", at most {spec.cap:g} each"
    return Promise(
        epsilon=float(total or 0.0),
        unit=unit(spec),
        ldp=spec.ldp,
        loss=loss if isinstance(loss, str) else "a table in the rules",
        method=_method(spec),
        purpose=spec.purpose,
        bursts=bursts,
        batch=spec.width(model),
        kept=spec.keep,
        model=spec.model,
        policy=spec.policy,
        program=None if spec.sealed is None else spec.sealed.program,
        complete=None if spec.sealed is None else spec.sealed.complete,
    )


def _method(spec: ReleaseSpec) -> str:
    """How channels are found, and for which chains."""
    thrift = "" if spec.thrift is None else f" with thrift {spec.thrift:g}"
    chains = "" if spec.robust is None else f" for {spec.robust_words}"
    learns = "" if spec.learn is None else ", then what is learnt from what left"
    return f"{spec.method}{thrift}{chains}{learns}"


def _sharing(spec: ReleaseSpec) -> str:
    """How the total of a period is shared."""
    shared = [] if spec.horizon is None else [f"shared by {spec.horizon:,} values"]
    shared += [] if spec.cap is None else [f"at most {spec.cap:g} a value"]
    return ", ".join(shared)


def unit(spec: ReleaseSpec) -> str:
    """What the budget is for, in words."""
    if spec.per is not None:
        return f"for all values of a stream in each {words(Period(spec.per))} of event time"
    if spec.horizon is not None:
        return f"for all {spec.horizon:,} values of a stream"
    if spec.window is not None:
        return f"for any {spec.window:,} successive values of a stream"
    return "for each value"


def broken_promises(spec: ReleaseSpec, model: StreamModel, required: Required) -> Iterator[str]:
    """The rules that the rules of a release break."""
    asked: Sequence[tuple[str, str | None, float | None]] = (
        ("--require-budget", required.budget, spec.epsilon if spec.budget is None else spec.budget),
        ("--require-ldp", required.ldp, spec.ldp),
    )
    for option, limit, own in asked:
        if limit is None:
            continue
        most, values = _limit(option, limit)
        allowed = math.inf if own is None else _most_in(spec, own, values)
        if own is not None and spec.per is not None:
            cap = spec.cap if option == "--require-budget" else None
            allowed = _most_by_time(Period(spec.per), own, cap, values)
        if allowed > most:
            what = "SIP" if option == "--require-budget" else "LDP"
            told = "no cap" if own is None else f"{what}({shown_up(own, 5)}) {unit(spec)}"
            yield f"the plan must allow at most {what}({limit}); it allows {told}"
    if spec.purpose != "release" and not required.simulation:
        yield "the plan must be that of a release; it is a simulation, whose coins can be guessed"
    if spec.model is None and Allow.ANY_MODEL not in required.allow:
        yield "the plan must name its model by a fingerprint (or --allow any-model)"
    if required.model is not None and model.chain.fingerprint != required.model:
        yield "the model must be the one that --require-model names"
    if spec.sealed is None and Allow.UNSEALED not in required.allow:
        yield (
            "the plan must say how many rows its file has, and its digest: nothing else tells a "
            "part from the whole (or --allow unsealed)"
        )


def _limit(option: str, text: str) -> tuple[float, int | Period | None]:
    """A limit and what it is for: 0 for the unit of the rules, None for all of a stream.

    Else so many successive values, or each period of event time.
    """
    number, _, over = text.partition("/")
    try:
        most = checks.finite(option, float(number))
        if over in ("value", "stream"):
            return most, 1 if over == "value" else None
        if over in NAMES:
            return most, Period(over)
        return most, checks.count(option, int(over)) if over else 0
    except ValueError:
        rule = "be a number, or one like 0.3/value, 10/50, 10/day or 10/stream"
        raise InvalidParameter(option, text, rule) from None


def _most_by_time(
    period: Period, own: float, cap: float | None, asked: int | Period | None
) -> float:
    """The same under a budget for periods: each value may lie in one of its own."""
    match asked:
        case Period():
            return most_within(period, own, asked)
        case 0:
            return own
        case int():
            return asked * (own if cap is None else min(own, cap))
        case None:
            return math.inf


def _most_in(spec: ReleaseSpec, own: float, values: int | Period | None) -> float:
    """The most that some successive values of a stream may leak, all of them if None.

    A total may all be spent on one value; windows side by side may each be spent.
    """
    if values == 0 or spec.horizon is not None:
        return own
    if values is None or isinstance(values, Period):
        return math.inf  # nobody knows how many values a period has
    return own * (values if spec.window is None else -(-values // spec.window))
