"""The releases in audited files: each by its rules, with what was found of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sfumato.cli import options
from sfumato.cli.console import progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sfumato.cli.audit_command import AuditOptions
    from sfumato.models.stream_model import StreamModel
    from sfumato.solver.policy import Policy
    from sfumato.store.ledger_reader import LedgerReader
    from sfumato.stream.audit_checks import Check
    from sfumato.stream.audit_promise import Required
    from sfumato.stream.audit_report import AuditReport
    from sfumato.stream.release_spec import ReleaseSpec


class Audited(NamedTuple):
    """What was audited, and what was found.

    Attributes:
        model: The model.
        releases: The places of the files of each release, and their rules.
        reports: What was found of each.
        policies: The file of each one's policy: empty if it was compiled anew, None without one.
    """

    model: StreamModel
    releases: list[tuple[list[int], list[ReleaseSpec]]]
    reports: list[AuditReport]
    policies: list[str | None]


def audited(given: AuditOptions, at_hand: Iterable[str] = ()) -> Audited:
    """The model, the releases with the rules of their files, and what was found of each.

    Args:
        given: What was asked for.
        at_hand: Files in which policies may be that are not beside the model.
    """
    from dataclasses import replace

    from sfumato.cli.audit_rules import common_rules, rules_of_releases
    from sfumato.cli.rule_choice import policy_of
    from sfumato.core.errors import InvalidParameter

    files, ledger = given.released or [], given.ledger
    assert given.model is not None  # a series has none, and its own audit
    model = options.load_model(given.model)
    model = replace(model, stream=given.stream or model.stream)
    releases = rules_of_releases(files, given.rules, ledger)
    if len(releases) > 1 and ledger is not None:
        raise InvalidParameter(
            "--ledger", ledger, "be that of one release; these files are of more"
        )
    required = required_of(given)
    done = Audited(model, releases, [], [])
    for places, specs in releases:
        policy, where = policy_of(common_rules(specs), given.policy, model, given.model, at_hand)
        own = places if files else []
        done.reports.append(_audited(given, model, own, specs, required, policy))
        done.policies.append(None if policy is None else where or "")
    return done


def required_of(given: AuditOptions) -> Required:
    """What the rules must say."""
    from sfumato.core.checks import choice
    from sfumato.stream.audit_promise import Allow, Required

    model = given.require_model
    if model is not None and Path(model).is_file():
        model = options.load_model(model).chain.fingerprint
    allowed = [] if given.allow is None else given.allow.split(",")
    return Required(
        budget=given.require_budget,
        ldp=given.require_ldp,
        model=model,
        simulation=given.simulation,
        allow=frozenset(choice("--allow", Allow, name) for name in allowed),
    )


def _audited(
    given: AuditOptions,
    model: StreamModel,
    places: Sequence[int],
    specs: Sequence[ReleaseSpec],
    required: Required,
    policy: Policy | None,
) -> AuditReport:
    """The audit of one release, in one file or several."""
    from sfumato.cli.audit_rules import common_rules
    from sfumato.store.ledger_reader import LedgerReader
    from sfumato.stream.release_spec import JOB

    spec, ledger = common_rules(specs), given.ledger
    if spec.learn is None or ledger is None:
        return _compared(given, model, places, specs, required, policy, ledger)
    # What is learnt from a ledger and what is held against it must be the same rows.
    with LedgerReader(ledger, spec.learning(model).fingerprint, JOB) as reader:
        return _compared(given, model, places, specs, required, policy, reader)


def _compared(
    given: AuditOptions,
    model: StreamModel,
    places: Sequence[int],
    specs: Sequence[ReleaseSpec],
    required: Required,
    policy: Policy | None,
    ledger: str | LedgerReader | None,
) -> AuditReport:
    """The same with the ledger, or what it was when it was opened."""
    from sfumato.cli.audit_findings import check_commitments, key_of
    from sfumato.cli.audit_rules import common_rules
    from sfumato.cli.audit_truth import truth_check
    from sfumato.cli.released_input import plan_used
    from sfumato.core.checks import choice
    from sfumato.core.fair_coins import LEVEL
    from sfumato.core.randomness import keyed
    from sfumato.store.ledger_reader import LedgerReader
    from sfumato.stream.audit import audit_table
    from sfumato.stream.audit_ledger import Coverage
    from sfumato.stream.learning_audit import check_kept
    from sfumato.stream.learning_plan import LearningPlan
    from sfumato.stream.replayed_coins import ReplayedCoins
    from sfumato.tables.cells import Missing
    from sfumato.tables.readers import Table

    spec, secret = common_rules(specs), key_of(given)
    files, true = given.released or [], given.against or []
    if len(true) == len(files):
        true = [true[place] for place in places]
    sources = [Table.at(files[place], separator=given.separator) for place in places]
    against = [Table.at(file, separator=given.separator) for file in true]
    counts = [source.count() for source in sources]
    total = None if None in counts else sum(count or 0 for count in counts)
    known = ledger if isinstance(ledger, LedgerReader) else None
    plan = plan_used(spec, model, policy, sources, known)
    also: list[Check] = [] if secret is None else [ReplayedCoins(plan, keyed(secret))]
    other = truth_check(given, model, plan)
    if other is not None:
        also.append(other)
    with progress("auditing", total, given.shown.no_progress) as show:
        report = audit_table(
            sources,
            model,
            plan,
            ledger=ledger,
            coverage=choice("coverage", Coverage, given.coverage),
            against=against or None,
            missing=choice("missing", Missing, spec.missing),
            window=spec.window if given.window is None else given.window,
            level=LEVEL if given.level is None else given.level,
            rules=specs,
            required=required,
            columns=given.allow_column or (),
            only=given.only,
            also=also,
            time=given.time,
            progress=show,
        )
    if isinstance(plan, LearningPlan):
        check_kept(report, plan, [table.path for table in sources], known)
        report.versions = tuple(map(str, plan.history.versions()))
    if secret is not None:
        check_commitments(report, secret, given.commitment, specs)
    return report
