import json
import random
import subprocess
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from sklearn.linear_model import LogisticRegression

from sfumato.cli.console import UNREAD
from sfumato.column.mechanism_registry import MECHANISMS
from tests.shell.running import (
    COMMAND,
    ENVIRONMENT,
    PATIENCE,
    TOKEN,
    call,
    done,
    figures,
    files,
    litter,
    refused,
)
from tests.shell.tables import FORMATS, read, write

NAMES = ["id", "answer", "age", "income", "street"]


def survey(rows: int = 120, seed: int = 1) -> list[tuple[object, ...]]:
    """People with an answer, an age, an income and a street that is nobody's business."""
    rng = random.Random(seed)
    return [
        (
            f"p{row}",
            rng.choice(["yes", "no", "no", "maybe"]),
            rng.randrange(20, 29),
            round(rng.gauss(50, 12), 2),
            TOKEN,
        )
        for row in range(rows)
    ]


@pytest.fixture
def people(tmp_path: Path) -> Path:
    return write(tmp_path / "survey.csv", NAMES, survey())


def answer(people: Path, output: Path, *options: object) -> tuple[object, ...]:
    return ("privatize", people, "-c", "answer", "--epsilon", 1, "-o", output, *options)


# Help --------------------------------------------------------------------------------------------


def test_help_teaches_every_mechanism_by_name_and_the_job_by_example() -> None:
    result = done("privatize", "--help")
    assert result.out.startswith("Usage: sfumato privatize ")
    words = result.out.replace(",", " ").split()
    assert [name for name in MECHANISMS if name not in words] == []
    assert "sfumato privatize survey.csv -c answer" in result.out
    for option in ("--key-file", "--history", "--keep", "--id", "--as", "--range", "--values"):
        assert option in result.out
    assert "INSECURE" in result.out
    assert "sfumato privatize" in done("--help").out


@pytest.mark.parametrize("missing", ["-c", "--epsilon", "-o"])
def test_a_call_without_what_it_needs_ends_with_exit_code_2(tmp_path: Path, missing: str) -> None:
    given = {"-c": "answer", "--epsilon": 1, "-o": tmp_path / "private.csv"}
    options = [part for name, value in given.items() if name != missing for part in (name, value)]
    result = call("privatize", tmp_path / "survey.csv", *options)
    assert (result.code, result.out) == (2, "")
    assert files(tmp_path) == set()


# Tables ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "into"), list(zip(FORMATS, [*FORMATS[1:], FORMATS[0]], strict=True))
)
def test_every_format_comes_in_and_goes_out(
    tmp_path: Path, key: Path, suffix: str, into: str
) -> None:
    source = write(tmp_path / f"survey.{suffix}", NAMES, survey())
    output = tmp_path / f"private.{into}"
    found = done(
        *answer(source, output, "--keep", "id", "--id", "id", "--key-file", key, "--json")
    ).document
    told = read(output)
    assert [list(row) for row in told] == [["id", "answer"]] * 120
    assert [row["id"] for row in told] == [f"p{row}" for row in range(120)]
    assert {row["answer"] for row in told} <= {"yes", "no", "maybe"}
    assert (found["rows"], found["size"], found["mechanism"]) == (120, 3, "optimal")
    assert litter(tmp_path) == []


def test_every_format_gives_the_same_answers(tmp_path: Path, key: Path) -> None:
    for column in ("age", "income"):
        answers, certificates = set(), set()
        for suffix in FORMATS:
            source = write(tmp_path / f"survey.{suffix}", NAMES, survey())
            output = tmp_path / f"{column}-from-{suffix}.csv"
            options = ("-c", column, "--epsilon", 1, "-o", output, "--key-file", key)
            done("privatize", source, *options)
            answers.add(output.read_bytes())
            certificates.add(Path(f"{output}.certificate.json").read_bytes())
        assert len(answers) == len(certificates) == 1


def test_only_the_column_leaves_unless_others_are_kept(people: Path, tmp_path: Path) -> None:
    done(*answer(people, tmp_path / "alone.csv"))
    done(*answer(people, tmp_path / "kept.csv", "--keep", "age, id", "--independent", "age,id"))
    assert list(read(tmp_path / "alone.csv")[0]) == ["answer"]
    assert list(read(tmp_path / "kept.csv")[0]) == ["age", "id", "answer"]
    for path in tmp_path.glob("*.c*"):
        assert path == people or TOKEN not in path.read_text()


