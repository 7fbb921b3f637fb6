"""Files of one release: all of them or none, whatever fails and wherever."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest

from sfumato.cli.table_output import named_options, written_together
from sfumato.core.errors import InvalidParameter
from sfumato.store.files import locked
from tests.shell.releasing import STEP
from tests.shell.running import call, done, files, refused
from tests.shell.tables import table, walk, write

NAMES = ("picture.png", "certificate.json", "table.csv")


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def writers(folder: Path, text: str) -> dict[str, Callable[[str], None]]:
    def write(aside: str) -> None:
        Path(aside).write_text(text)

    return {str(folder / name): write for name in NAMES}


def failing_move(number: int, failure: BaseException) -> Callable[[Path, Path], None]:
    """A move that fails when it is called for the nth time, and works before and after."""
    left, move = [number], os.replace

    def moved(source: Path, target: Path) -> None:
        left[0] -= 1
        if left[0] == -1:
            raise failure
        move(source, target)

    return moved


@pytest.mark.parametrize("there", [(), NAMES, NAMES[:1], NAMES[1:]])
def test_files_take_their_places_only_when_all_are_written(
    tmp_path: Path, there: tuple[str, ...]
) -> None:
    before = dict.fromkeys(there, "old")
    for name in there:
        (tmp_path / name).write_text("old")
    with written_together(writers(tmp_path, "new")):
        assert {name: text for name, text in content(tmp_path).items() if name in NAMES} == before
    assert content(tmp_path) == dict.fromkeys(NAMES, "new")


@pytest.mark.parametrize("failure", [OSError("disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize(
    ("there", "place"),  # what is there is moved aside first
    [(t, n) for t in ((), NAMES, NAMES[:1], NAMES[1:]) for n in range(len(NAMES) + len(t))],
)
def test_whatever_move_fails_leaves_what_was_there(
    tmp_path: Path, there: tuple[str, ...], place: int, failure: BaseException
) -> None:
    for name in there:
        (tmp_path / name).write_text("old")
    moves = mock.patch("os.replace", failing_move(place, failure))
    with moves, pytest.raises(type(failure)), written_together(writers(tmp_path, "new")):
        pass
    assert content(tmp_path) == dict.fromkeys(there, "old")


@pytest.mark.parametrize("place", range(3))
def test_whatever_write_fails_leaves_what_was_there(tmp_path: Path, place: int) -> None:
    for name in NAMES:
        (tmp_path / name).write_text("old")

    def half(aside: str) -> None:
        Path(aside).write_text("ha")
        raise OSError("disk full")

    files = writers(tmp_path, "new") | {str(tmp_path / NAMES[place]): half}
    with pytest.raises(OSError, match="disk full"), written_together(files):
        pass
    assert content(tmp_path) == dict.fromkeys(NAMES, "old")


def test_a_block_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    with pytest.raises(BrokenPipeError), written_together(writers(tmp_path, "new")):
        raise BrokenPipeError
    assert content(tmp_path) == {}


def test_what_a_killed_run_left_is_not_taken_for_what_was_there(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / f".partial.{'0' * 16}.{name}").write_text("older")
        (tmp_path / f".partial.{'1' * 16}.{name}").write_text("older")
    moves = mock.patch("os.replace", failing_move(2, OSError("no")))
    with moves, pytest.raises(OSError, match="no"), written_together(writers(tmp_path, "new")):
        pass
    assert content(tmp_path) == {}


def test_a_picture_that_fails_leaves_the_earlier_one(tmp_path: Path, key: Path) -> None:
    table = write(tmp_path / "survey.csv", ["answer"], [("yes",), ("no",), ("yes",)] * 9)
    given: tuple[object, ...] = ("privatize", table, "-c", "answer", "--epsilon", 1)
    given = (*given, "--key-file", key, "--order", "kept")
    outputs = ("-o", tmp_path / "private.csv", "--plot", tmp_path / "picture.png")
    done(*given, *outputs)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def half(figure: object, path: str, **_: object) -> None:
        Path(path).write_bytes(b"half")
        raise OSError("disk full")

    with mock.patch("matplotlib.figure.Figure.savefig", half):
        assert call(*given, *outputs).code != 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_names_of_arguments_in_a_rule_are_those_of_options_too() -> None:
    options = {"sigma": "--sigma", "target_delta": "--target-delta"}
    words = "--sigma must be given, or --target-delta; got"
    with pytest.raises(InvalidParameter, match=words), named_options({}, options):
        raise InvalidParameter("sigma", None, "be given, or target_delta")


def test_a_link_stays_a_link_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link, real = tmp_path / "link.csv", tmp_path / "real" / "table.csv"
    link.symlink_to(real)
    with written_together({str(link): writers(tmp_path, "new")[str(tmp_path / NAMES[0])]}):
        assert not real.exists()
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_a_certificate_without_its_table_is_not_written_over(tmp_path: Path) -> None:
    table, out = write(tmp_path / "people.csv", ["x"], [(1,), (2,), (4,)]), tmp_path / "out.csv"
    (tmp_path / "out.csv.certificate.json").write_text("{}")
    options = ["--table", table, "--columns", "x", "--accuracy", 1, "--sigma", 2, "-o", out]
    refused = call("publish", *options)
    assert refused.code != 0
    assert "--output must not exist" in refused.err
    assert not out.exists()
    assert (tmp_path / "out.csv.certificate.json").read_text() == "{}"


@contextlib.contextmanager
def held_elsewhere(path: Path) -> Iterator[None]:
    """Another run holds the file: another thread is refused as another process is."""
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with locked(path):
            held.set()
            let_go.wait(60)

    other = threading.Thread(target=hold)
    other.start()
    try:
        assert held.wait(60)
        yield
    finally:
        let_go.set()
        other.join()


def test_two_runs_into_one_output_are_refused_before_anything_is_drawn(
    tmp_path: Path, model: Path
) -> None:
    survey = write(tmp_path / "survey.csv", ["answer", "x"], [("yes", 1), ("no", 2)] * 9)
    live = table(tmp_path / "live.csv", walk(1, rows=20))
    commands: dict[str, list[object]] = {
        "privatize": [survey, "-c", "answer", "--epsilon", 1],
        "publish": ["--table", survey, "-c", "x", "--accuracy", 1, "--sigma", 2],
        "release": [live, "-m", model, "--epsilon", 0.5, *STEP],
        "realtime": [survey, "--value", "x", "--sensitivity", 1, "--epsilon", 1],
        "fit": [live, "--stream", "person", "--value", "place"],
        "compile": ["-m", model, "--epsilon", 0.5, *STEP],
    }
    for command, options in commands.items():
        out = tmp_path / f"{command}.csv"
        with held_elsewhere(out):
            refused(call(command, *options, "-o", out), out, "must not be in use")
        assert files(tmp_path) == {"survey.csv", "live.csv"}
