"""What a release that starts from nothing loses: `python benchmarks/learning_release.py`.

Streams leave by randomised response, and versions are learnt at doubling counts. What is measured
is the loss of values whose truth is drawn from the chain, after the version of the last count: of
streams that move then (for every chain that is left), and of all with the scouts counted in; by the
rules of each edition, beside releases that knew the chain, step-wise and far-sighted, on the same
true values. The context-free outputs are drawn at once by numpy: same channel, same law. The curve
is drawn to `docs/images/learning-release.png`; after the numbers of draws and of streams, words
choose chains (`ring`) and leave the picture as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from chains import Case, binary, ring
from learning import drawn

import sfumato as sf
from sfumato.core.arrays import Floats, Ints
from sfumato.solver.design_methods import Method
from sfumato.stream.block_history import BlockBets
from sfumato.stream.history_paths import draw_paths
from sfumato.stream.learning_rules import EDITIONS, LearningRules
from sfumato.stream.model_versions import ContextFree, ModelVersion, next_version
from sfumato.stream.plan import Plan
from sfumato.stream.simulated_stream import as_simulation, simulated

LIVE, LENGTH, EPSILON, MOMENTS = 40, 25, 1.0, 80
TARGET = Path(__file__).parents[1] / "docs" / "images" / "learning-release.png"
COLOURS = {2: "#8c4a2f", 3: "#2f5f8c", 4: "#2f8c57"}
RULES = {2: "pairs, step-wise", 3: "blocks, far-sighted", 4: "outputs one by one"}


def lost(plan: Plan, walks: Sequence[Sequence[int]], seed: int) -> float:
    """Mean loss of a value given its truth: only outputs that lead to later beliefs are drawn."""
    rule, coins, total = as_simulation(plan), sf.seeded(seed), 0.0
    priced = sf.loss.hamming(plan.model.alphabet).matrix
    for place, walk in enumerate(walks):
        for step in simulated(rule, f"s{place}", walk, coins):
            assert step.found is not None
            channel, (value,) = step.found.design.channel, step.places
            left = step.found.patterns[list(channel.outputs), 0]
            total += float((channel.probabilities[value] * priced[value, left]).sum())
    return total / sum(map(len, walks))


def outputs(rules: LearningRules, truth: Ints, seed: int) -> Ints:
    """Context-free outputs, a row a stream."""
    rng, sums = np.random.default_rng(seed), rules.channel.cumsum(axis=1)
    left = (rng.random(truth.shape)[..., None] > sums[truth]).sum(axis=2)
    return np.asarray(np.minimum(left, len(rules.channel) - 1).astype(np.uint8))


def learnt(rules: LearningRules, left: Ints) -> ModelVersion:
    """The version after all values, streams having waited for it; a count is a row of moments."""
    versions: list[ModelVersion] = []
    bets, names = BlockBets(), [f"s{place}" for place in range(len(left))]
    moments = [left.shape[1] >> halvings for halvings in range(4, -1, -1)]
    for until in moments:
        told = {name: row[:until].tobytes() for name, row in zip(names, left, strict=True)}
        context_free, sums = ContextFree(told), None
        if rules.edition > 2:
            last = versions[-1].chains if versions else None
            bets = bets.after(rules, context_free, None if last is None else last.estimate)
            sums = bets.everyone
        elif until < moments[-1]:
            continue  # its bets do not go on: what came before takes a part of the failure alone
        versions.append(next_version(rules, versions, context_free, sums))
    return versions[-1]


def measured(case: Case, streams: int, draws: int) -> dict[int, Floats]:
    """Print a row for each edition: means over draws, and their standard errors."""
    chain, found = case.chain, {edition: list[tuple[float, ...]]() for edition in EDITIONS}
    alphabet, budget = chain.alphabet, sf.PerStep(sf.SIP(EPSILON))
    priced = sf.loss.hamming(alphabet)
    ahead = Plan(chain, budget, priced, method=Method.FAR_SIGHTED)
    for draw in range(draws):
        truth = drawn(chain, streams, MOMENTS, 100 + draw)
        walks = draw_paths(chain, LENGTH, LIVE, 300 + draw)
        best, near = lost(ahead, walks, draw), lost(Plan(chain, budget, priced), walks, draw)
        shared: ModelVersion | None = None
        for edition in EDITIONS:
            rules = LearningRules(alphabet, budget, priced, first=1, ready=0.999, edition=edition)
            version = shared or learnt(rules, outputs(rules, truth, 200 + draw))
            shared = version if edition > 2 else None  # later editions learn alike
            assert version.chains is not None
            moved = lost(rules.plan(version.chains), walks, draw)
            free = float((rules.channel * priced.matrix).sum(axis=1).mean())
            whole = moved + (free - moved) / rules.scouts
            told = (version.chains.widest, moved, whole, near, best)
            inside = float(version.chains.contains(chain))
            found[edition].append((*told, moved / best - 1, whole / best - 1, inside))
    for edition, rows in found.items():
        _print(case, streams, edition, np.array(rows))
    return {edition: np.array(rows) for edition, rows in found.items()}


def _print(case: Case, streams: int, edition: int, table: Floats) -> None:
    draws, mean = len(table), table.mean(axis=0)
    error = table.std(axis=0, ddof=1) / np.sqrt(draws)
    cells = [f"{mean[0]:.3f}", *(f"{mean[place]:.4f}" for place in (1, 2, 3, 4))]
    cells += [f"{mean[place]:+.1%} +- {error[place]:.1%}" for place in (5, 6)]
    cells.append(f"{int(table[:, 7].sum())}/{draws}")
    print(
        f"| {case.name} | {streams * MOMENTS:,} | {RULES[edition]} | {' | '.join(cells)} |",
        flush=True,
    )


def draw_curves(curves: dict[str, dict[int, list[tuple[int, Floats]]]]) -> None:
    """The picture: how much more often wrong than who knew the chain and looked ahead."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(curves), figsize=(9, 3.6), squeeze=False)
    for panel, (name, editions) in zip(panels[0], curves.items(), strict=True):
        for edition, points in editions.items():
            values = [size for size, _ in points]
            means = [100 * table[:, 6].mean() for _, table in points]
            spread = [200 * table[:, 6].std(ddof=1) / len(table) ** 0.5 for _, table in points]
            style = {"color": COLOURS[edition], "label": RULES[edition]}
            panel.errorbar(values, means, spread, marker="o", **style)
        known = np.concatenate([table for _, table in editions[EDITIONS[0]]])
        step_wise = 100 * float((known[:, 3] / known[:, 4]).mean() - 1)
        panel.axhline(step_wise, color="#777777", linestyle=":", label="knew the chain, step-wise")
        panel.axhline(10, color="#bbbbbb", linewidth=0.8)
        panel.set(xscale="log", title=name, xlabel="context-free values", ylim=(0, None))
    panels[0][0].set_ylabel("% more often wrong than\nfar-sighted with the chain known")
    panels[0][0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(TARGET, dpi=130)


def main(draws: int, sizes: Sequence[int], names: Sequence[str] = ()) -> None:
    """Print the table, draw the curves of all chains."""
    print(
        "| chain | context-free values | rules | widest interval | wrong, moved | wrong, all | "
        "wrong, known step-wise | wrong, known far-sighted | more, moved | more, all | in the set |"
    )
    print("|" + "---|" * 11, flush=True)
    curves: dict[str, dict[int, list[tuple[int, Floats]]]] = {}
    cases = (binary(), ring(4, 0.8))
    for case in [case for case in cases if not names or case.name.split()[0] in names]:
        points: dict[int, list[tuple[int, Floats]]] = {edition: [] for edition in EDITIONS}
        for streams in sizes:
            for edition, table in measured(case, streams, draws).items():
                points[edition].append((streams * MOMENTS, table))
        curves[case.name] = points
    if len(curves) == len(cases):
        draw_curves(curves)


if __name__ == "__main__":
    given = [int(one) for one in sys.argv[1:] if one.isdigit()]
    chosen = [one for one in sys.argv[1:] if not one.isdigit()]
    main(given[0] if given else 4, given[1:] or (1_000, 5_000, 20_000, 75_000, 160_000), chosen)
