"""`sfumato start`: a few questions, and the commands that suit the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sfumato.cli import options
from sfumato.cli.console import (
    interruption,
    print_command,
    print_comment,
    print_json,
    print_line,
)
from sfumato.core.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.explanations.first_steps import Question


class _StartOptions(options.Options):
    shown: options.Shown


def start(given: _StartOptions) -> None:
    """Answer some questions about your data, and get the commands that suit them.

    Nothing is read, run or written. Return takes the answer in brackets.

    \b
    Examples:
      sfumato start
    """
    from sfumato.explanations.first_steps import KIND, commands, purpose, questions

    try:
        answers = {KIND.name: _answer(KIND)}
        while left := [one for one in questions(answers) if one.name not in answers]:
            answers[left[0].name] = _answer(left[0])
    except typer.Abort as ended:  # the input did, or somebody had enough of it
        if stopped := interruption(ended):
            raise stopped from None
        rule = "be given at a terminal, one a line; `sfumato sample` needs none"
        raise InvalidParameter("answers", "the end of the input", rule) from None
    found = commands(answers)
    if given.shown.as_json:
        why = [purpose(command) for command in found]
        print_json({"answers": answers, "commands": found, "why": why})
        return
    print_line("")
    for command in found:
        print_command(command, purpose(command))
        print_line("")
    print_comment(
        "names of files and numbers are examples: put yours; each command has --help, and "
        "docs/choosing.md says how to choose numbers, losses and units"
    )


def _answer(question: Question) -> str:
    """Ask on the error channel, so that the commands alone go to whoever reads the output."""
    if question.choices is None:
        return str(typer.prompt(question.asked, default=question.default, err=True)).strip()
    choices = [choice.value for choice in question.choices]
    typer.echo(question.asked, err=True)
    for number, choice in enumerate(choices, start=1):
        typer.echo(f"  {number}  {choice}", err=True)
    usual = choices.index(question.default) + 1
    number = 0
    while not 1 <= number <= len(choices):
        number = typer.prompt(f"number, 1 to {len(choices)}", default=usual, type=int, err=True)
    return choices[number - 1]
