"""Draw how jobs grow: `docs/images/growth.png` from `benchmarks/results/growth.json`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

RESULTS = Path(__file__).parent / "results" / "growth.json"
TARGET = Path(__file__).parents[1] / "docs" / "images" / "growth.png"
STYLES = {
    "bare fleet": ("s--", "#a89a80", "bare fleet, step by step (no tables)"),
    "release, Parquet": ("o-", "#8c4a2f", "release, Parquet to Parquet"),
    "release, CSV": ("^-", "#c98a3c", "release, CSV to CSV"),
    "audit, Parquet": ("D-", "#3f6f8f", "audit, Parquet"),
    "release, durable ledger": ("v-", "#4f7a4a", "release, CSV, durable ledger"),
}
NAMES = {
    "rows": "rows\n(16 symbols, 10,000 streams)",
    "streams": "streams\n(a million rows, 16 symbols)",
    "symbols": "symbols\n(1,000 streams)",
    "order": "order of the chain\n(4 symbols)",
}


def main() -> None:
    """Draw the four panels."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--points", type=Path, default=RESULTS)
    asked.add_argument("--target", type=Path, default=TARGET)
    given = asked.parse_args()
    points = json.loads(given.points.read_text(encoding="utf-8"))
    figure, panels = plt.subplots(
        1, 4, figsize=(12, 3.9), sharey=True, layout="constrained", facecolor="white"
    )
    for axes, (name, label) in zip(panels, NAMES.items(), strict=True):
        at = [each for each, _ in points[name]]
        for job, (marks, colour, words) in STYLES.items():
            speeds = [jobs[job]["speed"] for _, jobs in points[name]]
            axes.plot(at, speeds, marks, color=colour, ms=4.5, lw=1.4, label=words)
        axes.set_yscale("log")
        axes.set_xscale("linear" if name == "order" else "log")
        if name in ("symbols", "order"):
            axes.set_xticks(at, [str(each) for each in at])
            axes.minorticks_off()
        axes.set_xlabel(label, fontsize=9)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#e8e8e8")
        axes.set_axisbelow(True)
    panels[0].set_ylabel("rows a second of one core", fontsize=9)
    handles, words = panels[0].get_legend_handles_labels()
    figure.legend(handles, words, loc="outside upper center", ncols=5, fontsize=8, frameon=False)
    figure.savefig(given.target, dpi=130)
    print(given.target)


if __name__ == "__main__":
    main()
