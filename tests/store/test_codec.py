import hashlib
from dataclasses import dataclass, field, make_dataclass, replace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from sfumato import (
    LDP,
    SIP,
    Alphabet,
    Event,
    Fallback,
    Horizon,
    Ledger,
    MarkovChain,
    PerStep,
    Plan,
    Policy,
    Prior,
    Window,
    compile_policy,
    keyed,
    loss,
)
from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.core.ledger import Charge
from sfumato.models.encoding import Bins, Grid, Symbols
from sfumato.models.stream_model import StreamModel
from sfumato.store import from_bytes, to_bytes
from sfumato.store.codec import MAGIC, VERSION
from sfumato.stream import Belief, Outcome, StreamState

STORED: Any = Prior | MarkovChain | StreamState | Event | Policy


def decode(data: bytes) -> Any:
    """Any of the kinds below."""
    return from_bytes(data, STORED)


SECRET = b"a secret of sixteen bytes or more"
CHAIN = MarkovChain.from_matrix(
    [[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]], alphabet=Alphabet("abc")
)
ORDER_TWO = MarkovChain.from_matrix(
    [[0.7, 0.3], [0.4, 0.6], [0.5, 0.5], [0.2, 0.8]], alphabet=Alphabet("ab"), floor=0.01
)

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
labels = st.one_of(words, st.integers(-(2**63), 2**63 - 1))
amounts = st.floats(0.0, 1e6)


@st.composite
def alphabets(draw: st.DrawFn, max_size: int = 4) -> Alphabet:
    symbols = draw(st.lists(labels, min_size=1, max_size=max_size, unique=True))
    places = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2)
    rows = st.lists(places, min_size=len(symbols), max_size=len(symbols))
    return Alphabet(symbols, draw(st.none() | rows))


def shares(draw: Any, count: int) -> Any:
    weights = draw(st.lists(st.integers(0, 99), min_size=count, max_size=count).filter(any))
    return np.array(weights) / sum(weights)


@st.composite
def priors(draw: st.DrawFn) -> Prior:
    alphabet = draw(alphabets())
    return Prior(shares(draw, len(alphabet)), alphabet)


@st.composite
def chains(draw: st.DrawFn) -> MarkovChain:
    alphabet, order = draw(alphabets(3)), draw(st.integers(1, 2))
    size, contexts = len(alphabet), len(alphabet) ** order
    known = np.array([shares(draw, size) for _ in range(contexts)])
    return MarkovChain(
        alphabet,
        order,
        shares(draw, contexts).reshape((size,) * order),
        sparse.csr_array(known) if draw(st.booleans()) else known,
        np.array([draw(st.floats(0, 1)) for _ in range(contexts)]),
        shares(draw, size),
    )


@st.composite
def states(draw: st.DrawFn) -> StreamState:
    size, order = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    joint = shares(draw, size**order).reshape((size,) * order)
    charges = st.lists(st.builds(Charge, amounts, amounts), max_size=4).map(tuple)
    count = st.integers(0, 2**40)
    return StreamState(
        plan=draw(words),
        stream=draw(words),
        sequence=draw(count),
        belief=Belief(joint, draw(st.integers(0, order - 1)), draw(st.floats(0, 1))),
        ledger=Ledger(draw(count), draw(amounts), draw(amounts), draw(charges)),
        last=draw(st.none() | st.integers(0, size - 1)),
    )


events = st.builds(
    Event,
    words,
    st.integers(0, 2**40),
    st.sampled_from(Outcome),
    st.none() | labels,
    st.builds(SIP, amounts),
    st.builds(LDP, amounts),
)


POLICY = compile_policy(CHAIN, loss.hamming(CHAIN.alphabet), 1.5, steps=64, max_channels=5)


def running_state() -> StreamState:
    plan = Plan(CHAIN, Window(SIP(1.5), 3), loss.hamming(CHAIN.alphabet))
    state = plan.begin("u4")
    for value in "abc":
        _, state = plan.step(state, [value], keyed(SECRET))
    return state


# Round trips -------------------------------------------------------------------------------------


