"""Ten million events of a fleet, each certificate checked against its integers: `make soak`.

The check shares no code with the release: it rebuilds the integer weights of every channel from the
policy's tables, takes the output marginal in 80-bit arithmetic (error below 2^-59, far under
the certificate's own margin) and compares. Every 100,000th event is also checked in rational
arithmetic. Coins are seeded: this is a simulation.
"""

from __future__ import annotations

import sys
import time
from fractions import Fraction

import numpy as np
from chains import ring

import sfumato as sf
from sfumato.solver.policy import WHOLE, Policy
from sfumato.stream.fleet_arrays import Prepared, StreamArrays

EPSILON = 0.5
STREAMS = 10_000


def integer_tables(policy: Policy, size: int) -> np.ndarray:
    """Kept weights of every channel, padded with zeros to one width."""
    tables = np.zeros((policy.channels, size, policy.width), dtype=np.int64)
    for node in range(policy.channels):
        weights = policy.channel(node).weights // WHOLE
        tables[node, :, : weights.shape[1]] = weights
    return tables


def check(tables: np.ndarray, beliefs: np.ndarray, step: Prepared, exactly: int) -> float:
    """Largest certificate; raise if any leakage is above its certificate."""
    parts = step.parts[:, None, None]
    blends = np.where(tables[step.chosen, 0] > 0, step.blends[:, : tables.shape[2]], 0)
    mixed = (WHOLE - parts) * tables[step.chosen]
    mixed += np.where(parts > 0, parts * blends[:, None, :], 0)
    if not (mixed.sum(axis=2) == 2**62).all():
        raise SystemExit("a row does not sum to 2^62")
    weights, belief = mixed.astype(np.longdouble), beliefs.astype(np.longdouble)
    total = belief.sum(axis=1)[:, None]
    marginal = np.zeros(mixed.shape[::2], dtype=np.longdouble)
    for symbol in range(mixed.shape[1]):
        marginal += belief[:, symbol, None] * weights[:, symbol]
    marginal /= total
    used = marginal > 0
    safe = np.where(used, marginal, 1)
    most, least = weights.max(axis=1), np.where(used, weights.min(axis=1), 1)
    highest = np.where(used, most / safe, 1).max(axis=1)
    lowest = np.where(used, safe / least, 1).max(axis=1)
    spread = np.where(used, most / least, 1).max(axis=1)
    constant = spread == 1
    sip, ldp = np.log(np.maximum(highest, lowest)), np.log(spread)
    if (~constant & ((sip > step.charges[:, 0]) | (ldp > step.charges[:, 1]))).any():
        raise SystemExit("a leakage is above its certificate")
    if step.charges[:, 0].max() > EPSILON:
        raise SystemExit("a certificate is above the budget")
    rational(mixed[exactly], beliefs[exactly], float(step.charges[exactly, 0]))
    return float(step.charges[:, 0].max())


def rational(weights: np.ndarray, belief: np.ndarray, certificate: float) -> None:
    """One event without any rounding: ratios against a lower bound of the exponential."""
    masses = [Fraction(float(mass)) for mass in belief]
    # e^c is at least its Taylor polynomial.
    power, limit, rate = Fraction(1), Fraction(1), Fraction(certificate)
    for place in range(1, 30):
        power = power * rate / place
        limit += power
    for column in weights.T:
        if not column.any():
            continue
        mean = sum(m * int(w) for m, w in zip(masses, column, strict=True)) / sum(masses)
        if int(column.max()) > limit * mean or mean > limit * int(column.min()):
            raise SystemExit("an exact leakage is above its certificate")


def main() -> None:
    """Run and report."""
    events = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
    case = ring()
    policy = sf.compile_policy(case.chain, case.loss, EPSILON, steps=case.steps)
    crowd = StreamArrays(case.chain, policy.tables, policy.repair_limit, STREAMS)
    tables = integer_tables(policy, case.chain.size)
    everyone, allowed = np.arange(STREAMS), np.tile([EPSILON, np.inf], (STREAMS, 1))
    moves, rng, coins = (
        case.chain.transition().cumsum(axis=1),
        np.random.default_rng(0),
        sf.seeded(0),
    )
    truths = rng.integers(case.chain.size, size=STREAMS)
    began, largest, missed, lost = time.perf_counter(), 0.0, 0, 0.0
    for step in range(events // STREAMS):
        prepared = crowd.prepare(everyone, allowed)
        missed += int((prepared.status != 0).sum())
        ready = prepared.status == 0  # the others would be solved on the spot
        place = step % int(ready.sum())
        largest = max(largest, check(tables, crowd.joints[ready], prepared[ready], place))
        released = crowd.release(prepared, truths, coins.words(STREAMS))
        lost += float(np.abs(released - truths).sum())
        crowd.advance(everyone)
        reached = (moves[truths] < rng.random(STREAMS)[:, None]).sum(axis=1)
        truths = np.minimum(reached, case.chain.size - 1)
    spent = time.perf_counter() - began
    print(
        f"{events:,} events of {STREAMS:,} streams in {spent:.0f} s, checks included: rows sum "
        f"to 2^62, every exact leakage is within its certificate and within {EPSILON}; largest "
        f"certificate {largest:.15f}; {missed} beliefs not covered; mean loss {lost / events:.4f}; "
        f"drift at the end {crowd.drifts.max():.1e}"
    )


if __name__ == "__main__":
    main()
