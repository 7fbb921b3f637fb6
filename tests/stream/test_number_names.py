"""Streams whose names are one number: told in every format and way, and never joined."""

from pathlib import Path

import pytest

from sfumato.stream.number_names import spelled_twice
from tests.stream.both_ways import Day, plan_of, same_both_ways
from tests.stream.test_column_run import READINGS, Records, records


def nothing(_: list[str]) -> set[str]:
    return set()


def named(people: list[object], first: int) -> Records:
    """Rows of some people, by turns, with times of their own."""
    rows = records("words", 20)
    return [
        [people[place % len(people)], *row[1:4], str(first + place), row[5]]
        for place, row in enumerate(rows)
    ]


@pytest.mark.parametrize(
    ("names", "pair"),
    [
        (["1", "1.0"], ("1", "1.0")),
        (["u", "-2.50", "x", "-2.5"], ("-2.5", "-2.50")),
        (["1.00", "1.0"], ("1.0", "1.00")),
        (["3", "2.", "2"], ("2", "2.")),
    ],
)
def test_a_number_in_two_spellings_is_found(names: list[str], pair: tuple[str, str]) -> None:
    assert spelled_twice(names, nothing) == pair
    assert spelled_twice(reversed(names), nothing) == pair
    for place in range(len(names)):
        assert spelled_twice(names[:place] + names[place + 1 :], nothing) in (None, pair)


@pytest.mark.parametrize(
    "names",
    [[], ["1", "01", "2"], ["1.0", "2.0"], ["a.b", "1.2.3", ".", "nan.", "inf"], ["٣", "3.5"]],
)
def test_other_names_are_no_numbers_in_two_spellings(names: list[str]) -> None:
    assert spelled_twice(names, nothing) is None


def test_every_name_of_a_run_is_held_against_the_others() -> None:
    names = [f"{number}.0" for number in range(2000)]
    assert spelled_twice([*names, "1234"], nothing) == ("1234", "1234.0")


@pytest.mark.parametrize("days", [[["1", "1.0"]], [["1.0"], ["1"]], [["1"], ["1.0"]]])
def test_a_release_tells_of_a_number_in_two_spellings(
    tmp_path: Path, days: list[list[object]]
) -> None:
    runs = [Day(named(own, 50 * day), READINGS["time"]) for day, own in enumerate(days)]
    left = same_both_ways(tmp_path / "d", "words", plan_of("words"), runs, ledger=True)
    (told,) = left.remarks
    assert told.startswith("streams '1' and '1.0' are one number and two streams")


def test_numbers_of_a_typed_column_have_one_spelling(tmp_path: Path) -> None:
    people: list[list[object]] = [[1.0, 2.0], [1, 2], ["1", "2"]]
    runs = [
        Day(named(own, 50 * day), READINGS["time"], f"{day}.parquet", "private.csv")
        for day, own in enumerate(people)
    ]
    left = same_both_ways(tmp_path / "d", "words", plan_of("words"), runs, ledger=True)
    assert left.remarks == [] and [report.streams for report in left.reports] == [2, 2, 2]