@given(priors())
def test_a_prior_survives(prior: Prior) -> None:
    back = from_bytes(to_bytes(prior), Prior)
    assert back.fingerprint == prior.fingerprint
    assert back.alphabet == prior.alphabet
    assert np.array_equal(back.probabilities, prior.probabilities)
    assert to_bytes(back) == to_bytes(prior)


@given(chains())
def test_a_chain_survives_dense_or_sparse_of_any_order(chain: MarkovChain) -> None:
    back = from_bytes(to_bytes(chain), MarkovChain)
    assert back.fingerprint == chain.fingerprint
    assert (back.order, back.alphabet) == (chain.order, chain.alphabet)
    assert isinstance(back.known, np.ndarray) == isinstance(chain.known, np.ndarray)
    assert np.array_equal(back.transition(), chain.transition())
    assert np.array_equal(back.initial, chain.initial)
    assert to_bytes(back) == to_bytes(chain)


@given(states())
def test_a_state_survives(state: StreamState) -> None:
    back = from_bytes(to_bytes(state), StreamState)
    assert np.array_equal(back.belief.joint, state.belief.joint)
    assert (back.belief.axis, back.belief.drift) == (state.belief.axis, state.belief.drift)
    assert replace(back, belief=state.belief) == state
    assert to_bytes(back) == to_bytes(state)


@given(events)
def test_an_event_survives(event: Event) -> None:
    back = from_bytes(to_bytes(event), Event)
    assert back == event
    assert type(back.released) is type(event.released)


@pytest.mark.parametrize(
    "encoding", [Symbols(Alphabet("abc")), Bins([0.0, 1.0, 5.0, 6.0]), Grid([0, 1, 2, 3], [0, 9])]
)
def test_a_model_of_a_table_survives(encoding: Symbols | Bins | Grid) -> None:
    chain = replace(CHAIN, alphabet=encoding.alphabet)
    columns = ("x", "y")[: encoding.inputs]
    model = StreamModel(chain, encoding, "user", columns, 7)
    back = from_bytes(to_bytes(model), StreamModel)
    assert (back.stream, back.values, back.transitions) == ("user", columns, 7)
    assert type(back.encoding) is type(encoding)
    assert back.encoding.alphabet == encoding.alphabet
    assert back.chain.fingerprint == chain.fingerprint


@pytest.mark.parametrize("ldp", [None, 2.0])
def test_a_policy_survives(ldp: float | None) -> None:
    policy = replace(POLICY, ldp=ldp)
    back = from_bytes(to_bytes(policy), Policy)
    assert back.fingerprint == policy.fingerprint
    assert (back.allowed, back.report) == (policy.allowed, policy.report)
    tables: Any = zip(policy.tables, back.tables, strict=True)
    for one, two in tables:
        assert one.dtype == two.dtype
        assert np.array_equal(one, two)
    assert to_bytes(back) == to_bytes(policy)
    plan = Plan(CHAIN, PerStep(SIP(1.5)), loss.hamming(CHAIN.alphabet), policy=policy)
    again = replace(plan, policy=back)
    assert again.fingerprint == plan.fingerprint
    (one_event,), state = plan.step(plan.begin("u4"), ["a"], keyed(SECRET))
    (two_event,), other = again.step(again.begin("u4"), ["a"], keyed(SECRET))
    assert one_event == two_event
    assert to_bytes(state) == to_bytes(other)


def test_numbers_and_words_that_look_alike_stay_apart() -> None:
    prior = Prior([0.5, 0.5], Alphabet([1, "1"]))
    assert from_bytes(to_bytes(prior), Prior).alphabet.labels == (1, "1")


# Going on ----------------------------------------------------------------------------------------


PLANS = {
    "window": Plan(CHAIN, Window(SIP(1.5), 3), loss.hamming(CHAIN.alphabet)),
    "horizon": Plan(CHAIN, Horizon(SIP(4.0), 8, LDP(5.0)), loss.hamming(CHAIN.alphabet)),
    "order two": Plan(ORDER_TWO, PerStep(SIP(0.8)), loss.hamming(ORDER_TWO.alphabet)),
    "repeat": Plan(
        CHAIN,
        Horizon(SIP(2.0), 4),
        loss.hamming(CHAIN.alphabet),
        on_exhausted=Fallback.REPEAT,
        on_unknown=Fallback.SUBSTITUTE,
    ),
}


