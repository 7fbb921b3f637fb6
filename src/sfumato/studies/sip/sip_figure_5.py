"""Figure 5 of SIP as a table, sentences and a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial

from sfumato.core.printed import shown_up
from sfumato.plots.points import BatchPoint
from sfumato.studies.sip import sip_batches
from sfumato.studies.sip.batch_claims import claims
from sfumato.studies.sip.batch_drawings import batch_losses
from sfumato.studies.sip.sip_batches import CERTIFIED, FIXED, Comparison
from sfumato.studies.study import Findings, Setting, Work

_SEEN = 1e-3
"""Differences of losses that thinning cannot make."""
QUICK_EPSILONS, QUICK_BRANCHES = (0.5, 1.0, 1.5), 24


def prepare(setting: Setting) -> Work:
    """The figure at all budgets, or at three of them with a thin tree."""
    if setting.quick:
        return figure_work(QUICK_EPSILONS, QUICK_BRANCHES, setting.seed)
    return figure_work(sip_batches.EPSILONS, sip_batches.BRANCHES, setting.seed)


def figure_work(epsilons: tuple[float, ...], branches: int, seed: int) -> Work:
    """The figure.

    Args:
        epsilons: Budgets per value.
        branches: Most beliefs followed at once.
        seed: Of the thinning.
    """

    def run(show: Callable[[int], None]) -> Findings:
        points = sip_batches.batch_points(
            epsilons=epsilons, branches=branches, seed=seed, progress=show
        )
        done = len(points)
        points += sip_batches.sighted_points(
            epsilons=epsilons,
            branches=branches,
            seed=seed,
            progress=lambda more: show(done + more),
        )
        points = sip_batches.silent_points(epsilons=epsilons) + points
        compared = [
            pair
            for chain in sip_batches.SETTINGS
            for epsilon in epsilons
            for pair in sip_batches.compare_widths(chain, epsilon)
        ]
        kink = sip_batches.compare_widths(
            sip_batches.SETTINGS[0], sip_batches.KINK, (5, 6), horizon=30
        )
        return Findings(
            title="expected share of wrong bits / after a best guess (true leakage per value where "
            "it is not what was promised)",
            columns=["curve", *(f"{epsilon:g}" for epsilon in epsilons)],
            rows=_rows(points),
            records=[asdict(point) for point in points],
            facts=_facts(points, compared, kink[0]),
            pictures={"loss-against-leakage": partial(batch_losses, points)},
            claims=claims(points, compared, kink[0]),
            captions={
                "loss-against-leakage": "SIP Fig. 5: rivals stand at what they really leak under "
                "the chain, certified curves at their budget"
            },
        )

    curves = len(sip_batches.CURVES) + 1
    return Work(len(sip_batches.SETTINGS) * len(epsilons) * curves, run)


def _rows(points: list[BatchPoint]) -> list[list[str]]:
    rows: dict[tuple[str, str], list[str]] = {}
    for point in points:
        other = point.curve in FIXED or point.leakage > point.epsilon
        leaked = f" ({shown_up(point.leakage, 3)})" if other else ""
        guessed = f" / {point.guessed_loss:.4g}" if point.loss - point.guessed_loss > _SEEN else ""
        cells = rows.setdefault((point.setting, point.curve), [])
        cells.append(f"{point.loss:.4g}{guessed}{leaked}")
    return [[f"({setting}) {curve}", *cells] for (setting, curve), cells in rows.items()]


def _facts(points: list[BatchPoint], compared: list[Comparison], kink: Comparison) -> list[str]:
    kept = all(p.leakage <= p.epsilon for p in points if p.curve in CERTIFIED)
    worst = max(
        (p for p in points if p.curve == "published"),
        key=lambda point: point.leakage / point.epsilon,
    )
    dearer = [pair for pair in compared if pair.dearer]
    guessed = {(p.setting, p.epsilon): p.guessed_loss for p in points if p.curve == "calibrated"}
    beaten = [
        f"({p.setting}) {p.epsilon:g}"
        for p in points
        if p.curve == "instantaneous" and guessed[p.setting, p.epsilon] < p.loss - _SEEN
    ]
    return [
        f"certified curves leak at most epsilon per value: {'yes' if kept else 'NO'}",
        f"the published rule claims {worst.epsilon:g} and leaks up to {shown_up(worst.leakage, 4)} "
        f"in setting ({worst.setting})",
        f"exactly, over 6 values: wider batches (1, 2, 3, 6) lose more in {len(dearer)} of "
        f"{len(compared)} comparisons",
        f"yet width is no promise: at epsilon {kink.epsilon:.4f} on independent bits, "
        f"batches of {kink.narrow} lose {kink.narrow_loss:.5f}, batches of {kink.wide} lose "
        f"{kink.wide_loss:.5f}",
        "calibrated randomised response and a best guess lose less than the step-by-step optimum "
        f"at: {', '.join(beaten) or 'no budget'}",
        *_sighted_facts(points),
    ]


def _sighted_facts(points: list[BatchPoint]) -> list[str]:
    """What foresight saves, and how far it is from the bound."""
    losses = {(p.curve, p.setting, p.epsilon): p.loss for p in points}
    saved = {
        (setting, epsilon): 1 - loss / losses["instantaneous", setting, epsilon]
        for (curve, setting, epsilon), loss in losses.items()
        if curve == "far-sighted"
    }
    (setting, epsilon), most = max(saved.items(), key=lambda item: item[1])
    loss, bound = (losses[curve, setting, epsilon] for curve in ("far-sighted", "bound"))
    return [
        f"far-sighted steps lose up to {most:.1%} less than step-by-step ones, at ({setting}) "
        f"{epsilon:g}: {loss:.4f}, where nothing value by value is below {bound:.4f}"
    ]
