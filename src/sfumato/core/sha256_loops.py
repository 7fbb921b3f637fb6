"""SHA-256 of eight messages at a time: one block of each, side by side (FIPS 180-4)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.compiled import IN_PLACE, njit
from sfumato.core.lane_words import down, eight, in_all, put_eight, turned

Words32 = NDArray[np.uint32]

BLOCK_BYTES = 64
DIGEST_WORDS = 8
BLOCK_WORDS = 16
_ROUNDS = 64

# The first 32 bits behind the point of the square roots of the first 8 primes,
FIRST = np.array(
    (
        *(0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A),
        *(0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19),
    ),
    dtype=np.int64,
)
"""What a hash begins with."""

# and of the cube roots of the first 64.
_CONSTANTS = np.array(
    (
        *(0x428A2F98, 0x71374491, 0xB5C0FBCF, 0xE9B5DBA5, 0x3956C25B, 0x59F111F1, 0x923F82A4),
        *(0xAB1C5ED5, 0xD807AA98, 0x12835B01, 0x243185BE, 0x550C7DC3, 0x72BE5D74, 0x80DEB1FE),
        *(0x9BDC06A7, 0xC19BF174, 0xE49B69C1, 0xEFBE4786, 0x0FC19DC6, 0x240CA1CC, 0x2DE92C6F),
        *(0x4A7484AA, 0x5CB0A9DC, 0x76F988DA, 0x983E5152, 0xA831C66D, 0xB00327C8, 0xBF597FC7),
        *(0xC6E00BF3, 0xD5A79147, 0x06CA6351, 0x14292967, 0x27B70A85, 0x2E1B2138, 0x4D2C6DFC),
        *(0x53380D13, 0x650A7354, 0x766A0ABB, 0x81C2C92E, 0x92722C85, 0xA2BFE8A1, 0xA81A664B),
        *(0xC24B8B70, 0xC76C51A3, 0xD192E819, 0xD6990624, 0xF40E3585, 0x106AA070, 0x19A4C116),
        *(0x1E376C08, 0x2748774C, 0x34B0BCB5, 0x391C0CB3, 0x4ED8AA4A, 0x5B9CCA4F, 0x682E6FF3),
        *(0x748F82EE, 0x78A5636F, 0x84C87814, 0x8CC70208, 0x90BEFFFA, 0xA4506CEB, 0xBEF9A3F7),
        0xC67178F2,
    ),
    dtype=np.int64,
)


@njit(**IN_PLACE)
def _next_word(block: Words32, turn: int) -> Any:
    """A word of the schedule from those 2, 7, 15 and 16 before it, in the place of the last."""
    early, late = eight(block, (turn + 1) & 15), eight(block, (turn + 14) & 15)
    word = eight(block, turn & 15) + eight(block, (turn + 9) & 15)
    word += turned(early, 7) ^ turned(early, 18) ^ down(early, 3)
    word += turned(late, 17) ^ turned(late, 19) ^ down(late, 10)
    put_eight(block, turn & 15, word)
    return word


@njit(**IN_PLACE)
def compress(state: Words32, block: Words32) -> None:
    """Go on with eight hashes by a block each.

    Args:
        state: 8 vectors: word by word, that word of all hashes. It is moved on.
        block: 16 vectors: the blocks, likewise. It is used up.
    """
    a, b, c, d = eight(state, 0), eight(state, 1), eight(state, 2), eight(state, 3)
    e, f, g, h = eight(state, 4), eight(state, 5), eight(state, 6), eight(state, 7)
    for turn in range(_ROUNDS):
        word = eight(block, turn) if turn < BLOCK_WORDS else _next_word(block, turn)
        word += h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25))
        word += (g ^ (e & (f ^ g))) + in_all(_CONSTANTS[turn])
        most = (a & b) | (c & (a | b))
        h, g, f, e = g, f, e, d + word
        word += (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + most
        d, c, b, a = c, b, a, word
    for place, part in enumerate((a, b, c, d, e, f, g, h)):
        put_eight(state, place, eight(state, place) + part)


@njit(**IN_PLACE)
def fill(block: Words32, words: Words32, first: int, count: int) -> None:
    """Put the same words into all lanes."""
    for place in range(count):
        put_eight(block, place, in_all(np.int64(words[first + place])))


@njit(**IN_PLACE)
def begin(state: Words32, words: Words32, block: Words32) -> None:
    """Hash whole blocks that eight messages begin with.

    Args:
        state: 8 vectors, to be filled.
        words: The blocks, 16 words each.
        block: Room for one of them in all lanes.
    """
    for place in range(DIGEST_WORDS):
        put_eight(state, place, in_all(FIRST[place]))
    for first in range(0, words.size, BLOCK_WORDS):
        fill(block, words, first, BLOCK_WORDS)
        compress(state, block)
