import hashlib
import hmac
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from sfumato.core.errors import InvalidParameter
from sfumato.core.randomness import (
    BITS,
    Address,
    Domain,
    Randomness,
    categorical,
    draw_ahead,
    integer_weights,
    keyed,
    secure,
    seeded,
    words_at,
)
from tests.contracts.threads import at_once
from tests.strategies import Floats, stochastic_matrices

SECRET = b"sixteen bytes or more"
WHOLE = 2**62
ALPHA = 1e-6  # false alarm rate of each statistical test
SAMPLES = 40_000
WRONG_BY = 0.3  # a sampler with a parameter off by this factor must be caught

streams = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
sequences = st.integers(0, 2**64 - 1)
addresses = st.builds(
    Address, st.sampled_from(Domain), st.text(min_size=1, max_size=4), streams, sequences
)


def here(stream: str, sequence: int, plan: str = "plan") -> Address:
    return Address(Domain.STREAM, plan, stream, sequence)


def ints(words: NDArray[np.uint64]) -> list[int]:
    return [int(word) for word in words]


# --- fresh coins ---


def test_two_fresh_sources_differ() -> None:
    one, other = secure(), secure()
    assert not set(ints(one.words(100))) & set(ints(other.words(100)))


def test_a_fresh_source_never_repeats_itself() -> None:
    source = secure()
    sizes = [1, 5, 0, 8192, 1, 20_000, 3, 8191]
    words = [word for size in sizes for word in ints(source.words(size))]
    assert len(set(words)) == len(words) == sum(sizes)


def test_an_address_does_not_make_fresh_coins_repeat() -> None:
    source = secure()
    one, again = source.at(here("u1", 7)).words(50), source.at(here("u1", 7)).words(50)
    assert not set(ints(one)) & set(ints(again))


FORK = """
import json, os, sys
from sfumato.core.randomness import secure
{before}
reader, writer = os.pipe()
child = os.fork()
words = {words}
if child == 0:
    os.write(writer, json.dumps(words).encode())
    os._exit(0)
os.close(writer)
with os.fdopen(reader) as pipe:
    theirs = json.load(pipe)
os.waitpid(child, 0)
json.dump([words, theirs], sys.stdout)
"""


def forked(before: str, words: str) -> Any:
    """What a parent and its forked child draw, in an interpreter of their own."""
    program = FORK.format(before=before, words=words)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, env=dict(os.environ)
    )
    return json.loads(done.stdout)


def test_a_forked_process_does_not_repeat_its_parents_coins() -> None:
    (left, new), (child_left, child_new) = forked(
        # One has words left over, one is new.
        "sources = [secure(), secure()]; sources[0].words(3)",
        "[[int(word) for word in source.words(50)] for source in sources]",
    )
    every = [*left, *new, *child_left, *child_new]
    assert len(every) == 200
    assert len(set(every)) == 200


@pytest.mark.parametrize(
    "take",
    [lambda source: ints(source.words(3)), lambda source: [source.word()]],
    ids=["words", "single words"],
)
def test_threads_never_share_a_coin(take: Callable[[Randomness], list[int]]) -> None:
    source, taken = secure(), [list[int]() for _ in range(4)]

    def work(thread: int) -> None:
        for _ in range(2_500):
            taken[thread].extend(take(source))

    at_once(4, work)
    words = [word for mine in taken for word in mine]
    assert len(words) == 4 * 2_500 * len(take(source))
    assert len(set(words)) == len(words)


# --- coins that are drawn before they are asked for ---


@pytest.mark.parametrize("count", [1, 8192, 8193, 20_000])
def test_coins_that_were_drawn_ahead_are_handed_over_without_another_draw(count: int) -> None:
    source: Any = secure()
    draw_ahead(source, count)
    ready = source._ready.copy()
    draw_ahead(source, count)  # there are enough
    with mock.patch.object(source, "_refill", side_effect=AssertionError):
        assert ints(source.words(count)) == ints(ready[:count])
    assert not set(ints(source.words(100))) & set(ints(ready[:count]))


