"""Draw how a release grows: `docs/images/growth.png` from `benchmarks/results/growth.json`."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

RESULTS = Path(__file__).parent / "results" / "growth.json"
TARGET = Path(__file__).parents[1] / "docs" / "images" / "growth.png"
OURS, LIMIT = "#8c4a2f", "#c9b79c"
NAMES = {
    "rows": "rows (16 symbols)",
    "streams": "streams (as many rows each time, 16 symbols)",
    "symbols": "symbols (1,000 streams)",
    "order": "order of the chain (4 symbols)",
}


def main() -> None:
    """Draw the four panels."""
    points = json.loads(RESULTS.read_text(encoding="utf-8"))
    figure, panels = plt.subplots(1, 4, figsize=(12, 3.2), sharey=True, layout="constrained")
    for axes, (name, label) in zip(panels, NAMES.items(), strict=True):
        at, speed, limit, _ = zip(*points[name], strict=True)
        axes.plot(at, limit, "s--", color=LIMIT, ms=4, label="bare fleet, step by step")
        axes.plot(at, speed, "o-", color=OURS, ms=4, label="release, Parquet to Parquet")
        axes.set_yscale("log")
        axes.set_xscale("linear" if name == "order" else "log")
        if name in ("symbols", "order"):
            axes.set_xticks(at, [str(each) for each in at])
            axes.minorticks_off()
        axes.set_xlabel(label, fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#eeeeee")
    panels[0].set_ylabel("rows a second, one core")
    panels[0].legend(fontsize=7, frameon=False, loc="lower right")
    figure.savefig(TARGET, dpi=130)
    print(TARGET)


if __name__ == "__main__":
    main()
