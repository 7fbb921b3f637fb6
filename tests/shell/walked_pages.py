"""Pages whose commands are run as they stand: README and tutorials, in an empty folder each.

A block of kind `console` shows commands after `$ ` and below each what it says. All of a page's
commands are run in order. What is shown must be what standard output says, line by line, but

- a line `...` stands for any lines, and `...` within a line for any text: what is long, or drawn
  with fresh coins;
- blanks count as one: tables are lined up on pages;
- what is said on the side (standard error) may be shown where it is said, or left out.

A page that shows a refusal, `sfumato: ...`, must get it, with exit code 2, and one that shows
`the audit FAILED` exit code 1. A line with a sign of the shell (a pipe, a file, `$(...)`) is given
to one; what ends in `&` runs beside the page until its end, and what is shown below it must be said
before the page goes on.
"""

import difflib
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.shell.page_shell import BESIDE, beside_page, in_shell, own_port, with_program
from tests.shell.running import Result, call

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
TUTORIALS = tuple(sorted((DOCS / "tutorials").glob("[!i]*.md")))
ENGINES = (DOCS / "guides" / "spark.md",)
"""Pages that start a real engine."""
GUIDES = tuple(
    page
    for page in (DOCS / "audit.md", DOCS / "learning.md", *sorted((DOCS / "guides").glob("*.md")))
    if page not in ENGINES and "```console" in page.read_text("utf-8")
)

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
_DOTS = "..."
_SIGNS = re.compile(r"[|&<>$]")

Run = Callable[[Sequence[str], Path], Result]
"""Runs the words of a command line in a folder."""


@dataclass(frozen=True)
class Step:
    """A command of a page.

    Attributes:
        typed: The lines with the command, as they stand.
        shown: The lines below it.
    """

    typed: tuple[str, ...]
    shown: tuple[str, ...]

    @property
    def line(self) -> str:
        """The command, as one line."""
        return "\n".join(self.typed).removeprefix("$ ").replace("\\\n", " ")

    @property
    def words(self) -> list[str]:
        """What the shell makes of the command."""
        return shlex.split(self.line)

    @property
    def commands(self) -> set[tuple[str, ...]]:
        """The commands of ours in it, each as its first two words."""
        found = re.findall(r"\bsfumato ([a-z-]+)(?: ([a-z-]+))?", self.line)
        return {tuple(word for word in pair if word) for pair in found}


def steps(page: Path) -> list[Step]:
    """All commands of a page, in order."""
    return [step for block in _BLOCK.findall(page.read_text("utf-8")) for step in _parsed(block)]


def _parsed(block: str) -> Iterator[Step]:
    lines = block.splitlines()
    begins = [place for place, line in enumerate(lines) if line.startswith("$ ")]
    assert begins[:1] == [0], "a block of kind console begins with a command"
    for begin, end in zip(begins, [*begins[1:], len(lines)], strict=True):
        head = begin
        while lines[head].endswith("\\"):
            head += 1
        yield Step(tuple(lines[begin : head + 1]), tuple(lines[head + 1 : end]))


def here(words: Sequence[str], folder: Path) -> Result:
    """Run a command in this process; the caller stands in the folder."""
    assert Path.cwd() == folder.resolve()
    return call(*words[1:]) if words[0] == "sfumato" else beside(words, folder)


def beside(words: Sequence[str], folder: Path) -> Result:
    """Run one of the few programs that a page may use beside ours."""
    assert words[0] in BESIDE, f"a page may use {', '.join(BESIDE)}, not {words[0]}"
    ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    return Result(ran.returncode, ran.stdout, ran.stderr)