def test_coins_that_are_too_many_to_keep_are_not_drawn_ahead() -> None:
    source: Any = secure()
    draw_ahead(source, 1 << 22)
    assert source._ready.size == 0


def test_coins_of_an_address_are_drawn_where_they_are_asked_for() -> None:
    for source, again in ((seeded(1), seeded(1)), (keyed(SECRET), keyed(SECRET))):
        draw_ahead(source, 100)
        assert source.at(here("u1", 7)).word() == again.at(here("u1", 7)).word()
    ordered, again = seeded(1), seeded(1)
    draw_ahead(ordered, 100)
    assert ints(ordered.words(3)) == ints(again.words(3))


def test_a_forked_process_does_not_get_what_its_parent_drew_ahead() -> None:
    mine, theirs = forked(
        "from sfumato.core.randomness import draw_ahead; source = secure();"
        " draw_ahead(source, 9000)",
        "[int(word) for word in source.words(9000)]",
    )
    assert len(set(mine) | set(theirs)) == 18_000


# --- coins of an address ---


strong = st.binary(min_size=16, max_size=40).map(lambda part: bytes(range(8)) + b"!" + part)


@given(strong, addresses)
def test_keyed_coins_depend_on_secret_and_address_alone(secret: bytes, address: Address) -> None:
    used = keyed(secret)
    used.at(here("another", 1)).words(2)
    assert ints(used.at(address).words(4)) == ints(keyed(secret).at(address).words(4))


@given(st.lists(addresses, min_size=2, max_size=6, unique=True))
def test_different_addresses_have_different_coins(places: list[Address]) -> None:
    first = [keyed(SECRET).at(place).word() for place in places]
    assert len(set(first)) == len(first)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", 1), ("a1", 1)),
        (("a", 11), ("a1", 1)),
        (("", 1), ("\x00", 1)),
        (("a", 1), ("a\x00\x00\x00\x00\x00\x00\x00\x01", 1)),
        (("a\x00", 1), ("a", 1)),
        (("a", 256), ("a", 1)),
        (("a", 2**63), ("a", 0)),
        (("\x00\x00\x00\x00\x00\x00\x00\x01a", 1), ("a", 1)),
    ],
)
def test_addresses_do_not_run_together(one: tuple[str, int], other: tuple[str, int]) -> None:
    words = [ints(keyed(SECRET).at(here(*place)).words(2)) for place in (one, other)]
    assert not set(words[0]) & set(words[1])


def test_an_address_has_other_coins_than_its_source_and_than_an_address_within() -> None:
    source = seeded(1)
    inner = source.at(here("a", 1))
    within = inner.at(here("a", 1)), inner.at(here("b", 1))
    words = [ints(part.words(20)) for part in (source, inner, *within)]
    assert len({word for part in words for word in part}) == 80


@given(addresses, addresses)
def test_no_two_addresses_are_the_same_bytes_nor_one_the_beginning_of_another(
    one: Address, other: Address
) -> None:
    assert (one.encoded == other.encoded) == (one == other)
    assert one == other or not other.encoded.startswith(one.encoded)


def test_an_address_has_all_its_parts() -> None:
    assert len({Address(domain, "plan", "u1", 7).encoded for domain in Domain}) == len(Domain)
    for plan in ("", None):
        with pytest.raises(InvalidParameter, match="plan must be the fingerprint of a plan"):
            Address(Domain.STREAM, plan, "u1", 7)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="domain must be one of stream, temporal"):
        Address("stream", "plan", "u1", 7)  # type: ignore[arg-type]
    for sequence in (-1, 2**64, 1.5):
        with pytest.raises(InvalidParameter, match="sequence must be"):
            Address(Domain.STREAM, "plan", "u1", sequence)  # type: ignore[arg-type]


def test_a_key_has_no_coins_without_an_address() -> None:
    with pytest.raises(InvalidParameter, match="be asked at an address"):
        keyed(SECRET).words(1)
    with pytest.raises(InvalidParameter, match="be asked at an address"):
        keyed(SECRET).word()


