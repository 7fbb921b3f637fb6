"""What may leave of an audit: a report that anyone can find again, and nothing of true values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.cli.audit_command import AuditOptions
    from sfumato.cli.audit_releases import Audited
    from sfumato.cli.report_comparison import Held
    from sfumato.store.reports import Findings, ReadFile
    from sfumato.stream.audit_report import AuditReport
    from sfumato.stream.release_spec import ReleaseSpec

_PRIVATE = ("loss", "gain")
"""What a stream has only beside its true values."""
_TOTALS = ("unverifiable", "withheld", "repeated", "only_in_ledger", "ledger_head")
_ASKED = (
    *("stream", "coverage", "level", "only", "require_budget", "require_ldp", "require_model"),
    *("allow", "allow_column", "window", "simulation", "separator", "radius", "time"),
)
_OTHERS = {"truth": "under_truth", "over_set": "over_set", "transfer": "transfer_bound"}
"""What a stream leaked under another chain, or under all of a set, and its name in a report."""
_LEARNT = "three_numbers"
"""Whether a report of a release for many chains holds them, unasked; older ones do not."""
_LEVELS = {
    0: "anyone: output, model and plan alone",
    1: "holder of the true values: outputs fit their channels",
    2: "holder of the key: draws were repeated, as many as stand under checked",
}
_NEVER = (
    "that the rows are those of the people, and that no second release was kept back",
    "that the model is what an adversary knows",
)


def key_of(given: AuditOptions) -> bytes | None:
    """The key of the coins, if it was given with what it needs."""
    from sfumato.store.keys import read_key

    if given.key_file is None:
        if given.commitment is not None:
            raise InvalidParameter("--commitment", given.commitment, "come with --key-file")
        return None
    if not given.against:
        raise InvalidParameter("--key-file", given.key_file, "come with --against")
    return read_key(given.key_file, shared=given.shared_key)


def check_commitments(
    report: AuditReport, secret: bytes, commitment: str | None, specs: Sequence[ReleaseSpec]
) -> None:
    """The key is the one that was committed to, and the one that the rules name."""
    from sfumato.store.keys import commitment_of, is_committed
    from sfumato.stream.audit_report import Kind

    if commitment is not None and not is_committed(secret, commitment):
        report.note_all("the key must be the one that was committed to", Kind.COINS)
    for spec in specs:
        named = None if spec.sealed is None else spec.sealed.commitment
        if named is not None and named != commitment_of(secret):
            report.note_all("the key must be the one that the plan names", Kind.COINS)


def read_files(given: AuditOptions, done: Audited) -> list[ReadFile]:
    """All files that an audit read."""
    from sfumato.store.reports import ReadFile

    assert given.model is not None  # a report is of a release
    files = [ReadFile("output", path) for path in given.released or []]
    plans = [given.rules] if given.rules else [f"{path}.plan.json" for path in given.released or []]
    files += [ReadFile("plan", path) for path in plans if Path(path).is_file()]
    files.append(ReadFile("model", given.model))
    files += [ReadFile("policy", path) for path in dict.fromkeys(done.policies) if path]
    for role in ("truth", "plausible"):
        if getattr(given, role) is not None:
            files.append(ReadFile(role, getattr(given, role)))
    if given.ledger is not None:
        files.append(ReadFile("ledger", given.ledger))
    files += [ReadFile("true values", path, secret=True) for path in given.against or []]
    if given.key_file is not None:
        files.append(ReadFile("key", given.key_file, secret=True))
    return files


def audit_findings(given: AuditOptions, done: Audited, *, learnt: bool = True) -> Findings:
    """What was found, without what only the true values tell.

    Args:
        given: What was asked for.
        done: What was found.
        learnt: Whether to tell, unasked, what a release for many chains leaked under its model, or
            last estimate, and over its set.
    """
    from dataclasses import asdict

    from sfumato.store.reports import Findings
    from sfumato.stream.audit_total import told_together

    reports = done.reports
    level = 0 if not given.against else 1 if given.key_file is None else 2
    streams: dict[str, Any] = {}
    asked_other = any((given.truth, given.radius is not None, given.plausible))
    for number, report in enumerate(reports, start=1):
        for name, entry in report.streams.items():
            shown = name if len(reports) == 1 else f"{name} (release {number})"
            told = {key: value for key, value in asdict(entry).items() if key not in _PRIVATE}
            streams[shown] = told | (_under_others(report, name) if asked_other or learnt else {})
    together = told_together(reports).values() if len(reports) > 1 else ()
    most = together or [entry for report in reports for entry in report.streams.values()]
    totals: dict[str, Any] = {
        "rows": sum(report.rows for report in reports),
        "streams": len({name for report in reports for name in report.streams}),
        "largest_sip": max((entry.sip for entry in most), default=0.0),
        "largest_ldp": max((entry.ldp for entry in most), default=0.0),
        "problems": sum(report.problem_count for report in reports),
    }
    if asked_other or learnt:
        totals |= _largest_others(reports)
    if len(reports) == 1:
        totals |= {name: getattr(reports[0], name) for name in _TOTALS}
    checked = [f"{totals['rows']:,} rows: leakage, charges, budget and form, computed again"]
    for report in reports:
        if report.coins is not None:
            how = "ALARM" if report.coins.alarm else "no alarm"
            checked.append(
                f"{report.coins.tested:,} outputs beside true values: {how} at {report.coins.level}"
            )
    checked += [line for report in reports if asked_other or learnt for line in _others(report)]
    replays = [report.replayed for report in reports if report.replayed is not None]
    checked += [f"draws: {replayed} with the key" for replayed in replays]
    not_checked = _named(given, [line for report in reports for line in report.unchecked])
    if level < 2:
        not_checked.insert(0, _unfair(level))
    else:
        not_checked.insert(0, "that the key was drawn at random, unless its commitment came first")
    return Findings(
        command="audit",
        asked=_asked(given, unasked=learnt and not asked_other and _any_other(reports)),
        level=_LEVELS[level],
        passed=all(report.passed for report in reports),
        promise=[line for r in reports if r.promise is not None for line in r.promise.lines()],
        totals=totals,
        streams=streams,
        problems=_named(given, _problems(reports, secret=level > 0)),
        checked=checked,
        not_checked=[*not_checked, *_NEVER],
    )


def _asked(given: AuditOptions, *, unasked: bool) -> dict[str, Any]:
    """The options of a report; a radius of 0 is one."""
    told = {name: value for name in _ASKED if (value := getattr(given, name))}
    told |= {} if given.radius is None else {"radius": given.radius}
    return told | ({_LEARNT: True} if unasked else {})


def _any_other(reports: Sequence[AuditReport]) -> bool:
    return any(report.truth is not None for report in reports)


def _under_others(report: AuditReport, stream: str) -> dict[str, float | None]:
    """What a stream leaked under another chain, and over a set; nothing if nobody looked."""
    if report.truth is None:
        return {}
    entry = report.truth.streams.get(stream)
    told = {name: None if entry is None else getattr(entry, key) for key, name in _OTHERS.items()}
    return told


def _largest_others(reports: Sequence[AuditReport]) -> dict[str, float]:
    """The largest of these figures over streams; several releases are put together as their SIP."""
    from sfumato.stream.audit_total import total

    parts: dict[str, dict[str, list[tuple[float, float]]]] = {name: {} for name in _OTHERS.values()}
    for report in reports:
        for stream, entry in [] if report.truth is None else report.truth.streams.items():
            for figure, amount in _under_others(report, stream).items():
                if amount is not None:
                    parts[figure].setdefault(stream, []).append((amount, entry.ldp))
    return {
        f"largest_{name}": max(total(each)[0] for each in streams.values())
        for name, streams in parts.items()
        if streams
    }


def _others(report: AuditReport) -> list[str]:
    """Under which other chains leakage was computed."""
    if report.truth is None:
        return []
    truth = report.truth
    hours = "" if truth.phases is None else f", with {truth.phases}"
    lines = [f"what the outputs told an adversary who knows the model {truth.model}{hours}"]
    if truth.widest is not None:
        sure = "" if truth.confidence == 1 else f"; confidence {truth.confidence:g}"
        width = f"intervals at most {truth.widest:g} wide"
        lines.append(f"what they told under the worst chain of a set ({width}{sure})")
    return lines


def _unfair(level: int) -> str:
    if level == 0:
        return "that the coins were fair: it needs the true values (--against), or the key"
    return "that each coin was fair: cheating in few rows needs the key to be found"


def _named(given: AuditOptions, lines: Sequence[str]) -> list[str]:
    """Lines about one of several files, by its name: where it lay is nobody's business."""
    places = {f"{path}, ": f"{Path(path).name}, " for path in given.released or []}
    return [
        next((name + line[len(at) :] for at, name in places.items() if line.startswith(at)), line)
        for line in lines
    ]


