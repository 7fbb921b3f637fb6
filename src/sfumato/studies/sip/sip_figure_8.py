"""Figure 8 of SIP: how often people are found again in released gaze, by several attackers.

The paper has ten people with five hours each and a network of which it says little. Here are the
recordings of Lund 2013: 13 minutes of thirty people, of whom some have too few. Values are taken 25
times a second on six cells, and pieces have 30 of them. Beside the network, which learns from known
values with and without what the chain makes of outputs, stands the exact likelihood under the chain
of each person: nobody does better who believes these chains.

References:
    [SIP, Fig. 8], [SIP, Sec. VI-B]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial

from sfumato.attacks.recurrent_network import NetworkSpec, load_torch
from sfumato.core.printed import shown_up
from sfumato.studies.data import data_files
from sfumato.studies.data.gaze_data import Grid, gaze
from sfumato.studies.sip.gaze_owners import (
    RAW,
    WAYS,
    Owners,
    OwnersFound,
    attack_raw,
    attack_way,
    can_be_of,
)
from sfumato.studies.sip.owner_claims import claims, facts
from sfumato.studies.sip.owner_drawings import owners_against_epsilon
from sfumato.studies.study import Findings, Setting, Work

GRID, THIN, LENGTH, EACH, KNOWN = Grid(3, 2), 2, 30, 3, 400
EPSILONS, QUICK_EPSILONS = (0.25, 0.5, 1.0, 2.0), (0.5, 2.0)
ORDERS, QUICK_ORDERS = (1, 2), (1,)
RUNS, QUICK_RUNS = 3, 1
STEPS, QUICK_STEPS = 400, 60
QUICK_WAYS = ("k-RR, epsilon-LDP", "temporal LDP", "instantaneous")


def prepare(setting: Setting) -> Work:
    """Everybody who has enough pieces; a few ways, budgets and steps of learning if quick."""
    load_torch()
    seen = gaze(setting.path(data_files.GAZE), GRID)
    owners = Owners.of(seen, THIN, LENGTH, EACH, KNOWN)
    stand_ins = [f"gaze: {data_files.GAZE.name}"] if seen.simulated else []
    steps = QUICK_STEPS if setting.quick else STEPS
    network = NetworkSpec(hidden=32, window=LENGTH, steps=steps, seed=setting.seed)
    if setting.quick:
        ways, runs = QUICK_WAYS, QUICK_RUNS
        return figure_work(owners, QUICK_ORDERS, QUICK_EPSILONS, ways, runs, network, stand_ins)
    return figure_work(owners, ORDERS, EPSILONS, tuple(WAYS), RUNS, network, stand_ins)


def figure_work(
    owners: Owners,
    orders: Sequence[int],
    epsilons: Sequence[float],
    ways: Sequence[str],
    runs: int,
    network: NetworkSpec,
    stand_ins: list[str],
) -> Work:
    """The figure, for some people, ways and budgets."""

    def run(show: Callable[[int], None]) -> Findings:
        points: list[OwnersFound] = []
        done = 0
        for order in orders:
            points += attack_raw(owners, order, network)
            show(done := done + 1)
            for epsilon in epsilons:
                for way in [one for one in ways if can_be_of(one, order)]:
                    points += attack_way(owners, way, order, epsilon, runs, network)
                    show(done := done + 1)
        return _findings(points, owners, epsilons, stand_ins)

    made = sum(can_be_of(way, order) for order in orders for way in ways)
    return Work(len(orders) + len(epsilons) * made, run)


def _findings(
    points: list[OwnersFound], owners: Owners, epsilons: Sequence[float], stand_ins: list[str]
) -> Findings:
    people = len(owners.known)
    return Findings(
        title=f"share of pieces whose owner, of {people} people, is the first guess; by chance "
        f"{points[0].chance:.1%}",
        columns=["order, release, attacker", *(f"{epsilon:g}" for epsilon in epsilons)],
        rows=_rows(points, epsilons),
        records=[asdict(point) for point in points],
        facts=facts(points),
        pictures={"owners-found": partial(owners_against_epsilon, points)},
        claims=claims(points),
        stand_ins=stand_ins,
        captions={
            "owners-found": "Share of pieces whose owner is the first guess, against what was "
            "promised per value; bars are two standard errors between people, the dashed line is "
            "the same attack on true values, the dotted one is chance."
        },
    )


def _rows(points: Sequence[OwnersFound], epsilons: Sequence[float]) -> list[list[str]]:
    lines: dict[tuple[int, str, str], list[str]] = {}
    for point in points:
        cell = f"{point.rate:.3f} +- {2 * point.error:.3f}"
        if point.curve != RAW:
            cell += f" ({shown_up(point.leakage, 2)})"
        line = lines.setdefault((point.order, point.curve, point.attacker), [])
        line += [cell] * (len(epsilons) if point.curve == RAW else 1)
    return [[f"{order}, {way}, {who}", *cells] for (order, way, who), cells in lines.items()]
