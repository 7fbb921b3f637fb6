"""AES-256 of counters under 256 keys at a time, bit by bit (FIPS 197).

Each bit of a key or block is a *plane*: a vector with that bit of all 256. The substitution is a
circuit (`aes_circuit`); nothing is looked up in a table and no branch depends on a key, so neither
the cache nor the time tells anything about keys.

A column of four bytes is one word of 32 bits with its first byte on top, as in a hash: so keys that
come from hashes need no reordering but the one from words to planes.
"""

from __future__ import annotations

from sfumato.core.aes_circuit import BYTE, substitute
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.core.lane_words import down, eight, in_all, put_eight, up
from sfumato.core.sha256_loops import Words32

VALUES = 256
"""How many keys are used at a time."""

KEY_PLANES = 256
BLOCK_PLANES = 128
WORK_PLANES = KEY_PLANES + 2 * BLOCK_PLANES + 32
"""Room that `encrypt` needs."""

_WORD = 32
_ROUNDS = 14
_REDUCED = 0x1B  # what is left of x**8 after division by x**8 + x**4 + x**3 + x + 1
_STATE, _NEXT = KEY_PLANES, KEY_PLANES + BLOCK_PLANES
_SPARE = KEY_PLANES + 2 * BLOCK_PLANES


@njit(**IN_PLACE)
def transpose(planes: Words32, first: int) -> None:
    """Swap rows and columns of 32 words of 32 bits, in each lane: words become planes, or back."""
    width, mask = 16, 0xFFFF
    while width:
        for place in range(_WORD):
            if not place & width:
                low, high = eight(planes, first + place), eight(planes, first + place + width)
                moved = (down(low, width) ^ high) & in_all(mask)
                put_eight(planes, first + place, low ^ up(moved, width))
                put_eight(planes, first + place + width, high ^ moved)
        width >>= 1
        mask ^= mask << width


@njit(**IN_PLACE)
def _byte(column: int, row: int) -> int:
    """Where the planes of a byte of a block begin."""
    return _WORD * column + BYTE * (3 - row)


@njit(**IN_PLACE)
def _expand(work: Words32, turn: int) -> None:
    """Put the key of a round, four words, in the place of that of two rounds before."""
    first = 4 * (turn & 1)
    before = _WORD * ((first + 7) & 7)
    rotated = 0 if first else BYTE
    for bit in range(_WORD):
        put_eight(work, _SPARE + bit, eight(work, before + bit))
    for row in range(4):
        substitute(work, _SPARE + BYTE * row)
    if rotated:
        bit = _SPARE + 2 * BYTE + (turn >> 1) - 1  # of the first byte, once it is rotated
        put_eight(work, bit, eight(work, bit) ^ in_all(-1))
    for bit in range(_WORD):
        word = eight(work, _SPARE + ((bit - rotated) & 31))
        for column in range(first, first + 4):
            word ^= eight(work, _WORD * column + bit)
            put_eight(work, _WORD * column + bit, word)


@njit(**IN_PLACE)
def _mix(work: Words32, own: int, other: int, key: int) -> None:
    """Shift rows, mix columns and add the key of a round: from one half of the room to another."""
    for column in range(4):
        for row in range(4):
            a = own + _byte((column + row) & 3, row)
            b = own + _byte((column + row + 1) & 3, (row + 1) & 3)
            c = own + _byte((column + row + 2) & 3, (row + 2) & 3)
            d = own + _byte((column + row + 3) & 3, (row + 3) & 3)
            to = _byte(column, row)
            top, doubled = eight(work, a + 7) ^ eight(work, b + 7), in_all(0)
            for bit in range(BYTE):
                second = eight(work, b + bit)
                mixed = doubled ^ second ^ eight(work, c + bit) ^ eight(work, d + bit)
                mixed ^= eight(work, key + to + bit)
                if _REDUCED >> bit & 1:
                    mixed ^= top
                put_eight(work, other + to + bit, mixed)
                doubled = eight(work, a + bit) ^ second


@njit(**IN_PLACE)
def _finish(work: Words32, own: int, other: int, columns: int) -> None:
    """The last round, without mixing, for some columns; their first bytes lowest."""
    for column in range(columns):
        for row in range(4):
            taken = own + _byte((column + row) & 3, row)
            substitute(work, taken)
            to, key = other + _WORD * column + BYTE * row, _byte(column, row)
            for bit in range(BYTE):
                put_eight(work, to + bit, eight(work, taken + bit) ^ eight(work, key + bit))


@njit(**IN_PLACE)
def encrypt(work: Words32, keys: Words32, counter: int, columns: int) -> int:
    """Encrypt a counter under 256 keys; where the first columns of the results begin in `work`.

    Args:
        work: `WORK_PLANES` vectors.
        keys: The keys: 256 planes.
        counter: At most 32 bits: a block with this number at its end.
        columns: How many of the four columns of the results are wanted. Each becomes 32 vectors,
            the words of value `8 * vector + lane` with the column's first byte lowest.
    """
    for plane in range(KEY_PLANES):
        put_eight(work, plane, eight(keys, plane))
    for plane in range(BLOCK_PLANES):
        put_eight(work, _STATE + plane, eight(keys, plane))
    for bit in range(_WORD):
        if counter >> bit & 1:
            last = _STATE + 3 * _WORD + bit
            put_eight(work, last, eight(work, last) ^ in_all(-1))
    own, other = _STATE, _NEXT
    for turn in range(1, _ROUNDS):
        if turn > 1:
            _expand(work, turn)
        for place in range(0, BLOCK_PLANES, BYTE):
            substitute(work, own + place)
        _mix(work, own, other, 4 * _WORD * (turn & 1))
        own, other = other, own
    _expand(work, _ROUNDS)
    _finish(work, own, other, columns)
    for column in range(columns):
        transpose(work, other + _WORD * column)
    return other
