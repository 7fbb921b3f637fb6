"""The one door to entropy.

Three sources with one interface, `words(count)` and `at(address)`:

- `secure()`: fresh coins for real releases. A stream cipher (AES-256 in counter mode) keyed by the
  operating system; each block of output also replaces the key, so coins that were used cannot be
  recovered from memory, and a forked process starts from a new key.
- `keyed(secret)`: a pseudo-random function of an `Address`: domain, plan, stream and sequence
  number. An engine that replays an event gets the same coins and therefore the same answer; another
  plan gets other coins; nobody without the secret can tell the coins from fresh ones.
- `seeded(n)`: the same function with a public key. For tests and simulations; anything that makes
  a real release refuses it.

Coins are 64-bit words. `categorical` turns one word into one draw from integer weights, exactly.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol, Self, SupportsIndex

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from sfumato.core import checks
from sfumato.core.addresses import Address, Domain, plan_part
from sfumato.core.arrays import Ints
from sfumato.core.encoded_names import EncodedNames
from sfumato.core.errors import InvalidParameter
from sfumato.core.integer_weights import BITS, categorical, integer_weights, sampled
from sfumato.core.keyed_words import NOBODY, Draws, Helpers, KeyedWords
from sfumato.core.secret_keys import check_secret, ledger_key

__all__ = (
    "BITS",
    "Address",
    "Domain",
    "Randomness",
    "StreamCoins",
    "categorical",
    "check_secret",
    "draw_ahead",
    "integer_weights",
    "keyed",
    "ledger_key",
    "of_ledger",
    "row_words",
    "sampled",
    "secure",
    "seeded",
    "words_at",
)

_BLOCK_BYTES = 1 << 16
_KEY_BYTES = 32
_CIPHER_BYTES = 16
_SINGLE_WORDS = 256
_MOST_AHEAD = 1 << 20
"""Words that are drawn before anybody asks for them, at most: 8 MB."""
_NO_WORDS = np.empty(0, dtype=np.uint64)


class Randomness(Protocol):
    """A source of uniformly random 64-bit words."""

    @property
    def simulated(self) -> bool:
        """Whether anybody can guess the coins."""

    @property
    def addressed(self) -> bool:
        """Whether coins depend on their address."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next `count` words."""

    def word(self) -> int:
        """Return the next word as a number."""

    def at(self, address: Address) -> Randomness:
        """Return the source for one draw."""


@dataclass(frozen=True, slots=True)
class StreamCoins:
    """The coins of one stream under one plan, moment by moment.

    Attributes:
        source: Where they come from.
        domain: What is released.
        plan: Fingerprint of the plan.
        stream: Name of the stream.
    """

    source: Randomness
    domain: Domain
    plan: str
    stream: str

    @property
    def addressed(self) -> bool:
        """Whether coins depend on their address."""
        return self.source.addressed

    def at(self, sequence: int) -> Randomness:
        """The coins of one moment."""
        if not self.source.addressed:
            return self.source
        return self.source.at(Address(self.domain, self.plan, self.stream, sequence))


def words_at(
    source: Randomness,
    domain: Domain,
    plan: str,
    streams: Sequence[str] | EncodedNames,
    which: Ints,
    sequences: Ints,
    helpers: Helpers = NOBODY,
) -> NDArray[np.uint64]:
    """One word for each of many draws: the first at each address, as `source.at(...).word()`.

    Args:
        source: Where coins come from; fresh ones have no addresses.
        domain: What is released.
        plan: Fingerprint of the plan.
        streams: Names of streams.
        which: The place of each draw's stream among them.
        sequences: Which of the stream's values each draw is for.
        helpers: Threads that share the work, if it is much.

    Examples:
        >>> coins, moments = seeded(1), np.array([0, 1])
        >>> words = words_at(coins, Domain.STREAM, "plan", ["ann"], np.array([0, 0]), moments)
        >>> int(words[1]) == coins.at(Address(Domain.STREAM, "plan", "ann", 1)).word()
        True
    """
    if not source.addressed:
        return source.words(len(which))
    if not isinstance(source, _Keyed):
        draws = zip(which.tolist(), sequences.tolist(), strict=True)
        found = [source.at(Address(domain, plan, streams[at], turn)).word() for at, turn in draws]
        return np.array(found, dtype=np.uint64)
    return source.words_at(plan_part(domain, plan), streams, which, sequences, helpers)


