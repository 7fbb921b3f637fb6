r"""A hint whether streams still move as the model says, from released values alone.

Under the model an output $y$ of moment $t$ has probability $P_t(y) = \sum_x b_t(x) a_t(y|x)$ given
all that left before it, and all of that is public. So the sums over moments of

- how much less probable outputs were than expected, $-\log P_t(y_t) - H(P_t)$, and
- for each symbol, whether it left minus the probability that it would,

are martingales with known variances: divided by their standard deviation they are nearly standard
normal if the model is right. The largest of them is reported, with how often so large a one would
be seen among all of them. That is a hint and no proof: noise hides slow changes, and a hundred
looks a day show a false alarm of one in a hundred every day. Beside it stands what bets against the
model made (`stream_bets.py`): an alarm of theirs is a proof, at any number of looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.core import portable
from sfumato.core.alphabet import Label
from sfumato.core.printed import shown_up
from sfumato.models.drift_capital import DriftCapital
from sfumato.service.fleet_documents import DriftDocument, OutputShare
from sfumato.service.followed_streams import Surprise
from sfumato.service.readable_release import plain
from sfumato.service.stream_bets import StreamBets, capital_of

LEAST = 50
"""Outputs below which sums are not nearly normal."""
_LIKELY = 0.05
_SHOWN = 16


def drift(
    release: str,
    looked_at: Sequence[Sequence[Surprise]],
    labels: Sequence[Label],
    bets: Sequence[StreamBets] = (),
) -> DriftDocument:
    """The hint, from the last outputs of some streams, and the proof, from all bets on them."""
    outputs = [one for stream in looked_at for one in stream]
    variance = math.fsum(one.variance for one in outputs)
    if len(outputs) < LEAST or variance <= 0:
        why = f"a hint needs {LEAST} outputs that tell something; there are {len(outputs)}"
        return DriftDocument(
            release=release, streams=len(looked_at), outputs=len(outputs), unavailable=why
        )
    surprise = math.fsum(one.excess for one in outputs) / math.sqrt(variance)
    shares = _shares([one for one in outputs if one.place >= 0], labels)
    # Less surprise than expected is drift too, and so is a symbol too rare.
    largest = max([abs(surprise), *(abs(one.surprise) for one in shares)])
    rate = min(1.0, (1 + len(shares)) * math.erfc(largest / math.sqrt(2)))
    return DriftDocument(
        release=release,
        streams=len(looked_at),
        outputs=len(outputs),
        surprise=surprise,
        shares=sorted(shares, key=lambda one: -abs(one.surprise))[:_SHOWN],
        false_alarm=rate,
        hint=_words(rate),
        **_proof(capital_of(bets)),
    )


def _proof(made: DriftCapital | None) -> dict[str, Any]:
    """What bets made of all outputs so far; blocks before the last say what parts of them did."""
    if made is None:
        return {"proof": "nobody bets on batches, large alphabets or chains of higher order"}
    capital = float(made.log_capital[-1])
    alarm = capital >= made.threshold
    times, wanted = portable.exp(min(capital, 700.0)), 1 / made.alpha
    words = (
        f"bets against the model made {times:,.3g} times what they began with; the alarm is at "
        f"{wanted:,.0f} times, which a right model ever reaches with probability at most "
        f"{shown_up(made.alpha)}, however often these streams are looked at"
    )
    if alarm:
        words += f"; most of it by the bet that {made.best.name}: learn again (`sfumato learn`)"
    return {"log_capital": capital, "alarm": alarm, "alpha": made.alpha, "proof": words}


def _shares(outputs: Sequence[Surprise], labels: Sequence[Label]) -> list[OutputShare]:
    """How often each symbol left beside how often it was expected to."""
    if not outputs:
        return []
    chances = np.array([one.expected for one in outputs])
    observed = np.bincount([one.place for one in outputs], minlength=len(labels))
    expected, spread = chances.sum(axis=0), (chances * (1 - chances)).sum(axis=0)
    return [
        OutputShare(
            symbol=plain(labels[place]),
            observed=int(observed[place]),
            expected=float(expected[place]),
            surprise=float((observed[place] - expected[place]) / math.sqrt(spread[place])),
        )
        for place in np.flatnonzero(spread >= 1.0).tolist()  # rarer ones are not nearly normal
    ]


def _words(rate: float) -> str:
    if rate > _LIKELY:
        return "what left is as probable as the model says; this shows no drift"
    often = f"one look in {max(20, math.floor(1 / max(rate, 1e-12))):,}"
    return (
        f"what left is less like the model than chance explains in {often}: "
        "compare the model with fresh history"
    )
