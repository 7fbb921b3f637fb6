"""`sfumato compile`: from a model and a budget to channels that are ready to use."""

from __future__ import annotations

from sfumato.cli import options
from sfumato.cli.console import hold, print_json, progress, say
from sfumato.cli.options import option


class _CompileOptions(options.Options):
    model: str = options.MODEL
    output: str | None = option("The policy; beside the model if not given.", "--output", "-o")
    allowed: options.Budget
    spread: options.Spread
    periods: options.Periods
    loss: str | None = options.LOSS
    way: options.Way
    batch: int | None = option("For `release --batch`: values that leave together.")
    kind: str | None = option(
        "`kept`: channels for the beliefs that occur, found now; or `solved`: a small program at "
        "each step, for the belief of its moment [solved beyond 32 symbols, in tens of "
        "microseconds, and far-sighted for 3 to 24, in some]."
    )
    steps: int | None = option("Simulated steps; more of them cover more beliefs.")
    tolerance: float = option("Part of the loss that is not worth another channel.", default=0.005)
    max_channels: int = option("Keep no more channels than this.", default=2_000)
    repair_limit: float | None = option(
        "Keep channels; a step at which each of them would cost this part more than it should is "
        "solved on the spot, in milliseconds; 1 means hardly ever [0.2, far-sighted 0.1]."
    )
    shown: options.Shown


def compile_policy(given: _CompileOptions) -> None:
    """Compile a policy, so that a release takes microseconds a value.

    Streams are simulated, channels are kept for the beliefs that occur, and a second simulation
    measures how much more the policy loses than the best channel at every step. Each
    use of a kept channel is certified anew: a policy changes what a release loses, never
    what it leaks. On large alphabets, and for far-sighted releases, no channels are kept: each step
    solves a small program, and the simulation measures how near it comes. Give the same budget and
    loss to `compile` and `release`: a release to which no policy is given finds that of its model
    beside it if each step of it solves a small program, or it is far-sighted.

    \b
    Examples:
      sfumato compile -m city.model --epsilon 0.5 --loss euclidean
      sfumato release live.csv -m city.model --policy city.policy --epsilon 0.5 --loss euclidean \\
        -o private.csv
    """
    from dataclasses import asdict
    from pathlib import Path

    from sfumato.cli.rule_choice import RuleChoice
    from sfumato.core.errors import InvalidParameter
    from sfumato.store.files import save
    from sfumato.stream.policy_files import beside_model, compile_for
    from sfumato.stream.release_spec import ReleaseSpec
    from sfumato.tables.readers import same_file

    read = options.load_steady_model(
        given.model, "`release` solves each of their steps without a policy"
    )
    target = given.output or str(beside_model(given.model))
    if same_file(given.model, target) or Path(target).is_dir() or not Path(target).parent.is_dir():
        raise InvalidParameter("--output", target, "be a new file in a folder that exists")
    hold(target)
    spec = options.spec_from(ReleaseSpec, given, model=None, every=None, method="")
    spec = RuleChoice(given.model, read, given.way, given.spread, given.shown).completed(spec)
    with progress("compiling, in percent", 100, given.shown.no_progress) as show:
        policy = compile_for(
            read,
            spec,
            tolerance=given.tolerance,
            max_channels=given.max_channels,
            repair_limit=given.repair_limit,
            steps=given.steps,
            kind=given.kind,
            progress=lambda done, whole: show(100 * done // whole),
        )
    save(policy, target)
    if given.shown.as_json:
        facts = {
            "channels": policy.channels,
            "bytes": policy.memory,
            **asdict(policy.report),
        }
        print_json({"output": target, "epsilon": policy.epsilon, "ldp": policy.ldp, **facts})
    elif not given.shown.quiet:
        report = policy.report
        loses, than = "loses at most", "the best channel at every step"
        if policy.sight is not None:
            loses, than = "loses about", "far-sighted steps that are all solved on the spot"
        channels = f"{policy.channels:,} channels"
        spots = f", and solves {100 * report.missed:.2f} % of the steps on the spot"
        if policy.solves:
            channels, spots = "a small program for each step", ""
        if policy.solves and policy.sight is not None:
            loses = "by what beliefs are thought to be worth, a step costs"
        say(
            f"{target}: {channels}, {policy.memory / 1e6:.1f} MB; {loses} "
            f"{100 * report.extra_loss:.2f} % more than {than}{spots} "
            f"({report.steps:,} simulated steps)"
        )