def test_a_table_may_come_through_a_pipe_and_leave_through_one(people: Path) -> None:
    options = ("--keep", "id", "--independent", "id")
    result = done(*answer(Path("-"), Path("-"), *options), stdin=people.read_bytes())
    lines = result.out.splitlines()
    assert lines[0] == "id,answer"
    assert [line.split(",")[0] for line in lines[1:]] == [f"p{row}" for row in range(120)]
    assert "leakage: LIP(" in result.err


def test_standard_output_holds_the_table_and_nothing_else(people: Path) -> None:
    for options in ((), ("--quiet",), ("--json",), ("--mechanism", "randomized-response")):
        result = done(*answer(people, Path("-"), *options))
        assert len(result.out.splitlines()) == 121
        assert (result.err == "") == ("--quiet" in options)


def test_a_reader_that_goes_away_is_no_drama(tmp_path: Path) -> None:
    source = write(tmp_path / "survey.csv", NAMES, survey(rows=8_000))
    options = ("--keep", "id", "--independent", "id", "--quiet")
    command = [*COMMAND, *map(str, answer(source, Path("-"), *options))]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(PATIENCE) == UNREAD
    assert said == b""
    assert files(tmp_path) == {"survey.csv"}


# Certificate -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["optimal", "context-free", "unary-encoding"])
def test_the_certificate_beside_the_output_is_what_json_says(
    people: Path, tmp_path: Path, mechanism: str
) -> None:
    output = tmp_path / "private.csv"
    found = done(*answer(people, output, "--mechanism", mechanism, "--json")).document
    written = json.loads(Path(f"{output}.certificate.json").read_text())
    seen = found.pop("operator")
    assert found == {"output": str(output), **figures(output)}
    assert {"clamped", "missing", "realised", "constant", "notes"} == set(seen)
    assert (seen["realised"] is None) == (mechanism == "unary-encoding")
    assert not {"realised", "constant"} & set(written)
    assert written["lip"] <= 1.0
    assert written["delta"] == 0.0
    assert (written["frequencies"] is None) == (mechanism != "unary-encoding")
    assert files(tmp_path) == {"survey.csv", "private.csv", "private.csv.certificate.json"}


def test_a_delta_stands_in_the_certificate(people: Path, tmp_path: Path) -> None:
    options = ("--epsilon", 1, "--delta", 0.001, "--range", "0:100", "--points", 21)
    given = ("-c", "income", "-o", tmp_path / "private.csv", "--mechanism", "gaussian")
    found = done("privatize", people, *given, *options, "--json").document
    assert found["delta"] == 0.001
    assert (found["lip"] <= 1, found["interval"], found["size"]) == (True, [0, 100], 21)


def test_a_person_is_told_what_it_promises_and_a_quiet_one_nothing(
    people: Path, tmp_path: Path
) -> None:
    told = done(*answer(people, tmp_path / "a.csv"))
    assert "120 values of 'answer' through optimal" in told.out
    assert "under the prior (estimated frequencies)" in told.out
    assert "note: the prior was learnt from this very column" in told.err
    quiet = done(*answer(people, tmp_path / "b.csv", "--quiet"))
    assert (quiet.out, quiet.err) == ("", "")
    counted = done(*answer(people, tmp_path / "c.csv", "--mechanism", "subset-selection"))
    assert "estimated share of each symbol" in counted.out


@pytest.mark.parametrize(("column", "suffix"), [("answer", "svg"), ("income", "png")])
def test_a_picture_is_drawn(people: Path, tmp_path: Path, column: str, suffix: str) -> None:
    picture = tmp_path / f"picture.{suffix}"
    output = ("-o", tmp_path / "private.csv", "--plot", picture)
    done("privatize", people, "-c", column, "--epsilon", 1, *output)
    head = picture.read_bytes()[:200]
    assert head.startswith(b"\x89PNG") if suffix == "png" else b"<?xml" in head


# Once --------------------------------------------------------------------------------------------


