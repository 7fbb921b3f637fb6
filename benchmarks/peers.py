"""How fast the peers randomise one value, as JSON: `make bench`.

k-ary randomised response at epsilon 1: the true symbol is kept with probability
p = e / (e + k - 1), and every other symbol is drawn with probability q = 1 / (e + k - 1). Time is
that of the processor over all threads of this process, so a peer gains nothing by starting some.

The script runs in a virtual environment of its own, made with `peers-constraints.txt`, because the
peers ask for other versions than Sfumato does; it must not import Sfumato. What cannot be imported,
fails or draws from another distribution is named under "failures" with the reason, and gets no
time. The environment also needs `statsmodels`, which pure-ldp imports and does not declare,
scikit-learn before 1.9 for diffprivlib, and `cryptography` for the AES row.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata

import numpy as np

EPSILON = 1.0
SIZES = (2, 16, 256)
REPETITIONS = 5
SECONDS = 0.05  # of one repetition, at least
SCALAR_BATCH = 4_096  # values of one repetition, at least, where they go one at a time
VECTOR_BATCH = 16_384  # values of one array: fits in the cache, so that this is a floor
DEVIATIONS = 5.0  # standard deviations a count may be off before the draws are called wrong

Release = Callable[[], Sequence[object] | np.ndarray]
Uniforms = Callable[[int], np.ndarray]


@dataclass(frozen=True)
class Contender:
    """One way to randomise values.

    `prepare(values, k)` does everything that is done once, and returns the call to be timed: it
    releases all the values and returns symbols 0 to k - 1 (or their digits).
    """

    name: str
    package: str
    randomness: str
    prepare: Callable[[np.ndarray, int], Release]
    batch: int = SCALAR_BATCH
    sizes: tuple[int, ...] = SIZES


def probabilities(k: int) -> np.ndarray:
    """Probability of each shift from the true symbol, modulo k; shift 0 keeps it."""
    weights = np.ones(k)
    weights[0] = math.exp(EPSILON)
    return weights / weights.sum()


def vectorised(uniforms: Uniforms) -> Callable[[np.ndarray, int], Release]:
    """Whole arrays, one uniform number per value."""

    def prepare(values: np.ndarray, k: int) -> Release:
        keep, other = probabilities(k)[:2]

        def release() -> np.ndarray:
            shift = np.ceil((uniforms(len(values)) - keep) / other)
            symbol = values + np.clip(shift, 0, k - 1).astype(np.int64)
            return np.where(symbol < k, symbol, symbol - k)

        return release

    return prepare


def to_unit(words: bytes) -> np.ndarray:
    """Uniform numbers in [0, 1) from eight random bytes each."""
    return (np.frombuffer(words, dtype=np.uint64) >> np.uint64(11)) * 2.0**-53


def numpy_pcg64(values: np.ndarray, k: int) -> Release:
    """The floor: numpy's default generator, which is not for privacy."""
    return vectorised(np.random.default_rng().random)(values, k)


def numpy_entropy(values: np.ndarray, k: int) -> Release:
    """Every word from the operating system."""
    return vectorised(lambda count: to_unit(os.urandom(8 * count)))(values, k)


def numpy_aes(values: np.ndarray, k: int) -> Release:
    """Every word from AES-256 in counter mode, keyed by the operating system."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    cipher = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(bytes(16))).encryptor()
    zeros = bytes(8 * len(values))
    return vectorised(lambda count: to_unit(cipher.update(zeros[: 8 * count])))(values, k)


def numpy_scalar(values: np.ndarray, k: int) -> Release:
    """One value per call, as a loop over events would do it."""
    rng = np.random.default_rng()
    keep = float(probabilities(k)[0])

    def randomise(value: int) -> int:
        if rng.random() < keep:
            return value
        other = int(rng.integers(k - 1))
        return other + (other >= value)

    items = values.tolist()
    return lambda: [randomise(item) for item in items]


def pure_ldp(values: np.ndarray, k: int) -> Release:
    """pure-ldp; its default index map counts the symbols from 1, its answers from 0."""
    from pure_ldp.frequency_oracles.direct_encoding import DEClient

    client = DEClient(EPSILON, k)
    items = (values + 1).tolist()
    return lambda: [client.privatise(item) for item in items]


def multi_freq_ldpy(values: np.ndarray, k: int) -> Release:
    """multi-freq-ldpy; compiled by numba at the first call, which is not timed."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client

    items = values.tolist()
    return lambda: [GRR_Client(item, k, EPSILON) for item in items]


def diffprivlib(values: np.ndarray, k: int) -> Release:
    """Binary for two symbols, else the exponential mechanism, made once for each true symbol.

    `monotonic` takes away the factor 2 that general utilities need and this one, whose normaliser
    is the same for all symbols, does not: only then is the kernel that of the others.
    """
    from diffprivlib.mechanisms import Binary, Exponential

    if k == 2:
        binary = Binary(epsilon=EPSILON, value0="0", value1="1")
        labels = values.astype(str).tolist()
        return lambda: [binary.randomise(label) for label in labels]
    by_symbol = [
        Exponential(epsilon=EPSILON, sensitivity=1.0, utility=row, monotonic=True)
        for row in np.eye(k).tolist()
    ]
    items = values.tolist()
    return lambda: [by_symbol[item].randomise() for item in items]