def _problems(reports: Sequence[AuditReport], *, secret: bool) -> list[str]:
    """Problems by their rows; beside true values their kinds alone, for a row would tell of one."""
    if not secret:
        return [problem for report in reports for problem in report.problems]
    counts: dict[str, int] = {}
    for report in reports:
        for kind, count in report.problem_kinds.items():
            counts[kind] = counts.get(kind, 0) + count
    return [f"{count:,} of kind {kind}: told to the holder" for kind, count in counts.items()]


def audit_again(asked: dict[str, Any], paths: dict[str, list[str]], held: Held) -> Findings:
    """The findings of `audit` once more, from files at hand; of a holder's, what is public."""
    from dataclasses import replace

    from sfumato.cli.audit_command import AuditOptions
    from sfumato.cli.audit_releases import audited
    from sfumato.cli.options import Shown

    plans = paths.get("plan", [])
    released = paths.get("output", [])
    beside = [f"{path}.plan.json" for path in released]
    defaults: dict[str, Any] = dict.fromkeys(_ASKED) | {"coverage": "inputs", "simulation": False}
    learnt = asked.get(_LEARNT) is True
    asked = defaults | {name: value for name, value in asked.items() if name in _ASKED}
    if held.is_partial:  # whether rows had to be withheld is for the holder to find
        asked["allow"] = ",".join(filter(None, (asked["allow"], "withheld")))
    given = AuditOptions(
        **asked,
        model=paths["model"][0],
        released=released,
        rules=plans[0] if plans and plans != beside else None,
        policy=None,
        ledger=next(iter(paths.get("ledger", [])), None),
        against=held.against or None,
        key_file=held.key_file,
        shared_key=held.shared_key,
        commitment=held.commitment,
        truth=next(iter(paths.get("truth", [])), None),
        plausible=next(iter(paths.get("plausible", [])), None),
        out=None,
        report=None,
        shown=Shown(as_json=True, quiet=True),
    )
    done = audited(given, paths.get("policy", []))
    found = audit_findings(given, done, learnt=learnt)
    if not held.is_partial:
        return found
    unfair = [_unfair(1)] if held.level == 1 else []
    return replace(
        found,
        level=_LEVELS[held.level],
        problems=_problems(done.reports, secret=True),
        not_checked=[*unfair, *found.not_checked[1:]],  # the first is of the level
    )
