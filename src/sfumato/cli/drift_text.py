"""What `drift` says: for people, and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sfumato.core import portable
from sfumato.core.printed import shown_up

if TYPE_CHECKING:
    from sfumato.stream.drift import DriftReport
    from sfumato.stream.release_spec import ReleaseSpec

_LARGE = 1e6


def document(found: DriftReport) -> dict[str, Any]:
    """The report for a program."""
    return {
        "streams": found.streams,
        "values": found.values,
        "telling": found.telling,
        "alpha": found.alpha,
        "drift": found.alarm is not None,
        "alarm_after": found.alarm,
        "changed_after": found.since,
        "moves": found.kind,
        "evidence": found.evidence,
        "chance": found.chance,
        "threshold": found.threshold,
        "tested_radius": found.tested,
        "distance": found.distance,
        "version": found.version,
        "missed": found.missed,
        "ends": found.ends.tolist(),
        "log_capital": found.log_capital.tolist(),
    }


def rule_options(spec: ReleaseSpec) -> str:
    """The options of `release` that a plan stands for, to be typed again.

    Examples:
        >>> from sfumato.stream.release_spec import ReleaseSpec
        >>> rule_options(ReleaseSpec(epsilon=0.5, ldp=1.0, keep=("when",)))
        '--epsilon 0.5 --ldp 1 --method optimal --keep when'
    """
    words = []
    for name in ("epsilon", "budget", "horizon", "window", "ldp", "loss", "batch", "method"):
        value = getattr(spec, name)
        if isinstance(value, float | int):
            words.append(f"--{name} {value:g}")
        elif isinstance(value, str):
            words.append(f"--{name} {value}")
    if spec.every is not None:
        words.append(f"--every {spec.every}")
    if spec.keep:
        words.append(f"--keep {','.join(spec.keep)}")
    return " ".join(words)


def lines(found: DriftReport, released: str, model: str, again: str) -> Iterator[str]:
    """The report for a person, line by line.

    Args:
        found: The report.
        released: Names of the files that were tested.
        model: Name of the file of the model.
        again: The options of the release, to be typed again.
    """
    null = model if not found.tested else f"any chain within {found.tested:.4g} of {model}"
    more = ""
    if found.version is not None:
        null = f"any chain of version {found.version}"
        more = f", if the set holds the true chain (confidence {1 - found.missed:g})"
    yield (
        f"{found.streams:,} streams, {found.values:,} values, of which {found.telling:,} have an "
        f"output that tells anything; counted {len(found.ends):,} times"
    )
    wanted = 1 / found.alpha
    yield (
        f"bets against {null} made {times(found.evidence)} what they began with, at best; the "
        f"alarm is at {wanted:,.0f} times, which a right model ever reaches with "
        f"probability at most {shown_up(found.alpha)}, however often you look{more}"
    )
    if found.alarm is None:
        yield f"no drift was found: what left is no proof against {null}"
        return
    since = "from the start" if not found.since else f"since about value {found.since:,} of all"
    yield f"DRIFT: streams do not move as {null} says, most likely {since}"
    yield f"noticed after {found.alarm:,} values; the bet that won most: {found.kind}"
    yield from _advice(found, released, model, again)


def _advice(found: DriftReport, released: str, model: str, again: str) -> Iterator[str]:
    assert found.distance is not None  # there was an alarm
    radius = shown_up(found.distance, 2)
    yield (
        "what was promised: SIP holds for an adversary who believes the model, LDP whatever is "
        "true. What to do next:"
    )
    yield f"  learn again from what left: sfumato learn {released} -m {model} -o learnt.model"
    if found.version is not None:
        yield (
            "  or wait: the release starts learning anew once its context-free values prove the "
            "change; until then the ldp of each row holds, its sip need not"
        )
        return
    yield (
        "  see what leaked to an adversary who knows that: "
        f"sfumato audit {released} -m {model} --truth learnt.model"
    )
    yield (
        "  then release what comes next with it, by the same rules in a ledger of its own: "
        f"sfumato release NEXT.csv -m learnt.model {again} --ledger next.ledger -o NEXT-private.csv"
    )
    yield (
        "  a ledger keeps to one model: leakages under two of them do not add up. What both "
        "releases told of a stream is at most the sum of their LDP"
    )
    yield (
        f"  or widen: probabilities learnt since then are off by up to {radius} (an estimate); "
        f"`release --robust {radius}` keeps the budget for all chains so near, and "
        f"`sfumato plan -m {model} --robust {radius}` says what it costs"
    )


def times(log_capital: float) -> str:
    """A capital in words: how many times the beginning."""
    capital = portable.exp(min(log_capital, 700.0))
    if capital >= _LARGE:
        return f"10^{int(log_capital / portable.log(10.0))} times"
    return f"{capital:,.0f} times" if capital >= 10 else f"{capital:.2g} times"
