"""`sfumato spark` from end to end, and what it says where something is missing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato.cli.app import called
from sfumato.engines.spark import spark_session
from sfumato.store.keys import write_key
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Table
from tests.engines.scene import KEY, answers, by_fleet, in_order, town, walks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

quiet = pytest.mark.filterwarnings("ignore:PySpark does not yet")
ROWS = walks([30, 2, 1, 14])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [f"{user},{time},{cell}" for user, time, cell in in_order(ROWS)]
    Path("live.csv").write_text("\n".join(["user,time,cell", *lines]))
    sf.save(town().model, "city.model")
    sf.save(town().policy, "city.policy")
    write_key("city.key", KEY)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, dict[str, Any], str]:
    # Java stays where it was started.
    tables = (".csv", ".parquet")
    words = [str(Path(word).absolute()) if word.endswith(tables) else word for word in line.split()]
    code = called(words)
    out, err = capsys.readouterr()
    return code, json.loads(out) if out.startswith("{") else {}, err


RELEASE = (
    "spark release live.csv -m city.model --policy city.policy --epsilon 0.5 --order time "
    "--method step-wise --partitions 2 --json"
)


@quiet
@pytest.mark.engines
def test_a_table_is_released_audited_recovered_learnt_from_and_fitted(
    spark: SparkSession, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said, _ = told(capsys, f"{RELEASE} --key-file city.key -o private.parquet")
    assert (code, said["rows"], said["streams"]) == (0, len(ROWS), 4)
    rows = pyarrow.parquet.read_table("private.parquet").to_pylist()
    assert answers(rows) == by_fleet(ROWS, town().plan)
    code, said, _ = told(capsys, "spark audit private.parquet -m city.model --json")
    assert (code, said["passed"], said["rows"]) == (0, True, len(ROWS))
    line = "spark recover private.parquet -m city.model --counts counts.csv --every 100 --json"
    assert told(capsys, line)[0] == 0 and list(Path("counts.csv").glob("part-*"))
    line = "learn private.parquet -m city.model --order 1 --policy city.policy"
    code, said, err = told(capsys, f"spark {line} -o far.model --partitions 2 --json")
    assert (code, said["values"], said["streams"], said["order"]) == (0, len(ROWS), 4, 1), err
    pyarrow.parquet.write_table(pyarrow.parquet.read_table("private.parquet"), "one.parquet")
    Path("one.parquet.plan.json").write_bytes(Path("private.parquet.plan.json").read_bytes())
    near = line.replace("private.parquet", "one.parquet")
    assert told(capsys, f"{near} -o near.model --json")[1] == {**said, "model": "near.model"}
    assert Path("far.model").read_bytes() == Path("near.model").read_bytes()
    line = "spark fit live.csv --stream user --value cell --order time -o new.model --json"
    assert told(capsys, line)[1]["transitions"] == len(ROWS) - 4
    assert (
        called(["fit", "live.csv", "--stream", "user", "--value", "cell", "-o", "old.model"]) == 0
    )
    assert Path("new.model").read_bytes() == Path("old.model").read_bytes()


@quiet
@pytest.mark.engines
@pytest.mark.parametrize(
    "cut",
    [
        "--value x --bins 4 --range 0:8 --units m",
        "--value x --bins 4",
        "--grid 3x2 --x x --y y --range 0:9,0:4",
    ],
)
def test_numbers_are_cut_as_in_one_process(
    spark: SparkSession, place: Path, capsys: pytest.CaptureFixture[str], cut: str
) -> None:
    rows = [f"u{n % 3},{n},{(7 * n) % 11},{(5 * n) % 6}.5" for n in range(60)]
    Path("points.csv").write_text("\n".join(["user,time,x,y", *rows]))
    line = f"fit points.csv --stream user {cut}"
    code, said, err = told(capsys, f"spark {line} --order time -o far.model --json")
    assert (code, said["transitions"]) == (0, 57), err
    assert called([*line.split(), "-o", "near.model"]) == 0
    assert Path("far.model").read_bytes() == Path("near.model").read_bytes()


@quiet
@pytest.mark.engines
def test_a_refusal_is_one_line_and_leaves_nothing(
    spark: SparkSession, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("live.csv").open("a") as file:
        file.write("\nu1,777,a-place-nobody-may-know")
    code, _, err = told(capsys, f"{RELEASE} --key-file city.key -o private.parquet")
    assert code == 2 and "must be one of the 3 symbols" in err
    Path("there.parquet").mkdir()
    code, _, other = told(capsys, f"{RELEASE} --key-file city.key -o there.parquet")
    assert code == 2 and "not be there yet" in other
    assert "nobody-may-know" not in err and not Path("private.parquet.plan.json").exists()


def test_cuts_that_do_not_go_together_are_refused_before_an_engine_starts(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "spark fit live.csv --stream user --order time --grid 3x2 --x x -o new.model"
    code, _, err = told(capsys, line)
    assert code == 2 and "--grid" in err


def test_without_a_key_nothing_runs(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = told(capsys, f"{RELEASE} -o private.parquet")
    assert code == 2 and "fresh coins would release twice" in err


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_session, "find_spec", lambda name: None)
    with pytest.raises(sf.SfumatoError, match=r'pip install "sfumato\[spark\]"'):
        spark_session.check_installed()
    monkeypatch.setattr(spark_session, "find_spec", lambda name: object())
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert "JAVA_HOME" not in os.environ
    with pytest.raises(sf.SfumatoError, match="have Java 17 or 21"):
        spark_session.check_installed()


@pytest.mark.parametrize("name", ["private.parquet", "private.csv", "private.arrow"])
def test_a_folder_of_an_engine_is_no_file(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(BadTable, match="folders of parts are for the commands of `sfumato spark`"):
        list(Table.at(str(tmp_path / name)).chunks(["user"]))


def test_tables_are_known_by_their_names() -> None:
    assert [spark_session.form_of(name) for name in ("a.csv", "b.parquet/")] == ["csv", "parquet"]
    with pytest.raises(sf.SfumatoError, match=r"end in .parquet or .csv"):
        spark_session.form_of("live.json")
