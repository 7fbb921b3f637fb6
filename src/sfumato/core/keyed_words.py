"""The coins of many addresses under one key: one by one, or by compiled loops where that pays.

Both are one function: HMAC-SHA256 of the address gives the key of an AES-256 keystream of its own,
whose first words these are.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from sfumato.core.addresses import part
from sfumato.core.arrays import Ints
from sfumato.core.compile_events import is_eager
from sfumato.core.encoded_names import EncodedNames

Words = NDArray[np.uint64]

FEW = 8
"""So many values are drawn one by one in less time than loops need to begin."""

LOADED = 4_096
"""So many values are drawn one by one in less time than it takes to load loops from disk,"""

COMPILED = 500_000
"""and so many in less time than it takes to compile them."""

SHARED = 2_048
"""So many values are drawn by one thread in less time than others need to wake up."""

_BLOCK = 64
_PADS = tuple(bytes(byte ^ turned for byte in range(256)) for turned in (0x36, 0x5C))


class Helpers(Protocol):
    """Threads that share work, as those of a fleet."""

    count: int

    def share(self, edges: Sequence[int], part: Callable[[int, int, int], None]) -> None:
        """Do the parts between successive edges, each by a thread of its own."""

    def settle(self) -> None:
        """End what an exception left behind."""


class _Nobody:
    """Whoever has no helpers does it all."""

    count = 1

    def share(self, edges: Sequence[int], part: Callable[[int, int, int], None]) -> None:
        part(edges[0], edges[-1], 0)

    def settle(self) -> None:
        """Nobody is left behind."""


NOBODY: Helpers = _Nobody()


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Addresses that begin alike.

    Attributes:
        shared: What they begin with: domain and plan, as bytes.
        streams: Names of streams; encoded ones if they are drawn for again and again.
        which: The place of each draw's stream among them.
        sequences: Which of the stream's values each draw is for; none is negative.
        each: How many words are drawn at each address.
    """

    shared: bytes
    streams: Sequence[str] | EncodedNames
    which: Ints
    sequences: Ints
    each: int

    def __len__(self) -> int:
        return len(self.which)


class KeyedWords:
    """Draws the first words at addresses; remembers how often loops would have been of use.

    To load or to compile loops takes longer than a small job does. So a process draws one by one
    until it has drawn as many as that would have been worth, unless it was told to be eager.
    """

    def __init__(self) -> None:
        self._alone = 0

    def drawn(self, key: bytes, draws: Draws, helpers: Helpers = NOBODY) -> Words:
        """The first words at some addresses, a row for each.

        Args:
            key: 32 bytes.
            draws: Which.
            helpers: Threads that share the work, if it is much.

        Examples:
            >>> one, many = np.zeros(1, dtype=np.int64), np.zeros(20, dtype=np.int64)
            >>> alone = KeyedWords().drawn(bytes(32), Draws(b"plan", ["ann"], one, one, 1))
            >>> words = KeyedWords().drawn(bytes(32), Draws(b"plan", ["ann"], many, many, 1))
            >>> bool((words == alone).all())
            True
        """
        if len(draws) < FEW:
            return one_by_one(key, draws)
        if not is_eager() and not self._has_loops(len(draws)):
            # Two threads that count at once lose a count: it decides nothing but the time.
            self._alone += len(draws)
            return one_by_one(key, draws)
        return by_loops(key, draws, helpers)

    def _has_loops(self, count: int) -> bool:
        """Whether loops are loaded, or there is so much to draw that they are worth the time."""
        if self._alone + count < LOADED:
            return False
        from sfumato.core import keyed_word_loops

        loop: Any = keyed_word_loops.draw
        many = self._alone + count >= COMPILED
        return bool(loop.overloads) or many or loop.at_hand(*_example())


def one_by_one(key: bytes, draws: Draws) -> Words:
    """The words at some addresses by libraries for one message and one cipher at a time."""
    # What all addresses share is hashed once; a keystream that begins at 0 is that of zero blocks,
    # and the first of them alone is the cheapest thing to ask of a cipher.
    begun, size = hmac.new(key, draws.shared, "sha256"), 8 * draws.each
    parts = {place: part(draws.streams[place]) for place in np.unique(draws.which).tolist()}
    zeros, alone = bytes(max(size, 16)), draws.each <= 2
    streams, moments = [], draws.sequences.astype(">u8").tobytes()
    mode: modes.ECB | modes.CTR = modes.ECB() if alone else modes.CTR(bytes(16))
    for row, place in enumerate(draws.which.tolist()):
        address = begun.copy()
        address.update(parts[place] + moments[8 * row : 8 * row + 8])
        cipher = Cipher(algorithms.AES(address.digest()), mode).encryptor()
        streams.append(cipher.update(zeros)[:size])
    return np.frombuffer(bytearray().join(streams), dtype="<u8").reshape(len(draws), draws.each)