def test_an_output_that_exists_is_not_drawn_again(people: Path, tmp_path: Path) -> None:
    output = tmp_path / "private.csv"
    done(*answer(people, output))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    refused(call(*answer(people, output)), "--output must not exist", output)
    refused(call(*answer(people, output, "--seed", 1)), "--output must not exist")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_key_gives_the_same_answers_again(people: Path, tmp_path: Path, key: Path) -> None:
    output = tmp_path / "private.csv"
    done(*answer(people, output, "--key-file", key))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    done(*answer(people, output, "--key-file", key))
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    done(*answer(people, tmp_path / "fresh.csv"))
    assert (tmp_path / "fresh.csv").read_bytes() != output.read_bytes()


def test_names_of_rows_make_the_order_indifferent(tmp_path: Path, key: Path) -> None:
    history = write(tmp_path / "history.csv", NAMES, survey(seed=9))
    rows = survey()
    found = []
    for place, order in enumerate([rows, rows[::-1], rows[10:50]]):
        source = write(tmp_path / f"{place}.csv", NAMES, order)
        output = tmp_path / f"private-{place}.csv"
        options = ("--history", history, "--key-file", key, "--id", "id", "--keep", "id")
        done(*answer(source, output, *options))
        found.append({row["id"]: row["answer"] for row in read(output)})
    assert found[0] == found[1]
    assert found[2].items() <= found[0].items()


def test_a_key_that_others_can_read_or_is_short_is_refused(
    people: Path, tmp_path: Path, key: Path
) -> None:
    key.chmod(0o644)
    open_to_all = answer(people, tmp_path / "private.csv", "--key-file", key)
    refused(call(*open_to_all), "be readable by its owner alone")
    done(*open_to_all, "--shared-key")
    key.write_bytes(b"short")
    key.chmod(0o600)
    refused(call(*answer(people, tmp_path / "b.csv", "--key-file", key)), "16 bytes")
    refused(call(*answer(people, tmp_path / "b.csv", "--key-file", tmp_path / "no.key")), "no.key")
    both = call(*answer(people, tmp_path / "b.csv", "--key-file", key, "--seed", 1))
    assert both.code == 2
    assert not (tmp_path / "b.csv").exists()


def test_a_seed_is_warned_about_and_repeats_itself(people: Path, tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        result = done(*answer(people, tmp_path / name, "--seed", 5))
        assert "warning: --seed makes guessable coins" in result.err
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


# Knowledge ---------------------------------------------------------------------------------------


def test_public_records_take_the_place_of_the_table(people: Path, tmp_path: Path) -> None:
    history = write(tmp_path / "history.parquet", NAMES, survey(seed=9))
    output = tmp_path / "private.csv"
    found = done(*answer(people, output, "--history", history, "--json")).document
    assert "this very column" not in str(found["remarks"])


def test_a_prior_may_stand_in_a_file(people: Path, tmp_path: Path) -> None:
    prior = tmp_path / "known.csv"
    prior.write_text("value,probability\nyes,0.25\nno,0.5\nmaybe,0.2\nnever,0.05\n")
    found = done(*answer(people, tmp_path / "a.csv", "--prior", prior, "--json")).document
    assert (found["prior"], found["size"], found["floor"]) == ("given", 4, 0.0)
    prior.write_text("value,probability\nyes,0.5\nno,0.5\n")
    refused(call(*answer(people, tmp_path / "b.csv", "--prior", prior)), "the 2 symbols")


def test_values_may_be_listed_and_the_way_to_read_them_chosen(people: Path, tmp_path: Path) -> None:
    listed = ("--values", "yes, no,maybe,never")
    assert done(*answer(people, tmp_path / "a.csv", *listed, "--json")).document["size"] == 4
    given = ("privatize", people, "-c", "age", "--epsilon", 1, "--json")
    symbols = done(*given, "-o", tmp_path / "b.csv").document
    numbers = done(*given, "-o", tmp_path / "c.csv", "--as", "numbers").document
    assert (symbols["size"], symbols["interval"]) == (9, None)
    assert numbers["interval"] is not None
    assert {row["age"] for row in read(tmp_path / "b.csv")} <= {str(age) for age in range(20, 29)}


def test_features_give_everyone_a_prior_of_his_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "sfumato.column.feature_prior._classifier", lambda given: LogisticRegression()
    )
    source = write(tmp_path / "survey.parquet", NAMES, survey(rows=40))
    history = write(tmp_path / "history.parquet", NAMES, survey(rows=60, seed=9))
    options = ("--prior", "features:age,income", "--history", history, "--json")
    found = done(*answer(source, tmp_path / "private.csv", *options)).document
    assert found["prior"] == "features age, income"
    assert found["lip"] <= 1.0
    assert list(read(tmp_path / "private.csv")[0]) == ["answer"]


# Refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--mechanism", "magic"), ("mechanism must be one of optimal, ", "'magic'")),
        (("--as", "colours"), ("must be one of symbols, numbers", "'colours'")),
        (("--range", "5"), ("--range must be LOW:HIGH", "'5'")),
        (("--range", "9:1", "--column", "income"), ("the first less than the second",)),
        (("--range", "nan:1", "--column", "income"), ("must be finite",)),
        (("--as", "numbers"), ("row 1: the value must be a number",)),
        (("--epsilon", "0"), ("epsilon must be", "0.0")),
        (("--delta", "0.1"), ("delta must be 0 for symbols",)),
        (("--prior", "unheard-of"), ("prior must be estimate, mixture", "'unheard-of'")),
        (("--history", "no-such.csv"), ("no-such.csv",)),
        (("--column", "nobody"), ("must have a column 'nobody'",)),
        (("--keep", "answer"), ("keep must not name a column that is released",)),
        (("--values", "yes,no"), ("the 2 symbols of the alphabet",)),
        (("--id", "id"), ("must come with keyed coins",)),
        (("--ldp", "1", "--mechanism", "calibrated"), ("ldp must go with the optimal",)),
        (("--radius", "0.1", "--ratio", "1.1"), ("radius must not come with ratio",)),
        (("--points", "1", "--range", "0:9", "--column", "income"), ("at least 2",)),
        (("--mechanism", "published", "--epsilon", "0.01"), ("nothing was released",)),
    ],
)
def test_a_refusal_says_what_must_hold_and_leaves_nothing(
    people: Path, tmp_path: Path, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    refused(call(*answer(people, tmp_path / "private.csv", *options)), *words)
    assert files(tmp_path) == {"survey.csv"}


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_missing_value_is_named_by_its_row(tmp_path: Path, suffix: str) -> None:
    rows = survey(rows=8)
    rows[4] = ("p4", "" if suffix == "csv" else None, 20, 1.5, TOKEN)
    source = write(tmp_path / f"survey.{suffix}", NAMES, rows)
    refused(
        call(*answer(source, tmp_path / "private.csv")),
        "row 5: the value must not be missing",
        "--missing",
    )
    assert files(tmp_path) == {source.name}


@pytest.mark.parametrize("content", [b"", b"id,answer\n", b"answer\nyes,no\n", b"\xff\xfe"])
def test_a_broken_table_leaves_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "survey.csv").write_bytes(content)
    refused(call(*answer(tmp_path / "survey.csv", tmp_path / "private.csv")))
    assert files(tmp_path) == {"survey.csv"}


def test_a_folder_that_does_not_exist_is_refused(people: Path, tmp_path: Path) -> None:
    refused(call(*answer(people, tmp_path / "nowhere" / "private.csv")))
    refused(call(*answer(tmp_path / "nobody.csv", tmp_path / "private.csv")), "nobody.csv")
    assert files(tmp_path) == {"survey.csv"}


def test_a_failure_leaves_the_earlier_release_as_it_was(
    people: Path, tmp_path: Path, key: Path
) -> None:
    output = tmp_path / "private.csv"
    done(*answer(people, output, "--key-file", key))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    refused(call(*answer(people, output, "--key-file", key, "--values", "yes,no")))
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


# What once slipped through -----------------------------------------------------------------------


@pytest.mark.parametrize("changed", [("--epsilon", 2), ("--mechanism", "calibrated"), ("seen",)])
def test_a_key_does_not_overwrite_an_output_with_other_answers(
    people: Path, tmp_path: Path, key: Path, changed: tuple[object, ...]
) -> None:
    # The help promises it: not overwritten, unless the key makes the answers the same.
    output = tmp_path / "private.csv"
    done(*answer(people, output, "--key-file", key, "--id", "id"))
    before = output.read_bytes()
    options = changed
    if changed == ("seen",):
        # One more row moves the estimate, and with it the coins of everyone.
        write(people, NAMES, [*survey(), ("new", "yes", 20, 1.5, TOKEN)])
        options = ()
    result = call(*answer(people, output, "--key-file", key, "--id", "id", *options))
    kept = len(before) <= len(output.read_bytes()) and output.read_bytes().startswith(before)
    assert result.code == 2 or kept


