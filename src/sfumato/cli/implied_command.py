"""`sfumato implied`: what a guarantee under a prior is worth elsewhere."""

from __future__ import annotations

from typing import Annotated

import typer

from sfumato.cli import options
from sfumato.cli.console import print_json, table


def implied(
    prior: Annotated[
        str, typer.Option(help="Probabilities of the symbols: 0.5,0.3,0.2 or a file of them.")
    ],
    epsilon: Annotated[float, typer.Option(help="Leakage of a mechanism under that prior (LIP).")],
    times: Annotated[
        int, typer.Option(help="Used so many times on the same value, independently.")
    ] = 1,
    other: Annotated[
        str | None, typer.Option(help="Used under this prior instead: another list or file.")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(help="The prior was estimated from so many samples.")
    ] = None,
    failure: Annotated[
        float, typer.Option(help="Probability with which that estimate may fail.")
    ] = 0.01,
    as_json: options.Json = False,
) -> None:
    """What a leakage under one prior implies under other notions, priors and repetitions.

    Bounds that hold for every mechanism with this leakage; a mechanism at hand leaks less, and
    `sfumato design` or `sfumato privatize` say how much exactly.

    \b
    Examples:
      sfumato implied --prior 0.25,0.25,0.25,0.25 --epsilon 1
      sfumato implied --prior 0.7,0.1,0.1,0.1 --epsilon 1 --times 3
      sfumato implied --prior 0.5,0.5 --epsilon 1 --other 0.6,0.4 --samples 10000
    """
    from sfumato.cli.design_command import read_belief
    from sfumato.column import leakage_transfer as transfer
    from sfumato.column import notion_relations as relations
    from sfumato.column import repeated_leakage as repeated
    from sfumato.core import checks, limits
    from sfumato.core.guarantees import LIP
    from sfumato.core.numerics import shown_up

    belief = read_belief("--prior", prior)
    checks.count("--times", times, at_most=limits.STEPS)
    given = LIP(epsilon)
    free = relations.ldp_from_lip(given, belief)
    rows = [
        ("ldp", "model-free leakage (LDP), at most", free.epsilon),
        ("repeated", f"leakage of {times} independent uses, at most", given.epsilon),
        (
            "identifiability",
            "log quotient of two posteriors, at most",
            relations.identifiability_from_lip(given, belief),
        ),
        (
            "mutual_information",
            "mutual information in nats, at most",
            relations.information_from_lip(given),
        ),
        ("maximal_leakage", "maximal leakage, at most", relations.maximal_leakage_from_lip(given)),
    ]
    if times > 1:
        bound = repeated.repeated_bound([given] * times, belief)
        rows[1] = (*rows[1][:2], bound.epsilon)
    if other is not None:
        moved = transfer.transferred(given, belief, read_belief("--other", other))
        rows.append(("other", "leakage under the other prior, at most", moved.epsilon))
    if samples is not None:
        true = transfer.estimated(given, belief, samples, failure)
        said = f"leakage under the true prior, at most (fails with {failure:g})"
        rows.append(("estimated", said, true.epsilon))
    if as_json:
        print_json({"epsilon": epsilon} | {name: value for name, _, value in rows})
        return
    table(
        f"a mechanism that leaks {given} under this prior",
        ["what", "nats"],
        [[said, shown_up(value)] for _, said, value in rows],
    )
