"""How each person moves, learnt from what is known of them: a chain each, drawn to all of them.

A person is known by few values. Each row of their chain is what they did, and as much of what all
people did as predicts known values best that it was not learnt from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.models.fitting import count_transitions
from sfumato.models.markov import MarkovChain

_PULLS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""How many values of all people stand beside those of one, row by row: what is tried."""
_CONTEXTS = 4096
"""Contexts up to which everybody has a matrix."""


def personal_chains(
    known: Mapping[str, Sequence[int]], alphabet: Alphabet, order: int = 1
) -> dict[str, MarkovChain]:
    """A chain for each person.

    Args:
        known: Places of the known values of each, in order.
        alphabet: The symbols.
        order: How many values before the next one are looked at.

    Examples:
        >>> known = {"ann": [0, 0, 0, 0, 1, 0, 0, 0], "bob": [0, 1, 0, 1, 0, 1, 0, 1]}
        >>> chains = personal_chains(known, Alphabet(["home", "work"]))
        >>> bool(chains["bob"].transition()[0, 1] > chains["ann"].transition()[0, 1])
        True
    """
    size = len(alphabet)
    if size**order > _CONTEXTS:
        raise InvalidParameter("order", order, f"leave at most {_CONTEXTS:,} contexts")
    paths = {name: np.asarray(values, dtype=np.int64) for name, values in known.items()}
    if len(paths) < 2:
        raise InvalidParameter("known", len(paths), "hold two people at least")
    everybody = MarkovChain.fit(
        [[alphabet.labels[place] for place in path.tolist()] for path in paths.values()],
        alphabet=alphabet,
        order=order,
    )
    pull = _best_pull(list(paths.values()), everybody)
    return {name: _person(path, everybody, pull) for name, path in paths.items()}


def _person(path: Ints, everybody: MarkovChain, pull: float) -> MarkovChain:
    rows = _rows(_counts(path, everybody), everybody, pull)
    begun = _visits(path, everybody) + pull * everybody.initial.ravel()
    initial = (begun / begun.sum()).reshape(everybody.initial.shape)
    return MarkovChain.from_matrix(rows, initial, everybody.alphabet)


def _rows(counts: Floats, everybody: MarkovChain, pull: float) -> Floats:
    rows = counts + pull * everybody.transition()
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _counts(path: Ints, everybody: MarkovChain) -> Floats:
    moves = count_transitions([path], everybody.size, everybody.order).moves
    return np.asarray(moves.toarray())


def _visits(path: Ints, everybody: MarkovChain) -> Floats:
    """How often each context was met: a stream may be cut anywhere."""
    moves = _counts(path, everybody)
    return np.asarray(moves.sum(axis=1))


def _best_pull(paths: list[Ints], everybody: MarkovChain) -> float:
    """The pull under which the first two thirds of what is known predict the last one best."""
    scores = np.zeros(len(_PULLS))
    for path in paths:
        cut = 2 * len(path) // 3
        early = _counts(path[:cut], everybody)
        late = _counts(path[cut:], everybody)
        for place, pull in enumerate(_PULLS):
            scores[place] += (late * np.log(_rows(early, everybody, pull))).sum()
    return _PULLS[int(scores.argmax())]