@pytest.mark.parametrize("name", list(PLANS))
def test_a_release_interrupted_after_any_step_goes_on_as_if_it_were_not(name: str) -> None:
    plan = PLANS[name]
    values = ["a", "b", "b", "z" if name == "repeat" else "a", "a", "b"]
    for pause in range(len(values)):
        whole = resumed = plan.begin("u4")
        for step, value in enumerate(values):
            if step == pause:
                resumed = from_bytes(to_bytes(resumed), StreamState)
            one, two = plan.prepare(whole), plan.prepare(resumed)
            assert (one is None) == (two is None)
            if one is not None and two is not None:
                assert np.array_equal(one.design.channel.weights, two.design.channel.weights)
                assert np.array_equal(one.design.channel.outputs, two.design.channel.outputs)
            (event,), whole = plan.step(whole, [value], keyed(SECRET))
            (again,), resumed = plan.step(resumed, [value], keyed(SECRET))
            assert again == event
            assert resumed.ledger == whole.ledger
            assert to_bytes(resumed) == to_bytes(whole)


def test_a_state_goes_on_with_a_model_that_was_stored_too() -> None:
    stored = from_bytes(to_bytes(CHAIN), MarkovChain)
    plan = Plan(CHAIN, PerStep(SIP(1.0)), loss.hamming(CHAIN.alphabet))
    again = Plan(stored, PerStep(SIP(1.0)), loss.hamming(stored.alphabet))
    _, state = plan.step(plan.begin("u4"), ["a"], keyed(SECRET))
    (one,), _ = plan.step(state, ["b"], keyed(SECRET))
    (two,), _ = again.step(state, ["b"], keyed(SECRET))
    assert one == two


# What is not stored ------------------------------------------------------------------------------


def test_a_state_holds_no_value_and_no_label() -> None:
    raw = ("RAW-kitchen-717", "RAW-garden-718", "RAW-clinic-719")
    chain = MarkovChain.from_matrix(
        [[0.98, 0.01, 0.01], [0.97, 0.02, 0.01], [0.97, 0.01, 0.02]], alphabet=Alphabet(raw)
    )
    plan = Plan(chain, PerStep(SIP(0.05)), loss.hamming(chain.alphabet))
    state, released = plan.begin("u4"), set()
    for value in (*raw, *raw[::-1]):
        (event,), state = plan.step(state, [value], keyed(SECRET))
        released.add(event.released)
        stored = to_bytes(state)
        for label in raw:
            assert label.encode() not in stored
        for hidden in set(raw) - {event.released}:
            assert str(hidden).encode() not in to_bytes(event)
    assert released == {raw[0]}


def test_two_true_streams_with_the_same_outputs_leave_the_same_bytes() -> None:
    plan = PLANS["window"]
    one = two = plan.begin("u4")
    for value in "abcabc":
        (event,), one = plan.step(one, [value], keyed(SECRET))
        # Whatever was true, an onlooker who saw this output holds the same state.
        assert event.released is not None
        _, two = plan.observe(two, [event.released])
        assert to_bytes(one) == to_bytes(two)


# Damage ------------------------------------------------------------------------------------------


EVENT = Event("u4", 17, Outcome.RELEASED, "home", SIP(0.2), LDP(0.3))
SAMPLES: dict[str, Any] = {
    "prior": Prior([0.7, 0.3]),
    "chain": MarkovChain.from_matrix(sparse.csr_array([[0.9, 0.1], [0.2, 0.8]]), floor=0.01),
    "state": running_state(),
    "event": EVENT,
}
EVERYTHING: dict[str, Any] = SAMPLES | {"policy": POLICY}


@pytest.mark.parametrize("name", list(SAMPLES))
def test_every_truncation_is_refused(name: str) -> None:
    data = to_bytes(SAMPLES[name])
    for length in range(len(data)):
        with pytest.raises(CorruptData):
            decode(data[:length])


