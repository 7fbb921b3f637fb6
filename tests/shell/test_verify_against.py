"""Certificates beside the true rows and the key; reports that can be cited; keys of releases."""

from __future__ import annotations

import csv
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from sfumato.store.attestation import canonical, sealed
from tests.shell.running import call, done, refused
from tests.shell.tables import write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Tables of people, and a key of random bytes."""
    rng = random.Random(7)
    answers = [
        (f"p{row}", rng.choice(["yes", "no", "no", "maybe"]), rng.choice(["east", "west"]))
        for row in range(150)
    ]
    write(tmp_path / "survey.csv", ["id", "answer", "school"], answers)
    public = [(f"q{row}", rng.choice(["yes", "no", "no", "maybe"]), "east") for row in range(150)]
    write(tmp_path / "public.csv", ["id", "answer", "school"], public)
    people = [(rng.gauss(170, 8), rng.gauss(75, 9)) for _ in range(40)]
    write(tmp_path / "people.csv", ["height", "weight"], people)
    write(tmp_path / "counts.csv", ["cnt"], [(rng.randrange(80, 120),) for _ in range(20)])
    visits = [(town, rng.randrange(50)) for town in ("delft", "gouda") for _ in range(5)]
    write(tmp_path / "visits.csv", ["town", "home"], visits)
    (tmp_path / "chain.csv").write_text("0.8,0.2\n0.3,0.7\n")
    done("key", "new", tmp_path / "year.key")
    return tmp_path


def privatized(folder: Path, *options: object, key: bool = False) -> Path:
    keyed = ("--key-file", folder / "year.key") if key else ()
    output = folder / "told.csv"
    command = ("privatize", folder / "survey.csv", "-c", "answer", "--epsilon", 1)
    done(*command, *options, *keyed, "-o", output, "--quiet")
    return folder / "told.csv.certificate.json"


def resealed(certificate: Path, **changes: Any) -> None:
    """What a releaser writes who knows the program."""
    document = json.loads(certificate.read_text()) | changes
    document.pop("written")
    table = certificate.with_name(certificate.name.removesuffix(".certificate.json"))
    certificate.write_text(canonical(sealed(document, table)))


def against(certificate: Path, raw: str, *options: object, key: bool = True) -> dict[str, Any]:
    folder = certificate.parent
    keyed = ("--key-file", folder / "year.key") if key else ()
    result = call("verify", certificate, "--against", folder / raw, *keyed, *options, "--json")
    assert result.code == (0 if result.document["passed"] else 1)
    return result.document


def test_what_was_learnt_from_the_rows_is_computed_from_them_again(folder: Path) -> None:
    certificate = privatized(folder)
    assert against(certificate, "survey.csv", key=False)["problems"] == []
    document = json.loads(certificate.read_text())
    document["guarantees"][0]["epsilon"] = 0.01
    resealed(certificate, lip=0.01, guarantees=document["guarantees"])
    found = against(certificate, "survey.csv", key=False)["problems"]
    assert any(problem.startswith("lip: the certificate says 0.01") for problem in found)


def test_one_coin_that_was_turned_round_shows_with_the_key(folder: Path) -> None:
    certificate = privatized(folder, key=True)
    assert against(certificate, "survey.csv")["problems"] == []
    table = folder / "told.csv"
    lines = table.read_text().splitlines()
    lines[42] = "no" if lines[42] != "no" else "yes"
    table.write_text("\n".join(lines) + "\n")
    resealed(certificate)
    found = against(certificate, "survey.csv")["problems"]
    assert found == ["table: row 42 is not what the key draws for the true value"]


def test_a_releaser_that_gives_the_truth_is_found_without_a_key(folder: Path) -> None:
    certificate = privatized(folder, "--history", folder / "public.csv")
    assert against(certificate, "survey.csv", key=False)["problems"] == []
    with (folder / "survey.csv").open() as file:
        truth = [row["answer"] for row in csv.DictReader(file)]
    (folder / "told.csv").write_text("\n".join(["answer", *truth]) + "\n")
    resealed(certificate)
    assert call("verify", certificate).code == 0  # whoever has no rows cannot tell
    found = against(certificate, "survey.csv", key=False)["problems"]
    assert "table: the outputs are no fair draws: the truth leaves too often" in found


def test_another_key_and_another_commitment_show(folder: Path) -> None:
    certificate = privatized(folder, key=True)
    done("key", "new", folder / "other.key")
    commitment = done("key", "commit", folder / "year.key").out.strip()
    assert json.loads(certificate.read_text())["commitment"] == commitment
    assert against(certificate, "survey.csv", "--commitment", commitment)["passed"]
    (folder / "year.key").unlink()
    (folder / "other.key").rename(folder / "year.key")
    found = against(certificate, "survey.csv", "--commitment", commitment)["problems"]
    assert "commitment: the key is not the one that was committed to" in found
    assert "commitment: it is not that of the key that was given" in found


def test_a_key_of_words_leaves_no_commitment(folder: Path) -> None:
    (folder / "year.key").write_bytes(b"thirty-two bytes for test coins!")
    document = json.loads(privatized(folder, key=True).read_text())
    assert (document["coins"], document["commitment"]) == ("keyed", None)


JOBS: dict[str, list[Any]] = {
    "people.csv": ["publish", "--columns", "height,weight", "--accuracy", 2, "--sigma", 6, "-t"],
    "counts.csv": ["realtime", "--value", "cnt", "--sensitivity", 1, "--epsilon", 1],
    "visits.csv": [
        *("temporal", "release", "--stream", "town", "--value", "home", "--alpha", 1),
        *("--backward", "chain.csv"),
    ],
}


@pytest.mark.parametrize("raw", JOBS)
def test_draws_of_every_job_are_repeated_with_the_key(raw: str, folder: Path) -> None:
    parts = [folder / part if str(part).endswith(".csv") else part for part in JOBS[raw]]
    output = folder / "told.csv"
    done(*parts, folder / raw, "--key-file", folder / "year.key", "-o", output, "--quiet")
    certificate = Path(f"{output}.certificate.json")
    found = against(certificate, raw)
    assert found["problems"] == []
    assert any("every draw was repeated with the key" in line for line in found["checked"])
    other = folder / "other.csv"
    with (folder / raw).open() as file:
        rows = list(csv.reader(file))
    rows[-1][-1] = str(float(rows[-1][-1]) + 1).removesuffix(".0")
    write(other, rows[0], rows[1:])
    assert not against(certificate, "other.csv")["passed"]


def test_a_density_that_is_said_to_be_given_hides_no_coin(folder: Path) -> None:
    command = [*JOBS["people.csv"], folder / "people.csv", "--coupling", "none", "--order", "kept"]
    output = folder / "told.csv"
    done(*command, "--key-file", folder / "year.key", "-o", output, "--quiet")
    certificate = Path(f"{output}.certificate.json")
    asked = json.loads(certificate.read_text())["asked"] | {"coupling": "given"}
    resealed(certificate, asked=asked)
    assert against(certificate, "people.csv")["problems"] == []
    lines = output.read_text().splitlines()
    lines[5] = lines[6]
    output.write_text("\n".join(lines) + "\n")
    resealed(certificate)
    found = against(certificate, "people.csv")["problems"]
    assert "table: row 5 is not what the key draws for the true value" in found
    resealed(certificate, noise="best", learnt_from="table", evidence=None)
    found = against(certificate, "people.csv")["unchecked"]
    assert any(line.startswith("that the coins were fair, and") for line in found)
    assert not any("every draw was repeated" in line for line in found)


def test_outputs_are_tested_where_rows_were_dropped_too(folder: Path) -> None:
    raw = folder / "survey.csv"
    lines = raw.read_text().splitlines()
    name, _, school = lines[9].split(",")
    raw.write_text("\n".join([*lines[:9], f"{name},,{school}", *lines[10:]]) + "\n")
    certificate = privatized(folder, "--history", folder / "public.csv", "--missing", "drop")
    found = against(certificate, "survey.csv", key=False)
    assert found["problems"] == []
    assert any(line.startswith("bets against fair coins made") for line in found["private"])


def test_a_key_is_for_keyed_releases_and_comes_with_the_rows(folder: Path) -> None:
    certificate = privatized(folder, "--history", folder / "public.csv")
    key, raw = ("--key-file", folder / "year.key"), ("--against", folder / "survey.csv")
    refused(call("verify", certificate, *key), "--against")
    refused(call("verify", certificate, *key, *raw), "keyed")
    refused(call("verify", certificate, *raw, "--commitment", 64 * "0"), "--key-file")


# Reports -----------------------------------------------------------------------------------------


def reported(folder: Path, *options: object) -> Path:
    certificate = privatized(folder, "--history", folder / "public.csv")
    report = folder / "checked.json"
    pages = ("--report", folder / "checked.html", "--report", folder / "checked.md")
    done("verify", certificate, *options, "--report", report, *pages, "--quiet")
    return report


def test_a_report_is_found_again_from_its_files(folder: Path) -> None:
    report = reported(folder)
    assert done("verify-report", report, "--json").document["passed"]
    moved = folder / "elsewhere"
    moved.mkdir()
    away = report.rename(moved / "checked.json")
    files = [folder / "told.csv", folder / "told.csv.certificate.json"]
    assert "finds the same again" in done("verify-report", away, *files).out
    alone = done("verify-report", away).out
    assert "NOT checked: certificate told.csv.certificate.json: not at hand" in alone


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("passed", False, "passed: the report says false; computed from the files true"),
        ("totals", {"rows": 9}, "totals.job: missing"),
        ("level", "holder of everything", "level: the report says"),
        ("note", "0110", "note: an unknown field"),
        ("command", "bake", "command: 'bake' is none that writes reports"),
    ],
)
def test_an_edited_report_shows(folder: Path, name: str, value: object, message: str) -> None:
    from sfumato.store.attestation import written_digest

    report = reported(folder)
    document = json.loads(report.read_text()) | {name: value}
    plain = canonical(document)
    report.write_text(plain)
    assert "written: the fields are not those" in call("verify-report", report).out
    document["written"] = written_digest("report", document)
    report.write_text(canonical(document))
    result = call("verify-report", report)
    assert result.code == 1
    assert message in result.out


def test_a_file_that_was_changed_since_shows_in_the_report(folder: Path) -> None:
    report = reported(folder)
    table = folder / "told.csv"
    table.write_text(table.read_text().replace("yes", "no", 1))
    result = call("verify-report", report)
    assert result.code == 1
    assert "files: told.csv is not the file that was read" in result.out


def test_a_report_tells_nothing_of_the_rows_it_was_held_against(folder: Path) -> None:
    import hashlib

    report = reported(folder, "--against", folder / "survey.csv")
    document = json.loads(report.read_text())
    secret = hashlib.sha256((folder / "survey.csv").read_bytes()).hexdigest()
    for page in ("checked.json", "checked.html", "checked.md"):
        text = (folder / page).read_text()
        assert secret not in text
        assert "survey.csv" not in text
        assert "coins made" not in text
    assert {"role": "true values", "name": None, "sha256": None, "bytes": None} in document["files"]
    assert "not contradicted" in done("verify-report", report).out
    # One true value more or less moves what bets make, and nothing that is told.
    lines = (folder / "survey.csv").read_text().splitlines()
    name, answer, school = lines[9].split(",")
    lines[9] = f"{name},{'yes' if answer == 'no' else 'no'},{school}"
    (folder / "survey.csv").write_text("\n".join(lines) + "\n")
    again = ("verify", folder / "told.csv.certificate.json", "--against", folder / "survey.csv")
    shown = done(*again, "--report", folder / "again.json").out
    assert "for you alone: bets against fair coins made" in shown
    other = json.loads((folder / "again.json").read_text())
    changing = ("time", "written")
    assert {n: v for n, v in other.items() if n not in changing} == {
        n: v for n, v in document.items() if n not in changing
    }


def test_a_page_loads_nothing_and_takes_no_data_for_marks(folder: Path) -> None:
    rows = [(row, "<b>yes</b>" if row % 3 else "no") for row in range(90)]
    write(folder / "survey.csv", ["id", "answer"], rows)
    certificate = privatized(folder, "--order", "kept")
    table = folder / "told.csv"
    table.write_text(table.read_text().replace("no", "<script>alert(1)</script>", 1))
    page = folder / "page.html"
    assert call("verify", certificate, "--report", page).code == 1
    text = page.read_text()
    assert "<script" not in text and "http" not in text and "src=" not in text


def test_a_report_that_could_not_be_written_is_refused_first(folder: Path) -> None:
    certificate = privatized(folder, "--history", folder / "public.csv")
    refused(call("verify", certificate, "--report", folder / "x.pdf"), ".json, .html, .md")
    refused(call("verify", certificate, "--report", folder / "none" / "x.json"), "folder")


# Keys --------------------------------------------------------------------------------------------


def test_keys_are_made_once_committed_to_and_never_printed(tmp_path: Path) -> None:
    path = tmp_path / "year.key"
    made = done("key", "new", path)
    commitment = done("key", "commit", path).out.strip()
    assert made.out.strip() == commitment
    secret = path.read_bytes()
    named = done("key", "commit", path, "--name", "town 2026", "--json").document["commitment"]
    assert named.startswith("town 2026:") and commitment not in named
    for text in (made.out, made.err, named, commitment):
        assert secret.hex() not in text
    assert done("key", "check", path, named).code == 0
    assert call("key", "check", path, 64 * "0").code == 1
    refused(call("key", "new", path), "not exist")
    refused(call("key", "check", path, "none"), "64 hexadecimal digits")
    os.chmod(path, 0o644)
    refused(call("key", "commit", path), "chmod 600")
