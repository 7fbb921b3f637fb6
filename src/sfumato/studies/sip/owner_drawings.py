"""Who is found again: rates against what was promised, one panel an order and attacker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato.plots.colours import BLUE, DARK, GREEN, GREY, ORANGE
from sfumato.plots.figures import new_figure, save_figure
from sfumato.studies.sip.gaze_owners import EXACT, NETWORK, RAW, WAYS, OwnersFound

_STYLES = dict(
    zip(
        WAYS,
        (
            (GREY, "o", "-"),
            (DARK, "s", "-"),
            (BLUE, "o", "-"),
            (GREEN, "D", "-"),
            (ORANGE, "^", "-"),
        ),
        strict=True,
    )
)


def owners_against_epsilon(points: Sequence[OwnersFound], path: str | Path) -> None:
    """Rates of each release, by each attacker, beside true values and chance."""
    panels = list(dict.fromkeys((one.order, one.attacker) for one in points if one.curve != RAW))
    figure, drawn = new_figure(3.3 * len(panels), 3.4, columns=len(panels))
    top = 1.1 * max(point.rate + 2 * point.error for point in points)
    for place, (axes, (order, attacker)) in enumerate(zip(drawn, panels, strict=True)):
        own = [one for one in points if (one.order, one.attacker) == (order, attacker)]
        _panel(axes, own, points, order, attacker)
        axes.set_ylim(0, top)
        if place == 0:
            axes.set_ylabel("owner is the first guess")
    handles, names = drawn[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=8, frameon=False, fontsize=8)
    save_figure(figure, path)


def _panel(
    axes: Any, own: Sequence[OwnersFound], points: Sequence[OwnersFound], order: int, attacker: str
) -> None:
    curves = list(dict.fromkeys(one.curve for one in own if one.curve != RAW))
    for shift, curve in enumerate(curves):
        line = sorted((one for one in own if one.curve == curve), key=lambda one: one.epsilon)
        colour, marker, style = _STYLES[curve]
        # Points stand side by side, so that bars of errors can be told apart.
        places = [one.epsilon * 1.03 ** (shift - len(curves) / 2) for one in line]
        axes.errorbar(
            places,
            [one.rate for one in line],
            [2 * one.error for one in line],
            color=colour,
            marker=marker,
            linestyle=style,
            markersize=4,
            linewidth=1.2,
            elinewidth=0.6,
            label=curve,
        )
    raw_by = EXACT if attacker == EXACT else NETWORK
    raw = [p.rate for p in points if (p.curve, p.order, p.attacker) == (RAW, order, raw_by)]
    axes.axhline(raw[0], color=DARK, linestyle="--", linewidth=1, label="true values")
    axes.axhline(own[0].chance, color=DARK, linestyle=":", linewidth=1, label="chance")
    axes.set_xscale("log")
    budgets = sorted({one.epsilon for one in own if one.curve != RAW})
    axes.set_xticks(budgets, [f"{budget:g}" for budget in budgets])
    axes.minorticks_off()
    axes.set_xlabel("epsilon per value")
    axes.set_title(f"order {order}: {attacker}", fontsize=9)
