"""The commands and how their failures become exit codes."""

from __future__ import annotations

import os
import sys

import typer

from sfumato.cli import audit, demo, design, fit, plan, release
from sfumato.cli.console import BAD_INPUT, INTERRUPTED, say
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

    No data at hand? `sfumato demo` shows all of it on a small made-up town.

    Exit codes: 0 done, 1 an audit found a problem, 2 bad input or a refused release
    (nothing half written), 130 interrupted.
    """,
)
app.command("fit")(fit.fit)
app.command("plan")(plan.plan)
app.command("release")(release.release)
app.command("audit")(audit.audit)
app.command("design")(design.design)
app.command("demo")(demo.demo)


def run() -> int:
    """Run the command line; return the exit code."""
    try:
        app(standalone_mode=True)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else BAD_INPUT
    except SfumatoError as problem:
        say(f"sfumato: {problem}")
        return BAD_INPUT
    except KeyboardInterrupt:
        say("sfumato: interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader went away; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BAD_INPUT
    except OSError as problem:
        say(f"sfumato: {problem.filename or 'output'}: {problem.strerror or problem}")
        return BAD_INPUT
    return 0
