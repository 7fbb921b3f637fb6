"""Who looks: gaze in pieces of known owners, released in several ways and attacked.

Every person has as many pieces, of one length, so that an owner can be told by nothing but what was
released. What the attacker knows of everybody are the first halves of the recordings; pieces come
from the second halves. All attackers know the plan, the chain of everybody, and these halves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sfumato.attacks.network_attack import rehearse, reidentify_raw_by_network
from sfumato.attacks.network_input import NetworkInput, released_rows
from sfumato.attacks.recurrent_network import NetworkSpec
from sfumato.attacks.rehearsal import rehearsed
from sfumato.attacks.reidentification import (
    Reidentification,
    reidentify,
    reidentify_raw,
    released_outlines,
)
from sfumato.core.arrays import Floats
from sfumato.core.budgets import PerStep
from sfumato.core.guarantees import SIP
from sfumato.core.local_leakage import local_leakage
from sfumato.core.loss import euclidean
from sfumato.models.markov import MarkovChain
from sfumato.solver.design_methods import Method
from sfumato.stream.compile import compile_policy
from sfumato.stream.plan import Plan
from sfumato.studies.data.gaze_data import Gaze
from sfumato.studies.sip.fixed_channels import temporal_response
from sfumato.studies.standard_error import standard_error

RAW = "true values"
EXACT, NETWORK, TAUGHT = "exact likelihood", "network", "network with the chain"
TOP = 5
_REHEARSALS = 2
_COMPILED = 1_000
"""Steps of the walks that a policy is compiled for."""


@dataclass(frozen=True, slots=True)
class OwnersFound:
    """How often one attacker finds the owners of pieces that were released in one way.

    Attributes:
        curve: How they were released.
        order: Of the chain that the release and all attackers know.
        epsilon: Promised per value, in the unit of the way; infinite for true values.
        attacker: Who guesses.
        rate: Share of pieces whose owner is the first guess.
        error: Its standard error between people.
        top_rate: Share whose owner is among the first five.
        top_error: Its standard error.
        chance: What guessing gives.
        leakage: True leakage under the chain per value (SIP), mean over pieces.
        told: What a piece must have told for the rate of one release (SIP), at least.
        certified: What a piece leaked (SIP), at most; the largest.
        pieces: How many were attacked, all releases together.
    """

    curve: str
    order: int
    epsilon: float
    attacker: str
    rate: float
    error: float
    top_rate: float
    top_error: float
    chance: float
    leakage: float
    told: float
    certified: float
    pieces: int


@dataclass(frozen=True, slots=True, eq=False)
class Owners:
    """People, what is known of them, and pieces of theirs.

    Attributes:
        gaze: Where they looked.
        known: Places of the first halves of each.
        pieces: Places of each piece, by name.
        owners: Whose each piece is.
    """

    gaze: Gaze
    known: dict[str, list[int]]
    pieces: dict[str, list[int]]
    owners: list[str]

    @classmethod
    def of(cls, gaze: Gaze, thin: int, length: int, each: int, most: int) -> Owners:
        """Pieces of everybody who has as many as are wanted.

        Args:
            gaze: Where people looked.
            thin: One value in so many is taken.
            length: Values of a piece.
            each: Pieces of each person, spread over the second halves.
            most: Values that are known of each, at most.

        Examples:
            >>> from sfumato.studies.data.gaze_data import Grid, simulated_gaze
            >>> seen = simulated_gaze(Grid(3, 2), people=3, seconds=10)
            >>> found = Owners.of(seen, thin=2, length=20, each=2, most=100)
            >>> found.owners[:3], len(found.pieces), len(found.known["simulated 1"])
            (['simulated 1', 'simulated 1', 'simulated 2'], 6, 100)
        """
        known, pieces, owners = {}, {}, []
        for viewer in gaze.viewers:
            late = [gaze.alphabet.indices(path[::thin]) for path in viewer.testing]
            cut = [
                path[start : start + length].tolist()
                for path in late
                for start in range(0, len(path) - length + 1, length)
            ]
            if len(cut) < each:
                continue
            for place in np.linspace(0, len(cut) - 1, each).astype(int).tolist():
                pieces[f"{viewer.name}, piece {place + 1}"] = cut[place]
                owners.append(viewer.name)
            early = [gaze.alphabet.indices(path[::thin]) for path in viewer.training]
            known[viewer.name] = np.concatenate(early).tolist()[:most]
        return cls(gaze, known, pieces, owners)

    def chain(self, order: int) -> MarkovChain:
        """What everybody knows: the chain of all known values."""
        labels = self.gaze.alphabet.labels
        paths = [[labels[place] for place in path] for path in self.known.values()]
        return MarkovChain.fit(paths, alphabet=self.gaze.alphabet, order=order)


def _planned(method: Method, width: int = 1) -> Callable[[Owners, int, float], Plan]:
    """Plans of a method, with a policy."""

    def plan(owners: Owners, order: int, epsilon: float) -> Plan:
        chain = owners.chain(order)
        loss = euclidean(chain.alphabet)
        compiled = {Method.OPTIMAL, Method.RANDOMIZED_RESPONSE}
        if method in compiled or (method is Method.FAR_SIGHTED and order == 1):
            whole = width * epsilon
            policy = compile_policy(chain, loss, whole, width=width, method=method, steps=_COMPILED)
        return Plan(chain, PerStep(SIP(epsilon)), loss, width, method=method, policy=policy)

    return plan


def _temporal(owners: Owners, order: int, epsilon: float) -> Plan:
    """Randomised response whose outputs, all together, tell at most epsilon of any one value."""
    constant = local_leakage(temporal_response(owners.chain(1), epsilon).channel).epsilon
    return _planned(Method.RANDOMIZED_RESPONSE)(owners, order, constant)


WAYS: dict[str, Callable[[Owners, int, float], Plan]] = {
    "k-RR, epsilon-LDP": _planned(Method.RANDOMIZED_RESPONSE),
    "temporal LDP": _temporal,
    "instantaneous": _planned(Method.OPTIMAL),
    "batches of 2": _planned(Method.OPTIMAL, 2),
    "far-sighted": _planned(Method.FAR_SIGHTED),
}
LDP_WAYS = ("k-RR, epsilon-LDP", "temporal LDP")
SIP_WAYS = ("instantaneous", "batches of 2", "far-sighted")


def can_be_of(curve: str, order: int) -> bool:
    """Whether there are policies for a way: far-sighted ones of single values are of order 1."""
    return curve != "far-sighted" or order == 1


def attack_raw(owners: Owners, order: int, network: NetworkSpec) -> list[OwnersFound]:
    """What attackers would find had nothing been blurred."""
    plan = WAYS["k-RR, epsilon-LDP"](owners, order, 1.0)  # whose symbols are asked alone
    exact = reidentify_raw(owners.known, owners.pieces, plan, order=order)
    by_network = reidentify_raw_by_network(owners.known, owners.pieces, plan, network=network)
    unbounded = (float("inf"),) * 2
    return [
        _found(owners, RAW, order, float("inf"), who, found, unbounded, 1)
        for who, found in ((EXACT, exact), (NETWORK, by_network))
    ]


def attack_way(
    owners: Owners, curve: str, order: int, epsilon: float, runs: int, network: NetworkSpec
) -> list[OwnersFound]:
    """What attackers find in pieces that were released in one way, several times."""
    plan = WAYS[curve](owners, order, epsilon)
    pieces = {
        f"{name}, run {run}": path for run in range(runs) for name, path in owners.pieces.items()
    }
    left = rehearsed(plan, pieces, network.seed + 1_000_003)
    length = len(next(iter(pieces.values())))
    leaked = float(left.sip.mean()) / length, float(left.sip.max())
    found = {EXACT: reidentify(owners.known, left.tracks, plan, order=order)}
    # What the chain makes of outputs stands behind what left: both networks learn from one set.
    learnt = rehearse(owners.known, plan, NetworkInput.CHAIN, network.seed, _REHEARSALS)
    rows = released_rows(left.tracks, plan, NetworkInput.CHAIN)
    outlines = released_outlines(left.tracks)
    for who, hidden in ((NETWORK, len(plan.model.alphabet)), (TAUGHT, 0)):
        width = rows[0].shape[1] - hidden
        seen = replace(learnt, rows=[one[:, :width] for one in learnt.rows])
        shown = [one[:, :width] for one in rows]
        found[who] = seen.judged(left.tracks.streams, shown, outlines, network)
    return [
        _found(owners, curve, order, epsilon, who, one, leaked, runs) for who, one in found.items()
    ]


def _found(
    owners: Owners,
    curve: str,
    order: int,
    epsilon: float,
    attacker: str,
    found: Reidentification,
    leaked: tuple[float, float],
    runs: int,
) -> OwnersFound:
    named = owners.owners * runs
    first, top = _between(found.hits(named), owners), _between(found.hits(named, TOP), owners)
    # Releases of one piece are not independent of each other: a bound is of one of them.
    once = len(owners.owners)
    one = replace(
        found,
        streams=found.streams[:once],
        scores=found.scores[:once],
        outlines=found.outlines[:once],
    )
    alone = one.accuracy(owners.owners)
    return OwnersFound(
        curve=curve,
        order=order,
        epsilon=epsilon,
        attacker=attacker,
        rate=first[0],
        error=first[1],
        top_rate=top[0],
        top_error=top[1],
        chance=alone.chance,
        leakage=leaked[0],
        told=0.0 if alone.leaked is None else alone.leaked.epsilon,
        certified=leaked[1],
        pieces=len(named),
    )


def _between(hits: Floats, owners: Owners) -> tuple[float, float]:
    """Mean, and its standard error between people."""
    people = list(owners.known)
    each = hits.reshape(-1, len(people), len(owners.owners) // len(people)).mean(axis=(0, 2))
    return float(each.mean()), standard_error(each)
