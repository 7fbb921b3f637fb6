"""What a terminal shows: lines end between words, commands can be pasted, pipes get all of it."""

import io
import re
import shlex
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cli import console
from sfumato.cli.folding import folded, folded_command
from tests.shell.running import call, done
from tests.shell.tables import write

GOLDEN = Path(__file__).parent / "golden"
WORDS = st.lists(st.text("abcß漢-.,()", min_size=1, max_size=12), min_size=1, max_size=30)
DIGEST = "0123456789abcdef" * 4


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Forty columns in the place of standard output."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    return terminal


@given(WORDS, st.integers(20, 90), st.integers(0, 6))
def test_no_word_is_broken_or_lost(words: list[str], width: int, indent: int) -> None:
    from rich.cells import cell_len

    text = " " * indent + " ".join(words)
    lines = folded(text, width)
    assert " ".join(lines).split() == text.split()
    for line in lines:
        assert cell_len(line) <= width or len(line.split()) == 1
    assert [line for line in lines[1:] if not line.startswith(" " * (indent + 2))] == []


@given(st.lists(st.sampled_from(["--model a.model", "-q", "'a b'", "live.csv", "-o out.csv"])))
def test_a_command_on_several_lines_is_the_same_command(parts: list[str]) -> None:
    command = " ".join(["  sfumato release", *parts])
    lines = folded_command(command, 34)
    typed = "\n".join(lines).replace("\\\n", "")  # as a shell reads it
    assert shlex.split(typed) == shlex.split(command)
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert all(len(line) <= 34 for line in lines)


def test_a_terminal_gets_short_lines_and_a_pipe_whole_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = screen(monkeypatch)
    console.print_line("a sentence that is wider than forty columns of a terminal")
    assert terminal.getvalue() == "a sentence that is wider than forty\n  columns of a terminal\n"
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stdout", pipe)
    console.print_line("a sentence that is wider than forty columns of a terminal")
    assert pipe.getvalue().count("\n") == 1


def test_comments_of_commands_are_comments_on_every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = screen(monkeypatch)
    console.print_command("sfumato plan --model a.model --epsilon 0.5", "try " + "ways " * 12)
    comments, command = terminal.getvalue().rsplit("\nsfumato", 1)
    assert all(line.startswith("# ") for line in comments.splitlines())
    assert command == " plan --model a.model \\\n    --epsilon 0.5\n"


def test_digests_are_cut_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    screen(monkeypatch)
    assert console.shortened(f"model {DIGEST}, 7 rows") == "model 0123456789ab..., 7 rows"
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert console.shortened(f"model {DIGEST}") == f"model {DIGEST}"


def test_help_fits_eighty_columns() -> None:
    pages = sorted(GOLDEN.glob("help*.txt"))
    assert len(pages) > 60
    for page in pages:
        for line in page.read_text("utf-8").splitlines():
            # A single argument may be wider: an address, or what a shell runs in quotes.
            whole = max(map(len, re.findall(r"\"[^\"]*\"|\S+", line)), default=0)
            assert len(line) <= 80 or whole > 60, f"{page.name}: {line}"


def test_examples_of_help_are_whole_commands() -> None:
    """A backslash stands where an example goes on, and nowhere else."""
    for page in GOLDEN.glob("help*.txt"):
        text = page.read_text("utf-8")
        assert not re.search(r"\\[^\n]", text), page.name
        assert not re.search(r"\\\n\s*\n", text), page.name


# Refusals -----------------------------------------------------------------------------------------


@pytest.fixture
def history(tmp_path: Path) -> Path:
    people = [(f"p{row % 3}", ("walking", "lying")[row % 2]) for row in range(30)]
    return write(tmp_path / "history.csv", ["person", "activity"], people)


def test_a_slip_in_the_name_of_a_column_is_answered_with_the_nearest_one(tmp_path: Path) -> None:
    people = [(f"p{row % 3}", row, "lying") for row in range(9)]
    history = write(tmp_path / "history.csv", ["person", "activity", "when"], people)
    result = call("fit", history, "--stream", "person", "--value", "activty", "-o", tmp_path / "a")
    assert result.code == 2 and "--stream person --value activity -o" in result.err


def test_a_column_that_is_not_there_is_answered_with_the_line_to_type(
    history: Path, tmp_path: Path
) -> None:
    result = call("fit", history, "-o", tmp_path / "a.model")
    assert result.code == 2 and len(result.err.splitlines()) == 1
    assert "it has 'person', 'activity'. Name the right one with --stream" in result.err
    line = shlex.split(result.err.rsplit("for example: ", 1)[1])
    assert line[:2] == ["sfumato", "fit"] and line[-4:] == [
        *("--stream", "person", "--value", "activity")
    ]
    done(*line[1:])  # and it works


def test_a_wrong_column_is_replaced_where_it_was_typed(history: Path, tmp_path: Path) -> None:
    result = call(
        *("fit", history, "--stream", "who", "--value=what", "-o", tmp_path / "a.model", "-q")
    )
    line = shlex.split(result.err.rsplit("for example: ", 1)[1])
    assert line[3:6] == ["--stream", "person", "--value=activity"]


def test_refusals_name_the_option_and_never_none(tmp_path: Path) -> None:
    counts = write(tmp_path / "counts.csv", ["cnt"], [[row] for row in range(9)])
    asked = ("realtime", counts, "--value", "cnt", "--epsilon", 1, "-o", tmp_path / "out.csv")
    told = call(*asked, "--sensitivity", 0).err
    assert told == "sfumato: --sensitivity must be finite and greater than 0; got 0.0\n"
    told = call("fit", "-o", tmp_path / "a.model").err
    assert told == "sfumato: HISTORY must be given, or --uniform\n"
    for path in GOLDEN.glob("refused-*.txt"):
        assert "got None" not in path.read_text("utf-8"), path.name
