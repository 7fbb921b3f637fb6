"""The coins of many addresses under one key, by compiled loops.

For each address: HMAC-SHA256 under the key gives the key of an AES-256 keystream, whose first words
are the coins. Eight hashes go on side by side and 256 ciphers bit by bit; what all addresses begin
with is hashed once. Neither half looks anything up by a secret (see `aes_loops`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.aes_loops import KEY_PLANES, VALUES, WORK_PLANES, encrypt, transpose
from sfumato.core.arrays import Ints
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.core.lane_words import LANES, below, eight, in_all, put_eight
from sfumato.core.sha256_loops import BLOCK_WORDS, DIGEST_WORDS, Words32, begin, compress

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]

ROOM = LANES * (4 * DIGEST_WORDS + BLOCK_WORDS + KEY_PLANES + WORK_PLANES)
"""Words of room that `draw` needs; keys are left in it."""

_NUMBER = 8
_GROUPS = VALUES // LANES
# Parts of the room, in vectors, each behind the one before.
_INNER, _OUTER, _STATE, _ENDS = 0, DIGEST_WORDS, 2 * DIGEST_WORDS, 3 * DIGEST_WORDS
_BLOCK = 4 * DIGEST_WORDS
_KEYS = _BLOCK + BLOCK_WORDS
_PLANES = _KEYS + KEY_PLANES
# The outer hash: a block of the key before a digest of 32 bytes.
_OUTER_BITS = 8 * (64 + 32)


@njit(**IN_PLACE)
def lay_out(
    rest: Bytes, names: Bytes, begins: Ints, shape: Ints, hashed: int, messages: Bytes
) -> None:
    """Write down what is hashed for each stream, with zeros where numbers of moments will stand.

    Args:
        rest: What is left of the part that all addresses share, behind its whole blocks.
        names: Names of streams.
        begins: Where the name of each begins in them.
        shape: Of each stream: where its message begins, how many blocks it has, where its number
            stands in it and how long its name is.
        hashed: How many bytes were hashed before.
        messages: Zeros, to be filled.
    """
    for stream in range(shape.shape[0]):
        first, blocks, mark, size = shape[stream]
        at = first
        for place in range(rest.size):
            messages[at + place] = rest[place]
        at += rest.size
        for place in range(_NUMBER):
            messages[at + place] = size >> 8 * (7 - place) & 255
        at += _NUMBER
        for place in range(size):
            messages[at + place] = names[begins[stream] + place]
        messages[first + mark + _NUMBER] = 128
        bits, last = 8 * (hashed + mark + _NUMBER), first + 64 * blocks - _NUMBER
        for place in range(_NUMBER):
            messages[last + place] = bits >> 8 * (7 - place) & 255


@njit(**IN_PLACE)
def _fill_lane(block: Words32, lane: int, messages: Words32, first: int, blocks: int) -> None:
    """Put a block of a message into a lane."""
    for place in range(BLOCK_WORDS):
        block[LANES * place + lane] = messages[first + place] if blocks else np.uint32(0)


@njit(**IN_PLACE)
def _put_number(block: Words32, lane: int, mark: int, number: np.uint64) -> None:
    """Put the number of a moment into a lane: it stands across up to three words, or elsewhere."""
    bits, first = np.uint64(8 * (mark & 3)), mark >> 2
    half = np.uint64(32)
    parts = (number >> (half + bits), number >> bits, number << (half - bits))
    for turn, part in enumerate(parts):
        if 0 <= first + turn < BLOCK_WORDS:
            block[LANES * (first + turn) + lane] |= np.uint32(part & np.uint64(0xFFFFFFFF))


@njit(**IN_PLACE)
def _hash_eight(
    room: Words32, messages: Words32, shape: Ints, slots: Ints, numbers: Words, first: int
) -> None:
    """The inner hashes of eight values: each goes on for as many blocks as its message has."""
    state, block, ends = room[LANES * _STATE :], room[LANES * _BLOCK :], room[LANES * _ENDS :]
    longest = 0
    for lane in range(LANES):
        blocks = shape[slots[min(first + lane, slots.size - 1)], 1]
        ends[lane] = blocks
        longest = max(longest, blocks)
    for place in range(DIGEST_WORDS):
        put_eight(room, _STATE + place, eight(room, _INNER + place))
    for part in range(longest):
        for lane in range(LANES):
            value = min(first + lane, slots.size - 1)
            begins, blocks, mark, _ = shape[slots[value]]
            _fill_lane(block, lane, messages, begins // 4 + BLOCK_WORDS * part, part < blocks)
            _put_number(block, lane, mark - 64 * part, numbers[value])
        before = (
            *(eight(room, _STATE), eight(room, _STATE + 1), eight(room, _STATE + 2)),
            *(eight(room, _STATE + 3), eight(room, _STATE + 4), eight(room, _STATE + 5)),
            *(eight(room, _STATE + 6), eight(room, _STATE + 7)),
        )
        compress(state, block)
        for place, old in enumerate(before):
            own = below(part, eight(ends, 0), eight(room, _STATE + place), old)
            put_eight(room, _STATE + place, own)


@njit(**IN_PLACE)
def _hash_again(room: Words32, group: int) -> None:
    """The outer hashes of eight values: their keys."""
    for place in range(DIGEST_WORDS):
        put_eight(room, _BLOCK + place, eight(room, _STATE + place))
        put_eight(room, _STATE + place, eight(room, _OUTER + place))
        put_eight(room, _BLOCK + DIGEST_WORDS + place, in_all(0))
    put_eight(room, _BLOCK + DIGEST_WORDS, in_all(0x80000000))
    put_eight(room, _BLOCK + BLOCK_WORDS - 1, in_all(_OUTER_BITS))
    compress(room[LANES * _STATE :], room[LANES * _BLOCK :])
    for place in range(DIGEST_WORDS):
        put_eight(room, _KEYS + _GROUPS * place + group, eight(room, _STATE + place))


@njit(**IN_PLACE)
def _cipher(room: Words32, first: int, found: Words) -> None:
    """The words of up to 256 values from their keys: two of each block of their keystreams."""
    each, planes = found.shape[1], room[LANES * _PLANES :]
    for counter in range((each + 1) // 2):
        wanted = min(2, each - 2 * counter)
        at = LANES * encrypt(planes, room[LANES * _KEYS :], counter, 2 * wanted)
        for value in range(min(VALUES, found.shape[0] - first)):
            for turn in range(wanted):
                low = at + 2 * VALUES * turn + value
                word = np.uint64(planes[low]) | np.uint64(planes[low + VALUES]) << np.uint64(32)
                found[first + value, 2 * counter + turn] = word


@njit(**IN_PLACE)
def draw(
    key: tuple[Words32, Words32],
    messages: Words32,
    shape: Ints,
    slots: Ints,
    numbers: Words,
    room: Words32,
    found: Words,
) -> None:
    """Fill in the first words at many addresses.

    Args:
        key: What the inner and the outer hash begin with, in whole blocks.
        messages: What is hashed for each stream, as `lay_out` has it.
        shape: Likewise.
        slots: The stream of each value.
        numbers: Its moment.
        room: `ROOM` words. Keys are left in it, for its owner to wipe.
        found: A row for each value: as many words as are wanted.
    """
    block = room[LANES * _BLOCK :]
    begin(room[LANES * _INNER :], key[0], block)
    begin(room[LANES * _OUTER :], key[1], block)
    for first in range(0, slots.size, VALUES):
        groups = min(_GROUPS, (slots.size - first + LANES - 1) // LANES)
        for group in range(groups):
            _hash_eight(room, messages, shape, slots, numbers, first + LANES * group)
            _hash_again(room, group)
        for place in range(DIGEST_WORDS):
            transpose(room, _KEYS + _GROUPS * place)
        _cipher(room, first, found)
