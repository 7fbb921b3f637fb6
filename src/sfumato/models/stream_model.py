"""A model together with how a table is read for it: what is fitted, stored and released with."""

from __future__ import annotations

from dataclasses import dataclass, field

from sfumato.core.alphabet import Alphabet
from sfumato.core.errors import InvalidParameter
from sfumato.models.clustered_chain import ClusteredChain
from sfumato.models.cycle import Cycle
from sfumato.models.encoding import DEGREES, Encoding, check_degrees
from sfumato.models.learnt_history import LearntHistory
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.models.pair_chain import PairChain
from sfumato.models.periodic import PeriodicChain
from sfumato.models.private_history import PrivateHistory
from sfumato.models.value_chains import ValueChain


@dataclass(frozen=True, slots=True, eq=False)
class StreamModel:
    """A model together with how a table is read for it: what `sfumato fit` writes.

    Attributes:
        chain: What the adversary is assumed to know: a chain of values, one over the pairs that
            occur, a mixture of chains, one that changes with time, or a library of patterns.
        encoding: How raw values become symbols.
        stream: Name of the column that tells streams apart.
        values: Names of the columns that the value comes from.
        transitions: How many transitions the chain was fitted to.
        unit: What distances are in: `degrees` for a grid of longitude and latitude, whose
            distances are kilometres; any other word is only repeated; "" if nobody said.
        private: What it promises to the people it was fitted to; None if nothing.
        learnt: What it was learnt from; None if it was not learnt from released values, or by a
            program that did not say so.

    Examples:
        >>> from sfumato.models.encoding import Bins
        >>> speed = Bins([0.0, 10.0, 20.0])
        >>> chain = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]], alphabet=speed.alphabet)
        >>> StreamModel(chain, speed, stream="car", values=("speed",)).alphabet.labels
        ('5', '15')
    """

    chain: ValueChain | PatternLibrary | PeriodicChain
    encoding: Encoding
    stream: str = "stream"
    values: tuple[str, ...] = ("value",)
    transitions: int = 0
    unit: str = ""
    private: PrivateHistory | None = field(default=None, metadata={"later": True})
    learnt: LearntHistory | None = field(default=None, metadata={"later": True})

    @property
    def alphabet(self) -> Alphabet:
        """The values a stream can take."""
        return self.chain.alphabet

    @property
    def cycle(self) -> Cycle | None:
        """What comes again under a chain that changes with time; None for other models."""
        return self.chain.cycle if isinstance(self.chain, PeriodicChain) else None

    @property
    def steady(self) -> StreamModel:
        """The model itself, or a clear error if it changes with time."""
        return self.without_phases()

    def without_phases(self, instead: str = "") -> StreamModel:
        """The model itself, or a clear error if it changes with time.

        Args:
            instead: What can be done with such a model instead.
        """
        if self.cycle is not None:
            rule = "not change with time here: fit it without --period (fit, release, audit, "
            rule += f"recover and explain know phases{'; ' if instead else ''}{instead})"
            raise InvalidParameter("model", "a chain with phases", rule)
        return self

    @property
    def live_chain(self) -> ValueChain | PeriodicChain:
        """The model of single values as they come, or a clear error for a library."""
        if isinstance(self.chain, PatternLibrary):
            rule = "be a chain of single values: fit it without --batch"
            raise InvalidParameter("model", "a library of patterns", rule)
        return self.chain

    @property
    def value_by_value(self) -> ValueChain:
        """The chain of single values, or a clear error for a library."""
        chain = self.live_chain
        if isinstance(chain, PeriodicChain):
            rule = "be a chain that does not change with time for this: fit it without --period"
            raise InvalidParameter("model", "a chain with phases", rule)
        return chain

    @property
    def single_values(self) -> MarkovChain:
        """The chain of single values with a belief about all its contexts, or a clear error."""
        chain = self.value_by_value
        if isinstance(chain, PairChain):
            rule = "be a chain of order 1 for this, or have fewer symbols"
            raise InvalidParameter("model", "a chain over the pairs that occur", rule)
        if isinstance(chain, ClusteredChain):
            rule = "be one chain for all streams for this: fit it without --clusters"
            raise InvalidParameter("model", "a mixture of chains", rule)
        return chain

    def __post_init__(self) -> None:
        if self.encoding.alphabet != self.chain.alphabet:
            raise InvalidParameter("encoding.alphabet", "another", "be that of the chain")
        if len(self.values) != self.encoding.inputs:
            raise InvalidParameter("values", self.values, f"name {self.encoding.inputs} columns")
        if self.unit == DEGREES:
            check_degrees(self.encoding)
        if self.stream in self.values:
            raise InvalidParameter("the stream column", self.stream, "not hold the values")
