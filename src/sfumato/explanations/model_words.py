"""What a model or a policy holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

import numpy as np

from sfumato.core.alphabet import Alphabet
from sfumato.models.encoding import StreamModel
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.models.pair_chain import PairChain
from sfumato.models.prior import Prior
from sfumato.solver.policy import Policy

_NAMED = 8
"""Symbols that are listed; of more, the first."""


def model_words(model: Prior | MarkovChain | StreamModel | Policy) -> tuple[str, list[str]]:
    """What it is, and what is to be known of it, sentence by sentence."""
    match model:
        case StreamModel():
            return "model", [*_table_words(model), *_chain_words(model.chain), *_NEXT]
        case MarkovChain():
            return "model", list(_chain_words(model))
        case Prior():
            return "prior", list(_prior_words(model))
        case Policy():
            return "policy", list(_policy_words(model))
        case _:
            assert_never(model)


_NEXT = (
    "It is what an observer is assumed to know before anything leaves; the model-free certificate "
    "(LDP) of a release holds even if he knows something else.",
    "It was learnt from a history, and tells of it: share it only if that history may be known.",
    "next: sfumato plan --model FILE --epsilon 0.5",
)


def _table_words(model: StreamModel) -> Iterator[str]:
    columns = " and ".join(repr(name) for name in model.values)
    yield (
        f"A model of how the values of a stream follow each other: values stand in {columns}, "
        f"streams are told apart by {model.stream!r}."
    )
    yield f"It was fitted to {model.transitions:,} steps from one value to the next."


def _chain_words(chain: MarkovChain | PairChain | PatternLibrary) -> Iterator[str]:
    yield _symbols(chain.alphabet)
    match chain:
        case MarkovChain():
            yield from _markov_words(chain)
        case PairChain():
            yield "The next value depends on the last two, as far as such pairs occurred."
        case PatternLibrary():
            yield "It knows which patterns of successive values occur, and what follows them."


def _markov_words(chain: MarkovChain) -> Iterator[str]:
    if chain.order == 0:
        yield "Values do not depend on each other."
        return
    last = "the last one" if chain.order == 1 else f"the last {chain.order}"
    yield f"The next value depends on {last}; no step is held for less likely than {chain.floor:g}."
    if chain.order == 1:
        # The matrix of a large alphabet is sparse, and stays so.
        known = (1 - chain.backoff) * chain.known.diagonal()
        stay = float(chain.stationary() @ (known + chain.backoff * chain.background))
        yield f"A value stays as it is from one moment to the next {100 * stay:.0f} % of the time."


def _prior_words(prior: Prior) -> Iterator[str]:
    yield f"A distribution of one value. {_symbols(prior.alphabet)}"
    most = int(np.argmax(prior.probabilities))
    yield (
        f"The likeliest is {prior.alphabet.labels[most]!r}, with "
        f"{100 * float(prior.probabilities[most]):.3g} %."
    )


def _policy_words(policy: Policy) -> Iterator[str]:
    kept = "solves a small program at each step"
    if not policy.solves:
        kept = f"keeps {policy.channels:,} channels"
    yield (
        f"A compiled policy for {policy.size:,} values: it {kept}, so that a release need not "
        "wait for a solver."
    )
    yield f"A step may leak SIP({policy.epsilon:g}) under the model it was compiled for."
    report = policy.report
    yield (
        f"When it was compiled it lost {100 * report.extra_loss:.2g} % more than the best channel "
        f"of each of {report.steps:,} steps."
    )
    yield "It changes how fast and how well values leave, never what is certified of them."


def _symbols(alphabet: Alphabet) -> str:
    return f"A value is one of {len(alphabet):,}: {_listed(alphabet.labels)}."


def _listed(labels: Sequence[object]) -> str:
    named = ", ".join(str(label) for label in labels[:_NAMED])
    return named if len(labels) <= _NAMED else f"{named} and {len(labels) - _NAMED:,} more"
