"""The page on scale says what the benchmarks have measured last, and nothing else."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "scale.md").read_text()
RESULTS = ROOT / "benchmarks" / "results"
TABLES = (RESULTS / "scale.md").read_text()
EVENTS_A_SECOND, BUSY = 1e8 / 60, 0.5


def test_both_tables_stand_on_the_page_as_they_were_measured() -> None:
    rows = [line for line in TABLES.splitlines() if line]
    assert len(rows) > 20
    assert [row for row in rows if row not in PAGE.splitlines()] == []


def test_figures_of_the_service_are_those_of_its_last_run() -> None:
    # The first table there is that of SQLite: events/s, p50, p99, of raw, bare, floor, us an event.
    last = (RESULTS / "service.md").read_text()
    figures = r"\| ([\d,]+) (?:\|[^|]+){5}\| (\d+) \|"
    (_, single), *_ = re.findall(rf"single, 64 connections {figures}", last)
    (rate, batched), *_ = re.findall(rf"batches of 100, 8 connections {figures}", last)
    assert f"{rate} events a second" in PAGE
    assert f"| an event through the service, in batches of 100 | {batched} us |" in TABLES
    assert f"| an event through the service, by itself | {single} us |" in TABLES
    cores = [round(EVENTS_A_SECOND * 1e-6 * int(each) / BUSY) for each in (single, batched)]
    assert f"{cores[0]} cores instead of {cores[1]}" in PAGE


def test_figures_of_spark_are_those_of_its_last_run() -> None:
    last = (RESULTS / "spark.md").read_text()
    cores = int(re.findall(r"(\d+) cores", last)[0])
    rows = int(last.splitlines()[-1].split("|")[4].replace(",", ""))
    assert f"{rows / cores:,.0f} rows a second" in PAGE
