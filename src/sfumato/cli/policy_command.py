"""`sfumato compile`: from a model and a budget to channels that are ready to use."""

from __future__ import annotations

from typing import Annotated

import typer

from sfumato.cli import options
from sfumato.cli.console import hold, print_json, progress, say


def compile_policy(
    model: options.Model,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="The policy; beside the model if not given."),
    ] = None,
    epsilon: options.Epsilon = None,
    budget: options.Budget = None,
    horizon: options.Horizon = None,
    window: options.Window = None,
    ldp: options.Ldp = None,
    loss: options.Loss = None,
    method: options.Method = "optimal",
    batch: Annotated[
        int | None, typer.Option(help="For `release --batch`: values that leave together.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Simulated steps; more of them cover more beliefs.")
    ] = None,
    tolerance: Annotated[
        float, typer.Option(help="Part of the loss that is not worth another channel.")
    ] = 0.005,
    max_channels: Annotated[int, typer.Option(help="Keep no more channels than this.")] = 2_000,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Compile a policy, so that a release takes microseconds a value.

    Streams are simulated, channels are kept for the beliefs that occur, and a second simulation
    measures how much more the policy loses than the best channel at every step. Each
    use of a kept channel is certified anew: a policy changes what a release loses, never
    what it leaks. Give the same budget and loss to `compile` and `release`.

    \b
    Examples:
      sfumato compile -m city.model --epsilon 0.5 --loss euclidean
      sfumato release live.csv -m city.model --policy city.policy --epsilon 0.5 --loss euclidean \\
        -o private.csv
    """
    from dataclasses import asdict
    from pathlib import Path

    from sfumato.core.errors import InvalidParameter
    from sfumato.store.files import save
    from sfumato.stream.policy_files import beside_model, compile_for
    from sfumato.stream.release_spec import ReleaseSpec
    from sfumato.tables.readers import same_file

    read = options.load_model(model)
    target = output or str(beside_model(model))
    if same_file(model, target) or Path(target).is_dir() or not Path(target).parent.is_dir():
        raise InvalidParameter("--output", target, "be a new file in a folder that exists")
    hold(target)
    spec = ReleaseSpec(
        epsilon=epsilon,
        budget=budget,
        horizon=horizon,
        window=window,
        ldp=ldp,
        loss=loss,
        batch=batch,
        method=method,
    )
    with progress("compiling, in percent", 100, quiet or as_json) as show:
        policy = compile_for(
            read,
            spec,
            tolerance=tolerance,
            max_channels=max_channels,
            steps=steps,
            progress=lambda done, whole: show(100 * done // whole),
        )
    save(policy, target)
    if as_json:
        facts = {"channels": policy.channels, "bytes": policy.memory, **asdict(policy.report)}
        print_json({"output": target, "epsilon": policy.epsilon, "ldp": policy.ldp, **facts})
    elif not quiet:
        report = policy.report
        say(
            f"{target}: {policy.channels:,} channels, {policy.memory / 1e6:.1f} MB; loses at most "
            f"{100 * report.extra_loss:.2f} % more than the best channel at every step, and "
            f"solves {100 * report.missed:.2f} % of the steps on the spot "
            f"({report.steps:,} simulated steps)"
        )
