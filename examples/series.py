"""Publish hourly counts as they come, each person hidden: `python examples/series.py`.

Somebody may be in every hour and change each count by one. All of them together keep
(2, 1e-6)-differential privacy, and a filter makes the best of the noisy measurements.
"""

import csv
import math
import tempfile

import sfumato as sf

with tempfile.TemporaryDirectory() as folder:
    (path,) = sf.sample("counts", folder)
    with path.open(newline="", encoding="utf-8") as file:
        counts = [float(row["people"]) for row in csv.DictReader(file)]

method = sf.Realtime.gaussian(1.0, epsilon=2.0, delta=1e-6, length=len(counts))
private = method.release(counts, sf.secure())

print(f"{len(counts)} hours: {method.guarantee} for each person in all of them")
for true, left in list(zip(counts, private, strict=True))[100:104]:
    print(f"{true:6.0f} left as {left:8.1f}")
error = math.sqrt(sum((a - b) ** 2 for a, b in zip(counts, private, strict=True)) / len(counts))
mean = sum(counts) / len(counts)
silent = math.sqrt(sum((count - mean) ** 2 for count in counts) / len(counts))
print(
    f"off by {error:.1f} people (root mean square); their mean alone would be off by {silent:.1f}"
)