def obstacles(folder: Path) -> dict[str, tuple[object, ...]]:
    """What may fail after the column was drawn."""
    return {
        "picture of no kind": ("--plot", folder / "picture.xyz"),
        "picture nowhere": ("--plot", folder / "nowhere" / "picture.png"),
        "certificate taken": (),
        "no matplotlib": ("--plot", folder / "picture.png"),
    }


@pytest.mark.parametrize(
    "obstacle", ["picture of no kind", "picture nowhere", "certificate taken", "no matplotlib"]
)
def test_whatever_fails_at_the_end_is_one_line_and_leaves_no_release(
    people: Path, tmp_path: Path, obstacle: str
) -> None:
    # Who tries again without deleting is refused; who deletes draws fresh noise.
    output = tmp_path / "private.csv"
    if obstacle == "certificate taken":
        Path(f"{output}.certificate.json").mkdir()
    hidden: dict[str, Any] = {"matplotlib.figure": None} if obstacle == "no matplotlib" else {}
    with mock.patch.dict("sys.modules", hidden):
        result = call(*answer(people, output, *obstacles(tmp_path)[obstacle]))
    refused(result)
    assert not output.exists()


def test_a_bad_row_is_named_with_its_file(people: Path, tmp_path: Path) -> None:
    rows = survey(rows=8)
    rows[4] = ("p4", "", 20, 1.5, TOKEN)
    broken = write(tmp_path / "broken.csv", NAMES, rows)
    refused(call(*answer(broken, tmp_path / "private.csv")), f"{broken}, row 5")
    fine = call(*answer(people, tmp_path / "private.csv", "--history", broken))
    refused(fine, f"{broken}, row 5")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--as", "colours"), "--as"),
        (("--id", "id"), "--id"),
        (("--range", "9:1", "--column", "income"), "--range"),
        (("--points", "1", "--range", "0:9", "--column", "income"), "--points"),
    ],
)
def test_a_refusal_names_the_option(
    people: Path, tmp_path: Path, options: tuple[str, ...], named: str
) -> None:
    refused(call(*answer(people, tmp_path / "private.csv", *options)), named)


def test_features_are_the_same_numbers_in_every_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In CSV all cells are text, and so the numbers of a feature are taken for categories.
    costs = set()
    monkeypatch.setattr(
        "sfumato.column.feature_prior._classifier", lambda given: LogisticRegression()
    )
    for suffix in ("csv", "parquet"):
        source = write(tmp_path / f"survey.{suffix}", NAMES, survey(rows=40))
        history = write(tmp_path / f"history.{suffix}", NAMES, survey(rows=60, seed=9))
        options = ("--prior", "features:income", "--history", history, "--json")
        costs.add(done(*answer(source, tmp_path / f"from-{suffix}.csv", *options)).document["cost"])
    assert len(costs) == 1


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "arrow"])
def test_kept_columns_leave_as_they_are(tmp_path: Path, suffix: str) -> None:
    kept = [True, False, True, None] * 10
    whole = [2**60 + 1, 3, 4, 5] * 10
    rows = list(zip("aabb" * 10, kept, whole, strict=True))
    source = write(tmp_path / f"survey.{suffix}", ["answer", "flag", "number"], rows)
    output = tmp_path / f"private.{suffix}"
    done(
        *answer(
            source,
            output,
            "--keep",
            "flag,number",
            "--independent",
            "flag,number",
            "--order",
            "kept",
        )
    )
    told = read(output)
    assert [row["number"] for row in told] == whole
    assert [row["flag"] for row in told] == kept


def test_an_output_that_is_the_table_itself_is_refused(people: Path, key: Path) -> None:
    before = people.read_bytes()
    result = call(*answer(people, people, "--key-file", key))
    assert result.code == 2
    assert people.read_bytes() == before


# What leaves beside it ---------------------------------------------------------------------------


