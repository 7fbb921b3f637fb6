"""The audit of a release from the home of its service alone: registry, ledger, perhaps its key.

The registry has the rules, the model and the policy, the ledger every answer. So neither a table
that somebody pushed nor a file of rules is needed, and the service may run meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from sfumato.core.checks import choice
from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.core.progress import Progress
from sfumato.core.randomness import keyed, ledger_key
from sfumato.series.series_audit import SeriesAudit, audit_series
from sfumato.series.series_ledger import JOB as SERIES
from sfumato.service.job_rules import read_model
from sfumato.service.release_keys import key_in_label
from sfumato.solver.policy import Policy
from sfumato.store.catalogue import Catalogue, StoredRelease
from sfumato.store.codec import from_bytes
from sfumato.store.folder_home import HomeFiles
from sfumato.store.home import HeldLedger
from sfumato.store.home_check import grown_after_end
from sfumato.store.home_source import reading
from sfumato.store.keys import is_committed
from sfumato.store.ledger_reader import LedgerReader
from sfumato.stream.audit import audit_table
from sfumato.stream.audit_promise import Required
from sfumato.stream.audit_report import AuditReport
from sfumato.stream.model_loss import unit_of
from sfumato.stream.plan import Plan
from sfumato.stream.possible_draws import PossibleDraws
from sfumato.stream.release_document import parse_spec as stream_rules
from sfumato.stream.release_spec import JOB as STREAM
from sfumato.tables.cells import Missing
from sfumato.temporal.temporal_audit import TemporalAudit, audit_streams
from sfumato.temporal.temporal_spec import JOB as TEMPORAL
from sfumato.temporal.temporal_spec import parse_spec as temporal_rules

Report: TypeAlias = AuditReport | SeriesAudit | TemporalAudit


@dataclass(frozen=True, slots=True)
class HomeAudit:
    """What was found of a release.

    Attributes:
        release: Its name.
        job: Who answers its events.
        report: What its ledger shows.
        problems: What shows beside it: another ledger than that of the release.
        closed: Since when it answers nothing new; None if it does.
        purpose: `release`, or `simulation`.
        unit: What a loss is in, as words to put behind it.
    """

    release: str
    job: str
    report: Report
    problems: tuple[str, ...] = ()
    closed: str | None = None
    purpose: str = "release"
    unit: str = ""

    @property
    def passed(self) -> bool:
        """Whether everything fits."""
        return self.report.passed and not self.problems


def audit_home(
    where: str,
    release: str,
    *,
    key: bytes | None = None,
    required: Required = Required(),  # noqa: B008  frozen
    window: int | None = None,
    only: tuple[str, ...] | None = None,
    progress: Progress | None = None,
) -> HomeAudit:
    """Recompute every certificate and the chain of a release from its ledger alone.

    Args:
        where: A folder, a backup of one, or `postgresql://...`; it is only read.
        release: Its name.
        key: The key of its coins, or that of its ledger alone (`sfumato key derive`): every draw
            of job `release` must be what it draws for some value.
        required: What its rules must say.
        window: Also report the worst window of this many steps, for job `release`.
        only: Look at these streams alone, for job `release`.
        progress: Called with the number of rows checked so far.

    Raises:
        InvalidParameter: If there is no such release, or nothing was answered under it.
    """
    with reading(where) as home:
        catalogue = Catalogue().after(home.registry.entries())
        found = catalogue.releases.get(release)
        if found is None:
            there = ", ".join(catalogue.releases) or "none"
            raise InvalidParameter("--release", release, f"be one of this home: {there}")
        if release not in home.names():
            raise InvalidParameter("--release", release, "have a ledger: nothing was answered yet")
        path = home.ledger_path(release)
        problems = _strange(catalogue, found, home)
        wanted = _Wanted(path, key, required, window, only, progress)
        match found.content.job:
            case STREAM.name:
                made = _streams(catalogue, found, wanted)
            case SERIES.name:
                series = audit_series(None, None, path, simulation=required.simulation)
                made = HomeAudit(release, SERIES.name, series)
            case TEMPORAL.name:
                rules = temporal_rules(found.content.rules.encode(), release)
                guessed = required.simulation
                temporal = audit_streams(
                    [], rules, ledger=path, simulation=guessed, progress=progress
                )
                made = HomeAudit(release, TEMPORAL.name, temporal)
            case other:
                rule = "must be of a job that is audited"
                raise CorruptData(f"release {release!r} {rule}; it is of {other!r}")
    return replace(made, problems=tuple(problems), closed=found.closed)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is asked of the audit of streams; see `audit_home`."""

    ledger: Path
    key: bytes | None
    required: Required
    window: int | None
    only: tuple[str, ...] | None
    progress: Progress | None