def by_loops(key: bytes, draws: Draws, helpers: Helpers = NOBODY) -> Words:
    """The words at some addresses by compiled loops, many side by side."""
    from sfumato.core import keyed_word_loops as loops

    whole = len(draws.shared) // _BLOCK * _BLOCK
    names, places, slots = _asked(draws)
    rest, spans = draws.shared[whole:], names.spans(places)
    messages, shape = _messages(rest, spans, _BLOCK + whole, helpers)
    padded = key.ljust(_BLOCK, b"\0")
    before = [padded.translate(pad) for pad in _PADS]
    secret = (_words_of(before[0] + draws.shared[:whole]), _words_of(before[1]))
    edges = _edges(len(draws), helpers.count)
    rooms = [np.zeros(loops.ROOM, dtype=np.uint32) for _ in edges[1:]]
    found = np.empty((len(draws), draws.each), dtype=np.uint64)
    numbers = np.ascontiguousarray(draws.sequences).astype(np.uint64, copy=False)

    def draw(begin: int, end: int, thread: int) -> None:
        given = (messages, shape, slots[begin:end], numbers[begin:end], rooms[thread])
        loops.draw(secret, *given, found[begin:end])

    try:
        helpers.share(edges, draw)
    finally:
        try:
            helpers.settle()
        finally:
            # Memory that is read later must not tell a key.
            for used in (*rooms, *secret):
                used.fill(0)
    return found


def _edges(count: int, threads: int) -> list[int]:
    """Where to cut draws, or streams, so that threads have about as many whole blocks of each."""
    from sfumato.core.aes_loops import VALUES

    if count < SHARED or threads == 1:
        return [0, count]
    blocks = count // VALUES
    return [VALUES * (blocks * thread // threads) for thread in range(threads)] + [count]


def _asked(draws: Draws) -> tuple[EncodedNames, Ints, Ints]:
    """Names, the places of those that there are draws for, and of each draw's among the latter."""
    if len(draws.streams) > 4 * len(draws):
        places, slots = np.unique(draws.which, return_inverse=True)
    else:
        # Sorting takes longer than to look at all streams, if they are not many more.
        asked = np.zeros(len(draws.streams), dtype=np.bool_)
        asked[draws.which] = True
        places, slots = np.flatnonzero(asked), (np.cumsum(asked) - 1)[draws.which]
    if isinstance(draws.streams, EncodedNames):
        return draws.streams, places, slots
    names = EncodedNames([draws.streams[place] for place in places.tolist()])
    return names, np.arange(len(places)), slots


def _messages(
    rest: bytes, names: tuple[NDArray[np.uint8], Ints, Ints], hashed: int, helpers: Helpers
) -> tuple[NDArray[np.uint32], Ints]:
    """What is hashed for each stream, and its shape, as `keyed_word_loops.lay_out` has them."""
    from sfumato.core import keyed_word_loops as loops

    text, begins, sizes = names
    shape = np.empty((len(sizes), 4), dtype=np.int64)
    shape[:, 3] = sizes
    shape[:, 2] = len(rest) + 8 + sizes
    # Behind the number of a moment stand a byte that ends the message, and its length.
    shape[:, 1] = (shape[:, 2] + 8 + 9 + _BLOCK - 1) // _BLOCK
    ends = _BLOCK * np.cumsum(shape[:, 1])
    shape[:, 0] = ends - _BLOCK * shape[:, 1]
    front, messages = np.frombuffer(rest, dtype=np.uint8), np.zeros(int(ends[-1]), dtype=np.uint8)

    def lay_out(begin: int, end: int, _: int) -> None:
        given = (text, begins[begin:end], shape[begin:end], hashed, messages)
        loops.lay_out(front, *given)

    helpers.share(_edges(len(sizes), helpers.count), lay_out)
    return messages.view(">u4").astype(np.uint32), shape


def _words_of(blocks: bytes) -> NDArray[np.uint32]:
    return np.frombuffer(blocks, dtype=">u4").astype(np.uint32)


def _example() -> tuple[Any, ...]:
    """Arguments of the types that the loop is called with."""
    word, place = np.zeros(1, dtype=np.uint32), np.zeros(1, dtype=np.int64)
    number = np.zeros(1, dtype=np.uint64)
    return ((word, word), word, place[:, None], place, number, word, number[:, None])
