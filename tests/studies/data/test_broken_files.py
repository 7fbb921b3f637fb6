"""A file of data that is not what it should be is refused by name; nothing of it is quoted."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.core.errors import InvalidParameter
from sfumato.studies.data import data_files, people_data, sequence_data, series_data
from sfumato.studies.data.gaze_data import Grid, gaze
from sfumato.studies.data.gzipped_rows import reading
from sfumato.studies.sip.sip_figure_6 import CLICK_NUMBERS
from sfumato.studies.study import DataFile, Setting
from tests.shell.running import call


def of(source: sequence_data.Source) -> Callable[[Setting], object]:
    return lambda setting: sequence_data.people_of(source, setting)


READERS: list[tuple[DataFile, Callable[[Setting], object]]] = [
    (data_files.BIKES_HOURLY, series_data.hourly_rentals),
    (data_files.BIKES_DAILY, series_data.daily_rentals),
    (data_files.TRAFFIC, series_data.hourly_traffic),
    (data_files.FTP_75, series_data.ftp_speeds),
    (data_files.GRADES_MATHS, people_data.maths_grades),
    (data_files.SALARIES, people_data.salaries),
    (data_files.GAZE, lambda setting: gaze(setting.path(data_files.GAZE), Grid(2, 2))),
    (data_files.GAZE, of(sequence_data.GAZE)),
    (data_files.ACTIVITIES, of(sequence_data.ACTIVITIES)),
    (data_files.VISITS, of(sequence_data.VISITS)),
    (data_files.CLICKS, of(sequence_data.CLICKS)),
    (data_files.CLICKS, of(CLICK_NUMBERS)),
]
ROWS = gzip.compress(b"secret,cell\n" + b"7777,8888\n" * 99)
BROKEN = {
    "cut in half": ROWS[: len(ROWS) // 2],
    "no gzip": b"hello",
    "empty": b"",
    "nothing in it": gzip.compress(b""),
    "no text": gzip.compress(b"\xff\xfe\n\xff"),
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize(("file", "read"), READERS)
def test_a_broken_file_is_refused_by_name(
    tmp_path: Path, file: DataFile, read: Callable[[Setting], object], content: bytes
) -> None:
    (tmp_path / file.name).write_bytes(content)
    with pytest.raises(InvalidParameter) as refused:
        read(Setting(tmp_path))
    rule = f"--data must be {file.name}, whole and unchanged: {file.source}"
    assert str(refused.value).startswith(rule)


@pytest.mark.parametrize(("file", "read"), [row for row in READERS if "csv" in row[0].name])
def test_other_columns_are_refused(
    tmp_path: Path, file: DataFile, read: Callable[[Setting], object]
) -> None:
    (tmp_path / file.name).write_bytes(ROWS)
    with pytest.raises(InvalidParameter, match="whole and unchanged") as refused:
        read(Setting(tmp_path))
    assert "7777" not in str(refused.value)


@pytest.mark.parametrize("cell", ["nan", "inf", "", "text"])
def test_what_is_no_number_is_refused(tmp_path: Path, cell: str) -> None:
    path = tmp_path / data_files.UDDS.name
    path.write_bytes(gzip.compress(f"t_s,speed_mph\n0,1.5\n1,{cell}\n".encode()))
    with pytest.raises(InvalidParameter, match=r"epa_udds\.csv\.gz, whole"):
        series_data.udds_speeds(Setting(tmp_path))


def test_a_grade_that_there_is_not_is_refused(tmp_path: Path) -> None:
    heads = "studytime;goout;absences;G1;G2;G3"
    path = tmp_path / data_files.GRADES_MATHS.name
    path.write_bytes(gzip.compress(f"{heads}\n1;1;1;5;5;21\n".encode()))
    with pytest.raises(InvalidParameter, match=r"student_mat\.csv\.gz, whole"):
        people_data.maths_grades(Setting(tmp_path))


def test_other_troubles_of_files_stay_what_they_are() -> None:
    with pytest.raises(PermissionError), reading(data_files.UDDS, Path("x")):
        raise PermissionError


def test_the_command_says_which_file_and_leaves_nothing(tmp_path: Path) -> None:
    file, home = tmp_path / data_files.TRAFFIC.name, tmp_path / "none"
    file.write_bytes(b"hello")
    result = call("study", "rtr-traffic", "--data", tmp_path, "-o", home)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"sfumato: --data must be {file.name}, whole and unchanged")
    assert not home.exists()
