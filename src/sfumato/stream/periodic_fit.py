"""From the times of a recorded table to phases, and what a chain with phases rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Ints
from sfumato.core.errors import InvalidParameter
from sfumato.models.cycle import Cycle
from sfumato.models.encoding import Raw, Unreadable
from sfumato.models.fitting import smoothed_parts
from sfumato.models.markov import MarkovChain
from sfumato.models.periodic import PeriodicChain
from sfumato.models.periodic_fitting import count_by_phase
from sfumato.stream.fit_report import FitReport, chain_report, row_entropies
from sfumato.stream.input_rows import phase_of
from sfumato.tables.cells import Time
from sfumato.tables.problems import BadTable


def check_cycle(cycle: Cycle | None, time: str | None, order: int, batch: int | None) -> None:
    """Refuse what a chain with phases cannot be, and times that nobody would look at."""
    if cycle is None:
        if time is not None:
            raise InvalidParameter("--time", time, "come with --period: else times are not used")
        return
    if order != 1 or batch is not None:
        name, value = ("--order", order) if order != 1 else ("--batch", batch)
        raise InvalidParameter(name, value, "not come with --period: phases have order 1")
    if cycle.in_turn and time is not None:
        rule = "not come with a number of values: the phase is the place in the stream then"
        raise InvalidParameter("--time", time, rule)
    if not cycle.in_turn and time is None:
        raise InvalidParameter("--time", None, "name the column of times that --period is of")


def row_phases(
    cycle: Cycle, times: Sequence[Raw] | None, paths: Sequence[Sequence[int]], source: str
) -> tuple[Cycle, Ints]:
    """The phase of each row of a table, and the cycle with what its times are.

    Args:
        cycle: What comes again.
        times: The column of times; None where values have phases in turn.
        paths: The rows of each stream, counted from 0, in order.
        source: The table, for messages.

    Raises:
        BadTable: If a time is missing, unreadable, of another kind, or goes back in its stream.
    """
    phases = np.zeros(sum(map(len, paths)), dtype=np.int64)
    if times is None:
        for path in paths:
            phases[path] = [cycle.turn(place) for place in range(len(path))]
        return cycle, phases
    read = [_time(cell, source, row) for row, cell in enumerate(times, start=1)]
    zone = getattr(read[0].value, "tzinfo", None)
    known = replace(cycle, zoned=zone is not None)
    for row, time in enumerate(read):
        try:
            phases[row] = phase_of(known, time)
        except Unreadable as problem:
            raise BadTable(source, row + 1, str(problem)) from None
    for path in paths:
        for before, after in pairwise(path):
            if read[after].before(read[before]):
                rule = "the time must not lie before that of the row before it in its stream"
                raise BadTable(source, after + 1, rule)
    return known, phases


def _time(cell: Raw, source: str, row: int) -> Time:
    try:
        return Time.of(cell)
    except Unreadable as problem:
        raise BadTable(source, row, f"the time {problem}") from None


def periodic_report(
    chain: PeriodicChain,
    paths: Sequence[Ints],
    phases: Sequence[Ints],
    smoothing: tuple[float, float],
) -> FitReport:
    """What a chain with phases rests on: what one without them would, and what phases predict."""
    counts = count_by_phase(paths, phases, chain.size, chain.cycle.phases)
    common = MarkovChain(chain.alphabet, 1, *smoothed_parts(counts.together, 1, *smoothing))
    seen = np.asarray(counts.together.moves.sum(axis=1)).ravel()
    report = chain_report(common, paths, seen)
    own = np.asarray(counts.moves.sum(axis=1)).reshape(chain.cycle.phases, chain.size)
    left = sum(
        float(portable.dot(weights, row_entropies(chain.at(phase))))
        for phase, weights in enumerate(own)
    )
    symbols = counts.together.symbols
    share = symbols[symbols > 0] / symbols.sum()
    alone = float(-(share * portable.log(share)).sum())
    told = 1 - left / max(own.sum(), 1.0) / alone if alone > 0 else 0.0
    return replace(report, predictability=max(0.0, told))