def opendp(values: np.ndarray, k: int) -> Release:
    """OpenDP's randomised response over integers."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    measurement = dp.m.make_randomized_response(list(range(k)), float(probabilities(k)[0]))
    items = values.tolist()
    return lambda: [measurement(item) for item in items]


def opendp_bool(values: np.ndarray, k: int) -> Release:
    """OpenDP's randomised response over booleans, for two symbols."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    measurement = dp.m.make_randomized_response_bool(float(probabilities(k)[0]))
    items = values.astype(bool).tolist()
    return lambda: [measurement(item) for item in items]


CONTENDERS = (
    Contender("numpy vectorised, PCG64", "numpy", "PCG64, insecure", numpy_pcg64, VECTOR_BATCH),
    Contender("numpy vectorised, OS entropy", "numpy", "OS entropy", numpy_entropy, VECTOR_BATCH),
    Contender(
        "numpy vectorised, AES-256-CTR", "cryptography", "AES-256-CTR", numpy_aes, VECTOR_BATCH
    ),
    Contender("numpy one at a time", "numpy", "PCG64, insecure", numpy_scalar),
    Contender("pure-ldp DEClient.privatise", "pure-ldp", "Mersenne twister, insecure", pure_ldp),
    Contender(
        "multi-freq-ldpy GRR_Client",
        "multi-freq-ldpy",
        "Mersenne twister, insecure",
        multi_freq_ldpy,
    ),
    Contender("diffprivlib Binary / Exponential", "diffprivlib", "OS entropy", diffprivlib),
    Contender("opendp make_randomized_response", "opendp", "OpenSSL", opendp),
    Contender("opendp make_randomized_response_bool", "opendp", "OpenSSL", opendp_bool, sizes=(2,)),
)


def shift_counts(outputs: Sequence[object] | np.ndarray, values: np.ndarray, k: int) -> np.ndarray:
    """How often each shift from the true symbol was drawn."""
    symbols = np.asarray(outputs).astype(np.int64)
    if symbols.min() < 0 or symbols.max() >= k:
        span = f"{symbols.min()} to {symbols.max()}"
        raise ValueError(f"symbols must be 0 to {k - 1}; got {span}")
    return np.bincount((symbols - values) % k, minlength=k)


def check_kernel(counts: np.ndarray) -> None:
    """Refuse draws that are not those of randomised response at epsilon 1."""
    total, expected = counts.sum(), probabilities(len(counts))
    off = np.abs(counts - total * expected) / np.sqrt(total * expected * (1 - expected))
    worst = int(off.argmax())
    if off[worst] > DEVIATIONS:
        raise ValueError(
            f"shift {worst} must have probability {expected[worst]:.5f}; "
            f"got {counts[worst] / total:.5f} in {total} draws, which is "
            f"{off[worst]:.1f} standard deviations off"
        )


def timed(release: Release, calls: int) -> tuple[float, Sequence[object] | np.ndarray]:
    """Processor seconds of some calls, and what the last one released."""
    start = time.process_time()
    for _ in range(calls):
        outputs = release()
    return time.process_time() - start, outputs


def measure(contender: Contender, k: int) -> dict[str, float]:
    """Microseconds per value, the best and the median repetition, of draws that were checked."""
    values = np.random.default_rng(1).integers(0, k, contender.batch)
    release = contender.prepare(values, k)
    counts = shift_counts(release(), values, k)  # the first call compiles and fills caches
    seconds, outputs = timed(release, 1)
    counts += shift_counts(outputs, values, k)
    calls, micros = math.ceil(SECONDS / max(seconds, 1e-6)), []
    for _ in range(REPETITIONS):
        seconds, outputs = timed(release, calls)
        micros.append(1e6 * seconds / (calls * contender.batch))
        counts += shift_counts(outputs, values, k)
    check_kernel(counts)
    return {
        "best": round(min(micros), 5),
        "median": round(statistics.median(micros), 5),
        "checked_draws": int(counts.sum()),
        "kept": round(float(counts[0] / counts.sum()), 5),
    }


def version(package: str) -> str | None:
    """The installed version, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def report(contender: Contender) -> dict[str, object]:
    """Times by k, and for each k without a time the reason."""
    times, failures = {}, {}
    for k in contender.sizes:
        try:
            times[str(k)] = measure(contender, k)
        except Exception as error:  # a peer may fail in any way; the others still run
            failures[str(k)] = f"{type(error).__name__}: {error}"
    return {
        "name": contender.name,
        "package": contender.package,
        "version": version(contender.package),
        "randomness": contender.randomness,
        "batch": contender.batch,
        "microseconds": times,
        "failures": failures,
    }


def main() -> None:
    """Measure all and print one JSON object."""
    with contextlib.redirect_stdout(sys.stderr):  # a peer that prints must not spoil the JSON
        contenders = [report(contender) for contender in CONTENDERS]
    needed = ("numpy", "numba", "scipy", "scikit-learn", "statsmodels", "cryptography")
    result = {
        "epsilon": EPSILON,
        "unit": "microseconds of processor time per value",
        "repetitions": REPETITIONS,
        "kept_expected": {str(k): round(float(probabilities(k)[0]), 5) for k in SIZES},
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in needed},
        "contenders": contenders,
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