@pytest.mark.parametrize("name", list(SAMPLES))
def test_every_flipped_byte_is_refused(name: str) -> None:
    data = to_bytes(SAMPLES[name])
    for place in range(len(data)):
        for mask in (0x01, 0x80, 0xFF, 0x20, 1 + place % 255):
            damaged = bytearray(data)
            damaged[place] ^= mask
            with pytest.raises(CorruptData):
                decode(bytes(damaged))


@pytest.mark.parametrize("name", list(SAMPLES))
def test_anything_added_is_refused(name: str) -> None:
    data = to_bytes(SAMPLES[name])
    for added in (b"\x00", b"\xc0", data):
        with pytest.raises(CorruptData):
            decode(data + added)
        with pytest.raises(CorruptData):
            decode(added + data)


@pytest.mark.parametrize("other", ["prior", "chain", "state", "event", "policy"])
@pytest.mark.parametrize("kind", [Prior, MarkovChain, StreamState, Event, Policy])
def test_another_kind_is_refused(other: str, kind: type[Any]) -> None:
    thing = EVERYTHING[other]
    if isinstance(thing, kind):
        assert isinstance(from_bytes(to_bytes(thing), kind), kind)
        return
    with pytest.raises(CorruptData, match=f"must be of kind {kind.__name__}; got"):
        from_bytes(to_bytes(thing), kind)