def test_coins_of_an_address_are_not_given_to_two_threads() -> None:
    source, taken = keyed(SECRET).at(here("u1", 7)), []

    def take() -> None:
        mine = [source.word() for _ in range(500)]
        taken.extend(mine)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(taken)) == len(taken) == 4000


def test_different_secrets_have_different_coins() -> None:
    secrets = [
        SECRET,
        SECRET + b"!",
        SECRET[::-1],
        SECRET[1:],
        bytes(range(16)),
        bytes(range(1, 17)),
    ]
    first = {int(keyed(secret).at(here("a", 1)).words(1)[0]) for secret in secrets}
    assert len(first) == len(secrets)


@given(st.lists(st.integers(0, 7), max_size=8), st.sampled_from([keyed(SECRET), seeded(3)]))
def test_coins_taken_in_parts_are_the_coins_taken_at_once(
    parts: list[int], source: Randomness
) -> None:
    piecewise, at_once = source.at(here("a", 1)), source.at(here("a", 1))
    together = [word for part in parts for word in ints(piecewise.words(part))]
    assert together == ints(at_once.words(sum(parts)))


def test_two_and_three_words_are_five() -> None:
    source = keyed(SECRET).at(here("u1", 7))
    assert [*ints(source.words(2)), *ints(source.words(3))] == ints(
        keyed(SECRET).at(here("u1", 7)).words(5)
    )


def test_coins_are_those_of_the_published_construction() -> None:
    """HMAC-SHA256 of the address keys AES-256 in counter mode; words are little-endian."""
    root = hashlib.sha256(b"sfumato keyed v2 " + SECRET).digest()
    parts = [len(part).to_bytes(8, "big") + part for part in (b"stream", b"plan", b"u1")]
    address = b"".join(parts) + (7).to_bytes(8, "big")
    key = hmac.digest(root, address, "sha256")
    stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(80))
    expected = [int.from_bytes(stream[i : i + 8], "little") for i in range(0, 80, 8)]
    assert ints(keyed(SECRET).at(here("u1", 7)).words(10)) == expected
    seed = hashlib.sha256(b"sfumato seeded v1 1").digest()
    stream = Cipher(algorithms.AES(seed), modes.CTR(bytes(16))).encryptor().update(bytes(16))
    expected = [int.from_bytes(stream[i : i + 8], "little") for i in (0, 8)]
    assert ints(seeded(1).words(2)) == expected


def test_the_first_words_stay_what_they_were() -> None:
    assert ints(seeded(1).words(3)) == [
        4815402062648246699,
        719374459614106586,
        10368021174963366690,
    ]
    assert ints(seeded(1).at(here("u1", 7)).words(2)) == [2297896788281196372, 1976591027408390640]
    assert ints(keyed(SECRET).at(here("u1", 7)).words(2)) == [
        15071340647423120422,
        14874384500265459821,
    ]


@given(st.lists(st.integers(0, 10**30), min_size=2, max_size=5, unique=True))
def test_seeds_are_reproducible_and_differ(seeds: list[int]) -> None:
    first = [ints(seeded(seed).words(3)) for seed in seeds]
    assert first == [ints(seeded(seed).words(3)) for seed in seeds]
    assert len({tuple(words) for words in first}) == len(seeds)


def test_only_a_simulation_says_that_its_coins_can_be_guessed() -> None:
    assert seeded(1).simulated
    assert seeded(1).at(here("a", 1)).simulated
    for source in (secure(), keyed(SECRET)):
        assert not source.simulated
        assert not source.at(here("a", 1)).simulated


@pytest.mark.parametrize("size", [0, 1, 15])
def test_refuses_a_short_secret_and_does_not_quote_it(size: int) -> None:
    with pytest.raises(InvalidParameter, match="secret must have at least 16 bytes") as refusal:
        keyed(b"hush-hush-hush-hush"[:size])
    assert "hush" not in str(refusal.value)


@pytest.mark.parametrize("secret", [bytes(32), b"ab" * 50, b"0123456789" * 9, b"abcdefg" * 3])
def test_refuses_a_secret_that_could_be_guessed_and_does_not_quote_it(secret: bytes) -> None:
    with pytest.raises(InvalidParameter, match=r"8 different bytes|bytes that do not repeat") as no:
        keyed(secret)
    assert secret[:4].decode() not in str(no.value)


