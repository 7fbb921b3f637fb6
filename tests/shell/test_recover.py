"""`sfumato recover`: all of its tables appear, or none; what it infers is in other hands' tests."""

import contextlib
import random
import shutil
from pathlib import Path

import pytest

from tests.shell.running import call, done, litter, refused
from tests.shell.running import rows as rows_of
from tests.shell.tables import csv_bytes


def arguments(home: Path) -> tuple[object, ...]:
    tables = ("-o", home / "guesses.csv", "--counts", home / "counts.csv")
    flows = ("--flows", home / "flows.csv")
    return "recover", home / "private.csv", "-m", home / "city.model", *tables, *flows


@pytest.mark.parametrize("problem", [KeyboardInterrupt, OSError("disk full")])
def test_an_interrupted_recovery_leaves_nothing(
    town: Path, problem: type[BaseException] | BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(path.name for path in town.iterdir())

    def broken(population: object) -> None:
        raise problem

    with monkeypatch.context() as patch:
        patch.setattr("sfumato.stream.recovered_rows.flow_rows", broken)
        assert call(*arguments(town)).code == (130 if problem is KeyboardInterrupt else 2)
    assert sorted(path.name for path in town.iterdir()) == before
    assert litter(town) == []
    done(*arguments(town))
    assert all((town / f"{name}.csv").is_file() for name in ("guesses", "counts", "flows"))


def test_json_and_a_table_do_not_share_standard_output(town: Path) -> None:
    result = call("recover", town / "private.csv", "-m", town / "city.model", "-o", "-", "--json")
    assert result.code == 2 and "--json must not come with a table" in result.err


def test_a_series_that_was_filtered_and_a_channel_that_is_not_told_are_refused(
    tmp_path: Path,
) -> None:
    rows = [(f"2024-01-{day:02d}", 100 + day) for day in range(1, 29)]
    (tmp_path / "counts.csv").write_bytes(csv_bytes(["date", "cnt"], rows))
    budget = ("--sensitivity", "1", "--epsilon", "2", "--seed", "3")
    left = tmp_path / "left.csv"
    done("realtime", tmp_path / "counts.csv", "--value", "cnt", *budget, "-o", left)
    result = call("recover", left)
    assert result.code == 2 and "of a filter the estimates leave" in result.err
    survey = [("yes" if row % 3 else "no",) for row in range(60)]
    (tmp_path / "survey.csv").write_bytes(csv_bytes(["answer"], survey))
    told = tmp_path / "told.csv"
    column = ("-c", "answer", "--epsilon", "1", "--seed", "3", "--order", "kept")
    done("privatize", tmp_path / "survey.csv", *column, "-o", told)
    result = call("recover", told)
    assert result.code == 2 and "mechanism must be one for counting" in result.err


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    """A folder with a released series that kept its dates."""
    rows = [(f"2024-01-{day:02d}", 100 + day) for day in range(1, 29)]
    (tmp_path / "counts.csv").write_bytes(csv_bytes(["date", "cnt"], rows))
    asked = ("--value", "cnt", "--time", "date", "--keep", "date", "--method", "gaussian")
    budget = ("--sensitivity", "1", "--epsilon", "2", "--seed", "3")
    done("realtime", tmp_path / "counts.csv", *asked, *budget, "-o", tmp_path / "private.csv")
    return tmp_path


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    """A folder with a released column that is made for counting."""
    rows = [("1" if row % 3 else "2",) for row in range(60)]
    (tmp_path / "survey.csv").write_bytes(csv_bytes(["answer"], rows))
    column = ("-c", "answer", "--epsilon", "1", "--seed", "3", "--order", "kept")
    counting = ("--mechanism", "unary-encoding", "-o", tmp_path / "private.csv")
    done("privatize", tmp_path / "survey.csv", *column, *counting)
    return tmp_path


def contents(home: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.iterdir()}


def untouched(home: Path, *words: str, says: str) -> None:
    """A command that is refused, and changes no file."""
    before = contents(home)
    with contextlib.chdir(home):
        refused(call("recover", "private.csv", *words), says)
    assert contents(home) == before


@pytest.mark.parametrize("option", ["--output", "--counts", "--flows"])
@pytest.mark.parametrize(
    "target",
    [
        "private.csv",
        "./private.csv",
        "linked.csv",
        "city.model",
        "city.policy",
        "loss.csv",
        "private.csv.plan.json",
        "private.csv.certificate.json",
        "other.plan.json",
    ],
)
def test_no_table_replaces_what_is_read(town: Path, option: str, target: str) -> None:
    (town / "linked.csv").symlink_to(town / "private.csv")
    (town / "loss.csv").write_text("0,1\n1,0\n")
    shutil.copy(town / "private.csv.plan.json", town / "other.plan.json")
    asked = ("-m", "city.model", "--loss", "loss.csv", "--plan", "other.plan.json")
    untouched(town, *asked, option, target, says=f"{option} must be a file of its own, not an in")


@pytest.mark.parametrize("kind", ["counts", "survey"])
@pytest.mark.parametrize("target", ["private.csv", "./private.csv", "private.csv.certificate.json"])
def test_without_a_model_no_table_replaces_what_is_read(
    kind: str, target: str, request: pytest.FixtureRequest
) -> None:
    home = request.getfixturevalue(kind)
    untouched(home, "-o", target, says="--output must be a file of its own, not an input")


@pytest.mark.parametrize("target", ["a.csv", "-"])
def test_no_two_tables_share_a_file(town: Path, target: str) -> None:
    asked = ("-m", "city.model", "--counts", target, "--flows", target)
    untouched(town, *asked, says="--flows must be a file of its own, not that of --counts")


@pytest.mark.parametrize("kind", ["counts", "survey"])
@pytest.mark.parametrize(
    "words",
    [
        "--counts a.csv",
        "--flows a.csv",
        "--lag 1",
        "--loss hamming",
        "--cover 7",
        "--every -4",
        "--cover 0.9",
        "--every 1",
        "--model-free",
        "--policy a.policy",
        "--plan a.json",
        "--stream person",
    ],
)
def test_what_needs_a_model_is_refused_without_one(
    kind: str, words: str, request: pytest.FixtureRequest
) -> None:
    name, *value = words.split()
    home = request.getfixturevalue(kind)
    untouched(home, name, *value, "-o", "left.csv", says=f"{name} must come with --model")


@pytest.mark.parametrize("kind", ["counts", "survey"])
def test_without_a_model_json_and_a_table_do_not_share_standard_output(
    kind: str, request: pytest.FixtureRequest
) -> None:
    home = request.getfixturevalue(kind)
    untouched(home, "-o", "-", "--json", says="--json must not come with a table")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--lag 1 --counts a.csv --every 2", "--lag must not come with --every"),
        ("--lag 1 --flows a.csv", "--lag must not come with --flows"),
        ("--every 2", "--every must come with --counts"),
        ("--model-free", "--model-free must come with --counts"),
        ("--counts a.csv --every 0", "--every must be a whole number of at least 1"),
    ],
)
def test_an_option_is_used_or_refused(town: Path, words: str, says: str) -> None:
    untouched(town, "-m", "city.model", *words.split(), says=says)