def row_words(
    source: Randomness, domain: Domain, plan: str, names: Sequence[str], each: int
) -> NDArray[np.uint64]:
    """So many words for each of some names, a row each: those at moment 0.

    Examples:
        >>> words = row_words(seeded(1), Domain.PUBLISH, "plan", ["ann", "bob"], 3)
        >>> here = Address(Domain.PUBLISH, "plan", "bob", 0)
        >>> bool((words[1] == seeded(1).at(here).words(3)).all())
        True
    """
    count = len(names)
    if not source.addressed:
        return source.words(count * each).reshape(count, each)
    if not isinstance(source, _Keyed):
        rows = [source.at(Address(domain, plan, name, 0)).words(each) for name in names]
        return np.stack(rows) if rows else np.empty((0, each), dtype=np.uint64)
    return source.row_words(plan_part(domain, plan), names, each)


def secure() -> Randomness:
    """Fresh coins for real releases.

    Examples:
        >>> secure().words(2).dtype
        dtype('uint64')
    """
    return _Secure()


def keyed(secret: bytes) -> Randomness:
    """Coins that depend on the secret and their address alone; without an address there are none.

    Args:
        secret: At least 16 random bytes that only the releasing side knows.

    Examples:
        >>> coins = keyed(b"sixteen bytes or more")
        >>> here = Address(Domain.STREAM, "plan", "u1", 7)
        >>> bool((coins.at(here).words(3) == coins.at(here).words(3)).all())
        True
    """
    check_secret(secret)
    return _Key(secret)


def of_ledger(source: Randomness, ledger: bytes) -> Randomness:
    """The coins of one ledger: those of a key depend on it, fresh ones are nobody's anyway.

    Examples:
        >>> here = Address(Domain.STREAM, "plan", "ann", 0)
        >>> own, other = (of_ledger(keyed(b"sixteen bytes or more"), id) for id in (b"1", b"2"))
        >>> own.at(here).word() == other.at(here).word()
        False
    """
    return source.of_ledger(ledger) if isinstance(source, _Key) else source


def draw_ahead(source: Randomness, count: int) -> None:
    """Draw fresh coins before they are asked for, so that who asks for so many need not wait.

    No coin is another one for that: those of an address are drawn when they are asked for, and
    fresh ones leave in the same order.

    Examples:
        >>> coins = secure()
        >>> draw_ahead(coins, 10_000)
        >>> len(coins.words(10_000))
        10000
    """
    if isinstance(source, _Secure):
        source.draw_ahead(count)


def seeded(seed: int) -> Randomness:
    """Coins for a simulation: the same seed, the same coins, on every machine.

    Examples:
        >>> [int(word) % 6 for word in seeded(1).words(3)]
        [5, 2, 0]
    """
    name = str(checks.count("seed", seed, at_least=0)).encode()
    return _Keyed(hashlib.sha256(b"sfumato seeded v1 " + name).digest(), simulated=True)


