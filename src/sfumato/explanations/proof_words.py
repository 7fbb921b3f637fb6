"""What reports, commitments, keys, anchors and homes are for, and what they say of a promise."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sfumato.core.state import SeriesState
from sfumato.explanations.amount_words import NO_PROMISE
from sfumato.explanations.job_words import ledger_words
from sfumato.store.home_anchor import HomeAnchor
from sfumato.store.home_check import check_home
from sfumato.store.home_source import reading

BURSTS = (
    (
        "How a total is best spent under a model: found once, and used by later releases of the "
        "same kind.",
        f"{NO_PROMISE}: a release certifies what it does, however this was found. It may be "
        "deleted, and is found again.",
    ),
    "plan --model MODEL --budget 10 --horizon 100",
)

_PAGE = 4096
"""Bytes of a page in which its title stands."""


def report_words(document: Mapping[str, Any]) -> Iterator[str]:
    """A report of `audit` or `verify`."""
    verdict = "found nothing wrong" if document["passed"] else "FOUND PROBLEMS"
    yield (
        f"A report of `sfumato {document['command']}`, made {document['time']}: it {verdict}. "
        f"Who can check as much: {document['level']}."
    )
    if not document["promise"]:
        yield f"{NO_PROMISE}: the certificate that it is about does."
    else:
        yield "What was promised, with amounts in nats:"
    for promise in document["promise"]:
        yield f"  {promise}"
    for problem in document["problems"]:
        yield f"PROBLEM {problem}"
    for each in document["checked"]:
        yield f"checked: {each}"
    for each in document["not_checked"]:
        yield f"not checked: {each}"


def commitment_words() -> Iterator[str]:
    """A commitment to a key."""
    yield (
        "A hash that binds whoever published it to one key for coins, and tells nothing of the key."
    )
    yield (
        "It promises that the coins were fixed on the day it was published: with the key and the "
        "true values an auditor draws every released value again. Another key fits it with a "
        "probability of less than 1e-70."
    )


def small_words(file: Path) -> tuple[str, Iterator[str], str] | None:
    """Files known by their names: what they are, words about them, and the command to go on with.

    Keys are among them, which are not read. None of any other file.
    """
    ledger, name = file.with_suffix(""), str(file)
    told = shlex.quote(str(ledger))
    match file.suffix:
        case ".key" if ledger.is_file():
            return "key", _ledger_key(ledger), f"ledger check {told}"
        case ".key":
            return "key", _coin_key(), f"key commit {shlex.quote(name)}"
        case ".head" if ledger.is_file():
            return "head of a ledger", _head_words(ledger), f"ledger check {told}"
        case ".html" | ".md" if b"Report of " in file.read_bytes()[:_PAGE]:
            return "page of a report", _page_words(), "verify-report REPORT.json"
    for direction in ("backward", "forward"):
        if name.endswith(f".{direction}.csv"):
            command = f"temporal leakage --{direction} {shlex.quote(name)} --epsilon 0.1 --steps 50"
            return "matrix", _matrix_words(direction), command
    return None


def _head_words(ledger: Path) -> Iterator[str]:
    yield f"The head of the ledger {ledger}: how many rows it had, and a hash of all of them."
    yield f"{NO_PROMISE}: it shows whether rows were taken back from the ledger."


def _page_words() -> Iterator[str]:
    yield "A report of an audit for people to read: open it in a browser or an editor."
    yield f"{NO_PROMISE}: it repeats what was found; a report that ends in .json can be checked."


def _matrix_words(direction: str) -> Iterator[str]:
    other = {"backward": "the one before it", "forward": "the next one"}[direction]
    yield f"How likely each value of a person leads to {other}, row by row; a row adds up to 1."
    yield (
        f"{NO_PROMISE}: it is what an observer is assumed to know of everybody. It was learnt from "
        "a history: share it only if the history may be known."
    )


def _coin_key() -> Iterator[str]:
    yield "A key for coins. SECRET: whoever has it and what was released can tell the true values."
    yield f"{NO_PROMISE}: publish its commitment before there are data, and keep the key."


def _ledger_key(ledger: Path) -> Iterator[str]:
    yield (
        f"The key of the ledger {ledger}. SECRET: whoever has both can test guesses at the true "
        "values."
    )
    yield (
        f"{NO_PROMISE}: it tells a retry from other data. Without it retries are answered, and no "
        "longer compared."
    )


def anchor_words(anchor: HomeAnchor) -> Iterator[str]:
    """How far a home had come."""
    yield (
        f"How far the home of a service had come at {anchor.time}: the head of its registry, and "
        f"of {len(anchor.ledgers):,} ledgers."
    )
    yield (
        f"{NO_PROMISE}: kept elsewhere, it shows later whether anything was taken back, so that a "
        "budget would be spent twice."
    )


def state_words(state: SeriesState) -> Iterator[str]:
    """Where a series goes on."""
    yield f"Where a series of `sfumato realtime` goes on: {state.time:,} of its values have left."
    yield (
        f"{NO_PROMISE}: the certificate beside its output does, for all values together. Two "
        "releases from one state would tell more than either promised: never copy it."
    )


def home_words(folder: Path) -> Iterator[str]:
    """The home of a service: its releases, and what each ledger says."""
    with reading(str(folder)) as home:
        report = check_home(home)
        rules = {}
        for name in report.ledgers:
            with home.ledger(name) as ledger:
                rules[name] = ledger.front.rules
    yield (
        f"The home of a service: {len(report.releases):,} releases, {len(report.ledgers):,} of "
        "them with a ledger. It holds no true value."
    )
    if not report.ledgers:
        yield f"{NO_PROMISE}: nothing has left under any release yet."
    for name, found in report.ledgers.items():
        for line in ledger_words(found, rules[name], name):
            yield f"{name}: {line}"
    for name in report.closed:
        yield f"{name}: closed; it takes no more events."
    for problem in report.problems:
        yield f"PROBLEM {problem}"
    yield "Everything in it fits." if report.passed else "It is NOT whole."