def test_counts_at_a_lag_are_those_of_what_had_left_by_then(town: Path) -> None:
    asked = ("recover", town / "private.csv", "-m", town / "city.model", "--counts")
    done(*asked, town / "all.csv")
    done(*asked, town / "soon.csv", "--lag", "0")
    done(*asked, town / "same.csv", "--lag", "0", "--every", "1")
    done(*asked, town / "late.csv", "--lag", "1000")
    assert (town / "soon.csv").read_bytes() == (town / "same.csv").read_bytes()
    assert (town / "soon.csv").read_bytes() != (town / "all.csv").read_bytes()
    late, whole = (rows_of(town / f"{name}.csv") for name in ("late", "all"))
    assert [float(row["count"]) for row in late] == pytest.approx(
        [float(row["count"]) for row in whole]
    )


def test_a_missing_plan_is_said_to_be_missing(town: Path) -> None:
    (town / "private.csv.plan.json").unlink()
    untouched(town, "-m", "city.model", says="there is no such file; got 'private.csv.plan.json'")


def test_a_smoothed_series_keeps_its_dates(counts: Path) -> None:
    done("recover", counts / "private.csv", "-o", counts / "smooth.csv")
    smooth, private = rows_of(counts / "smooth.csv"), rows_of(counts / "private.csv")
    assert list(smooth[0]) == ["date", "released", "recovered", "error", "low", "high"]
    assert [row["date"] for row in smooth] == [f"2024-01-{day:02d}" for day in range(1, 29)]
    assert [float(row["released"]) for row in smooth] == [float(row["cnt"]) for row in private]
    assert done("recover", counts / "private.csv", "-o", "-", "-q").err == ""


