"""The commands and how their failures become exit codes."""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import metadata
from types import FrameType
from typing import Annotated, Any, get_type_hints

import typer

from sfumato.cli import access_command as access
from sfumato.cli import attack_command as attack
from sfumato.cli import audit_command as audit
from sfumato.cli import bridge_command as bridge
from sfumato.cli import compare_command as compare
from sfumato.cli import demo_command as demo
from sfumato.cli import design_command as design
from sfumato.cli import disclosure_command as disclosure
from sfumato.cli import doctor_command as doctor
from sfumato.cli import drift_command as drift
from sfumato.cli import explain_command as explain
from sfumato.cli import fit_command as fit
from sfumato.cli import implied_command as implied
from sfumato.cli import key_command as key
from sfumato.cli import learn_command as learn
from sfumato.cli import ledger_command as ledger
from sfumato.cli import plan_command as plan
from sfumato.cli import policy_command as policy
from sfumato.cli import privatize_command as privatize
from sfumato.cli import push_command as push
from sfumato.cli import realtime_command as realtime
from sfumato.cli import recover_command as recover
from sfumato.cli import release_command as release
from sfumato.cli import sample_command as sample
from sfumato.cli import serve_command as serve
from sfumato.cli import spark_command as spark
from sfumato.cli import spark_stream_command as spark_stream
from sfumato.cli import start_command as start
from sfumato.cli import store_close_command as store_close
from sfumato.cli import store_command as store
from sfumato.cli import study_command as study
from sfumato.cli import temporal_command as temporal
from sfumato.cli import temporal_release_command as temporal_release
from sfumato.cli import verify_command as verify
from sfumato.cli import verify_report_command as verify_report
from sfumato.cli import warm_command as warm
from sfumato.cli.command_groups import FoldedCommand, GroupedCommands, WholeSummaries
from sfumato.cli.console import (
    BAD_INPUT,
    DEFECT,
    INTERRUPTED,
    UNREAD,
    holding,
    interruption,
    print_line,
    say,
    standard_streams,
    with_papers,
)
from sfumato.cli.deprecated_options import renamed
from sfumato.cli.first_use import first_use
from sfumato.cli.options import gathered, signature_of
from sfumato.cli.refusals import refusal, typed_words
from sfumato.core.errors import SfumatoError