def opened(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The envelope of a sample, and its fields."""
    envelope = msgspec.msgpack.decode(to_bytes(EVERYTHING[name])[len(MAGIC) :])
    return envelope, msgspec.msgpack.decode(envelope["body"])


def forged(name: str, version: int = VERSION, **changes: Any) -> bytes:
    """Stored bytes with some fields changed and the checksum made right again."""
    envelope, fields = opened(name)
    layout = changes.pop("layout", envelope["layout"])
    body = msgspec.msgpack.encode(fields | changes)
    summed = f"{envelope['kind']} {version} ".encode() + layout + body
    checksum = hashlib.sha256(summed).digest()
    changed = {"version": version, "body": body, "checksum": checksum, "layout": layout}
    return MAGIC + msgspec.msgpack.encode(envelope | changed)


def test_the_forger_can_forge() -> None:
    assert decode(forged("event", sequence=18)) == replace(EVENT, sequence=18)


@pytest.mark.parametrize("name", list(SAMPLES))
@pytest.mark.parametrize("version", [0, 1, 99])
def test_another_version_is_refused(name: str, version: int) -> None:
    with pytest.raises(CorruptData, match=f"must have version 2; got {version}"):
        decode(forged(name, version))


@dataclass(frozen=True)
class Grown:
    """A kind that got two fields, one after the other."""

    size: int
    first: int | None = field(default=None, metadata={"later": True})
    second: str | None = field(default=None, metadata={"later": True})


def test_files_from_before_each_later_field_are_read_and_written_as_they_were() -> None:
    once = make_dataclass("Grown", [("size", int)])
    then = make_dataclass("Grown", [("size", int), ("first", int | None)])
    for old, now in ((once(3), Grown(3)), (then(3, 7), Grown(3, 7))):
        assert from_bytes(to_bytes(old), Grown) == now
        assert to_bytes(now) == to_bytes(old)
    for new in (Grown(3, None, "x"), Grown(3, 7, "x")):
        assert from_bytes(to_bytes(new), Grown) == new


def test_other_fields_are_refused() -> None:
    with pytest.raises(CorruptData, match="other fields than in this version"):
        decode(forged("event", layout=b"of other"))


def array(values: Any, kind: str = "<f8") -> dict[str, Any]:
    made = np.array(values, dtype=kind)
    return {"dtype": kind, "shape": made.shape, "data": made.tobytes()}


def belief(joint: dict[str, Any], axis: int) -> dict[str, Any]:
    return {"joint": joint, "axis": axis, "drift": 0.0, "runs": None}


BROKEN = [array([7], "<i4"), array([0, 1, 1], "<i4")]
"""Columns that are not there."""


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("event", {"receipt": "yes"}),
        ("event", {"outcome": "sold"}),
        ("event", {"sequence": "first"}),
        ("event", {"sequence": True}),
        ("event", {"released": 0.5}),
        ("event", {"sip": [-1.0, 0.0]}),
        ("event", {"sip": [1.0]}),
        ("event", {"ldp": [float("nan"), 0.0]}),
        ("prior", {"probabilities": array([0.7, 0.4])}),
        ("prior", {"probabilities": array([0.7, float("nan")])}),
        ("prior", {"probabilities": array([1, 0], "<i8")}),
        ("prior", {"probabilities": array([0.7, 0.3]) | {"dtype": "|O"}}),
        ("prior", {"probabilities": array([0.7, 0.3]) | {"shape": (3,)}}),
        ("prior", {"probabilities": array([0.7, 0.3]) | {"shape": (-1,)}}),
        ("prior", {"probabilities": array([0.7, 0.3]) | {"shape": (-2, -1)}}),
        ("prior", {"probabilities": array([0.7, 0.3]) | {"data": b"short"}}),
        ("prior", {"alphabet": {"labels": [0, 0], "coordinates": None}}),
        ("chain", {"order": 0}),
        ("chain", {"known": []}),
        ("chain", {"known": ["Path", []]}),
        ("chain", {"known": ["csr_array", [[2, 2], array([0.9]), *BROKEN]]}),
        ("chain", {"background": array([2.0, -1.0])}),
        ("policy", {"tables": []}),
        ("policy", {"tables": [array([0.5])] * 10}),
        ("policy", {"tables": [array([1], "<i8")] * 10}),
        ("policy", {"epsilon": 0.0}),
        ("policy", {"epsilon": 1e3}),
        ("policy", {"ldp": -1.0}),
        ("policy", {"repair_limit": float("nan")}),
        ("policy", {"report": (1, 0.0)}),
        ("state", {"belief": belief(array([0.5, 0.5]), 5)}),
        ("state", {"belief": belief(array([float("inf")]), 0)}),
        ("state", {"ledger": None}),
    ],
)
def test_content_that_breaks_a_rule_is_refused(name: str, changes: dict[str, Any]) -> None:
    with pytest.raises(CorruptData):
        decode(forged(name, **changes))


def packed_tables() -> list[dict[str, Any]]:
    tables: list[dict[str, Any]] = opened("policy")[1]["tables"]
    return tables


@settings(max_examples=300)
@given(st.integers(0, 9), st.data())
def test_a_forged_byte_of_a_policy_is_refused_or_shows_in_its_fingerprint(
    place: int, data: st.DataObject
) -> None:
    """With the checksum made right again; what is let through keeps its price: see test_policy."""
    tables = packed_tables()
    content = bytearray(tables[place]["data"])
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    tables[place]["data"] = bytes(content)
    try:
        forgery = decode(forged("policy", tables=tables))
    except CorruptData:
        return
    assert isinstance(forgery, Policy)
    assert forgery.fingerprint != POLICY.fingerprint
    assert place in (2, 3, 5, 7, 8, 9)  # the others are what certificates rest on


@pytest.mark.parametrize("place", range(10))
def test_a_policy_with_a_table_of_another_shape_is_refused(place: int) -> None:
    for shape in ([-1], [1, -1], [-1, 1, 1]):
        tables = packed_tables()
        before = tables[place]["shape"]
        size = int(np.prod(before))
        tables[place]["shape"] = [size if part == -1 else part for part in shape]
        if list(tables[place]["shape"]) != list(before):
            with pytest.raises(CorruptData):
                decode(forged("policy", tables=tables))


def test_a_damaged_policy_is_refused() -> None:
    data = to_bytes(POLICY)
    for place in range(0, len(data), max(1, len(data) // 400)):
        wrong = bytearray(data)
        wrong[place] ^= 0x11
        for damaged in (bytes(wrong), data[:place]):
            with pytest.raises(CorruptData):
                decode(damaged)


@settings(max_examples=200)
@given(st.binary(max_size=60))
def test_noise_is_refused(noise: bytes) -> None:
    with pytest.raises(CorruptData):
        decode(noise)
    with pytest.raises(CorruptData):
        decode(MAGIC + noise)


def test_only_what_can_be_stored_is() -> None:
    with pytest.raises(
        InvalidParameter, match="thing must be a dataclass of plain fields; got 'dict'"
    ):
        to_bytes({"epsilon": 1.0})