def test_kept_columns_are_grouped_by_or_declared(people: Path, tmp_path: Path) -> None:
    rows = [(place % 2, answer) for place, (_, answer, *_) in enumerate(survey(rows=200))]
    source = write(tmp_path / "homes.csv", ["home", "answer"], rows)
    grouped = done(*answer(source, tmp_path / "a.csv", "--keep", "home", "--json")).document
    assert (grouped["kept"], grouped["independent"]) == (["home"], [])
    declared = ("--keep", "home", "--independent", "home", "--json")
    told = done(*answer(source, tmp_path / "b.csv", *declared)).document
    assert (told["kept"], told["independent"]) == ([], ["home"])
    result = call(*answer(people, tmp_path / "c.csv", "--keep", "id"))
    refused(result, "every group of equal values of 'id'", "(--independent)")
    history = write(tmp_path / "history.csv", ["home", "answer"], rows[::-1])
    options = ("--keep", "home", "--history", history, "--json")
    assert done(*answer(source, tmp_path / "d.csv", *options)).document["kept"] == ["home"]


def test_an_order_that_tells_is_refused_kept_or_shuffled(tmp_path: Path) -> None:
    rows = sorted(survey(rows=200), key=lambda row: str(row[1]))
    source = write(tmp_path / "sorted.csv", NAMES, rows)
    refused(call(*answer(source, tmp_path / "a.csv")), "order of the rows", "(--order shuffled)")
    assert files(tmp_path) == {"sorted.csv"}
    options = ("--order", "shuffled", "--keep", "id", "--independent", "id")
    done(*answer(source, tmp_path / "b.csv", *options))
    names = [row["id"] for row in read(tmp_path / "b.csv")]
    assert sorted(names) == sorted(str(row[0]) for row in rows)
    assert names != [row[0] for row in rows]
    assert done(*answer(source, tmp_path / "c.csv", "--order", "kept", "--json")).document["order"]


# Missing values, silence, rivals -----------------------------------------------------------------


def test_missing_values_are_dropped_or_a_symbol_and_the_operator_gets_the_count(
    tmp_path: Path,
) -> None:
    rows = [(row[0], "" if place % 10 == 3 else row[1]) for place, row in enumerate(survey())]
    source = write(tmp_path / "gaps.csv", ["id", "answer"], rows)
    refused(call(*answer(source, tmp_path / "a.csv")), "row 4", "12 are (--missing drop or symbol")
    found = done(*answer(source, tmp_path / "b.csv", "--missing", "drop", "--json")).document
    assert (found["rows"], found["operator"]["missing"]) == (108, 12)
    said = done(*answer(source, tmp_path / "c.csv", "--missing", "symbol"))
    assert "12 values were missing" in said.err
    assert len(read(tmp_path / "c.csv")) == 120
    refused(call(*answer(source, tmp_path / "d.csv", "--missing", "skip")), "--missing must be")


def test_a_constant_says_that_it_is_one(tmp_path: Path) -> None:
    source = write(tmp_path / "no.csv", ["answer"], [("No",)] * 300)
    refused(call(*answer(source, tmp_path / "a.csv")), "all rows hold one value", "(--values)")
    said = done(*answer(source, tmp_path / "b.csv", "--values", "Yes,No"))
    assert "NOT WORTH IT" in said.err
    assert "no row can get 'Yes'" in said.err
    written = json.loads((tmp_path / "b.csv.certificate.json").read_text())
    assert (written["gain"], written["never"], written["outputs"]) == (0.0, ["Yes"], None)


def test_rivals_are_told_in_words_and_to_machines(people: Path, tmp_path: Path) -> None:
    asked = ("privatize", people, "-c", "income", "--epsilon", 2, "--range", "0:100")
    given = (*asked, "--points", 41, "--compare")
    said = done(*given, "-o", tmp_path / "a.csv").out
    for name in ("quantile-response", "a constant", "laplace, best guess"):
        assert name in said
    found = done(*given, "-o", tmp_path / "b.csv", "--json").document
    costs = {rival["name"]: rival["cost"] for rival in found["rivals"]}
    assert costs["optimal"] == pytest.approx(found["cost"], rel=5e-2)
    assert costs["a constant"] == pytest.approx(found["silence"], rel=5e-2)
    assert costs["optimal"] < costs["quantile-response"] < costs["a constant"]
    assert "rivals" not in json.loads((tmp_path / "b.csv.certificate.json").read_text())