app = typer.Typer(
    name="sfumato",
    cls=GroupedCommands,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="""Release live, correlated data with a privacy guarantee that can be checked.

    The main job in four steps:

    \b
      sfumato fit history.csv --stream user --value cell -o city.model
      sfumato plan --model city.model --budget 10 --horizon 50
      sfumato release live.csv --model city.model --budget 10 --horizon 50 -o private.csv
      sfumato audit private.csv --model city.model

    \b
    One column of a table, once:
      sfumato privatize survey.csv -c answer --epsilon 1 -o private.csv

    New here? `sfumato start` asks what you have and prints the commands for it. No data at hand?
    `sfumato sample` writes some, and `sfumato demo` shows all of it on a small made-up town.

    A terminal gets lines that fit it; in a pipe each line stays whole, and tables have tabs. Every
    command has --json, and --quiet leaves out the explanations.

    Exit codes: 0 done, 1 an audit found a problem, 2 bad input or a refused release
    (nothing half written), 70 a defect of the program, 130 interrupted, 141 nobody reads the
    output any more (`| head`), 143 terminated.
    """,
)
_TRACEBACK = "SFUMATO_TRACEBACK"
_wanted: ContextVar[bool] = ContextVar("traceback", default=False)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose failures are one line for a person and a code for a script."""
    kind = get_type_hints(command)["given"]

    def run_guarded(**typed: Any) -> None:
        try:
            given = gathered(kind, typed)
            quiet = getattr(getattr(given, "shown", None), "no_progress", False)
            with holding(), first_use(command.__name__, quiet):
                command(given)
            sys.stdout.flush()
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except SfumatoError as problem:
            told, command_line = refusal(problem, kind, typed)
            say(f"sfumato: {told}", command_line)
            raise typer.Exit(BAD_INPUT) from None
        except (KeyboardInterrupt, OSError, MemoryError) as problem:
            raise typer.Exit(_told(problem)) from None
        except Exception as problem:
            if stopped := interruption(problem):
                raise typer.Exit(_told(stopped)) from None
            raise typer.Exit(_defect(problem)) from None

    run_guarded.__doc__ = command.__doc__
    run_guarded.__signature__ = signature_of(kind)  # type: ignore[attr-defined]
    return run_guarded


def _told(problem: BaseException) -> int:
    """Say what the world did to a command, and which code that is."""
    match problem:
        case Terminated():
            say("sfumato: terminated")
            return 128 + problem.number
        case KeyboardInterrupt():
            say("sfumato: interrupted")
            return INTERRUPTED
        case MemoryError():
            say("sfumato: there must be more memory for this input and these options")
        case BrokenPipeError():
            _silence()  # a reader that went away is nobody to tell
            return UNREAD
        case OSError():
            say(f"sfumato: {problem.filename or 'output'}: {problem.strerror or problem}")
            _silence()
    return BAD_INPUT


def _defect(problem: Exception) -> int:
    """Say that the program is at fault; what the error says may quote data, so it is not said."""
    if _wanted.get() or os.environ.get(_TRACEBACK, "0") not in ("", "0"):
        traceback.print_exception(problem)
    name = type(problem).__name__
    say(
        f"sfumato: internal error ({name}): a defect of the program, not of your input; please "
        f"report it. Add --traceback, or set {_TRACEBACK}=1, to see where it happened"
    )
    return DEFECT


_COMMANDS: dict[str, Callable[..., None]] = {
    "fit": fit.fit,
    "plan": plan.plan,
    "compile": policy.compile_policy,
    "release": release.release,
    "push": push.push,
    "audit": audit.audit,
    "recover": recover.recover,
    "learn": learn.learn,
    "drift": drift.drift,
    "attack": attack.attack,
    "design": design.design,
    "implied": implied.implied,
    "privatize": privatize.privatize,
    "disclosure": disclosure.disclosure,
    "publish": disclosure.publish,
    "compare": compare.compare,
    "realtime": realtime.realtime,
    "verify": verify.verify,
    "verify-report": verify_report.verify_report,
    "serve": serve.serve,
    "explain": explain.explain,
    "doctor": doctor.doctor,
    "start": start.start,
    "demo": demo.demo,
    "sample": sample.sample,
    "study": study.study,
    "warm": warm.warm,
}
_OVER_TIME: dict[str, Callable[..., None]] = {
    "leakage": temporal.leakage,
    "allocate": temporal.allocate,
    "fit": temporal.fit,
    "plot": temporal.plot,
    "release": temporal_release.release,
    "audit": temporal_release.audit,
}
_LEDGERS: dict[str, Callable[..., None]] = {
    "check": ledger.check,
    "export": ledger.export,
    "backup": ledger.backup,
}
_STORES: dict[str, Callable[..., None]] = {
    "check": store.check,
    "export": store.export,
    "migrate": store.migrate,
    "backup": store.backup,
    "restore": store.restore,
    "close": store_close.close,
}
_KEYS: dict[str, Callable[..., None]] = {
    "new": key.new,
    "commit": key.commit,
    "check": key.check,
    "add": key.add,
    "derive": key.derive,
}
_ACCESS: dict[str, Callable[..., None]] = {
    "new": access.new,
    "list": access.show,
    "revoke": access.revoke,
    "rotate": access.rotate,
}
_BRIDGES: dict[str, Callable[..., None]] = {"mqtt": bridge.mqtt}
_SPARK: dict[str, Callable[..., None]] = {
    "release": spark.release,
    "fit": spark.fit,
    "audit": spark.audit,
    "recover": spark.recover,
    "learn": spark.learn,
    "stream": spark_stream.stream,
}


def _group(words: str) -> typer.Typer:
    """Commands that belong together, under one name."""
    return typer.Typer(cls=WholeSummaries, no_args_is_help=True, rich_markup_mode=None, help=words)


over_time = _group(temporal.HELP)
ledgers = _group(ledger.HELP)
keys = _group(key.HELP)
entrants = _group(access.HELP)
bridges = _group(bridge.HELP)
sparks = _group(spark.HELP)
stores = _group(store.HELP)
_GROUPS = (
    (app, _COMMANDS),
    (over_time, _OVER_TIME),
    (ledgers, _LEDGERS),
    (stores, _STORES),
    (keys, _KEYS),
    (entrants, _ACCESS),
    (bridges, _BRIDGES),
    (sparks, _SPARK),
)
for group, commands in _GROUPS:
    for name, command in commands.items():
        group.command(name, cls=FoldedCommand)(guarded(command))
app.add_typer(over_time, name="temporal")
app.add_typer(ledgers, name="ledger")
app.add_typer(stores, name="store")
app.add_typer(keys, name="key")
app.add_typer(entrants, name="access")
app.add_typer(bridges, name="bridge")
app.add_typer(sparks, name="spark")


def _print_version(asked: bool) -> None:
    if asked:
        print_line(f"sfumato {metadata.version('sfumato')}")
        raise typer.Exit


@app.callback()
def whole_program(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
    traceback: Annotated[
        bool,
        typer.Option("--traceback", help="Show where an internal error (70) happened."),
    ] = False,
    papers: Annotated[
        bool,
        typer.Option("--papers", help="Also print what stands in the papers: theorems, bounds."),
    ] = False,
) -> None:
    """Options of the program as a whole; without a docstring of its own the help is the app's."""


def run() -> int:
    """Run the command line; return the exit code."""
    arguments = sys.argv[1:]
    asked = _wanted.set("--traceback" in arguments)  # they may stand behind the command too
    rest = [each for each in arguments if each not in ("--traceback", "--papers")]
    try:
        standard_streams()
        with _terminable(), with_papers("--papers" in arguments):
            code = called(rest)
        sys.stdout.flush()
        return code
    except (KeyboardInterrupt, OSError) as problem:
        return _told(problem)  # outside of any command: while its parts are loaded, or at the end
    finally:
        _wanted.reset(asked)


@functools.cache  # 50 ms for all options of all commands, each time that one process runs a command
def _built() -> Any:
    return typer.main.get_command(app)


def called(arguments: list[str]) -> int:
    """Run one command; return the exit code."""
    words = typed_words.set(arguments)
    try:
        _built()(args=renamed(arguments), prog_name="sfumato")
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else BAD_INPUT
    finally:
        typed_words.reset(words)
    return 0


class Terminated(KeyboardInterrupt):
    """A polite kill, or a terminal that went away; what was begun is cleaned up.

    Attributes:
        number: Of the signal.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__()


@contextmanager
def _terminable() -> Iterator[None]:
    """Turn signals that would end the process at once into an exception."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Terminated(number)

    before = {}
    # Signals belong to the main thread; one that the caller ignores (nohup) stays ignored.
    if threading.current_thread() is threading.main_thread():
        for kind in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(kind) is signal.SIG_DFL:
                before[kind] = signal.signal(kind, stop)
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def _silence() -> None:
    """Let what standard output still holds go nowhere, so that exit does not try it again."""
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):
        return  # no file, as in a test
    if number == 1:
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