class Walk:
    """A page that is being walked, as a context: what runs beside it ends with it.

    Args:
        page: The page.
        folder: Where its commands are run.
        run: How a plain command is.
        environment: In which a shell finds `sfumato`; these very sources if not given.
    """

    def __init__(
        self, page: Path, folder: Path, run: Run, environment: Mapping[str, str] | None
    ) -> None:
        self._folder, self._run = folder, run
        self._port = own_port(page.read_text("utf-8"))
        self._beside = ExitStack()
        self._environment = environment or self._beside.enter_context(with_program())

    def __enter__(self) -> "Walk":
        return self

    def __exit__(self, *_: object) -> None:
        self._beside.close()

    def result(self, step: Step) -> Result:
        """What a step says."""
        if not _SIGNS.search(step.line):
            words = [self._port.here(word) for word in step.words]
            return self._port.on_page(self._run(words, self._folder))
        line = self._port.here(step.line)
        if not line.endswith("&"):
            return self._port.on_page(in_shell(line, self._folder, self._environment))

        def said(now: Result) -> bool:
            return fits(step.shown, self._port.on_page(now))

        begun = beside_page(line.removesuffix("&"), self._folder, self._environment, said)
        return self._port.on_page(self._beside.enter_context(begun))


def walk(
    page: Path, folder: Path, run: Run = here, environment: Mapping[str, str] | None = None
) -> None:
    """Run a page; fails where it shows something else than is said."""
    found = steps(page)
    assert found, f"{page.name} has no commands"
    with Walk(page, folder, run, environment) as walking:
        for step in found:
            result = walking.result(step)
            _check_code(step, result)
            if not fits(step.shown, result):
                told = difflib.unified_diff(
                    step.shown, laid_out(result.out), page.name, "said", lineterm="", n=99
                )
                raise AssertionError("\n".join((*step.typed, *told, result.err)))


def _check_code(step: Step, result: Result) -> None:
    refused = any(line.startswith("sfumato: ") for line in step.shown)
    found = "the audit FAILED" in step.shown
    assert result.code == (2 if refused else int(found)), f"{step.typed}\n{result.out}{result.err}"


# Comparing ----------------------------------------------------------------------------------------


def fits(shown: Sequence[str], result: Result) -> bool:
    """Whether lines of a page show what was said."""
    out, err = result.out.splitlines(), result.err.splitlines()
    # Places that the page may have come to: lines of each of the two that are behind it.
    places = {(0, 0)}
    for line in shown:
        if line.strip() == _DOTS:
            places = {
                (o, e)
                for start, left in places
                for o in range(start, len(out) + 1)
                for e in range(left, len(err) + 1)
            }
            continue
        places = {(o + 1, e) for o, e in places if o < len(out) and line_fits(line, out[o])} | {
            (o, later + 1)
            for o, e in places
            for later in range(e, len(err))
            if line_fits(line, err[later])
        }
    return any(o == len(out) for o, _ in places)


def line_fits(shown: str, said: str) -> bool:
    """Whether a line of a page shows a line that was said."""
    parts = (re.escape(part) for part in _plain(shown).split(_DOTS))
    return re.fullmatch(".*".join(parts), _plain(said)) is not None


def _plain(line: str) -> str:
    return " ".join(line.split())


# Writing anew -------------------------------------------------------------------------------------


def laid_out(text: str) -> list[str]:
    """Lines as a page shows them: tables lined up."""
    lines = text.splitlines()
    made: list[str] = []
    begin = 0
    while begin < len(lines):
        end = begin
        while end < len(lines) and "\t" in lines[end]:
            end += 1
        made += _lined_up(lines[begin:end]) if end > begin else [lines[begin].rstrip()]
        begin = max(end, begin + 1)
    return made


