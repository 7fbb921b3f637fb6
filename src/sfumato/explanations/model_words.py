"""What a model or a policy holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

import numpy as np

from sfumato.core import portable
from sfumato.core.alphabet import Alphabet
from sfumato.core.guarantees import SIP
from sfumato.core.printed import shown_up
from sfumato.models.encoding import StreamModel
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.models.pair_chain import PairChain
from sfumato.models.plausible import PlausibleChains
from sfumato.models.prior import Prior
from sfumato.solver.policy import Policy

_NAMED = 8
"""Symbols that are listed; of more, the first."""


def model_words(model: Prior | MarkovChain | StreamModel | Policy) -> tuple[str, list[str]]:
    """What it is, and what is to be known of it, sentence by sentence."""
    match model:
        case StreamModel():
            words = [*_table_words(model), *_chain_words(model.chain), _OBSERVER]
            return "model", [*words, _people(model), _NEXT]
        case MarkovChain():
            return "model", list(_chain_words(model))
        case Prior():
            return "prior", list(_prior_words(model))
        case Policy():
            return "policy", list(_policy_words(model))
        case _:
            assert_never(model)


_OBSERVER = (
    "It is what an observer is assumed to know before anything leaves; the model-free certificate "
    "(LDP) of a release holds even if he knows something else."
)
_NEXT = "next: sfumato plan --model FILE --epsilon 0.5"


def _people(model: StreamModel) -> str:
    """What it tells of those it was made from."""
    if model.private is not None:
        return (
            f"To the people of its history it promises {model.private}; each further model of "
            "the same people adds to that."
        )
    # A file does not say whether `fit` made it of true values or `learn` of released ones.
    return (
        "If `fit` made it of a history, it tells of that: share it only if the history may be "
        "known. If `learn` made it of released values, it tells no more than they did."
    )


def set_words(chains: PlausibleChains) -> Iterator[str]:
    """A set of chains any of which may be the true one."""
    yield (
        "A set of models: of each step from one value to the next, and of how streams begin, it "
        "holds the least and the largest probability that is plausible."
    )
    yield _symbols(chains.estimate.alphabet)
    if chains.confidence < 1:
        yield (
            f"With confidence {chains.confidence:g} the true chain is one of them, if all streams "
            "follow one chain."
        )
    if chains.widest >= 1:
        yield "Of at least one step it says nothing yet: its probability may be anything."
    else:
        yield f"The least known step lies in an interval {shown_up(chains.widest, 3)} wide."


def _table_words(model: StreamModel) -> Iterator[str]:
    columns = " and ".join(repr(name) for name in model.values)
    yield (
        f"A model of how the values of a stream follow each other: values stand in {columns}, "
        f"streams are told apart by {model.stream!r}."
    )
    if model.transitions:
        yield f"It was made from {model.transitions:,} steps from one value to the next."
    else:
        yield "No step from one value to the next was counted for it."


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
        stays = known + chain.backoff * chain.background
        stay = float(portable.dot(chain.stationary(), stays))
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
    yield f"A step may leak {SIP(policy.epsilon)} under the model it was compiled for."
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
