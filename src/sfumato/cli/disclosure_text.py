"""What `sfumato disclosure` and `sfumato publish` say to people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.cli.console import papers_wanted, print_legend, print_line, say, table
from sfumato.core.printed import shown_down, shown_up
from sfumato.explanations.note_words import in_options

if TYPE_CHECKING:
    from sfumato.record.disclosure import DisclosureReport
    from sfumato.record.publish import Published
    from sfumato.record.remarks import Silence

PAPER = "the paper's bound"
"""How the remark about a bound that is none begins: `disclosure` has it in its documents always."""


def tell(report: DisclosureReport, *, quiet: bool) -> None:
    """What attackers may learn, as a table and some sentences."""
    near = ", ".join(
        f"{name} within {width:g} (noise {sigma:.4g})"
        for name, width, sigma in zip(report.columns, report.accuracy, report.sigma, strict=True)
    )
    lines = [
        ("blind guess", report.delta_before),
        ("published values alone", report.delta_without_correlation),
        ("and each column", report.delta_if_independent),
    ]
    if report.coupling != "none":
        lines.append((f"and {coupling_words(report.coupling)}", report.delta_model))
        lines.append(("and other such records", report.delta_held_out))
        lines.append(("delta", report.delta))
    if report.groups > 1:
        lines.append(("delta, mean of all groups", report.delta_mean))
        lines.append(("blind guess, mean of all groups", report.delta_before_mean))
    where = f"; worst of {report.groups:,} groups" if report.groups > 1 else ""
    table(
        f"how likely an attacker finds {near} of a person, all at once; {report.noise} noise"
        f"{where}",
        ["what he knows", "probability"],
        [[who, shown_up(share, 5)] for who, share in lines if share is not None],
    )
    if quiet:
        return
    there = {who.partition(" (")[0] for who, share in lines if share is not None}
    print_legend({who: told for who, told in _WHO.items() if who in there})
    print_line(
        f"delta was found by {report.way}: it lies between {shown_down(report.delta_low, 5)} and "
        f"{shown_up(report.delta_high, 5)}"
    )
    print_line(_told_more(report))
    if papers_wanted():
        _tell_paper(report)
    if report.information_sampled is not None:
        told = shown_up(report.information_sampled, 4)
        print_line(f"mutual information of two columns, at most: {told} nats")
    print_line(_compared(report.silence))
    _say_notes(report.remarks, report.dropped)


_WHO = {
    "blind guess": "nothing is published: he names the commonest values, and is right that often",
    "published values alone": "he takes what was published for the truth, and has never seen such "
    "people: a blind guess may beat him",
    "and each column": "he sees what was published, and knows how common values are in each column",
    "and how columns go together": "he sees what was published, and knows which values of the "
    "columns go together",
    "and other such records": "he sees what was published, and has other rows of such a table "
    "(99 % confidence)",
    "delta": "the most of the two rows above: what the noise must keep low",
}


def coupling_words(coupling: str) -> str:
    """What an attacker knows of columns together, as a row of a table says it.

    Examples:
        >>> coupling_words("gaussian"), coupling_words("b = 2*a")
        ('how columns go together (gaussian)', 'how columns go together (b = 2*a)')
    """
    return f"how columns go together ({coupling})"


def _told_more(report: DisclosureReport) -> str:
    """What publishing adds to what anybody can guess, and what to do about it."""
    most, blind = report.delta, report.delta_before
    who = (
        "the best attacker" if report.coupling != "none" else "an attacker who knows no such table"
    )
    found, guessed = shown_up(100 * most, 3), shown_up(100 * blind, 3)
    adds = f"publishing adds {shown_up(100 * (most - blind), 3)}" if most > blind else ""
    return (
        f"so {who} finds {found} of 100 people, a blind guess {guessed}: "
        f"{adds or 'a blind guess does as well'}. Larger --sigma lowers it; --target-delta finds "
        "the least noise"
    )


def _tell_paper(report: DisclosureReport) -> None:
    """What the paper makes of it, whether or not it holds."""
    print_line(
        f"gamma (MDDP Definition 6): {shown_up(report.gamma, 5)}, with domains alone "
        f"{shown_up(report.gamma_without_correlation, 5)}"
    )
    if report.bound_of != "nothing":
        kept = "holds" if report.bound_holds else "DOES NOT HOLD"
        print_line(f"the paper's bound on {report.bound_of}: {shown_up(report.bound, 5)} ({kept})")


def _compared(silence: Silence) -> str:
    """How much better than a constant each column is."""
    each = zip(silence.columns, silence.error, silence.constant, silence.guessed, strict=True)
    return "how far off (root mean square): " + "; ".join(
        f"{name} as published {shown_up(error, 4)}, a constant {constant:.4g}, a receiver's best "
        f"guess from all columns {guess:.4g}"
        for name, error, constant, guess in each
    )


def _say_notes(remarks: tuple[str, ...], dropped: int) -> None:
    if dropped:
        say(f"note: {dropped:,} rows with a missing value were left out (told to you alone)")
    for remark in remarks:
        if papers_wanted() or not remark.startswith(PAPER):
            say(f"note: {in_options(remark)}")


def tell_published(done: Published, *, to_error: bool) -> None:
    """What published columns promise, and what they are worth."""
    certificate = done.certificate
    each = zip(certificate.columns, certificate.sigma, certificate.accuracy, strict=True)
    groups = f" in {certificate.groups:,} groups" if certificate.groups > 1 else ""
    lines = [
        f"{certificate.rows:,} rows{groups}; {certificate.noise} noise: "
        + ", ".join(f"{name} {sigma:.4g} (within {near:g})" for name, sigma, near in each),
        "a blind guess, before anything is published, finds all columns with probability "
        f"{shown_up(certificate.delta_before, 4)}",
        "an attacker who sees the published values alone: at most "
        f"{shown_up(certificate.guarantee_without_correlation.delta, 4)}",
    ]
    if certificate.coupling != "none":
        lines.append(
            f"the best one who knows {coupling_words(certificate.coupling)}: at most "
            f"{shown_up(certificate.delta_model, 4)}"
        )
        if certificate.delta_held_out is not None:
            lines.append(
                "one who knows other such records: at most "
                f"{shown_up(certificate.delta_held_out, 4)} (99 % confidence)"
            )
        lines.append(
            f"delta, the most of these: {shown_up(certificate.guarantee.delta, 4)} "
            f"({certificate.way})"
        )
    if certificate.groups > 1:
        lines.append(
            f"these are of the worst group; on average over all {certificate.groups:,}: guess "
            f"{shown_up(certificate.delta_before_mean, 4)}, best attacker at most "
            f"{shown_up(certificate.delta_mean, 4)}"
        )
    for line in (*lines, _compared(done.silence)):
        say(line) if to_error else print_line(line)
    _say_notes((*certificate.remarks, *done.silence.remarks), done.dropped)
