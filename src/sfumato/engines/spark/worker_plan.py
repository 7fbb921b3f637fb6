"""The plan of a release on its way from a driver to the workers of an engine.

What is public of it (model, policy, rules) is broadcast once. The key is not: Spark writes every
broadcast of Python to local disks as a plain file. It travels within the function that the workers
run, which is held in memory, and of which plans, pages and logs of Spark know the name alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import msgspec

from sfumato.core.errors import InvalidParameter
from sfumato.core.randomness import Randomness, check_secret, keyed, of_ledger
from sfumato.models.stream_model import StreamModel
from sfumato.solver.policy import Policy
from sfumato.store.codec import from_bytes, to_bytes
from sfumato.stream.plan import Plan
from sfumato.stream.release_document import document, parse_spec
from sfumato.stream.release_spec import ReleaseSpec

_PLANS = 8
"""Plans that a worker process keeps: jobs of several releases may share it."""


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """All that is public of a release, as bytes; made and checked on the driver.

    Attributes:
        model: The model, and how columns are read for it.
        policy: The compiled policy, if there is one.
        rules: The rules, as they lie beside a released table.
        plan: Fingerprint of the plan that they make: what workers make must have it too.

    Examples:
        >>> import sfumato as sf
        >>> from sfumato.models.encoding import Symbols
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> model = StreamModel(chain, Symbols(chain.alphabet))
        >>> sent = PlanDocument.of(ReleaseSpec(epsilon=0.5), model)
        >>> plan_of(sent).plan.budget
        PerStep(sip=SIP(epsilon=0.5, delta=0.0), ldp=None)
    """

    model: bytes
    policy: bytes | None
    rules: bytes
    plan: str

    @classmethod
    def of(
        cls, spec: ReleaseSpec, model: StreamModel, policy: Policy | None = None
    ) -> PlanDocument:
        """The document of a release value by value.

        Raises:
            InvalidParameter: If rules, model and policy do not go together, ask for batches, or
                the model changes with time.
        """
        model = model.steady
        named = None if policy is None else policy.fingerprint
        told = document(msgspec.structs.replace(spec, policy=named), model)
        made = parse_spec(told, "the rules").instant(model, policy)
        kept = None if policy is None else to_bytes(policy)
        return cls(to_bytes(model), kept, told, made.fingerprint)


@dataclass(frozen=True, slots=True, eq=False)
class OpenedPlan:
    """A release as a worker runs it.

    Attributes:
        model: The model, and how columns are read for it.
        plan: The rule.
        spec: The rules that it was made from.
    """

    model: StreamModel
    plan: Plan
    spec: ReleaseSpec


@lru_cache(maxsize=_PLANS)
def plan_of(document: PlanDocument) -> OpenedPlan:
    """The plan of a document, made once in a process.

    Raises:
        InvalidParameter: If it is not the plan of the driver, as with another version of Sfumato.
    """
    model = from_bytes(document.model, StreamModel)
    policy = None if document.policy is None else from_bytes(document.policy, Policy)
    spec = parse_spec(document.rules, "the rules")
    plan = spec.instant(model, policy)
    if plan.fingerprint != document.plan:
        rule = "be that of the driver: install the same version of Sfumato on all workers"
        raise InvalidParameter("the plan of a worker", "another", rule)
    return OpenedPlan(model, plan, spec)


class Shared(Protocol):
    """What a driver has sent to all workers once, as `Broadcast` of pyspark holds it."""

    @property
    def value(self) -> PlanDocument:
        """What was sent."""


class WorkerPlan:
    """A plan and its key, as a function that runs in workers holds them.

    Args:
        shared: The document, broadcast.
        key: Secret of the coins, as `keyed` takes it.

    Examples:
        >>> import sfumato as sf
        >>> from sfumato.models.encoding import Symbols
        >>> from types import SimpleNamespace
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> model = StreamModel(chain, Symbols(chain.alphabet))
        >>> sent = SimpleNamespace(value=PlanDocument.of(ReleaseSpec(epsilon=0.5), model))
        >>> WorkerPlan(sent, b"sixteen bytes or more")
        WorkerPlan(...)
    """

    __slots__ = ("_key", "_shared")

    def __init__(self, shared: Shared, key: bytes) -> None:
        if not isinstance(key, bytes):
            raise InvalidParameter("key", type(key).__name__, "be bytes")
        check_secret(key, "key")
        self._shared, self._key = shared, key

    def __repr__(self) -> str:
        return "WorkerPlan(...)"  # whoever prints it does not print the key

    def opened(self) -> OpenedPlan:
        """The plan; the same one each time in one process."""
        return plan_of(self._shared.value)

    def coins(self) -> Randomness:
        """The coins of the key."""
        return keyed(self._key)

    def coins_of(self, query: str) -> Randomness:
        """The coins of the key for one streaming query, as a ledger has coins of its own."""
        return of_ledger(self.coins(), query.encode())
