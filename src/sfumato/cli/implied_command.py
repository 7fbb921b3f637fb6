"""`sfumato implied`: what a guarantee under a prior is worth elsewhere."""

from __future__ import annotations

from sfumato.cli import options
from sfumato.cli.console import print_json, table
from sfumato.cli.options import option, required


class _ImpliedOptions(options.Options):
    prior: str = required("Probabilities of the symbols: 0.5,0.3,0.2 or a file of them.")
    epsilon: float = required("Leakage of a mechanism under that prior (LIP).")
    times: int = option("Used so many times on the same value, independently.", default=1)
    other: str | None = option("Used under this prior instead: another list or file.")
    samples: int | None = option("The prior was estimated from so many samples.")
    failure: float = option("Probability with which that estimate may fail.", default=0.01)
    shown: options.Shown


def implied(given: _ImpliedOptions) -> None:
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
    from sfumato.core.printed import shown_up

    belief = read_belief("--prior", given.prior)
    times = checks.count("--times", given.times, at_most=limits.STEPS)
    bound = LIP(given.epsilon)
    free = relations.ldp_from_lip(bound, belief)
    rows = [
        ("ldp", "model-free leakage (LDP), at most", free.epsilon),
        ("repeated", f"leakage of {times} independent uses, at most", bound.epsilon),
        (
            "identifiability",
            "log quotient of two posteriors, at most",
            relations.identifiability_from_lip(bound, belief),
        ),
        (
            "mutual_information",
            "mutual information in nats, at most",
            relations.information_from_lip(bound),
        ),
        ("maximal_leakage", "maximal leakage, at most", relations.maximal_leakage_from_lip(bound)),
    ]
    if times > 1:
        together = repeated.repeated_bound([bound] * times, belief)
        rows[1] = (*rows[1][:2], together.epsilon)
    if given.other is not None:
        moved = transfer.transferred(bound, belief, read_belief("--other", given.other))
        rows.append(("other", "leakage under the other prior, at most", moved.epsilon))
    if given.samples is not None:
        true = transfer.estimated(bound, belief, given.samples, given.failure)
        said = f"leakage under the true prior, at most (fails with {given.failure:g})"
        rows.append(("estimated", said, true.epsilon))
    if given.shown.as_json:
        print_json({"epsilon": given.epsilon} | {name: value for name, _, value in rows})
        return
    table(
        f"a mechanism that leaks {bound} under this prior",
        ["what", "nats"],
        [[said, shown_up(value)] for _, said, value in rows],
    )
