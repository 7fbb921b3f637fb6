"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from sfumato.core.randomness import Randomness
    from sfumato.models.encoding import StreamModel

Model = Annotated[
    str,
    typer.Option("--model", "-m", help="The model that `sfumato fit` wrote.", show_default=False),
]
Epsilon = Annotated[
    float | None,
    typer.Option(help="Leakage allowed per value, for ever (natural logarithm of the ratio)."),
]
Budget = Annotated[
    float | None, typer.Option(help="Total leakage allowed; needs --horizon or --window.")
]
Horizon = Annotated[
    int | None, typer.Option(help="The budget is for this many values of each stream.")
]
Window = Annotated[
    int | None, typer.Option(help="The budget is for any this many successive values, for ever.")
]
Ldp = Annotated[
    float | None,
    typer.Option(help="Also cap the model-free leakage, over the same values as the budget."),
]
Loss = Annotated[
    str | None,
    typer.Option(
        help="What a wrong value costs: hamming, absolute, squared, euclidean, great-circle (km "
        "between longitudes and latitudes), or a CSV file with a matrix (row: true symbol, column: "
        "released symbol); of a batch also histogram. If not given: the distance for bins and "
        "grids, hamming for names.",
        show_default=False,
    ),
]
Method = Annotated[
    str,
    typer.Option(
        help="optimal, calibrated, randomized-response, context-free, or published (the paper's "
        "rule, which leaks more than it claims)."
    ),
]
Policy = Annotated[
    str | None,
    typer.Option(help="Channels that `sfumato compile` made for this model, loss and budget."),
]
KeyFile = Annotated[
    str | None,
    typer.Option(help="Secret for coins that are the same again for the same values."),
]
StreamKeyFile = Annotated[
    str | None,
    typer.Option(help="Secret for coins that depend on plan, stream and sequence alone."),
]
SharedKey = Annotated[
    bool,
    typer.Option("--shared-key", help="The key file may be readable by group or others."),
]
Seed = Annotated[
    int | None,
    typer.Option(help="INSECURE: guessable coins; the output is a simulation, not a release."),
]
Independent = Annotated[
    str | None,
    typer.Option(
        help="Kept columns that you declare to tell nothing of what is released: id,wave. Others "
        "are knowledge, and what is promised holds within every group of equal values of them."
    ),
]
Missing = Annotated[
    str,
    typer.Option(
        "--missing",
        help="What becomes of a missing value: refuse (nothing is released), drop (its row leaves "
        "out), symbol (a symbol of its own, as private as any), skip (nothing leaves for it but "
        "its moment passes; for values over time).",
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        help="What stands between the columns of CSV tables: comma, semicolon or tab; their first "
        "line tells if not given."
    ),
]
Period = Annotated[
    str | None,
    typer.Option(
        help="What the filter learns to come again: so many rows (7), or of the --time column the "
        "weekday, hour, hour-of-week or month."
    ),
]
Time = Annotated[
    str | None,
    typer.Option(help="Column of the rows' times, which are public: 2011-01-31 or with an hour."),
]
Event = Annotated[
    str | None,
    typer.Option(help="Column of event ids; an id that comes again gets its old answer."),
]
Ledger = Annotated[
    str | None,
    typer.Option(
        help="File that keeps every answer: a retry draws nothing anew, and streams go on over "
        "many files and days. LEDGER.head and LEDGER.key lie beside it."
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="The same input once more, after an interrupted run; it is compared."
    ),
]
Append = Annotated[
    bool,
    typer.Option("--append", help="New data from a source of the same name; streams go on."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no remarks.")]


def load_model(path: str) -> StreamModel:
    """A model with its reading rules; a bare chain is read from columns `stream` and `value`."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.models.encoding import StreamModel, Symbols
    from sfumato.models.library import PatternLibrary
    from sfumato.models.markov import MarkovChain
    from sfumato.store.files import load

    model = load(path)
    if isinstance(model, MarkovChain | PatternLibrary):
        return StreamModel(model, Symbols(model.alphabet))
    if not isinstance(model, StreamModel):
        raise InvalidParameter("--model", path, "hold a chain; fit one with `sfumato fit`")
    return model


def coins(
    key_file: str | None, seed: int | None, public: list[str | None], *, shared: bool
) -> Randomness | None:
    """Coins from a secret or a seed; None, which means secure ones, if neither is given.

    Args:
        key_file: Where the secret is.
        seed: For a simulation.
        public: The other files of the command: none of them is a secret.
        shared: Whether others may be able to read the key.
    """
    from sfumato.core.errors import InvalidParameter
    from sfumato.core.randomness import keyed, seeded
    from sfumato.store.keys import read_key

    if key_file is not None and seed is not None:
        raise InvalidParameter("--seed", seed, "not come with --key-file")
    if shared and key_file is None:
        raise InvalidParameter("--shared-key", True, "come with --key-file")
    if key_file is None:
        return None if seed is None else seeded(seed)
    try:
        return keyed(read_key(key_file, public=public, shared=shared))
    except InvalidParameter as problem:
        rule = problem.rule.replace("be declared shared", "come with --shared-key")
        raise InvalidParameter("--key-file", problem.value, rule) from None