def _strange(catalogue: Catalogue, release: StoredRelease, home: HomeFiles) -> list[str]:
    """What shows that the ledger is not the one of the release, or grew after its end."""
    with home.ledger(release.name) as reader:
        front, used = reader.front, _keys_of(reader.inputs())
    held = HeldLedger(release.name, front.job, front.plan, front.head)
    problems = grown_after_end(catalogue, held)
    if (front.job, front.rules) != (release.content.job, release.content.rules):
        problems.append("the ledger must be under the job and the rules of its release")
    if not used <= _named_keys(catalogue, release.content.coins):
        problems.append("answers must be drawn with the key of coins that the registry names")
    return problems


def _streams(catalogue: Catalogue, release: StoredRelease, wanted: _Wanted) -> HomeAudit:
    """The audit of a release of streams."""
    content = release.content
    if content.model is None:
        raise CorruptData(f"release {release.name!r} must have a model; the registry names none")
    spec = stream_rules(content.rules.encode(), f"release {release.name!r}")
    model = read_model(catalogue.models[content.model].data)
    policy: Policy | None = None
    if content.policy is not None:
        policy = from_bytes(catalogue.policies[content.policy].data, Policy)
    plan = spec.plan(model, policy)
    also = _draws(catalogue, plan, wanted)
    report = audit_table(
        [],
        model,
        plan,
        ledger=wanted.ledger,
        missing=choice("missing", Missing, spec.missing),
        window=spec.window if wanted.window is None else wanted.window,
        rules=[spec],
        required=wanted.required,
        only=wanted.only,
        also=also,
        progress=wanted.progress,
    )
    if wanted.key is not None and not also:
        told = "answers were drawn with several keys, or with none"
        report.unchecked.append(f"draws with the key: {told}")
    unit = unit_of(spec.loss_for(model), model)
    return HomeAudit(release.name, STREAM.name, report, purpose=spec.purpose, unit=unit)


def _draws(catalogue: Catalogue, plan: Plan, wanted: _Wanted) -> list[PossibleDraws]:
    """The check of coins, if a key was given and all answers were drawn with one."""
    if wanted.key is None:
        return []
    with LedgerReader(wanted.ledger) as reader:
        id_, used = reader.front.id, _keys_of(reader.inputs())
    if len(used) != 1 or None in used:
        return []
    return [PossibleDraws(plan, keyed(_of_ledger(catalogue, wanted.key, id_)))]


def _keys_of(inputs: dict[str, int]) -> set[str | None]:
    """The keys that answers were drawn with; None for coins of nobody's key."""
    return {key_in_label(label) for label, answered in inputs.items() if answered}


def _named_keys(catalogue: Catalogue, coins: str | None) -> set[str | None]:
    """The keys that a release may draw with: the one it was made with, and what took its place."""
    named = {coins}
    for one in catalogue.coins.values():  # oldest first: each comes after the one it replaces
        if one.rotated_from is not None and one.rotated_from in named:
            named.add(one.id)
    return named


def _of_ledger(catalogue: Catalogue, key: bytes, ledger: bytes) -> bytes:
    """The key of a ledger: derived from the one that the registry has a commitment to."""
    committed = any(is_committed(key, one.commitment) for one in catalogue.coins.values())
    return ledger_key(key, ledger) if committed else key