class _Uncopied:
    """Coins must not be drawn twice: a source of them is neither copied nor stored."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a source of randomness cannot be copied or stored")

    def __sklearn_clone__(self) -> Self:
        """Estimators that are cloned share their source of coins."""
        return self


class _Secure(_Uncopied):
    """AES-256-CTR with the key replaced at every block (fast key erasure)."""

    simulated = False
    addressed = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._restart()
        _OPEN.add(self)

    def _restart(self) -> None:
        self._key = os.urandom(_KEY_BYTES)
        self._ready = _NO_WORDS
        self._single: list[int] = []

    def words(self, count: int) -> NDArray[np.uint64]:
        checks.count("count", count, at_least=0)
        with self._lock:
            if count > self._ready.size:
                self._refill(count)
            if count == self._ready.size:
                # All that is left: handed over, and held by nobody else.
                taken, self._ready = self._ready, _NO_WORDS
                return taken
            taken = self._ready[:count].copy()
            # Used coins are wiped: memory that is read later must not tell them.
            self._ready[:count] = 0
            self._ready = self._ready[count:]
            return taken

    def draw_ahead(self, count: int) -> None:
        """Have so many words at hand, unless they are too many to keep."""
        with self._lock:
            if self._ready.size < count <= _MOST_AHEAD:
                self._refill(count)

    def word(self) -> int:
        while True:
            try:
                return self._single.pop()  # one thread at a time gets each
            except IndexError:
                self._single.extend(self.words(_SINGLE_WORDS).tolist())

    def _refill(self, count: int) -> None:
        size = _KEY_BYTES + max(_BLOCK_BYTES, 8 * count)
        # The cipher wants room for a block more. Coins stand nowhere else, so that all are wiped.
        room = np.empty(size + _CIPHER_BYTES, dtype=np.uint8)
        _cipher(self._key, 0).update_into(bytes(size), room.data)
        self._key = room[:_KEY_BYTES].tobytes()
        room[:_KEY_BYTES] = 0
        self._ready = room[_KEY_BYTES:size].view("<u8")

    def at(self, address: Address) -> Randomness:
        return self


# A forked child must not repeat its parent's coins.
_OPEN: weakref.WeakSet[_Secure] = weakref.WeakSet()


def _after_fork() -> None:
    for source in _OPEN:
        source._lock = threading.Lock()
        source._restart()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


_WORDS = KeyedWords()


class _Keyed(_Uncopied):
    """HMAC-SHA256 of the address gives the key of a keystream of its own."""

    addressed = True

    def __init__(self, key: bytes, *, simulated: bool) -> None:
        self._key = key
        self._position = 0
        self._lock = threading.Lock()  # two threads must not draw the same coins
        self.simulated = simulated

    def words(self, count: int) -> NDArray[np.uint64]:
        checks.count("count", count, at_least=0)
        with self._lock:
            start = self._position
            self._position = start + count
        return np.frombuffer(bytearray(_keystream(self._key, 8 * count, 8 * start)), dtype="<u8")

    def word(self) -> int:
        return int(self.words(1)[0])

    def at(self, address: Address) -> Randomness:
        return _Keyed(hmac.digest(self._key, address.encoded, "sha256"), simulated=self.simulated)

    def words_at(
        self,
        plan_part: bytes,
        streams: Sequence[str] | EncodedNames,
        which: Ints,
        sequences: Ints,
        helpers: Helpers,
    ) -> NDArray[np.uint64]:
        """The first word at each of many addresses that begin alike."""
        if len(sequences) and sequences.min() < 0:
            raise InvalidParameter("sequence", "less", "be at least 0")
        draws = Draws(plan_part, streams, which, sequences, each=1)
        return _WORDS.drawn(self._key, draws, helpers)[:, 0]

    def row_words(self, plan_part: bytes, names: Sequence[str], each: int) -> NDArray[np.uint64]:
        """The first words at the first moment of each of many names."""
        rows = np.arange(len(names))
        return _WORDS.drawn(self._key, Draws(plan_part, names, rows, np.zeros_like(rows), each))


class _Key(_Keyed):
    """A secret before anything is asked of it: coins in order would be the same for all plans."""

    def __init__(self, secret: bytes) -> None:
        super().__init__(hashlib.sha256(b"sfumato keyed v2 " + secret).digest(), simulated=False)
        self._secret = secret

    def of_ledger(self, ledger: bytes) -> Randomness:
        """The coins of one ledger."""
        return keyed(ledger_key(self._secret, ledger))

    def words(self, count: int) -> NoReturn:
        raise InvalidParameter(
            "randomness", "a key", "be asked at an address: keyed(...).at(Address(...))"
        )


def _keystream(key: bytes, size: int, skip: int = 0) -> bytes:
    """Bytes `skip` to `skip + size` of the AES-256-CTR keystream of a key used for nothing else."""
    block, offset = divmod(skip, _CIPHER_BYTES)
    return _cipher(key, block).update(bytes(offset + size))[offset:]


def _cipher(key: bytes, block: int) -> CipherContext:
    """AES-256-CTR from some block on."""
    count = block.to_bytes(_CIPHER_BYTES, "big")
    return Cipher(algorithms.AES(key), modes.CTR(count)).encryptor()
