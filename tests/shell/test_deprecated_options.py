"""Options under their old names still do what they did, and say what they are called now."""

from pathlib import Path

import pytest

from sfumato.cli.deprecated_options import RENAMED, renamed
from tests.shell.running import call


@pytest.mark.parametrize(
    ("words", "old", "new"),
    [(words, old, new) for words, names in RENAMED.items() for old, new in names.items()],
)
def test_an_old_name_is_accepted_and_told_of(
    words: tuple[str, ...], old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert renamed([*words, "in.csv", old, "x"]) == [*words, "in.csv", new, "x"]
    assert f"{old} is now {new}" in capsys.readouterr().err
    assert renamed([*words, f"{old}=x", "-q"]) == [*words, f"{new}=x", "-q"]
    assert renamed([*words, "--", old]) == [*words, "--", old]
    assert renamed(["fit", old, "x"]) == ["fit", old, "x"]
    assert capsys.readouterr().err == ""


def test_a_command_with_an_old_name_runs(tmp_path: Path) -> None:
    live = tmp_path / "live.csv"
    live.write_text("stream,value\nann,home\n")
    asked = ("temporal", "release", live, "--alpha", 1, "-o", tmp_path / "out.csv", "--seed", 1)
    matrix = tmp_path / "back.csv"
    matrix.write_text("0.8,0.2\n0.2,0.8\n")
    rest = ("--backward", matrix, "--mechanism", "response", "--steps", 2)
    said = call(*asked, *rest, "--symbols", "home,road")
    assert said.code == 0, said.err
    assert "--symbols is now --values" in said.err
