"""What a release of correlated streams was asked to do, as a document that an audit can read."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import msgspec

from sfumato.core import checks
from sfumato.core.alphabet import Alphabet
from sfumato.core.checks import choice
from sfumato.core.digest import digest
from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.core.purpose import Purpose
from sfumato.store.protocol import Job
from sfumato.tables.documents import read_document
from sfumato.temporal.least_noise import Allocation
from sfumato.temporal.loss_function import LossFunction
from sfumato.temporal.temporal_mechanisms import MOVED, Answer, Counts, Maker, Mechanism
from sfumato.temporal.temporal_plan import TemporalPlan

JOB = Job("temporal", "alpha, matrix, number of steps, allocation, mechanism or sensitivity")
Rows: TypeAlias = list[list[float]]
# Mechanisms of different budgets that are kept: those of one plan come again for every stream.
_KEPT = 4096
_MOST_ALPHA = 1e9
"""Far beyond what promises anything; further out the steps between floats hide what is carried."""


class Released(StrEnum):
    """What is released at each moment.

    Attributes:
        COUNTS: Whole numbers, of people, with two-sided geometric noise.
        RESPONSE: A person's own value, by randomised response.
    """

    COUNTS = "counts"
    RESPONSE = "response"


class OwnMatrices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The matrices of one stream; nothing is known of a direction that has none.

    Examples:
        >>> chain = [[0.8, 0.2], [0.2, 0.8]]
        >>> own = {"u1": OwnMatrices(backward=chain)}
        >>> TemporalSpec(alpha=1.0, steps=3, own=own).plan("u1").budgets.round(3)
        array([0.521, 0.521, 0.521])
    """

    backward: Rows | None = None
    forward: Rows | None = None


class TemporalSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Matrices, budget and rules of a release of correlated streams.

    Attributes:
        alpha: No moment may leak more than this.
        steps: Releases of each stream, if it is known; else streams are endless.
        allocation: How budgets are spread over a known number: `plain`, `least-noise`, `paper`.
        mechanism: `counts` or `response`.
        stream: Column that tells streams apart; people of one stream are in no other.
        values: Columns that are released together: of counts one or several.
        symbols: What a value may be, for a response.
        sensitivity: By how much one person's value changes all counts of a row together; if not
            given 1 for a single count, 2 for several: who moves leaves one and enters another.
        backward: Matrices from a value to the one before it, of which any may hold at any moment.
        forward: Matrices from a value to the next one.
        own: Matrices of single streams, by name, instead of these.
        missing: What becomes of a missing value: `refuse`, or `skip`, its moment passes.
        purpose: A release, or a simulation.

    Examples:
        >>> chain = [[0.8, 0.2], [0.2, 0.8]]
        >>> TemporalSpec(alpha=1.0, steps=3, backward=[chain]).plan("u1").budgets.round(3)
        array([0.521, 0.521, 0.521])
    """

    alpha: float
    steps: int | None = None
    allocation: str = "plain"
    mechanism: str = "counts"
    stream: str = "stream"
    values: tuple[str, ...] = ("value",)
    symbols: tuple[str, ...] = ()
    sensitivity: int | None = None
    backward: list[Rows] = []
    forward: list[Rows] = []
    own: dict[str, OwnMatrices] = {}
    missing: str = "refuse"
    purpose: str = "release"

    @property
    def fingerprint(self) -> str:
        """Identifies the rules: a ledger goes on under the same ones only."""
        # What becomes of gaps changes no answer: a ledger may go on with either.
        bare = msgspec.structs.replace(self, missing="refuse")
        return digest("temporal spec", msgspec.json.encode(bare, order="sorted").decode())

    @property
    def released(self) -> Released:
        """What is released at each moment."""
        return choice("mechanism", Released, self.mechanism)

    @property
    def alphabet(self) -> Alphabet:
        """The symbols of a response."""
        return Alphabet(self.symbols)

    @property
    def apart(self) -> int:
        """By how much one person's value changes all counts of a row together."""
        if self.sensitivity is None:
            return 1 if len(self.values) == 1 else MOVED
        return checks.count("sensitivity", self.sensitivity)

    def check(self) -> TemporalSpec:
        """Itself, if the rules fit together; a clear refusal if they do not."""
        if checks.positive("alpha", self.alpha) > _MOST_ALPHA:
            raise InvalidParameter("alpha", self.alpha, f"be at most {_MOST_ALPHA:g}")
        if not (self.backward or self.forward or self.own):
            raise InvalidParameter("matrices", None, "be given: --backward, --forward or --own")
        match self.released:
            case Released.RESPONSE if len(self.symbols) < 2 or len(self.values) != 1:
                rule = "be at least 2, for one column of values: what each person may answer"
                raise InvalidParameter("symbols", len(self.symbols), rule)
            case Released.COUNTS if self.symbols:
                raise InvalidParameter("symbols", len(self.symbols), "come with a response only")
            case _:
                pass
        if self.missing not in ("refuse", "skip"):
            raise InvalidParameter("missing", self.missing, "be refuse or skip, over time")
        choice("purpose", Purpose, self.purpose)
        # Every stream of its own matrices has a plan of its own, and each must leave a budget.
        for stream in self.own or [""]:
            self.plan(stream).begin(stream)  # says which rows leave no budget, if any do
        return self

    def losses(self, stream: str) -> tuple[LossFunction, LossFunction]:
        """The loss functions of one stream's own matrices, or of any of the common ones."""
        if (own := self.own.get(stream)) is not None:
            backward, forward = (
                [] if one is None else [one] for one in (own.backward, own.forward)
            )
            return _loss(backward), _loss(forward)
        if not (self.backward or self.forward):
            rule = "have matrices of its own, or come with --backward or --forward for all others"
            raise InvalidParameter("stream", stream, rule)
        return _loss(self.backward), _loss(self.forward)

    def strongest(self) -> tuple[LossFunction, LossFunction]:
        """Those of an adversary who knows the worst of all the matrices, at every moment."""
        backward = [one.backward for one in self.own.values() if one.backward is not None]
        forward = [one.forward for one in self.own.values() if one.forward is not None]
        return _loss([*self.backward, *backward]), _loss([*self.forward, *forward])

    def plan(self, stream: str) -> TemporalPlan:
        """The rule of one stream."""
        return TemporalPlan(
            *self.losses(stream),
            self.alpha,
            self.steps,
            choice("allocation", Allocation, self.allocation),
            _maker(self.released, self.symbols, self.apart),
            self.fingerprint,
            choice("purpose", Purpose, self.purpose),
        )


