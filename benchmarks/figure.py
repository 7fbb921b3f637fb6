"""Draw what `make bench` measured: `docs/images/speed.png` from `benchmarks/results`."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

RESULTS = Path(__file__).parent / "results"
TARGET = Path(__file__).parents[1] / "docs" / "images" / "speed.png"
OURS, RIVAL, FLOOR = "#8c4a2f", "#6b7f8c", "#c9b79c"


def rows(path: Path, title: str | None = None) -> list[list[str]]:
    """Cells of the first table after a title."""
    lines = path.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if title is None or line.strip() == title)
    table = []
    for line in lines[start:]:
        if line.startswith("|"):
            table.append([cell.strip() for cell in line.strip("|").split("|")])
        elif table:
            break
    return table[2:]


def growth(axes: Axes) -> None:
    """Time of a design against the size of the alphabet, epsilon 1."""
    chosen = [row for row in rows(RESULTS / "solver.md") if row[2] == "1"]
    for name, style in (("absolute", "o-"), ("hamming", "s-"), ("euclidean", "^-")):
        some = [row for row in chosen if row[1] == name]
        sizes = [int(row[0]) for row in some]
        times = [float(row[3]) for row in some]
        axes.loglog(sizes, times, style, color=OURS, label=f"Sfumato, {name}", ms=4)
        peer = [(int(row[0]), float(row[7])) for row in some if row[7] != "-"]
        axes.loglog(*zip(*peer, strict=True), style, color=RIVAL, ms=4, alpha=0.8)
    axes.plot([], [], color=RIVAL, label="HiGHS, textbook program")
    axes.set_xlabel("symbols")
    axes.set_ylabel("ms per design, certified")
    axes.set_title("The optimal channel, epsilon 1", loc="left", fontsize=10)
    axes.legend(fontsize=7, frameon=False)


def events(axes: Axes) -> None:
    """Time of an event on 16 symbols against the peers' context-free response."""
    ours = next(
        row
        for row in rows(RESULTS / "streams.md", "## Events, microseconds of processor time")
        if row[0] == "16"
    )
    bars = [
        ("bare belief loop", float(ours[3]), FLOOR),
        ("Sfumato, fleet of 10,000", float(ours[1]), OURS),
        ("Sfumato, one at a time", float(ours[7]), OURS),
    ]
    document = json.loads((RESULTS / "peers.json").read_text(encoding="utf-8"))
    for one in document["contenders"]:
        if "16" in one["microseconds"] and not one["name"].startswith("numpy v"):
            bars.append((one["name"], one["microseconds"]["16"]["best"], RIVAL))
    bars.sort(key=lambda bar: -bar[1])
    axes.barh([bar[0] for bar in bars], [bar[1] for bar in bars], color=[bar[2] for bar in bars])
    axes.set_xscale("log")
    axes.set_xlabel("us of processor time per value")
    axes.set_title("One private value, 16 symbols", loc="left", fontsize=10)
    axes.tick_params(axis="y", labelsize=7)
    for place, (_, value, _) in enumerate(bars):
        axes.text(value * 1.08, place, f"{value:.3g}", va="center", fontsize=7)
    axes.set_xlim(right=max(bar[1] for bar in bars) * 4)


def main() -> None:
    """Draw both."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    growth(left)
    events(right)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(TARGET, dpi=130)
    print(TARGET)


if __name__ == "__main__":
    main()