def test_random_secrets_are_not_refused() -> None:
    for size in (16, 17, 32, 64):
        for _ in range(200):
            assert keyed(os.urandom(size)).addressed


@pytest.mark.parametrize("seed", [-1, 1.5, True])
def test_refuses_a_seed_that_is_no_whole_number(seed: int) -> None:
    with pytest.raises(InvalidParameter, match="seed must be a whole number of at least 0"):
        seeded(seed)


@pytest.mark.parametrize("source", [secure(), keyed(SECRET).at(here("u1", 7)), seeded(1)])
def test_words_are_64_bits_and_the_callers_own(source: Randomness) -> None:
    words = source.words(1000)
    assert words.dtype == np.uint64
    assert words.shape == (1000,)
    words[:] = 0  # writable, and nobody else's
    every_bit = int(np.bitwise_or.reduce(source.words(1000)))
    assert every_bit == 2**64 - 1
    assert source.words(0).shape == (0,)


@pytest.mark.parametrize("source", [keyed(SECRET), seeded(3)])
def test_a_word_is_the_next_of_the_words(source: Randomness) -> None:
    alone, together = source.at(here("u1", 7)), source.at(here("u1", 7))
    mixed = [alone.word(), *ints(alone.words(2)), alone.word(), alone.word()]
    assert mixed == ints(together.words(5))
    assert all(type(word) is int for word in mixed)


def test_fresh_words_taken_one_by_one_never_repeat() -> None:
    source = secure()
    singles = [source.word() for _ in range(1_000)]
    every = [*singles, *ints(source.words(1_000)), *(source.word() for _ in range(1_000))]
    assert len(set(every)) == 3_000
    assert np.bitwise_or.reduce(np.array(singles, dtype=np.uint64)) == np.uint64(2**64 - 1)
    assert all(type(word) is int and 0 <= word < 2**64 for word in singles)


def test_a_forked_process_does_not_repeat_single_words() -> None:
    ours, theirs = forked(
        "source = secure(); source.word()",  # the rest of its block is waiting
        "[source.word() for _ in range(300)]",
    )
    assert len({*ours, *theirs}) == 600


def test_only_coins_of_an_address_depend_on_it() -> None:
    for source in (keyed(SECRET), seeded(1)):
        assert source.addressed
        assert source.at(here("a", 1)).addressed
        assert (
            source.at(here("a", 1)).word()
            == source.at(here("a", 1)).word()
            != source.at(here("a", 2)).word()
        )
    fresh = secure()
    assert not fresh.addressed
    assert not fresh.at(here("a", 1)).addressed
    assert fresh.at(here("a", 1)).word() != fresh.at(here("a", 1)).word()


# --- integer weights and exact draws ---


@given(stochastic_matrices())
def test_integer_weights_sum_exactly_and_stay_close(rows: Floats) -> None:
    weights = integer_weights(rows)
    assert weights.dtype == np.int64
    for row, exact in zip(weights.tolist(), rows.tolist(), strict=True):
        assert sum(row) == WHOLE
        assert min(row) >= 0
        largest = exact.index(max(exact))
        for column, (weight, share) in enumerate(zip(row, exact, strict=True)):
            off = abs(weight - Fraction(share) * WHOLE)
            assert off <= (2**22 if column == largest else 1)


def test_certainty_is_the_whole_weight() -> None:
    assert integer_weights(np.array([[0.0, 1.0]])).tolist() == [[0, WHOLE]]
    assert BITS == 62


