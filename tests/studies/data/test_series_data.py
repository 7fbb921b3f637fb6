"""Real series and people are read as they come; made-up ones stand in, and say so."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.core.errors import InvalidParameter
from sfumato.studies.data import data_files, people_data, series_data
from sfumato.studies.study import DataFile, Setting


def written(folder: Path, file: DataFile, text: str) -> Setting:
    with gzip.open(folder / file.name, "wt") as gz:
        gz.write(text)
    return Setting(folder)


READERS = (
    series_data.hourly_rentals,
    series_data.daily_rentals,
    series_data.hourly_traffic,
    series_data.ftp_speeds,
    series_data.udds_speeds,
    people_data.maths_grades,
    people_data.portuguese_grades,
    people_data.salaries,
)


@pytest.mark.parametrize("read", READERS)
def test_a_stand_in_is_marked_and_its_seed_decides_it(read: Callable[[Setting], object]) -> None:
    def numbers(seed: int) -> list[float]:
        found = read(Setting(seed=seed))
        assert getattr(found, "stand_in") is True  # noqa: B009
        name = next(n for n in ("values", "final", "annual") if hasattr(found, n))
        kept: list[float] = getattr(found, name).tolist()
        return kept

    assert numbers(1) == numbers(1) != numbers(2)
    assert min(numbers(1)) >= 0


@pytest.mark.parametrize("read", READERS)
def test_a_folder_without_the_file_is_refused(
    tmp_path: Path, read: Callable[[Setting], object]
) -> None:
    with pytest.raises(InvalidParameter, match=r"--data must hold .*\.csv\.gz: "):
        read(Setting(tmp_path))


def test_rentals_are_those_of_the_year(tmp_path: Path) -> None:
    text = "dteday,cnt\n2011-01-01,16\n2011-12-31,40\n2012-01-01,7\n"
    setting = written(tmp_path, data_files.BIKES_DAILY, text)
    assert series_data.daily_rentals(setting).values.tolist() == [16, 40]
    assert series_data.daily_rentals(setting, None).values.tolist() == [16, 40, 7]
    assert not series_data.daily_rentals(setting).stand_in


def test_traffic_is_the_sum_of_all_roadways_and_days_follow_in_order(tmp_path: Path) -> None:
    heads = ",".join(["ID", "GIS", "Road", "From", "To", "Way", "Date", *map(str, range(24))])
    later = "1,1,a,b,c,NB,02/01/2012," + ",".join(["3"] * 24)
    first = "2,1,a,b,c,NB,01/09/2012," + ",".join(["1"] * 24)
    half = "3,2,a,b,c,SB,01/09/2012," + ",".join(["2"] * 12 + [""] * 12)
    setting = written(tmp_path, data_files.TRAFFIC, "\n".join([heads, later, first, half]))
    assert series_data.hourly_traffic(setting).values.tolist() == [3] * 12 + [1] * 12 + [3] * 24
    assert series_data.hourly_traffic(setting, 13).values.tolist() == [3] * 12 + [1] + [3] * 13


def test_grades_and_salaries_are_read_as_they_come(tmp_path: Path) -> None:
    rows = "school;failures;studytime;goout;absences;G1;G2;G3\n"
    rows += '"GP";0;2;4;6;"5";"6";6\n"MS";2;1;3;0;"7";"8";0\n'
    grades = people_data.maths_grades(written(tmp_path, data_files.GRADES_MATHS, rows))
    assert (grades.features["G1"], grades.features["G2"]) == ([5, 7], [6, 8])
    assert (grades.final.tolist(), grades.features["school"]) == ([6, 0], ["GP", "MS"])
    assert grades.features["failures"] == [0, 2]
    rows = "ANNUAL_RT,GROSS\n100.0,90.5\n200.0,\n"
    found = people_data.salaries(written(tmp_path, data_files.SALARIES, rows))
    assert (found.annual.tolist(), found.gross.tolist()) == ([100, 200], [90.5])


def test_hours_know_their_hour_though_some_are_missing(tmp_path: Path) -> None:
    text = "dteday,hr,cnt\n2011-01-01,0,16\n2011-01-01,2,5\n2012-01-01,3,7\n"
    found = series_data.hourly_rentals(written(tmp_path, data_files.BIKES_HOURLY, text))
    assert found.phases is not None
    assert (found.period, found.phases.tolist()) == (24, [0, 2])
    assert series_data.daily_rentals(Setting()).period == 7
