"""Ciphers bit by bit are those of a library, and of FIPS 197."""

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from sfumato.core.aes_circuit import substitutes
from sfumato.core.aes_loops import VALUES, WORK_PLANES, encrypt, transpose


def times(one: int, other: int) -> int:
    """The product of two bytes, by the polynomial of FIPS 197."""
    found = 0
    for bit in range(8):
        found ^= (one << bit) * (other >> bit & 1)
    for bit in range(14, 7, -1):
        found ^= (0x11B << bit - 8) * (found >> bit & 1)
    return found


def substitute(byte: int) -> int:
    """FIPS 197, 5.1.1: the inverse, and then each bit with four others and a bit of 0x63."""
    inverse = next((one for one in range(256) if times(byte, one) == 1), 0)
    bits = [sum(inverse >> (place + by) % 8 for by in (0, 4, 5, 6, 7)) & 1 for place in range(8)]
    return sum(bit << place for place, bit in enumerate(bits)) ^ 0x63


def test_the_circuit_substitutes_every_byte_as_the_standard_says() -> None:
    gates = {"^": lambda a, b: a ^ b, "&": lambda a, b: a & b, "#": lambda a, b: 1 ^ a ^ b}
    for byte in range(256):
        bits = substitutes(
            [byte >> place & 1 for place in range(8)], lambda kind, a, b: gates[kind](a, b)
        )
        assert sum(bit << place for place, bit in enumerate(bits)) == substitute(byte)


def encrypted(keys: list[bytes], counter: int, columns: int) -> NDArray[np.uint8]:
    """The first columns of a counter's blocks under 256 keys."""
    planes = np.zeros(8 * VALUES, dtype=np.uint32)
    words = np.frombuffer(b"".join(keys), dtype=">u4").reshape(VALUES, 8)
    planes[:] = words.T.ravel()
    for word in range(8):
        transpose(planes, 32 * word)
    work = np.zeros(8 * WORK_PLANES, dtype=np.uint32)
    at = 8 * encrypt(work, planes, counter, columns)
    found = work[at : at + VALUES * columns].reshape(columns, VALUES).T
    return np.ascontiguousarray(found, dtype="<u4").view(np.uint8)


def alone(key: bytes, counter: int) -> bytes:
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return cipher.update(counter.to_bytes(16, "big"))


@pytest.mark.parametrize("counter", [0, 1, 2, 255, 256, 2**31 + 12345])
@pytest.mark.parametrize("columns", [2, 4])
def test_each_of_256_keys_encrypts_as_it_does_alone(counter: int, columns: int) -> None:
    rng = np.random.default_rng(counter + columns)
    keys = [rng.bytes(32) for _ in range(VALUES)]
    due = [alone(key, counter)[: 4 * columns] for key in keys]
    assert [row.tobytes() for row in encrypted(keys, counter, columns)] == due


def test_known_answers_of_the_algorithm_validation_suite() -> None:
    """A zero block under keys of NIST's AESAVS (KeySbox, VarKey) for 256 bits."""
    keys = {
        "c47b0294dbbbee0fec4757f22ffeee3587ca4730c3d33b691df38bab076bc558": (
            "46f2fb342d6f0ab477476fc501242c5f"
        ),
        "80" + 31 * "00": "e35a6dcb19b201a01ebcfa8aa22b5759",
    }
    for key, due in keys.items():
        own = bytes.fromhex(key)
        assert {row.tobytes().hex() for row in encrypted([own] * VALUES, 0, 4)} == {due}
