"""Options of commands: each is a field of a class, so that it is named, typed and explained once.

A command takes one such class. A class within a class is a group of options that several commands
share: typer sees its fields in the place of the group (`signature_of`), and the command gets the
classes back (`gathered`), or a spec of its job that has fields of the same names (`spec_from`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform, get_type_hints

import typer

if TYPE_CHECKING:
    from sfumato.models.stream_model import StreamModel
    from sfumato.store.protocol import Again

Kind = TypeVar("Kind")


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Options:
    """A class of options; what stands behind a field is what typer is told of it."""

    # Type checkers take it for a dataclass; 30 of those would cost each start 15 ms.
    def __init__(self, **typed: Any) -> None:
        vars(self).update(typed)


def option(help: str, *names: str, default: Any = None) -> Any:
    """An option that may be left out."""
    return typer.Option(default, *names, help=help)


def required(help: str, *names: str) -> Any:
    """An option that must be given."""
    return typer.Option(..., *names, help=help)


def flag(name: str, help: str) -> Any:
    """An option without a value."""
    return typer.Option(False, name, help=help)


def argument(help: str, metavar: str | None = None, default: Any = ...) -> Any:
    """What has no name before it."""
    return typer.Argument(default, metavar=metavar, help=help)


def signature_of(kind: type) -> inspect.Signature:
    """The fields of a class of options, and of the groups in it, as parameters for typer."""
    return inspect.Signature(list(_parameters(kind)))


def _parameters(kind: type) -> Iterable[inspect.Parameter]:
    for name, hint in get_type_hints(kind).items():
        if _is_group(hint):
            yield from _parameters(hint)
        else:
            way = inspect.Parameter.KEYWORD_ONLY
            yield inspect.Parameter(name, way, default=getattr(kind, name), annotation=hint)


def _is_group(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Options)


def gathered(kind: type[Kind], typed: Mapping[str, Any]) -> Kind:
    """A class of options from what was typed, by the names of single options."""
    parts = {}
    for name, hint in get_type_hints(kind).items():
        parts[name] = gathered(hint, typed) if _is_group(hint) else typed[name]
    return kind(**parts)


def spec_from(kind: Callable[..., Kind], given: Options, **others: Any) -> Kind:
    """The spec of a job: options of the same names, but for those that are not given as typed."""
    typed = _flat(given)
    names = [name for name in inspect.signature(kind).parameters if name in typed]
    return kind(**{name: typed[name] for name in names} | others)


def _flat(given: Options) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in vars(given).items():
        flat |= _flat(value) if isinstance(value, Options) else {name: value}
    return flat


# Single options of several commands ---------------------------------------------------------------

JSON = flag("--json", "Print one JSON object for machines.")
QUIET = typer.Option(False, "--quiet", "-q", help="No progress, no remarks.")
LIVE_INPUT = argument("The true values; - for stdin.", "INPUT")
MODEL = required("The model that `sfumato fit` wrote.", "--model", "-m")
PRIVATE_OUTPUT = required("Private values; - for stdout.", "--output", "-o")
LOSS = option(
    "What a wrong value costs: hamming, absolute, squared, euclidean, great-circle (km between "
    "longitudes and latitudes), or a CSV file with a matrix (row: true symbol, column: released "
    "symbol); of a batch also histogram. If not given: the distance for bins and grids, hamming "
    "for names."
)
METHOD = option(
    "far-sighted (the least loss of the stream: what is told now is good for later values), "
    "step-wise (the least loss of each step), calibrated, randomized-response, context-free, or "
    "published (the paper's rule, which leaks more than it claims). If not given: far-sighted with "
    "--epsilon where the model allows it, else step-wise.",
)
THRIFT = option(
    "What a nat of leakage costs a far-sighted stream, in units of the loss: it then leaks less "
    "than the cap where more would not help enough. `plan --frontier` shows prices."
)
STEP_METHOD = option(
    "step-wise (the least loss), calibrated, randomized-response, context-free, or published (the "
    "paper's rule, which leaks more than it claims).",
    default="step-wise",
)
ROBUST: Any = option(
    "Keep the budget for every chain whose probabilities are each off by at most so much from the "
    "model's, or for every chain in a file of `learn --plausible`: value by value, far-sighted "
    "for up to 8 values. `plan --robust` says what it costs."
)
INDEPENDENT = option(
    "Kept columns that you declare to tell nothing of what is released: id,wave. Others are "
    "knowledge, and what is promised holds within every group of equal values of them."
)
WHEN_EXHAUSTED: Any = option(
    "Budget gone: refuse, suppress or repeat the last release.", default="refuse"
)
WHEN_UNKNOWN: Any = option(
    "Unknown value: refuse, suppress, repeat or substitute.", default="refuse"
)
MISSING = option(
    "What becomes of a missing value: refuse (nothing is released), drop (its row is left out), "
    "symbol (a symbol of its own, as private as any), skip (nothing leaves for it but its moment "
    "passes; for values over time).",
    "--missing",
    default="refuse",
)
SEPARATOR = option(
    "What stands between the columns of CSV tables: comma, semicolon or tab; their first line "
    "tells if not given."
)
MODEL_OUTPUT = required("Where the model goes.", "--output", "-o")
FLOOR = option("Least probability of any transition; rare things happen.", default=1e-6)
EVENT = option("Column of event ids; an id that comes again gets its old answer.")
LEDGER = option(
    "File that keeps every answer: a retry draws nothing anew, and streams go on over many files "
    "and days. LEDGER.head and LEDGER.key lie beside it."
)
STREAM = option("Column that tells streams apart.", default="stream")
STREAM_AS_FITTED = option("Column of streams; as at `fit`.")
RELEASED = argument("What `release` wrote: a file, or several in order.", "RELEASED")
RELEASED_OR_LEDGER = argument(
    "What `release` wrote: a file, or several in order; none with --ledger alone.",
    "[RELEASED]...",
    default=None,
)
RELEASE_LEDGER = option(
    "Ledger of the release: its rules, if they lie nowhere else; the order of all answers, for a "
    "release with --learn; and what left, if no file is given."
)
COMPILED_POLICY = option("Channels that `sfumato compile` made for this release.")
RELEASE_POLICY = option("The compiled policy of the release, if it had one [beside the model].")
VALUE = option("Column of the value.", default="value")
VALUES = option("Column of the values.", default="value")
VALUES_AS_FITTED = option("Column of values (x,y for a grid); as at `fit`.")
DELTA = option("Budget of approximate methods.", default=1e-6)
PROTECTED_WINDOW = option("Values protected together by bd and ba.", default=10)
ROW_NAMES = option("Column that names the rows, with --key-file.", "--id")
RULES = option("Rules of the release [OUTPUT.plan.json].", "--plan")

# Groups of options --------------------------------------------------------------------------------


class Shown(Options):
    """What is printed, and for whom."""

    as_json: bool = JSON
    quiet: bool = QUIET

    @property
    def no_progress(self) -> bool:
        """Whether nobody looks at a bar."""
        return self.quiet or self.as_json


class Budget(Options):
    """What streams may leak."""

    epsilon: float | None = option(
        "Leakage allowed per value, for ever, in nats: what is known of a value changes by a "
        "factor of at most e^EPSILON when it leaves."
    )
    budget: float | None = option("Total leakage allowed, in nats; needs --horizon or --window.")
    horizon: int | None = option("The budget is for this many values of each stream.")
    window: int | None = option("The budget is for any so many successive values, for ever.")
    ldp: float | None = option(
        "Also cap what leaks to an observer who may know anything (LDP), over the same values as "
        "the budget."
    )

    def __init__(self, **typed: Any) -> None:
        from sfumato.core import checks

        for name in ("epsilon", "budget"):
            if typed[name] is not None:
                checks.positive(f"--{name}", typed[name])
        super().__init__(**typed)


class Way(Options):
    """How channels are found."""

    method: str | None = METHOD
    thrift: float | None = THRIFT


class Spread(Options):
    """Where a total is spent."""

    every: str | None = typer.Option(
        None,
        metavar="N|auto",
        help="Spend the total in bursts, one every N values; in between the best guess leaves, "
        "which leaks nothing. 1: evenly. auto, and the default up to 100 values: what loses least "
        "on the model (`plan` shows it).",
    )
    first: float | None = option(
        "The first burst gets so many times what the others do; auto finds it."
    )
    cap: float | None = option("No single value may leak more than this of the total.")

    def number(self) -> int | None:
        """Values from one burst to the next, where a number was given."""
        from sfumato.core.errors import InvalidParameter

        if self.every is None or self.every == "auto":
            return None
        if not (self.every.isascii() and self.every.isdecimal()):
            raise InvalidParameter(
                "--every", self.every, "be a whole number of at least 1, or auto"
            )
        return int(self.every)


class Periods(Options):
    """Budgets that begin anew with time; not for services, whose events need not have times."""

    per: str | None = typer.Option(
        None,
        metavar="PERIOD",
        help="With --budget: it is for each hour, day, week or month of event time (UTC, if times "
        "have a zone), or each so many seconds. Needs --cap, or --horizon for the values that a "
        "stream is expected to have in it.",
    )


def in_words(every: int, first: float) -> str:
    """How a total is spread, as a person would say it, with the options that ask for it."""
    if every == 1:
        return "evenly (--every 1)"
    more = f", the first {first:g} times as large" if first != 1.0 else ""
    asked = f" --first {first:g}" if first != 1.0 else ""
    return f"in bursts, one every {every} values{more} (--every {every}{asked})"


class Series(Options):
    """How a series of numbers is protected."""

    sensitivity: float = required("The most that one person can change any value.")
    epsilon: float = required("Budget of the whole series.")


class Calendar(Options):
    """What comes again in a series."""

    period: str | None = option(
        "What the filter learns to come again: so many rows (7), or of the --time column the "
        "weekday, hour, hour-of-week or month."
    )
    time: str | None = option(
        "Column of the rows' times, which are public: 2011-01-31 or with an hour."
    )


class Repetition(Options):
    """What a source holds that was answered before."""

    resume: bool = flag(
        "--resume", "The same input once more, after an interrupted run; it is compared."
    )
    append: bool = flag("--append", "New data from a source of the same name; streams go on.")

    def checked(self, ledger: str | None) -> Again:
        """Which of the two, if they go together with each other and with the ledger."""
        from sfumato.core.errors import InvalidParameter
        from sfumato.store.protocol import Again

        if self.resume and self.append:
            raise InvalidParameter("--append", self.append, "not come with --resume")
        if self.resume and (ledger is None or not Path(ledger).is_file()):
            raise InvalidParameter("--ledger", ledger, "be the ledger of the interrupted run")
        return Again.RESUME if self.resume else Again.APPEND if self.append else Again.REFUSE


def load_model(path: str) -> StreamModel:
    """A model with its reading rules; a bare chain is read from columns `stream` and `value`."""
    from sfumato.core.errors import CorruptData, InvalidParameter
    from sfumato.models.encoding import Symbols
    from sfumato.models.library import PatternLibrary
    from sfumato.models.markov import MarkovChain
    from sfumato.models.stream_model import StreamModel
    from sfumato.store.files import load

    try:
        model = load(path)
    except FileNotFoundError as problem:
        rule = "the file must exist; it does not. A model is a file that `sfumato fit` writes"
        raise FileNotFoundError(problem.errno, rule, path) from problem
    except CorruptData as problem:
        raise CorruptData(f"{problem}. A model is a file that `sfumato fit` writes") from problem
    if isinstance(model, MarkovChain | PatternLibrary):
        return StreamModel(model, Symbols(model.alphabet))
    if not isinstance(model, StreamModel):
        raise InvalidParameter("--model", path, "hold a chain; fit one with `sfumato fit`")
    return model


def load_steady_model(path: str, instead: str = "") -> StreamModel:
    """The same as `load_model` for a command that knows no models which change with time.

    Args:
        path: The file.
        instead: What can be done with such a model instead.
    """
    return load_model(path).without_phases(instead)
