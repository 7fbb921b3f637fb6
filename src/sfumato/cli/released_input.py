"""What `recover`, `learn` and `drift` read: a release, its rules and the channels that it used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from sfumato.models.stream_model import StreamModel
    from sfumato.solver.policy import Policy
    from sfumato.store.ledger_reader import LedgerReader
    from sfumato.stream.plan import Plan
    from sfumato.stream.release_spec import ReleaseSpec
    from sfumato.stream.released_tracks import ReleasedTracks
    from sfumato.tables.readers import Table


class _Asked(Protocol):
    """Options of a command that reads a release."""

    @property
    def released(self) -> list[str] | None: ...
    @property
    def rules(self) -> str | None: ...
    @property
    def ledger(self) -> str | None: ...
    @property
    def policy(self) -> str | None: ...
    @property
    def separator(self) -> str | None: ...


class ReleasedInput(NamedTuple):
    """A release as it was read.

    Attributes:
        spec: Its rules.
        plan: The rule; of a release that learns, with the versions that outputs led to.
        tracks: What left.
    """

    spec: ReleaseSpec
    plan: Plan
    tracks: ReleasedTracks


def read_release(given: _Asked, model: StreamModel, file: str) -> ReleasedInput:
    """A release, from its tables or from its ledger alone.

    Args:
        given: What was asked for.
        model: The model of the release.
        file: Its file.
    """
    from sfumato.cli.audit_rules import release_rules
    from sfumato.cli.rule_choice import policy_of
    from sfumato.core.errors import InvalidParameter
    from sfumato.store.ledger_reader import LedgerReader
    from sfumato.stream.ledger_tracks import ledger_tracks
    from sfumato.stream.release_spec import JOB
    from sfumato.tables.readers import Table

    tables = given.released or []
    if not tables and given.ledger is None:
        rule = "be what `release` wrote, or come with --ledger"
        raise InvalidParameter("RELEASED", None, rule)
    beside = [] if given.ledger is not None and given.rules is None else tables
    spec = release_rules(beside, given.rules, given.ledger)
    policy, _ = policy_of(spec, given.policy, model, file)
    sources = [Table.at(path, separator=given.separator) for path in tables]
    if given.ledger is None or (sources and spec.learn is None):
        plan = plan_used(spec, model, policy, sources, None)
        return ReleasedInput(spec, plan, _tracks(sources, model, plan, spec))
    rules = spec.plan(model, policy) if spec.learn is None else spec.learning(model)
    # What is learnt from a ledger and what is read of it must be the same rows.
    with LedgerReader(given.ledger, rules.fingerprint, JOB) as reader:
        plan = plan_used(spec, model, policy, sources, reader)
        tracks = _tracks(sources, model, plan, spec) if sources else ledger_tracks(reader, plan)
    return ReleasedInput(spec, plan, tracks)


def _tracks(
    sources: Sequence[Table], model: StreamModel, plan: Plan, spec: ReleaseSpec
) -> ReleasedTracks:
    from sfumato.stream.learning_plan import signal_column
    from sfumato.stream.released_tracks import read_tracks

    return read_tracks(sources, model, signal_column(plan) or "signal", spec.time, plan.period)


def plan_used(
    spec: ReleaseSpec,
    model: StreamModel,
    policy: Policy | None,
    released: Sequence[Table],
    ledger: LedgerReader | None,
) -> Plan:
    """The rule of a release; of one that learns, with the versions that its outputs led to."""
    from sfumato.stream.learning_audit import learnt_plan

    if spec.learn is None:
        return spec.plan(model, policy)
    return learnt_plan(spec.learning(model), model, released, ledger)
