"""Which length of batch: loss, delay and time side by side, before anything is released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core import checks
from sfumato.core.errors import InvalidParameter
from sfumato.core.progress import Progress
from sfumato.core.randomness import seeded
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.models.periodic import PeriodicChain
from sfumato.stream.history_paths import draw_paths, mean_and_error
from sfumato.stream.plan import Plan
from sfumato.stream.silence import Silence
from sfumato.stream.simulated_stream import as_simulation, simulated


@dataclass(frozen=True, slots=True)
class WidthForecast:
    """What batches of one length would do, on average over a simulated stream.

    Attributes:
        width: Values of a batch.
        loss: Expected loss per value.
        loss_error: Its standard error over streams; infinite for one stream.
        gap: How much of it a better channel for the same batches could save at most, per value;
            None where batches are too many to be listed, so that no bound is known.
        sip: Leakage per value under the model: that of a batch over its values.
        ldp: Model-free leakage per value.
        mean_delay: How many values a value waits for on average.
        longest_delay: How many values the first of a batch waits for.
        seconds: Time to find and draw one batch, mean; designs that repeat are found once.
        slowest: The longest time of one batch.
        parts: How many parts the channel tells apart, at most.
        exact: Whether the program over all batches was solved, not one on boxes of them.
    """

    width: int
    loss: float
    loss_error: float
    gap: float | None
    sip: float
    ldp: float
    mean_delay: float
    longest_delay: int
    seconds: float
    slowest: float
    parts: int
    exact: bool


def forecast_widths(
    plan: Plan,
    widths: Sequence[int],
    *,
    steps: int,
    streams: int = 4,
    seed: int = 1,
    progress: Progress | None = None,
) -> list[WidthForecast]:
    """Compare lengths of batches on streams drawn from the model itself, at equal budget.

    Args:
        plan: The rule of the release; its own width is put aside.
        widths: Lengths to compare.
        steps: How many values each stream has.
        streams: How many streams are simulated for each width.
        seed: Of the simulation.
        progress: Called with the number of values done so far, over all widths.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> loss = sf.stream.batch_loss.additive(sf.loss.hamming(chain.alphabet))
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), loss, width=1)
        >>> one, three = forecast_widths(plan, [1, 3], steps=30)
        >>> three.loss < one.loss, three.longest_delay
        (True, 2)
    """
    if isinstance(plan.model, PatternLibrary):
        raise InvalidParameter("model", "a library of patterns", "be a chain, to compare widths")
    if isinstance(plan.model, PeriodicChain):
        rule = "be a chain that does not change with time, to compare widths"
        raise InvalidParameter("model", "a chain with phases", rule)
    if not widths or len(set(widths)) != len(widths):
        raise InvalidParameter("--batch", tuple(widths), "be different whole numbers")
    rows = []
    for done, width in enumerate(widths):
        each = steps * streams
        told = (lambda n, base=done * each: progress(base + n)) if progress else None
        checks.count("--batch", width)
        rows.append(_forecast(plan, width, (steps, streams), seed, told))
    return rows


def silent_loss(plan: Plan, steps: int) -> float | None:
    """What the best constant of each moment loses per value; None for losses of whole batches."""
    loss = plan.value_loss
    if isinstance(plan.model, PatternLibrary | PeriodicChain) or loss is None:
        return None
    silence = Silence(plan.model, loss)
    return sum(silence.at(moment)[1] for moment in range(steps)) / steps


def _forecast(
    plan: Plan, width: int, size: tuple[int, int], seed: int, progress: Progress | None
) -> WidthForecast:
    rule = as_simulation(plan, width=width)
    assert isinstance(plan.model, MarkovChain)
    steps, streams = size
    coins, times = seeded(seed), list[float]()
    gap, cells, exact = 0.0, 1, True
    # Loss, both leakages and values of each stream.
    sums = np.zeros((4, streams))
    for number, path in enumerate(draw_paths(plan.model, steps, streams, seed)):
        for step in simulated(rule, f"stream {number}", path, coins):
            if step.found is None:
                break  # the budget is gone: what was released so far is compared
            design, ledger = step.found.design, step.following.ledger
            times.append(step.seconds)
            sums[0, number] += design.cost
            sums[1:, number] = ledger.sip, ledger.ldp, step.following.sequence
            gap += design.gap or 0.0
            cells = max(cells, step.found.partition.masses.size)
            exact = exact and step.found.exact
            if progress:
                progress(number * steps + step.following.sequence)
    done = max(float(sums[3].sum()), 1.0)
    loss, error = mean_and_error(sums[0], np.maximum(sums[3], 1.0))
    return WidthForecast(
        width=width,
        loss=loss,
        loss_error=error,
        gap=gap / done if exact else None,
        sip=float(sums[1].sum()) / done,
        ldp=float(sums[2].sum()) / done,
        mean_delay=(width - 1) / 2,
        longest_delay=width - 1,
        seconds=sum(times) / max(len(times), 1),
        slowest=max(times, default=0.0),
        parts=cells,
        exact=exact,
    )
