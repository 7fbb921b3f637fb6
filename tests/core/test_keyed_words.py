"""Coins that are drawn together are those of each address, by libraries that share no code."""

import hmac
import threading
import time
from typing import Any
from unittest import mock

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.core import keyed_word_loops, keyed_words
from sfumato.core.addresses import encoded_names
from sfumato.core.compile_events import told
from sfumato.core.encoded_names import EncodedNames
from sfumato.core.keyed_words import FEW, SHARED, Draws, KeyedWords, by_loops, one_by_one
from sfumato.stream.fleet_threads import FleetThreads

KEY = bytes(range(7, 39))


def oracle(key: bytes, draws: Draws) -> list[list[int]]:
    """Message by message and cipher by cipher."""
    found = []
    for place, moment in zip(draws.which.tolist(), draws.sequences.tolist(), strict=True):
        name = draws.streams[place].encode(errors="surrogatepass")
        text = draws.shared + len(name).to_bytes(8, "big") + name + moment.to_bytes(8, "big")
        own = hmac.new(key, text, "sha256").digest()
        stream = Cipher(algorithms.AES(own), modes.CTR(bytes(16))).encryptor()
        words = stream.update(bytes(8 * draws.each))
        found.append(
            [int.from_bytes(words[at : at + 8], "little") for at in range(0, len(words), 8)]
        )
    return found


def draws_of(
    seed: int, count: int, sizes: list[int], shared: int, each: int = 1, streams: int = 0
) -> Draws:
    """Draws of streams with names of some lengths; `streams` more that nobody asks for."""
    rng = np.random.default_rng(seed)
    names = [f"{rng.integers(10**9)}".ljust(size, "y")[:size] for size in sizes]
    which = rng.integers(len(names), size=count)
    moments = rng.integers(2**63, size=count) >> rng.integers(63, size=count)
    return Draws(rng.bytes(shared), names + ["unasked"] * streams, which, moments, each)


@given(
    st.binary(min_size=32, max_size=32),
    st.integers(0, 2**32),
    st.integers(1, 200),
    st.lists(st.integers(0, 300), min_size=1, max_size=5),
    st.integers(0, 200),
    st.integers(1, 5),
)
@example(KEY, 1, 257, [0, 1000, 3], 86, 1)
@example(KEY, 2, 513, [8], 128, 2)
def test_loops_draw_what_libraries_draw(
    key: bytes, seed: int, count: int, sizes: list[int], shared: int, each: int
) -> None:
    draws = draws_of(seed, count, sizes, shared, each, streams=seed % 3 * 500)
    due = oracle(key, draws)
    assert by_loops(key, draws).tolist() == due
    assert one_by_one(key, draws).tolist() == due


def test_names_of_every_length_up_to_300_bytes_reach_every_boundary_of_a_block() -> None:
    for shared in (0, 1, 55, 63, 64, 86):
        names = [f"{size:03}" * 100 for size in range(301)]
        cut = [name[:size] for size, name in enumerate(names)]
        moments = np.array([2**63 - 1, 0, 1, 256, 2**40 + 3, 77, 2**32] * 43)
        draws = Draws(bytes(shared), cut, np.arange(301), moments, 1)
        assert by_loops(KEY, draws).tolist() == oracle(KEY, draws)


@pytest.mark.parametrize("count", [0, 1, FEW - 1, FEW, FEW + 1, 63, 64, 65, 255, 256, 257])
def test_any_number_of_draws_is_what_each_alone_is(count: int) -> None:
    draws = draws_of(count, count, [5, 70], 86)
    assert KeyedWords().drawn(KEY, draws).tolist() == oracle(KEY, draws)


def test_names_that_are_no_text_or_no_ascii_have_their_own_words() -> None:
    names = ["\ud800", "\ud801", "?", "é", "e\u0301", "\U0001f600", "", "\0"]
    draws = Draws(b"plan", names, np.arange(8), np.zeros(8, dtype=np.int64), 1)
    found = by_loops(KEY, draws).tolist()
    assert found == oracle(KEY, draws)
    assert len({word for (word,) in found}) == 8


@pytest.mark.parametrize("kind", [np.int32, np.uint8, np.uint64, ">i8"])
def test_moments_of_any_kind_of_whole_numbers_are_the_same_moments(kind: Any) -> None:
    moments = np.arange(40)
    due = by_loops(KEY, Draws(b"plan", ["ann"], np.zeros_like(moments), moments, 1))
    other = Draws(b"plan", ["ann"], np.zeros(40, dtype=np.int32), moments.astype(kind)[:], 1)
    strided = Draws(
        b"plan", ["ann"], np.zeros(80, dtype=np.int64)[::2], np.repeat(moments, 2)[::2], 1
    )
    assert (by_loops(KEY, other) == due).all()
    assert (by_loops(KEY, strided) == due).all()


