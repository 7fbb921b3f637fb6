"""Eight hashes side by side are those of the standard library, and of FIPS 180-4."""

import hashlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.sha256_loops import begin, compress

TWO_BLOCKS = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"


def padded(message: bytes) -> bytes:
    zeros = bytes(-(len(message) + 9) % 64)
    return message + b"\x80" + zeros + (8 * len(message)).to_bytes(8, "big")


def hashed(messages: list[bytes]) -> list[str]:
    """Digests of eight messages of as many blocks each."""
    rows = [np.frombuffer(padded(one), dtype=">u4").astype(np.uint32) for one in messages]
    state, block = np.zeros(64, dtype=np.uint32), np.zeros(128, dtype=np.uint32)
    begin(state, np.zeros(0, dtype=np.uint32), block)
    for first in range(0, len(rows[0]), 16):
        block[:] = np.stack(rows)[:, first : first + 16].T.ravel()
        compress(state, block)
    return [own.astype(">u4").tobytes().hex() for own in state.reshape(8, 8).T]


def test_messages_of_the_standard_have_its_digests() -> None:
    abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    two = "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    assert hashed([b"abc"] * 8) == [abc] * 8
    assert hashed([TWO_BLOCKS] * 8) == [two] * 8


@given(st.integers(0, 300))
def test_eight_messages_have_the_digests_that_each_has_alone(size: int) -> None:
    rng = np.random.default_rng(size)
    messages = [rng.bytes(size) for _ in range(8)]
    assert hashed(messages) == [hashlib.sha256(one).hexdigest() for one in messages]


@given(st.integers(0, 3))
def test_whole_blocks_in_front_are_hashed_once_for_all(blocks: int) -> None:
    shared = np.random.default_rng(blocks).bytes(64 * blocks)
    state, block = np.zeros(64, dtype=np.uint32), np.zeros(128, dtype=np.uint32)
    begin(state, np.frombuffer(shared, dtype=">u4").astype(np.uint32), block)
    end = np.frombuffer(padded(shared)[64 * blocks :], dtype=">u4").astype(np.uint32)
    block[:] = np.repeat(end, 8)
    compress(state, block)
    due = np.frombuffer(hashlib.sha256(shared).digest(), dtype=">u4")
    assert (state.reshape(8, 8) == due[:, None]).all()
