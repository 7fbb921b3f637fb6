"""The commands and how their failures become exit codes."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any

import typer

from sfumato.cli import (
    audit,
    compare,
    demo,
    design,
    disclosure,
    fit,
    implied,
    plan,
    policy,
    privatize,
    realtime,
    release,
    study,
    temporal,
)
from sfumato.cli.console import BAD_INPUT, INTERRUPTED, holding, mention_compiling, say
from sfumato.errors import SfumatoError

app = typer.Typer(
    name="sfumato",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="""Release live, correlated data with a privacy guarantee that can be checked.

    The main job in four steps:

    \b
      sfumato fit history.csv --stream user --value cell -o city.model
      sfumato plan --model city.model --budget 10 --horizon 50
      sfumato release live.csv --model city.model --budget 10 --horizon 50 -o private.csv
      sfumato audit private.csv --model city.model

    One column of a table, once: sfumato privatize survey.csv -c answer --epsilon 1 -o private.csv
    Several columns, tied to each other: sfumato disclosure and sfumato publish

    No data at hand? `sfumato demo` shows all of it on a small made-up town.

    Exit codes: 0 done, 1 an audit found a problem, 2 bad input or a refused release
    (nothing half written), 130 interrupted.
    """,
)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose failures are one line for a person and a code for a script."""

    @functools.wraps(command)
    def run_guarded(*arguments: Any, **options: Any) -> None:
        try:
            mention_compiling()
            with holding():
                command(*arguments, **options)
            sys.stdout.flush()
        except SfumatoError as problem:
            say(f"sfumato: {problem}")
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            say("sfumato: interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except OSError as problem:
            # A reader that went away is nobody to tell; a full disk is.
            if not isinstance(problem, BrokenPipeError):
                say(f"sfumato: {problem.filename or 'output'}: {problem.strerror or problem}")
            _silence()
            raise typer.Exit(BAD_INPUT) from None

    return run_guarded


_COMMANDS: dict[str, Callable[..., None]] = {
    "fit": fit.fit,
    "plan": plan.plan,
    "compile": policy.compile_policy,
    "release": release.release,
    "audit": audit.audit,
    "design": design.design,
    "implied": implied.implied,
    "privatize": privatize.privatize,
    "disclosure": disclosure.disclosure,
    "publish": disclosure.publish,
    "compare": compare.compare,
    "realtime": realtime.realtime,
    "demo": demo.demo,
    "study": study.study,
}
_OVER_TIME: dict[str, Callable[..., None]] = {
    "leakage": temporal.leakage,
    "allocate": temporal.allocate,
    "fit": temporal.fit,
    "plot": temporal.plot,
}
over_time = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=temporal.HELP)
for group, commands in ((app, _COMMANDS), (over_time, _OVER_TIME)):
    for name, command in commands.items():
        group.command(name)(guarded(command))
app.add_typer(over_time, name="temporal")


def run() -> int:
    """Run the command line; return the exit code."""
    try:
        app()
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else BAD_INPUT
    return 0


def _silence() -> None:
    """Let what standard output still holds go nowhere, so that exit does not try it again."""
    if sys.stdout is sys.__stdout__ and sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
