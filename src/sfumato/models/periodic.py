r"""A chain that changes with the hour: one transition matrix for each phase of a period.

$$P(x_{t+1} \mid x_t, h_{t+1}) = (1 - \lambda_{h x_t})\, S_h(x_{t+1} \mid x_t)
    + \lambda_{h x_t}\, u(x_{t+1})$$

where $h_{t+1}$ is the phase of the *next* value, $S_h$ are the known rows of that phase,
$\lambda$ is `backoff` and $u$ is `background`. The chain goes from value to value, however much
time lies between them: only the matrix depends on the hour. So irregular events, such as check-ins,
need no model of gaps.

Phases are public and say nothing of the values but what the chain says: an adversary knows when
something left. Times that depend on the values themselves are a channel of their own, which no
model here covers.

With one phase it is a `MarkovChain` of order 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sfumato.core.alphabet import Alphabet, Label
from sfumato.core.arrays import Floats, Ints
from sfumato.core.belief import Belief
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.core.randomness import Randomness, sampled
from sfumato.models.cycle import Cycle
from sfumato.models.fitting import Rows
from sfumato.models.markov import MarkovChain
from sfumato.models.periodic_fitting import count_by_phase, shared_parts


@dataclass(frozen=True, slots=True, eq=False)
class PeriodicChain:
    """A chain of order 1 with a matrix for each phase; see the module.

    Attributes:
        alphabet: The values a stream can take.
        cycle: What the phases are, and how a value gets its own.
        initial: Distribution of the first value of a stream that begins in each phase, one row
            each.
        known: The known rows of all phases, one phase below the other: dense or CSR.
        backoff: Weight of the background in each of these rows.
        background: Distribution that every row is mixed with.

    Examples:
        >>> night, day = [[0.9, 0.1], [0.6, 0.4]], [[0.3, 0.7], [0.1, 0.9]]
        >>> home_or_out = PeriodicChain.from_matrices([night, day], Cycle.of("2"))
        >>> home_or_out.at(1).following(Belief(np.array([1.0, 0.0]))).marginal
        array([0.3, 0.7])
    """

    # Files of models from before it had no such kind, and stay what they were.
    stored_later: ClassVar[bool] = True

    alphabet: Alphabet
    cycle: Cycle
    initial: Floats
    known: Rows
    backoff: Floats
    background: Floats
    _phases: tuple[MarkovChain, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        size, phases = len(self.alphabet), self.cycle.phases
        for name, shape, due in (
            ("initial", np.shape(self.initial), (phases, size)),
            ("transition", self.known.shape, (phases * size, size)),
            ("backoff", np.shape(self.backoff), (phases * size,)),
        ):
            if shape != due:
                raise InvalidParameter(name, shape, f"have shape {due}")
        made = []
        for phase in range(phases):
            rows = slice(phase * size, (phase + 1) * size)
            known = self.known[rows]
            own = known if isinstance(known, np.ndarray) else sparse.csr_array(known)
            start, backoff = self.initial[phase], self.backoff[rows]
            made.append(MarkovChain(self.alphabet, 1, start, own, backoff, self.background))
        object.__setattr__(self, "_phases", tuple(made))

    @classmethod
    def from_matrices(
        cls,
        transitions: Sequence[ArrayLike],
        cycle: Cycle,
        initial: ArrayLike | None = None,
        alphabet: Alphabet | None = None,
        floor: float = 0.0,
    ) -> Self:
        """A chain from the transition matrices of its phases.

        Args:
            transitions: One matrix a phase: row = last value, column = value in that phase.
            cycle: What the phases are.
            initial: How streams begin in each phase, one row each; what the matrix of the phase
                leaves unchanged if not given.
            alphabet: The symbols; 0, 1, ... if not given.
            floor: Least probability that every transition shall have. It is mixed in evenly.
        """
        if len(transitions) != cycle.phases:
            rule = f"be one matrix for each of {cycle.phases} phases"
            raise InvalidParameter("transitions", len(transitions), rule)
        starts: Sequence[ArrayLike | None] = [None] * cycle.phases
        if initial is not None:
            starts = list(np.asarray(initial, dtype=np.float64))
        chains = [
            MarkovChain.from_matrix(matrix, start, alphabet, floor)
            for matrix, start in zip(transitions, starts, strict=True)
        ]
        known = np.concatenate([np.asarray(chain.known) for chain in chains])
        return cls(
            chains[0].alphabet,
            cycle,
            np.stack([chain.initial for chain in chains]),
            known,
            np.concatenate([chain.backoff for chain in chains]),
            chains[0].background,
        )

    @classmethod
    def fit(
        cls,
        sequences: Iterable[Sequence[Label]],
        cycle: Cycle,
        *,
        phases: Iterable[Sequence[int] | Ints] | None = None,
        alphabet: Alphabet | None = None,
        smoothing: float = 0.5,
        floor: float = 1e-6,
        sharing: float | None = None,
    ) -> Self:
        """Fit a chain with full support to many recorded sequences.

        Args:
            sequences: Recorded sequences of symbols, one per stream.
            cycle: What the phases are.
            phases: The phase of each value of each sequence; by its place in the sequence if not
                given, for values in turn.
            alphabet: The symbols; those that occur, sorted, if not given.
            smoothing: Pseudo-counts per follower that a context has, as in `MarkovChain.fit`.
            floor: Least probability of any transition, greater than 0.
            sharing: How many transitions the rows of all phases together count as in each row of a
                phase; if not given, as many as predict the history best when each transition in
                turn is left out.

        Examples:
            >>> days = [["home", "work"] * 20] * 5
            >>> chain = PeriodicChain.fit(days, Cycle.of("2"), floor=1e-3)
            >>> chain.alphabet.labels, chain.full_support
            (('home', 'work'), True)
        """
        paths = [list(path) for path in sequences]
        if alphabet is None:
            alphabet = Alphabet.occurring(paths)
        codes = [alphabet.indices(path) for path in paths]
        own = phases_in_turn(codes, cycle) if phases is None else [np.array(p) for p in phases]
        return cls.of_places(alphabet, cycle, codes, own, smoothing, floor, sharing)

    @classmethod
    def of_places(
        cls,
        alphabet: Alphabet,
        cycle: Cycle,
        paths: Sequence[Ints],
        phases: Sequence[Ints],
        smoothing: float = 0.5,
        floor: float = 1e-6,
        sharing: float | None = None,
    ) -> Self:
        """Fit it to sequences of places and the phases of their values; arguments as in `fit`."""
        counts = count_by_phase(paths, phases, len(alphabet), cycle.phases)
        return cls(alphabet, cycle, *shared_parts(counts, smoothing, floor, sharing))

    @property
    def size(self) -> int:
        """Number of symbols."""
        return len(self.alphabet)

    @property
    def order(self) -> int:
        """How many past values the next one depends on, beside its phase."""
        return 1

    @property
    def floor(self) -> float:
        """Least probability of any transition in any phase; 0 when some are impossible."""
        return min(chain.floor for chain in self._phases)

    @property
    def full_support(self) -> bool:
        """Whether every value is possible at every moment."""
        return all(chain.full_support for chain in self._phases)

    @property
    def fingerprint(self) -> str:
        """Identifies the model."""
        cycle = self.cycle
        kind = "turn" if cycle.calendar is None else cycle.calendar.value
        parts = (cycle.period, cycle.phases, kind, str(cycle.zoned))
        return digest("periodic", *parts, *(chain.fingerprint for chain in self._phases))

    def at(self, phase: int) -> MarkovChain:
        """How values in one phase follow the values before them, and how streams begin in it."""
        if not 0 <= phase < self.cycle.phases:
            rule = f"be a phase, from 0 to {self.cycle.phases - 1}"
            raise InvalidParameter("phase", phase, rule)
        return self._phases[phase]

    def arrived(self, belief: Belief | None, phase: int) -> Belief:
        """Belief about a value once its phase is known.

        Args:
            belief: About the value before it; None if it is the first of its stream.
            phase: The phase of the value.
        """
        chain = self.at(phase)
        return chain.first() if belief is None else chain.following(belief)

    def sample(self, phases: Sequence[int] | Ints, randomness: Randomness) -> Ints:
        """Draw a sequence of symbol places with given phases, for simulations."""
        path: list[int] = []
        for phase, word in zip(phases, randomness.words(len(phases)), strict=True):
            chain = self.at(int(phase))
            row = chain.row(path[-1]) if path else chain.initial
            path.append(int(sampled(row, np.array([word]))[0]))
        return np.array(path, dtype=np.int64)


def phases_in_turn(paths: Sequence[Ints], cycle: Cycle) -> list[Ints]:
    """The phase of each value by its place in its sequence.

    Examples:
        >>> phases_in_turn([np.zeros(4)], Cycle.of("4", phases=2))
        [array([0, 0, 1, 1])]
    """
    if not cycle.in_turn:
        raise InvalidParameter("phases", None, "be given, unless values have them in turn")
    places = np.arange(max((len(path) for path in paths), default=0)) % cycle.period
    turns = places * cycle.phases // cycle.period
    return [turns[: len(path)] for path in paths]
