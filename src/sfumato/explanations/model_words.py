"""What a model or a policy holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

import numpy as np

from sfumato.core import portable
from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats
from sfumato.core.guarantees import SIP
from sfumato.core.printed import shown_up
from sfumato.explanations.amount_words import NO_PROMISE, amount
from sfumato.models.clustered_chain import ClusteredChain
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.models.pair_chain import PairChain
from sfumato.models.periodic import PeriodicChain
from sfumato.models.plausible import PlausibleChains
from sfumato.models.prior import Prior
from sfumato.models.stream_model import StreamModel
from sfumato.models.value_chains import ValueChain
from sfumato.solver.policy import Policy
from sfumato.stream.version_files import LearntVersions

_NAMED = 8
"""Symbols that are listed; of more, the first."""


def model_words(model: Prior | MarkovChain | StreamModel | Policy) -> tuple[str, list[str]]:
    """What it is, and what is to be known of it, sentence by sentence."""
    match model:
        case StreamModel():
            words = [*_table_words(model), *_chain_words(model.chain), _OBSERVER]
            return "model", [*words, _people(model)]
        case MarkovChain():
            return "model", [*_chain_words(model), _OBSERVER]
        case Prior():
            return "prior", list(_prior_words(model))
        case Policy():
            return "policy", list(_policy_words(model))
        case _:
            assert_never(model)


_OBSERVER = (
    f"{NO_PROMISE}: it is what an observer is assumed to know before anything leaves. The "
    "model-free certificate (LDP) of a release holds even if he knows something else."
)


def model_next(model: Prior | MarkovChain | StreamModel | Policy, file: str) -> str:
    """The command that goes on from a file, without the name of the program."""
    match model:
        case StreamModel() if model.cycle is not None:
            times = "" if model.cycle.in_turn else " --time COLUMN --keep COLUMN"
            return f"release INPUT --model {file}{times} --epsilon 0.5 -o OUTPUT"
        case StreamModel() | MarkovChain():
            return f"plan --model {file} --epsilon 0.5"
        case Prior():
            return f"privatize INPUT -c COLUMN --epsilon 1 --prior {file} -o OUTPUT"
        case Policy():
            return (
                f"release INPUT --model MODEL --epsilon {model.epsilon} --policy {file} -o OUTPUT"
            )
        case _:
            assert_never(model)


def _people(model: StreamModel) -> str:
    """What it tells of those it was made from."""
    if model.private is not None:
        return (
            f"To the people of its history it promises {model.private}, in nats; each further "
            "model of the same people adds to that."
        )
    if model.learnt is not None:
        return (
            f"It was learnt from {model.learnt}, under plan {model.learnt.release}: it tells no "
            "more than they did, and its certificates hold for whoever believes it."
        )
    # A file of before does not say whether `fit` made it of true values or `learn` of released.
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
    yield f"{NO_PROMISE}: an audit says what a release leaks under the worst of them."


def version_words(learnt: LearntVersions) -> Iterator[str]:
    """What a learning release has learnt, version by version."""
    yield (
        "The versions of a release that started from nothing: each was learnt from what had left, "
        "and from nothing else."
    )
    for version in learnt.versions:
        chains = version.chains
        sure = "" if chains is None else f" Confidence {chains.confidence:g} for all versions."
        yield (
            f"{version} (from {version.telling:,} context-free values of {version.streams:,} "
            f"streams).{sure}"
        )
    yield (
        f"{NO_PROMISE}: the plan of the release does, and an audit learns every version again from "
        "what left."
    )


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


def _chain_words(chain: ValueChain | PatternLibrary | PeriodicChain) -> Iterator[str]:
    yield _symbols(chain.alphabet)
    match chain:
        case MarkovChain():
            yield from _markov_words(chain)
        case PairChain():
            yield "The next value depends on the last two, as far as such pairs occurred."
        case ClusteredChain():
            yield from _cluster_words(chain)
        case PatternLibrary():
            yield "It knows which patterns of successive values occur, and what follows them."
        case PeriodicChain():
            yield from _periodic_words(chain)


def _cluster_words(chain: ClusteredChain) -> Iterator[str]:
    shares = ", ".join(f"{100 * share:.0f} %" for share in chain.shares.tolist())
    yield (
        f"People differ: each stream follows one of {len(chain.chains)} chains, as common as "
        f"{shares}, and nobody is told which. The next value depends on the last one and on that."
    )
    yield (
        "What a release is certified for covers both: the values of a stream, and which chain it "
        f"follows. A stream changes its chain with probability {chain.change:g} at each step."
    )


def _markov_words(chain: MarkovChain) -> Iterator[str]:
    if chain.order == 0:
        yield "Values do not depend on each other."
        return
    last = "the last one" if chain.order == 1 else f"the last {chain.order}"
    yield f"The next value depends on {last}; no step is held for less likely than {chain.floor:g}."
    if chain.order == 1:
        stay = _stay(chain, chain.stationary())
        yield f"A value stays as it is from one moment to the next {100 * stay:.0f} % of the time."


def _stay(chain: MarkovChain, before: Floats) -> float:
    """How often a value stays as it is, if values are distributed so before it."""
    # The matrix of a large alphabet is sparse, and stays so.
    known = (1 - chain.backoff) * chain.known.diagonal()
    return float(portable.dot(before, known + chain.backoff * chain.background))


def _periodic_words(chain: PeriodicChain) -> Iterator[str]:
    cycle = chain.cycle
    told = "by its place in the stream" if cycle.in_turn else "by its time"
    yield (
        f"The next value depends on the last one, and on its own phase: there are {cycle}, and a "
        f"value has its phase {told}. No step is held for less likely than {chain.floor:g}."
    )
    stays = [_stay(chain.at(phase), chain.initial[phase]) for phase in range(cycle.phases)]
    yield (
        f"A value stays as it is between {100 * min(stays):.0f} and {100 * max(stays):.0f} % of "
        "the time, by its phase."
    )
    yield (
        "Phases are taken for public: times that depend on the values beyond what the model says "
        "tell more than is certified."
    )


def _prior_words(prior: Prior) -> Iterator[str]:
    yield f"A distribution of one value. {_symbols(prior.alphabet)}"
    most = int(np.argmax(prior.probabilities))
    yield (
        f"The likeliest is {prior.alphabet.labels[most]!r}, with "
        f"{100 * float(prior.probabilities[most]):.3g} %."
    )
    yield f"{NO_PROMISE}: it is what an observer is assumed to know before anything leaves."


def _policy_words(policy: Policy) -> Iterator[str]:
    kept = "solves a small program at each step"
    if not policy.solves:
        kept = f"keeps {policy.channels:,} channels"
    yield (
        f"A compiled policy for {policy.size:,} values: it {kept}, so that a release need not "
        "wait for a solver."
    )
    yield (
        f"A step may tell at most {amount(SIP(policy.epsilon))} to an observer who knows the model "
        "it was compiled for."
    )
    report = policy.report
    yield (
        f"When it was compiled it lost {100 * report.extra_loss:.2g} % more, over {report.steps:,} "
        "simulated steps, than solving each of them on the spot."
    )
    yield "It changes how fast and how well values leave, never what is certified of them."


def _symbols(alphabet: Alphabet) -> str:
    return f"A value is one of {len(alphabet):,}: {_listed(alphabet.labels)}."


def _listed(labels: Sequence[object]) -> str:
    named = ", ".join(str(label) for label in labels[:_NAMED])
    return named if len(labels) <= _NAMED else f"{named} and {len(labels) - _NAMED:,} more"
