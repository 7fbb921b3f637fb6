"""What `audit --truth`, `--radius` and `--plausible` ask for, and what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato.cli import options
from sfumato.cli.console import cited, print_line, table
from sfumato.core.errors import InvalidParameter
from sfumato.core.printed import shown_down, shown_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sfumato.cli.audit_command import AuditOptions
    from sfumato.models.stream_model import StreamModel
    from sfumato.stream.audit_report import AuditReport
    from sfumato.stream.leakage_by_start import LeakageByStart
    from sfumato.stream.other_truth import OtherTruth
    from sfumato.stream.plan import Plan
    from sfumato.stream.release_spec import ReleaseSpec
    from sfumato.stream.truth_report import TruthAudit, TruthReport

_SHOWN, _SHOWN_ROWS = 10, 4
_COLUMNS = ("steps", "sip", "truth", "over_set", "transfer", "ldp", "worst_step", "worst_at")


def check_truth_options(given: AuditOptions) -> None:
    """Refuse what would be ignored, or written over something."""
    from sfumato.tables.readers import same_file

    near = (given.radius, given.plausible)
    asked = (given.truth, *near) != (None,) * 3
    if None not in near:
        raise InvalidParameter("--plausible", given.plausible, "not come with --radius")
    if given.out is not None and not asked:
        raise InvalidParameter("--output", given.out, "come with --truth, --radius or --plausible")
    if given.time is not None and given.truth is None:
        rule = "come with --truth, and a model that changes with time"
        raise InvalidParameter("--time", given.time, rule)
    inputs = [*(given.released or []), *(given.against or []), given.model, given.truth]
    inputs.append(given.plausible)
    inputs += [given.ledger, given.rules, given.policy, given.key_file]
    if given.out is not None and any(
        file is not None and same_file(given.out, file) for file in inputs
    ):
        raise InvalidParameter("--output", given.out, "be a file of its own, not an input")


def truth_check(
    given: AuditOptions, model: StreamModel, plan: Plan
) -> OtherTruth | LeakageByStart | None:
    """The check of other chains that was asked for, or that a release for many chains has.

    A release whose budget is kept for a set, be it learnt or given, has three numbers, asked or
    not: under the estimate, or the model; over the set; whatever is true.
    """
    from sfumato.models.markov import MarkovChain
    from sfumato.models.plausible import PlausibleChains
    from sfumato.store.files import load_plausible
    from sfumato.stream.learning_audit import three_numbers
    from sfumato.stream.learning_plan import LearningPlan
    from sfumato.stream.other_truth import OtherTruth

    if (given.truth, given.radius, given.plausible) == (None,) * 3:
        if isinstance(plan, LearningPlan):
            return three_numbers(plan)
        return None if plan.robust is None else OtherTruth(plan, model.single_values, plan.robust)
    other = model if given.truth is None else options.load_model(given.truth)
    truth = other.live_chain
    chains = None
    if given.radius is not None:
        if not isinstance(truth, MarkovChain):
            rule = "come with a plain chain of order 1 (--truth): sets around hours, clusters or "
            rule += "pairs are not built"
            raise InvalidParameter("--radius", given.radius, rule)
        chains = PlausibleChains.from_radius(truth, given.radius)
    elif given.plausible is not None:
        chains = load_plausible(given.plausible)
    return OtherTruth(plan, truth, chains, seeks=True)


def write_truth(path: str, reports: Sequence[AuditReport], stream: str) -> None:
    """What each stream leaked, as a table; of several releases one after another."""
    from sfumato.tables.readers import Table
    from sfumato.tables.writers import Output

    kinds: dict[str, Any] = dict.fromkeys(_COLUMNS, float) | {"steps": int, "worst_at": int}
    told = [
        (name, entry)
        for report in reports
        if report.truth is not None
        for name, entry in report.truth.streams.items()
    ]
    rows = [[name, *(getattr(entry, column) for column in _COLUMNS)] for name, entry in told]
    with Output(Table.at(path), {stream: str, **kinds}) as sink:
        sink.write(rows)


def print_robust(spec: ReleaseSpec) -> None:
    """Under which chains the numbers of a release for many chains hold."""
    print_line(
        f"SIP, also of windows and of the worst step, is that under the worst of "
        f"{spec.robust_words}; what is said of one value, and of losses, is under the model alone"
    )


def print_starts(report: AuditReport) -> None:
    """What a release that learns leaked, where it started anew: in all, and start by start."""
    assert report.truth is not None  # it is the sum of them
    whole, told = report.truth, report.truth.streams
    worst = sorted(told.items(), key=lambda item: -(item[1].over_set or 0.0))[:_SHOWN]
    table(
        f"what streams leaked, added up over {len(report.starts)} starts of learning",
        ["stream", "steps", "stated", "under the estimates", "over the sets", "LDP", "worst step"],
        [
            [name, f"{entry.steps:,}", *_three(entry, stated=True), shown_up(entry.worst_step, 5)]
            for name, entry in worst
        ],
    )
    table(
        "start by start, the stream that leaked most under any chain of its set",
        ["start", "values", "stream", "under the estimate", "over the set", "LDP"],
        [
            [
                f"{place:,}",
                f"{sum(entry.steps for entry in part.streams.values()):,}",
                name,
                *_three(part.streams[name], stated=False),
            ]
            for place, part in enumerate(report.starts, start=1)
            if (name := part.worst) is not None
        ],
    )
    print_line(
        "under the estimates: what each start told an observer who knows its last estimate, and of "
        "streams that went on from before no more than its long run; the sum is the leakage under "
        "no single chain"
    )
    print_line(
        "over the sets: under the worst chain of each start's last set, at every step anew; it "
        f"holds with confidence {whole.confidence:g} for whoever knows how streams truly move, but "
        "not between a change and the version that says so: there the LDP alone does"
    )


def _three(entry: TruthAudit, *, stated: bool) -> list[str]:
    """What was stated, if that is asked for, and the three numbers."""
    numbers = (entry.truth, entry.over_set or 0.0, entry.ldp)
    return [shown_up(number, 5) for number in ((entry.sip, *numbers) if stated else numbers)]


def print_truth(report: TruthReport, truth: str) -> None:
    """What was leaked under another chain, for people."""
    worst = sorted(report.streams.items(), key=lambda item: -(item[1].over_set or item[1].truth))[
        :_SHOWN
    ]
    near = [] if report.widest is None else ["near it"]
    table(
        f"SIP of the same outputs against an adversary who knows {truth}",
        ["stream", "steps", "stated", "under it", *near, "transfer bound", "LDP", "worst step"],
        [
            [
                name,
                f"{entry.steps:,}",
                shown_up(entry.sip, 5),
                shown_up(entry.truth, 5),
                *([shown_up(entry.over_set or 0.0, 5)] if near else []),
                *(shown_up(value, 5) for value in (entry.transfer, entry.ldp)),
                f"{shown_up(entry.worst_step, 5)} at {entry.worst_at:,}",
            ]
            for name, entry in worst
        ],
    )
    if report.phases is not None:
        print_line(
            f"he knows {report.phases}; times are taken for public: whether they depend on the "
            "values beyond this model is not looked at"
        )
    print_line(
        "the transfer bound adds to what each step states the gap between both beliefs"
        f"{cited('LIP Lemma 3')}, at most once more what is stated: the probability of an output "
        "under two beliefs differs by no larger factor than the beliefs do"
    )
    if report.widest is None:
        return
    telling = sum(entry.telling for entry in report.streams.values())
    lost = sum(entry.unbounded for entry in report.streams.values())
    sure = report.confidence or 0.0
    held = " around it" if sure == 1 else f"; the true one is among them with confidence {sure:g}"
    print_line(
        f"near it: every chain, also one that changes from step to step, whose probabilities lie "
        f"in intervals at most {shown_up(report.widest, 4)} wide{held}; at {lost:,} of "
        f"{telling:,} steps that told something the set promises no less than the model-free "
        "leakage"
    )
    if report.bad is None:
        return
    bad = report.bad
    moves = "; ".join(" ".join(f"{entry:.4g}" for entry in row) for row in bad.transition)
    shown = f", which moves by {moves}" if len(bad.transition) <= _SHOWN_ROWS else ""
    print_line(
        f"a search among {bad.tried:,} of these chains found one{shown}: stream {bad.stream!r} "
        f"leaked at least {shown_down(bad.at_least, 5)} to who knows it, and at most "
        f"{shown_up(report.streams[bad.stream].over_set or 0.0, 5)} to who knows any of them"
    )
