import errno
import itertools
import math
import os
from pathlib import Path

import pytest

from tests.shell.releasing import EVEN, FAST, LIVE, RULE, STEP, ledger_of, refused
from tests.shell.running import COMMAND, call, done, rows, spawn
from tests.shell.tables import FORMATS, PLACES, table, write

# Bad input: exit code 2, the file, the row and the rule, nothing half written --------------------


def test_an_unknown_symbol_is_named_by_its_row(model: Path, tmp_path: Path, key: Path) -> None:
    live = table(tmp_path / "live.csv", [*LIVE[:6], ("person-1", "palace-of-secrets")])
    private = tmp_path / "private.csv"
    private.write_text("of an earlier run")
    said = refused(live, "-m", model, *RULE, "--key-file", key, output=private)
    rule = "value must be one of the 4 symbols of the alphabet of the model; nothing leaves for it"
    assert said.startswith(f"sfumato: {live}, row 7: {rule}. To go on: --when-unknown ")
    assert "palace" not in said and said.endswith("fit the model to a history that has the value")


def test_a_grid_that_does_not_cover_the_data_is_refused(models: Path, tmp_path: Path) -> None:
    points = [("a", 10, -5), ("a", 10, -4.321)]
    live = write(tmp_path / "live.csv", ["person", "lon", "lat"], points)
    said = refused(live, "-m", models / "grid.model", *RULE, output=tmp_path / "private.csv")
    assert said.startswith(f"sfumato: {live}, row 2: ")
    assert "4.321" not in said


@pytest.mark.parametrize("value", ["nan", "inf", "twelve", ""])
def test_a_number_that_is_none_is_refused(models: Path, tmp_path: Path, value: str) -> None:
    live = table(tmp_path / "live.csv", [("a", "12"), ("a", value), ("a", "13")])
    said = refused(live, "-m", models / "bins.model", *RULE, output=tmp_path / "private.csv")
    assert said.startswith(f"sfumato: {live}, row 2: the value must ")