def _lined_up(lines: Sequence[str]) -> Iterator[str]:
    rows = [line.split("\t") for line in lines]
    wide = max(map(len, rows))
    rows = [row + [""] * (wide - len(row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        yield "  ".join([first.ljust(widths[0]), *cells]).rstrip()


def shown_anew(shown: Sequence[str], result: Result) -> list[str]:
    """What a page should show: as before where it fits, else the same lines with new numbers.

    Lines are found again by their words, in order, or by most of them; dots stay, in a line and
    for lines. Where a line is gone, and between two that follow each other on the page, all that
    is said now is shown, and the writer cuts it.
    """
    if shown and fits(shown, result):
        return list(shown)
    out, err = laid_out(result.out), laid_out(result.err)
    if not out:
        out, err = err, []
    if not any(_found(line, [*out, *err]) for line in shown):
        return _with_dots(out, shown)
    made: list[str] = []
    place, cut, gone = 0, False, False
    for line in shown:
        if line.strip() == _DOTS:
            cut = True
        elif later := _found(line, out[place:]):
            made += _between(out[place : place + later[0]], cut and not gone)
            place += later[0]
            made.append(_anew(line, out[place]))
            place, cut, gone = place + 1, False, False
        elif beside := _found(line, err):
            # What is said on the side stands where the writer put it.
            made += [_DOTS] * cut
            made.append(_anew(line, err[beside[0]]))
            cut = False
        else:
            gone = True
    return made + _between(out[place:], cut and not gone)


def _between(lines: Sequence[str], cut: bool) -> list[str]:
    """Lines that the page does not have: cut where it was cut before."""
    return [_DOTS] if cut else list(lines)


def _found(line: str, said: Sequence[str]) -> list[int]:
    """Where a line of a page stands in what was said: as it is, with other numbers or words.

    Rows of a table differ in numbers alone, so the one that begins alike comes first.
    """
    if line.strip() == _DOTS:
        return []
    begun = line.split()[:1]
    ways: tuple[Callable[[str], bool], ...] = (
        lambda each: line_fits(line, each),
        lambda each: _alike(line, each) is not None and each.split()[:1] == begun,
        lambda each: _alike(line, each) is not None,
        lambda each: bool(begun) and _plain(each).startswith(_plain(line)),
    )
    for way in ways:
        if found := [place for place, each in enumerate(said) if way(each)]:
            return found
    return [said.index(each) for each in difflib.get_close_matches(line, said, 1, _REWORDED)]


_REWORDED = 0.7
"""How much of a line must be left for it to be taken for the same."""


def _with_dots(said: Sequence[str], shown: Sequence[str]) -> list[str]:
    """All that was said, with the dots of lines that the page had."""
    made = []
    for each in said:
        old = [line for line in shown if line.strip() != _DOTS and _alike(line, each)]
        made.append(_anew(old[0], each) if old else each)
    return made


_NUMBERS = re.compile(r"-?\d[\d.,e+-]*(?<![.,])")


def _alike(shown: str, said: str) -> re.Match[str] | None:
    """A line of a page that says the same with other numbers; its groups are what dots hide."""
    words = []
    for word in shown.split():
        parts = (
            r"-?\d[\d.,e+-]*".join(map(re.escape, _NUMBERS.split(part)))
            for part in word.split(_DOTS)
        )
        words.append("(.*?)".join(parts))
    return re.fullmatch(r"\s*" + r"\s+".join(words) + r"\s*", said)


def _anew(shown: str, said: str) -> str:
    """What was said, with the dots of the page where it had them; columns stay where they are."""
    match = _alike(shown, said)
    if match is None:
        return said  # in other words: where dots belong, the writer says
    made, end = "", 0
    for group in range(1, len(match.groups()) + 1):
        begin, after = match.span(group)
        made += said[end:begin]
        alone = said[:begin].endswith("  ") and not said[after : after + 1].strip()
        if alone:  # dots are wider than a short cell: its blanks make room
            short = len(_DOTS) - (after - begin)
            spare = len(made) - len(made.rstrip()) - 2
            made = made[: len(made) - max(min(short, spare), 0)]
        made += _hidden(said[begin:after]) if alone else _DOTS
        end = after
    return made + said[end:]


def _hidden(text: str) -> str:
    """Dots for some text: as wide as one word, so that a column stays lined up."""
    return _DOTS.rjust(len(text)) if text and " " not in text else _DOTS


def record(page: Path, folder: Path, run: Run = here) -> bool:
    """Run a page and write what its commands say into it; whether it changed."""
    before = page.read_text("utf-8")

    def block(match: re.Match[str]) -> str:
        lines: list[str] = []
        for step in _parsed(match[1]):
            result = walking.result(step)
            _check_code(step, result)
            lines += [*step.typed, *shown_anew(step.shown, result)]
        return "\n".join(("```console", *lines, "```"))

    with Walk(page, folder, run, None) as walking:
        after = _BLOCK.sub(block, before)
    page.write_text(after, encoding="utf-8")
    return after != before