@lru_cache(maxsize=64)
def _maker(released: Released, symbols: tuple[str, ...], apart: int) -> Maker:
    """Makes the mechanisms of a spec; those of one budget are one object."""
    make = Counts.of(apart)
    if released is Released.RESPONSE:
        make = Answer.of(Alphabet(symbols))

    @lru_cache(maxsize=_KEPT)
    def kept(budget: float) -> Mechanism:
        return make(budget)

    return kept


def _loss(matrices: list[Rows]) -> LossFunction:
    return _loss_of(tuple(tuple(tuple(row) for row in matrix) for matrix in matrices))


@lru_cache(maxsize=4096)
def _loss_of(matrices: tuple[tuple[tuple[float, ...], ...], ...]) -> LossFunction:
    """One object for equal matrices: budgets are then found once for all who have them."""
    if not matrices:
        return LossFunction.unknown()
    return LossFunction.of_any([[list(row) for row in matrix] for matrix in matrices])


def beside(path: str) -> Path:
    """Where the document of a released table lies."""
    return Path(f"{path}.plan.json")


class _Stored(TemporalSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rules as they are written down, with the digest of all their fields."""

    written: str


def document(spec: TemporalSpec) -> bytes:
    """The document that goes beside a released table, matrices included."""
    stored = _Stored(**msgspec.structs.asdict(spec), written=_digest_of(spec))
    return msgspec.json.format(msgspec.json.encode(stored), indent=2)


def _digest_of(spec: TemporalSpec) -> str:
    return digest("written rules", msgspec.json.encode(spec, order="sorted").decode())


def read_spec(path: str | Path) -> TemporalSpec:
    """Read what `document` made."""
    return parse_spec(read_document("the plan", path), path)


def parse_spec(content: bytes, source: str | Path) -> TemporalSpec:
    """The same from bytes; `source` is what messages call them."""
    try:
        stored = msgspec.json.decode(content, type=_Stored)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise CorruptData(f"{source}: not the plan of a temporal release ({problem})") from problem
    fields = msgspec.structs.asdict(stored)
    written = fields.pop("written")
    spec = TemporalSpec(**fields)
    if written != _digest_of(spec):
        raise CorruptData(f"{source}: the rules are not those that were written: they were edited")
    return spec.check()