@pytest.mark.parametrize("count", [SHARED - 1, SHARED, SHARED + 1, 3 * SHARED + 255])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_share_draws_without_changing_a_word(threads: int, count: int) -> None:
    draws, helpers = draws_of(count, count, [8] * count, 86), FleetThreads(threads)
    due, alone = by_loops(KEY, draws), oracle(KEY, draws)
    assert due[:5].tolist() == alone[:5] and due[-5:].tolist() == alone[-5:]
    with mock.patch.object(helpers, "share", wraps=helpers.share) as share:
        assert (by_loops(KEY, draws, helpers) == due).all()
    edges, _ = share.call_args.args
    assert len(edges) == 1 + (threads if count >= SHARED else 1)


def test_names_that_are_encoded_once_give_the_same_words_however_they_grow() -> None:
    names = ["ann", "", "é", "\ud800"]
    encoded = EncodedNames(names)
    for turn in range(60):
        names += [f"{turn} {place}" for place in range(turn * turn % 40)]
        which = np.random.default_rng(turn).integers(len(names), size=1 + turn)
        moments = np.arange(len(which))
        plain = by_loops(KEY, Draws(b"plan", names, which, moments, 1))
        assert (by_loops(KEY, Draws(b"plan", encoded, which, moments, 1)) == plain).all()
        assert plain.tolist() == oracle(KEY, Draws(b"plan", names, which, moments, 1))


def test_names_are_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.core.encoded_names._GROUP", 30)
    encode = mock.Mock(wraps=encoded_names)
    monkeypatch.setattr("sfumato.core.encoded_names.encoded_names", encode)
    encoded = EncodedNames([f"s{place}" for place in range(100)])
    for _ in range(3):
        text, begins, sizes = encoded.spans(np.array([99, 0]))
    assert [len(call.args[0]) for call in encode.call_args_list] == [30, 30, 30, 10]
    assert [bytes(text[b : b + n]) for b, n in zip(begins, sizes, strict=True)] == [b"s99", b"s0"]


@pytest.fixture
def lazy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process whose loops are not loaded, not on disk, and not asked for."""

    class Absent:
        overloads = ()

        def at_hand(self, *_: Any) -> bool:
            return False

        def __call__(self, *_: Any) -> None:
            raise AssertionError("the loop was called")

    monkeypatch.setattr(keyed_words, "is_eager", lambda: False)
    monkeypatch.setattr(keyed_word_loops, "draw", Absent())


@pytest.mark.usefixtures("lazy")
def test_small_jobs_compile_nothing() -> None:
    words = KeyedWords()
    compiled: list[str] = []
    with told(compiled.append):
        for count in (1, FEW, 200, 5_000):
            draws = draws_of(count, count, [5], 86)
            assert words.drawn(KEY, draws).tolist() == one_by_one(KEY, draws).tolist()
    assert not compiled


@pytest.mark.usefixtures("lazy")
def test_a_process_that_draws_much_compiles_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_words, "LOADED", 50)
    monkeypatch.setattr(keyed_words, "COMPILED", 100)
    words, draws = KeyedWords(), draws_of(1, 40, [5], 86)
    words.drawn(KEY, draws)
    words.drawn(KEY, draws)
    with pytest.raises(AssertionError, match="the loop was called"):
        words.drawn(KEY, draws)


def test_types_of_the_loop_are_those_it_is_asked_for_on_disk() -> None:
    by_loops(KEY, draws_of(1, 20, [5], 86))
    loop: Any = keyed_word_loops.draw
    assert loop.at_hand(*keyed_words._example())
    assert len(loop.overloads) == 1


@pytest.mark.parametrize("breaks", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_keys_are_wiped_from_the_rooms_of_the_loop(
    monkeypatch: pytest.MonkeyPatch, breaks: bool, threads: int
) -> None:
    """Of all threads, once the last of them is done, also if the caller was broken into."""
    honest, seen = keyed_word_loops.draw, list[Any]()
    caller, both = threading.current_thread(), threading.Barrier(threads)

    def draw(key: Any, *rest: Any) -> None:
        both.wait(60)
        honest(key, *rest)
        seen.extend([*key, rest[4]])
        assert all(each.any() for each in seen)
        both.wait(60)
        if threading.current_thread() is not caller:
            time.sleep(0.2)
            honest(key, *rest)
        elif breaks:
            raise KeyboardInterrupt

    monkeypatch.setattr(keyed_word_loops, "draw", draw)
    helpers = FleetThreads(threads)
    try:
        by_loops(KEY, draws_of(1, SHARED, [5], 86), helpers)
    except KeyboardInterrupt:
        assert breaks
    helpers.settle()
    assert len(seen) == 3 * threads
    assert not any(each.any() for each in seen)