def test_a_kept_column_is_not_mixed_up_with_a_recovered_one(tmp_path: Path) -> None:
    rows = [(f"2024-01-{day:02d}", 100 + day) for day in range(1, 29)]
    (tmp_path / "counts.csv").write_bytes(csv_bytes(["low", "cnt"], rows))
    asked = ("--value", "cnt", "--time", "low", "--keep", "low", "--method", "gaussian")
    budget = ("--sensitivity", "1", "--epsilon", "2", "--seed", "3")
    done("realtime", tmp_path / "counts.csv", *asked, *budget, "-o", tmp_path / "private.csv")
    untouched(tmp_path, "-o", "smooth.csv", says="RELEASED must keep no column with a name of")
    done("recover", tmp_path / "private.csv")


def test_shares_of_a_column_are_written_as_they_are_told(survey: Path) -> None:
    told = done("recover", survey / "private.csv", "--json", "-o", survey / "shares.csv").document
    written = rows_of(survey / "shares.csv")
    assert list(written[0]) == ["symbol", "share", "error"]
    shares = {row["symbol"]: [float(row["share"]), float(row["error"])] for row in written}
    assert shares == {name: pytest.approx(pair) for name, pair in told["shares"].items()}
    piped = done("recover", survey / "private.csv", "-o", "-")
    assert piped.out == (survey / "shares.csv").read_text()
    assert "mean" in piped.err and "right on average" in piped.err
    assert done("recover", survey / "private.csv", "-o", "-", "-q").err == ""


@pytest.mark.parametrize("kind", ["counts", "survey"])
def test_a_part_of_what_was_certified_is_refused(kind: str, request: pytest.FixtureRequest) -> None:
    home = request.getfixturevalue(kind)
    released = home / "private.csv"
    released.write_bytes(b"".join(released.read_bytes().splitlines(keepends=True)[:-1]))
    untouched(home, "-o", "some.csv", says="rows that its certificate names")


@pytest.mark.parametrize("kept", [(), ("--keep", "school")])
def test_the_channel_of_an_optimal_release_is_read_off_its_certificate(
    tmp_path: Path, kept: tuple[str, ...]
) -> None:
    rng = random.Random(5)
    for name in ("survey", "public"):
        rows = [
            (rng.choices(["a", "b", "c"], [6, 3, 1])[0], rng.choice(["east", "west"]))
            for _ in range(3000)
        ]
        (tmp_path / f"{name}.csv").write_bytes(csv_bytes(["answer", "school"], rows))
    told = tmp_path / "told.csv"
    asked = ("-c", "answer", "--epsilon", 2, "--history", tmp_path / "public.csv", *kept)
    done("privatize", tmp_path / "survey.csv", *asked, "--seed", 3, "-o", told, "--quiet")
    found = done("recover", told, "--json").document
    for label, share in (("a", 0.6), ("b", 0.3), ("c", 0.1)):
        value, error = found["shares"][label]
        assert abs(value - share) < 5 * error + 0.02 and error < 0.05
