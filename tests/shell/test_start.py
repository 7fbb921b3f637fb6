"""`sfumato start` where nobody answers: the input ends, or somebody has had enough."""

import pytest
import typer

from tests.shell.running import call, spawn


def test_an_input_that_ends_is_refused_with_what_is_needed() -> None:
    result = spawn("start", stdin=b"")
    assert (result.code, result.out.strip()) == (2, "")
    assert "answers must be given at a terminal" in result.err


def test_who_breaks_off_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken_off(*_: object, **__: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise typer.Abort from None  # as a prompt does

    monkeypatch.setattr(typer, "prompt", broken_off)
    result = call("start")
    assert result.code == 130
    assert result.err.endswith("sfumato: interrupted\n")


@pytest.mark.parametrize("name", ["--epsilon", "--budget"])
def test_a_budget_of_nothing_is_refused_by_its_option_before_any_work(name: str) -> None:
    result = call("plan", "-m", "none.model", name, 0)
    assert result.code == 2
    assert result.err == f"sfumato: {name} must be finite and greater than 0; got 0.0\n"
