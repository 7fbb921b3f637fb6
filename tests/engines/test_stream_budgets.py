"""Totals of streams on real Spark: over a horizon, a window and periods of time, also restarted."""

from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sfumato as sf
from tests.engines.shards import KEY, letters
from tests.engines.test_stream_kill import answer_of, due, folder_with, key_of, seen
from tests.engines.test_stream_release import run
from tests.oracles.period_sums import period_sums

pytestmark = [
    pytest.mark.engines,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet"),
]
HORIZON = {"budget": 3.0, "horizon": 12}
WINDOW = {"budget": 1.0, "window": 5}
PERIOD = {"budget": 1.0, "per": "30", "cap": 0.4}


def halves(spark: SparkSession, folder: Path, rules: dict[str, Any]) -> list[Any]:
    """Answer half of the files, end, and go on from the checkpoint with the others."""
    batches = folder_with(folder, seed=5)
    later = sorted((folder / "in").glob("*.json"))[len(batches) // 2 :]
    for path in later:
        path.rename(folder / path.name)
    run(spark, folder, epsilon=None, **rules)
    for path in later:
        (folder / path.name).rename(path)
    run(spark, folder, epsilon=None, **rules)
    return batches


@pytest.mark.parametrize("rules", [HORIZON, WINDOW, PERIOD], ids=["horizon", "window", "period"])
def test_totals_are_those_of_the_plan_before_and_after_a_restart(
    spark: SparkSession, tmp_path: Path, rules: dict[str, Any]
) -> None:
    batches = halves(spark, tmp_path, rules)
    told, spent = due(batches, key_of(tmp_path), **rules)
    rows = seen(tmp_path, "files")
    found: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for row in rows:
        found[row["user"], row["event"]].append(answer_of(row))
    assert {name: set(map(str, answers)) for name, answers in found.items()} == {
        name: set(map(str, answers)) for name, answers in told.items()
    }
    once = {(row["user"], row["sequence"]): row for row in rows if row["outcome"] == "released"}
    sums: dict[str, Fraction] = defaultdict(Fraction)
    for (user, _), row in once.items():
        sums[user] += Fraction(row["sip"])
    assert {user: float(total) for user, total in sums.items()} == pytest.approx(
        {user: sip for user, (sip, _) in spent.items()}
    )
    if rules is HORIZON:
        assert "budget" in {one for told in found.values() for one in told}
        assert max(sums.values()) <= 3
    if rules is WINDOW:
        worst = [
            sum(Fraction(once[user, at]["sip"]) for at in range(first, first + 5))
            for user, first in once
            if (user, first + 4) in once
        ]
        assert max(worst) <= 1
    if rules is PERIOD:
        by_time = period_sums("30", [(u, row["time"], row["sip"]) for (u, _), row in once.items()])
        assert 0.9 < max(by_time.values()) <= 1
        assert max(sums.values()) > 1  # it began anew


def test_a_frame_is_released_and_audited_by_the_day_of_utc(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    rows = [("ann", f"2024-05-01T{hour:02}:{m:02}:00Z", "abc"[m % 3])
            for hour in (13, 14, 23) for m in range(0, 60, 10)]  # fmt: skip
    rows += [("ann", f"2024-05-02T00:{minute}0:00Z", "a") for minute in range(4)]
    frame = spark.createDataFrame(rows, ["user", "time", "cell"])
    frame = frame.selectExpr("user", "CAST(time AS timestamp) AS time", "cell")
    rules: dict[str, Any] = {"budget": 1.0, "per": "day", "cap": 0.4, "method": "calibrated"}
    rules["when_exhausted"] = "suppress"
    private = sf.spark.release(frame, model=letters(), key=KEY, order="time", **rules)
    told = [(row["user"], row["time"], row["sip"]) for row in private.collect()]
    sums = period_sums("day", told)
    # Midnight of the session's zone lies at 15:00 of UTC: it begins nothing.
    assert len(sums) == 2 and all(0.99 < spent <= 1 for spent in sums.values())
    spec = sf.stream.ReleaseSpec(
        **rules, keep=("time",), time="time", model=letters().chain.fingerprint
    )
    assert sf.spark.audit(private, model=letters(), rules=spec).passed
