"""Draw the picture of the README: `docs/images/strips.png`, a day in four strips.

The sample `activities`, at 0.5 nats for each value, six people with 21 draws of the noise each, by
seeded coins. The release that is drawn is the one whose inferred values are wrong in the median
share of all of them; below it, of the same person's releases by randomised response of the same
leakage, the one in the median, too. The figures that the README states are printed.
"""

from __future__ import annotations

import csv
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import Patch

import sfumato as sf

TARGET = Path(__file__).parents[1] / "docs" / "images" / "strips.png"
DRAWS = 21
COLOURS = {
    "lying": "#2f4b6e",
    "sitting": "#6f9fc8",
    "standing": "#d9c27a",
    "walking": "#e07b39",
    "stairs": "#b3261e",
    "cycling": "#4c9a5b",
}
Track = list[str]


def command(folder: Path, *words: str) -> None:
    """Run a command of ours."""
    program = (sys.executable, "-c", "from sfumato.cli import main; main()")
    subprocess.run([*program, *words], cwd=folder, check=True, capture_output=True)


def column(path: Path, name: str) -> dict[str, Track]:
    """A column of a table, stream by stream."""
    found: dict[str, Track] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["person"], []).append(row[name])
    return found


def repeated(folder: Path) -> None:
    """The live values once for each draw, as streams of their own."""
    live = column(folder / "live.csv", "activity")
    with (folder / "many.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["person", "activity"])
        for draw in range(DRAWS):
            for person, track in live.items():
                writer.writerows((f"{person}-{draw}", value) for value in track)


def released(folder: Path, method: str) -> tuple[dict[str, Track], dict[str, Track]]:
    """What leaves by a method, and what a receiver infers from all of it."""
    output, guesses = f"{method}.csv", f"{method}-guesses.csv"
    common = ("--model", "watch.model")
    drawn = ("--epsilon", "0.5", "--method", method, "--seed", "1")
    command(folder, "release", "many.csv", *common, *drawn, "-o", output)
    command(folder, "recover", output, *common, "-o", guesses)
    return column(folder / output, "released"), column(folder / guesses, "recovered")


def wrong(track: Track, truth: Track) -> float:
    """The share of values that differ."""
    return statistics.fmean(one != other for one, other in zip(track, truth, strict=True))


def median_stream(tracks: dict[str, Track], truth: dict[str, Track], begins: str = "") -> str:
    """Of the streams whose name begins so, the one that is wrong in the median share."""
    names = [name for name in tracks if name.startswith(begins)]
    return sorted(names, key=lambda name: wrong(tracks[name], truth[name]))[len(names) // 2]


def draw(strips: list[tuple[str, Track]], truth: Track) -> None:
    """Four strips, each with the share of it that is wrong."""
    figure, panels = plt.subplots(4, 1, figsize=(8.8, 2.9), sharex=True)
    hours = [place / 6 for place in range(len(truth) + 1)]
    for axes, (name, track) in zip(panels, strips, strict=True):
        axes.bar(hours[:-1], 1, 1 / 6, align="edge", color=[COLOURS[value] for value in track])
        axes.set_xlim(0, hours[-1])
        axes.set_yticks([])
        axes.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=9)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        share = wrong(track, truth)
        note = f"{share:.0%} wrong" if track is not truth else ""
        axes.text(1.01, 0.5, note, transform=axes.transAxes, va="center", fontsize=9)
    panels[-1].set_xticks(range(0, 17, 4), [f"{hour} h" for hour in range(0, 17, 4)], fontsize=8)
    figure.legend(
        handles=[Patch(color=colour, label=name) for name, colour in COLOURS.items()],
        loc="upper center",
        ncols=6,
        frameon=False,
        fontsize=9,
        handlelength=1,
    )
    figure.subplots_adjust(left=0.245, right=0.895, top=0.86, bottom=0.09, hspace=0.28)
    figure.savefig(TARGET, dpi=180)


def main() -> None:
    """Release, infer, choose and draw."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sf.sample("activities", folder)
        repeated(folder)
        naming = ("--stream", "person", "--value", "activity")
        command(folder, "fit", "history.csv", *naming, "-o", "watch.model")
        truth = column(folder / "many.csv", "activity")
        ours, rival = (released(folder, method) for method in ("far-sighted", "calibrated"))
    chosen = median_stream(ours[1], truth)
    other = median_stream(rival[1], truth, chosen.partition("-")[0])
    track = truth[chosen]
    draw(
        [
            ("what she did", track),
            ("Sfumato released", ours[0][chosen]),
            ("a receiver infers from it", ours[1][chosen]),
            ("… from ordinary DP noise\nof the same leakage", rival[1][other]),
        ],
        track,
    )
    for label, tracks in (
        ("released", ours[0]),
        ("inferred", ours[1]),
        ("rival, released", rival[0]),
        ("rival, inferred", rival[1]),
    ):
        shares = [wrong(tracks[each], truth[each]) for each in truth]
        print(f"{label}: {statistics.fmean(shares):.1%} wrong on average, all {len(truth)}")
    print(f"drawn: {chosen}, {other}: {TARGET}")


if __name__ == "__main__":
    main()
