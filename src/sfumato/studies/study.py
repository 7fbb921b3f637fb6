"""What a study is: what it is about, what it reads, and what it finds.

A module that computes a study has one function, `prepare(setting)`, which reads what there is to
read and says how many steps the work takes. It is imported when its study is run, not before: what
`study list` and the help say stands in the catalogues.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from sfumato.core.errors import InvalidParameter

Drawing = Callable[[Path], None]
"""Draws a picture into a file; the ending of its name says which kind."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of real data, and where it comes from.

    Attributes:
        name: Of the file in the folder.
        source: Who published it, and under which licence, as far as is known.
    """

    name: str
    source: str


@dataclass(frozen=True, slots=True)
class Setting:
    """How a study is run.

    Attributes:
        folder: Holds the real data; or the one file of a study that reads one. None: there are no
            real data, and what is read is simulated.
        quick: Fewer points, streams and repetitions: a look, not a result.
        seed: Of everything that is drawn.

    Examples:
        >>> wanted = DataFile("counts.csv.gz", "a city's open data")
        >>> Setting().path(wanted) is None
        True
        >>> Setting(getfixture("tmp_path")).path(wanted)
        Traceback (most recent call last):
        ...
        sfumato.core.errors.InvalidParameter: --data must hold counts.csv.gz: a city's open data;...
    """

    folder: Path | None = None
    quick: bool = False
    seed: int = 1

    def path(self, wanted: DataFile) -> Path | None:
        """Where a file is; None without real data.

        Raises:
            InvalidParameter: If the folder lacks it.
        """
        if self.folder is None or self.folder.is_file():
            return self.folder
        path = self.folder / wanted.name
        if not path.is_file():
            rule = f"hold {wanted.name}: {wanted.source}"
            raise InvalidParameter("--data", str(self.folder), rule)
        return path


class Verdict(StrEnum):
    """How what a paper claims compares with what is measured."""

    AGREES = "agrees"
    DIFFERS = "differs"
    PARTLY = "agrees in part"
    UNDECIDED = "not decided"


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of a paper, and what became of it.

    Attributes:
        figure: Where it stands, such as `"RTR 4"` or `"SIP Table I"`.
        claimed: What the paper says, in our words.
        seen: What the numbers of this run say.
        verdict: A function of those numbers, never typed in.
        reason: Why it differs, such as `"erratum N27"`.
    """

    figure: str
    claimed: str
    seen: str
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a study found.

    Attributes:
        title: Above the table.
        columns: Heads of the table.
        rows: The table that is printed.
        records: All numbers, one flat record each, for the CSV and JSON files.
        facts: Sentences that say what follows from them.
        pictures: Name of a picture, without an ending, and how it is drawn.
        claims: Of the paper, with verdicts.
        stand_ins: Which data were simulated, because no real ones were given.
        captions: What a picture shows, by its name; the name itself where nothing is said.
    """

    title: str
    columns: list[str]
    rows: list[list[str]]
    records: list[dict[str, Any]]
    facts: list[str]
    pictures: dict[str, Drawing]
    claims: list[Claim] = field(default_factory=list)
    stand_ins: list[str] = field(default_factory=list)
    captions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Work:
    """A study that is ready to run.

    Attributes:
        steps: Of its progress bar.
        run: Takes what is told the number of steps done.
    """

    steps: int
    run: Callable[[Callable[[int], None]], Findings]


@dataclass(frozen=True, slots=True)
class Study:
    """An entry of a catalogue.

    Attributes:
        name: By which it is asked for.
        about: What it computes, in one or two sentences.
        module: Whose `prepare(setting)` returns the work.
        figures: Of the papers that it answers, such as `"SIP 5"`.
        data: Files that it reads.
        minutes: How long it takes on one core, as a person would say it.
    """

    name: str
    about: str
    module: str
    figures: tuple[str, ...] = ()
    data: tuple[DataFile, ...] = ()
    minutes: str = "1"

    def prepare(self, setting: Setting) -> Work:
        """The work, with what it reads.

        Raises:
            InvalidParameter: If the folder lacks a file.
        """
        prepare = importlib.import_module(self.module).prepare
        return cast(Work, prepare(setting))


def verdict(agrees: bool) -> Verdict:
    """Of a claim that is true or not.

    Examples:
        >>> verdict(1 < 2)
        <Verdict.AGREES: 'agrees'>
    """
    return Verdict.AGREES if agrees else Verdict.DIFFERS


def verdict_of(parts: Iterable[bool]) -> Verdict:
    """Of a claim with parts: all true, none, or some; without parts nothing is decided.

    Examples:
        >>> verdict_of([True, False])
        <Verdict.PARTLY: 'agrees in part'>
        >>> verdict_of([])
        <Verdict.UNDECIDED: 'not decided'>
    """
    held = list(parts)
    if not held:
        return Verdict.UNDECIDED
    return Verdict.PARTLY if any(held) and not all(held) else verdict(all(held))