def test_nan_in_a_column_of_numbers_is_refused(models: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.parquet", [("a", 1.0), ("a", 2.0), ("a", math.nan)])
    said = refused(live, "-m", models / "levels.model", *RULE, output=tmp_path / "private.csv")
    assert said == f"sfumato: {live}, row 3: the value must be a finite number (see --missing)"


def test_the_model_of_another_alphabet_is_refused(models: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", LIVE)
    said = refused(live, "-m", models / "levels.model", *RULE, output=tmp_path / "private.csv")
    assert said.startswith(f"sfumato: {live}, row 1: value must be one of the 3 symbols")


def test_a_budget_already_spent_is_refused(model: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", [("a", PLACES[i % 2]) for i in range(6)])
    said = refused(
        live,
        "-m",
        model,
        "--budget",
        3,
        "--horizon",
        4,
        *EVEN,
        *FAST,
        output=tmp_path / "private.csv",
    )
    assert said.startswith(f"sfumato: {live}, row 5: the budget is for 4 values of a stream")
    assert "nothing was released" in said and "--when-exhausted" in said


def test_a_budget_spent_in_an_earlier_run_stays_spent(model: Path, tmp_path: Path) -> None:
    run = (
        "-m",
        model,
        "--budget",
        3,
        "--horizon",
        4,
        *EVEN,
        *FAST,
        "--ledger",
        tmp_path / "a.ledger",
    )
    monday = table(tmp_path / "monday.csv", [("a", PLACES[0])] * 3)
    tuesday = table(tmp_path / "tuesday.csv", [("a", PLACES[0])] * 3)
    done("release", monday, *run, "-o", tmp_path / "first.csv")
    said = refused(tuesday, *run, output=tmp_path / "second.csv")
    assert said.startswith(f"sfumato: {tuesday}, row 2: releasing event 4 of stream 'a'")
    assert "1 rows were answered before it: they are charged and stay in the ledger" in said
    assert "`sfumato ledger export`" in said and "--when-exhausted suppress or repeat" in said


def test_the_published_rule_is_refused_where_it_leaks_more_than_it_claims(
    model: Path, tmp_path: Path
) -> None:
    live = table(tmp_path / "live.csv", LIVE)
    said = refused(
        live, "-m", model, "--epsilon", 1, "--method", "published", output=tmp_path / "private.csv"
    )
    assert said.startswith(f"sfumato: {live}, row 1: ")


def test_what_was_drawn_before_a_bad_row_is_charged_and_given_again(
    model: Path, tmp_path: Path
) -> None:
    ledger, live = tmp_path / "city.ledger", tmp_path / "live.csv"
    run = ("-m", model, *RULE, "--ledger", ledger)
    table(live, [*LIVE[:8], ("person-1", "nowhere"), *LIVE[8:]])
    refused(live, *run, output=tmp_path / "private.csv")
    kept, spent = ledger_of(ledger, model)
    assert len(kept) == 8
    assert sum(end.sequence for end in spent.values()) == 8
    table(live, [*LIVE[:8], ("person-1", PLACES[0]), *LIVE[8:]])
    more = ("--resume", "-o", tmp_path / "private.csv", "--json")
    report = done("release", live, *run, *more).document
    assert (report["rows"], report["repeated"]) == (len(LIVE) + 1, 8)
    told = {(row["person"], int(row["sequence"])): row for row in rows(tmp_path / "private.csv")}
    for answer in kept:
        row = told[answer.stream, answer.sequence]
        assert row["released"] == answer.released


@pytest.mark.parametrize(
    "rule",
    [
        (),
        ("--epsilon", 1, "--budget", 1),
        ("--epsilon", 1, "--horizon", 5),
        ("--epsilon", 1, "--window", 5),
        ("--budget", 1),
        ("--horizon", 5),
        ("--window", 5),
        ("--horizon", 5, "--window", 5),
        ("--budget", 1, "--horizon", 5, "--window", 5),
        ("--epsilon", 0),
        ("--epsilon", -1),
        ("--epsilon", "nan"),
        ("--epsilon", "much"),
        ("--budget", 0, "--horizon", 5),
        ("--budget", 1, "--horizon", 0),
        ("--budget", 1, "--window", 0),
        ("--budget", 1, "--window", 2.5),
        ("--epsilon", 1, *STEP, "--ldp", 0),
        ("--epsilon", 1, "--loss", "unheard-of"),
        ("--epsilon", 1, "--loss", "absolute"),
        ("--epsilon", 1, "--method", "magic"),
        ("--epsilon", 1, *STEP, "--when-unknown", "guess"),
        ("--epsilon", 1, *STEP, "--when-exhausted", "substitute"),
        ("--epsilon", 1, "--resume"),
        ("--epsilon", 1, *STEP, "--value", "place,person"),
        ("--epsilon", 1, *STEP, "--stream", "nobody"),
        ("--epsilon", 1, *STEP, "--event", "nothing"),
        ("--epsilon", 1, *STEP, "--key-file", "no-such-file"),
    ],
)
def test_a_wrong_rule_is_refused_before_anything_is_released(
    model: Path, tmp_path: Path, rule: tuple[object, ...]
) -> None:
    live = table(tmp_path / "live.csv", LIVE[:3])
    said = refused(live, "-m", model, *rule, output=tmp_path / "private.csv")
    assert "Traceback" not in said
    assert len(said) > 20


@pytest.mark.parametrize("missing", [(), ("--resume", "--ledger", "never-begun.ledger")])
def test_resuming_needs_the_ledger_of_the_run(
    model: Path, tmp_path: Path, missing: tuple[str, ...]
) -> None:
    live = table(tmp_path / "live.csv", LIVE[:3])
    said = refused(
        live, "-m", model, *RULE, *(missing or ("--resume",)), output=tmp_path / "private.csv"
    )
    assert "--ledger must be the ledger of the interrupted run" in said
    assert not Path("never-begun.ledger").exists()


def test_a_cap_beside_a_total_is_refused_as_such_and_no_method_is_blamed(
    model: Path, tmp_path: Path
) -> None:
    both = ("--epsilon", 1, "--budget", 3, "--horizon", 4)
    said = refused(
        table(tmp_path / "live.csv", LIVE), "-m", model, *both, output=tmp_path / "p.csv"
    )
    assert said.startswith("sfumato: the budget must be --epsilon E, or --budget B")
    assert "--method" not in said and said.endswith("got '--epsilon --budget --horizon'")


def test_the_output_must_not_be_the_input(model: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", LIVE[:3])
    said = refused(live, "-m", model, *RULE, output=live)
    assert said == f"sfumato: {live}: the output must not be the input"


def test_the_folder_of_the_output_must_exist(model: Path, tmp_path: Path) -> None:
    live, ledger = table(tmp_path / "live.csv", LIVE[:3]), tmp_path / "city.ledger"
    target = tmp_path / "missing" / "private.csv"
    result = call("release", live, "-m", model, *RULE, "--ledger", ledger, "-o", target)
    assert result.code == 2
    assert result.err == f"sfumato: {target}: the folder of the output must exist; it does not\n"
    assert ledger_of(ledger, model) == ([], {})


# Raw values --------------------------------------------------------------------------------------


def test_raw_values_never_appear_anywhere(models: Path, tmp_path: Path) -> None:
    raws = [f"{12 + i / 7:.7f}" for i in range(40)]
    live = table(tmp_path / "live.csv", [(f"person-{i % 3}", raw) for i, raw in enumerate(raws)])
    folder = tmp_path / "out"
    folder.mkdir()
    run = ("-m", models / "bins.model", *RULE, "--ledger", folder / "a.ledger")
    result = done("release", live, *run, "-o", folder / "private.csv")
    table(live, [*zip(itertools.repeat("person-0"), raws), ("person-0", "98.7654321")])
    failed = call("release", live, *run, "-o", folder / "other.csv")
    assert failed.code == 2
    said = result.out + result.err + failed.out + failed.err
    told = said.encode() + b"".join(path.read_bytes() for path in folder.iterdir())
    assert {path.name for path in folder.iterdir()} >= {"a.ledger", "private.csv"}
    assert not any(raw.encode() in told for raw in (*raws, "98.7654321"))


# A full disk -------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_full_disk_ends_with_exit_code_2_and_no_file(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, step: str
) -> None:
    def full_disk(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    live = table(tmp_path / "live.csv", LIVE[:9])
    monkeypatch.setattr(os, step, full_disk)
    said = refused(live, "-m", model, *RULE, output=tmp_path / f"private.{suffix}")
    assert "No space left on device" in said


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
from sfumato.cli import main
main()
"""


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_that_may_not_grow_ends_with_exit_code_2_and_no_file(
    model: Path, tmp_path: Path, suffix: str
) -> None:
    live = table(tmp_path / "live.csv", LIVE * 3)
    result = spawn(
        *("release", live, "-m", model, *RULE, "-o", tmp_path / f"private.{suffix}"),
        command=[*COMMAND[:-1], LIMITED],
    )
    assert result.code == 2
    assert "File too large" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["live.csv"]


def test_a_full_pipe_ends_with_exit_code_2(model: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", LIVE * 3)
    shell = ["sh", "-c", '"$@" > /dev/full', "sh", *COMMAND]
    result = spawn("release", live, "-m", model, *RULE, "-o", "-", command=shell)
    assert (result.code, result.err) == (2, "sfumato: output: No space left on device\n")
