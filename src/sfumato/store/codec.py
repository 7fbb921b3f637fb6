"""Models, policies, states and events as versioned bytes.

An envelope names the kind and the version of what is inside and carries a checksum. Anything
damaged, unknown or of another version is refused: no guessing, no pickle, no code in data.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sfumato.core.alphabet import Alphabet, Label
from sfumato.core.arrays import Floats, Ints
from sfumato.core.belief import Belief
from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.core.events import Event, Outcome
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.ledger import Charge, Ledger
from sfumato.core.state import RealtimeState, StreamState
from sfumato.models.encoding import Bins, Encoding, Grid, StreamModel, Symbols
from sfumato.models.fitting import context_count
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.models.pair_chain import PairChain
from sfumato.models.prior import Prior
from sfumato.solver.policy import Policy, PolicyReport

Storable = (
    Prior
    | MarkovChain
    | PairChain
    | PatternLibrary
    | StreamModel
    | Policy
    | StreamState
    | RealtimeState
    | Event
)
Kind = TypeVar(
    "Kind",
    Prior,
    MarkovChain,
    PairChain,
    PatternLibrary,
    StreamModel,
    Policy,
    StreamState,
    RealtimeState,
    Event,
)

AnyChain = MarkovChain | PairChain | PatternLibrary

MAGIC = b"sfumato\n"
VERSION = 1
_DTYPES = {"<f8", "<i8", "<i4", "<u2"}


class _Envelope(msgspec.Struct, frozen=True):
    kind: str
    version: int
    body: bytes
    checksum: bytes


class _Array(msgspec.Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data: bytes


class _Alphabet(msgspec.Struct, frozen=True):
    labels: list[str | int]
    coordinates: _Array | None


class _Prior(msgspec.Struct, frozen=True, tag="prior"):
    alphabet: _Alphabet
    probabilities: _Array


class _Chain(msgspec.Struct, frozen=True, tag="markov-chain"):
    alphabet: _Alphabet
    order: int
    initial: _Array
    known: list[_Array]
    backoff: _Array
    background: _Array


class _Pairs(msgspec.Struct, frozen=True, tag="pairs"):
    single: _Chain
    rows: list[_Array]
    forgets: _Array
    reset: float


class _Library(msgspec.Struct, frozen=True, tag="library"):
    alphabet: _Alphabet
    patterns: _Array
    chain: _Chain


class _StreamModel(msgspec.Struct, frozen=True, tag="stream-model"):
    chain: _Chain | _Pairs | _Library
    edges: list[_Array]
    stream: str
    values: tuple[str, ...]
    transitions: int
    unit: str = ""
    clip: bool = False


class _Policy(msgspec.Struct, frozen=True, tag="policy"):
    chain: str
    loss: str
    method: str
    epsilon: float
    ldp: float | None
    repair_limit: float
    tables: list[_Array]
    report: tuple[int, float, float, float]


class _State(msgspec.Struct, frozen=True, tag="instant-state"):
    plan: str
    stream: str
    sequence: int
    joint: _Array
    axis: int
    drift: float
    last: int | None
    count: int
    sip: float
    ldp: float
    recent: list[tuple[float, float]]
    runs: _Array | None = None


class _Event(msgspec.Struct, frozen=True, tag="event"):
    stream: str
    sequence: int
    outcome: str
    released: str | int | None
    sip: float
    ldp: float
    batch: int | None = None


class _Realtime(msgspec.Struct, frozen=True, tag="realtime-state"):
    method: str
    time: int
    arrays: dict[str, _Array]


_Body = _Prior | _Chain | _Pairs | _Library | _StreamModel | _Policy | _State | _Realtime | _Event
_decoder = msgspec.msgpack.Decoder(_Body)
_envelope = msgspec.msgpack.Decoder(_Envelope)


def to_bytes(thing: Storable) -> bytes:
    """Encode a model, a policy, a state or an event.

    Examples:
        >>> back = from_bytes(to_bytes(Prior([0.7, 0.3])), Prior)
        >>> back.probabilities
        array([0.7, 0.3])
    """
    content = _packed(thing)
    body = msgspec.msgpack.encode(content)
    kind = str(type(content).__struct_config__.tag)
    envelope = _Envelope(kind, VERSION, body, _checksum(kind, VERSION, body))
    return MAGIC + msgspec.msgpack.encode(envelope)


def from_bytes(data: bytes, kind: type[Kind]) -> Kind:
    """Decode what `to_bytes` made, if it is of the expected kind.

    Raises:
        CorruptData: If the bytes are damaged, of another kind or of another version.
    """
    thing = decode(data)
    if not isinstance(thing, kind):
        raise CorruptData(
            f"stored data must be of kind {kind.__name__}; got {type(thing).__name__}"
        )
    return thing


def decode(data: bytes) -> Storable:
    """Decode anything that `to_bytes` made."""
    if not data.startswith(MAGIC):
        raise CorruptData("stored data must begin with the mark of Sfumato; it does not")
    try:
        envelope = _envelope.decode(data[len(MAGIC) :])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise CorruptData(f"stored data is damaged: {problem}") from problem
    if envelope.version != VERSION:
        raise CorruptData(
            f"stored data of kind {envelope.kind!r} must have version {VERSION}; "
            f"got {envelope.version}"
        )
    if envelope.checksum != _checksum(envelope.kind, envelope.version, envelope.body):
        raise CorruptData(f"stored data of kind {envelope.kind!r} is damaged: checksum differs")
    try:
        return _unpacked(_decoder.decode(envelope.body))
    except (
        msgspec.MsgspecError,
        UnicodeDecodeError,
        InvalidParameter,
        RecursionError,
        OverflowError,
    ) as problem:
        raise CorruptData(
            f"stored data of kind {envelope.kind!r} is refused: {problem}"
        ) from problem


def _checksum(kind: str, version: int, body: bytes) -> bytes:
    return hashlib.sha256(f"{kind} {version} ".encode() + body).digest()


def _packed(thing: Storable) -> _Body:
    match thing:
        case Prior():
            return _Prior(_alphabet(thing.alphabet), _array(thing.probabilities))
        case MarkovChain() | PairChain() | PatternLibrary():
            return _packed_model(thing)
        case StreamModel():
            return _StreamModel(
                _packed_model(thing.chain),
                _packed_edges(thing.encoding),
                thing.stream,
                thing.values,
                thing.transitions,
                thing.unit,
                isinstance(thing.encoding, Bins | Grid) and thing.encoding.clip,
            )
        case Policy():
            return _packed_policy(thing)
        case StreamState():
            return _packed_state(thing)
        case RealtimeState():
            arrays = {name: _array(array) for name, array in thing.arrays.items()}
            return _Realtime(thing.method, thing.time, arrays)
        case Event():
            outcome, costs = thing.outcome.value, (thing.sip.epsilon, thing.ldp.epsilon)
            return _Event(
                thing.stream, thing.sequence, outcome, thing.released, *costs, thing.batch
            )
        case _:
            raise InvalidParameter(
                "thing", type(thing).__name__, "be a model, policy, state or event"
            )


def _unpacked(body: _Body) -> Storable:
    match body:
        case _Prior():
            return Prior(_float_array(body.probabilities), _read_alphabet(body.alphabet))
        case _Chain() | _Pairs() | _Library():
            return _read_model(body)
        case _StreamModel():
            chain = _read_model(body.chain)
            encoding = _read_encoding(body.edges, chain.alphabet, body.clip)
            columns = (body.stream, body.values)
            return StreamModel(chain, encoding, *columns, body.transitions, body.unit)
        case _Policy():
            return _read_policy(body)
        case _State():
            return _read_state(body)
        case _Realtime():
            kept = {name: _float_array(array) for name, array in body.arrays.items()}
            return RealtimeState(body.method, body.time, kept)
        case _Event():
            return Event(
                body.stream,
                body.sequence,
                _outcome(body.outcome),
                body.released,
                SIP(body.sip),
                LDP(body.ldp),
                body.batch,
            )


def _packed_model(model: AnyChain) -> _Chain | _Pairs | _Library:
    if isinstance(model, MarkovChain):
        return _packed_chain(model)
    if isinstance(model, PairChain):
        rows = model.rows
        parts = [_array(part) for part in (rows.data, rows.indices, rows.indptr)]
        return _Pairs(_packed_chain(model.single), parts, _array(model.forgets), model.reset)
    chain = _packed_chain(model.chain)
    return _Library(_alphabet(model.alphabet), _array(model.patterns), chain)


def _read_model(body: _Chain | _Pairs | _Library) -> AnyChain:
    if isinstance(body, _Chain):
        return _read_chain(body)
    if isinstance(body, _Pairs):
        single, forgets = _read_chain(body.single), _float_array(body.forgets)
        if len(body.rows) != 3:
            raise CorruptData("a stored chain of pairs must hold 3 arrays of known rows")
        data, indices, indptr = (_read_array(part) for part in body.rows)
        rows = _csr(data, indices, indptr, (forgets.size, single.size))
        return PairChain(single, rows, forgets, body.reset)
    patterns = _read_array(body.patterns)
    return PatternLibrary(_read_alphabet(body.alphabet), patterns, _read_chain(body.chain))


def _packed_chain(chain: MarkovChain) -> _Chain:
    return _Chain(
        _alphabet(chain.alphabet),
        chain.order,
        _array(chain.initial),
        _known(chain),
        _array(chain.backoff),
        _array(chain.background),
    )


def _packed_edges(encoding: Encoding) -> list[_Array]:
    """No edges: symbols. One list: bins. Two: a grid."""
    match encoding:
        case Symbols():
            return []
        case Bins():
            return [_array(encoding.edges)]
        case Grid():
            return [_array(encoding.x_edges), _array(encoding.y_edges)]


def _read_encoding(edges: list[_Array], alphabet: Alphabet, clip: bool) -> Encoding:
    match [_float_array(part) for part in edges]:
        case []:
            return Symbols(alphabet)
        case [bins]:
            return Bins(bins, clip=clip)
        case [xs, ys]:
            return Grid(xs, ys, clip=clip)
        case _:
            raise CorruptData("a stored encoding must hold at most 2 lists of edges")


def _packed_policy(policy: Policy) -> _Policy:
    report = policy.report
    return _Policy(
        chain=policy.chain,
        loss=policy.loss,
        method=policy.method,
        epsilon=policy.epsilon,
        ldp=policy.ldp,
        repair_limit=policy.repair_limit,
        tables=[_array(table) for table in policy.tables],
        report=(report.steps, report.extra_loss, report.missed, report.repair),
    )


def _read_policy(body: _Policy) -> Policy:
    tables: Any = tuple(_read_array(table) for table in body.tables)
    return Policy(
        body.chain,
        body.loss,
        body.method,
        body.epsilon,
        body.ldp,
        body.repair_limit,
        tables,
        PolicyReport(*body.report),
    )


def _packed_state(state: StreamState) -> _State:
    ledger, belief = state.ledger, state.belief
    return _State(
        plan=state.plan,
        stream=state.stream,
        sequence=state.sequence,
        joint=_array(belief.joint),
        axis=belief.axis,
        drift=belief.drift,
        last=state.last,
        count=ledger.count,
        sip=ledger.sip,
        ldp=ledger.ldp,
        recent=[(charge.sip, charge.ldp) for charge in ledger.recent],
        runs=None if belief.runs is None else _array(belief.runs),
    )


def _read_state(body: _State) -> StreamState:
    recent = tuple(Charge(sip, ldp) for sip, ldp in body.recent)
    ledger = Ledger(body.count, body.sip, body.ldp, recent)
    runs = None if body.runs is None else _read_runs(body.runs)
    belief = Belief(_float_array(body.joint), body.axis, body.drift, runs)
    return StreamState(body.plan, body.stream, body.sequence, belief, ledger, body.last)


def _read_runs(body: _Array) -> Ints:
    runs = _read_array(body)
    if runs.dtype != np.int64 or runs.ndim != 1 or runs.size < 2 or not np.all(np.diff(runs) > 0):
        raise CorruptData("stored hidden states must be listed in rising order")
    return runs


def _known(chain: MarkovChain) -> list[_Array]:
    known = chain.known
    if isinstance(known, np.ndarray):
        return [_array(known)]
    return [_array(part) for part in (known.data, known.indices, known.indptr)]


def _read_chain(body: _Chain) -> MarkovChain:
    alphabet = _read_alphabet(body.alphabet)
    shape = (context_count(len(alphabet), body.order), len(alphabet))
    parts = [_read_array(part) for part in body.known]
    match parts:
        case [dense]:
            known: Any = dense
        case [data, indices, indptr]:
            known = _csr(data, indices, indptr, shape)
        case _:
            raise CorruptData("a stored chain must hold 1 or 3 arrays of known rows")
    return MarkovChain(
        alphabet,
        body.order,
        _float_array(body.initial),
        known,
        _float_array(body.backoff),
        _float_array(body.background),
    )


def _csr(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]
) -> sparse.csr_array:
    try:
        rows = sparse.csr_array((data, indices, indptr), shape=shape)
        rows.check_format(full_check=True)
    except ValueError as problem:
        raise CorruptData(f"a stored chain holds a broken sparse matrix: {problem}") from problem
    return rows


def _outcome(name: str) -> Outcome:
    try:
        return Outcome(name)
    except ValueError as problem:
        raise CorruptData(f"outcome {name!r} is not known to this version") from problem


def _alphabet(alphabet: Alphabet) -> _Alphabet:
    places = alphabet.coordinates
    return _Alphabet(list(alphabet.labels), None if places is None else _array(places))


def _read_alphabet(body: _Alphabet) -> Alphabet:
    labels: list[Label] = list(body.labels)
    return Alphabet(labels, None if body.coordinates is None else _float_array(body.coordinates))


def _array(array: NDArray[Any]) -> _Array:
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return _Array(little.dtype.str, array.shape, little.tobytes())


def _read_array(body: _Array) -> NDArray[Any]:
    if body.dtype not in _DTYPES:
        raise CorruptData(f"stored arrays must have one of the types {sorted(_DTYPES)}")
    if math.prod(body.shape) * np.dtype(body.dtype).itemsize != len(body.data):
        # A shape of no elements, or of -1, would be free to declare anything.
        raise CorruptData("a stored array must have the shape that its content has")
    try:
        return np.frombuffer(body.data, dtype=body.dtype).reshape(body.shape).copy()
    except ValueError as problem:
        raise CorruptData(f"a stored array is damaged: {problem}") from problem


def _float_array(body: _Array) -> Floats:
    array = _read_array(body)
    if array.dtype != np.float64 or not np.all(np.isfinite(array)):
        raise CorruptData("stored probabilities must be finite floats")
    return array