@given(
    st.lists(st.integers(0, WHOLE), max_size=6).map(lambda cuts: [0, *sorted(cuts), WHOLE]),
    st.integers(0, 3),
)
def test_a_draw_is_exact_at_every_boundary(cuts: list[int], low_bits: int) -> None:
    """Column j owns the coins from cuts[j] up to, and without, cuts[j + 1]."""
    cumulative = np.array([cuts[1:]], dtype=np.int64)
    coins, owners = [], []
    for column, (start, end) in enumerate(itertools.pairwise(cuts)):
        if start < end:
            coins += [start, (start + end) // 2 if start < end - 1 else start, end - 1]
            owners += [column] * 3
    words = np.array([(coin << 2) + low_bits for coin in coins], dtype=np.uint64)
    many = categorical(cumulative, np.zeros(len(coins), dtype=np.int64), words)
    assert many.tolist() == owners
    for i, owner in enumerate(owners):
        one = categorical(cumulative, np.zeros(1, dtype=np.int64), words[i : i + 1])
        assert one.tolist() == [owner]


def test_each_draw_is_made_from_its_own_row() -> None:
    cumulative = integer_weights(np.array([[1.0, 0.0], [0.0, 1.0]])).cumsum(axis=1)
    rows = np.array([0, 1, 1, 0])
    words = np.array([0, 0, 2**64 - 1, 2**64 - 1], dtype=np.uint64)
    assert categorical(cumulative, rows, words).tolist() == [0, 1, 1, 0]


def shares(tilt: float) -> Floats:
    masses = np.exp(-tilt * np.arange(5))
    return np.asarray(masses / masses.sum())


def p_value(counts: NDArray[np.int64], tilt: float) -> float:
    return float(stats.chisquare(counts, shares(tilt) * counts.sum()).pvalue)


SOURCES: dict[str, Callable[[], Randomness]] = {
    "secure": secure,
    "keyed at an address": lambda: keyed(SECRET).at(here("u1", 7)),
    "seeded": lambda: seeded(5),
}


@pytest.mark.statistical
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())
@pytest.mark.parametrize("tilt", [0.3, 1.0])
def test_draws_follow_their_weights_and_no_neighbouring_ones(
    source: Callable[[], Randomness], tilt: float
) -> None:
    cumulative = integer_weights(shares(tilt)[None, :]).cumsum(axis=1)
    words = source().words(SAMPLES)
    counts = np.bincount(
        categorical(cumulative, np.zeros(SAMPLES, dtype=np.int64), words), minlength=5
    )
    assert p_value(counts, tilt) > ALPHA
    assert p_value(counts, tilt * (1 - WRONG_BY)) < ALPHA
    assert p_value(counts, tilt * (1 + WRONG_BY)) < ALPHA


@pytest.mark.statistical
def test_the_first_word_of_successive_addresses_is_even() -> None:
    """An engine takes one word per event: they must be as good as one long stream."""
    source = keyed(SECRET)
    tops = [int(source.at(here("u1", i)).words(1)[0]) >> 60 for i in range(8_000)]
    counts = np.bincount(tops, minlength=16)
    assert float(stats.chisquare(counts).pvalue) > ALPHA
    pairs = np.bincount([4 * (a >> 2) + (b >> 2) for a, b in itertools.pairwise(tops)])
    assert float(stats.chisquare(pairs).pvalue) > ALPHA


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2**62)), max_size=12),
    st.lists(st.text(max_size=80), min_size=5, max_size=5),
)
def test_words_of_many_addresses_are_those_of_each(
    draws: list[tuple[int, int]], streams: list[str]
) -> None:
    which = np.array([place for place, _ in draws], dtype=np.int64)
    sequences = np.array([turn for _, turn in draws], dtype=np.int64)
    for source in (keyed(b"sixteen bytes or more"), seeded(3)):
        words = words_at(source, Domain.STREAM, "plan", streams, which, sequences)
        alone = [
            source.at(Address(Domain.STREAM, "plan", streams[at], n)).word() for at, n in draws
        ]
        assert words.tolist() == alone


def test_words_of_many_addresses_without_addresses_are_fresh() -> None:
    which = np.zeros(64, dtype=np.int64)
    words = words_at(secure(), Domain.STREAM, "plan", ["ann"], which, which)
    assert len(set(words.tolist())) == 64


def test_words_of_a_moment_below_0_are_refused() -> None:
    below = np.array([-1])
    with pytest.raises(InvalidParameter, match="sequence"):
        words_at(seeded(1), Domain.STREAM, "plan", ["ann"], np.array([0]), below)
